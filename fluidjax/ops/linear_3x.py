"""Eigenvalues of any square matrix, least squares, and the parts of decompositions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..base.dtypes import COMPLEX_OF
from ..errors import FluidValueError, ShapeError
from .infer import Spec
from .registry import Array, grad_of, op
from .traits import mixes

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _square(kind: str, x: Any) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{kind} takes square matrices [..., n, n], not {list(x.shape)}")


def _moderate(x: Array) -> tuple[Any, Any]:
    """x divided by a power of two so that LAPACK's geev does not scale it, and that power [..., 1,
    1], the factor of its eigenvalues.

    jaxlib's geev returns scaled eigenvalues: 1.1e12 for a diagonal of 1e30 in float32.
    """
    kind = jnp.finfo(x.dtype)
    greatest = jnp.max(jnp.abs(x), axis=(-2, -1), keepdims=True, initial=0)
    least = np.sqrt(kind.tiny) / kind.eps
    far = ((greatest > 1 / least) | (greatest < least)) & (greatest > 0) & jnp.isfinite(greatest)
    scale = jnp.ldexp(
        jnp.ones((), greatest.dtype),
        jnp.where(far, jnp.frexp(jnp.where(far, greatest, 1))[1] - 1, 0),
    )
    return x / scale, scale


def _eig_spec(X: Spec) -> tuple[Spec, Spec]:
    _square("eig", X)
    kind = COMPLEX_OF.get(X.dtype, X.dtype)
    return Spec(X.shape[:-1], kind), Spec(X.shape, kind)


@op(outs="Eigenvalues Eigenvectors", infer=_eig_spec, rows=mixes())
def eig(X: Array):
    """Eigenvalues [..., n] and Eigenvectors [..., n, n] (columns of length 1) of square X, complex,
    in LAPACK's order.
    """
    _square("eig", X)
    x, scale = _moderate(X)
    values, vectors = jnp.linalg.eig(x)
    return values * scale[..., 0], vectors


@grad_of("eig", "X Eigenvalues Eigenvectors")
def eig_grad(
    X: Array | None,
    Eigenvalues: Array,
    Eigenvectors: Array,
    d_Eigenvalues: Array | None,
    d_Eigenvectors: Array | None,
):
    """X@GRAD = V^-H (diag(dw) + (V^H dV - V^H V diag(Re(V^H dV))) / conj(w_j - w_i)) V^H; V
    Eigenvectors, w Eigenvalues.

    Paddle's gradient op does not take X; for a real X the result is the real part.
    """
    w, v = Eigenvalues, Eigenvectors
    adjoint, same = jnp.conj(jnp.swapaxes(v, -1, -2)), jnp.eye(w.shape[-1], dtype=bool)
    middle = jnp.zeros_like(v)
    if d_Eigenvectors is not None:
        product = adjoint @ d_Eigenvectors
        along = jnp.real(jnp.diagonal(product, axis1=-2, axis2=-1))[..., None, :]
        gap = jnp.conj(w[..., None, :] - w[..., :, None])
        middle = jnp.where(same, 0, (product - adjoint @ v * along) / jnp.where(same, 1, gap))
    if d_Eigenvalues is not None:
        middle = middle + jnp.where(same, d_Eigenvalues[..., None], 0)
    found = jnp.linalg.solve(adjoint, middle @ adjoint)
    return found if X is None or jnp.iscomplexobj(X) else jnp.real(found)


def _eigvals_spec(X: Spec) -> Spec:
    _square("eigvals", X)
    return Spec(X.shape[:-1], COMPLEX_OF.get(X.dtype, X.dtype))


@op(outs="Out", infer=_eigvals_spec, rows=mixes())
def eigvals(X: Array):
    """Out [..., n] = the eigenvalues of square X, complex, in LAPACK's order."""
    _square("eigvals", X)
    x, scale = _moderate(X)
    return jnp.linalg.eigvals(x) * scale[..., 0]


def _lstsq_spec(X: Spec, Y: Spec, *, rcond: float, driver: str) -> tuple[Spec, ...]:
    if driver not in DRIVERS:
        raise FluidValueError(f"lstsq has the drivers {', '.join(DRIVERS)}, not {driver!r}")
    if X.ndim < 2 or X.ndim != Y.ndim or X.shape[-2] != Y.shape[-2]:
        raise ShapeError(
            f"lstsq takes X [..., m, n] and Y [..., m, k], not {list(X.shape)} and {list(Y.shape)}"
        )
    *batch, m, n = X.shape
    by_svd = driver in ("gelsd", "gelss")
    return (
        Spec((*batch, n, Y.shape[-1]), X.dtype), Spec((*batch, Y.shape[-1]) if m > n and driver != "gelsy" else (0,), X.dtype),
        Spec((0,), "int32") if driver == "gels" else Spec(tuple(batch), "int32"), Spec((*batch, min(m, n)) if by_svd else (0,), X.dtype),
    )  # fmt: skip


@op(
    outs="Solution Residuals? Rank SingularValues",
    infer=_lstsq_spec,
    rows=mixes(),
)
def lstsq(X: Array, Y: Array, *, rcond: float = 0.0, driver: str = "gels"):
    """Solution [..., n, k] = the minimum of |X Solution - Y|, the shortest of several; X [..., m,
    n], Y [..., m, k].

    Singular values up to rcond times the greatest count as 0 (driver "gels": none does).
    SingularValues and Rank (int32) of X if the driver computes them (gelsd, gelss; gelsy only the
    rank), else empty. Residuals [..., k]: the squared residuals if m > n, empty otherwise and with
    gelsy. LAPACK's Residuals are empty for matrices without full rank; here they are numbers.
    """
    m, n = X.shape[-2:]
    u, s, vt = jnp.linalg.svd(X, full_matrices=False)
    least = 0.0 if driver == "gels" else rcond
    counts = s > least * s[..., :1]
    scaled = jnp.where(
        counts[..., None], jnp.swapaxes(u, -1, -2) @ Y / jnp.where(counts, s, 1)[..., None], 0
    )
    found = jnp.swapaxes(vt, -1, -2) @ scaled
    none = jnp.zeros(0, X.dtype)
    left = jnp.sum(jnp.square(X @ found - Y), -2) if m > n and driver != "gelsy" else none
    rank = jnp.zeros(0, np.int32) if driver == "gels" else jnp.sum(counts, -1, dtype=np.int32)
    return found, left, rank, s if driver in ("gelsd", "gelss") else none


@op(
    outs="Pmat L U",
    grad="X Pivots L U Pmat",
    nograd="Pivots",
    rows=mixes(),
)
def lu_unpack(X: Array, Pivots: Array, *, unpack_ludata: bool = True, unpack_pivots: bool = True):
    """Pmat, L, U = the parts of op lu's result X [..., m, n] and Pivots: Pmat L U is the matrix; L
    has ones on its diagonal.
    """
    m, n = X.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(X[..., :k], -1) + jnp.eye(m, k, dtype=X.dtype)
    order = jax.lax.linalg.lu_pivots_to_permutation(jnp.asarray(Pivots, jnp.int32) - 1, m)
    return (
        jnp.swapaxes(jax.nn.one_hot(order, m, dtype=X.dtype), -1, -2),
        lower,
        jnp.triu(X[..., :k, :]),
    )
