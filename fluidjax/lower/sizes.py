"""Values that decide sizes, and their origins, found by going backwards through the program from
the op that needs them.

XLA's shapes are static, so such a value must be known before a step is compiled. A value that
depends only on constants and shapes is known. One that depends on feeds through ops alone is known
if these feeds are constants of the compilation (ops/fixed.py): a step is then compiled for each of
their values, and the ops between are computed during the trace. A value that depends on a
parameter, a random number or a loop is unknown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ..errors import FluidError, NotOneStep, ShapeError, UnsupportedError
from ..ir import walk
from ..ir.desc import EMPTY, OpDesc, ProgramDesc
from ..ir.text import op_called
from ..ops.concrete import known, refuse_huge
from ..ops.fixed import shown
from ..ops.ragged import Ragged
from ..ops.registry import OpDef, lookup, traits


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a value. feeds: names. ops: the uids of the ops that compute it. obstacle: why
    it does not follow from feeds.
    """

    feeds: tuple[str, ...]
    ops: frozenset[int]
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """An input of an op that decides a size."""

    op: OpDesc
    slot: str
    name: str
    origin: Origin

    @property
    def by_feeds(self) -> bool:
        """Whether it depends on feeds, and otherwise only on values known before the step runs."""
        return bool(self.origin.feeds) and not self.origin.obstacle

    def chosen(self) -> str:
        """Why the op's number of rows is unknown, for a message."""
        why = self.origin.obstacle or f"{self.name!r} follows from no feed"
        return (
            f"{op_called(self.op)} has a number of rows that depends on the data of {self.name!r},"
            f" which no feed determines: {why}"
        )

    def advice_under_jit(self) -> str:
        """The advice for a number of rows hidden by an outer jit, for a message."""
        if not self.by_feeds:
            return self.chosen()
        names = ", ".join(map(repr, self.origin.feeds))
        what = f"{op_called(self.op)} has a number of rows that the feed {names} determines"
        return f"{what}; feed it as a constant of the compilation, fluid.Fixed(array)"

    def refusal(self) -> UnsupportedError:
        """The error for an unknown value."""
        what = f"{op_called(self.op)} makes a size of its input {self.slot}, {self.name!r}"
        if self.by_feeds:
            names = ", ".join(map(repr, self.origin.feeds))
            return UnsupportedError(
                f"{what}, which follows from the feed {names}, but a jit outside hides what that"
                " is; feed it as a constant of the compilation, fluid.Fixed(array), or keep the"
                " array out of the jit's arguments"
            )
        why = self.origin.obstacle or "it is computed from data"
        return NotOneStep(
            f"{what}, but {why}, and sizes must be known before a step is compiled; they may follow"
            " from constants, shapes and feeds"
        )


