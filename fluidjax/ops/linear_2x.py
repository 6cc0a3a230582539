"""Linear algebra and creation in Paddle 2 and 3."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .registry import Array, op
from .traits import mixes


def _square(kind: str, x: Any) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{kind} takes square matrices [..., n, n], not {list(x.shape)}")


@op(outs="Out", grad="Input", rows=mixes())
def determinant(Input: Array):
    """Out = the determinants of matrices Input [..., n, n]."""
    _square("determinant", Input)
    return jnp.linalg.det(Input)


@op(outs="Out", grad="X", rows=mixes())
def cholesky(X: Array, *, upper: bool = False):
    """Out = the triangular L with X = L L^T, or U with X = U^T U with `upper`; only the lower
    (upper) half of X is read.
    """
    _square("cholesky", X)
    half = jnp.swapaxes(X, -1, -2) if upper else X
    read, mean = (
        jnp.tril(half) + jnp.swapaxes(jnp.tril(half, -1), -1, -2),
        (X + jnp.swapaxes(X, -1, -2)) / 2,
    )
    whole = mean + jax.lax.stop_gradient(read - mean)  # gradients are spread over both halves
    out = jnp.linalg.cholesky(whole, symmetrize_input=False)
    return jnp.swapaxes(out, -1, -2) if upper else out


@op(outs="Out", grad="X Y", rows=mixes())
def solve(X: Array, Y: Array):
    """Out = the solutions of X Out = Y; Y a vector or matrices."""
    _square("solve", X)
    if Y.ndim == 1:
        return jnp.linalg.solve(X, Y[..., None])[..., 0]
    return jnp.linalg.solve(X, Y)


@op(outs="Out", grad="X Y", rows=mixes())
def triangular_solve(
    X: Array, Y: Array, *, upper: bool = True, transpose: bool = False, unitriangular: bool = False
):
    """Out = the solution of X Out = Y, or X^T Out = Y with `transpose`; only the upper (lower) half
    of X is read.
    """
    _square("triangular_solve", X)
    batch = jnp.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    x, y = (
        jnp.broadcast_to(X, (*batch, *X.shape[-2:])),
        jnp.broadcast_to(Y, (*batch, *Y.shape[-2:])),
    )
    return jax.scipy.linalg.solve_triangular(
        x, y, trans=int(transpose), lower=not upper, unit_diagonal=unitriangular
    )


@op(outs="Out", grad="X", rows=mixes())
def matrix_power(X: Array, *, n: int):
    """Out = X @ ... @ X, n times; powers of the inverse if n is negative."""
    _square("matrix_power", X)
    return jnp.linalg.matrix_power(X, n)


@op(outs="Out", grad="X", rows=mixes())
def multi_dot(X: list[Array]):
    """Out = X[0] @ X[1] @ ...; the first and the last may be vectors."""
    if len(X) < 2:
        raise ShapeError("multi_dot takes two matrices or more")
    return jnp.linalg.multi_dot(X)


@op(outs="out", rows=mixes())
def tril_indices(*, rows: int = 0, cols: int = 0, offset: int = 0, dtype: int = 3):
    """out [2, n] = rows and columns of the lower half of a [rows, cols] matrix, up to diagonal
    number `offset`.
    """
    return np.stack(np.tril_indices(rows, offset, cols)).astype(numpy_dtype(name_of(dtype)))


@op(outs="out", rows=mixes())
def triu_indices(*, row: int = 0, col: int = 0, offset: int = 0, dtype: int = 3):
    """out [2, n] = rows and columns of the upper half of a [row, col] matrix, from diagonal number
    `offset`.
    """
    return np.stack(np.triu_indices(row, offset, col)).astype(numpy_dtype(name_of(dtype)))


@op(outs="Out", rows=mixes())
def bernoulli(X: Array, *, key: jax.Array):
    """Out = 1 with probability X, else 0."""
    return jax.random.bernoulli(key, X).astype(X.dtype)


@op(outs="Out", rows=mixes())
def multinomial(X: Array, *, num_samples: int = 1, replacement: bool = False, key: jax.Array):
    """Out [..., num_samples] (int64) = indices drawn by the weights X [..., n]; all different
    without `replacement`.
    """
    n = X.shape[-1]
    if num_samples < 1 or (num_samples > n and not replacement):
        raise ShapeError(
            f"multinomial samples 1 to {n} different indices of {list(X.shape)}, not {num_samples}"
        )
    weights = jnp.log(X)
    if replacement:
        drawn = jax.random.categorical(key, weights, shape=(num_samples, *X.shape[:-1]))
        return jnp.moveaxis(drawn, 0, -1).astype(np.int64)
    _, at = jax.lax.top_k(weights + jax.random.gumbel(key, X.shape, X.dtype), num_samples)
    return at.astype(np.int64)


@op(outs="Out", grad="Input W Bias", rows=mixes())
def batch_fc(Input: Array, W: Array, Bias: Array):
    """Out[s] = Input[s] @ W[s] + Bias[s]; Input [S, N, D], W [S, D, width], Bias [S, width]."""
    s, _, d = Input.shape
    if W.shape[:2] != (s, d) or Bias.shape != (s, W.shape[2]):
        given = ", ".join(str(list(v.shape)) for v in (Input, W, Bias))
        raise ShapeError(
            f"batch_fc takes Input [S, N, D], W [S, D, width], Bias [S, width], not {given}"
        )
    return jnp.einsum("snd,sdw->snw", Input, W) + Bias[:, None, :]
