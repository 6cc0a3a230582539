"""Products of matrices and vectors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError, UnsupportedError
from .broadcast import same_rows, same_shape
from .conditions import attribute
from .infer import Spec
from .math import fits, one_shape
from .registry import Array, Ints, grad_of, op
from .traits import Attrs, Shapes, mixes, row_wise


def _infer_mul(X: Spec, Y: Spec, *, x_num_col_dims: int, y_num_col_dims: int) -> Spec:
    inner = X.shape[x_num_col_dims:], Y.shape[:y_num_col_dims]
    if min(x_num_col_dims, y_num_col_dims) < 1:
        raise ShapeError(
            "mul takes x_num_col_dims and y_num_col_dims of 1 or more, not"
            f" {x_num_col_dims} and {y_num_col_dims}"
        )
    if X.ndim <= x_num_col_dims or Y.ndim <= y_num_col_dims:
        raise ShapeError(
            f"mul splits X{list(X.shape)} at {x_num_col_dims} and Y{list(Y.shape)} at"
            f" {y_num_col_dims}"
        )
    if -1 not in inner[0] + inner[1] and math.prod(inner[0]) != math.prod(inner[1]):
        raise ShapeError(
            f"mul sums over {list(inner[0])} of X and {list(inner[1])} of Y, which differ in size"
        )
    return Spec(X.shape[:x_num_col_dims] + Y.shape[y_num_col_dims:], X.dtype)


def _flat(x: Any, split: int) -> Any:
    """The array as a matrix: dimensions before `split` are rows."""
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))


@op(
    outs="Out",
    grad="X Y",
    infer=_infer_mul,
    rows=row_wise("X", when=attribute("x_num_col_dims", lambda n: n >= 1)),
    heavy=True,
)
def mul(X: Array, Y: Array, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1):
    """Out = flatten(X) @ flatten(Y), with the shape X[:x_num_col_dims] + Y[y_num_col_dims:].

    X's first `x_num_col_dims` dimensions are the rows of its matrix, and likewise for Y.
    """
    out = _flat(X, x_num_col_dims) @ _flat(Y, y_num_col_dims)
    return out.reshape(X.shape[:x_num_col_dims] + Y.shape[y_num_col_dims:])


@grad_of(
    "mul_grad", "X Y", wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD", "DDY": "Y@GRAD@GRAD"},
    gives={"DDOut": "Out@GRAD", "DX": "X", "DY": "Y"}, needs={"DX": "DDY", "DY": "DDX"},
)  # fmt: skip
def mul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None,
    DDY: Array | None,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
):
    """DDOut = DDX @ Y + X @ DDY, DX = DOut @ DDY.T, DY = DDX.T @ DOut, all flattened as in mul."""
    x, y, d = (
        _flat(X, x_num_col_dims),
        _flat(Y, y_num_col_dims),
        DOut.reshape(math.prod(X.shape[:x_num_col_dims]), -1),
    )
    ddx = jnp.zeros_like(x) if DDX is None else DDX.reshape(x.shape)
    ddy = jnp.zeros_like(y) if DDY is None else DDY.reshape(y.shape)
    return (
        (ddx @ y + x @ ddy).reshape(DOut.shape),
        (d @ ddy.T).reshape(X.shape),
        (ddx.T @ d).reshape(Y.shape),
    )


def _matrix_shape(shape: tuple[int, ...], first: bool, transpose: bool) -> tuple[int, ...]:
    """The shape that matmul multiplies: a vector X is one row, a vector Y one column, before they
    are transposed.
    """
    if len(shape) == 1:
        shape = (1, *shape) if first else (*shape, 1)
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


def matmul_shape(
    x: tuple[int, ...], y: tuple[int, ...], transpose_X: bool, transpose_Y: bool, heads: int = 1
) -> tuple[int, ...]:
    """The shape of matmul's Out; -1 in and out is an unknown dimension. Raises ShapeError."""
    a, b = _matrix_shape(x, True, transpose_X), _matrix_shape(y, False, transpose_Y)
    if heads > 1:
        b = (*b[:-1], _columns_of_heads(a[-1], b[-2], b[-1], heads, f"X{list(x)} and Y{list(y)}"))
    elif not fits(a[-1], b[-2]):
        raise ShapeError(f"matmul sums over {a[-1]} of X{list(x)} and {b[-2]} of Y{list(y)}")
    batches = a[:-2], b[:-2]
    if (
        all(batches)
        and -1 not in batches[0] + batches[1]
        and math.prod(batches[0]) != math.prod(batches[1])
    ):
        raise ShapeError(f"matmul takes as many matrices in X{list(x)} as in Y{list(y)}, or one")
    rows, columns = (
        a[-2:-1] * (len(x) > 1 or transpose_X),
        b[-1:] * (len(y) > 1 or transpose_Y or heads > 1),
    )
    return (batches[0] or batches[1]) + rows + columns or (1,)


