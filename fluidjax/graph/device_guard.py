"""device_guard: the device that a script names for ops, as their attribute ``op_device``; XLA
places what they compute.
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
    """Ops appended within the block carry ``op_device``: "cpu", "gpu", or "" and None for no wish.

    So do their gradient ops, and the update of a parameter whose first op is among them. The
    attribute is kept in saved programs and says nothing to a step here: one compiled step runs on
    the Executor's place, and where its parts run is XLA's. Raises FluidValueError for another
    device.
    """
    if device not in ("cpu", "gpu", "", None):
        raise FluidValueError(
            f"device_guard takes 'cpu', 'gpu', or None for no wish, not {device!r}"
        )
    with _current.within(device):
        yield


def current_device() -> str | None:
    """What the ops that are appended now carry as ``op_device``; None: nothing."""
    return _current.get()


def device_of(op: Any) -> str | None:
    """What an op carries as ``op_device``."""
    return op.desc.attrs.get("op_device")


__all__ = ["device_guard"]
