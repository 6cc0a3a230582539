"""generate_mask_labels: target masks for regions with an object, drawn from the objects' polygons."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..greatest import first_greatest
from ..infer import Spec
from ..outside import within
from ..ragged import Ragged, mask, same_sequences, sequences_of, view
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import boxes_checked
from .masks import drawn
from .overlaps import pixel_overlaps
from .packing import firsts, packed


def _polygons(segments: Ragged) -> tuple[Any, Any, Any]:
    """The points of each object's polygons [G, P, L, 2], the number of points of each polygon [G,
    P], and the number of polygons [G].

    Empty ones may follow the last object and the last polygon; no image has them.
    """
    _, objects, polygons = segments.offsets
    _, most, longest = segments.longest
    count = objects[1:] - objects[:-1]
    place = objects[:-1, None] + jnp.arange(most, dtype=np.int32)
    begin, end = (jnp.take(polygons, place + n, mode="clip") for n in (0, 1))
    ends = jnp.where(jnp.arange(most) < count[:, None], end - begin, 0)
    at = begin[..., None] + jnp.arange(longest, dtype=np.int32)
    return jnp.take(segments.rows, at, axis=0, mode="clip"), ends, count


def _around(points: Any, ends: Any) -> Any:
    """The boxes [G, 4] around the polygons [G, P, L, 2] of each object."""
    real = (jnp.arange(points.shape[2]) < ends[..., None])[..., None]
    low, high = (
        jnp.where(real, points, np.inf).min((1, 2)),
        jnp.where(real, points, -np.inf).max((1, 2)),
    )
    return jnp.concatenate([low, high], 1)


def _masks(regions: Any, points: Any, ends: Any, size: int) -> Any:
    """The polygons of an object within each region [..., 4], as [..., size * size] of 0 and 1."""
    begin, extent = (
        regions[..., None, None, :2],
        jnp.maximum(regions[..., 2:] - regions[..., :2], 1)[..., None, None, :],
    )
    return (
        drawn((points - begin) * size / extent, ends, ends > 0, size)
        .reshape(*regions.shape[:-1], -1)
        .astype(np.int32)
    )


def _inputs(
    info: Any, classes: Any, crowd: Any, segments: Any, rois: Any, labels: Any
) -> list[Ragged]:
    op = "generate_mask_labels"
    found = {
        "GtClasses": sequences_of(op, "GtClasses", classes),
        "IsCrowd": sequences_of(op, "IsCrowd", crowd),
    }
    same_sequences(op, found)
    regions = {
        "Rois": sequences_of(op, "Rois", rois),
        "LabelsInt32": sequences_of(op, "LabelsInt32", labels),
    }
    same_sequences(op, regions)
    polygons = sequences_of(op, "GtSegms", segments, 3)
    boxes_checked(op, "Rois", regions["Rois"].rows)
    boxes_checked(op, "GtSegms", polygons.rows, 2)
    images = {v.offsets[0].shape[0] - 1 for v in (*found.values(), *regions.values(), polygons)}
    if images != {info.shape[0]} or info.shape[1:] != (3,):
        raise ShapeError(
            f"op '{op}' takes ImInfo [N, 3] and LoDs of the same N images, not {list(info.shape)}"
            f" and {sorted(images)} images"
        )
    return [*found.values(), polygons, *regions.values()]


def _spec(
    ImInfo: Spec,
    GtClasses: Spec,
    IsCrowd: Spec,
    GtSegms: Spec,
    Rois: Spec,
    LabelsInt32: Spec,
    *,
    num_classes: int,
    resolution: int,
) -> tuple[Spec, Spec, Spec]:
    if num_classes < 2 or resolution < 1:
        raise ShapeError(
            "op 'generate_mask_labels' takes num_classes from 2 and a resolution from 1, not"
            f" {num_classes} and {resolution}"
        )
    return (
        Spec((-1, 4), Rois.dtype),
        Spec((-1, 1), "int32"),
        Spec((-1, num_classes * resolution * resolution), "int32"),
    )


def _one_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"MaskRois": 1, "RoiHasMaskInt32": 1, "MaskInt32": 1}


@op(
    outs="MaskRois RoiHasMaskInt32 MaskInt32",
    infer=_spec,
    rows=knows_rows(_one_level, inner="GtSegms"),
    chosen=rows_by("LabelsInt32", "all rows of Rois", exact=False),
    refuses=within("LabelsInt32", "label", lambda inputs, attrs: attrs["num_classes"]),
)
def generate_mask_labels(
    ImInfo: Array,
    GtClasses: Ragged,
    IsCrowd: Ragged,
    GtSegms: Ragged,
    Rois: Ragged,
    LabelsInt32: Ragged,
    *,
    num_classes: int,
    resolution: int,
):
    """MaskRois [F, 4] = the regions with an object of each image, with their index in the image's
    Rois (RoiHasMaskInt32 [F, 1]) and mask.

    Rois [S, 4] and LabelsInt32 [S, 1], a class above 0 for an object, with a LoD of the N images;
    GtClasses [G, 1] and IsCrowd [G, 1] (crowds are ignored) with another; GtSegms [points, 2] with
    three levels: images, objects, polygons. ImInfo [N, 3] (height, width, the scale of Rois). The
    mask is that of the object whose bounding box the region overlaps most. MaskInt32 [F,
    num_classes * resolution * resolution]: 0 and 1 in the columns of its class, else -1. An image
    without an object gives its first background region, and -1 everywhere.
    """
    classes, crowd, polygons, rois, labels = _inputs(
        ImInfo, GtClasses, IsCrowd, GtSegms, Rois, LabelsInt32
    )
    points, ends, _ = _polygons(polygons)
    around = _around(points, ends)
    most, room, images = classes.longest[-1], max(rois.longest[-1], 1), ImInfo.shape[0]
    label, kind, crowded = (
        view(v).reshape(images, v.longest[-1]) for v in (labels, classes, crowd)
    )
    there = mask(rois)
    fg, number = jax.vmap(lambda m: firsts(m, room))(there & (label > 0))
    some = number[:, None] > 0
    place = jnp.where(some, fg, first_greatest(there & (label == 0), 1, keepdims=True))  # [N, room]
    taken = jnp.take_along_axis(view(rois), place[..., None], 1) / ImInfo[:, None, 2:]
    object_of = polygons.offsets[0][:-1, None] + jnp.arange(most, dtype=np.int32)
    overlap = pixel_overlaps(taken, jnp.take(around, object_of, axis=0, mode="clip"))
    overlap = jnp.where((mask(classes) & (kind > 0) & (crowded == 0))[:, None], overlap, -1)
    best = (
        jnp.take_along_axis(object_of, first_greatest(overlap, 2), 1)
        if most
        else jnp.zeros((images, room), np.int32)
    )
    outline, end = (jnp.take(v, best, axis=0, mode="clip") for v in (points, ends))
    masks = _masks(taken, outline, end, resolution)
    label = jnp.where(some, jnp.take_along_axis(label, place, 1), 0)
    here = (jnp.arange(num_classes) == label[..., None]) & (label > 0)[..., None]
    wide = jnp.where(here[..., None], masks[..., None, :], -1).reshape(images, room, -1)
    return tuple(
        packed(jnp.maximum(number, 1), taken * ImInfo[:, None, 2:], place[..., None], wide)
    )
