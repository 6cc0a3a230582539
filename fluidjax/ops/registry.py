"""What an op type is, and the ``@op`` decorator that declares one from a function's signature.

    @op(outs="Out", grad="X Y")
    def mul(X: Array, Y: Array, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1):
        \"\"\"Out = flatten(X, x_num_col_dims) @ flatten(Y, y_num_col_dims).\"\"\"

Positional parameters are input slots: ``X: Array``, ``X: Array | None`` (optional), ``Xs: list[Array]`` (repeatable),
``X: Ragged`` or ``X: Array | Ragged`` (takes sequences as they are; other slots see plain rows), ``X: Array |
SelectedRows`` (takes sparse rows too; other slots refuse them).
Keyword-only parameters are attributes, their annotation is Paddle's attribute type. A ``key`` parameter marks a random
op. `outs` names the output slots: ``Out``, ``Outs*`` (repeatable: the function returns a list), ``Mask?`` (optional),
``XShape~`` (Paddle's "intermediate": it exists for the gradient and has none of its own).

`grad` names the forward slots that the gradient op takes besides the gradients of the outputs; the op is then
differentiated by jax.vjp at exactly those inputs. :func:`grad_of` declares a rule by hand instead, which is needed where
Paddle's gradient op does not take the forward inputs (``relu_grad`` sees only Out).
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from ..base.dtypes import VarType
from ..errors import FluidTypeError, UnknownOpError, UnsupportedError, near
from ..ir.desc import BlockRef, FrozenMap, Long
from .later import ANY, LATER
from .ragged import Ragged, like, rows_of
from .selected import SelectedRows

Array = jax.Array | np.ndarray
Ints = list[int]
Floats = list[float]
Strs = list[str]
Bools = list[bool]
Longs = typing.NewType("Longs", list)
Int64 = typing.NewType("Int64", int)

GRAD = "@GRAD"
_ATTR_TYPES: dict[Any, str] = {
    int: "INT", float: "FLOAT", str: "STRING", bool: "BOOLEAN", Ints: "INTS", Floats: "FLOATS", Strs: "STRINGS",
    Bools: "BOOLEANS", Int64: "LONG", Longs: "LONGS", BlockRef: "BLOCK", list[BlockRef]: "BLOCKS",
}  # fmt: skip
REQUIRED = inspect.Parameter.empty

# Attributes that every op may carry: bookkeeping of Paddle's, and hints to kernels that do not exist here.
HINTS: Mapping[str, str] = {
    "op_role": "INT", "op_role_var": "STRINGS", "op_namescope": "STRING", "op_callstack": "STRINGS",
    "op_device": "STRING", "use_mkldnn": "BOOLEAN", "use_cudnn": "BOOLEAN", "use_quantizer": "BOOLEAN",
    "mkldnn_data_type": "STRING", "is_mkldnn": "BOOLEAN", "exhaustive_search": "BOOLEAN", "workspace_size_MB": "INT",
    "fuse_relu_before_depthwise_conv": "BOOLEAN", "x_data_format": "STRING", "y_data_format": "STRING",
    "force_fp32_output": "BOOLEAN", "scale_x": "FLOAT", "scale_y": "FLOATS", "scale_out": "FLOAT",
    "use_addto": "BOOLEAN", "fuse_with_relu": "BOOLEAN", "fuse_residual_connection": "BOOLEAN",
    "fuse_brelu": "BOOLEAN", "fuse_brelu_threshold": "FLOAT", "fuse_relu": "BOOLEAN", "fuse_activation": "STRING",
    "fuse_alpha": "FLOAT", "fuse_beta": "FLOAT", "Scale_in": "FLOAT", "Scale_out": "FLOAT",
    "Scale_in_eltwise": "FLOAT", "Scale_weights": "FLOATS", "with_quant_attr": "BOOLEAN", "name": "STRING",
    "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": "BOOLEAN", "place_type": "INT", "Scale_x": "FLOAT", "Scale_y": "FLOAT",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """An input or output slot. `many`: takes a list of variables; `intermediate`: no gradient flows into it; `ragged`:
    takes a Ragged as it is; `selected`: takes SelectedRows.
    """

    name: str
    many: bool = False
    optional: bool = False
    intermediate: bool = False
    ragged: bool = False
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute: Paddle's type name (INT, FLOATS, ...) and default; REQUIRED where there is none."""

    name: str
    type: str
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class GradDef:
    """How an op is differentiated: the gradient op's type and where its slots come from.

    `takes` maps the gradient op's input slots to origins: a forward slot ("X", "Out") or an output's gradient
    ("Out@GRAD"). `gives` maps its output slots to the forward input slots that they are the gradients of. `when` names
    the condition of those of `takes` that are not always there: a boolean attribute, or ``attribute=value``.
    """

    type: str
    takes: FrozenMap
    gives: FrozenMap
    when: FrozenMap = FrozenMap()

    def taken(self, attrs: Mapping[str, Any]) -> dict[str, str]:
        """The part of `takes` that a gradient op with these attributes has."""
        return {s: o for s, o in self.takes.items() if s not in self.when or _holds(self.when[s], attrs)}


