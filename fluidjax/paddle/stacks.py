"""paddle.hstack, paddle.tensor_split, paddle.isin ...: additions of Paddle 3, made from older
layers and ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import layers
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, chosen, require, typed, variable
from .arrange import atleast_1d, atleast_2d, atleast_3d
from .math import isinf, multiply, subtract
from .math import sum as _sum
from .norms import norm
from .pointwise import _late

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

# -- one beside another ----------------------------------------------------------------------------


def _each(x: Any, what: str, change: Any) -> list[Variable]:
    require(
        isinstance(x, list | tuple) and len(x) > 0, f"{what} takes a list of variables, not {x!r}"
    )
    return [change(variable(v, f"x[{i}]", what)) for i, v in enumerate(x)]


def hstack(x: Sequence[Variable], name: str | None = None) -> Variable:
    """The variables concatenated along dimension 1, vectors along dimension 0."""
    parts = _each(x, "hstack", atleast_1d)
    return layers.concat(parts, 0 if parts[0].ndim == 1 else 1, name)


def vstack(x: Sequence[Variable], name: str | None = None) -> Variable:
    """The variables concatenated along dimension 0; a vector is a row."""
    return layers.concat(_each(x, "vstack", atleast_2d), 0, name)


row_stack = vstack


def dstack(x: Sequence[Variable], name: str | None = None) -> Variable:
    """The variables concatenated along dimension 2: [N] as [1, N, 1], [M, N] as [M, N, 1]."""
    return layers.concat(_each(x, "dstack", atleast_3d), 2, name)


def column_stack(x: Sequence[Variable], name: str | None = None) -> Variable:
    """The variables concatenated along dimension 1; a vector is a column."""
    return layers.concat(
        _each(x, "column_stack", lambda v: layers.reshape(v, [-1, 1]) if v.ndim < 2 else v), 1, name
    )


def block_diag(inputs: Sequence[Variable], name: str | None = None) -> Variable:
    """The matrices along the diagonal of one, zeros elsewhere; a vector is a matrix of one row.

    Raises FluidValueError for more dimensions.
    """
    parts = _each(inputs, "block_diag", atleast_2d)
    fits = all(v.ndim == 2 and min(v.shape) > 0 for v in parts)
    require(fits, f"block_diag takes matrices of known sizes, not {[list(v.shape) for v in parts]}")
    width, rows, before = sum(v.shape[1] for v in parts), [], 0
    for v in parts:
        rows.append(layers.pad(v, [0, 0, before, width - before - v.shape[1]]))
        before += v.shape[1]
    return layers.concat(rows, 0, name)


def cartesian_prod(x: Sequence[Variable], name: str | None = None) -> Variable:
    """All combinations of one element of each vector, as rows [product of sizes, number of
    vectors]; a single vector is returned unchanged.
    """
    parts = _each(x, "cartesian_prod", lambda v: v)
    require(
        all(v.ndim == 1 for v in parts),
        f"cartesian_prod takes vectors, not {[list(v.shape) for v in parts]}",
    )
    if len(parts) == 1:
        return parts[0]
    sizes = [v.shape[0] for v in parts]
    wide = []
    for i, v in enumerate(parts):
        column = layers.reshape(v, [1] * i + [sizes[i]] + [1] * (len(parts) - i - 1))
        wide.append(
            layers.reshape(
                layers.expand(column, [1 if j == i else n for j, n in enumerate(sizes)]), [-1]
            )
        )
    return layers.stack(wide, 1)


# -- in pieces -------------------------------------------------------------------------------------


def tensor_split(
    x: Variable, num_or_indices: Any, axis: int = 0, name: str | None = None
) -> list[Variable]:
    """x split along `axis`: into this many pieces, the first ones larger by one if the size is not
    divisible, or before these indices.

    Raises FluidValueError for an axis that x lacks, an unknown size, or a number below 1,
    FluidTypeError for other arguments.
    """
    require(
        -x.ndim <= axis < x.ndim,
        f"tensor_split's axis {axis} is not an axis of {x.name!r} {list(x.shape)}",
    )
    axis, size = axis % x.ndim, x.shape[axis]
    require(size >= 0, f"tensor_split takes a known size, but axis {axis} of {x.name!r} is not")
    if isinstance(num_or_indices, int) and not isinstance(num_or_indices, bool):
        require(num_or_indices > 0, f"tensor_split's number is above 0, not {num_or_indices}")
        base, more = divmod(size, num_or_indices)
        return layers.split(x, [base + 1] * more + [base] * (num_or_indices - more), axis, name)
    if not isinstance(num_or_indices, list | tuple):
        raise FluidTypeError(
            f"tensor_split takes a number of pieces or a list of indices, not {num_or_indices!r}"
        )
    cuts = [min(max(i if i >= 0 else size + i, 0), size) for i in num_or_indices]
    starts = [0, *cuts]
    return [
        layers.slice(x, [axis], [a], [max(a, b)])
        for a, b in zip(starts, [*cuts, size], strict=True)
    ]


def hsplit(x: Variable, num_or_indices: Any, name: str | None = None) -> list[Variable]:
    """tensor_split along dimension 1, or dimension 0 of a vector."""
    return tensor_split(x, num_or_indices, 1 if x.ndim > 1 else 0, name)


def dsplit(x: Variable, num_or_indices: Any, name: str | None = None) -> list[Variable]:
    """tensor_split along dimension 2. Raises FluidValueError for fewer than three dimensions."""
    require(
        x.ndim >= 3,
        f"dsplit takes three dimensions or more, but {x.name!r} has shape {list(x.shape)}",
    )
    return tensor_split(x, num_or_indices, 2, name)


# -- element by element ----------------------------------------------------------------------------


def signbit(x: Variable, name: str | None = None) -> Variable:
    """Whether the sign is negative, also for -0.0 (bool). x: float32 or float64, or integers."""
    zeros = layers.zeros_like(x)
    if x.desc.dtype not in ("float32", "float64"):
        return layers.less_than(x, zeros)
    return layers.less_than(copysign(layers.scale(zeros, 1.0, 1.0), x), zeros)


def copysign(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """|x| with the sign of y, also of a zero; both broadcast."""
    x, y = variable(x, "x", "copysign"), variable(y, "y", "copysign")
    return append(LayerHelper("copysign", name=name), {"x": x, "y": y}, {"out": x.dtype})


def isneginf(x: Variable, name: str | None = None) -> Variable:
    """Whether x is -inf (bool)."""
    return layers.logical_and(isinf(x), layers.less_than(x, layers.zeros_like(x)))


def isposinf(x: Variable, name: str | None = None) -> Variable:
    """Whether x is inf (bool)."""
    return layers.logical_and(isinf(x), layers.greater_than(x, layers.zeros_like(x)))


def sinc(x: Variable, name: str | None = None) -> Variable:
    """sin(pi x) / (pi x), 1 at 0."""
    tiny = layers.scale(layers.zeros_like(x), 1.0, 1e-20)
    angle = layers.scale(chosen(layers.not_equal(x, layers.zeros_like(x)), x, tiny), math.pi)
    return layers.elementwise_div(layers.sin(angle), angle, name=name)


def gammaln(x: Variable, name: str | None = None) -> Variable:
    """log |gamma(x)|."""
    return _late("gammaln", x, name)


def gammaincc(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The upper regularised gamma function of order x at y."""
    x, y = variable(x, "x", "gammaincc"), variable(y, "y", "gammaincc")
    return append(LayerHelper("gammaincc", name=name), {"x": x, "y": y}, {"out": x.dtype})


