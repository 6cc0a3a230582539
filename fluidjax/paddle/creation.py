"""paddle.zeros, paddle.full, paddle.rand ...: variables out of nothing, over Fluid's layers."""

from __future__ import annotations

from typing import Any

from .. import layers
from ..graph.variable import Variable


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = "float32", name: str | None = None) -> Variable:
    """Ones on the diagonal, zeros elsewhere. Raises FluidTypeError for negative sizes."""
    return layers.eye(num_rows, num_columns, dtype=dtype)


def linspace(start: Any, stop: Any, num: Any, dtype: Any = "float32", name: str | None = None) -> Variable:
    """`num` values evenly from start to stop, both included. Each a number, or a variable of one."""
    return layers.linspace(start, stop, num, dtype)


def ones_like(x: Variable, name: str | None = None) -> Variable:
    """Ones of x's shape and dtype."""
    return layers.ones_like(x)


def randint(
    low: int = 0,
    high: int | None = None,
    shape: Any = [1],  # noqa: B006 - Paddle's default
    dtype: Any = "int64",
    name: str | None = None,
) -> Variable:
    """Integers of [low, high), or of [0, low) without high."""
    return layers.randint(low, high, shape, dtype=dtype, name=name)


def randperm(n: int, dtype: Any = "int64", name: str | None = None) -> Variable:
    """0 to n - 1 in random order."""
    return layers.randperm(n, dtype=dtype)


def uniform(
    shape: Any, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None
) -> Variable:
    """Uniform on [min, max). shape: integers and variables, or a variable."""
    return layers.uniform_random(shape, dtype, min, max, seed)


def zeros_like(x: Variable, name: str | None = None) -> Variable:
    """Zeros of x's shape and dtype."""
    return layers.zeros_like(x)


def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of `shape` filled with a number. dtype: default float32."""
    return layers.fill_constant(shape, dtype or "float32", fill_value)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Zeros of `shape`. dtype: default float32."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Ones of `shape`. dtype: default float32."""
    return full(shape, 1, dtype)


def full_like(x: Variable, fill_value: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of x's shape filled with a number. dtype: default x's."""
    return layers.full_like(x, fill_value, dtype=dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Variable:
    """start, start + step, ... below `end`; one argument is the end. dtype: default int64, float32 if a bound is a float."""
    start, end = (0, start) if end is None else (start, end)
    whole = not any(isinstance(v, float) for v in (start, end, step))
    return layers.range(start, end, step, dtype or ("int64" if whole else "float32"))


def normal(mean: float = 0.0, std: float = 1.0, shape: Any = None, name: str | None = None) -> Variable:
    """Random numbers of the normal distribution, float32. shape: default [1]."""
    return layers.gaussian_random([1] if shape is None else shape, float(mean), float(std))


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Random numbers of the standard normal distribution. dtype: default float32."""
    return layers.gaussian_random(shape, dtype=dtype or "float32")


def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """Random numbers between 0 and 1. dtype: default float32."""
    return layers.uniform_random(shape, dtype or "float32", 0.0, 1.0)


__all__ = [
    "arange", "eye", "full", "full_like", "linspace", "normal", "ones", "ones_like", "rand", "randint", "randn",
    "randperm", "uniform", "zeros", "zeros_like",
]  # fmt: skip
