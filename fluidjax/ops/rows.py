"""How ops treat the rows of ragged values (docs/lod.md): which are row-wise, which can leave padding out; and whose LoD
an output takes.

An op type that is in neither table mixes rows, and must be given exact ones. Ops with a slot declared ``Ragged`` do not
need a place here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from .ragged import Ragged, filled
from .registry import OpDef

Attrs = Mapping[str, Any]
Specs = Mapping[str, Any]  # slot -> what has a shape, or several of them
Shapes = Mapping[str, Any]  # slot -> shape, a list of shapes, or None
When = Callable[[Attrs, Shapes], bool]


@dataclass(frozen=True)
class RowWise:
    """Row i of the outputs depends on row i of the `over` slots only, if `when` holds.

    All variables given in `over` must be ragged with one LoD, and no others. A slot in `beside` may also be plain; `when`
    then sees to it that it spans no rows. outs: the outputs that have rows; empty: all.
    """

    over: tuple[str, ...]
    when: When | None = None
    beside: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()


def _axis(attr: str, slot: str = "X", more: int = 0) -> When:
    """Attribute `attr` names another axis than the first, of a rank `more` higher than the slot's."""

    def holds(attrs: Attrs, shapes: Shapes) -> bool:
        shape = shapes[slot][0] if isinstance(shapes[slot], list) else shapes[slot]
        rank = len(shape) + more
        return -rank <= attrs[attr] < rank and attrs[attr] % rank != 0

    return holds


def _axes(attr: str, slot: str = "X") -> When:
    """None of the axes in attribute `attr` is the first; there is at least one."""
    return lambda attrs, shapes: bool(attrs[attr]) and all(a % len(shapes[slot]) for a in attrs[attr])


def _attr(attr: str, test: Callable[[Any], Any]) -> When:
    return lambda attrs, shapes: bool(test(attrs[attr]))


def _rank(least: int, slot: str = "X") -> When:
    return lambda attrs, shapes: len(shapes[slot]) >= least


def _both(*tests: When) -> When:
    return lambda attrs, shapes: all(test(attrs, shapes) for test in tests)


def _no(*slots: str) -> When:
    """These optional inputs are not given."""
    return lambda attrs, shapes: not any(shapes.get(s) for s in slots)


def _pairs(attrs: Attrs, shapes: Shapes) -> bool:
    """Elementwise ops: Y begins behind the first axis of X, is one there, or is ragged and begins at it."""
    x, y, ragged = shapes["X"], shapes["Y"], shapes["ragged"]
    axis = attrs["axis"]
    first = axis if axis >= 0 and len(y) < len(x) else len(x) - len(y)
    if first < 0:
        return False
    if "Y" in ragged:
        return first == 0
    return math.prod(y) == 1 or first > 0 or (first == 0 and y[0] == 1)


def _reshaped(attrs: Attrs, shapes: Shapes) -> bool:
    """The first dimension stays the first."""
    x, to = shapes["X"], attrs["shape"]
    if shapes.get("Shape") or shapes.get("ShapeTensor") or not to:
        return False
    rest = [x[i] if n == 0 and i < len(x) else n for i, n in enumerate(to)][1:]
    return to[0] == 0 or (to[0] == -1 and math.prod(rest) == math.prod(x[1:]))


def _unsqueezed(attrs: Attrs, shapes: Shapes) -> bool:
    return bool(attrs["axes"]) and all(a > 0 or a + len(shapes["X"]) + 1 > 0 > a for a in attrs["axes"])


def _multiplied(attrs: Attrs, shapes: Shapes) -> bool:
    x, y = shapes["X"], shapes["Y"]
    return len(y) == 2 and (len(x) > 2 or (len(x) == 2 and not attrs["transpose_X"]))


def _test_mode(attrs: Attrs, shapes: Shapes) -> bool:
    return bool(attrs["use_global_stats"] or (attrs["is_test"] and not attrs["trainable_statistics"]))


def _not_flat(attr: str = "flatten") -> When:
    return lambda attrs, shapes: not attrs.get(attr, False)


_X = RowWise(("X",))
_XY = RowWise(("X", "Y"))
_XLABEL = RowWise(("X", "Label"))
_PAIRS = RowWise(("X", "Y"), _pairs, beside=("Y",))
_LAST_AXIS = RowWise(("X",), _axis("axis"))

