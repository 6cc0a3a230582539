"""print: shows a value while the step runs."""

from __future__ import annotations

import jax

from ..control_interface import Call, ControlOp
from ..registry import Attr, Reuse, control_op, grad_reuses
from ..traits import Runs


def show(call: Call) -> None:
    """Print the value from inside the step, and pass it on."""
    op = call.op
    (name,) = op.input("In")
    value = call.exact(name, call.read(name))
    message = str(op.attrs.get("message") or "").replace("{", "{{").replace("}", "}}")
    if op.attrs.get("is_forward", True):
        jax.debug.print(message + " " + name + " {value}", value=value)
    for out in op.output("Out"):
        call.env[out] = call.env[name]


_ATTRS: dict[str, tuple[str, object]] = {
    "first_n": ("INT", -1), "message": ("STRING", ""), "summarize": ("INT", 20), "print_tensor_name": ("BOOLEAN", True),
    "print_tensor_type": ("BOOLEAN", True), "print_tensor_shape": ("BOOLEAN", True), "print_tensor_lod": ("BOOLEAN", True),
    "print_phase": ("STRING", "BOTH"), "is_forward": ("BOOLEAN", True),
}  # fmt: skip

control_op(
    "print",
    ins="In",
    outs="Out",
    attrs={name: Attr(name, *given) for name, given in _ATTRS.items()},
    doc="Out = In, printed while the step runs.",
    runs=Runs.EFFECT,
    infer=lambda In, **_: In,
    control=ControlOp(lower=show),
)

# The gradient passes through another print, marked by an attribute.
grad_reuses(
    "print",
    Reuse(
        "print",
        {"In": "Out@GRAD"},
        {"Out": "In@GRAD"},
        lambda attrs: {**attrs, "is_forward": False},
    ),
)
