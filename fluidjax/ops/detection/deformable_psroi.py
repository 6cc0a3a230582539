"""deformable_psroi_pooling: means of samples within regions; a learnt offset moves every part of a
region.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, Ints, op
from ..traits import knows_rows
from .boxes import images_of, with_images
from .regions import apart, checked, each_region, pooled_spec, rounded


def _classes(x: Any, trans: Any, output_dim: int, group: Any, part: Any, no_trans: bool) -> int:
    """The number of classes with their own offsets. Raises ShapeError for shapes that do not fit
    together.
    """
    if len(group) != 2 or len(part) != 2 or min(*group, *part, output_dim) < 1:
        raise ShapeError(
            "op 'deformable_psroi_pooling' takes an output_dim, two group_size and two part_size"
            f" from 1, not {output_dim}, {group}, {part}"
        )
    if x.ndim == 4 and x.shape[1] >= 0 and x.shape[1] < output_dim * group[0] * group[1]:
        raise ShapeError(
            f"op 'deformable_psroi_pooling' takes Input of {output_dim * group[0] * group[1]}"
            f" channels, not {x.shape[1]}"
        )
    if no_trans:
        return 1
    classes = trans.shape[1] // 2 if trans.ndim == 4 else 0
    if classes < 1 or output_dim % classes or tuple(trans.shape[2:]) != tuple(part):
        raise ShapeError(
            f"op 'deformable_psroi_pooling' takes Trans [R, 2 * classes, {part[0]}, {part[1]}] of"
            f" classes that divide output_dim={output_dim}, not {list(trans.shape)}"
        )
    return classes


def _spec(
    Input: Spec, ROIs: Spec, Trans: Spec, *, no_trans: bool, spatial_scale: float, output_dim: int, group_size: Ints, pooled_height: int,
    pooled_width: int, part_size: Ints, **_: Any,
) -> tuple[Spec, Spec]:  # fmt: skip
    _classes(Input, Trans, output_dim, list(group_size), list(part_size), no_trans)
    out = pooled_spec(
        "deformable_psroi_pooling",
        Input,
        ROIs,
        output_dim,
        (pooled_height, pooled_width),
        spatial_scale,
    )
    return out, out


def _axis(
    rois: Any, axis: int, bins: int, part: int, samples: int, scale: float, shift: Any, std: float
) -> Any:
    """The positions of each bin's samples along an axis, [R, classes, bins of the rows, bins of the
    columns, samples].

    shift: the offsets, [R, classes, rows' parts, columns' parts], or None.
    """
    kind = rois.dtype
    half, factor = np.asarray(0.5, kind), np.asarray(scale, kind)
    start = apart(rounded(rois[:, axis]) * factor) - half
    end = apart((rounded(rois[:, axis + 2]) + 1) * factor) - half
    extent = jnp.maximum(end - start, np.asarray(0.1, kind))
    width = extent / bins
    lead = (slice(None), *(None,) * 3)
    begin = (
        apart(
            jnp.arange(bins, dtype=kind).reshape((1, 1, -1, 1) if axis else (1, 1, 1, -1))
            * width[lead]
        )
        + start[lead]
    )
    if shift is not None:
        begin = begin + apart(shift * np.asarray(std, kind) * extent[lead])
    return begin[..., None] + apart(
        jnp.arange(samples, dtype=kind) * (width / samples)[(*lead, None)]
    )


def _parts(bins: int, parts: int) -> np.ndarray:
    """The part, or group, that each bin lies in."""
    return np.clip(
        np.floor(np.arange(bins, dtype=np.float32) * parts / bins).astype(np.int32), 0, parts - 1
    )


def _sampled(x: Any, y: Any, at: Any, channel: Any, each: int) -> tuple[Any, Any]:
    """The mean [D, bins, bins] of the samples of one region within x [C, H, W], and their number.

    y, at: [classes, bins, bins, samples]; channel: [D, bins, bins].
    """
    height, width = x.shape[1:]
    near_y, near_x = ((v >= -0.5) & (v <= n - 0.5) for v, n in ((y, height), (at, width)))
    near = jnp.repeat(near_y[..., :, None] & near_x[..., None, :], each, 0)
    total = jnp.zeros((), x.dtype)
    y, at = jnp.clip(y, 0, height - 1), jnp.clip(at, 0, width - 1)
    for row in (0, 1):
        for column in (0, 1):
            (pixel_y, weight_y), (pixel_x, weight_x) = (
                (_low, _high)[n](v) for n, v in ((row, y), (column, at))
            )
            place = [jnp.repeat(v.astype(np.int32), each, 0) for v in (pixel_y, pixel_x)]
            weight = jnp.repeat(weight_y[..., :, None] * weight_x[..., None, :], each, 0)
            value = x[channel[..., None, None], place[0][..., :, None], place[1][..., None, :]]
            total = total + jnp.where(near, value * weight, 0)
    count = near.sum((-2, -1))
    return jnp.where(
        count > 0, total.sum((-2, -1)) / jnp.maximum(count, 1).astype(x.dtype), 0
    ), count.astype(x.dtype)


def _low(at: Any) -> tuple[Any, Any]:
    return jnp.floor(at), 1 - (at - jnp.floor(at))


def _high(at: Any) -> tuple[Any, Any]:
    return jnp.ceil(at), at - jnp.floor(at)


@op(
    outs="TopCount Output",
    grad="Input ROIs Trans TopCount",
    nograd="ROIs",
    grad_outs="Output",
    infer=_spec,
    rows=knows_rows(),
)
def deformable_psroi_pooling(
    Input: Array, ROIs: Array | Ragged, Trans: Array | Ragged, *, no_trans: bool, spatial_scale: float, output_dim: int, group_size: Ints,
    pooled_height: int, pooled_width: int, part_size: Ints, sample_per_part: int, trans_std: float,
):  # fmt: skip
    """Output [R, output_dim, pooled_height, pooled_width]: the mean of sample_per_part^2 samples in
    each bin of a region.

    Input [N, output_dim * group_size[0] * group_size[1], H, W]: bin (c, i, j) reads channel c of
    the group that it lies in. ROIs [R, 4] with a LoD of the N images. Trans [R, 2 * classes,
    *part_size]: the offset of each bin's part (x, then y), in units of trans_std times the region's
    size; ignored if no_trans. TopCount: the number of a bin's samples within the image.
    """
    rois, trans, (rows, columns) = rows_of(ROIs), rows_of(Trans), (pooled_height, pooled_width)
    checked("deformable_psroi_pooling", Input, rois, 4, (rows, columns), spatial_scale)
    group, part = list(group_size), list(part_size)
    classes = _classes(Input, trans, output_dim, group, part, no_trans)
    image = images_of("deformable_psroi_pooling", ROIs, Input.shape[0])
    shift: list[Any] = [None, None]
    if not no_trans:
        cells = trans.reshape(trans.shape[0], classes, 2, *part)[
            ..., _parts(rows, part[0])[:, None], _parts(columns, part[1])
        ]
        shift = [cells[:, :, 0], cells[:, :, 1]]
    x, y = (
        _axis(
            rois, axis, bins, part[1 - axis], sample_per_part, spatial_scale, shift[axis], trans_std
        )
        for axis, bins in ((0, columns), (1, rows))
    )
    full = (rois.shape[0], classes, rows, columns, sample_per_part)
    groups = _parts(rows, group[0])[:, None] * group[1] + _parts(columns, group[1])
    channel = np.arange(output_dim)[:, None, None] * (group[0] * group[1]) + groups

    def sampled(image: Any, y: Any, x: Any) -> tuple[Any, Any]:
        return _sampled(image, y, x, channel, output_dim // classes)

    out, count = each_region(
        sampled, Input, image, jnp.broadcast_to(y, full), jnp.broadcast_to(x, full)
    )
    return with_images(ROIs, count), with_images(ROIs, out)
