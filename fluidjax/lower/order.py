"""The order in which a step updates parameters: the order in which the net uses them, whatever
their names are.

Paddle orders the ops of an optimizer by the parameters' names, and `fc_10` sorts before `fc_9`. A
net that is built again, in a notebook cell that is run twice, has other names, and by-name order
would make it another program for the compiler. Other ops of each parameter, such as its decay, come
before all the updates, so that the updates are consecutive (updates.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ..ir.desc import OpDesc
from ..ir.edit import OPTIMIZE, role, role_names
from ..ops.registry import lookup


def by_use(ops: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
    """The ops with those of each run of updates in the order of the parameters' first uses, the
    updates themselves last.

    A run in which a parameter's ops write variables that another's read or write keeps its order,
    and so does an update that other ops read.
    """
    first: dict[str, int] = {}
    found: list[OpDesc] = []
    for optimizes, ops_of_it in groupby(ops, _optimizes):
        each = _by_first_use(list(ops_of_it), first)
        found += _updates_last(each) if optimizes else each
    return tuple(found)


def _by_first_use(ops: Sequence[OpDesc], first: dict[str, int]) -> list[OpDesc]:
    found: list[OpDesc] = []
    for updates, run in groupby(ops, _updates):
        each = list(run)
        if updates:
            found += _sorted(each, first)
        else:
            found += each
            for op in each:
                for name in op.reads:
                    first.setdefault(name, len(first))
    return found


def _optimizes(op: OpDesc) -> bool:
    return bool(role(op) & OPTIMIZE) and not op.blocks


def _updates(op: OpDesc) -> bool:
    return _optimizes(op) and bool(role_names(op))


def _sorted(run: list[OpDesc], first: dict[str, int]) -> list[OpDesc]:
    groups: dict[str, list[OpDesc]] = {}
    for op in run:
        groups.setdefault(role_names(op)[0], []).append(op)
    if len(groups) < 2 or not all(name in first for name in groups) or meet(groups.values()):
        return run
    return [op for name in sorted(groups, key=first.__getitem__) for op in groups[name]]


def _updates_last(run: Sequence[OpDesc]) -> list[OpDesc]:
    stay: list[OpDesc] = []
    last: list[OpDesc] = []
    reads: set[str] = set()  # by ops that stay, from here on
    writes: set[str] = set()
    for op in reversed(run):
        if (
            lookup(op.type).traits.update is not None
            and (reads | writes).isdisjoint(op.writes)
            and writes.isdisjoint(op.reads)
        ):
            last.append(op)
        else:
            stay.append(op)
            reads.update(op.reads)
            writes.update(op.writes)
    return stay[::-1] + last[::-1]


def meet(groups: Iterable[Sequence[OpDesc]]) -> bool:
    """Whether some group writes what another one reads or writes."""
    reads = [{n for op in group for n in op.reads} for group in groups]
    writes = [{n for op in group for n in op.writes} for group in groups]
    writer: dict[str, int] = {}
    for i, names in enumerate(writes):
        if any(writer.setdefault(n, i) != i for n in names):
            return True
    return any(writer.get(n, i) != i for i, names in enumerate(reads) for n in names)
