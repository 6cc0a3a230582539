"""Layers of fluid.contrib for click-through and retrieval: parts of columns, trees of items,
attention by rank, hashed n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.absent import reporter
from ...base.dtypes import VarType, name_of
from ...base.loc import located
from ...errors import FluidTypeError, FluidValueError
from ...graph.variable import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...layers._build import variable, whole
from ...layers.manip import reshape
from ...layers.manip import slice as cut
from ..missing import HINTS

_INTEGERS = ("int32", "int64")


def append(
    helper: LayerHelper, inputs: dict[str, Any], outs: dict[str, Variable], attrs: dict[str, Any]
) -> None:
    """Append the op of a layer."""
    helper.append_op(type=helper.layer_type, inputs=inputs, outputs=outs, attrs=attrs)


def _integers(layer: str, **dtypes: Any) -> None:
    for what, dtype in dtypes.items():
        if name_of(dtype) not in _INTEGERS:
            raise FluidTypeError(f"{layer}'s {what} is int32 or int64, not {name_of(dtype)}")


def _parts(layer: str, input: Any, start_index: int, length: int) -> Variable:
    given = input if isinstance(input, list) else [input]
    for one in given:
        if not isinstance(one, Variable):
            raise FluidTypeError(f"{layer} takes variables, not {type(one).__name__}")
    start_index, length = whole(start_index, "start_index", layer), whole(length, "length", layer)
    helper = LayerHelper(layer, input=given)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    append(helper, {"X": given}, {"Out": out}, {"start_index": start_index, "length": length})
    return out


@located
def partial_concat(input: list[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """Columns start_index to start_index + length (-1: to the end) of every input [N, width], side
    by side.
    """
    return _parts("partial_concat", input, start_index, length)


@located
def partial_sum(input: list[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The sum of columns start_index to start_index + length (-1: to the end) of every input [N,
    width].
    """
    return _parts("partial_sum", input, start_index, length)


@located
def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: bool = False,
    name: str | None = None,
) -> Any:
    """layers.multiclass_nms without rows if no box is kept; with return_index also the rows of the
    boxes, [rows, 1].
    """
    helper = LayerHelper("multiclass_nms2", name=name)
    out = helper.create_variable_for_type_inference(bboxes.dtype)
    index = helper.create_variable_for_type_inference("int32")
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
        "nms_threshold": nms_threshold, "keep_top_k": keep_top_k, "nms_eta": nms_eta, "normalized": normalized,
    }  # fmt: skip
    append(helper, {"BBoxes": bboxes, "Scores": scores}, {"Out": out, "Index": index}, attrs)
    out.stop_gradient = index.stop_gradient = True
    return (out, index) if return_index else out


@located
def rank_attention(
    input: Variable,
    rank_offset: Variable,
    rank_param_shape: Sequence[int],
    rank_param_attr: Any,
    max_rank: int = 3,
) -> Variable:
    """Each row of input [N, width] times the blocks of a parameter selected by its rank and its
    neighbours' ranks; see the op.
    """
    helper = LayerHelper("rank_attention", input=input)
    variable(input, "input", "rank_attention")
    if input.shape[1] * max_rank * max_rank != rank_param_shape[0]:
        raise FluidValueError(
            f"rank_attention's parameter has {input.shape[1]} * {max_rank} * {max_rank} rows, not"
            f" {list(rank_param_shape)}"
        )
    weight = helper.create_parameter(rank_param_attr, list(rank_param_shape), input.dtype)
    weight.stop_gradient = False
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.create_variable_for_type_inference(input.dtype, True)
    append(
        helper,
        {"X": input, "RankOffset": rank_offset, "RankParam": weight},
        {"Out": out},
        {"MaxRank": max_rank},
    )
    return out


@located
def tdm_child(
    x: Variable, node_nums: int, child_nums: int, param_attr: Any = None, dtype: Any = "int32"
) -> tuple[Variable, Variable]:
    """The children of nodes x, and which of them are items; a parameter [node_nums, 3 + child_nums]
    holds the tree, see the op.
    """
    _integers("tdm_child", dtype=dtype)
    helper = LayerHelper("tdm_child", param_attr=param_attr)
    tree = helper.create_parameter(
        helper.param_attr, [node_nums, 3 + child_nums], dtype, default_initializer=Constant(0)
    )
    tree.stop_gradient = True
    child, leaf = (helper.create_variable_for_type_inference(dtype) for _ in range(2))
    attrs = {"child_nums": child_nums, "dtype": int(VarType[_kind(dtype)])}
    append(helper, {"X": x, "TreeInfo": tree}, {"Child": child, "LeafMask": leaf}, attrs)
    return child, leaf


def _kind(dtype: Any) -> str:
    return name_of(dtype).upper()