_GROUPS: tuple[tuple[str, RowWise], ...] = (
    (
        "logsigmoid tanh_shrink log log1p square abs sin cos asin acos atan erf softplus softsign sigmoid tanh exp sqrt rsqrt "
        "reciprocal ceil floor round relu relu6 leaky_relu elu selu gelu brelu soft_relu softshrink hard_shrink hard_sigmoid "
        "hard_swish swish mish stanh thresholded_relu pow maxout prelu scale sign clip cast assign logical_not "
        "dropout shard_index fill_any_like fill_zeros_like fill_zeros_like2 label_smooth one_hot one_hot_v2 group_norm lrn "
        "affine_channel pool2d pool3d max_pool2d_with_index max_pool3d_with_index nearest_interp bilinear_interp "
        "trilinear_interp bicubic_interp space_to_depth pixel_shuffle shuffle_channel unfold pad2d",
        _X,
    ),
    (
        "elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min elementwise_pow "
        "elementwise_mod elementwise_floordiv equal not_equal less_than less_equal greater_than greater_equal",
        _PAIRS,
    ),
    ("logical_and logical_or logical_xor minus dot bmm conv_shift cos_sim huber_loss modified_huber_loss", _XY),
    ("squared_l2_distance bilinear_tensor_product", _XY),
    ("smooth_l1_loss", RowWise(("X", "Y", "InsideWeight", "OutsideWeight"))),
    ("cross_entropy bce_loss bpr_loss teacher_student_sigmoid_loss sigmoid_focal_loss", _XLABEL),
    ("cross_entropy2", RowWise(("X", "Label"), outs=("Y", "MatchX"))),
    ("sigmoid_cross_entropy_with_logits", RowWise(("X", "Label"), _attr("normalize", lambda v: not v))),
    ("softmax_with_cross_entropy", RowWise(("Logits", "Label"), _axis("axis", "Logits"))),
    ("log_loss", RowWise(("Predicted", "Labels"))),
    ("hinge_loss", RowWise(("Logits", "Labels"))),
    ("rank_loss", RowWise(("Label", "Left", "Right"))),
    ("margin_rank_loss", RowWise(("X1", "X2", "Label"))),
    ("softmax arg_max arg_min argsort", RowWise(("X",), _both(_axis("axis"), _not_flat("flatten")))),
    ("cumsum p_norm", RowWise(("X",), _both(_axis("axis"), _not_flat("flatten"), _not_flat("asvector")))),
    ("norm", _LAST_AXIS),
    ("top_k", RowWise(("X",), _rank(2))),
    ("concat split", RowWise(("X",), _both(_axis("axis"), _no("AxisTensor")))),
    ("stack", RowWise(("X",), _axis("axis", more=1))),
    ("unstack unbind", _LAST_AXIS),
    ("reverse", RowWise(("X",), _axes("axis"))),
    ("flip", RowWise(("X",), _axes("dims"))),
    ("index_select", RowWise(("X",), _axis("dim"))),
    ("index_sample", RowWise(("X", "Index"))),
    ("where", RowWise(("Condition", "X", "Y"))),
    ("gather", RowWise(("Index",))),
    ("sum", _X),
    ("mul", RowWise(("X",), _attr("x_num_col_dims", lambda n: n >= 1))),
    ("matmul", RowWise(("X",), _multiplied)),
    ("lookup_table lookup_table_v2", RowWise(("Ids",))),
    ("reshape", RowWise(("X",), _reshaped)),
    ("reshape2", RowWise(("X",), _reshaped, outs=("Out",))),
    ("squeeze", RowWise(("X",), _axes("axes"))),
    ("squeeze2", RowWise(("X",), _axes("axes"), outs=("Out",))),
    ("unsqueeze", RowWise(("X",), _both(_unsqueezed, _no("AxesTensor", "AxesTensorList")))),
    ("unsqueeze2", RowWise(("X",), _both(_unsqueezed, _no("AxesTensor", "AxesTensorList")), outs=("Out",))),
    ("flatten", RowWise(("X",), _attr("axis", lambda a: a == 1))),
    ("flatten2", RowWise(("X",), _attr("axis", lambda a: a == 1), outs=("Out",))),
    ("transpose", RowWise(("X",), _attr("axis", lambda a: a[0] == 0))),
    ("transpose2", RowWise(("X",), _attr("axis", lambda a: a[0] == 0), outs=("Out",))),
    ("slice", RowWise(("Input",), _axes("axes", "Input"))),
    ("strided_slice", RowWise(("Input",), _axes("axes", "Input"))),
    (
        "expand",
        RowWise(("X",), _both(_attr("expand_times", lambda t: t and t[0] == 1), _no("ExpandTimes", "expand_times_tensor"))),
    ),
    ("pad", RowWise(("X",), _attr("paddings", lambda p: not any(p[:2])))),
    ("layer_norm", RowWise(("X",), _attr("begin_norm_axis", lambda a: a == 1))),
    ("data_norm", RowWise(("X",), outs=("Y",))),
    ("batch_norm inplace_abn", RowWise(("X",), _test_mode, outs=("Y",))),
    (
        "conv2d depthwise_conv2d conv3d conv2d_transpose depthwise_conv2d_transpose conv3d_transpose",
        RowWise(("Input", "ResidualData")),
    ),
)
ROW_WISE: dict[str, RowWise] = {kind: rule for kinds, rule in _GROUPS for kind in kinds.split()}


