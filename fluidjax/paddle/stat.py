"""paddle.std, paddle.var, paddle.median, paddle.bernoulli ...: statistics and random tensors of
Paddle 2 on static variables.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, require


def var(
    x: Variable,
    axis: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The mean of (x - mean) ** 2 over `axis`, or with `unbiased` their sum divided by n - 1 (at
    least 1).
    """
    centred = layers.elementwise_sub(x, layers.reduce_mean(x, axis, True))
    total = layers.reduce_sum(layers.square(centred), axis, keepdim, name)
    count = layers.elementwise_div(
        layers.cast(layers.size(x), x.dtype), layers.cast(layers.size(total), x.dtype)
    )
    one = layers.fill_constant([1], x.dtype, 1.0)
    return layers.elementwise_div(
        total, layers.elementwise_max(layers.scale(count, 1.0, -1.0), one) if unbiased else count
    )


def std(
    x: Variable,
    axis: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The root of var."""
    return layers.sqrt(var(x, axis, unbiased, keepdim), name)


def median(
    x: Variable, axis: int | None = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The median along `axis` (None: of all, shape [1]): the middle element, or the mean of both.

    Raises FluidValueError for an axis that x lacks or whose size is unknown.
    """
    require(
        axis is None or -x.ndim <= axis < x.ndim,
        f"median's axis {axis} is not an axis of {x.name!r} {list(x.shape)}",
    )
    row, at = (layers.reshape(x, [-1]), 0) if axis is None else (x, axis % x.ndim)
    n = row.shape[at]
    require(
        n > 0,
        f"median must know how many elements there are, but {x.name!r} has shape {list(x.shape)}",
    )
    ordered, _ = layers.argsort(row, at)
    low = layers.slice(ordered, [at], [(n - 1) // 2], [(n - 1) // 2 + 1])
    high = layers.slice(ordered, [at], [n // 2], [n // 2 + 1])
    out = low if n % 2 else layers.scale(layers.elementwise_add(low, high), 0.5)
    if axis is None:
        return layers.reshape(out, [1] * x.ndim) if keepdim else out
    return (
        out if keepdim else layers.reshape(out, [1]) if x.ndim == 1 else layers.squeeze(out, [at])
    )


def bernoulli(x: Variable, name: str | None = None) -> Variable:
    """1 with probability x, else 0, element by element."""
    return append(LayerHelper("bernoulli", name=name), {"X": x}, {"Out": x.dtype}, stop="Out")


def multinomial(
    x: Variable, num_samples: int = 1, replacement: bool = False, name: str | None = None
) -> Variable:
    """Indices [..., num_samples] (int64) sampled by the weights x [..., n]; all different without
    `replacement`.
    """
    attrs = {"num_samples": num_samples, "replacement": replacement}
    return append(
        LayerHelper("multinomial", name=name), {"X": x}, {"Out": "int64"}, attrs, stop="Out"
    )


def poisson(x: Variable, name: str | None = None) -> Variable:
    """Samples of Poisson distributions with the means x, element by element."""
    return append(LayerHelper("poisson", name=name), {"X": x}, {"Out": x.dtype}, stop="Out")


__all__ = ["bernoulli", "median", "multinomial", "poisson", "std", "var"]
