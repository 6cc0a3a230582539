"""roi_pool: greatest values within regions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..greatest import first_greatest
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, grad_of, op
from ..traits import knows_rows
from .boxes import images_of, with_images
from .regions import checked, each_region, pooled_spec, rounded


def _bins(first: Any, last: Any, bins: int, size: int) -> Any:
    """Which pixels each bin of the pixels first ... last holds, [R, bins, size]."""
    width = (jnp.maximum(last - first + 1, 1) / bins)[:, None]
    begin, end = (
        f((jnp.arange(bins, dtype=first.dtype) + n) * width) + first[:, None]
        for n, f in ((0, jnp.floor), (1, jnp.ceil))
    )
    pixel = jnp.arange(size, dtype=first.dtype)
    return (pixel >= begin[..., None]) & (pixel < end[..., None])


def _greatest(x: Any, mask: Any, least: Any) -> tuple[Any, Any]:
    """The maximum of the last axis where `mask` [bins, size] holds, and the first place that has it
    (-1: none is more than `least`).
    """
    values = jnp.where(mask & (x[..., None, :] > least), x[..., None, :], -np.inf)
    place = first_greatest(values, -1)
    found = jnp.max(values, -1)
    return found, jnp.where(found > least, place, -1)


def _pooled(x: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
    """The pool of one region of x [C, H, W], and the pixel of each maximum."""
    least = np.asarray(-np.finfo(np.float32).max, x.dtype)
    across, column = _greatest(x, columns, least)  # [C, H, bins]
    best, row = _greatest(jnp.swapaxes(across, 1, 2), rows, least)  # [C, columns' bins, rows' bins]
    best, row = jnp.swapaxes(best, 1, 2), jnp.swapaxes(row, 1, 2)
    at = jnp.take_along_axis(column, jnp.maximum(row, 0), axis=1)
    empty = ~(rows.any(1)[:, None] & columns.any(1))
    return jnp.where(empty, 0, jnp.where(row < 0, least, best)), jnp.where(
        row < 0, -1, row * x.shape[2] + at
    )


def _spec(
    X: Spec,
    ROIs: Spec,
    RoisLod: Spec | None,
    RoisNum: Spec | None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> tuple[Spec, Spec]:
    out = pooled_spec(
        "roi_pool",
        X,
        ROIs,
        X.shape[1] if X.ndim == 4 else -1,
        (pooled_height, pooled_width),
        spatial_scale,
    )
    return out, out.as_dtype("int64")


@op(outs="Out Argmax~", infer=_spec, rows=knows_rows())
def roi_pool(
    X: Array, ROIs: Array | Ragged, RoisLod: Array | None, RoisNum: Array | None, *, pooled_height: int = 1, pooled_width: int = 1,
    spatial_scale: float = 1.0,
):  # fmt: skip
    """Out [R, C, pooled_height, pooled_width] = the maximum of each bin (of whole pixels) of each
    region.

    X [N, C, H, W]; ROIs [R, 4] (x1, y1, x2, y2; times spatial_scale and rounded, both ends in it)
    with a LoD of the N images, or RoisLod [N + 1], its offsets, or RoisNum [N], the number per
    image. Argmax (int64): the pixel, row * W + column, of each maximum; -1 for a bin without
    pixels, which gives 0.
    """
    rois = rows_of(ROIs)
    checked("roi_pool", X, rois, 4, (pooled_height, pooled_width), spatial_scale)
    image = images_of("roi_pool", ROIs, X.shape[0], RoisLod, RoisNum)
    x1, y1, x2, y2 = jnp.moveaxis(rounded(rois * np.asarray(spatial_scale, rois.dtype)), 1, 0)
    out, place = each_region(
        _pooled,
        X,
        image,
        _bins(y1, y2, pooled_height, X.shape[2]),
        _bins(x1, x2, pooled_width, X.shape[3]),
    )
    return with_images(ROIs, out), with_images(ROIs, place.astype(np.int64))


@grad_of("roi_pool", "X ROIs RoisLod RoisNum Argmax", nograd="ROIs RoisLod RoisNum")
def roi_pool_grad(
    X: Array,
    ROIs: Array | Ragged,
    RoisLod: Array | None,
    RoisNum: Array | None,
    Argmax: Array,
    d_Out: Array,
):
    """X@GRAD += Out@GRAD at the pixels that Argmax names."""
    image = images_of("roi_pool_grad", ROIs, X.shape[0], RoisLod, RoisNum)
    n, channels, height, width = X.shape
    place, d = rows_of(Argmax), rows_of(d_Out)
    plane = (
        image[:, None, None, None] * channels + np.arange(channels, dtype=np.int32)[:, None, None]
    )
    at = jnp.where(
        place < 0, n * channels * height * width, plane.astype(np.int64) * (height * width) + place
    )
    return (
        jnp.zeros(X.size, X.dtype)
        .at[at.reshape(-1)]
        .add(d.reshape(-1), mode="drop")
        .reshape(X.shape)
    )
