"""The declaration of an op type as values: slots, gradients, and :class:`OpDef` itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from ..errors import ArgumentError, UnknownOpError, UnsupportedError, near
from ..ir.desc import FrozenMap, OpDesc
from .attributes import REQUIRED, Attr, converted, hint_type
from .common import COMMON
from .control_interface import ControlOp
from .later import ANY, LATER
from .target import PLAIN, Target
from .traits import Traits

GRAD = "@GRAD"


@dataclass(frozen=True, slots=True)
class Slot:
    """An input or output slot. `many`: takes a list of variables; `intermediate`: no gradient flows
    into it; `ragged`: takes a Ragged itself; `selected`: takes SelectedRows; `gaps`: gradients that
    nothing computed are left out of the list. `gradient`: holds the gradient of an output of the
    forward op, or None if there is none.
    """

    name: str
    many: bool = False
    optional: bool = False
    intermediate: bool = False
    ragged: bool = False
    selected: bool = False
    gaps: bool = False
    gradient: bool = False


@dataclass(frozen=True, slots=True)
class GradDef:
    """How an op is differentiated: the gradient op's type and where its slots come from.

    `takes` maps the gradient op's input slots to origins: a forward slot ("X", "Out") or an
    output's gradient ("Out@GRAD"). `gives` maps its output slots to the forward input slots whose
    gradients they are. `when` names the condition of each optional slot of `takes`: a boolean
    attribute, or ``attribute=value``. `needs` maps each optional slot of `gives` to the slot of
    `takes` that it depends on. `alike`: forward slots whose variables must have one shape;
    otherwise this gradient does not apply.
    """

    type: str
    takes: FrozenMap
    gives: FrozenMap
    when: FrozenMap = FrozenMap()
    needs: FrozenMap = FrozenMap()
    alike: tuple[str, ...] = ()

    def taken(self, attrs: Mapping[str, Any]) -> dict[str, str]:
        """The part of `takes` that a gradient op with these attributes has."""
        return {
            s: o for s, o in self.takes.items() if s not in self.when or _holds(self.when[s], attrs)
        }

    def given(self, there: Iterable[str]) -> dict[str, str]:
        """The part of `gives` that a gradient op with these input slots has."""
        slots = set(there)
        return {
            s: o for s, o in self.gives.items() if s not in self.needs or self.needs[s] in slots
        }


def _holds(condition: str, attrs: Mapping[str, Any]) -> bool:
    name, equals, value = condition.partition("=")
    return attrs.get(name) == value if equals else bool(attrs.get(name, False))


@dataclass(frozen=True, slots=True)
class Reuse:
    """A gradient that is an ordinary op: ``scale``'s is another ``scale``.

    `ins` and `outs` map the op's slots to origins as in GradDef (``{"X": "Out@GRAD"}``, ``{"Out":
    "X@GRAD"}``); `attrs` makes its attributes from the forward op's. With `each`, a repeatable
    origin gives one op per variable.
    """

    type: str
    ins: Mapping[str, str]
    outs: Mapping[str, str]
    attrs: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    each: bool = False


@dataclass(frozen=True, slots=True)
class GradOp:
    """A gradient op that a function writes (`OpDef.write_grad`): its type, names by slot,
    attributes.
    """

    type: str
    ins: Mapping[str, Sequence[str]]
    outs: Mapping[str, Sequence[str]]
    attrs: Mapping[str, Any] = FrozenMap()


class GradBlock(Protocol):
    """The block with the gradient ops of an op's own block, while their names may still change."""

    @property
    def idx(self) -> int: ...
    @property
    def reads(self) -> Sequence[Sequence[str]]:
        """The input names of every op, in order."""

    @property
    def writes(self) -> Sequence[Sequence[str]]:
        """The output names of every op, in order."""

    def sees(self, name: str) -> bool:
        """Whether a variable of that name is visible from the block: declared in the forward block
        or around both.
        """


class GradNames(Protocol):
    """Names for such a function: `taken` for a forward slot or ``Out@GRAD``, `given` for the
    gradients of an input slot.

    inside: the gradient ops of the op's own block (attribute sub_block), in a new block. Gradients
    flow through all ops of the forward block or, if `ends` are given, through these and the ops
    that they depend on.
    """

    def taken(self, origin: str) -> list[str]: ...

    def given(self, slot: str) -> list[str]: ...

    def inside(
        self, ends: Callable[[Sequence[OpDesc]], Sequence[OpDesc]] | None = None
    ) -> GradBlock: ...


