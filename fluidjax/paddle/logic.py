"""paddle.equal, paddle.logical_and ...: comparisons and logic of Paddle 2.0, over Fluid's layers."""

from __future__ import annotations

from .. import layers
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers import logical_and, logical_not, logical_or, logical_xor
from ..layers._build import FLOATS, append
from .pointwise import isclose


def allclose(
    x: Variable,
    y: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |x - y| <= atol + rtol * |y| everywhere: one bool. equal_nan: NaN equals NaN."""
    return layers.reduce_all(isclose(x, y, rtol, atol, equal_nan), name=name)


def equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x == y, element by element, y broadcast to x: bool. Infinities of one sign are equal, unlike
    in Fluid's `equal`.
    """
    if x.desc.dtype not in FLOATS:
        return layers.equal(x, y)
    return layers.logical_or(
        layers.equal(x, y), layers.logical_and(layers.greater_equal(x, y), layers.less_equal(x, y))
    )


def equal_all(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Whether x and y are equal in shape and everywhere: one bool."""
    return append(LayerHelper("equal_all", name=name), {"X": x, "Y": y}, {"Out": "bool"})


def greater_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x >= y, element by element, y broadcast to x: bool."""
    return layers.greater_equal(x, y)


def greater_than(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x > y, element by element, y broadcast to x: bool."""
    return layers.greater_than(x, y)


def is_empty(x: Variable, name: str | None = None) -> Variable:
    """Whether x has no elements: one bool."""
    return layers.is_empty(x)


def less_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x <= y, element by element, y broadcast to x: bool."""
    return layers.less_equal(x, y)


def less_than(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x < y, element by element, y broadcast to x: bool."""
    return layers.less_than(x, y)


def not_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x != y, element by element, y broadcast to x: bool."""
    return layers.logical_not(equal(x, y)) if x.desc.dtype in FLOATS else layers.not_equal(x, y)


__all__ = [
    "allclose", "equal", "equal_all", "greater_equal", "greater_than", "is_empty", "less_equal", "less_than", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal",
]  # fmt: skip