def _holds(condition: str, attrs: Mapping[str, Any]) -> bool:
    name, equals, value = condition.partition("=")
    return attrs.get(name) == value if equals else bool(attrs.get(name, False))


@dataclass(frozen=True, slots=True)
class Reuse:
    """A gradient that is an ordinary op: ``scale``'s is another ``scale``.

    `ins` and `outs` map the op's slots to origins as in GradDef (``{"X": "Out@GRAD"}``, ``{"Out": "X@GRAD"}``);
    `attrs` makes its attributes from the forward op's. With `each`, a repeatable origin gives one op a variable.
    """

    type: str
    ins: Mapping[str, str]
    outs: Mapping[str, str]
    attrs: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    each: bool = False


@dataclass(frozen=True, eq=False)
class OpDef:
    """An op type. `fn` is None for ops that only the lowering knows (feed, conditional_block, ...)."""

    type: str
    fn: Callable[..., Any] | None
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attrs: Mapping[str, Attr]
    random: bool = False
    inplace: Mapping[str, str] = field(default_factory=dict)
    grad: GradDef | None = None
    reuse: tuple[Reuse, ...] = ()
    infer: Callable[..., Any] | None = None
    forward: str | None = None  # of a gradient op: the op that it differentiates
    carried: Mapping[str, str] = field(default_factory=dict)  # attributes without meaning here, see grad_reuses
    derived: bool = False  # of a gradient op: its rule is jax.vjp of the forward op
    doc: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)  # attribute defaults as descs hold them
    _input_names: frozenset[str] = frozenset()
    _output_names: frozenset[str] = frozenset()
    _many_inputs: frozenset[str] = frozenset()

    def attr_type(self, name: str) -> str | None:
        """Paddle's type of an attribute, or None if the op has no such attribute."""
        found = self.attrs.get(name)
        later = LATER.get(self.forward or self.type, {}).get(name)
        return found.type if found else HINTS.get(name) or self.carried.get(name) or (later[0] if later else None)

    def arguments(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `fn` from an op's attributes; defaults fill what is missing."""
        given = {}
        for name, attr in self.attrs.items():
            value = attrs.get(name, attr.default)
            if value is REQUIRED:
                raise UnknownOpError(f"op '{self.type}' needs attribute {name!r}")
            given[name] = value
        for name in LATER.get(self.forward or self.type, {}):
            if name in attrs:
                self.check_later(name, attrs[name])
        return given

    def check_later(self, name: str, value: Any) -> None:
        """Raises UnsupportedError for a value that makes the op mean what only later Paddles compute."""
        _, same = LATER.get(self.forward or self.type, {}).get(name, ("", ANY))
        if same is not ANY and value != same:
            raise UnsupportedError(f"op '{self.type}' with {name} = {value!r} is of a later Paddle, and not there; {same!r} is")

    def __call__(
        self, inputs: Mapping[str, Any], attrs: Mapping[str, Any], key: jax.Array | None = None,
        wanted: Collection[str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run the op on arrays: slot -> array (a list for a repeatable slot) in and out.

        A derived gradient op computes only the output slots in `wanted` (None: all). As a mapping, `wanted` also says how
        many variables each slot has, which a few hand-written rules cannot know otherwise.
        """
        if self.fn is None:
            raise UnknownOpError(f"op '{self.type}' runs only inside a program")
        given = self.arguments(attrs)
        if self.random:
            given["key"] = key
        if self.forward is not None:  # slots such as Out@GRAD are no Python names
            return self.fn(inputs, given, wanted)
        values = {slot.name: inputs.get(slot.name) for slot in self.inputs}
        result = None if self.random else _folded(self.fn, values, given)
        if result is None:
            result = self.fn(**values, **given)
        if len(self.outputs) == 1:
            return {self.outputs[0].name: result}
        return dict(zip((s.name for s in self.outputs), result, strict=True))


FOLD = 64  # elements: shapes and counters are smaller


def _folded(fn: Callable[..., Any], values: Mapping[str, Any], attrs: Mapping[str, Any]) -> Any:
    """The result as NumPy arrays if all inputs are small NumPy integers, else None.

    So arithmetic on shapes stays known while a step is traced, and may decide a shape further on.
    """
    leaves = jax.tree.leaves(values)
    if not leaves or not all(isinstance(x, np.ndarray) and x.dtype.kind in "biu" and x.size <= FOLD for x in leaves):
        return None
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        result = fn(**values, **attrs)
    if any(x.size > FOLD for x in jax.tree.leaves(result)):
        return None
    return jax.tree.map(np.asarray, result)


REGISTRY: dict[str, OpDef] = {}


def lookup(kind: str) -> OpDef:
    """The OpDef of an op type. Raises UnknownOpError naming the nearest types there are."""
    try:
        return REGISTRY[kind]
    except KeyError:
        raise UnknownOpError(f"there is no op type {kind!r}{near(str(kind), REGISTRY)}") from None


def attr_type(kind: str, name: str) -> str | None:
    """Paddle's type of attribute `name` of op type `kind`; None where either is unknown."""
    found = REGISTRY.get(kind)
    return found.attr_type(name) if found else HINTS.get(name)


def register(definition: OpDef) -> OpDef:
    """Put an op type in the registry; a second one of the same name is an error."""
    if definition.type in REGISTRY:
        raise UnknownOpError(f"op type {definition.type!r} is declared twice")
    definition = replace(
        definition,
        defaults={n: canonical(definition, n, a.default) for n, a in definition.attrs.items() if a.default is not REQUIRED},
        _input_names=frozenset(s.name for s in definition.inputs),
        _output_names=frozenset(s.name for s in definition.outputs),
        _many_inputs=frozenset(s.name for s in definition.inputs if s.many),
    )
    REGISTRY[definition.type] = definition
    return definition


def parse_slots(text: str) -> tuple[Slot, ...]:
    """Slots from ``"Y MeanOut Mask? Outs* XShape~"``."""
    return tuple(
        Slot(word.rstrip("*?~"), many="*" in word, optional="?" in word, intermediate="~" in word)
        for word in text.split()
    )


def _input_slot(name: str, hint: Any) -> Slot:
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else (hint,)
    optional = type(None) in parts
    many = any(typing.get_origin(p) is list for p in parts)
    ragged = any(p is Ragged or Ragged in typing.get_args(p) for p in parts)
    return Slot(name, many=many, optional=optional, ragged=ragged, selected=_mentions(hint, SelectedRows))


def _mentions(hint: Any, kind: type) -> bool:
    return hint is kind or any(_mentions(part, kind) for part in typing.get_args(hint))


def op(
    kind: str | None = None,
    *,
    outs: str,
    grad: str | None = None,
    nograd: str = "",
    grad_outs: str | None = None,
    grad_type: str | None = None,
    when: Mapping[str, str] | None = None,
    inplace: Mapping[str, str] | None = None,
    infer: Callable[..., Any] | None = None,
    attrs: Mapping[str, Attr] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an op type from a function; the function itself is returned unchanged.

    kind: the op type, where it is not the function's name (``sum``, ``abs``).
    outs: output slots, see the module's text.
    grad: forward slots (inputs, outputs) that the gradient op takes; None: the op has no gradient.
    nograd: input slots that never get a gradient (labels, running statistics).
    grad_outs: outputs whose gradients the gradient op takes; default all but the intermediate ones.
    grad_type: the gradient op's type; default ``<kind>_grad``.
    when: slot of the gradient op -> the condition that it is there for, as in GradDef.
    inplace: output slot -> input slot that Paddle writes in place (``{"MeanOut": "Mean"}``).
    attrs: further attributes, for a function that takes ``**attrs`` because Python reserves a name (``lambda``).
    infer: own shape rule, see infer.py; default runs the function under jax.eval_shape.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = kind or fn.__name__
        inputs, own, random = signature(fn)
        definition = register(
            OpDef(
                name, fn, inputs, parse_slots(outs), {**own, **(attrs or {})}, random, dict(inplace or {}), infer=infer,
                doc=inspect.getdoc(fn) or "",
            )
        )
        if grad is not None:
            graddef = replace(_graddef(definition, grad, nograd, grad_outs, grad_type), when=FrozenMap(when or {}))
            add_grad(definition, graddef, _vjp_rule(definition, graddef), derived=True)
        return fn

    return declare


def signature(fn: Callable[..., Any]) -> tuple[tuple[Slot, ...], dict[str, Attr], bool]:
    """Input slots, attributes and whether the function takes a random key."""
    hints = typing.get_type_hints(fn)
    inputs, attrs, random = [], {}, False
    for p in inspect.signature(fn).parameters.values():
        if p.name == "key":
            random = True
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif p.kind is p.KEYWORD_ONLY:
            if hints.get(p.name) not in _ATTR_TYPES:
                raise FluidTypeError(f"{fn.__name__}: attribute {p.name!r} needs one of the annotations {list(_ATTR_TYPES)}")
            default = tuple(p.default) if isinstance(p.default, list | tuple) else p.default
            attrs[p.name] = Attr(p.name, _ATTR_TYPES[hints[p.name]], default)
        else:
            inputs.append(_input_slot(p.name, hints.get(p.name, Array)))
    return tuple(inputs), attrs, random


def control_op(
    kind: str, *, ins: str = "", outs: str = "", attrs: Mapping[str, Attr] | None = None,
    grad: GradDef | None = None, forward: str | None = None, doc: str = "",
) -> OpDef:
    """Declare an op that only the lowering can run (it has sub-blocks, or talks to the host)."""
    return register(OpDef(kind, None, parse_slots(ins), parse_slots(outs), dict(attrs or {}), grad=grad, forward=forward, doc=doc))


def _graddef(fwd: OpDef, takes: str, nograd: str, grad_outs: str | None, grad_type: str | None) -> GradDef:
    outs = grad_outs.split() if grad_outs is not None else [s.name for s in fwd.outputs if not s.intermediate]
    wanted = [s.name for s in fwd.inputs if s.name not in nograd.split()]
    return GradDef(
        grad_type or f"{fwd.type}_grad",
        FrozenMap({name: name for name in [*takes.split(), *(o + GRAD for o in outs)]}),
        FrozenMap({name + GRAD: name for name in wanted}),
    )


def grad_of(
    kind: str,
    takes: str,
    *,
    nograd: str = "",
    grad_outs: str | None = None,
    grad_type: str | None = None,
    wiring: Mapping[str, str] | None = None,
    gives: Mapping[str, str] | None = None,
    when: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the gradient op of `kind` by hand.

    The function takes the slots named in `takes` as keyword arguments, the gradient of output Out as ``d_Out`` (None
    when nothing downstream needs it), and as keyword-only parameters those of the forward op's attributes that it
    wants; one called `counts` tells how many variables each output slot has (``{"X@GRAD": 3}``). It returns the gradient
    of each differentiable input, in slot order (a tuple where there are several).

    wiring: further input slots, name -> origin, where Paddle's name is not the origin (``{"DDX": "X@GRAD@GRAD"}``,
    the function's parameter then is ``DDX``). gives: output slot -> forward slot, where the names are not ``X@GRAD``.
    when: input slot -> the condition that it is there for, as in GradDef.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        fwd = lookup(kind)
        plain = _graddef(fwd, takes, nograd, "" if wiring and grad_outs is None else grad_outs, grad_type)
        graddef = GradDef(
            plain.type,
            FrozenMap({**plain.takes, **(wiring or {})}),
            FrozenMap(gives) if gives is not None else plain.gives,
            FrozenMap(when or {}),
        )
        add_grad(fwd, graddef, _hand_rule(fn, graddef), inspect.getdoc(fn) or "")
        return fn

    return declare


def add_grad(fwd: OpDef, graddef: GradDef, rule: Callable[..., Any], doc: str = "", derived: bool = False) -> None:
    """Register the gradient op that `graddef` describes and tie it to its forward op."""
    by_name = {s.name: s for s in [*fwd.inputs, *fwd.outputs]}

    def slot(name: str, origin: str) -> Slot:
        base = by_name.get(origin) or by_name[origin.removesuffix(GRAD)]
        return Slot(name, many=base.many, optional=True, ragged=base.ragged and not origin.endswith(GRAD))

    REGISTRY[fwd.type] = replace(fwd, grad=graddef)
    register(
        OpDef(
            graddef.type,
            rule,
            tuple(slot(n, o) for n, o in graddef.takes.items()),
            tuple(slot(n, o) for n, o in graddef.gives.items()),
            fwd.attrs,
            forward=fwd.type,
            derived=derived,
            doc=doc or f"The vector-Jacobian product of {fwd.type}.",
        )
    )


def grad_reuses(kind: str, *ops: Reuse) -> None:
    """Declare that the gradient of `kind` is written with ordinary ops.

    Those may carry attributes of `kind` that mean nothing to them, as Paddle leaves them there.
    """
    forward = lookup(kind)
    REGISTRY[kind] = replace(forward, reuse=ops)
    for reuse in ops:
        if reuse.type in REGISTRY:
            used = REGISTRY[reuse.type]
            more = {n: a.type for n, a in forward.attrs.items() if n not in used.attrs}
            REGISTRY[reuse.type] = replace(used, carried={**used.carried, **more})


def _hand_rule(fn: Callable[..., Any], graddef: GradDef) -> Callable[..., Any]:
    """Call a hand-written rule: slot Out@GRAD becomes the argument d_Out; results get the slots of `gives`."""
    parameters = inspect.signature(fn).parameters
    wanted = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    names = {slot: "d_" + slot.removesuffix(GRAD) if slot.endswith(GRAD) else slot for slot in graddef.takes}

    def run(inputs: Mapping[str, Any], attrs: Mapping[str, Any], slots: Collection[str] | None = None) -> dict[str, Any]:
        given = {arg: inputs.get(slot) for slot, arg in names.items()}
        extra = {**attrs, "counts": slots}
        result = fn(**given, **{n: extra[n] for n in wanted})
        if len(graddef.gives) == 1:
            return {next(iter(graddef.gives)): result}
        return dict(zip(graddef.gives, result, strict=True))

    return run


def _vjp_rule(fwd: OpDef, graddef: GradDef) -> Callable[..., Any]:
    """The literal meaning of a gradient op: jax.vjp of the forward op at the inputs that the op names."""

    def run(inputs: Mapping[str, Any], attrs: Mapping[str, Any], wanted: Collection[str] | None = None) -> dict[str, Any]:
        given = {o: inputs[s] for s, o in graddef.takes.items() if not o.endswith(GRAD) and inputs.get(s) is not None}
        _, pull = pullback(fwd, graddef, given, attrs, wanted=wanted)
        return pull({o.removesuffix(GRAD): inputs.get(s) for s, o in graddef.takes.items() if o.endswith(GRAD)})

    return run


def pullback(
    fwd: OpDef, graddef: GradDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any], key: jax.Array | None = None,
    wanted: Collection[str] | None = None,
) -> tuple[dict[str, Any], Callable[[Mapping[str, Any]], dict[str, Any]]]:  # fmt: skip
    """Run `fwd` through jax.vjp: its outputs, and a function from output gradients (None: zero) to ``X@GRAD`` slots.

    wanted: the gradient op's output slots that are asked for; None for all.
    """
    slots = graddef.gives if wanted is None else {s: o for s, o in graddef.gives.items() if s in wanted}
    through = [o for o in slots.values() if inputs.get(o) is not None and _floating(inputs[o])]
    outs = [s for s in fwd.outputs if s.name + GRAD in graddef.takes.values()]

    def primal(values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        result = fwd({**inputs, **{n: like(inputs[n], v) for n, v in values.items()}}, attrs, key)
        return [rows_of(result[s.name]) for s in outs], result

    primals, pull, outputs = jax.vjp(primal, {n: rows_of(inputs[n]) for n in through}, has_aux=True)

    def backward(cotangents: Mapping[str, Any]) -> dict[str, Any]:
        given = jax.tree.map(
            lambda p, c: _cotangent(p, c), primals, [_like(p, rows_of(cotangents.get(s.name))) for s, p in zip(outs, primals, strict=True)],
            is_leaf=lambda x: x is None,
        )
        (grads,) = pull(given)
        return {slot: grads.get(origin) for slot, origin in slots.items()}

    return outputs, backward


def _like(primal: Any, cotangent: Any) -> Any:
    """The cotangent with the primal's list structure; None leaves stay."""
    if isinstance(primal, list | tuple):
        return type(primal)([None] * len(primal) if cotangent is None else cotangent)
    return cotangent


def _cotangent(primal: Any, cotangent: Any) -> Any:
    """A cotangent as jax.vjp wants it: zeros for None, the primal's shape and dtype, float0 for integers."""
    if not _floating(primal):
        return np.zeros(primal.shape, jax.dtypes.float0)
    if cotangent is None:
        return jax.numpy.zeros(primal.shape, primal.dtype)
    return jax.numpy.asarray(cotangent, primal.dtype).reshape(primal.shape)


def _floating(value: Any) -> bool:
    if isinstance(value, list | tuple) and not value:
        return False
    leaf = value[0] if isinstance(value, list | tuple) else value
    return jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating)


def canonical(definition: OpDef, name: str, value: Any) -> Any:
    """An attribute value in the form that descs hold: frozen, floats rounded to float32 as Paddle stores them.

    Raises UnknownOpError for an attribute that the op does not have, FluidTypeError for a value of another type.
    """
    kind = definition.attr_type(name)
    if kind is None:
        known = list(definition.attrs)
        raise UnknownOpError(f"op '{definition.type}' has no attribute {name!r}{near(name, known)}; it has {', '.join(known) or 'none'}")
    try:
        converted = _CONVERT[kind](value)
    except (TypeError, ValueError, OverflowError):
        raise FluidTypeError(f"attribute {name!r} of op '{definition.type}' is {kind}, which {value!r} is not") from None
    definition.check_later(name, converted)
    return converted


def _int(value: Any) -> int:
    if isinstance(value, float | np.floating | str):
        raise TypeError
    return value if type(value) is int else int(value)


def _bool(value: Any) -> bool:
    if isinstance(value, str) or value is None:
        raise TypeError
    return bool(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _block(value: Any) -> BlockRef:
    return value if isinstance(value, BlockRef) else BlockRef(value.idx)


def _many(convert: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def run(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            raise TypeError
        return tuple(convert(v) for v in (value if np.iterable(value) else [value]))

    return run


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "INT": _int, "FLOAT": _float, "STRING": _str, "BOOLEAN": _bool, "LONG": lambda v: Long(_int(v)), "BLOCK": _block,
    "INTS": _many(_int), "FLOATS": _many(_float), "STRINGS": _many(_str), "BOOLEANS": _many(_bool),
    "LONGS": _many(lambda v: Long(_int(v))), "BLOCKS": _many(_block),
}  # fmt: skip

__all__ = [
    "Array", "Attr", "BlockRef", "Bools", "Floats", "GradDef", "Int64", "Ints", "Longs", "OpDef", "Ragged", "Reuse",
    "SelectedRows", "Slot", "Strs",
    "VarType", "control_op", "grad_of", "grad_reuses", "lookup", "op",
]  # fmt: skip