def _columns_of_heads(width: int, height: int, columns: int, heads: int, given: str) -> int:
    """The number of columns of Out if `width` columns of X are split into heads, and Y [height,
    columns] by rows or by columns.
    """
    if -1 in (width, height):
        return -1  # whether Y is split by rows or by columns is known when it runs
    if width % heads:
        raise ShapeError(
            f"matmul cuts the {width} columns of X into head_number = {heads} equal parts, which"
            f" {given} do not have"
        )
    if width == height:
        return columns if columns == -1 else heads * columns
    if width // heads != height or (columns != -1 and columns % heads):
        raise ShapeError(
            f"matmul with head_number = {heads} takes {width} rows in Y, or {width // heads} and a"
            f" multiple of {heads} columns, not {given}"
        )
    return columns


def _by_heads(x: Array, y: Array, heads: int) -> Array:
    """Products of the columns of x, in `heads` parts, with parts of y (its rows, else its columns),
    side by side.
    """
    parts = jnp.split(y, heads, -2 if x.shape[-1] == y.shape[-2] else -1)
    return jnp.concatenate(
        [jnp.matmul(a, b) for a, b in zip(jnp.split(x, heads, -1), parts, strict=True)], -1
    )


def _infer_matmul(
    X: Spec, Y: Spec, *, transpose_X: bool, transpose_Y: bool, head_number: int, **_: Any
) -> Spec:
    return Spec(matmul_shape(X.shape, Y.shape, transpose_X, transpose_Y, head_number), X.dtype)


def _multiplied(attrs: Attrs, shapes: Shapes) -> bool:
    """Each row of X is multiplied by one matrix, or by its own row of Y."""
    x, y = shapes["X"], shapes["Y"]
    if "Y" in shapes["ragged"]:
        return len(x) == len(y) > 2
    return len(y) == 2 and (len(x) > 2 or (len(x) == 2 and not attrs["transpose_X"]))


@op(
    outs="Out",
    grad="X Y",
    infer=_infer_matmul,
    rows=row_wise("X", "Y", beside="Y", when=_multiplied),
    heavy=True,
)
def matmul(
    X: Array, Y: Array, *, transpose_X: bool = False, transpose_Y: bool = False, alpha: float = 1.0,
    head_number: int = 1, fused_reshape_Out: Ints = (), fused_transpose_Out: Ints = (),
    Scale_x: float = 1.0, Scale_y: float = 1.0,
):  # fmt: skip
    """Out = alpha * X @ Y over the last two dimensions; leading ones count matrices.

    If both have leading dimensions, their products are equal and Out has X's; a single matrix is
    used for all of the other's. A vector X is one row and a vector Y one column; Out lacks that
    dimension unless they are transposed. Scale_x and Scale_y belong to Paddle's int8 kernels.

    head_number = H > 1 splits the columns of X [M, K] into H parts. If Y is [K, N], its rows are
    split too and Out [M, H * N] is alpha * X_h @ Y_h side by side, which 1.8.5 declares as [M, N];
    if Y is [K / H, N], its columns are split and Out is [M, N]. The gradient is that of this
    product; 1.8.5's ignores H and reads other memory. Numbers below 2 mean one head, as there.
    Raises ShapeError for sizes that H does not divide.
    """
    if fused_reshape_Out or fused_transpose_Out:
        raise UnsupportedError(
            "matmul's fused_*_Out are for Paddle's MKL kernels; use reshape, transpose"
        )
    shape = matmul_shape(X.shape, Y.shape, transpose_X, transpose_Y, head_number)
    x, y = X.reshape(1, -1) if X.ndim == 1 else X, Y.reshape(-1, 1) if Y.ndim == 1 else Y
    if x.ndim > 2 and y.ndim > 2:
        y = y.reshape(x.shape[:-2] + y.shape[-2:])
    x, y = x.mT if transpose_X else x, y.mT if transpose_Y else y
    out = (_by_heads(x, y, head_number) if head_number > 1 else jnp.matmul(x, y)).reshape(shape)
    return out if alpha == 1 else out * alpha


