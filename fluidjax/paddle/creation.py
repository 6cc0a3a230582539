"""paddle.zeros, paddle.full, paddle.rand ...: variables out of nothing, over Fluid's layers."""

from __future__ import annotations

from typing import Any

from .. import layers
from ..variable import Variable
from .adapt import table

_ROWS = {
    "eye": ("eye", "num_rows, num_columns=None, dtype='float32', name=None", ""),
    "linspace": ("linspace", "start, stop, num, dtype='float32', name=None", ""),
    "ones_like": ("ones_like", "x, name=None", ""),
    "randint": ("randint", "low=0, high=None, shape=[1], dtype='int64', name=None", ""),
    "randperm": ("randperm", "n, dtype='int64', name=None", ""),
    "uniform": ("uniform_random", "shape, dtype='float32', min=-1.0, max=1.0, seed=0, name=None", ""),
    "zeros_like": ("zeros_like", "x, name=None", ""),
}
_FUNCTIONS = table(_ROWS, __name__)
globals().update(_FUNCTIONS)


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


__all__ = sorted([*_FUNCTIONS, "arange", "full", "full_like", "normal", "ones", "rand", "randn", "zeros"])
