"""A check that passes change a forward op only together with its gradient op, which differentiates
the old op.
"""

from __future__ import annotations

from ..ir.desc import OpDesc, ProgramDesc
from ..ir.gradients import ADVICE, Gradients
from ..ir.text import op_called
from ..ops.registry import HINTS, lookup


def fault(before: ProgramDesc, after: ProgramDesc) -> str | None:
    """A message about the first forward op whose type or attributes changed while its gradient op
    did not.
    """
    were, are = Gradients(before, lookup).pairs, Gradients(after, lookup).pairs
    now = {op.uid: op for op in after.blocks[0].ops} if were else {}
    for uid, (old_gradient, old) in were.items():
        gradient, forward = now.get(uid), now.get(old.uid)
        if gradient is None or forward is None or gradient.type != old_gradient.type:
            continue
        if uid not in are and forward.type != old.type:
            return (
                f"{op_called(forward)} was op '{old.type}', and {op_called(gradient)} still"
                f" differentiates that; {ADVICE}"
            )
        apart = _apart(*are[uid]) - _apart(old_gradient, old) if uid in are else set()
        for name in sorted(apart):
            values = (
                f"{name} {forward.attrs[name]!r}, and {op_called(gradient)} still differentiates"
                f" {gradient.attrs[name]!r}"
            )
            return f"{op_called(forward)} has {values}; {ADVICE}"
    return None


def _apart(gradient: OpDesc, forward: OpDesc) -> set[str]:
    """Attributes of both ops with different values; hints to kernels do not count."""
    a, b = gradient.attrs, forward.attrs
    return {n for n in a if n in b and n not in HINTS and a[n] != b[n]}
