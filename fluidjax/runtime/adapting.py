"""Other plans for a step that cannot be traced as planned: feeds as constants, exact sizes, bounded
loops and, as a last resort, a partition into segments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..compiling.recompiles import Recompiles
from ..errors import MixesRows, NotOneStep, note
from ..feeds.padding import Padding
from ..ir import walk
from ..ir.desc import OpDesc
from ..lower.sizes import SizeNeeds
from ..ops.loop_course import counters
from ..partition.run import CutStep
from .plan import StepPlan


def adapted(
    plan: StepPlan, padding: Padding, recompiles: Recompiles, values: Any, why: NotOneStep
) -> StepPlan | None:
    """The plan by which such feeds run from now on; None if nothing is left to try. The plan itself
    is returned if `padding` now pads them less.
    """
    if isinstance(why, MixesRows):
        found = _padded_less(plan, padding, recompiles, values, why)
        if found is not None:
            return found
    if why.counts:
        found = _with_bounded_loop(plan, why)
        if found is not None:
            return found
    if plan.shared and isinstance(why, MixesRows):
        note(
            why,
            "in a job of several processes all sequences are padded to common sizes, so pad them "
            "to one length yourself",
        )
    return _in_segments(plan, recompiles, why)


def _padded_less(
    plan: StepPlan, padding: Padding, recompiles: Recompiles, values: Any, reason: MixesRows
) -> StepPlan | None:
    """The plan with less padding; None if such feeds are not padded and no feed decides sizes."""
    if isinstance(values, tuple):
        now, some = plan, False
        for one in values:
            found = _padded_less(now, padding, recompiles, one, reason)
            now, some = found or now, some or found is not None
        return now if some else None
    exact = padding.less(values)
    if exact is None:
        return _with_constant_choices(plan, reason)
    if exact:
        place = "".join(
            f" ({n})" for n in getattr(reason, "__notes__", ()) if n.startswith("in op: ")
        )
        recompiles.runs_exactly(f"; ragged feeds run on exact sizes, because {reason}{place}")
    return plan


def _with_constant_choices(plan: StepPlan, reason: MixesRows) -> StepPlan | None:
    """The plan with the feeds that choose rows (trait `chosen`) as constants; None if they are
    constants already, or if there are no such feeds.
    """
    choices = plan.step.sizes.choices
    if plan.step.exact or not any(c.by_feeds for c in choices):
        for blocked in (c for c in choices if not c.by_feeds):
            note(reason, blocked.chosen())
        return None
    return replace(plan, step=replace(plan.step, exact=True))


def _with_bounded_loop(plan: StepPlan, why: NotOneStep) -> StepPlan | None:
    """The plan with a loop bounded by the bucket of a fed number, or with the feeds that decide its
    iteration count as constants; None if neither is possible.
    """
    step = plan.step
    op = next((o for _, o in walk.ops(step.desc) if o.uid == why.uid), None)
    if op is None or plan.where.count != 1:
        return None
    fed = {
        n
        for n in counters(step.desc, op)
        if n in step.feeds and step.feeds[n].dtype in ("int32", "int64")
    }
    new = {n for n in fed if n not in plan.limited and n not in plan.fixed}
    if new:
        return replace(plan, limited=plan.limited | new)
    if op.uid in step.counted or not any(need.by_feeds for need in _needs(step.sizes, op)):
        return None
    return replace(plan, step=replace(step, counted=step.counted | {op.uid}))


def _needs(sizes: SizeNeeds, op: OpDesc) -> Any:
    return [n for n in replace(sizes, counted=frozenset({op.uid})).all if n.op.uid == op.uid]


def _in_segments(plan: StepPlan, recompiles: Recompiles, why: NotOneStep) -> StepPlan | None:
    """The plan in segments; None on several devices, or if the plan has segments already."""
    if plan.where.count != 1 or plan.cutting is not None or why.uid is None:
        return None
    cutting = CutStep(plan.step, recompiles.reasons.made)
    cutting.refine(why)
    return replace(plan, cutting=cutting)
