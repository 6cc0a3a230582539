"""The course of a loop, as far as it is known before it runs: a bound on its iterations, and the
array entries that it accesses.

The ops that the condition and the array indices depend on are evaluated on NumPy integers,
iteration by iteration, from the values known while the step is traced. Unknown values stay unknown:
an unknown condition counts as true, so the count is then a bound. ``limit`` gives an upper bound
for an unknown value (max_sequence_len of padded sequences).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import EnforceNotMet, NotOneStep
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from .control_interface import Call, Env
from .endless import decided_outside
from .registry import lookup
from .tensor_array import Listed, TensorArray, is_array

# iterations that are evaluated; a longer loop counts as unknown
MOST = 100_000
# after so many iterations a counter's pace shows whether it reaches its bound within MOST
TRIED = 256
SMALL = 64

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "less_than": operator.lt, "less_equal": operator.le, "greater_than": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


LIMIT = "@LIMIT@"


def limit(name: str) -> str:
    """The environment's key for the largest possible value of an unknown integer."""
    return LIMIT + name


def counters(desc: ProgramDesc, op: OpDesc) -> set[str]:
    """The names that a loop's block compares counters with and does not write."""
    written = set(walk.written_outside(desc, op))
    below = [o for idx in op.blocks for o in desc.blocks[idx].ops if o.type in _COMPARE]
    return {
        n
        for o in below
        for n in o.reads
        if n not in written and not any(n in p.writes for p in below)
    }


@dataclass
class Course:
    """count: the number of iterations, exact if `exact`, else a bound; None: unknown. values: the
    known values after the last iteration. written: the entries of each array that are written; None
    if unknown.
    """

    count: int | None = None
    exact: bool = True
    values: dict[str, np.ndarray] = field(default_factory=dict)
    written: dict[str, set[int] | None] = field(default_factory=dict)


def foresee(call: Call, idx: int, condition: str) -> Course:
    """The course of the loop whose block is `idx`. Raises EnforceNotMet if it reads an entry
    that was not written.
    """
    return Follow(call, idx, condition).course()


