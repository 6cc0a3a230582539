"""The order in which a step updates parameters: that in which the net uses them, whatever they are called.

Paddle orders the ops of an optimizer by the parameters' names, and `fc_10` sorts before `fc_9`: so a net that is built once more,
in a notebook's cell that is run again, has another order, and would be another program to the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ..ir.desc import OpDesc
from ..ir.edit import OPTIMIZE, role

ROLE_VAR = "op_role_var"  # the attribute in which an op of an optimizer names its parameter, and that one's gradient


def by_use(ops: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
    """The ops with those of each run of updates in the order of the parameters' first uses; ops of one parameter stay in order.

    A run in which a parameter's ops write what another's read or write stays as it is.
    """
    first: dict[str, int] = {}
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
    return tuple(found)


def _updates(op: OpDesc) -> bool:
    return bool(role(op) & OPTIMIZE) and not op.blocks and bool(op.attrs.get(ROLE_VAR))


def _sorted(run: list[OpDesc], first: dict[str, int]) -> list[OpDesc]:
    groups: dict[str, list[OpDesc]] = {}
    for op in run:
        groups.setdefault(op.attrs[ROLE_VAR][0], []).append(op)
    if len(groups) < 2 or not all(name in first for name in groups) or _meet(groups.values()):
        return run
    return [op for name in sorted(groups, key=first.__getitem__) for op in groups[name]]


def _meet(groups: Iterable[list[OpDesc]]) -> bool:
    """Whether some group writes what another one reads or writes."""
    reads = [{n for op in group for n in op.reads} for group in groups]
    writes = [{n for op in group for n in op.writes} for group in groups]
    writer: dict[str, int] = {}
    for i, names in enumerate(writes):
        if any(writer.setdefault(n, i) != i for n in names):
            return True
    return any(writer.get(n, i) != i for i, names in enumerate(reads) for n in names)