def gammainc(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The lower regularised gamma function of order x at y: 1 - gammaincc(x, y)."""
    return layers.scale(gammaincc(x, y), -1.0, 1.0)


def _shift(kind: str, x: Variable, y: Variable, is_arithmetic: bool, name: str | None) -> Variable:
    x, y = variable(x, "x", kind), variable(y, "y", kind)
    return append(
        LayerHelper(kind, name=name),
        {"x": x, "y": y},
        {"out": x.dtype},
        {"is_arithmetic": is_arithmetic},
    )


def bitwise_left_shift(
    x: Variable, y: Variable, is_arithmetic: bool = True, out: Any = None, name: str | None = None
) -> Variable:
    """x shifted left by y bits; integers. out is ignored in a static program."""
    return _shift("bitwise_left_shift", x, y, is_arithmetic, name)


def bitwise_right_shift(
    x: Variable, y: Variable, is_arithmetic: bool = True, out: Any = None, name: str | None = None
) -> Variable:
    """x shifted right by y bits, filled with the sign if is_arithmetic, else with zeros; integers.
    out is ignored in a static program.
    """
    return _shift("bitwise_right_shift", x, y, is_arithmetic, name)


def isin(
    x: Variable,
    test_x: Variable,
    assume_unique: bool = False,
    invert: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether each element of x is among those of test_x (bool), or is not (invert). assume_unique
    is ignored.
    """
    rank = x.ndim
    known = layers.reshape(test_x, [1] * rank + [-1])
    inputs = {"X": layers.unsqueeze(x, [rank]), "Y": known}
    among = layers.reduce_any(
        append(LayerHelper("isin", name=name), inputs, {"Out": "bool"}, {"axis": -1}, kind="equal"),
        rank,
    )
    return layers.logical_not(among) if invert else among


# -- sums and norms --------------------------------------------------------------------------------


def vecdot(x: Variable, y: Variable, axis: int = -1, name: str | None = None) -> Variable:
    """The sum of x * y along `axis`; both broadcast."""
    return _sum(multiply(x, y), axis, name=name)


def pdist(x: Variable, p: float = 2.0, name: str | None = None) -> Variable:
    """The p-norms of the differences of all pairs of rows of x [N, M], i < j: [N * (N - 1) / 2]."""
    require(
        x.ndim == 2 and x.shape[0] > 0, f"pdist takes [N, M] with a known N, not {list(x.shape)}"
    )
    n = x.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    require(bool(pairs), f"pdist takes two rows or more, not {n}")
    first, second = (
        layers.gather(x, layers.assign(np.array(side, "int32")))
        for side in zip(*pairs, strict=True)
    )
    return norm(subtract(first, second), float(p), -1, False, name)


def reduce_as(x: Variable, target: Variable, name: str | None = None) -> Variable:
    """x summed over the dimensions in which target has size 1 or that it lacks, in target's shape."""
    x, target = variable(x, "x", "reduce_as"), variable(target, "target", "reduce_as")
    return append(LayerHelper("reduce_as", name=name), {"x": x, "target": target}, {"out": x.dtype})


def matrix_transpose(x: Variable, name: str | None = None) -> Variable:
    """x with its last two dimensions exchanged. Raises FluidValueError for fewer than two."""
    require(
        typed(x, "x", Variable, "matrix_transpose").ndim >= 2,
        f"matrix_transpose takes two dimensions or more, not {list(x.shape)}",
    )
    n = x.ndim
    return layers.transpose(x, [*range(n - 2), n - 1, n - 2], name)


__all__ = [
    "bitwise_left_shift", "bitwise_right_shift", "block_diag", "cartesian_prod", "column_stack", "copysign", "dsplit", "dstack", "e",
    "gammainc", "gammaincc", "gammaln", "hsplit", "hstack", "inf", "isin", "isneginf", "isposinf", "matrix_transpose", "nan", "newaxis",
    "pdist", "pi", "reduce_as", "row_stack", "signbit", "sinc", "tensor_split", "vecdot", "vstack",
]  # fmt: skip