def small(value: Any) -> bool:
    """Whether a value is known while tracing, such as a counter."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biu" and value.size <= SMALL


def unknown_entry(op: OpDesc) -> NotOneStep:
    """The error for an op on an array entry."""
    return NotOneStep(
        f"op '{op.type}' ({op.loc}) takes an entry whose number, {op.input('I')[0]!r}, is known"
        " only when the step runs; compute it from constants, or in a loop from its counter"
    )


def _flat(desc: ProgramDesc, idx: int) -> Iterator[OpDesc]:
    for op in desc.blocks[idx].ops:
        yield op
        for below in op.blocks:
            yield from _flat(desc, below)


class Follow:
    def __init__(self, call: Call, idx: int, condition: str) -> None:
        self.call, self.desc, self.env, self.idx, self.condition = (
            call,
            call.desc,
            call.env,
            idx,
            condition,
        )
        self.inside = list(_flat(call.desc, idx))
        self.changed = {n for op in self.inside for n in op.writes}
        self.steps = self._relevant()
        names = {n for op in self.inside for n in op.reads} | {condition}
        self.known: dict[str, np.ndarray] = {
            n: call.env[n] for n in names if small(call.env.get(n))
        }
        self.found = Course()

    def _relevant(self) -> list[OpDesc]:
        """The ops of the block (not of nested blocks) that the condition or an index depends on,
        and those on arrays.
        """
        needed = {
            self.condition,
            *(n for op in self.inside if _on_array(op) for n in op.input("I")),
        }
        size = -1
        while size < len(needed):  # a value may come from the iteration before
            size = len(needed)
            for op in self.inside:
                if not needed.isdisjoint(op.writes):
                    needed.update(op.reads)
        return [
            op
            for op in self.desc.blocks[self.idx].ops
            if op.blocks or _on_array(op) or not needed.isdisjoint(op.writes)
        ]

    def course(self) -> Course:
        found, begun = self.found, {}
        for count in range(MOST):
            going = self.known.get(self.condition)
            if going is None:
                found.exact = False
            elif not going.reshape(-1)[0]:
                found.count, found.values = count, self.known
                return found
            if (
                count == 1
                and going is not None
                and decided_outside(self.desc.blocks[self.idx].ops, self.condition) is not None
            ):
                raise EnforceNotMet(
                    f"op 'while' ({self.call.op.loc}) tests {self.condition!r}, but its block"
                    " changes nothing that this depends on, so it would never end; count there, for"
                    " instance by layers.increment(i)"
                )
            if count == 1:
                begun = self._distances()
            if count == TRIED and self._is_far(begun):
                break
            for op in self.steps:
                self.step(op, count)
            if going is None and count and not self._may_end(self.condition):
                break
        found.exact = False
        return found

    def _distances(self) -> dict[int, float]:
        """How far apart the sides of each comparison of known numbers are, by the op's uid."""
        found = {}
        for op in (op for op in self.steps if op.type in _COMPARE):
            sides = [self.known.get(op.input(slot)[0]) for slot in ("X", "Y")]
            if all(v is not None and v.size == 1 for v in sides):
                x, y = (float(v.reshape(-1)[0]) for v in sides if v is not None)
                found[op.uid] = abs(x - y)
        return found

    def _is_far(self, begun: Mapping[int, float]) -> bool:
        """Whether no comparison's sides meet within MOST iterations at their pace since iteration
        1, where they were `begun` apart.
        """
        left = self._distances()
        return bool(left) and all(
            distance > MOST * abs(begun.get(uid, distance) - distance) / (TRIED - 1)
            for uid, distance in left.items()
        )

    def _may_end(self, name: str) -> bool:
        """Whether a condition may come to be known as false."""
        made = [op for op in self.steps if name in op.writes]
        if name in self.known or not made:
            return name in self.known
        op = made[-1]
        sides = [n for slot in ("X", "Y") for n in op.input(slot)]
        if op.type in _COMPARE:
            return all(
                (n in self.known and self.known[n].size == 1) or limit(n) in self.env for n in sides
            )
        if op.type == "logical_or":
            return all(map(self._may_end, sides))
        return op.type in ("logical_and", "assign") and any(
            n != name and self._may_end(n) for n in sides
        )

    def step(self, op: OpDesc, count: int, sure: bool = True) -> None:
        if op.blocks:
            self._step_over(op, count)
        elif op.type == "write_to_array":
            self._mark(op, op.output("Out")[0], self._index(op))
        elif op.type == "read_from_array":
            self._check(op, count)
        else:
            self._compute(op)

    def _step_over(self, op: OpDesc, count: int) -> None:
        """An op that holds blocks: its outputs are unknown. Array entries with its own indices are
        not followed.
        """
        below = [o for idx in op.blocks for o in _flat(self.desc, idx)]
        changed = {n for o in below for n in o.writes}
        for o in below:
            if o.type == "write_to_array":
                self._mark(
                    o, o.output("Out")[0], None if o.input("I")[0] in changed else self._index(o)
                )
            elif o.type == "read_from_array" and o.input("I")[0] not in changed:
                self._check(o, count)
        for name in walk.written_outside(self.desc, op):
            self.known.pop(name, None)

    def _index(self, op: OpDesc) -> int | None:
        value = self.known.get(op.input("I")[0])
        return None if value is None or value.size != 1 else int(value.reshape(-1)[0])

    def _mark(self, op: OpDesc, array: str, index: int | None) -> None:
        marks = self.found.written.setdefault(array, set())
        if index is None:
            self.found.written[array] = None
        elif index < 0:
            raise EnforceNotMet(
                f"op '{op.type}' ({op.loc}) writes entry {index} of {array!r}; entries count from 0"
            )
        elif marks is not None:
            marks.add(index)

    def _check(self, op: OpDesc, count: int) -> None:
        (array,), index = op.input("X"), self._index(op)
        marks, before = self.found.written.get(array, set()), self.env.get(array, Listed())
        if not self.found.exact:  # the iteration may not take place; the step looks
            return
        if (
            index is None
            or marks is None
            or index in marks
            or not is_array(before)
            or "@GRAD" in array
        ):
            return
        there = entries(before)
        if there is not None and index not in there:
            length = max([*there, *marks, -1]) + 1
            has = f"which has {length} entries then" if length else "which nothing has written"
            raise EnforceNotMet(
                f"op '{op.type}' ({op.loc}) reads entry {index} of {array!r} in iteration {count},"
                f" {has}"
            )

    def _compute(self, op: OpDesc) -> None:
        result = self._folded(op)
        for name in op.writes:
            self.known.pop(name, None)
        self.known.update(result)

    def _folded(self, op: OpDesc) -> Mapping[str, np.ndarray]:
        """The outputs that are known, by name."""
        outs = op.output("Out")
        if op.type in _COMPARE or op.type.startswith("logical_"):
            value = self._truth(op)
            return {} if value is None else {outs[0]: np.array([value])}
        if any(n not in self.known for n in op.reads):
            return {}
        if op.type == "lod_array_length":
            return {}
        if op.type == "increment":
            x = self.known[op.input("X")[0]]
            return {outs[0]: x + x.dtype.type(op.attrs.get("step", 1.0))}
        return self._run(op)

    def _truth(self, op: OpDesc) -> bool | None:
        """Comparisons and logic of single elements, for which one known side may suffice."""
        x, y = (self.known.get(op.input(s)[0]) if op.input(s) else None for s in ("X", "Y"))
        if any(v is not None and v.size != 1 for v in (x, y)):
            return None
        a, b = (None if v is None else v.reshape(-1)[0] for v in (x, y))
        if op.type == "logical_not":
            return None if a is None else not a
        if op.type == "logical_and":
            return False if False in (a, b) else None if a is None or b is None else True
        if op.type == "logical_or":
            return True if True in (a, b) else None if a is None or b is None else False
        if op.type == "logical_xor":
            return None if a is None or b is None else bool(a != b)
        if a is not None and b is not None:
            return bool(_COMPARE[op.type](a, b))
        return self._beyond(op, a, b)

    def _beyond(self, op: OpDesc, a: Any, b: Any) -> bool | None:
        """False if one side is known and beyond all possible values of the other."""
        if op.type in ("less_than", "less_equal") and a is not None:
            most = self.env.get(limit(op.input("Y")[0]))
            return False if most is not None and not _COMPARE[op.type](a, most) else None
        if op.type in ("greater_than", "greater_equal") and b is not None:
            most = self.env.get(limit(op.input("X")[0]))
            return False if most is not None and not _COMPARE[op.type](most, b) else None
        return None

    def _run(self, op: OpDesc) -> Mapping[str, np.ndarray]:
        """An op on NumPy integers; None if the result does not stay NumPy."""
        definition = lookup(op.type)
        if definition.fn is None or definition.random or definition.forward is not None:
            return {}
        inputs: Env = {}
        for slot in definition.inputs:
            names = op.input(slot.name)
            if names:
                inputs[slot.name] = (
                    [self.known[n] for n in names] if slot.many else self.known[names[0]]
                )
        found: dict[str, np.ndarray] = {}
        for slot, value in definition(inputs, op.attrs).items():
            for name, one in zip(
                op.output(slot), value if isinstance(value, list) else [value], strict=False
            ):
                if small(one):
                    found[name] = one
        return found


def _on_array(op: OpDesc) -> bool:
    return op.type in ("write_to_array", "read_from_array")


def entries(array: TensorArray) -> set[int] | None:
    """The indices of the written entries; None if they are known only when the step runs."""
    if isinstance(array, Listed):
        return {i for i, v in enumerate(array.items) if v is not None}
    return (
        set(np.nonzero(array.written)[0].tolist())
        if isinstance(array.written, np.ndarray)
        else None
    )
