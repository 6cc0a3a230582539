"""Tensor inputs that decide a shape: XLA's shapes are static, so their values must be known while a
step is traced.

Such a value is computed from shapes and constants alone, which stay in NumPy (see OpDef.__call__),
or from feeds that are constants of the compilation (lower/sizes.py). The op's trait `sizes` names
the slots.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from ..errors import NotOneStep, ShapeError
from .infer import Spec
from .registry import Array

# Constants up to this many elements stay NumPy arrays: enough for shapes, too few to matter as
# literals in a program.
SMALL = 64


SURELY_THERE = 2**28  # bytes; smaller arrays are not checked against the free memory


def _memory() -> int:
    """Bytes of this machine's memory that are free now; if unknown, its total memory, or a number
    larger than any machine's.
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
    """The free bytes where arrays are made, and their owner: the device if it reports its memory,
    else this machine.
    """
    default = getattr(jax.config, "jax_default_device", None)
    device = default if isinstance(default, jax.Device) else jax.local_devices()[0]
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0)), f"device {device}"
    return _memory(), "this machine"


def refuse_huge(op: str, shape: Sequence[int], dtype: Any) -> None:
    """Raises ShapeError for an array larger than the free memory in which it would be made."""
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
    """Whether all sizes are numbers. A step exported for any size has symbolic ones, which cannot
    be compared.
    """
    return all(map(is_number, sizes))


def is_number(size: Any) -> bool:
    return isinstance(size, int | np.integer)


def numbers_of(sizes: Sequence[Any]) -> Any:
    """The module that makes tables from sizes: NumPy, or JAX if they are known only when the step
    runs.
    """
    return np if are_numbers(sizes) else jnp


def index_type(sizes: Sequence[Any]) -> type[np.integer]:
    """The type of indices into dimensions of these sizes: int32, which costs half, if it surely
    holds them.
    """
    small = are_numbers(sizes) and max(sizes, default=0) < 2**31
    return np.int32 if small else np.int64


def known(value: Any) -> np.ndarray | None:
    """The value as a NumPy array, or None if it is only known when the step runs."""
    if isinstance(value, jax.Array) and not hasattr(value, "is_ready"):
        # NumPy would find out too, by an error whose text JAX builds from all enclosing traces
        return None
    try:
        return np.asarray(value)
    except jax.errors.TracerArrayConversionError:
        return None


def tracing() -> bool:
    """Whether a function is being traced, so that a computation made now becomes part of it."""
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
    """Integers from a list of one-element tensors, else from one tensor, else the attribute's; or
    symbolic sizes, while a step is exported for any batch.
    """
    if tensors:
        found = [concrete(t, op, slot).reshape(-1)[0] for t in tensors]
    elif tensor is not None:
        found = list(concrete(tensor, op, slot).reshape(-1))
    else:
        return tuple(default)
    return tuple(map(_size, found))


def _size(n: Any) -> Any:
    return n if export.is_symbolic_dim(n) else int(n)


def is_size(n: Any) -> bool:
    """Whether this is a number or a symbolic size, not an array."""
    return is_number(n) or export.is_symbolic_dim(n)


def is_negative(size: Any) -> bool:
    """Whether a size is a number below 0. A symbolic one counts as a size, which is not."""
    return not export.is_symbolic_dim(size) and size < 0


def new_shape(
    op: str, ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, shape: Sequence[int]
) -> tuple[int, ...]:
    """The shape of an op's output, from tensors, else from the attribute. Raises ShapeError for
    negative dims.
    """
    dims = integers(op, "ShapeTensor", ShapeTensor, ShapeTensorList, shape)
    if any(map(is_negative, dims)):
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
        found.append(each.reshape(()) if value is None else _size(value.reshape(-1)[0]))
    return found


def shape_spec(
    shape: Sequence[int], tensor: Spec | None, tensors: Sequence[Spec] | None
) -> tuple[int, ...]:
    """The shape known before the run: the attribute, or one -1 per entry of the tensors. Raises
    ShapeError for negative sizes that no tensor replaces.
    """
    if shape:
        if tensor is None and not tensors and any(n < 0 for n in shape):
            raise ShapeError(f"a tensor's shape holds no negative number, but it is {list(shape)}")
        return tuple(n if n >= 0 else -1 for n in shape)
    return (-1,) * (len(tensors) if tensors else tensor.shape[0] if tensor is not None else 0)
