"""Named ranges of a script in a trace of jax.profiler, by Paddle's functions for NVIDIA's
profiler.
"""

from __future__ import annotations

import threading

import jax

from ..errors import FluidValueError

_open = threading.local()


def nvprof_nvtx_push(name: str) -> None:
    """Begin a range that a trace shows under this name; it lasts until nvprof_nvtx_pop of the same
    thread.
    """
    if not hasattr(_open, "ranges"):
        _open.ranges = []
    begun = jax.profiler.TraceAnnotation(name)
    begun.__enter__()
    _open.ranges.append(begun)


def nvprof_nvtx_pop() -> None:
    """End the range that began last. Raises FluidValueError if none is open."""
    if not getattr(_open, "ranges", None):
        raise FluidValueError("nvprof_nvtx_pop: no range is open; nvprof_nvtx_push begins one")
    _open.ranges.pop().__exit__(None, None, None)
