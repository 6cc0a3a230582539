"""Boxes of several images: their shapes, and the images that they belong to."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, ShapeError
from ..chosen import some
from ..concrete import known
from ..ragged import Ragged, bounded, rows_of, segments, sequences_of


def boxes_checked(op: str, slot: str, boxes: Any, numbers: int = 4) -> None:
    """Raises ShapeError unless boxes is [R, numbers]."""
    if boxes.ndim != 2 or boxes.shape[1] not in (numbers, -1):
        raise ShapeError(f"op '{op}' takes {slot} [rows, {numbers}], not {list(boxes.shape)}")


def ends(counts: Any) -> Any:
    """Offsets [N + 1] from the number of rows of each of N images."""
    return jnp.concatenate(
        [jnp.zeros(1, np.int32), jnp.cumsum(rows_of(counts).reshape(-1), dtype=np.int32)]
    )


def counted(rois: Any, counts: Any) -> Any:
    """Rows with a LoD by image: the first counts[0] belong to the first image, and so on. Unchanged
    without counts.
    """
    if counts is None:
        return rois
    rows = rows_of(rois)
    return bounded(rows, ends(counts), max(rows.shape[0], 1))


def bare(x: Ragged, *more: Any) -> list[Any]:
    """The rows of x, and further values with the same number of rows, as plain values without a
    LoD.
    """
    return some(x.offsets[-1][-1], x.rows, *more)


def images_of(op: str, rois: Any, images: int, offsets: Any = None, counts: Any = None) -> Any:
    """The image number of each region, [R] int32, by the offsets [images + 1], else by counts
    [images], else by a LoD.
    """
    if offsets is None and counts is not None:
        if rows_of(counts).size != images:
            raise EnforceNotMet(
                f"op '{op}' takes a number of regions for each of its {images} images, not"
                f" {rows_of(counts).size}"
            )
        return jnp.minimum(segments(ends(counts), rows_of(rois).shape[0]), max(images - 1, 0))
    if offsets is None:
        ragged = sequences_of(op, "ROIs", rois)
        if ragged.sequences != images:
            raise EnforceNotMet(
                f"op '{op}' takes regions of as many images as there are, {images}, but their LoD"
                f" has {ragged.sequences}"
            )
        image = ragged.sequence()
    else:
        offsets = rows_of(offsets).reshape(-1)
        if offsets.shape[0] != images + 1:
            raise EnforceNotMet(
                f"op '{op}' takes {images + 1} offsets for the regions of {images} images, not"
                f" {offsets.shape[0]}"
            )
        found = known(offsets)
        if found is not None and (
            found[0] != 0 or (np.diff(found) < 0).any() or found[-1] != rows_of(rois).shape[0]
        ):
            raise EnforceNotMet(
                f"op '{op}' takes offsets from 0 to its {rows_of(rois).shape[0]} regions, not"
                f" {found.tolist()}"
            )
        image = segments(offsets.astype(np.int32), rows_of(rois).shape[0])
    return jnp.minimum(image, max(images - 1, 0))


def with_images(rois: Any, rows: Any) -> Any:
    """The results of regions, one row per region, [R, ...]: a plain array as in 1.8.5, with known
    padding.
    """
    return rois.with_rows(rows, bare=True) if isinstance(rois, Ragged) else rows
