"""Patterns over versioned names: the op that computed an op's input, and its other readers.

A name that is written again is another value (walk.versions), so a pattern never matches across a
write. A match that cannot be rewritten raises :class:`Refused` with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ir.walk import Version
from ..ops.registry import traits


def written_back(op: OpDesc) -> set[str]:
    """Names that an op writes without changing them: the running statistics of a batch_norm in test
    mode.
    """
    rule = traits(op.type).unchanged
    if rule is None or not rule.when(op.attrs):
        return set()
    return {
        n
        for out, given in rule.outs.items()
        for n in op.output(out)
        if op.output(out) == op.input(given)
    }


class Refused(Exception):
    """A match that cannot be rewritten, with the reason. The pass catches and notes it."""


@dataclass(frozen=True)
class Values:
    """The values of block 0, by version: computed once for a program, so that every query is a
    look-up.
    """

    desc: ProgramDesc
    keep: frozenset[str]

    @property
    def ops(self) -> tuple[OpDesc, ...]:
        return self.desc.blocks[0].ops

    @cached_property
    def _versions(self) -> list[walk.Versions]:
        return walk.versions(self.desc.blocks[0], self.desc)

    @cached_property
    def _made(self) -> dict[Version, int]:
        return {v: at for at, versions in enumerate(self._versions) for v in versions.writes}

    @cached_property
    def _read(self) -> dict[Version, list[int]]:
        found: dict[Version, list[int]] = {}
        for at, versions in enumerate(self._versions):
            for v in dict.fromkeys(versions.reads):
                found.setdefault(v, []).append(at)
        return found

    @cached_property
    def _last(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for versions in self._versions:
            last.update(versions.writes)
        return last

    def taken(self, at: int, slot: str) -> Version:
        """The value that op `at` reads as the first variable of an input slot. Raises Refused if it
        has none.
        """
        names = self.ops[at].input(slot)
        if not names:
            raise Refused(f"it has no input {slot}")
        return next(v for v in self._versions[at].reads if v[0] == names[0])

    def given(self, at: int, slot: str) -> Version:
        """The value that op `at` writes as the first variable of an output slot. Raises Refused if
        it has none.
        """
        names = self.ops[at].output(slot)
        if not names:
            raise Refused(f"it has no output {slot}")
        return next(v for v in self._versions[at].writes if v[0] == names[0])

    def maker(self, value: Version) -> int | None:
        """The position of the op that computed a value; None for feeds and state."""
        return self._made.get(value)

    def readers(self, value: Version) -> list[int]:
        """Positions of the ops that read a value, in order."""
        return self._read.get(value, [])

    def outlives(self, value: Version) -> bool:
        """Whether a value is used after the program's end: kept, or the final value of a
        persistable variable.
        """
        name, k = value
        var = self.desc.blocks[0].vars.get(name)
        last = self._last.get(name, 0) == k
        return last and (name in self.keep or (var is not None and var.persistable))

    @cached_property
    def _changed(self) -> set[str]:
        """Names whose value some op changes."""
        ops = zip(self.ops, self._versions, strict=True)
        return {
            name
            for op, versions in ops
            for name, _ in versions.writes
            if name not in written_back(op)
        }

    def constant(self, name: str) -> bool:
        """Whether a name is a persistable variable whose value no op of the program changes."""
        var = self.desc.blocks[0].vars.get(name)
        return var is not None and var.persistable and name not in self._changed

    def only_read_by(self, value: Version, at: int) -> None:
        """Raises Refused if anything except op `at` uses a value."""
        if self.outlives(value):
            raise Refused(f"{value[0]!r} is fetched or persistable, so it must keep its value")
        other = next((r for r in self.readers(value) if r != at), None)
        if other is not None:
            op = self.ops[other]
            where = f" ({op.loc})" if op.loc else ""
            raise Refused(f"{value[0]!r} has another reader: op '{op.type}'{where}")


@dataclass(frozen=True)
class Link:
    """One op type of a chain: the slots of its input value and of its result."""

    takes: str
    gives: str


def chain(
    values: Values, at: int, through: Mapping[str, Link], ends: Mapping[str, Link]
) -> list[int]:
    """Positions of the chain of ops that leads to the op at `at`: first one of `ends`, then some of
    `through`, then `at`, which is also one of `through`.

    Raises Refused if the chain does not begin with one of `ends`.
    """
    found = [at]
    while True:
        op = values.ops[found[0]]
        value = values.taken(found[0], through[op.type].takes)
        before = values.maker(value)
        if before is None:
            raise Refused(
                f"its input {value[0]!r} is fed or stored, not computed by one of {', '.join(ends)}"
            )
        maker = values.ops[before]
        item = ends.get(maker.type) or through.get(maker.type)
        if item is None or value[0] not in maker.output(item.gives):
            raise Refused(
                f"its input {value[0]!r} comes from op '{maker.type}', not from one of"
                f" {', '.join(ends)}"
            )
        found.insert(0, before)
        if maker.type in ends:
            return found
