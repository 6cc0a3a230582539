"""paddle.zeros, paddle.full, paddle.rand ...: new variables, over Fluid's layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import layers
from ..base.dtypes import name_of
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append
from .state import get_default_dtype


def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """Ones on the diagonal, zeros elsewhere. dtype: default get_default_dtype(). Raises
    FluidTypeError for negative sizes.
    """
    return layers.eye(num_rows, num_columns, dtype=dtype or get_default_dtype())


def linspace(
    start: Any, stop: Any, num: Any, dtype: Any = None, name: str | None = None
) -> Variable:
    """`num` evenly spaced values from start to stop, both included. Each is a number, or a variable
    of one element. dtype: default float32.
    """
    return layers.linspace(start, stop, num, dtype or "float32")


def ones_like(x: Variable, dtype: Any = None, name: str | None = None) -> Variable:
    """Ones of x's shape. dtype: default x's."""
    return full_like(x, 1, dtype)


def randint(
    low: int = 0,
    high: int | None = None,
    shape: Any = [1],  # noqa: B006
    dtype: Any = None,
    name: str | None = None,
) -> Variable:
    """Random integers in [low, high), or in [0, low) without high. dtype: default int64."""
    return layers.randint(low, high, shape, dtype=dtype or "int64", name=name)


def randperm(n: int, dtype: Any = "int64", name: str | None = None) -> Variable:
    """0 to n - 1 in random order."""
    return layers.randperm(n, dtype=dtype)


def uniform(
    shape: Any,
    dtype: Any = None,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Uniform on [min, max). shape: integers and variables, or a variable. dtype: default
    get_default_dtype().
    """
    return layers.uniform_random(shape, dtype or get_default_dtype(), min, max, seed)


def zeros_like(x: Variable, dtype: Any = None, name: str | None = None) -> Variable:
    """Zeros of x's shape. dtype: default x's."""
    return full_like(x, 0, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of `shape` filled with a number. dtype: default get_default_dtype()."""
    kind = dtype or get_default_dtype()
    # 1.8.5's op cannot read them: it fills with 0
    if isinstance(fill_value, float) and not math.isfinite(fill_value):
        return layers.full_like(layers.fill_constant(shape, kind, 0), fill_value)
    return layers.fill_constant(shape, kind, fill_value)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Zeros of `shape`. dtype: default get_default_dtype()."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Ones of `shape`. dtype: default get_default_dtype()."""
    return full(shape, 1, dtype)


def full_like(x: Variable, fill_value: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of x's shape filled with a number. dtype: default x's."""
    return layers.full_like(x, fill_value, dtype=dtype)


def arange(
    start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None
) -> Variable:
    """start, start + step, ... below `end`; one argument is the end. dtype: default int64, float32
    if a bound is a float.
    """
    start, end = (0, start) if end is None else (start, end)
    whole = not any(isinstance(v, float) for v in (start, end, step))
    return layers.range(start, end, step, dtype or ("int64" if whole else "float32"))


def empty(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of `shape` with unspecified numbers; here zeros."""
    return full(shape, 0, dtype)


def empty_like(x: Variable, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of x's shape with unspecified numbers; here zeros. dtype: default x's."""
    return full_like(x, 0, dtype)


def diag(
    x: Variable, offset: int = 0, padding_value: float = 0, name: str | None = None
) -> Variable:
    """A matrix with the vector x on its diagonal and padding_value elsewhere, or the diagonal of a
    matrix x.

    offset: which diagonal; positive ones are above the main one.
    """
    attrs = {"offset": offset, "padding_value": float(padding_value)}
    return append(LayerHelper("diag_v2", name=name), {"X": x}, {"Out": x.dtype}, attrs)


def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Variable:
    """A variable that holds an array, a number or a list of numbers, stored in the op; a variable
    is copied.

    dtype: default the data's; Python's floats have the default dtype. place: ignored. Raises
    FluidTypeError for numbers of float64 that float32 cannot hold.
    """
    if isinstance(data, Variable):
        out = layers.assign(data)
        out = out if dtype is None else layers.cast(out, dtype)
    else:
        array = np.asarray(data)
        plain = not isinstance(data, np.ndarray | np.generic) and array.dtype == np.float64
        wanted = (
            name_of(dtype)
            if dtype is not None
            else get_default_dtype()
            if plain
            else array.dtype.name
        )
        carried = (
            array.astype("float32") if wanted in ("float16", "float64") else array.astype(wanted)
        )
        if not np.array_equal(
            carried.astype(wanted), array.astype(wanted), equal_nan=carried.dtype.kind == "f"
        ):
            raise FluidTypeError(
                "to_tensor's op carries float32; feed arrays of float64 that need more digits"
            )
        out = layers.assign(carried)
        out = out if wanted == carried.dtype.name else layers.cast(out, wanted)
    out.stop_gradient = stop_gradient
    return out


def normal(
    mean: float = 0.0, std: float = 1.0, shape: Any = None, name: str | None = None
) -> Variable:
    """Random numbers of the normal distribution, float32. shape: default [1]."""
    return layers.gaussian_random([1] if shape is None else shape, float(mean), float(std))


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Random numbers of the standard normal distribution. dtype: default get_default_dtype()."""
    return layers.gaussian_random(shape, dtype=dtype or get_default_dtype())


def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Random numbers between 0 and 1. dtype: default get_default_dtype()."""
    return layers.uniform_random(shape, dtype or get_default_dtype(), 0.0, 1.0)


def standard_normal(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Random numbers of the standard normal distribution. dtype: default get_default_dtype()."""
    return randn(shape, dtype, name)


def randint_like(
    x: Variable, low: int = 0, high: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """Random integers in [low, high), or in [0, low) without high, of x's shape. dtype: default
    x's, any numeric dtype or bool.
    """
    shape = list(x.shape) if -1 not in x.shape else layers.shape(x)
    drawn = layers.randint(low, high, shape, dtype="int64", name=name)
    kept = name_of(dtype or x.dtype)
    return drawn if kept == "int64" else layers.cast(drawn, kept)


__all__ = [
    "arange", "diag", "empty", "empty_like", "eye", "full", "full_like", "linspace", "normal", "ones", "ones_like", "rand",
    "randint", "randint_like", "randn", "randperm", "standard_normal", "to_tensor", "uniform", "zeros", "zeros_like",
]  # fmt: skip