WriteGrad = Callable[[OpDesc, GradNames], list[GradOp]]


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Replaces such a function: Paddle differentiates the op, and fluidjax raises an error with
    this advice instead.
    """

    advice: str


@dataclass(frozen=True, eq=False)
class OpDef:
    """An op type. `fn` is None for an op that is not a function of arrays; `control` then describes
    it.
    """

    type: str
    fn: Callable[..., Any] | None
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attrs: Mapping[str, Attr]
    random: bool = False
    inplace: Mapping[str, str] = field(default_factory=dict)
    grad: GradDef | None = None
    reuse: tuple[Reuse, ...] = ()
    write_grad: WriteGrad | Unwritten | None = None  # used if neither defines the gradient ops
    origin: str | None = None  # for a gradient op of any order: the original op type
    infer: Callable[..., Any] | None = None
    forward: str | None = None  # for a gradient op: the op that it differentiates
    # attributes that it ignores, see grad_reuses
    carried: Mapping[str, str] = field(default_factory=dict)
    derived: bool = False  # for a gradient op: its rule is jax.vjp of the forward op
    doc: str = ""
    traits: Traits = field(default_factory=Traits)
    control: ControlOp = ControlOp()
    targeted: bool = False  # whether `fn` takes how it is lowered, see target.py
    # attributes of later Paddles that `fn` takes, see later.py
    later: Mapping[str, Attr] = field(default_factory=dict)

    # Derived values are computed at first use: a program uses few of the op types.

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Attribute defaults in the form of descs."""
        return {
            n: canonical(self, n, a.default)
            for n, a in self.attrs.items()
            if a.default is not REQUIRED
        }

    @cached_property
    def input_names(self) -> frozenset[str]:
        return frozenset(s.name for s in self.inputs)

    @cached_property
    def output_names(self) -> frozenset[str]:
        return frozenset(s.name for s in self.outputs)

    @cached_property
    def many_inputs(self) -> frozenset[str]:
        return frozenset(s.name for s in self.inputs if s.many)

    @property
    def formula(self) -> str:
        """The op's formula: the first paragraph of its docstring, in one line."""
        return " ".join(self.doc.partition("\n\n")[0].split())

    @property
    def has_grad(self) -> bool:
        """Whether gradients flow through ops of this type."""
        return self.grad is not None or bool(self.reuse) or self.write_grad is not None

    @cached_property
    def uncommon(self) -> bool:
        """Whether it is one of fluidjax's own ops, in a family that few programs use."""
        room, _, family = getattr(self.fn, "__module__", "").rpartition(".")
        return room.startswith("fluidjax.ops") and family not in COMMON

    def attr_type(self, name: str) -> str | None:
        """Paddle's type of an attribute, or None if the op has no such attribute."""
        found = self.attrs.get(name)
        later = LATER.get(self.origin or self.type, {}).get(name)
        return (
            found.type
            if found
            else hint_type(name) or self.carried.get(name) or (later[0] if later else None)
        )

    def arguments(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `fn` from an op's attributes and the defaults."""
        given = {}
        for name, attr in self.attrs.items():
            value = attrs.get(name, attr.default)
            if (
                value is REQUIRED
                and attr.type in ("INTS", "LONGS")
                and any(n in attrs for n in self.later)
            ):
                value = ()  # a later Paddle renamed it
            if value is REQUIRED:
                raise UnknownOpError(f"op '{self.type}' needs attribute {name!r}")
            given[name] = value
        for name in LATER.get(self.origin or self.type, {}):
            if name in self.later:
                given[name] = attrs.get(name, self.later[name].default)
            elif name in attrs:
                self.check_later(name, attrs[name])
        return given

    def check_later(self, name: str, value: Any) -> None:
        """Raises UnsupportedError for a value whose meaning only later Paddles have."""
        _, same = LATER.get(self.origin or self.type, {}).get(name, ("", ANY))
        if name not in self.later and same is not ANY and value != same:
            raise UnsupportedError(
                f"op '{self.type}' with {name} = {value!r} is of a later Paddle, and unsupported;"
                f" {same!r} is"
            )

    def is_random(self, attrs: Mapping[str, Any]) -> bool:
        """Whether the op uses random numbers; false with `is_test` (dropout)."""
        return self.random and not attrs.get("is_test", False)

    def __call__(
        self, inputs: Mapping[str, Any], attrs: Mapping[str, Any], key: jax.Array | None = None,
        wanted: Collection[str] | None = None, target: Target = PLAIN,
    ) -> dict[str, Any]:  # fmt: skip
        """Run the op on arrays: slot -> array (a list for a repeatable slot) in and out.

        A derived gradient op computes only the output slots in `wanted` (None: all). A mapping
        `wanted` also gives the number of variables of each slot, which a few hand-written rules
        need. target: how it is lowered.
        """
        if self.fn is None:
            raise UnknownOpError(f"op '{self.type}' runs only inside a program")
        given = self.arguments(attrs)
        if self.random:  # the key is None unless `is_random`
            given["key"] = key
        if self.targeted:
            given["target"] = target
        if self.forward is not None:  # slots such as Out@GRAD are not Python names
            return self.fn(self._arrays(inputs), given, wanted)
        values = {slot.name: inputs.get(slot.name) for slot in self.inputs}
        result = (
            None if self.random else _folded(self.fn, values, given, self.traits.sizes is not None)
        )
        if result is None:
            result = self.fn(**self._arrays(values), **given)
        if len(self.outputs) == 1:
            return {self.outputs[0].name: result}
        return dict(zip((s.name for s in self.outputs), result, strict=True))

    def _arrays(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Constants as JAX arrays if other inputs are known only when the step runs, since those
        may index them.

        Integers and values that decide a size stay NumPy arrays, so that the op can read them.
        """
        constant = [
            s
            for s, v in values.items()
            if _constant(v) or (type(v) is list and any(map(_constant, v)))
        ]
        if not constant or not any(
            isinstance(x, jax.Array) for x in jax.tree.leaves(list(values.values()))
        ):
            return values
        sizes = self.traits.sizes.slots if self.traits.sizes is not None else ()
        return {
            s: jax.tree.map(_as_array, v) if s in constant and s not in sizes else v
            for s, v in values.items()
        }


def _constant(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind in "fc"


def _as_array(value: Any) -> Any:
    return jnp.asarray(value) if _constant(value) else value


FOLD = 64  # elements: shapes and counters are smaller


def _folded(
    fn: Callable[..., Any], values: Mapping[str, Any], attrs: Mapping[str, Any], sized: bool
) -> Any:
    """The result as NumPy arrays if all inputs are small NumPy integers, else None. sized: the
    inputs may decide its size.

    Arithmetic on shapes thus stays known while a step is traced, and may decide a later shape.
    """
    leaves = jax.tree.leaves(values)
    if not leaves or not all(
        isinstance(x, np.ndarray) and x.dtype.kind in "biu" and x.size <= FOLD for x in leaves
    ):
        return None
    if any(
        export.is_symbolic_dim(n)
        for held in attrs.values()
        if isinstance(held, tuple)
        for n in held
    ):
        return None  # only a function of the step's arguments has such sizes
    if sized and any(
        math.prod(x.shape) > FOLD for x in jax.tree.leaves(_shapes(fn, values, attrs))
    ):
        return None  # before anything large is made
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        result = fn(**values, **attrs)
    if any(x.size > FOLD or _is_key(x) for x in jax.tree.leaves(result)):
        return None
    return jax.tree.map(np.asarray, result)


def _is_key(value: Any) -> bool:
    return jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)


def _shapes(fn: Callable[..., Any], values: Mapping[str, Any], attrs: Mapping[str, Any]) -> Any:
    with jax.enable_x64(True):
        return jax.eval_shape(lambda: jax.tree.map(jnp.asarray, fn(**values, **attrs)))


def canonical(definition: OpDef, name: str, value: Any) -> Any:
    """An attribute value in the form of descs: frozen, floats rounded to float32 as Paddle stores
    them.

    Raises UnknownOpError for an attribute that the op does not have, ArgumentError for a value of
    another type.
    """
    kind = definition.attr_type(name)
    if kind is None:
        known = list(definition.attrs)
        raise UnknownOpError(
            f"op '{definition.type}' has no attribute {name!r}{near(name, known)}; it has"
            f" {', '.join(known) or 'none'}"
        )
    try:
        result = converted(kind, value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"attribute {name!r} of op '{definition.type}' is {kind}, which {value!r} is not"
        ) from None
    definition.check_later(name, result)
    return result
