"""roi_align: averages of samples within regions, interpolated between pixels.

The weights of pixels are products of row and column weights, so a region takes two small matrix
products.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...ir.desc import OpDesc
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, op
from ..traits import knows_rows
from .boxes import images_of, with_images
from .regions import apart, checked, each_region, pooled_spec

# the largest number of places within a pixel of one, if a bin's places lie more than half a pixel
# apart
REACH = 6


def _weights(places: Any, count: Any, size: int, pixel: Any) -> Any:
    """The weight of each pixel of a row of `size` at each of `places`: 1 at the pixel, falling to 0
    at the next, and 0 beyond the row.
    """
    inside = (places >= -1) & (places <= size) & count
    at = jnp.maximum(places, 0)
    low = jnp.minimum(jnp.floor(at), size - 1)
    share = jnp.where(low >= size - 1, 0, at - low)
    weight = jnp.where(low == pixel, 1 - share, jnp.where(low + 1 == pixel, share, 0))
    return jnp.where(inside, weight, 0)


def _number(width: Any, ratio: int) -> Any:
    """The number of places of a bin of this width along an axis: `ratio`, else its number of
    pixels.
    """
    return jnp.full_like(width, ratio) if ratio > 0 else jnp.ceil(width)


def _axis(start: Any, extent: Any, bins: int, ratio: int, size: int, number: Any) -> Any:
    """The sum of each pixel's shares of the places in each bin, [R, bins, size]; number: places of
    a bin, `ratio` of them if above 0.
    """
    kind = start.dtype
    width = (extent / bins)[:, None, None, None]
    base = start[:, None, None, None] + apart(jnp.arange(bins, dtype=kind)[:, None, None] * width)
    pixel = jnp.arange(size, dtype=kind)[:, None]
    half = np.asarray(0.5, kind)
    if ratio > 0:
        index = jnp.arange(ratio, dtype=kind)
    else:  # only the places near the pixel, since the number per bin is unknown
        apiece = jnp.where(width > 0, number / jnp.where(width > 0, width, 1), 0)
        first = jnp.maximum(jnp.floor((pixel - 1 - base) * apiece - half), 0)
        index = first + jnp.arange(REACH, dtype=kind)
    places = base + apart((index + half) * width / jnp.maximum(number, 1))
    return jnp.sum(_weights(places, index < number, size, pixel), -1)


def _spec(
    X: Spec, ROIs: Spec, RoisLod: Spec | None, RoisNum: Spec | None, *, pooled_height: int, pooled_width: int, spatial_scale: float,
    **_: Any,
) -> Spec:  # fmt: skip
    return pooled_spec(
        "roi_align",
        X,
        ROIs,
        X.shape[1] if X.ndim == 4 else -1,
        (pooled_height, pooled_width),
        spatial_scale,
    )


def _by_lod(op: OpDesc) -> bool:
    return not op.input("RoisLod") and not op.input("RoisNum")


@op(
    outs="Out",
    grad="X ROIs RoisLod RoisNum",
    nograd="ROIs RoisLod RoisNum",
    infer=_spec,
    rows=knows_rows(alone="ROIs", when=_by_lod),
)
def roi_align(
    X: Array, ROIs: Array | Ragged, RoisLod: Array | None, RoisNum: Array | None, *, pooled_height: int = 1, pooled_width: int = 1,
    spatial_scale: float = 1.0, sampling_ratio: int = -1, aligned: bool = False,
):  # fmt: skip
    """Out [R, C, pooled_height, pooled_width] = the mean of places in each bin of each region of X
    [N, C, H, W].

    ROIs [R, 4] (x1, y1, x2, y2; times spatial_scale, at least a pixel wide) with a LoD of the N
    images, or RoisLod [N + 1], its offsets, or RoisNum [N], the number per image. aligned: regions
    are shifted by half a pixel and keep their width (the gradient of Paddle's CPU kernel takes at
    least a pixel). sampling_ratio: places along each side of a bin; if not positive, its number of
    pixels. A place is read between its four pixels; up to a pixel outside counts as the border,
    farther as 0.
    """
    rois = rows_of(ROIs)
    checked("roi_align", X, rois, 4, (pooled_height, pooled_width), spatial_scale)
    image = images_of("roi_align", ROIs, X.shape[0], RoisLod, RoisNum)
    scaled = rois * np.asarray(spatial_scale, rois.dtype) - np.asarray(
        0.5 if aligned else 0, rois.dtype
    )
    sizes = (
        scaled[:, 2:] - scaled[:, :2] if aligned else jnp.maximum(scaled[:, 2:] - scaled[:, :2], 1)
    )
    bins = ((1, pooled_height, X.shape[2]), (0, pooled_width, X.shape[3]))
    numbers = [_number(sizes[:, axis] / count, sampling_ratio) for axis, count, _ in bins]
    parts = [
        _axis(
            scaled[:, axis],
            sizes[:, axis],
            count,
            sampling_ratio,
            size,
            number[:, None, None, None],
        )
        for (axis, count, size), number in zip(bins, numbers, strict=True)
    ]
    rows, columns = (
        part / jnp.where(number == 0, 1, number)[:, None, None]
        for part, number in zip(parts, numbers, strict=True)
    )

    def pooled(x: Any, row: Any, column: Any) -> Any:
        return jnp.einsum(
            "chq,ph->cpq",
            jnp.einsum("chw,qw->chq", x, column, precision="highest"),
            row,
            precision="highest",
        )

    out = each_region(pooled, X, image, rows, columns)
    # the mean of a region without extent, which has no places, is nan
    if aligned and sampling_ratio <= 0:
        out = jnp.where(((numbers[0] == 0) | (numbers[1] == 0))[:, None, None, None], np.nan, out)
    return with_images(ROIs, out)
