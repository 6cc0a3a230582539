"""Shared parts of the pools over regions of interest: their declarations, and the map of a function
of an image and a region over all regions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import ShapeError
from ..infer import Spec

AT_ONCE = 1 << 22  # elements of the images copied for regions that are computed together


def checked(
    op: str, x: Any, rois: Any, numbers: int, pooled: tuple[int, int], scale: float
) -> None:
    """Raises ShapeError unless x [N, C, H, W], rois [R, numbers], the pooled sizes are positive and
    the scale is.
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != numbers:
        raise ShapeError(
            f"op '{op}' takes an image [N, C, H, W] and regions [R, {numbers}], not {list(x.shape)}"
            f" and {list(rois.shape)}"
        )
    if min(pooled) < 1 or not scale > 0:
        raise ShapeError(
            f"op '{op}' takes a height and a width from 1 and a spatial_scale above 0, not {pooled}"
            f" and {scale}"
        )


def pooled_spec(
    op: str, x: Spec, rois: Spec, channels: int, pooled: tuple[int, int], scale: float
) -> Spec:
    """The output shape of such a pool: [R, channels, *pooled]."""
    checked(op, x, rois, 4, pooled, scale)
    if x.dtype != rois.dtype:
        raise ShapeError(
            f"op '{op}' takes an image and regions of one dtype, not {x.dtype} and {rois.dtype}"
        )
    return Spec((rois.shape[0], channels, *pooled), x.dtype)


def each_region(fn: Callable[..., Any], x: Any, image: Any, *values: Any) -> Any:
    """fn(x[image[r]], *(v[r] for v in values)) for every region r, stacked. As many as AT_ONCE
    allows are computed together, the rest one after another.
    """
    x = jnp.asarray(x)
    together = max(1, AT_ONCE // max(math.prod(x.shape[1:]), 1))

    def one(given: tuple[Any, ...]) -> Any:
        return fn(x[given[0]], *given[1:])

    if image.shape[0] <= together:
        return jax.vmap(lambda *given: one(given))(image, *values)
    return lax.map(one, (image, *values), batch_size=together)


def rounded(x: Any) -> Any:
    """x rounded to the nearest integer, halves away from zero, as C's round."""
    return jnp.trunc(x + jnp.copysign(np.asarray(0.5, x.dtype), x))


def apart(x: Any) -> Any:
    """x, not fused by XLA with later ops, so that a product is rounded before a sum, as in 1.8.5."""
    return lax.optimization_barrier(x)


def spans(start: Any, size: Any, count: int) -> tuple[Any, Any]:
    """The beginning of each of `count` equal bins of [start, start + size), and their width: [R,
    count] and [R].
    """
    width = size / count
    return apart(jnp.arange(count, dtype=start.dtype) * width[:, None]) + start[:, None], width
