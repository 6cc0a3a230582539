"""device_guard: the device that a script names for ops, kept in their attribute ``op_device``. XLA
decides where ops run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..base.within import InForce
from ..errors import FluidValueError

_current: InForce[str | None] = InForce("device", None)


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Ops appended within the block get the attribute ``op_device``: "cpu", "gpu", or "" and None
    for no device.

    Their gradient ops get it too, and the update of a parameter whose first op is among them. Saved
    programs keep the attribute, but it has no effect here: a compiled step runs on the Executor's
    place, and XLA places its parts. Raises FluidValueError for another device.
    """
    if device not in ("cpu", "gpu", "", None):
        raise FluidValueError(
            f"device_guard takes 'cpu', 'gpu', or None for no wish, not {device!r}"
        )
    with _current.within(device):
        yield


def current_device() -> str | None:
    """The ``op_device`` of ops that are appended now; None: none."""
    return _current.get()


def device_of(op: Any) -> str | None:
    """The ``op_device`` of an op."""
    return op.desc.attrs.get("op_device")


__all__ = ["device_guard"]
