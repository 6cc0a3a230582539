"""roi_align: averages of places within regions, each read between pixels.

The weights of pixels are products of those of rows and columns, so a region is two small products of matrices.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...ir.desc import OpDesc
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, op
from ..traits import CHANNELS_FIRST, knows_rows
from .boxes import images_of, with_images
from .regions import apart, checked, each_region, pooled_spec

REACH = 6  # places at most within a pixel of one, where a bin has so many that they lie more than half a pixel apart


def _weights(places: Any, count: Any, size: int, pixel: Any) -> Any:
    """How much each of `places` takes of a pixel of a row of `size`: 1 at it, less on the way to the next, 0 beyond the row."""
    inside = (places >= -1) & (places <= size) & count
    at = jnp.maximum(places, 0)
    low = jnp.minimum(jnp.floor(at), size - 1)
    share = jnp.where(low >= size - 1, 0, at - low)
    weight = jnp.where(low == pixel, 1 - share, jnp.where(low + 1 == pixel, share, 0))
    return jnp.where(inside, weight, 0)


def _axis(start: Any, extent: Any, bins: int, ratio: int, size: int) -> Any:
    """The share of each pixel in each bin's average, [R, bins, size]; ratio: places a bin, else as many as it has pixels."""
    kind = start.dtype
    width = (extent / bins)[:, None, None, None]
    number = jnp.full_like(width, ratio) if ratio > 0 else jnp.ceil(width)
    base = start[:, None, None, None] + apart(jnp.arange(bins, dtype=kind)[:, None, None] * width)
    pixel = jnp.arange(size, dtype=kind)[:, None]
    half = np.asarray(0.5, kind)
    if ratio > 0:
        index = jnp.arange(ratio, dtype=kind)
    else:  # the places near the pixel alone, since nobody knows how many a bin has
        first = jnp.maximum(jnp.floor((pixel - 1 - base) * number / width - half), 0)
        index = first + jnp.arange(REACH, dtype=kind)
    places = base + apart((index + half) * width / number)
    return jnp.sum(_weights(places, index < number, size, pixel), -1) / number[..., 0]


def _spec(X: Spec, ROIs: Spec, RoisLod: Spec | None, *, pooled_height: int, pooled_width: int, spatial_scale: float, **_: Any) -> Spec:
    return pooled_spec("roi_align", X, ROIs, X.shape[1] if X.ndim == 4 else -1, (pooled_height, pooled_width), spatial_scale)


def _by_lod(op: OpDesc) -> bool:
    return not op.input("RoisLod")


@op(
    outs="Out", grad="X ROIs RoisLod", nograd="ROIs RoisLod", infer=_spec, rows=knows_rows(alone="ROIs", when=_by_lod),
    channels=CHANNELS_FIRST,
)
def roi_align(
    X: Array, ROIs: Array | Ragged, RoisLod: Array | None, *, pooled_height: int = 1, pooled_width: int = 1,
    spatial_scale: float = 1.0, sampling_ratio: int = -1,
):  # fmt: skip
    """Out [R, C, pooled_height, pooled_width]: each region of X [N, C, H, W] cut into bins, of which each is the mean of places in it.

    ROIs [R, 4] (x1, y1, x2, y2; times spatial_scale, at least a pixel wide) with a LoD of the N images, or RoisLod [N + 1], its offsets.
    sampling_ratio: places along each side of a bin; not positive: as many as it has pixels. A place is read between its four
    pixels; up to a pixel outside counts as the border, farther as 0.
    """
    rois = rows_of(ROIs)
    checked("roi_align", X, rois, 4, (pooled_height, pooled_width), spatial_scale)
    image = images_of("roi_align", ROIs, X.shape[0], RoisLod)
    scaled = rois * np.asarray(spatial_scale, rois.dtype)
    sizes = jnp.maximum(scaled[:, 2:] - scaled[:, :2], 1)
    rows = _axis(scaled[:, 1], sizes[:, 1], pooled_height, sampling_ratio, X.shape[2])
    columns = _axis(scaled[:, 0], sizes[:, 0], pooled_width, sampling_ratio, X.shape[3])

    def pooled(x: Any, row: Any, column: Any) -> Any:
        return jnp.einsum("chq,ph->cpq", jnp.einsum("chw,qw->chq", x, column, precision="highest"), row, precision="highest")

    return with_images(ROIs, each_region(pooled, X, image, rows, columns))