@dataclass(frozen=True)
class Masked:
    """Padded rows of X count as `neutral` ("low", "high": the dtype's least or greatest); means then divide by true rows."""

    neutral: Any
    mean: bool = False


MASKED: dict[str, Masked] = {
    "mean": Masked(0, mean=True), "reduce_mean": Masked(0, mean=True), "reduce_sum": Masked(0), "reduce_prod": Masked(1),
    "reduce_max": Masked("low"), "reduce_min": Masked("high"), "reduce_all": Masked(True), "reduce_any": Masked(False),
    "frobenius_norm": Masked(0), "squared_l2_norm": Masked(0), "l1_norm": Masked(0), "isfinite": Masked(0),
    "isnan": Masked(0), "isinf": Masked(0),
}  # fmt: skip


def shapes_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """slot -> shape (a list of them for a repeatable slot); "ragged": the slots that hold ragged values."""
    shapes: dict[str, Any] = {}
    for slot, value in inputs.items():
        many = isinstance(value, list | tuple)
        shapes[slot] = None if value is None else [_shape(v) for v in value] if many else _shape(value)
    shapes["ragged"] = {slot for slot, value in inputs.items() if ragged_in(value)}
    return shapes


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, Ragged):
        value = value.rows
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def ragged_in(value: Any) -> list[Ragged]:
    """The ragged values in a slot."""
    values = value if isinstance(value, list | tuple) else (value,)
    return [v for v in values if isinstance(v, Ragged)]