def _infer_bmm(X: Spec, Y: Spec) -> Spec:
    if (
        X.ndim != 3
        or Y.ndim != 3
        or not fits(X.shape[0], Y.shape[0])
        or not fits(X.shape[2], Y.shape[1])
    ):
        raise ShapeError(
            f"bmm takes [B, M, K] and [B, K, N], not {list(X.shape)} and {list(Y.shape)}"
        )
    return Spec((max(X.shape[0], Y.shape[0]), X.shape[1], Y.shape[2]), X.dtype)


@op(outs="Out", grad="X Y", infer=_infer_bmm, rows=row_wise("X", "Y"), heavy=True)
def bmm(X: Array, Y: Array):
    """Out[b] = X[b] @ Y[b]; X [B, M, K], Y [B, K, N]."""
    same_rows("bmm", X=X, Y=Y)
    return jnp.matmul(X, Y)


def _infer_dot(X: Spec, Y: Spec) -> Spec:
    if X.ndim > 2:
        raise ShapeError(f"dot takes vectors or batches of them, not {list(X.shape)}")
    return Spec((*one_shape("dot", X.shape, Y.shape)[:-1], 1), X.dtype)


@op(outs="Out", grad="X Y", infer=_infer_dot, rows=row_wise("X", "Y", lod=None))
def dot(X: Array, Y: Array):
    """Out[..., 0] = sum of X * Y over the last dimension; X and Y are vectors, or matrices of
    vectors.
    """
    same_shape("dot", X=X, Y=Y)
    return jnp.sum(X * Y, -1, dtype=X.dtype, keepdims=True)


@op(outs="Out", grad="Input X Y", rows=mixes("Input"))
def addmm(Input: Array, X: Array, Y: Array, *, Alpha: float = 1.0, Beta: float = 1.0):
    """Out = Alpha * X @ Y + Beta * Input, where Input broadcasts to the product's shape."""
    return Alpha * (X @ Y) + Beta * Input


@op(outs="Out", grad="X Y", rows=mixes())
def kron(X: Array, Y: Array):
    """Out = the Kronecker product: every element of X times all of Y."""
    return jnp.kron(X, Y)


FIRST_OF_SIZE_3 = 9  # Paddle's default for `dim`


def _cross_axis(shape: tuple[int, ...], dim: int) -> int:
    axis = (
        next((i for i, n in enumerate(shape) if n == 3), len(shape))
        if dim == FIRST_OF_SIZE_3
        else dim
    )
    if not -len(shape) <= axis < len(shape) or not fits(shape[axis], 3):
        raise ShapeError(
            f"cross needs a dimension of size 3, which {list(shape)} does not have there"
        )
    return axis


def _infer_cross(X: Spec, Y: Spec, *, dim: int) -> Spec:
    shape = one_shape("cross", X.shape, Y.shape)
    if dim != FIRST_OF_SIZE_3 or -1 not in shape:
        _cross_axis(shape, dim)
    return Spec(shape, X.dtype)


@op(outs="Out", grad="X Y", infer=_infer_cross, rows=mixes("X"))
def cross(X: Array, Y: Array, *, dim: int = FIRST_OF_SIZE_3):
    """Out = X x Y, the vector product along `dim` (default: the first dimension of size 3)."""
    same_shape("cross", X=X, Y=Y)
    return jnp.cross(X, Y, axis=_cross_axis(X.shape, dim))


def _bilinear(X: Array, Y: Array, Weight: Array) -> Array:
    return jnp.einsum("bm,imn,bn->bi", X, Weight, Y)


@op(outs="Out", rows=row_wise("X", "Y"), heavy=True)
def bilinear_tensor_product(X: Array, Y: Array, Weight: Array, Bias: Array | None):
    """Out[b, i] = X[b] @ Weight[i] @ Y[b] + Bias[0, i]; Weight [I, M, N]."""
    same_rows("bilinear_tensor_product", X=X, Y=Y)
    out = _bilinear(X, Y, Weight)
    return out if Bias is None else out + Bias


