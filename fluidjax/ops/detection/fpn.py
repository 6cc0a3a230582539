"""Proposals of a feature pyramid: collected from its levels, distributed over them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, ShapeError
from ..infer import Spec
from ..ragged import Ragged, bounded, rows_of, sequences_of
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import boxes_checked, counted
from .similarity import area


def _collected_spec(
    MultiLevelRois: tuple[Spec, ...],
    MultiLevelScores: tuple[Spec, ...],
    MultiLevelRoIsNum: tuple[Spec, ...] | None,
    *,
    post_nms_topN: int,
) -> tuple[Spec, Spec]:
    if len(MultiLevelRois) != len(MultiLevelScores) or post_nms_topN < 1:
        raise ShapeError(
            "op 'collect_fpn_proposals' takes as many MultiLevelScores as MultiLevelRois, and a"
            " post_nms_topN from 1"
        )
    for rois in MultiLevelRois:
        boxes_checked("collect_fpn_proposals", "MultiLevelRois", rois)
    images = MultiLevelRoIsNum[0].shape[0] if MultiLevelRoIsNum else -1
    return Spec((-1, 4), MultiLevelRois[0].dtype), Spec((images,), "int32")


def _one_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"FpnRois": 1}


@op(
    outs="FpnRois RoisNum?",
    infer=_collected_spec,
    rows=knows_rows(_one_level),
    chosen=rows_by("MultiLevelRois", "post_nms_topN rows", exact=False),
)
def collect_fpn_proposals(
    MultiLevelRois: list[Ragged], MultiLevelScores: list[Ragged], MultiLevelRoIsNum: list[Array] | None, *,
    post_nms_topN: int,
):  # fmt: skip
    """FpnRois = the regions [R, 4] with the post_nms_topN greatest scores of all levels and images.

    Each level has MultiLevelRois [., 4] and MultiLevelScores [., 1] with LoDs of the images, or
    with MultiLevelRoIsNum [N], the number per image. FpnRois is ordered by image, best first.
    RoisNum [N]: the number per image.
    """
    counts: list[Any] = MultiLevelRoIsNum or [None] * len(MultiLevelRois)
    held = [counted(r, c) for r, c in zip(MultiLevelRois, counts, strict=True)]
    rois = [sequences_of("collect_fpn_proposals", "MultiLevelRois", r) for r in held]
    images = rois[0].sequences
    fits = [r.capacity == rows_of(s).shape[0] for r, s in zip(rois, MultiLevelScores, strict=True)]
    if not all(fits) or any(r.sequences != images for r in rois):
        raise EnforceNotMet(
            "op 'collect_fpn_proposals' takes regions and scores row by row, of the same number of"
            " images on each level"
        )
    boxes = jnp.concatenate([r.rows for r in rois])
    scores = jnp.concatenate([rows_of(s).reshape(-1) for s in MultiLevelScores])
    image = jnp.concatenate([r.sequence() for r in rois])  # images: a padded row
    # as in 1.8.5, the last of equal scores comes first
    best = jnp.flip(jnp.lexsort((scores, image < images)))
    best = best[: min(post_nms_topN, boxes.shape[0])]
    best = best[jnp.argsort(image[best], stable=True)]
    offsets = jnp.searchsorted(image[best], jnp.arange(images + 1, dtype=image.dtype), side="left")
    found = bounded(boxes[best], offsets, max(boxes.shape[0], 1)) if boxes.shape[0] else rois[0]
    return found, jnp.diff(found.offsets[-1]).astype(np.int32)


def _levels(op: str, low: int, high: int, refer: int, scale: int) -> int:
    """How many levels there are."""
    if not 1 < low <= high or refer < 1 or scale < 1:
        raise ShapeError(
            f"op '{op}' takes min_level <= max_level, a refer_level and a refer_scale from 1, not"
            f" {low}, {high}, {refer} and {scale}"
        )
    return high - low + 1


def _distributed_spec(
    FpnRois: Spec,
    RoisNum: Spec | None,
    *,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool = True,
) -> tuple[Any, Spec, Any]:
    boxes_checked("distribute_fpn_proposals", "FpnRois", FpnRois)
    count = _levels("distribute_fpn_proposals", min_level, max_level, refer_level, refer_scale)
    images = -1 if RoisNum is None else RoisNum.shape[0]
    return (
        (Spec((-1, 4), FpnRois.dtype),) * count,
        Spec((FpnRois.shape[0], 1), "int32"),
        (Spec((images,), "int32"),) * count,
    )


def _each_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"MultiFpnRois": 1}


@op(
    outs="MultiFpnRois* RestoreIndex MultiLevelRoIsNum*?",
    infer=_distributed_spec,
    rows=knows_rows(_each_level),
    chosen=rows_by("FpnRois", "all rows of FpnRois", exact=False),
)
def distribute_fpn_proposals(
    FpnRois: Array | Ragged, RoisNum: Array | None, *, min_level: int, max_level: int, refer_level: int, refer_scale: int,
    pixel_offset: bool = True,
):  # fmt: skip
    """MultiFpnRois = the regions [R, 4] of each level from min_level to max_level, by images.

    RestoreIndex [R, 1] (int32): the new position of each region, counted over the concatenated
    levels. A region belongs to level refer_level + floor(log2(sqrt(area) / refer_scale)), or to the
    nearest one. FpnRois has a LoD of the images, or RoisNum [N] gives the number per image, and
    MultiLevelRoIsNum [N] that of each level. pixel_offset: false if the edges of boxes are lines,
    not pixels.
    """
    rois = sequences_of("distribute_fpn_proposals", "FpnRois", counted(FpnRois, RoisNum))
    count = _levels("distribute_fpn_proposals", min_level, max_level, refer_level, refer_scale)
    size = jnp.sqrt(area(rois.rows, int(pixel_offset)))
    level = jnp.floor(jnp.log2(size / refer_scale + np.asarray(1e-6, size.dtype)) + refer_level)
    level = jnp.clip(level, min_level, max_level).astype(np.int32) - min_level
    level = jnp.where(rois.kept(), level, count)  # padded rows come last
    order = jnp.argsort(level, stable=True).astype(np.int32)
    found, begin = [], np.int32(0)
    for n in range(count):
        ends = jnp.concatenate([jnp.zeros(1, np.int32), jnp.cumsum(level == n, dtype=np.int32)])
        offsets = ends[rois.offsets[-1]]
        at = begin + jnp.clip(
            jnp.arange(rois.capacity, dtype=np.int32), 0, jnp.maximum(offsets[-1] - 1, 0)
        )
        found.append(
            bounded(
                jnp.take(rois.rows, order[jnp.clip(at, 0, max(rois.capacity - 1, 0))], axis=0),
                offsets,
                rois.longest[-1],
            )
        )
        begin = begin + offsets[-1]
    restore = (
        jnp.zeros(rois.capacity, np.int32).at[order].set(jnp.arange(rois.capacity, dtype=np.int32))
    )
    counts = [jnp.diff(level.offsets[-1]).astype(np.int32) for level in found]
    return found, rois.with_rows(restore[:, None], bare=True), counts
