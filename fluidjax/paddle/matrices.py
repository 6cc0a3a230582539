"""paddle.linalg.qr, paddle.linalg.svd, paddle.linalg.pinv ...: factors and solutions of matrices of
Paddle 2 on static variables.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..base.dtypes import COMPLEX_OF
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, chosen, one_of, require, typed
from .norms import norm


def _complex(x: Variable) -> str:
    return COMPLEX_OF.get(str(x.desc.dtype), str(x.desc.dtype))


def det(x: Variable, name: str | None = None) -> Variable:
    """The determinants of square matrices [..., n, n]."""
    return append(LayerHelper("determinant", name=name), {"Input": x}, {"Out": x.dtype})


def slogdet(x: Variable, name: str | None = None) -> Variable:
    """The signs and the logarithms of the absolute determinants of square matrices: [2, ...]."""
    return append(LayerHelper("slogdeterminant", name=name), {"Input": x}, {"Out": x.dtype})


def eig(x: Variable, name: str | None = None) -> Any:
    """The eigenvalues [..., n] and the eigenvectors (columns) of square matrices: complex."""
    outs = {"Eigenvalues": _complex(x), "Eigenvectors": _complex(x)}
    return append(LayerHelper("eig", name=name), {"X": x}, outs)


def eigvals(x: Variable, name: str | None = None) -> Variable:
    """The eigenvalues [..., n] of square matrices: complex."""
    return append(LayerHelper("eigvals", name=name), {"X": x}, {"Out": _complex(x)})


def eigh(x: Variable, UPLO: str = "L", name: str | None = None) -> Any:
    """The eigenvalues in ascending order and the eigenvectors of symmetric matrices; only the lower
    ("L") or upper triangle is read.
    """
    one_of(UPLO, "UPLO", "eigh", ("L", "U"))
    return append(
        LayerHelper("eigh", name=name),
        {"X": x},
        {"Eigenvalues": x.dtype, "Eigenvectors": x.dtype},
        {"UPLO": UPLO},
    )


def eigvalsh(x: Variable, UPLO: str = "L", name: str | None = None) -> Variable:
    """The eigenvalues in ascending order of symmetric matrices; only the lower ("L") or upper
    triangle is read.
    """
    one_of(UPLO, "UPLO", "eigvalsh", ("L", "U"))
    outs = {"Eigenvalues": x.dtype, "Eigenvectors": x.dtype}
    return append(
        LayerHelper("eigvalsh", name=name), {"X": x}, outs, {"UPLO": UPLO, "is_test": False}
    )[0]


def svd(x: Variable, full_matrices: bool = False, name: str | None = None) -> Any:
    """(U, S, VH) with x = U @ diag(S) @ VH, S in descending order; square U and VH with
    full_matrices.
    """
    outs = {"U": x.dtype, "S": x.dtype, "VH": x.dtype}
    return append(LayerHelper("svd", name=name), {"X": x}, outs, {"full_matrices": full_matrices})


def qr(x: Variable, mode: str = "reduced", name: str | None = None) -> Any:
    """(Q, R) with x = Q @ R; mode: "reduced", "complete" (a square Q) or "r" (R alone)."""
    one_of(mode, "mode", "qr", ("reduced", "complete", "r"))
    q, r = append(
        LayerHelper("qr", name=name), {"X": x}, {"Q": x.dtype, "R": x.dtype}, {"mode": mode}
    )
    return r if mode == "r" else (q, r)


def lu(x: Variable, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> Any:
    """(L and U in one matrix, the swapped rows counted from 1) with x = P @ L @ U; with get_infos
    also int32 codes, 0: success.
    """
    outs = {"Out": x.dtype, "Pivots": "int32", "Infos": "int32"}
    packed, pivots, infos = append(
        LayerHelper("lu", name=name), {"X": x}, outs, {"pivots": pivot}, stop="Pivots Infos"
    )
    return (packed, pivots, infos) if get_infos else (packed, pivots)


def lu_unpack(
    x: Variable,
    y: Variable,
    unpack_ludata: bool = True,
    unpack_pivots: bool = True,
    name: str | None = None,
) -> Any:
    """(P, L, U) from the results of `lu`: its matrix x and its swaps y."""
    attrs = {"unpack_ludata": unpack_ludata, "unpack_pivots": unpack_pivots}
    outs = {"Pmat": x.dtype, "L": x.dtype, "U": x.dtype}
    return append(LayerHelper("lu_unpack", name=name), {"X": x, "Pivots": y}, outs, attrs)


def lstsq(
    x: Variable,
    y: Variable,
    rcond: float | None = None,
    driver: str | None = None,
    name: str | None = None,
) -> Any:
    """(solution, squared residuals, rank, singular values) of x @ solution = y in the least
    squares.

    driver: "gels" (default) or "gelsy", "gelsd", "gelss". rcond: singular values below this
    fraction of the greatest count as 0.
    """
    way = driver or "gels"
    one_of(way, "driver", "lstsq", ("gels", "gelsy", "gelsd", "gelss"))
    tiny = 1e-15 if x.desc.dtype == "float64" else 1e-7
    least = rcond if rcond is not None else 0.0 if way == "gels" else tiny * max(x.shape[-2:])
    outs = {"Solution": x.dtype, "Residuals": x.dtype, "Rank": "int32", "SingularValues": x.dtype}
    return append(
        LayerHelper("lstsq", name=name),
        {"X": x, "Y": y},
        outs,
        {"rcond": least, "driver": way},
        stop="Rank",
    )


def solve(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The z with x @ z = y, for square matrices x."""
    return append(LayerHelper("solve", name=name), {"X": x, "Y": y}, {"Out": x.dtype})


