"""One op of JAX's to convert: the ops that compute its operands, and the ops that replace it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...base.dtypes import enum_of
from ...ir.desc import EMPTY, BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ir.dims import bare
from ...lower.open import open_attrs
from ...lower.step import Step
from ...ops.build import OpBuilder
from ...ops.infer import Spec, infer
from ...ops.registry import lookup
from ..match import Refused
from .sizes import computed, number

SAME = frozenset(
    {"jax.stop_gradient", "jax.copy", "jax.optimization_barrier", "jax.sharding_constraint"}
)
_SPREADING = ("broadcast_in_dim", "reshape", "expand_dims", "squeeze")
KNOWN = 4096  # largest number of elements of a value computed during the conversion


def _refuse(block: BlockDesc, results: Sequence[str]) -> BlockDesc:
    raise Refused("it is in a block of an op that has blocks")


@dataclass
class Source:
    """The program being converted, and the op that makes each value of block 0."""

    desc: ProgramDesc
    names: set[str] = field(default_factory=set)
    # ops after conversion, appended to those of `desc`
    blocks: list[BlockDesc] = field(default_factory=list)
    raise_block: Callable[[BlockDesc, Sequence[str]], BlockDesc] = field(default=_refuse)

    def __post_init__(self) -> None:
        self.vars: dict[str, VarDesc] = dict(self.desc.blocks[0].vars)
        self.names |= set(self.vars)
        written: dict[str, int] = {}
        for op in self.desc.blocks[0].ops:
            for name in op.writes:
                written[name] = written.get(name, 0) + 1
        self.makers = {
            n: op
            for op in self.desc.blocks[0].ops
            for n in op.writes
            if written[n] == 1 and not self.vars[n].persistable
        }
        self.changed = {n for n in written if written[n] > 1 or self.vars[n].persistable}
        # numbers have the shape [] in JAX's ops, and [1] in Fluid's
        plain = all(op.type.startswith("jax.") for op in self.desc.blocks[0].ops if op.blocks)
        self.numbers = {n for n in self.makers if plain and self.vars[n].shape == ()}
        self.vars.update({n: replace(self.vars[n], shape=(1,)) for n in self.numbers})
        self.given = [n for n, v in self.vars.items() if n not in written and not v.persistable]
        self._values: dict[str, np.ndarray | None] = {}
        self._stored: dict[str, bool] = {}

    def value(self, name: str) -> np.ndarray | None:
        """A value, if it is small and depends only on constants of the program."""
        if name not in self._values:
            self._values[name] = None
            self._values[name] = self._computed(name)
        return self._values[name]

    def _computed(self, name: str) -> np.ndarray | None:
        op, shape = self.makers.get(name), self.vars[name].shape
        small = shape is not None and min(shape, default=0) >= 0 and math.prod(shape) <= KNOWN
        if op is None or not small or op.blocks or "random" in op.type or open_attrs(op):
            return None
        if any(self.value(n) is None for n in op.reads):
            return None
        given = {n: self.value(n) for n in op.reads}
        return evaluate(self.desc, [op], given, [name])[0]

    def stored(self, name: str) -> bool:
        """Whether a value depends only on persistable variables that the program does not change."""
        if name not in self._stored:
            op = self.makers.get(name)
            self._stored[name] = (
                self.vars[name].persistable and name not in self.changed
                if op is None
                else not (op.blocks or "random" in op.type or open_attrs(op))
                and all(map(self.stored, op.reads))
            )
        return self._stored[name]

    def fresh(self, base: str) -> str:
        name, k = base, 0
        while name in self.names:
            k += 1
            name = f"{base}.{k}"
        self.names.add(name)
        return name


def evaluate(
    desc: ProgramDesc, ops: Sequence[OpDesc], given: Mapping[str, Any], names: Sequence[str]
) -> list[Any]:
    """Values computed by these ops from given ones."""
    vars = {
        n: replace(v, persistable=False, is_data=n in given, need_check_feed=False)
        for n, v in desc.blocks[0].vars.items()
    }
    for n in given:
        vars.setdefault(n, VarDesc(n, tuple(given[n].shape), given[n].dtype.name, is_data=True))
    block = BlockDesc(FrozenMap(vars), tuple(ops))
    rest = desc.blocks[1:] if any(op.blocks for op in ops) else ()
    step = Step(replace(desc, blocks=(block, *rest)), tuple(names))
    return list(step({}, {n: given[n] for n in step.feeds})[1])


@dataclass
class Place:
    """An op, and the ops that replace it; they write its needed outputs. For most ops the last one
    writes the only output.
    """

    source: Source
    op: OpDesc
    builder: OpBuilder
    needed: tuple[str, ...]
    ops: list[OpDesc] = field(default_factory=list)
    made: dict[str, VarDesc] = field(default_factory=dict)
    blocks: list[BlockDesc] = field(default_factory=list)

    # -- what stands there ---------------------------------------------------------------------

    @cached_property
    def out(self) -> VarDesc:
        return self.source.vars[self.needed[0]]

    def var(self, name: str) -> VarDesc:
        return self.made.get(name) or self.source.vars[name]

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self.var(name).shape
        assert shape is not None
        return shape

    def dims(self, name: str) -> tuple[Any, ...]:
        """The shape, with names for open sizes."""
        var = self.var(name)
        texts = map(bare, var.dims or ("",) * 99)
        return tuple(d or n for n, d in zip(var.shape or (), texts, strict=False))

    def maker(self, name: str, *kinds: str) -> OpDesc:
        """The op of one of these types that computes a value, through ops that pass it on. Raises
        Refused.
        """
        name = self.through(name)
        op = self.source.makers.get(name)
        if op is None or op.type.removeprefix("jax.") not in kinds:
            raise Refused(f"{name!r} is not computed by one of {', '.join(kinds)}")
        return op

    def through(self, name: str) -> str:
        """The source of a value, through copies and casts to the same type."""
        while (op := self.source.makers.get(name)) is not None and (
            (op.type in SAME and len(list(op.reads)) == 1)
            or (
                op.type == "jax.convert_element_type"
                and self.var(op.input("X")[0]).dtype == self.var(name).dtype
            )
        ):
            name = op.input("X")[0]
        return name

    def scalar(self, name: str) -> float | None:
        """The single number in a value, None if it is unknown or there are several."""
        spread = self.spread(name)
        value = self.source.value(spread[0])
        if value is None:
            op = self.source.makers.get(spread[0])
            if op is not None and op.type == "jax.full":
                return op.attrs["value"]
            return None
        if value.size and (value == value.ravel()[0]).all():
            return value.ravel()[0].item()
        return None

    def spread(self, name: str) -> tuple[str, tuple[int, ...]]:
        """(source, axes): a value is `source` with its axes of sizes other than 1 at these axes,
        repeated along the others.
        """
        axes = {d: d for d in range(len(self.shape(name)))}  # axis of `name` -> axis of the value
        while True:
            name = self.through(name)
            op = self.source.makers.get(name)
            if op is None or op.type.removeprefix("jax.") not in _SPREADING:
                break
            inner = op.input("X")[0]
            to = (
                op.attrs["broadcast_dimensions"]
                if op.type == "jax.broadcast_in_dim"
                else _placed(self.dims(inner), self.dims(name))
            )
            if to is None:
                break
            sizes = self.dims(inner)
            axes = {i: axes[t] for i, t in enumerate(to) if sizes[i] != 1}
            name = inner
        return name, tuple(axes[i] for i, n in enumerate(self.dims(name)) if n != 1)

    def literal(self, at: OpDesc, slot: str) -> float | None:
        """The number of an operand of a binary op, None if it is not a number."""
        attr = at.attrs.get(slot.lower())
        if attr is not None:
            return attr
        names = at.input(slot)
        return self.scalar(names[0]) if names else None

    # -- what is written -----------------------------------------------------------------------

    def add(
        self, kind: str, ins: Mapping[str, str | Sequence[str]], slot: str = "Out", /,
        last: bool = False, **attrs: Any,
    ) -> str:  # fmt: skip
        """Append an op; returns the name of its output. last: it is the output of the replaced op."""
        held = {s: (n,) if isinstance(n, str) else tuple(n) for s, n in ins.items()}
        if kind != "reshape2":  # a number that is fed or persistable
            held = {
                s: tuple(n if self.shape(n) else self.reshaped(n, (1,)) for n in names)
                for s, names in held.items()
            }
        definition = lookup(kind)
        made = self.builder.op(kind, held, {slot: "?"}, None, self.op, **attrs)
        many = definition.many_inputs
        specs = {
            s: tuple(self._spec(n) for n in names) if s in many else self._spec(names[0])
            for s, names in held.items()
        }
        found = infer(definition, specs, made.attrs)
        spec = found[slot][0] if isinstance(found[slot], tuple) else found[slot]
        if last:
            name = self.out.name
            fits = len(spec.shape) == len(self.out.shape or ()) and all(
                a == b or a == -1 or b == -1
                for a, b in zip(spec.shape, self.out.shape or (), strict=True)
            )
            if not fits or spec.dtype != self.out.dtype:
                raise Refused(
                    f"'{kind}' would give {spec.dtype}{list(spec.shape)}, not"
                    f" {self.out.dtype}{list(self.out.shape or ())}"
                )
        else:
            name = self.source.fresh(f"{self.out.name}.{kind}")
            self.made[name] = VarDesc(
                name, tuple(spec.shape), spec.dtype, stop_gradient=self.out.stop_gradient
            )
        outs: dict[str, tuple[str, ...]] = {slot: (name,)}
        for other in definition.outputs:
            if other.name == slot or other.optional or other.many:
                continue
            same = other.name.removesuffix("Out")
            if same != other.name and same in held:  # the running mean, unchanged
                outs[other.name] = held[same]
                continue
            side = self.source.fresh(f"{name}.{other.name.lower()}")
            declared = found.get(other.name)
            declared = (
                Spec((0, *self.shape(held["X"][0])), spec.dtype) if declared is None else declared
            )
            self.made[side] = VarDesc(
                side, tuple(declared.shape), declared.dtype, stop_gradient=True
            )
            outs[other.name] = (side,)
        scope = self.op.attrs.get("op_namescope")
        hints = {"op_namescope": scope} if scope else {}
        self.ops.append(replace(made, outputs=FrozenMap(outs), attrs=made.attrs.set(**hints)))
        return name

    def _spec(self, name: str) -> Spec:
        var = self.var(name)
        assert var.shape is not None and var.dtype is not None
        return Spec(var.shape, var.dtype)

    def reshaped(self, name: str, sizes: Sequence[Any], last: bool = False) -> str:
        """A value in this shape."""
        if tuple(sizes) == self.dims(name) and not last:
            return name
        own = self.dims(name)
        wanted: list[int] = []
        for at, n in enumerate(sizes):
            # 0: the existing size
            if isinstance(n, int) and n >= 0:
                wanted.append(n)
            else:
                wanted.append(0 if at < len(own) and own[at] == n else -1)
        beside = {}
        unknown = [at for at, n in enumerate(wanted) if n == -1]
        if len(unknown) > 1:  # reshape2 infers only one
            fed = {text for _, _, text in self.fed}
            inferred = next((at for at in unknown if sizes[at] not in fed), unknown[-1])
            each = (
                number(wanted[at], self.add).name
                if at == inferred or n != -1
                else self.size(sizes[at])
                for at, n in enumerate(wanted)
            )
            beside["ShapeTensor"] = tuple(each)
        return self.sized(self.moved(name, "reshape2", last, beside, shape=wanted), sizes)

    @property
    def fed(self) -> list[tuple[str, int, str]]:
        """The open sizes of what is fed, or in a block of what it is given: variable, axis, and
        text.
        """
        return [
            (name, axis, bare(text))
            for name in self.source.given
            for axis, text in enumerate(self.source.vars[name].dims)
            if text
        ]

    def size(self, text: str) -> str:
        """An open size as a value, int32 [1]. Raises Refused if what is fed does not give it."""
        return computed(text, self.fed, self.add).name

    def sized(self, name: str, sizes: Sequence[Any]) -> str:
        """A new value, with its known sizes and the names of its open ones."""
        if name in self.made:
            known = (
                m if n == -1 and isinstance(m, int) else n
                for n, m in zip(self.shape(name), sizes, strict=True)
            )
            dims = tuple(n if isinstance(n, str) else "" for n in sizes)
            dims = dims if any(dims) else ()
            self.made[name] = replace(self.made[name], shape=tuple(known), dims=dims)
        return name

    def moved(
        self, name: str, kind: str, last: bool = False,
        beside: Mapping[str, Sequence[str]] = FrozenMap(), /, **attrs: Any,
    ) -> str:  # fmt: skip
        """A value with its elements moved; Paddle cannot move bools, so these are converted to
        numbers. beside: further inputs.
        """
        if self.var(name).dtype != "bool":
            return self.add(kind, {"X": name, **beside}, last=last, **attrs)
        codes = enum_of("bool"), enum_of("int32")
        as_int = self.add("cast", {"X": name}, in_dtype=codes[0], out_dtype=codes[1])
        there = self.add(kind, {"X": as_int, **beside}, **attrs)
        return self.add("cast", {"X": there}, last=last, in_dtype=codes[1], out_dtype=codes[0])

    def finish(self, name: str) -> None:
        """Make the last op write the output, or pass this value on."""
        if not self.ops or name not in self.made:
            self.add("assign", {"X": name}, last=True)
            return
        at = next(i for i, op in enumerate(self.ops) if name in op.writes)
        op, var = self.ops[at], self.made.pop(name)
        if len(var.shape or ()) != len(self.out.shape or ()) or var.dtype != self.out.dtype:
            raise Refused(f"its replacement has the shape {list(var.shape or ())}")
        outs = {
            s: tuple(self.out.name if n == name else n for n in names)
            for s, names in op.outputs.items()
        }
        self.ops[at] = replace(op, outputs=FrozenMap(outs))

    def beside(self, name: str, dtype: str | None = None) -> str:
        """A variable like an output, for a result that nothing needs or that has another type."""
        var, found = self.source.vars.get(name), self.source.fresh(f"{self.out.name}.beside")
        if var is None:
            raise Refused("a result that nothing reads has no type")
        self.made[found] = replace(var, name=found, dtype=dtype or var.dtype)
        return found

    def append(
        self, kind: str, ins: Mapping[str, Any], outs: Mapping[str, Any], **attrs: Any
    ) -> None:
        """Append an op whose outputs already have names and declarations."""
        self.ops.append(self.builder.op(kind, ins, outs, None, self.op, **attrs))

    @property
    def reads(self) -> list[str]:
        """The parts of the old program that the new ops need."""
        found: dict[str, None] = {}
        own: set[str] = set()
        for op in self.ops:
            found.update((n, None) for n in op.reads if n not in own and n != EMPTY)
            own.update(op.writes)
        return list(found)


def _placed(inner: Sequence[Any], outer: Sequence[Any]) -> tuple[int, ...] | None:
    """The new positions of a value's axes after a reshape that only adds or removes axes of size 1;
    removed ones map to the next axis.
    """
    found, at = [], 0
    for n in inner:
        if n == 1:
            found.append(min(at, len(outer) - 1))
            continue
        while at < len(outer) and outer[at] == 1:
            at += 1
        if at == len(outer) or outer[at] != n:
            return None
        found.append(at)
        at += 1
    rest = outer[at:] if any(n != 1 for n in inner) else [n for n in outer if n != 1]
    return tuple(found) if outer and all(n == 1 for n in rest) else None
