"""delete_var: frees values. A compiled step skips it, since XLA knows what is needed; a run op by
op executes it.
"""

from __future__ import annotations

from ..control_interface import Call, ControlOp
from ..registry import control_op
from ..traits import Runs


def forget(call: Call) -> None:
    """The names have no value from here on."""
    for name in call.op.reads:
        call.env.pop(name, None)


control_op(
    "delete_var",
    ins="X*",
    doc="The values of X are no longer needed.",
    runs=Runs.HOST,
    control=ControlOp(lower=forget, frees="X"),
)
