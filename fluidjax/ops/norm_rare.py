"""Other normalisations: norm, lrn, affine_channel, data_norm, spectral_norm."""

from __future__ import annotations

import operator
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import ShapeError
from .conditions import inner_axis
from .norm import channels_of
from .ragged import Ragged, like, rows_of
from .registry import Array, grad_of, op
from .traits import knows_rows, mixes, row_wise


@op(
    outs="Norm~ Out",
    rows=row_wise("X", when=inner_axis("axis"), lod=None),
)
def norm(X: Array, *, axis: int, epsilon: float = 1e-10):
    """Out = X / Norm, Norm = sqrt(sum(X^2, axis) + epsilon) with the axis kept."""
    size = jnp.sqrt(jnp.sum(X * X, axis, keepdims=True) + epsilon)
    return size, X / size


@grad_of("norm", "X Norm")
def norm_grad(X, Norm, d_Out, *, axis):
    """X@GRAD = (Out@GRAD - X * sum(X * Out@GRAD, axis) / Norm^2) / Norm."""
    if d_Out is None:
        return None
    return (d_Out - X * (jnp.sum(X * d_Out, axis, keepdims=True) / (Norm * Norm))) / Norm


def _window_sum(x: Array, before: int, after: int, axis: int) -> jax.Array:
    """The sum of the cells from `before` before to `after` after each one along an axis."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    padded = jnp.pad(x, widths)
    parts = (
        lax.slice_in_dim(padded, i, i + x.shape[axis], axis=axis) for i in range(before + after + 1)
    )
    return reduce(operator.add, parts)


@op(
    outs="Out MidOut",
    rows=row_wise("X", shared="Out"),
)
def lrn(
    X: Array, *, n: int = 5, k: float = 2.0, alpha: float = 1e-4, beta: float = 0.75, data_format: str = "AnyLayout",
    is_test: bool = False,
):  # fmt: skip
    """Out = X * MidOut^-beta, MidOut = k + alpha * the sum of X^2 over the n channels around each.

    X [N, C, H, W], or [N, H, W, C] for data_format "NHWC".
    """
    if X.ndim != 4:
        raise ShapeError(f"lrn takes 4 dimensions, not {list(X.shape)}")
    before = (n - 1) // 2
    mid = k + alpha * _window_sum(X * X, before, n - 1 - before, 3 if data_format == "NHWC" else 1)
    return X * mid**-beta, mid


@grad_of("lrn", "X Out MidOut", grad_outs="Out")
def lrn_grad(X, Out, MidOut, d_Out, *, n, alpha, beta, data_format):
    """X@GRAD = Out@GRAD * MidOut^-beta - 2 * alpha * beta * X * the sum of Out@GRAD * Out / MidOut
    over the windows.
    """
    if d_Out is None:
        return None
    before = (n - 1) // 2
    around = _window_sum(
        d_Out * Out / MidOut, n - 1 - before, before, 3 if data_format == "NHWC" else 1
    )
    return d_Out * MidOut**-beta - 2 * alpha * beta * X * around


@op(outs="Out", rows=row_wise("X"))
def affine_channel(X: Array, Scale: Array, Bias: Array, *, data_layout: str = "AnyLayout"):
    """Out = X * Scale + Bias for each channel; X [N, C, ...] or [N, ..., C] by data_layout, Scale
    and Bias [C].
    """
    ch = channels_of(X, data_layout)
    return X * ch.spread(Scale) + ch.spread(Bias)


@grad_of("affine_channel", "X Scale")
def affine_channel_grad(X, Scale, d_Out, *, data_layout):
    """X@GRAD = Out@GRAD * Scale, Scale@GRAD = sum(Out@GRAD * X), Bias@GRAD = sum(Out@GRAD)."""
    if d_Out is None:
        return None, None, None
    ch = channels_of(X, data_layout)
    return d_Out * ch.spread(Scale), ch.sum(d_Out * X), ch.sum(d_Out)


_PRESENT = 1e-7  # a slot is absent from a row if its first value is smaller


def _present(x: Array, slot_dim: int) -> jax.Array:
    """[N, C]: whether each value's slot (slot_dim neighbouring columns) is present in its row."""
    if x.shape[1] % slot_dim:
        raise ShapeError(f"{x.shape[1]} columns do not divide into slots of {slot_dim}")
    return jnp.repeat(jnp.abs(x[:, ::slot_dim]) >= _PRESENT, slot_dim, axis=1)