@grad_of("bilinear_tensor_product", "X Y Weight")
def bilinear_tensor_product_grad(X: Array, Y: Array, Weight: Array, d_Out: Array):
    """X@GRAD, Y@GRAD, Weight@GRAD = the product's; Bias@GRAD = sum of Out@GRAD over the batch."""
    return *jax.vjp(_bilinear, X, Y, Weight)[1](d_Out), d_Out.sum(0, keepdims=True)


@op(outs="Out", grad="Input", rows=mixes())
def trace(
    Input: Array,
    *,
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
    axis1: int = -2,
    axis2: int = -1,
):
    """Out = sum of the diagonal of the planes dim1, dim2 (axis1, axis2 in later Paddles); [1] for a
    matrix.
    """
    one, other = (axis1, axis2) if (dim1, dim2) == (-2, -1) else (dim1, dim2)
    out = jnp.trace(Input, offset, one, other, dtype=Input.dtype)
    return out if out.ndim else out.reshape(1)


@op(outs="Out", grad="X Y", rows=row_wise("X", "Y"))
def conv_shift(X: Array, Y: Array):
    """Out[b, i] = sum over k of X[b, (i + k - (N - 1) / 2) mod M] * Y[b, k]; X [B, M], Y [B, N], N
    odd.
    """
    if X.ndim != 2 or Y.ndim != 2 or Y.shape[1] % 2 == 0 or Y.shape[1] > X.shape[1]:
        raise ShapeError(
            f"conv_shift takes [B, M] and [B, N], N odd and at most M, not {list(X.shape)},"
            f" {list(Y.shape)}"
        )
    size, taps = X.shape[1], Y.shape[1]
    at = (np.arange(size)[:, None] + np.arange(taps) - (taps - 1) // 2) % size
    return jnp.einsum("bmn,bn->bm", X[:, at], Y)


def _infer_matmul_v2(X: Spec, Y: Spec, *, trans_x: bool, trans_y: bool) -> Spec:
    x, y = (list(s.shape) for s in (X, Y))
    if trans_x and len(x) > 1:
        x[-2:] = x[:-3:-1]
    if trans_y and len(y) > 1:
        y[-2:] = y[:-3:-1]
    if not fits(x[-1], y[-2] if len(y) > 1 else y[0]):
        raise ShapeError(f"matmul_v2 cannot multiply X{list(X.shape)} by Y{list(Y.shape)}")
    batch = [_broadcast(n, m) for n, m in itertools.zip_longest(x[-3::-1], y[-3::-1], fillvalue=1)][
        ::-1
    ]
    return Spec(
        (*batch, *(x[-2:-1] if len(x) > 1 else []), *(y[-1:] if len(y) > 1 else [])), X.dtype
    )


def _broadcast(n: int, m: int) -> int:
    """One dimension of two that are broadcast; -1 is unknown."""
    if 1 in (n, m):
        return m if n == 1 else n
    if not fits(n, m):
        raise ShapeError(f"matmul_v2 cannot broadcast {n} matrices with {m}")
    return max(n, m)


def _multiplied_v2(attrs: Attrs, shapes: Shapes) -> bool:
    """Each row of X is multiplied by the same matrices, or by its own row of Y."""
    x, y = shapes["X"], shapes["Y"]
    if "Y" in shapes["ragged"]:
        return len(x) == len(y) > 2
    return len(y) < max(len(x), 3) and (len(x) > 2 or (len(x) == 2 and not attrs["trans_x"]))


@op(
    outs="Out",
    grad="X Y",
    infer=_infer_matmul_v2,
    rows=row_wise("X", "Y", beside="Y", when=_multiplied_v2),
    heavy=True,
)
def matmul_v2(X: Array, Y: Array, *, trans_x: bool = False, trans_y: bool = False):
    """Out = X @ Y over the last two dimensions, leading ones broadcast as in NumPy; trans_x,
    trans_y swap the last two.

    A vector X is one row and a vector Y one column, and Out lacks that dimension.
    """
    x = jnp.swapaxes(X, -1, -2) if trans_x and X.ndim > 1 else X
    y = jnp.swapaxes(Y, -1, -2) if trans_y and Y.ndim > 1 else Y
    return jnp.matmul(x, y)