@located
def tdm_sampler(
    x: Variable,
    neg_samples_num_list: Sequence[int],
    layer_node_num_list: Sequence[int],
    leaf_node_num: int,
    tree_travel_attr: Any = None,
    tree_layer_attr: Any = None,
    output_positive: bool = True,
    output_list: bool = True,
    seed: int = 0,
    tree_dtype: Any = "int32",
    dtype: Any = "int32",
) -> tuple[Any, Any, Any]:
    """The node on the path to item x [N, 1] in each layer of a tree, and sampled negative nodes:
    (nodes, labels, mask), lists by layer.

    Parameters hold the paths, [leaf_node_num, layers], and the nodes of the layers, [nodes, 1].
    Raises FluidValueError if a layer does not have more nodes than samples.
    """
    _integers("tdm_sampler", tree_dtype=tree_dtype, dtype=dtype)
    offsets = _offsets(neg_samples_num_list, layer_node_num_list)
    if leaf_node_num >= offsets[-1]:
        raise FluidValueError(
            f"tdm_sampler's leaf_node_num is below the number of nodes, {offsets[-1]}, not"
            f" {leaf_node_num}"
        )
    helper = LayerHelper("tdm_sampler")
    shapes = (
        (tree_travel_attr, [leaf_node_num, len(offsets) - 1]),
        (tree_layer_attr, [offsets[-1], 1]),
    )
    travel, layer = (
        helper.create_parameter(attr, shape, tree_dtype, default_initializer=Constant(0))
        for attr, shape in shapes
    )
    outs = [helper.create_variable_for_type_inference(dtype) for _ in range(3)]
    for out in outs:
        out.stop_gradient = True
    attrs = {
        "neg_samples_num_list": list(neg_samples_num_list), "output_positive": output_positive, "layer_offset_lod": offsets, "seed": seed,
        "dtype": int(VarType[_kind(dtype)]),
    }  # fmt: skip
    append(
        helper,
        {"X": x, "Travel": travel, "Layer": layer},
        dict(zip(("Out", "Labels", "Mask"), outs, strict=True)),
        attrs,
    )
    if not output_list:
        return tuple(outs)  # type: ignore[return-value]
    counts = [n + bool(output_positive) for n in neg_samples_num_list]
    return _by_layer(outs, counts)  # type: ignore[return-value]


def _offsets(negatives: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """The beginning of each layer's nodes, and their total number."""
    if len(negatives) != len(nodes):
        raise FluidValueError(
            f"tdm_sampler takes a number of negatives for each layer, not {list(negatives)} for"
            f" layers of {list(nodes)}"
        )
    found = [0]
    for wanted, count in zip(negatives, nodes, strict=True):
        if wanted >= count:
            raise FluidValueError(
                f"tdm_sampler samples fewer negatives of a layer than it has nodes, not {wanted} of"
                f" {count}"
            )
        found.append(found[-1] + count)
    return found


def _by_layer(outs: Sequence[Variable], sizes: Sequence[int]) -> tuple[list[Variable], ...]:
    """Each output in parts [N, size, 1], one per layer."""
    found: tuple[list[Variable], ...] = ([], [], [])
    begin = 0
    for size in sizes:
        parts = [cut(out, axes=[1], starts=[begin], ends=[begin + size]) for out in outs]
        for into, part in zip(found, parts, strict=True):
            into.append(reshape(part, [-1, size, 1]))
            into[-1].stop_gradient = True
        begin += size
    return found


@located
def search_pyramid_hash(
    input: Variable,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: int,
    use_filter: bool,
    white_list_len: int,
    black_list_len: int,
    seed: int,
    lr: float,
    param_attr: Any = None,
    param_attr_wl: Any = None,
    param_attr_bl: Any = None,
    name: str | None = None,
    distribute_update_vars: list[str] | None = None,
    dtype: Any = "float32",
) -> Variable:
    """The embeddings of the n-grams of sequences of ids [rows, 1], [rows, num_emb]; see the op
    pyramid_hash.

    Creates the parameters of the embeddings [space_len + rand_len, 1] and of both lists
    [..._list_len, 1]; none is trained.
    """
    helper = LayerHelper("search_pyramid_hash", name=name)
    wanted = {"W": (param_attr, space_len + rand_len)}
    if white_list_len > 0:
        wanted["WhiteList"] = param_attr_wl, white_list_len
    if black_list_len >= 0:
        wanted["BlackList"] = param_attr_bl, black_list_len
    given = {
        slot: helper.create_parameter(attr, [size, 1], dtype)
        for slot, (attr, size) in wanted.items()
    }
    for weight in given.values():
        weight.stop_gradient = True
    names = {attr.name for attr in (param_attr, param_attr_wl, param_attr_bl) if attr}
    for var in distribute_update_vars or ():
        if var not in names:
            raise FluidValueError(
                f"search_pyramid_hash has the parameters {', '.join(sorted(map(str, names)))}, not"
                f" {var!r}"
            )
    outs = {
        slot: helper.create_variable_for_type_inference(dtype)
        for slot in ("Out", "DropPos", "X_Temp_Out")
    }
    attrs = {
        "num_emb": num_emb, "space_len": space_len, "pyramid_layer": pyramid_layer, "rand_len": rand_len,
        "drop_out_percent": drop_out_percent, "is_training": is_training, "use_filter": use_filter, "white_list_len": white_list_len,
        "black_list_len": black_list_len, "seed": seed, "lr": lr, "distribute_update_vars": ",".join(distribute_update_vars or ()),
    }  # fmt: skip
    helper.append_op(type="pyramid_hash", inputs={"X": input, **given}, outputs=outs, attrs=attrs)
    return outs["Out"]


__all__ = [
    "multiclass_nms2", "partial_concat", "partial_sum", "rank_attention", "search_pyramid_hash", "tdm_child", "tdm_sampler",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.layers.nn", __all__, HINTS)
