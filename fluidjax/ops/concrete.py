"""Tensor inputs that decide a shape: XLA's shapes are static, so their values must be known while a
step is traced.

They are whatever was computed from other shapes and constants alone, which stays in NumPy (see
OpDef.__call__), or from feeds that are constants of the compilation (lower/sizes.py). Their slots
are the op's trait `sizes`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import NotOneStep, ShapeError
from .infer import Spec
from .registry import Array

# Constants up to this many elements stay NumPy arrays: enough for shapes, too few to weigh as
# literals in a program.
SMALL = 64


SURELY_THERE = 2**28  # bytes; smaller arrays are not checked against the free memory


def _memory() -> int:
    """Bytes of this machine's memory that are free now; where it does not tell, all that it has, or
    more than any has.
    """
    try:
        with open("/proc/meminfo") as file:
            return next(
                int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")
            )
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**50


def _free() -> tuple[int, str]:
    """Bytes that are free where arrays are made, and whose they are: a device's where it keeps
    count of them, else this machine's.
    """
    default = getattr(jax.config, "jax_default_device", None)
    device = default if isinstance(default, jax.Device) else jax.local_devices()[0]
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0)), f"device {device}"
    return _memory(), "this machine"


def refuse_huge(op: str, shape: Sequence[int], dtype: Any) -> None:
    """Raises ShapeError for an array that is larger than what is free of the memory in which it
    would be made.
    """
    if not are_numbers(shape):
        return
    size = math.prod(map(int, shape)) * np.dtype(dtype).itemsize
    if size <= SURELY_THERE:
        return
    free, whose = _free()
    if size > free:
        raise ShapeError(
            f"op '{op}' would make an array of shape {list(shape)}, {size / 1e9:,.1f} GB, and"
            f" {whose} has {free / 1e9:,.1f} GB free"
        )


def are_numbers(sizes: Sequence[Any]) -> bool:
    """Whether all sizes are numbers: of a step that is exported for any size, some are not, and are
    compared with nothing.
    """
    return all(isinstance(n, int | np.integer) for n in sizes)


def numbers_of(sizes: Sequence[Any]) -> Any:
    """What makes tables from sizes: NumPy, or JAX where they are known only when the step runs."""
    return np if are_numbers(sizes) else jnp


def known(value: Any) -> np.ndarray | None:
    """The value as a NumPy array, or None if it is only known when the step runs."""
    if isinstance(value, jax.Array) and not hasattr(value, "is_ready"):
        # NumPy would learn it too, from an error whose text JAX makes of all traces around
        return None
    try:
        return np.asarray(value)
    except jax.errors.TracerArrayConversionError:
        return None


def tracing() -> bool:
    """Whether a function is being traced, so that what is computed now becomes a part of it."""
    return known(jax.device_put(np.False_)) is None


def concrete(value: Any, op: str, slot: str) -> np.ndarray:
    """The value as a NumPy array. Raises NotOneStep if it depends on fed data or parameters."""
    found = known(value)
    if found is None:
        raise NotOneStep(
            f"input {slot} of op '{op}' decides a shape, so it must come from constants and shapes"
            " (fill_constant, assign_value, shape and arithmetic on them), not from data that"
            " changes from run to run"
        )
    return found


def integers(
    op: str, slot: str, tensor: Array | None, tensors: list[Array] | None, default: Sequence[int]
) -> tuple[int, ...]:
    """Integers from a list of one-element tensors, else from one tensor, else the attribute's."""
    if tensors:
        return tuple(int(concrete(t, op, slot).reshape(-1)[0]) for t in tensors)
    if tensor is not None:
        return tuple(int(n) for n in concrete(tensor, op, slot).reshape(-1))
    return tuple(default)


def new_shape(
    op: str, ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, shape: Sequence[int]
) -> tuple[int, ...]:
    """The shape of what an op makes: of tensors, else the attribute. Raises ShapeError for negative
    dims.
    """
    dims = integers(op, "ShapeTensor", ShapeTensor, ShapeTensorList, shape)
    if any(n < 0 for n in dims):
        raise ShapeError(
            f"op '{op}' makes a tensor, whose shape holds no negative number, but it is"
            f" {list(dims)}"
        )
    return dims


def scalars(tensor: Array | None, tensors: list[Array] | None, default: Sequence[int]) -> list[Any]:
    """As :func:`integers`, but a value that is known only when the step runs stays an array of
    shape [].
    """
    if not tensors and tensor is None:
        return list(default)
    found: list[Any] = []
    for each in tensors or [tensor.reshape(-1)[i] for i in range(tensor.size)]:
        value = known(each)
        found.append(each.reshape(()) if value is None else int(value.reshape(-1)[0]))
    return found


def shape_spec(
    shape: Sequence[int], tensor: Spec | None, tensors: Sequence[Spec] | None
) -> tuple[int, ...]:
    """The shape that is known before running: the attribute, or as many -1 as the tensors have
    entries. Raises ShapeError for negative sizes that no tensor stands for.
    """
    if shape:
        if tensor is None and not tensors and any(n < 0 for n in shape):
            raise ShapeError(f"a tensor's shape holds no negative number, but it is {list(shape)}")
        return tuple(n if n >= 0 else -1 for n in shape)
    return (-1,) * (len(tensors) if tensors else tensor.shape[0] if tensor is not None else 0)
