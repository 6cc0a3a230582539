"""fake_quantize_range_abs_max: quantises by the largest value of a window of steps, stored in
OutScales, which is only an output slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

from ...ir.desc import OpDesc, ProgramDesc
from ..control_interface import Call, ControlOp
from ..infer import Spec
from ..quantize import greatest, quantised
from ..registry import Attr, control_op
from ..traits import Runs

_NEAR = 1e-6  # how near a value that leaves the window must be to the largest to count as it


def _window(iteration: Any, last: Any, current: Any, scales: Any, size: int) -> tuple[Any, Any]:
    """The scale, and the window with the current value in place of the oldest.

    A larger current value becomes the scale. If the largest leaves the window, the maximum of the
    rest replaces it.
    """
    at = iteration % size
    removed, scales = scales[at], scales.at[at].set(current)
    there = jnp.arange(scales.shape[0]) < jnp.minimum(iteration, size)
    sought = jnp.max(jnp.where(there, jnp.abs(scales), 0))
    kept = jnp.where(jnp.abs(removed - last) < _NEAR, sought, last)
    return jnp.where(last < current, current, kept), scales


def run(call: Call) -> None:
    """Quantise by InScale alone if is_test, else as in _window."""
    op = call.op

    def value(names: tuple[str, ...]) -> Any:
        return call.exact(names[0], call.read(names[0]))

    x, scale, attrs = value(op.input("X")), value(op.input("InScale")).reshape(()), op.attrs
    if not attrs.get("is_test", False):
        size = int(attrs.get("window_size", 10000))
        iteration, scales = (
            value(op.input("Iter")).reshape(()),
            jnp.asarray(value(op.output("OutScales"))),
        )
        scale, scales = _window(iteration, scale, greatest(x.reshape(-1))[0], scales, size)
        call.env[op.output("OutScales")[0]] = scales
    for name in op.output("OutScale"):
        call.env[name] = scale.reshape(1)
    call.env[op.output("Out")[0]] = quantised(x, scale, int(attrs.get("bit_length", 8)))


def _infer(
    X: Spec, InScale: Spec, Iter: Spec | None, *, window_size: int, **_: Any
) -> tuple[Spec, Spec, Spec]:
    return X, Spec((1,), X.dtype), Spec((window_size,), X.dtype)


def carried(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """The window before the step; no input slot names it."""
    return () if op.attrs.get("is_test", False) else op.output("OutScales")


control_op(
    "fake_quantize_range_abs_max", ins="X InScale Iter?", outs="Out OutScale OutScales?",
    attrs={
        "bit_length": Attr("bit_length", "INT", 8), "is_test": Attr("is_test", "BOOLEAN", False),
        "window_size": Attr("window_size", "INT", 10000),
    },
    doc="Out = round(X / OutScale * (2^(bit_length - 1) - 1)), OutScale = the greatest |X| of window_size steps, kept in OutScales.",
    runs=Runs.STEP, infer=_infer, control=ControlOp(lower=run, carried=carried),
)  # fmt: skip