def row_wise(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> RowWise | None:
    """The rule by which this op treats row by row what it is given, or None."""
    kept = _keeps_rows(definition, attrs, inputs)
    rule = ROW_WISE.get(definition.type) or (RowWise(("X",)) if kept else None)
    if rule is None or (definition.type in MASKED and not kept):
        return None
    found = [r for value in inputs.values() for r in ragged_in(value)]
    if any(r.key != found[0].key for r in found):
        return None
    for slot, value in inputs.items():
        values = value if isinstance(value, list | tuple) else (value,)
        ragged = [isinstance(v, Ragged) for v in values if v is not None]
        if slot in rule.over:
            if not all(ragged) and slot not in rule.beside:
                return None
        elif any(ragged):
            return None
    if rule.when is not None and not rule.when(attrs, shapes_of(inputs)):
        return None
    return rule


def _keeps_rows(definition: OpDef, attrs: Attrs, inputs: Mapping[str, Any]) -> bool:
    """Whether a reduction leaves the first axis alone."""
    if definition.type not in MASKED or "dim" not in attrs or attrs["reduce_all"]:
        return False
    rank = len(_shape(inputs["X"]))
    return bool(attrs["dim"]) and all(d % rank for d in attrs["dim"])


def masked(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> dict[str, Any] | None:
    """The outputs of a reduction over padded rows, which it leaves out; None if the op is no such reduction."""
    rule = MASKED.get(definition.type)
    x = inputs.get("X")
    if rule is None or not isinstance(x, Ragged):
        return None
    result = definition({**inputs, "X": filled(x, _neutral(rule.neutral, x.dtype))}, attrs)
    if not rule.mean:
        return result
    share = x.capacity / x.count.astype(jnp.float64)
    return {slot: (value * share).astype(value.dtype) for slot, value in result.items()}


def _neutral(value: Any, dtype: Any) -> Any:
    if value not in ("low", "high"):
        return value
    if dtype == np.bool_:
        return value == "high"
    if jnp.issubdtype(dtype, jnp.floating):
        return -np.inf if value == "low" else np.inf
    info = np.iinfo(dtype)
    return info.min if value == "low" else info.max


# -- whose LoD an output takes ---------------------------------------------------------------------------------------

# Ops whose LoD does not come from their first input slot.
LEADS: dict[str, str] = {"lookup_table": "Ids", "lookup_table_v2": "Ids", "where": "X", "index_sample": "Index", "data_norm": "X"}
# Ops whose outputs have no LoD in 1.8.5, though they may have as many rows.
DROPS = frozenset(
    "arg_max arg_min conv2d_transpose depthwise_conv2d_transpose conv3d_transpose crop crop_tensor diag_embed dot "
    "expand_as gather kldiv_loss kron margin_rank_loss max_pool2d_with_index max_pool3d_with_index maxout "
    "modified_huber_loss multiplex nll_loss norm p_norm pixel_shuffle random_crop rank_loss reverse scatter shape "
    "shuffle_channel smooth_l1_loss transpose transpose2 unfold unpool unstack mean sgd adam adamax adagrad momentum "
    "lars_momentum decayed_adagrad ftrl lamb dpsgd proximal_gd proximal_adagrad auc mean_iou precision_recall gather_tree "
    "gather_nd dist allclose trace diag meshgrid sequence_mask accuracy nearest_interp bilinear_interp trilinear_interp "
    "bicubic_interp adadelta rmsprop average_accumulates is_empty size fill_constant gaussian_random uniform_random "
    "truncated_gaussian_random randint range linspace".split()
)
# Outputs that take the LoD, where they are not all that Paddle does not call intermediate.
SHARES: dict[str, tuple[str, ...]] = {
    "batch_norm": ("Y",), "inplace_abn": ("Y",), "layer_norm": ("Y",), "group_norm": ("Y",), "instance_norm": ("Y",),
    "data_norm": ("Y",), "cos_sim": ("Out",), "cross_entropy2": ("Y",), "lrn": ("Out",),
    "softmax_with_cross_entropy": ("Softmax", "Loss"), "dropout": ("Out",),
}  # fmt: skip


def lead(definition: OpDef) -> str | None:
    """The input slot whose LoD the outputs take."""
    if definition.type in DROPS or not definition.inputs:
        return None
    return LEADS.get(definition.type) or definition.inputs[0].name


def may_share(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> bool:
    """Whether the outputs have rows at all: not those of a reduction over the first axis."""
    return definition.type not in MASKED or _keeps_rows(definition, attrs, inputs)


def shares(definition: OpDef, slot: str) -> bool:
    """Whether output `slot` takes the leading input's LoD."""
    listed = SHARES.get(definition.type)
    if listed is not None:
        return slot in listed
    return not next(s for s in definition.outputs if s.name == slot).intermediate


# LoD-aware ops while a program is built: output slot -> the input slot whose lod_level it has.
LEVELS: dict[str, dict[str, str]] = {
    "gru": {"Hidden": "Input"}, "lstm": {"Hidden": "Input", "Cell": "Input"}, "crf_decoding": {"ViterbiPath": "Emission"},
    "sequence_softmax": {"Out": "X"}, "sequence_reverse": {"Y": "X"}, "sequence_concat": {"Out": "X"},
    "sequence_expand_as": {"Out": "Y"},
}  # fmt: skip


def lod_levels(definition: OpDef, levels: Mapping[str, int], inputs: Specs, outputs: Specs, attrs: Attrs) -> dict[str, int]:
    """Output slot -> lod_level, given those of the inputs (the first variable of a slot) and all shapes."""
    if definition.type == "lod_reset":
        return {"Out": levels["X"] + 1 if attrs["append"] else levels.get("Y", 0) or 1}
    if definition.type == "sequence_pool":
        return {"Out": max(levels["X"] - 1, 0)}
    if definition.type in LEVELS:
        return {out: levels[slot] for out, slot in LEVELS[definition.type].items()}
    slot = lead(definition)
    level = levels.get(slot, 0) if slot else 0
    found = {"XShape": levels["X"]} if "XShape" in outputs else {}
    if not level or any(s.ragged for s in definition.inputs) or not may_share(definition, inputs, attrs):
        return found
    rows = _first(inputs[slot or ""])
    return {**found, **{s: level for s, spec in outputs.items() if spec and shares(definition, s) and _first(spec) == rows}}


def _first(spec: Any) -> tuple[int, ...]:
    return tuple((spec[0] if isinstance(spec, tuple) else spec).shape[:1])
