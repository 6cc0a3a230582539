"""paddle.device: the devices of this machine."""

from __future__ import annotations

from typing import Any

from ..devices.place import XPUPlace as XPUPlace
from ..devices.place import is_compiled_with_cuda as is_compiled_with_cuda
from ..devices.place import is_compiled_with_xpu as is_compiled_with_xpu
from .names import MissingName, sentence
from .state import get_cudnn_version as get_cudnn_version
from .state import get_device as get_device
from .state import set_device as set_device


def get_all_device_type() -> list[str]:
    """The kinds of devices: "cpu", and "gpu" if JAX sees one."""
    return ["cpu", "gpu"] if is_compiled_with_cuda() else ["cpu"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.device", name))


__all__ = [
    "XPUPlace", "get_all_device_type", "get_cudnn_version", "get_device", "is_compiled_with_cuda", "is_compiled_with_xpu", "set_device",
]  # fmt: skip