@op(outs="Y Means~ Scales~", rows=knows_rows(Y="X", each=""))
def data_norm(
    scale_w: Array | None, bias: Array | None, X: Array | Ragged, BatchSize: Array, BatchSum: Array, BatchSquareSum: Array, *,
    epsilon: float = 1e-4, slot_dim: int = -1, summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False, data_layout: str = "NCHW", sync_stats: bool = False,
):  # fmt: skip
    """Y = (X - Means) * Scales (* scale_w + bias).

    Means = BatchSum / BatchSize, Scales = sqrt(BatchSize / BatchSquareSum). X [N, C], all others
    [C]. With slot_dim > 0, a slot of that many columns gives 0 in rows where its first value is 0.
    """
    means, scales, x = BatchSum / BatchSize, jnp.sqrt(BatchSize / BatchSquareSum), rows_of(X)
    y = (x - means) * scales
    if enable_scale_and_shift:
        if scale_w is None or bias is None:
            raise ShapeError("data_norm with enable_scale_and_shift=True needs scale_w and bias")
        y = y * scale_w + bias
    return like(X, jnp.where(_present(x, slot_dim), y, 0) if slot_dim > 0 else y), means, scales


@grad_of("data_norm", "X scale_w bias Means Scales")
def data_norm_grad(
    X, scale_w, bias, Means, Scales, d_Y, *, epsilon, slot_dim, enable_scale_and_shift
):
    """X@GRAD = Y@GRAD * Scales (* scale_w); the gradients of the three sums are this batch's
    contributions.

    BatchSize@GRAD = N, BatchSum@GRAD = sum(X), BatchSquareSum@GRAD = sum((X - Means)^2) + N *
    epsilon, over the rows. With slot_dim > 0, rows without the slot do not count (X@GRAD is masked
    only with scale_w), and N, the sum and the sum of squares are divided by N.
    """
    if d_Y is None:
        return None, None, None, None, None, None
    rows, d_Y = rows_of(X), rows_of(d_Y)
    here = _present(rows, slot_dim) if slot_dim > 0 else None
    true = jnp.ones((rows.shape[0], 1), bool) if here is None else here
    if isinstance(X, Ragged) and X.padded:
        true = true & X.kept()[:, None]
    x, d = jnp.where(true, rows, 0), jnp.where(true, rows - Means, 0)
    d_scale_w = d_bias = None
    d_x = d_Y * Scales
    if enable_scale_and_shift:
        d_y = d_Y if here is None else jnp.where(here, d_Y, 0)
        d_x = d_y * Scales * scale_w
        d_scale_w, d_bias = jnp.sum(d_Y * d, 0) * Scales, jnp.sum(d_y, 0)
    total, squares = jnp.sum(x, 0), jnp.sum(d * d, 0)
    if here is None:
        size = jnp.broadcast_to(jnp.sum(true), Means.shape).astype(rows.dtype)
        return d_scale_w, d_bias, d_x, size, total, squares + size * epsilon
    size = jnp.sum(true, 0).astype(rows.dtype)
    share = jnp.maximum(size, 1)
    return (
        d_scale_w,
        d_bias,
        d_x,
        jnp.minimum(size, 1),
        total / share,
        squares / share + size * epsilon,
    )


def _as_matrix(w: Array, dim: int) -> jax.Array:
    """[h, rest], the axis `dim` first."""
    return jnp.moveaxis(w, dim, 0).reshape(w.shape[dim], -1)


def _singular(
    matrix: Array, U: Array, V: Array, power_iters: int, eps: float
) -> tuple[Array, Array, jax.Array]:
    """Both singular vectors after some power iterations, and the singular value."""
    u, v = U.reshape(-1), V.reshape(-1)
    for _ in range(power_iters):
        v = matrix.T @ u
        v = v / (jnp.sqrt(jnp.sum(v * v)) + eps)
        u = matrix @ v
        u = u / (jnp.sqrt(jnp.sum(u * u)) + eps)
    return u, v, u @ (matrix @ v)


@op(outs="Out", rows=mixes("Weight"))
def spectral_norm(
    Weight: Array, U: Array, V: Array, *, dim: int = 0, power_iters: int = 1, eps: float = 1e-12
):
    """Out = Weight / sigma, where sigma is the largest singular value of Weight as a matrix [h, w]
    whose rows are the axis dim.

    U [h] and V [w] start the power iterations; they are not updated.
    """
    if Weight.ndim < 2:
        raise ShapeError(
            f"spectral_norm takes a Weight of two or more dimensions, not {list(Weight.shape)}"
        )
    _, _, sigma = _singular(_as_matrix(Weight, dim), U, V, power_iters, eps)
    return Weight / sigma


@grad_of("spectral_norm", "Weight U V", nograd="U V")
def spectral_norm_grad(Weight, U, V, d_Out, *, dim, power_iters, eps):
    """Weight@GRAD = Out@GRAD * (1 - u v^T * sum(Weight) / sigma) / sigma, element by element.

    That is what Paddle computes; the derivative would be (Out@GRAD - u v^T * sum(Out@GRAD * Out)) /
    sigma.
    """
    if d_Out is None:
        return None
    matrix = _as_matrix(Weight, dim)
    u, v, sigma = _singular(matrix, U, V, power_iters, eps)
    grad = _as_matrix(d_Out, dim) * (1 - jnp.outer(u, v) * (jnp.sum(matrix) / sigma)) / sigma
    moved = [Weight.shape[dim], *(n for a, n in enumerate(Weight.shape) if a != dim)]
    return jnp.moveaxis(grad.reshape(moved), 0, dim)
