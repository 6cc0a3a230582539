"""Decompositions and solutions."""

from __future__ import annotations

from jax.lax import linalg

from ..registry import Array, Float64, Ints
from .declare import lax_op


@lax_op("cholesky", grad="X", heavy=True)
def cholesky(X: Array):
    """Out = the lower triangular L with L L^H = X; only X's lower triangle is read."""
    return linalg.cholesky(X, symmetrize_input=False)


@lax_op("lu", outs="Out Pivots Permutation", grad="X", heavy=True)
def lu(X: Array):
    """Out = L and U of the permuted X in one matrix; Pivots and Permutation (int32): the exchanged
    rows.
    """
    return tuple(linalg.lu(X))


@lax_op("lu_pivots_to_permutation")
def lu_pivots_to_permutation(Pivots: Array, *, permutation_size: int):
    """Out (int32) = the order of rows after the exchanges of pivots."""
    return linalg.lu_pivots_to_permutation(Pivots, permutation_size)


@lax_op("qr", outs="Q R Pivots?", grad="X", heavy=True)
def qr(X: Array, *, full_matrices: bool = False, pivoting: bool = False):
    """Q R = X, Q with orthonormal columns, R upper triangular; with pivoting, for the columns of X
    in the order Pivots (int32).
    """
    found = linalg.qr(X, full_matrices=full_matrices, pivoting=pivoting)
    return (*found, None) if len(found) == 2 else tuple(found)


@lax_op("eigh", outs="Vectors Values", grad="X", heavy=True)
def eigh(
    X: Array, *, lower: bool = True, sort_eigenvalues: bool = True, subset_by_index: Ints = ()
):
    """X Vectors = Vectors diag(Values) for a Hermitian X; only one triangle is read."""
    subset = tuple(subset_by_index) or None
    return tuple(
        linalg.eigh(
            X,
            lower=lower,
            symmetrize_input=False,
            sort_eigenvalues=sort_eigenvalues,
            subset_by_index=subset,
        )
    )


@lax_op("eig", outs="Values Left? Right?", heavy=True)
def eig(
    X: Array, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True
):
    """Values, Left, Right = the eigenvalues and eigenvectors of a square matrix."""
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    found = linalg.eig(X, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    rest = iter(found[1:])
    return found[0], next(rest) if left else None, next(rest) if right else None


@lax_op("svd", outs="S U? Vh?", grad="X", heavy=True)
def svd(
    X: Array, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: Ints = ()
):
    """X = U diag(S) Vh; without compute_uv only the singular values S."""
    subset = tuple(subset_by_index) or None
    if not compute_uv:
        return (
            linalg.svd(X, full_matrices=full_matrices, compute_uv=False, subset_by_index=subset),
            None,
            None,
        )
    u, s, vh = linalg.svd(X, full_matrices=full_matrices, subset_by_index=subset)
    return s, u, vh


@lax_op("triangular_solve", grad="A B", heavy=True)
def triangular_solve(
    A: Array,
    B: Array,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
):
    """A Out = B, or Out A = B if left_side is False, with a triangular A."""
    return linalg.triangular_solve(
        A,
        B,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


@lax_op("householder_product", grad="A Taus", heavy=True)
def householder_product(A: Array, Taus: Array):
    """Out = the product of the elementary reflectors in A."""
    return linalg.householder_product(A, Taus)


@lax_op("schur", outs="T Vectors?", heavy=True)
def schur(X: Array, *, compute_schur_vectors: bool = True):
    """X = Vectors T Vectors^H with an upper triangular T."""
    found = linalg.schur(X, compute_schur_vectors=compute_schur_vectors)
    return (found[0], found[1]) if compute_schur_vectors else (found[0], None)


@lax_op("tridiagonal_solve", grad="Lower Diagonal Upper B", heavy=True)
def tridiagonal_solve(
    Lower: Array, Diagonal: Array, Upper: Array, B: Array, *, perturb_singular: bool = False
):
    """The solution of a tridiagonal system with these three diagonals, perturbed if it is singular
    and that is requested.
    """
    return linalg.tridiagonal_solve(Lower, Diagonal, Upper, B, perturb_singular=perturb_singular)


@lax_op("cholesky_update", heavy=True)
def cholesky_update(R: Array, W: Array):
    """Out = the upper triangular factor of R^T R + W W^T."""
    return linalg.cholesky_update(R, W)


@lax_op("symmetric_product", heavy=True)
def symmetric_product(A: Array, C: Array, *, alpha: Float64 = 1.0, beta: Float64 = 0.0):
    """Out = alpha A A^T + beta C; only the lower triangle is valid."""
    return linalg.symmetric_product(A, C, alpha=alpha, beta=beta)


@lax_op("hessenberg", outs="Out Taus", heavy=True)
def hessenberg(X: Array):
    """Out, Taus = the Hessenberg form of a square matrix, with its reflectors below it."""
    return tuple(linalg.hessenberg(X))


@lax_op("tridiagonal", outs="Out Diagonal OffDiagonal Taus", heavy=True)
def tridiagonal(X: Array, *, lower: bool = True):
    """Out, Diagonal, OffDiagonal, Taus = the tridiagonal form of a Hermitian matrix, and its
    reflectors.
    """
    return tuple(linalg.tridiagonal(X, lower=lower))
