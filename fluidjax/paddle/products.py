"""paddle.einsum, paddle.outer, paddle.tensordot, paddle.cdist, paddle.linalg.cov ...: products of
Paddle 2 on static variables.
"""

from __future__ import annotations

import math
from typing import Any

from .. import layers
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, one_of, require
from .norms import norm


def einsum(equation: str, *operands: Variable) -> Variable:
    """Products summed over the letters missing on the right of "->": einsum("ij,jk->ik", x, y) is x
    @ y.
    """
    return append(
        LayerHelper("einsum"),
        {"Operands": list(operands)},
        {"Out": operands[0].dtype},
        {"equation": equation},
    )


def inner(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Sums of products over the last dimensions of both, for each pair of the others."""
    rows = [layers.reshape(v, [-1, v.shape[-1]]) for v in (x, y)]
    out = layers.matmul(rows[0], rows[1], transpose_y=True)
    return layers.reshape(out, [*x.shape[:-1], *y.shape[:-1]] or [1], name=name)


def outer(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The products of each element of x with each of y: [size of x, size of y]."""
    return layers.matmul(layers.reshape(x, [-1, 1]), layers.reshape(y, [1, -1]), name=name)


def tensordot(x: Variable, y: Variable, axes: Any = 2, name: str | None = None) -> Variable:
    """Sums of products over dimensions of both. axes: a number (the last of x and the first of y),
    one list for both, or two lists.

    Raises FluidValueError if the sizes differ.
    """
    if isinstance(axes, int):
        mine, others = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    elif axes and isinstance(axes[0], list | tuple):
        mine, others = list(axes[0]), list(axes[1] if len(axes) > 1 else [])
    else:
        mine, others = list(axes), []
    mine, others = mine + others[len(mine) :], others + mine[len(others) :]
    mine, others = [a % x.ndim for a in mine], [a % y.ndim for a in others]
    fits = all(x.shape[a] == y.shape[b] for a, b in zip(mine, others, strict=True))
    require(
        fits,
        f"tensordot sums over equal sizes, not over {mine} of {list(x.shape)} and {others} of"
        f" {list(y.shape)}",
    )
    kept = [d for d in range(x.ndim) if d not in mine]
    free = [d for d in range(y.ndim) if d not in others]
    size = math.prod(x.shape[d] for d in mine)
    left = layers.reshape(layers.transpose(x, kept + mine), [-1, size])
    right = layers.reshape(layers.transpose(y, others + free), [size, -1])
    shape = [*(x.shape[d] for d in kept), *(y.shape[d] for d in free)] or [1]
    return layers.reshape(layers.matmul(left, right), shape, name=name)


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(
    x: Variable,
    y: Variable,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
    name: str | None = None,
) -> Variable:
    """The p-norm of the difference of every row of x [..., M, K] and every row of y [..., N, K]:
    [..., M, N].

    compute_mode: whether distances with p = 2 are computed by matrix products, by default with more
    than 25 rows. Raises FluidValueError for a negative p or another mode.
    """
    one_of(compute_mode, "compute_mode", "cdist", _MODES)
    require(p >= 0, f"cdist's p is 0 or more, not {p}")
    many = x.shape[-2] > 25 or y.shape[-2] > 25
    if p == 2 and (compute_mode == _MODES[1] or (compute_mode == _MODES[0] and many)):
        rows = layers.reduce_sum(layers.square(x), -1, True)
        columns = layers.unsqueeze(layers.reduce_sum(layers.square(y), -1), [-2])
        squares = layers.elementwise_add(
            layers.elementwise_sub(rows, layers.scale(layers.matmul(x, y, transpose_y=True), 2.0)),
            columns,
        )
        return layers.sqrt(layers.relu(squares), name)
    apart = layers.elementwise_sub(layers.unsqueeze(x, [-2]), layers.unsqueeze(y, [-3]))
    return norm(apart, float(p), -1, name=name)


def renorm(x: Variable, p: float, axis: int, max_norm: float) -> Variable:
    """x with every slice along `axis` whose p-norm exceeds max_norm scaled to that norm."""
    attrs = {"p": float(p), "axis": axis, "max_norm": float(max_norm)}
    return append(LayerHelper("renorm"), {"X": x}, {"Out": x.dtype}, attrs)


def cov(
    x: Variable, rowvar: bool = True, ddof: bool = True, fweights: Variable | None = None, aweights: Variable | None = None,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The covariances of the rows of x (columns without rowvar), over n - 1 observations, n without
    ddof.

    fweights: the count of each observation; aweights: its weight. Raises FluidValueError for more
    than two dimensions.
    """
    require(
        x.ndim in (1, 2),
        f"cov takes a vector or a matrix, but {x.name!r} has shape {list(x.shape)}",
    )
    rows = layers.reshape(x, [1, -1]) if x.ndim == 1 else x
    rows = layers.t(rows) if not rowvar and rows.shape[0] != 1 else rows
    often, much = (None if w is None else layers.cast(w, x.dtype) for w in (fweights, aweights))
    weight = (
        layers.elementwise_mul(often, much)
        if often is not None and much is not None
        else often
        if much is None
        else much
    )
    weighted = rows if weight is None else layers.elementwise_mul(rows, weight)
    one = layers.fill_constant([1], x.dtype, 1.0)
    total = (
        layers.reduce_sum(weight)
        if weight is not None
        else layers.fill_constant([1], x.dtype, float(rows.shape[1]))
    )
    centred = layers.elementwise_sub(
        rows, layers.elementwise_div(layers.reduce_sum(weighted, 1, True), total)
    )
    lost = one
    if weight is not None and much is not None:
        lost = layers.elementwise_div(
            layers.reduce_sum(layers.elementwise_mul(weight, much)), total
        )
    over = layers.relu(layers.elementwise_sub(total, lost)) if ddof else total
    weighted = centred if weight is None else layers.elementwise_mul(centred, weight)
    out = layers.elementwise_div(layers.matmul(centred, weighted, transpose_y=True), over)
    return layers.reshape(out, [1], name=name) if out.shape[0] == 1 else out


def corrcoef(x: Variable, rowvar: bool = True, name: str | None = None) -> Variable:
    """The correlations of the rows of x (columns without rowvar), between -1 and 1."""
    c = cov(x, rowvar)
    if c.ndim == 1:
        return layers.elementwise_div(c, c, name=name)
    spread = layers.sqrt(append(LayerHelper("diagonal"), {"Input": c}, {"Out": c.dtype}))
    c = layers.elementwise_div(
        layers.elementwise_div(c, layers.unsqueeze(spread, [1])), layers.unsqueeze(spread, [0])
    )
    return layers.clip(c, -1.0, 1.0, name)


__all__ = ["cdist", "corrcoef", "cov", "einsum", "inner", "outer", "renorm", "tensordot"]
