"""psroi_pool and prroi_pool: means of regions, over whole pixels with a channel for each bin, and
by exact integrals between pixels.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, op
from ..traits import knows_rows
from .boxes import images_of, with_images
from .regions import apart, checked, each_region, pooled_spec, rounded, spans


def _whole(start: Any, end: Any, bins: int, size: int) -> Any:
    """Which pixels each bin of [start, end) touches, [R, bins, size]."""
    extent = jnp.maximum(end - start, np.asarray(0.1, start.dtype))
    width = (extent / bins)[:, None]
    begin, stop = (
        f(apart(width * (jnp.arange(bins, dtype=start.dtype) + n)) + start[:, None])[..., None]
        for n, f in ((0, jnp.floor), (1, jnp.ceil))
    )
    pixel = jnp.arange(size, dtype=start.dtype)
    return (pixel >= begin) & (pixel < stop)


def _psroi_checked(x: Any, output_channels: int, pooled: tuple[int, int]) -> None:
    channels = output_channels * pooled[0] * pooled[1]
    if x.ndim == 4 and (output_channels < 1 or x.shape[1] not in (-1, channels)):
        raise ShapeError(
            "op 'psroi_pool' takes X of output_channels * pooled_height * pooled_width ="
            f" {channels} channels, not {x.shape[1]}"
        )


def _psroi_spec(
    X: Spec,
    ROIs: Spec,
    RoisNum: Spec | None,
    *,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> Spec:
    _psroi_checked(X, output_channels, (pooled_height, pooled_width))
    return pooled_spec(
        "psroi_pool", X, ROIs, output_channels, (pooled_height, pooled_width), spatial_scale
    )


@op(
    outs="Out",
    grad="X ROIs RoisNum",
    nograd="ROIs RoisNum",
    infer=_psroi_spec,
    rows=knows_rows(),
)
def psroi_pool(
    X: Array, ROIs: Array | Ragged, RoisNum: Array | None, *, output_channels: int, spatial_scale: float = 1.0, pooled_height: int = 1,
    pooled_width: int = 1,
):  # fmt: skip
    """Out [R, output_channels, pooled_height, pooled_width] = the mean of the pixels that a bin of
    a region touches, 0 for none.

    Bin (c, i, j) reads channel (c * pooled_height + i) * pooled_width + j of X [N, channels, H, W].
    ROIs [R, 4] (x1, y1, x2, y2; rounded, both ends in it, then times spatial_scale) with a LoD of
    the N images, or RoisNum [N], the number per image.
    """
    rois, pooled = rows_of(ROIs), (pooled_height, pooled_width)
    checked("psroi_pool", X, rois, 4, pooled, spatial_scale)
    _psroi_checked(X, output_channels, pooled)
    image = images_of("psroi_pool", ROIs, X.shape[0], None, RoisNum)
    scale = np.asarray(spatial_scale, rois.dtype)
    whole = rounded(rois)
    start, end = whole[:, :2] * scale, (whole[:, 2:] + 1) * scale
    rows = _whole(start[:, 1], end[:, 1], pooled_height, X.shape[2])
    columns = _whole(start[:, 0], end[:, 0], pooled_width, X.shape[3])
    planes = X.reshape(X.shape[0], output_channels, *pooled, *X.shape[2:])

    def mean(x: Any, row: Any, column: Any) -> Any:
        inside = row[:, None, :, None] & column[:, None, :]
        total = jnp.sum(jnp.where(inside, x, 0), (-2, -1))
        count = row.sum(1)[:, None] * column.sum(1)
        return jnp.where(count > 0, total / jnp.maximum(count, 1).astype(x.dtype), 0)

    return with_images(ROIs, each_region(mean, planes, image, rows, columns))


def _integral(begin: Any, end: Any) -> Any:
    """The integral from begin to end of max(0, 1 - |t|): length times mean on each side of 0, which
    stays precise for short intervals.
    """
    total = jnp.zeros((), begin.dtype)
    for low, high in ((-1, 0), (0, 1)):
        a, b = jnp.clip(begin, low, high), jnp.clip(end, low, high)
        total = total + (b - a) * (1 - jnp.abs(a + b) / 2)
    return total


def _exact(start: Any, extent: Any, bins: int, size: int) -> Any:
    """The integral of each pixel's share over each bin, [R, bins, size]."""
    begin, width = spans(start, extent, bins)
    pixel = jnp.arange(size, dtype=start.dtype)
    return _integral(begin[..., None] - pixel, (begin + width[:, None])[..., None] - pixel)


def _prroi_spec(
    X: Spec,
    ROIs: Spec,
    BatchRoINums: Spec | None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Spec:
    return pooled_spec(
        "prroi_pool",
        X,
        ROIs,
        X.shape[1] if X.ndim == 4 else -1,
        (pooled_height, pooled_width),
        spatial_scale,
    )


@op(
    outs="Out",
    grad="X ROIs BatchRoINums Out",
    nograd="BatchRoINums",
    infer=_prroi_spec,
    rows=knows_rows(),
)
def prroi_pool(
    X: Array,
    ROIs: Array | Ragged,
    BatchRoINums: Array | None,
    *,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
):
    """Out [R, C, pooled_height, pooled_width] = the exact mean, interpolated between pixels, of
    each bin of each region of X [N, C, H, W].

    ROIs [R, 4] (x1, y1, x2, y2; times spatial_scale) with a LoD of the N images, or BatchRoINums
    [N], the number per image. A bin without extent gives 0.
    """
    rois = rows_of(ROIs)
    checked("prroi_pool", X, rois, 4, (pooled_height, pooled_width), spatial_scale)
    offsets = (
        None
        if BatchRoINums is None
        else jnp.concatenate(
            [jnp.zeros(1, np.int64), jnp.cumsum(rows_of(BatchRoINums).reshape(-1))]
        )
    )
    image = images_of("prroi_pool", ROIs, X.shape[0], offsets)
    scaled = rois * np.asarray(spatial_scale, rois.dtype)
    sizes = jnp.maximum(scaled[:, 2:] - scaled[:, :2], 0)
    rows = _exact(scaled[:, 1], sizes[:, 1], pooled_height, X.shape[2])
    columns = _exact(scaled[:, 0], sizes[:, 0], pooled_width, X.shape[3])
    size = (sizes[:, 1] / pooled_height) * (sizes[:, 0] / pooled_width)

    def mean(x: Any, row: Any, column: Any, size: Any) -> Any:
        total = jnp.einsum(
            "chq,ph->cpq",
            jnp.einsum("chw,qw->chq", x, column, precision="highest"),
            row,
            precision="highest",
        )
        return jnp.where(size > 0, total / jnp.where(size > 0, size, 1), 0)

    return with_images(ROIs, each_region(mean, X, image, rows, columns, size))
