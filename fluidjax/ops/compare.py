"""Comparisons, logic, and tests for special values. Outputs are bool; none has a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .broadcast import align
from .conditions import pairs
from .ragged import Ragged, rows_of
from .registry import Array, op
from .traits import elementwise, knows_rows, mixes, reduces

CLOSE = 1e-8  # floats that differ by less are equal for Paddle 1.8.5


def _equal(x: Any, y: Any) -> Any:
    return jnp.abs(x - y) < CLOSE if jnp.issubdtype(x.dtype, jnp.floating) else x == y


# op type, what it computes of X and Y, formula
RELATIONS: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    (
        "equal",
        _equal,
        "Out = X == Y; for floats Out = |X - Y| < 1e-8, so infinities differ from themselves.",
    ),
    ("not_equal", lambda x, y: ~_equal(x, y), "Out = X != Y; for floats Out = not |X - Y| < 1e-8."),
    ("less_than", jnp.less, "Out = X < Y."),
    ("less_equal", jnp.less_equal, "Out = X <= Y."),
    ("greater_than", jnp.greater, "Out = X > Y."),
    ("greater_equal", jnp.greater_equal, "Out = X >= Y."),
]
LOGIC: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("logical_and", jnp.logical_and, "Out = X and Y, elementwise on bools."),
    ("logical_or", jnp.logical_or, "Out = X or Y, elementwise on bools."),
    ("logical_xor", jnp.logical_xor, "Out = X xor Y, elementwise on bools."),
]
# op type, the test of each element, formula; Paddle answers for the whole tensor, shape [1]
SPECIAL: list[tuple[str, Callable[[Any], Any], str]] = [
    ("isfinite", lambda x: jnp.isfinite(x).all(), "Out[0] = all elements of X are finite."),
    ("isnan", lambda x: jnp.isnan(x).any(), "Out[0] = any element of X is NaN."),
    ("isinf", lambda x: jnp.isinf(x).any(), "Out[0] = any element of X is infinite."),
]


@op(outs="Out", rows=mixes("X"))
def equal_reduce(X: Array, Y: Array, *, axis: int = -1):
    """Out [1] = whether all elements of X and Y are equal, floats nearer than 1e-8."""
    return jnp.all(_equal(*align(X, Y, axis))).reshape(1)


def _declare_relation(kind: str, compare: Callable[[Any, Any], Any], formula: str) -> None:
    def run(X: Array, Y: Array, *, axis: int = -1, force_cpu: bool = False) -> Any:
        return compare(*align(X, Y, axis))

    run.__doc__ = formula
    op(kind, outs="Out", rows=elementwise("X", "Y", when=pairs, beside="Y"))(run)


def _declare_logic(kind: str, combine: Callable[[Any, Any], Any], formula: str) -> None:
    def run(X: Array, Y: Array) -> Any:
        return combine(X, Y)

    run.__doc__ = formula
    op(kind, outs="Out", rows=elementwise("X", "Y"))(run)


def _declare_special(kind: str, test: Callable[[Any], Any], formula: str) -> None:
    def run(X: Array) -> Any:
        return test(X).reshape(1)

    run.__doc__ = formula
    op(kind, outs="Out", rows=reduces(0))(run)


for _row in RELATIONS:
    _declare_relation(*_row)
for _row in LOGIC:
    _declare_logic(*_row)
for _special in SPECIAL:
    _declare_special(*_special)


@op(outs="Out", rows=elementwise("X"))
def logical_not(X: Array) -> Any:
    """Out = not X, elementwise on bools."""
    return jnp.logical_not(X)


@op(outs="Out", rows=knows_rows())
def is_empty(X: Array | Ragged) -> Any:
    """Out[0] = X has no elements. The number of true rows of a padded value is known when the step
    runs.
    """
    if isinstance(X, Ragged) and X.padded and X.rows.size:
        return X.count.reshape(1) == 0
    return np.array([rows_of(X).size == 0])


@op(outs="Out", rows=mixes())
def allclose(
    Input: Array,
    Other: Array,
    Rtol: Array | None,
    Atol: Array | None,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Any:
    """Out[0] = all |Input - Other| <= atol + rtol * |Other|, so infinities are never close. Rtol
    and Atol [1] override the attributes.
    """
    # later Paddles write them as texts
    least, share = (
        float(v) if t is None else t.reshape(()) for v, t in ((atol, Atol), (rtol, Rtol))
    )
    near = jnp.abs(Input - Other) <= least + share * jnp.abs(Other)
    if equal_nan:
        near |= jnp.isnan(Input) & jnp.isnan(Other)
    return near.all().reshape(1)
