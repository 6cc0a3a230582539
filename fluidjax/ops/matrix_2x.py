"""Decompositions of matrices, and products of several tensors, in Paddle 2 and 3."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError
from .registry import Array, grad_of, op
from .traits import mixes


def _square(kind: str, x: Any) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{kind} takes square matrices [..., n, n], not {list(x.shape)}")


@op(outs="Output", rows=mixes())
def inverse(Input: Array):
    """Output = the inverses of matrices Input [..., n, n]."""
    _square("inverse", Input)
    return jnp.linalg.inv(Input)


@grad_of("inverse", "Output")
def inverse_grad(Output: Array, d_Output: Array):
    """Input@GRAD = -Output^T Output@GRAD Output^T."""
    transposed = jnp.swapaxes(Output, -1, -2)
    return -transposed @ d_Output @ transposed


@op(outs="Eigenvalues Eigenvectors", rows=mixes())
def eigh(X: Array, *, UPLO: str = "L"):
    """Eigenvalues [..., n] (ascending), Eigenvectors [..., n, n] (columns) = those of symmetric X;
    only its half UPLO (L, U) is read.
    """
    _square("eigh", X)
    return tuple(jnp.linalg.eigh(X, UPLO=UPLO, symmetrize_input=False))


@grad_of("eigh", "Eigenvalues Eigenvectors")
def eigh_grad(
    Eigenvalues: Array,
    Eigenvectors: Array,
    d_Eigenvalues: Array | None,
    d_Eigenvectors: Array | None,
):
    """X@GRAD = V (diag(dw) + (V^T dV) / (w_j - w_i)) V^T, w the Eigenvalues, V the Eigenvectors."""
    w, v = Eigenvalues, Eigenvectors
    middle = jnp.zeros_like(v)
    if d_Eigenvectors is not None:
        gap = w[..., None, :] - w[..., :, None]
        same = jnp.eye(w.shape[-1], dtype=bool)
        middle = jnp.where(
            same, 0, jnp.swapaxes(v, -1, -2) @ d_Eigenvectors / jnp.where(same, 1, gap)
        )
    if d_Eigenvalues is not None:
        middle = middle + d_Eigenvalues[..., None] * jnp.eye(w.shape[-1], dtype=w.dtype)
    return v @ middle @ jnp.swapaxes(v, -1, -2)


@op(outs="Eigenvalues Eigenvectors", rows=mixes())
def eigvalsh(X: Array, *, UPLO: str = "L", is_test: bool = False):
    """Eigenvalues, Eigenvectors = as in eigh."""
    _square("eigvalsh", X)
    return tuple(jnp.linalg.eigh(X, UPLO=UPLO, symmetrize_input=False))


@op(outs="U S VH", grad="X", rows=mixes())
def svd(X: Array, *, full_matrices: bool = False):
    """U, S, VH = the singular value decomposition X = U diag(S) VH; square U and VH with
    full_matrices, which has no gradient.
    """
    return tuple(jnp.linalg.svd(X, full_matrices=full_matrices))


@op(outs="Q R", grad="X", rows=mixes())
def qr(X: Array, *, mode: str = "reduced"):
    """Q, R = the decomposition X = Q R into orthonormal columns and an upper triangle; mode
    reduced, complete, or r (R alone, Q empty).
    """
    if mode == "r":
        return jnp.zeros((0,), X.dtype), jnp.linalg.qr(X, "r")
    if mode not in ("reduced", "complete"):
        raise FluidValueError(f"qr has the modes 'reduced', 'complete' and 'r', not {mode!r}")
    return tuple(jnp.linalg.qr(X, mode))


@op(outs="Out Pivots Infos", rows=mixes())
def lu(X: Array, *, pivots: bool = True):
    """Out = L (below the diagonal) and U of P L U = X, Pivots [..., n] (int32, from 1) = the row
    that each was swapped with, Infos = 0.
    """
    if not pivots:
        raise FluidValueError("lu swaps rows: pivots is True")
    out, swapped, _ = jax.lax.linalg.lu(X)
    return out, swapped + 1, jnp.zeros(X.shape[:-2], np.int32)


@op(outs="Out", grad="X Y", rows=mixes())
def cholesky_solve(X: Array, Y: Array, *, upper: bool = False):
    """Out = the solution of A Out = X, where Y is A's Cholesky factor: A = Y Y^T, or Y^T Y with
    `upper`.
    """
    _square("cholesky_solve", Y)
    lower = jnp.swapaxes(jnp.triu(Y), -1, -2) if upper else jnp.tril(Y)
    half = jax.scipy.linalg.solve_triangular(lower, X, lower=True)
    return jax.scipy.linalg.solve_triangular(lower, half, lower=True, trans=1)


@op(outs="Out", grad="Input", rows=mixes())
def slogdeterminant(Input: Array):
    """Out [2, ...] = the sign and the logarithm of the absolute value of the determinants of Input
    [..., n, n].
    """
    _square("slogdeterminant", Input)
    return jnp.stack(jnp.linalg.slogdet(Input))


@op(outs="Out", rows=mixes())
def matrix_rank(
    X: Array,
    TolTensor: Array | None,
    *,
    tol: float = 0.0,
    hermitian: bool = False,
    use_default_tol: bool = True,
):
    """Out (int64) = the number of singular values (absolute eigenvalues if `hermitian`) above
    `tol`.

    TolTensor overrides `tol`; the default is the greatest value times the longer side times the
    dtype's epsilon.
    """
    sizes = jnp.abs(jnp.linalg.eigvalsh(X)) if hermitian else jnp.linalg.svd(X, compute_uv=False)
    least: Any = np.asarray(tol, X.dtype)
    if TolTensor is not None:
        least = TolTensor[..., None]
    elif use_default_tol:
        least = jnp.max(sizes, -1, keepdims=True) * np.asarray(
            max(X.shape[-2:]) * np.finfo(X.dtype).eps, X.dtype
        )
    return jnp.sum(sizes > least, -1, dtype=np.int64)


@op(outs="Out", grad="Input X Y", rows=mixes())
def baddbmm(Input: Array, X: Array, Y: Array, *, Beta: float = 1.0, Alpha: float = 1.0):
    """Out = Beta * Input + Alpha * X @ Y, matrix by matrix."""
    return Input * X.dtype.type(Beta) + X @ Y * X.dtype.type(Alpha)


@op(outs="Out InnerCache*~ XShape*~", grad="Operands", rows=mixes())
def einsum(Operands: list[Array], *, equation: str):
    """Out = the sum of products given by `equation` in Einstein notation: "bij,bjk->bik".

    InnerCache and XShape belong to Paddle's kernel and are empty here.
    """
    kept = [jnp.zeros((0,), Operands[0].dtype)] * len(Operands)
    return jnp.einsum(equation, *Operands), kept, kept


@op(outs="Out", grad="X", rows=mixes())
def renorm(X: Array, *, p: float, axis: int, max_norm: float):
    """Out = X, with each slice X[..., i, ...] along `axis` whose p-norm exceeds max_norm scaled to
    that norm.
    """
    axes = tuple(i for i in range(X.ndim) if i != axis % X.ndim)
    powers = jnp.sum(jnp.abs(X) ** p, axes, keepdims=True)
    large = jax.lax.stop_gradient(powers ** (1 / p)) > max_norm
    size = jnp.where(large, powers, 1) ** (1 / p)  # the root of 0 has no derivative
    return X * jnp.where(large, max_norm / size, 1).astype(X.dtype)