def triangular_solve(
    x: Variable,
    y: Variable,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    name: str | None = None,
) -> Variable:
    """The z with x @ z = y for triangular x (x^T with transpose), whose diagonal counts as 1 if
    unitriangular.
    """
    attrs = {"upper": upper, "transpose": transpose, "unitriangular": unitriangular}
    return append(
        LayerHelper("triangular_solve", name=name), {"X": x, "Y": y}, {"Out": x.dtype}, attrs
    )


def cholesky_solve(
    x: Variable, y: Variable, upper: bool = False, name: str | None = None
) -> Variable:
    """The z with A @ z = x, for a matrix A whose Cholesky factor is y."""
    return append(
        LayerHelper("cholesky_solve", name=name),
        {"X": x, "Y": y},
        {"Out": x.dtype},
        {"upper": upper},
    )


def matrix_power(x: Variable, n: int, name: str | None = None) -> Variable:
    """x @ x @ ... n times; powers of the inverse if n is negative."""
    return append(LayerHelper("matrix_power", name=name), {"X": x}, {"Out": x.dtype}, {"n": n})


def matrix_rank(
    x: Variable, tol: Any = None, hermitian: bool = False, name: str | None = None
) -> Variable:
    """The number of singular values (eigenvalues, if hermitian) of matrices above `tol`, a number
    or a variable: int64.
    """
    slots = {"X": x, "TolTensor": tol if isinstance(tol, Variable) else None}
    attrs = {
        "hermitian": hermitian,
        "use_default_tol": tol is None,
        "tol": 0.0 if tol is None or slots["TolTensor"] is tol else float(tol),
    }
    return append(LayerHelper("matrix_rank", name=name), slots, {"Out": "int64"}, attrs, stop="Out")


def multi_dot(x: list[Variable], name: str | None = None) -> Variable:
    """The product of a list of matrices; the first and the last may be vectors."""
    return append(LayerHelper("multi_dot", name=name), {"X": list(x)}, {"Out": x[0].dtype})


def pinv(
    x: Variable, rcond: Any = 1e-15, hermitian: bool = False, name: str | None = None
) -> Variable:
    """The pseudo-inverse of matrices; singular values of at most rcond times the greatest count as
    0. hermitian: x is symmetric.
    """
    if hermitian:
        values, right = eigh(x)
        left = right
    else:
        left, values, right_t = svd(x)
        right = _transposed(right_t)
    sizes = layers.abs(values)
    cutoff = layers.elementwise_mul(
        layers.reduce_max(sizes, -1, True), layers.fill_constant([1], x.dtype, float(rcond))
    )
    counts = layers.greater_than(
        sizes, layers.elementwise_add(cutoff, layers.full_like(sizes, 0.0))
    )
    inverses = chosen(counts, layers.reciprocal(values), layers.full_like(values, 0.0))
    scaled = layers.elementwise_mul(right, layers.unsqueeze(inverses, [-2]))
    return layers.matmul(scaled, left, transpose_y=True, name=name)


