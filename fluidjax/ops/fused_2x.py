"""Fused ops of Paddle 2 and 3, computed by unfused ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .registry import Array, Float64, Longs, op
from .traits import mixes


@op(outs="Out", grad="X Mask", nograd="Mask", rows=mixes())
def fused_softmax_mask(X: Array, Mask: Array):
    """Out = softmax(X + Mask) along the last axis."""
    return jax.nn.softmax(X + Mask.astype(X.dtype), -1)


@op(outs="Out", grad="X", rows=mixes())
def fused_softmax_mask_upper_triangle(X: Array):
    """Out = softmax along the last axis of X [..., n, n], ignoring elements above the diagonal,
    where Out is 0.
    """
    below = np.tril(np.ones(X.shape[-2:], bool))
    return jnp.where(below, jax.nn.softmax(jnp.where(below, X, -np.inf), -1), 0)


@op(outs="y invvar", grad="x scale", grad_outs="y", rows=mixes())
def rms_norm(
    x: Array, scale: Array | None, *, normalized_shape: Longs = (), epsilon: Float64 = 1e-5
):
    """y = x * invvar * scale, invvar = 1 / sqrt(mean of x^2 + epsilon) over the last axes, those of
    normalized_shape.
    """
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    if tuple(x.shape[axes[0] :] if axes else ()) != tuple(normalized_shape):
        raise ShapeError(
            f"rms_norm: x {list(x.shape)} does not end with normalized_shape"
            f" {list(normalized_shape)}"
        )
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    factor = jax.lax.rsqrt(jnp.mean(wide * wide, axes, keepdims=True) + epsilon)
    y = wide * factor
    y = y if scale is None else y * scale.reshape(normalized_shape)
    return y.astype(x.dtype), factor.reshape(x.shape[: x.ndim - len(axes)])
