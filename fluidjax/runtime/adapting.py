"""What is done when a step cannot be traced as it stands: other constants, exact sizes, bounds of
loops, and last of all cuts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import MixesRows, NotOneStep, note
from ..ir import walk
from ..ir.desc import OpDesc
from ..lower.sizes import SizeNeeds
from ..ops.loop_course import counters
from .compiled import Compiled
from .cut import CutStep


def adapted(compiled: Compiled, values: Any, why: NotOneStep) -> bool:
    """Have the step run such feeds in another way from now on. False if nothing is left to try."""
    if isinstance(why, MixesRows) and remembered(compiled, values, why):
        return True
    if why.counts and _counted(compiled, why):
        return True
    if compiled.shared and isinstance(why, MixesRows):
        note(
            why,
            "in a job of several processes sequences are padded to sizes in common, so pad them to"
            " one length yourself",
        )
    return _cut(compiled, why)


def remembered(compiled: Compiled, values: Any, reason: MixesRows) -> bool:
    """Have such feeds be padded less. False if they are not padded at all, and no feed says the
    sizes.
    """
    if isinstance(values, tuple):
        return any([remembered(compiled, one, reason) for one in values])
    exact = compiled.padding.less(values)
    if exact is None:
        return _choose(compiled, reason)
    if exact:
        place = "".join(
            f" ({n})" for n in getattr(reason, "__notes__", ()) if n.startswith("in op: ")
        )
        compiled.recompiles.mixes = f"; ragged feeds run on exact sizes, because {reason}{place}"
    return True


def _choose(compiled: Compiled, reason: MixesRows) -> bool:
    """Have the feeds that choose rows (trait `chosen`) be constants. False if they are, or are
    none.
    """
    choices = compiled.step.sizes.choices
    if compiled.step.exact or not any(c.by_feeds for c in choices):
        for blocked in (c for c in choices if not c.by_feeds):
            note(reason, blocked.chosen())
        return False
    compiled.step = replace(compiled.step, exact=True)
    compiled.take_sizes()
    return True


def _counted(compiled: Compiled, why: NotOneStep) -> bool:
    """Have a loop be bounded by a bucket that a fed number lies in, or else have the feeds that say
    its count be constants.
    """
    step = compiled.step
    op = next((o for _, o in walk.ops(step.desc) if o.uid == why.uid), None)
    if op is None or compiled.where.count != 1:
        return False
    fed = {
        n
        for n in counters(step.desc, op)
        if n in step.feeds and step.feeds[n].dtype in ("int32", "int64")
    }
    new = {n for n in fed if n not in compiled.limited and n not in compiled.fixed}
    if new:
        compiled.limited |= new
        return True
    if op.uid in step.counted or not any(need.by_feeds for need in _needs(step.sizes, op)):
        return False
    compiled.step = replace(step, counted=step.counted | {op.uid})
    compiled.take_sizes()
    return True


def _needs(sizes: SizeNeeds, op: OpDesc) -> Any:
    return [n for n in replace(sizes, counted=frozenset({op.uid})).all if n.op.uid == op.uid]


def _cut(compiled: Compiled, why: NotOneStep) -> bool:
    """Run the program in segments. False on several devices, and where it is cut already."""
    if compiled.where.count != 1 or compiled.cutting is not None or why.uid is None:
        return False
    cutting = CutStep(compiled.step, compiled.recompiles.reasons.made)
    cutting.refine(why)
    compiled.cutting = cutting
    return True
