"""jax.callback: Python code on the host, called while a step runs; only this process can run it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import EnforceNotMet
from ..control_interface import Call
from ..registry import Attr
from ..traits import Runs
from .blocks import Function, declare_block_op

_CALLBACKS: dict[str, Callable[..., Any]] = {}


def keep(function: Callable[..., Any]) -> str:
    """The key by which ops of this process (only) name a function."""
    key = uuid.uuid4().hex[:12]
    _CALLBACKS[key] = function
    return key


def _callback(call: Call, counts: Sequence[int]) -> Function:
    attrs, place = call.op.attrs, f" ({call.op.loc})" if call.op.loc else ""
    if attrs["key"] not in _CALLBACKS:
        raise EnforceNotMet(
            f"op 'jax.callback'{place} runs the Python of a {attrs['function']}, which no file of a"
            " program holds; trace the function in this process"
        )
    return _CALLBACKS[attrs["key"]]


declare_block_op(
    "callback",
    ins="Args*",
    outs="Out*",
    attrs=[Attr("key", "STRING"), Attr("function", "STRING")],
    doc=(
        "Out = what a function of this process returns for Args: a jax.pure_callback, io_callback"
        " or debug.print."
    ),
    make=_callback,
    differentiable=False,
    runs=Runs.EFFECT,
)
