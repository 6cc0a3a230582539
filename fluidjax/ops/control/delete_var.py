"""delete_var: forgets values. A compiled step passes it over, XLA knows what is needed; running op
by op does not.
"""

from __future__ import annotations

from ..control_interface import Call, ControlOp
from ..registry import control_op
from ..traits import Runs


def forget(call: Call) -> None:
    """The names hold nothing from here on."""
    for name in call.op.reads:
        call.env.pop(name, None)


control_op(
    "delete_var",
    ins="X*",
    doc="The values of X are no longer needed.",
    runs=Runs.HOST,
    control=ControlOp(lower=forget, frees="X"),
)
