"""paddle.norm, paddle.cholesky, paddle.inverse ...: matrices and vectors of Paddle 2 on static
variables.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, require

_INFINITIES = (float("inf"), float("-inf"))


def cholesky(x: Variable, upper: bool = False, name: str | None = None) -> Variable:
    """The triangular L with x = L @ L^T, or U with x = U^T @ U, of symmetric positive definite
    matrices [..., n, n].
    """
    return append(LayerHelper("cholesky", name=name), {"X": x}, {"Out": x.dtype}, {"upper": upper})


def inverse(x: Variable, name: str | None = None) -> Variable:
    """The inverse of square matrices [..., n, n], by a `solve` op. Raises FluidValueError for
    matrices that are not square.
    """
    square = x.ndim >= 2 and x.shape[-1] == x.shape[-2] > 0
    require(square, f"inverse takes square matrices, but {x.name!r} has shape {list(x.shape)}")
    ones = layers.eye(x.shape[-1], dtype=x.dtype)
    each = (
        layers.elementwise_add(layers.scale(x, 0.0), ones, axis=x.ndim - 2) if x.ndim > 2 else ones
    )
    return append(LayerHelper("solve", name=name), {"X": x, "Y": each}, {"Out": x.dtype})


inv = inverse


def mv(x: Variable, vec: Variable, name: str | None = None) -> Variable:
    """x @ vec: a matrix [M, N] and a vector [N] give [M]."""
    return append(LayerHelper("mv", name=name), {"X": x, "Vec": vec}, {"Out": x.dtype})


def norm(
    x: Variable, p: Any = "fro", axis: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The p-norm over `axis`: (sum of |x| ** p) ** (1 / p). p: "fro" (the root of the sum of
    squares), a number, inf or -inf.

    axis: None (over everything, shape [1]), an integer or two of them; a norm over two is over all
    their elements. keepdim: reduced dimensions stay with size 1. Raises FluidValueError for another
    p or axis.
    """
    known = p == "fro" or (isinstance(p, int | float) and not isinstance(p, bool))
    require(known, f"norm's p is 'fro' or a number, not {p!r}")
    axes = (
        list(range(x.ndim))
        if axis is None
        else [int(a) for a in (axis if isinstance(axis, list | tuple) else [axis])]
    )
    require(
        axis is None or 0 < len(axes) <= 2,
        f"norm's axis is an integer, two of them or None, not {axis!r}",
    )
    whole = {} if axis is not None else {"reduce_all": True}
    if p == "fro" or (p == 2 and len(axes) > 1):
        attrs = {"dim": axes, "keep_dim": keepdim, **whole}
        return append(LayerHelper("frobenius_norm", name=name), {"X": x}, {"Out": x.dtype}, attrs)
    sizes = layers.abs(x)
    dims = None if axis is None else axes
    if p in _INFINITIES:
        return (layers.reduce_max if p > 0 else layers.reduce_min)(sizes, dims, keepdim, name)
    if p == 0:
        there = layers.cast(
            layers.not_equal(sizes, layers.fill_constant([1], x.dtype, 0.0)), x.dtype
        )
        return layers.reduce_sum(there, dims, keepdim, name)
    if len(axes) == 1 and x.ndim > 1:
        attrs = {"porder": float(p), "axis": axes[0], "keepdim": keepdim, "epsilon": 1e-12}
        return append(LayerHelper("p_norm", name=name), {"X": x}, {"Out": x.dtype}, attrs)
    return layers.pow(layers.reduce_sum(layers.pow(sizes, float(p)), dims, keepdim), 1.0 / p, name)


__all__ = ["cholesky", "inv", "inverse", "mv", "norm"]
