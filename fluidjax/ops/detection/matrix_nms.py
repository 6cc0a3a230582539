"""matrix_nms: scores that decay by how much a box overlaps those with larger scores."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import ShapeError
from ..infer import Spec
from ..ragged import Ragged, bounded
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .nms import check_limits
from .similarity import overlap
from .suppress import best


def _spec(
    BBoxes: Spec, Scores: Spec, *, nms_top_k: int, keep_top_k: int, **_: Any
) -> tuple[Spec, ...]:
    if BBoxes.ndim != 3 or Scores.ndim != 3 or BBoxes.shape[2] not in (4, -1):
        raise ShapeError(
            f"op 'matrix_nms' takes BBoxes [N, M, 4] and Scores [N, C, M], not {list(BBoxes.shape)}"
            f" and {list(Scores.shape)}"
        )
    if min(BBoxes.shape[1], Scores.shape[2]) >= 0 and BBoxes.shape[1] != Scores.shape[2]:
        raise ShapeError(
            f"op 'matrix_nms' takes a score of each class for each of {BBoxes.shape[1]} boxes, not"
            f" {Scores.shape[2]}"
        )
    check_limits("matrix_nms", nms_top_k=nms_top_k, keep_top_k=keep_top_k)
    return Spec((-1, 6), BBoxes.dtype), Spec((-1, 1), "int32"), Spec((BBoxes.shape[0],), "int32")


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 1, "Index": 1}


def _decayed(boxes: Any, scores: Any, more: int, sigma: float | None) -> Any:
    """The scores [K] of boxes [K, 4], by falling scores, after decay."""
    first = jnp.tril(jnp.ones((boxes.shape[0],) * 2, bool), -1)  # j < i
    shared = overlap(boxes[:, None], boxes[None], more)
    most = jnp.where(first & (shared > 0), shared, 0).max(1, initial=0)
    if sigma is None:
        decay = (1 - shared) / (1 - most)
    else:
        decay = jnp.exp((most * most - shared * shared) * np.asarray(sigma, boxes.dtype))
    return jnp.where(first & (decay < 1), decay, 1).min(1, initial=1) * scores


@op(
    outs="Out Index RoisNum?",
    infer=_spec,
    rows=knows_rows(_levels),
    chosen=rows_by(
        "Scores BBoxes", "keep_top_k rows an image, or all boxes of all classes", exact=False
    ),
)
def matrix_nms(
    BBoxes: Array, Scores: Array, *, background_label: int = 0, score_threshold: float, post_threshold: float = 0.0, nms_top_k: int,
    keep_top_k: int, normalized: bool = True, use_gaussian: bool = False, gaussian_sigma: float = 2.0,
):  # fmt: skip
    """Out [rows, 6] = (label, decayed score, x1, y1, x2, y2) by falling scores, a sequence an
    image; Index [rows, 1]: the box's row.

    Each class except background_label takes the nms_top_k boxes with the largest scores above
    score_threshold. A score is multiplied by the minimum of 1 and, over all boxes before it, (1 -
    overlap) / (1 - m), where m is the largest overlap of that box with those before it;
    use_gaussian: exp(gaussian_sigma * (m^2 - overlap^2)). Boxes above post_threshold stay, at most
    the keep_top_k best of an image (-1: all). BBoxes [N, M, 4], Scores [N, C, M]. normalized: false
    if the last pixel belongs to a box. RoisNum [N] int32: the number of rows per image.
    """
    n, classes, width = Scores.shape
    labels = np.array([c for c in range(classes) if c != background_label], np.int32)
    lanes = n * len(labels)
    places, there = best(Scores[:, labels].reshape(lanes, width), score_threshold, nms_top_k)
    room = places.shape[1]
    boxes = jnp.repeat(BBoxes, len(labels), 0, total_repeat_length=lanes)
    boxes = jnp.take_along_axis(boxes, places[..., None], 1)
    scores = jnp.take_along_axis(Scores[:, labels].reshape(lanes, width), places, 1)
    sigma = float(np.float32(gaussian_sigma)) if use_gaussian else None
    decayed = lax.map(
        lambda lane: _decayed(lane[0], lane[1], 0 if normalized else 1, sigma), (boxes, scores)
    )
    stays = there & (decayed > np.asarray(post_threshold, np.float32))
    decayed = jnp.where(stays, decayed, -jnp.inf).reshape(n, -1)
    at, alive = best(decayed, -np.inf, keep_top_k)
    image = jnp.arange(n, dtype=jnp.int32)[:, None]
    place = places.reshape(n, -1)[image, at]
    label = jnp.asarray(labels)[at // max(room, 1)].astype(BBoxes.dtype)
    rows = [
        label[..., None],
        jnp.take_along_axis(decayed, at, 1)[..., None],
        boxes.reshape(n, -1, 4)[image, at],
    ]
    out = packed(jnp.concatenate(rows, -1), alive)
    index = out.with_rows(_taken((place + image * width)[..., None].astype(jnp.int32), alive))
    return out, index, alive.sum(1).astype(np.int32)


def _taken(cells: Any, alive: Any) -> Any:
    """The cells [N, longest, ...] that are alive, image by image, as rows."""
    (at,) = jnp.nonzero(alive.reshape(-1), size=alive.size, fill_value=0)
    return cells.reshape(-1, *cells.shape[2:])[at]


def packed(cells: Any, alive: Any) -> Ragged:
    """The cells [N, longest, ...] that are alive as rows, a sequence an image."""
    offsets = jnp.concatenate(
        [jnp.zeros((1,), jnp.int32), jnp.cumsum(alive.sum(1), dtype=jnp.int32)]
    )
    return bounded(_taken(cells, alive), offsets, alive.shape[1])