def _transposed(x: Variable) -> Variable:
    return layers.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def cond(x: Variable, p: Any = None, name: str | None = None) -> Variable:
    """The condition numbers of matrices in a norm: the norm of x times that of its inverse.

    p: None or 2 (the greatest singular value over the smallest), -2 (the other way round), "fro",
    "nuc", 1, -1, inf or -inf. Raises FluidValueError for another.
    """
    one_of(p, "p", "cond", (None, 2, -2, "fro", "nuc", 1, -1, float("inf"), float("-inf")))
    if p in (None, 2, -2):
        values = svd(x)[1]
        over, under = layers.reduce_max(values, -1), layers.reduce_min(values, -1)
        return layers.elementwise_div(
            under if p == -2 else over, over if p == -2 else under, name=name
        )
    other = append(LayerHelper("inverse"), {"Input": x}, {"Output": x.dtype})
    return layers.elementwise_mul(_norm(x, p), _norm(other, p), name=name)


def _norm(x: Variable, p: Any) -> Variable:
    """A norm of matrices: the root of the sum of squares, the sum of singular values, or the
    extreme sum of columns or rows.
    """
    if p == "fro":
        return norm(x, "fro", [x.ndim - 2, x.ndim - 1])
    if p == "nuc":
        return layers.reduce_sum(svd(x)[1], -1)
    sums = layers.reduce_sum(layers.abs(x), -2 if abs(p) == 1 else -1)
    return (layers.reduce_max if p > 0 else layers.reduce_min)(sums, -1)


def householder_product(x: Variable, tau: Variable, name: str | None = None) -> Variable:
    """The first columns of the product of the reflections 1 - tau[i] w w^T, where w is column i of
    x below a 1: [..., m, n].

    Raises FluidValueError for fewer rows than columns, or unknown sizes.
    """
    m, n = x.shape[-2:]
    require(
        m >= n > 0,
        "householder_product takes matrices with as many rows as columns or more, not"
        f" {list(x.shape)}",
    )
    lead = list(x.shape[:-2])
    below = append(
        LayerHelper("tril_triu"), {"X": x}, {"Out": x.dtype}, {"diagonal": -1, "lower": True}
    )
    vectors = layers.elementwise_add(below, layers.eye(m, n, dtype=x.dtype), axis=len(lead))
    out = layers.elementwise_add(
        layers.fill_constant([*lead, m, m], x.dtype, 0.0),
        layers.eye(m, dtype=x.dtype),
        axis=len(lead),
    )
    for i in range(min(tau.shape[-1], n)):
        column = layers.slice(vectors, [x.ndim - 1], [i], [i + 1])
        factor = layers.reshape(layers.slice(tau, [tau.ndim - 1], [i], [i + 1]), [*lead, 1, 1])
        projected = layers.matmul(layers.matmul(out, column), column, transpose_y=True)
        out = layers.elementwise_sub(out, layers.elementwise_mul(projected, factor))
    return layers.slice(out, [x.ndim - 1], [0], [n])


def pca_lowrank(
    x: Variable, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> Any:
    """(U, S, V): the q first principal components (default 6, or as many as there are) of the
    columns of matrices [..., m, n], by `niter` refinements of a random basis. center: the columns'
    means are subtracted first.

    Raises FluidValueError for a q above the smaller size of x, or a negative niter.
    """
    m, n = x.shape[-2:]
    count = min(6, m, n) if q is None else typed(q, "q", int, "pca_lowrank")
    require(
        0 <= count <= min(m, n),
        f"pca_lowrank's q lies between 0 and {min(m, n)}, the smaller size of {x.name!r},"
        f" unlike {q}",
    )
    require(niter >= 0, f"pca_lowrank refines 0 times or more, not {niter}")
    rows = layers.elementwise_sub(x, layers.reduce_mean(x, -2, True)) if center else x
    wide = m < n or n > count
    seen = rows if not wide else _transposed(rows)  # whose range the basis spans
    basis = qr(layers.matmul(seen, layers.gaussian_random([seen.shape[-1], count], dtype=x.dtype)))[
        0
    ]
    for _ in range(niter):
        basis = qr(layers.matmul(seen, qr(layers.matmul(seen, basis, transpose_x=True))[0]))[0]
    if wide:
        u, s, right_t = svd(layers.matmul(rows, basis))
        return u, s, layers.matmul(basis, _transposed(right_t))
    u, s, right_t = svd(layers.matmul(basis, rows, transpose_x=True))
    return layers.matmul(basis, u), s, _transposed(right_t)


__all__ = [
    "cholesky_solve", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "lstsq", "lu", "lu_unpack",
    "matrix_power", "matrix_rank", "multi_dot", "pca_lowrank", "pinv", "qr", "slogdet", "solve", "svd", "triangular_solve",
]  # fmt: skip
