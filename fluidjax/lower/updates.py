"""Which updates of small parameters a step runs at once.

An optimizer has an op for each parameter, and most parameters of a net are small: two of every norm, one of every layer. Each op is
some ten instructions to the compiler, so that in a step of many layers they are up to half of all. Updates that are alike and stand
beside one another are one op over their arrays stacked (stacks.py), which costs a copy of them. Moments, which nobody else reads, can
travel from step to step as such stacks (`joints`). That is for quick executables: where XLA tries hard it takes as long for the parameters
that are cut out of their stack as for their updates one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import groupby
from typing import Any

from ..base.within import within
from ..ir.desc import EMPTY, OpDesc, VarDesc
from ..ops.registry import HINTS, lookup
from .horizontal import Unit
from .order import ROLE_VAR, meet

_JOINED: ContextVar[bool] = ContextVar("updates at once", default=False)
LEAST = 4  # updates that are alike and pay for the stacking
MOST = 1 << 16  # elements of a parameter: a larger one costs more to copy than its update to compile


def are_joined() -> bool:
    """Whether what is being traced runs updates at once."""
    return _JOINED.get()


def joined(wanted: bool = True) -> AbstractContextManager[None]:
    """What is traced within does, or does not."""
    return within(_JOINED, wanted)


def together(ops: Sequence[OpDesc], find: Callable[[str], VarDesc | None]) -> Mapping[int, tuple[Unit, ...]]:
    """By the position of its first op, each run of updates some of which are run at once, in the order in which they run.

    find: the variable of a name.
    """
    found, at = {}, 0
    for updates, each in groupby(ops, _updates_elements):
        run = list(each)
        if updates and len(run) >= LEAST and not meet([[op] for op in run]):
            units = _units(run, find)
            if len(units) < len(run):
                found[at] = units
        at += len(run)
    return found


def joints(ops: Sequence[OpDesc], units: Iterable[Unit], kept: Collection[str]) -> dict[str, tuple[str, ...]]:
    """What updates that run at once keep of their own, slot by slot: the names in order, by one for all of them.

    kept: names that somebody else looks at.
    """
    reads = Counter(n for op in ops for n in op.reads)
    writes = Counter(n for op in ops for n in op.writes)
    found = {}
    for unit in units:
        definition = lookup(unit[0].type)
        update = definition.traits.update
        if len(unit) == 1 or update is None:
            continue
        for out, slot in definition.inplace.items():
            names = [op.inputs[slot][0] for op in unit if op.inputs.get(slot)]
            own = slot in (*update.state, *update.powers) and names == [op.outputs[out][0] for op in unit if op.outputs.get(out)]
            if own and len(names) == len(unit) and all(reads[n] == writes[n] == 1 and n not in kept for n in names):
                found[f"{names[0]} and {len(names) - 1} more"] = tuple(names)
    return found


def _updates_elements(op: OpDesc) -> bool:
    update = lookup(op.type).traits.update
    return update is not None and update.elements and not op.blocks


def _units(run: Sequence[OpDesc], find: Callable[[str], VarDesc | None]) -> tuple[Unit, ...]:
    alike: dict[Any, list[OpDesc]] = {}
    for op in run:
        alike.setdefault(_likeness(op, find) or op.uid, []).append(op)
    return tuple(unit for ops in alike.values() for unit in ([tuple(ops)] if len(ops) >= LEAST else [(op,) for op in ops]))


def _likeness(op: OpDesc, find: Callable[[str], VarDesc | None]) -> Any:
    """What updates that are alike have in common; None for one of a large parameter, or of one whose size is not known."""
    inputs = {slot: names for slot, names in op.inputs.items() if names}
    outputs = {slot: names for slot, names in op.outputs.items() if names}
    if any(len(names) != 1 for names in (*inputs.values(), *outputs.values())):
        return None
    shapes = []
    for slot, names in inputs.items():
        var = find(names[0])
        if var is None or var.shape is None or any(n < 0 for n in var.shape) or math.prod(var.shape) > MOST:
            return None
        shapes.append((slot, tuple(var.shape), var.dtype, var.kind))
    attrs = frozenset((n, v) for n, v in op.attrs.items() if n not in HINTS and n != ROLE_VAR)
    return op.type, attrs, frozenset(shapes), frozenset(slot for slot, names in outputs.items() if names[0] != EMPTY)