@dataclass(eq=False)
class Place:
    """The ops of a block, in order, and its position: at which op of which block."""

    desc: ProgramDesc
    ops: Sequence[OpDesc]
    outer: tuple[Place, int] | None = None

    @cached_property
    def _writers(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, op in enumerate(self.ops):
            for name in walk.writes_with_subblocks(self.desc, op) if op.blocks else op.writes:
                found.setdefault(name, []).append(at)
        return found

    def source(self, name: str, at: int) -> tuple[Place, int] | str | None:
        """The op that wrote the value that `name` has before op `at`; None: none did. A text tells
        why it is unknown.
        """
        found = self._writers.get(name)
        if found and (i := bisect_left(found, at)):
            return self, found[i - 1]
        if self.outer is None:
            return None
        return (
            f"{name!r} is overwritten within its block"
            if found
            else self.outer[0].source(name, self.outer[1])
        )

    def everywhere(self) -> Iterator[Place]:
        """This block, and its nested blocks."""
        yield self
        for at, op in enumerate(self.ops):
            for idx in op.blocks:
                yield from Place(self.desc, self.desc.blocks[idx].ops, (self, at)).everywhere()

    def needs(self, feeds: Collection[str]) -> Iterator[Need]:
        """The inputs that decide sizes here."""
        for at, op in enumerate(self.ops):
            decides = traits(op.type).sizes
            for slot, i in decides.needed(op) if decides is not None else ():
                name = op.input(slot)[i]
                if name != EMPTY:
                    yield Need(op, slot, name, self._origin(name, at, feeds))

    def choices(self, feeds: Collection[str]) -> Iterator[Need]:
        """The inputs that decide an op's number of rows (trait `chosen`), if knowing them helps."""
        for at, op in enumerate(self.ops):
            chosen = traits(op.type).chosen
            for slot in chosen.slots if chosen is not None and chosen.exact else ():
                yield from (
                    Need(op, slot, name, self._origin(name, at, feeds)) for name in op.input(slot)
                )

    def counts(self, loops: Collection[int], feeds: Collection[str]) -> Iterator[Need]:
        """The inputs that decide how often these loops run, by uid."""
        for at, op in enumerate(self.ops):
            if op.uid in loops:
                yield from (
                    Need(op, "Condition", name, self._origin(name, at, feeds))
                    for name in op.input("Condition")
                )

    def unpadded(self) -> Iterator[tuple[int, str]]:
        """(uid, sequences) of ops that take lengths with known sequences."""
        for at, op in enumerate(self.ops):
            slot = traits(op.type).lengths
            for name in op.input(slot) if slot is not None else ():
                whose = self._whose(name, at)
                yield from ((op.uid, whose),) if whose else ()

    def _whose(self, name: str, at: int) -> str:
        """The sequences whose lengths a name holds; "" if unknown (origins.py)."""
        while isinstance(source := self.source(name, at), tuple) and source[0] is self:
            at, var = source[1], self.desc.find_var(name)
            op = self.ops[at]
            what = traits(op.type)
            if what.lengths is not None and name in op.output(what.lengths):
                return op.input("X")[0]
            if (
                what.carries is None
                or name not in op.output("Out")
                or var is None
                or var.dtype not in ("int32", "int64")
            ):
                return ""
            name = op.input(what.carries)[0]
        return ""

    def _origin(self, name: str, at: int, feeds: Collection[str]) -> Origin:
        fed: dict[str, None] = {}
        ops: set[int] = set()
        pending: list[tuple[Place, str, int]] = [(self, name, at)]
        while pending:
            place, name, at = pending.pop()
            source = place.source(name, at)
            obstacle = source if isinstance(source, str) else ""
            if source is None:
                obstacle = _given(self.desc, name, feeds)
                fed.setdefault(name)
            elif not obstacle:
                assert not isinstance(source, str)
                place, at = source
                op = place.ops[at]
                if op.uid in ops:
                    continue
                ops.add(op.uid)
                obstacle = _computed(op)
                skipped = traits(op.type).shape_of
                pending += [
                    (place, n, at)
                    for slot, names in op.inputs.items()
                    if slot not in skipped
                    for n in names
                    if n != EMPTY
                ]
            if obstacle:
                return Origin((), frozenset(), obstacle)
        return Origin(tuple(sorted(fed)), frozenset(ops))


def _given(desc: ProgramDesc, name: str, feeds: Collection[str]) -> str:
    """Why a name that no op writes is unknown beforehand; "" for a feed that can be a constant."""
    var = desc.find_var(name)
    if name not in feeds:
        return (
            f"{name!r} is part of the state"
            if var is not None and var.persistable
            else f"nothing computes or feeds {name!r}"
        )
    return f"the feed {name!r} is ragged" if var is not None and var.lod_level else ""


def _computed(op: OpDesc) -> str:
    """Why the results of an op are unknown beforehand, even if its inputs are known."""
    definition = lookup(op.type)
    if definition.random:
        return f"{op_called(op)} samples it"
    if definition.fn is None:
        return (
            f"{op_called(op)} computes it in a block" if op.blocks else f"{op_called(op)} makes it"
        )
    return f"{op_called(op)} computes it from all ranks" if definition.traits.ranks.together else ""


@dataclass(frozen=True, eq=False)
class SizeNeeds:
    """All values of a program that decide sizes. ops: those of block 0. feeds: its inputs besides
    state.

    exact: data that decide an op's number of rows are included, because an op must know that
    number. counted: the uids of loops whose number of iterations is included.
    """

    desc: ProgramDesc
    ops: Sequence[OpDesc]
    feeds: Collection[str]
    exact: bool = False
    counted: frozenset[int] = frozenset()

    @classmethod
    def of_program(cls, desc: ProgramDesc) -> SizeNeeds:
        """The values for all ops of a program."""
        return cls(desc, desc.blocks[0].ops, walk.free_names(desc))

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return tuple(Place(self.desc, self.ops).everywhere())

    @cached_property
    def all(self) -> tuple[Need, ...]:
        needs = [need for place in self._places for need in place.needs(self.feeds)]
        for place in self._places if self.counted else ():
            needs += place.counts(self.counted, self.feeds)
        return (*needs, *(self.choices if self.exact else ()))

    @cached_property
    def choices(self) -> tuple[Need, ...]:
        """The data that decide ops' numbers of rows."""
        return tuple(need for place in self._places for need in place.choices(self.feeds))

    @cached_property
    def unpadded(self) -> Mapping[int, str]:
        """The sequences whose LoD an op's rows get again, by the op's uid."""
        return dict(found for place in self._places for found in place.unpadded())

    def every(self) -> Iterator[tuple[int, OpDesc]]:
        """The ops, each with the index of its block; then those of nested blocks."""
        yield from ((0, op) for op in self.ops)
        for idx in walk.nested(self.desc, [i for op in self.ops for i in op.blocks]):
            yield from ((idx, op) for op in self.desc.blocks[idx].ops)

    @cached_property
    def fixed(self) -> frozenset[str]:
        """The feeds for whose values a step is compiled."""
        return frozenset(n for need in self.all if need.by_feeds for n in need.origin.feeds)

    @cached_property
    def folded(self) -> frozenset[int]:
        """The uids of ops that are computed while a step is traced, if their inputs are known."""
        return frozenset(
            uid for need in self.all if not need.origin.obstacle for uid in need.origin.ops
        )

    @cached_property
    def _of(self) -> Mapping[int, Sequence[Need]]:
        found: dict[int, list[Need]] = {}
        for need in self.all:
            found.setdefault(need.op.uid, []).append(need)
        return found

    def of(self, op: OpDesc) -> Sequence[Need]:
        """The values for one op."""
        return self._of.get(op.uid, ())


def folded(
    definition: OpDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The results as NumPy arrays, or None if an input is known only when the step runs."""
    arrays = jax.tree.map(known, inputs)
    if len(jax.tree.leaves(arrays)) < len(jax.tree.leaves(inputs)):
        return None
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        found = {
            slot: jax.tree.map(np.asarray, value)
            for slot, value in definition(arrays, attrs).items()
        }
    if (
        definition.type == "cast"
        and arrays["X"].dtype.kind in "iu"
        and found["Out"].dtype.kind in "iu"
    ):
        if (arrays["X"] != found["Out"]).any():
            raise ShapeError(
                f"op 'cast' makes {found['Out'].dtype} of the size {arrays['X'].ravel()[0]}, which"
                " it does not hold"
            )
    return found


def decided(op: OpDesc, needs: Sequence[Need], inputs: Mapping[str, Any]) -> str:
    """A description of the op's sizes from feeds. Raises UnsupportedError for an unknown value."""
    found: dict[str, None] = {}
    for need in needs:
        value = inputs.get(need.slot)
        value = value[op.input(need.slot).index(need.name)] if isinstance(value, list) else value
        if isinstance(value, Ragged):
            continue  # an op that takes a LoD in this slot
        array = known(value)
        if array is None:
            raise need.refusal()
        if need.by_feeds:
            found[
                f"{need.slot} is {shown(array)} and follows from the feed"
                f" {', '.join(map(repr, need.origin.feeds))}"
            ] = None
    return "; ".join(found)


def checked(
    definition: OpDef,
    reason: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
    key: Any,
    wanted: Any,
) -> None:
    """Raises ShapeError, before the run, for sizes from feeds that the op refuses, or that exceed
    this machine's memory.
    """
    try:
        with jax.enable_x64(True):
            shapes = jax.eval_shape(
                lambda: jax.tree.map(jax.numpy.asarray, definition(inputs, attrs, key, wanted))
            )
        for leaf in jax.tree.leaves(shapes):
            refuse_huge(definition.type, leaf.shape, leaf.dtype)
    except FluidError as error:
        raise type(error)(f"{error}; {reason}") from None
    except Exception as error:  # an error of JAX or NumPy: its first line has the reason
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ShapeError(
            f"op '{definition.type}' cannot make such a size: {first}; {reason}"
        ) from error


def refuse_fed_sizes(needs: SizeNeeds, who: str) -> None:
    """Raises UnsupportedError if feeds decide sizes, for callers that run a program without their
    values.
    """
    for name in sorted(needs.fixed):
        raise UnsupportedError(
            f"{who} knows feeds by their shapes alone, but the value of {name!r} decides a size of"
            f" {first_use(needs.all, name)}; Executor.run compiles a step for each value"
        )


def first_use(needs: Iterable[Need], feed: str) -> str:
    """The op that uses a feed as a size, for a message."""
    return next((op_called(need.op) for need in needs if feed in need.origin.feeds), "")
