"""multiclass_nms, multiclass_nms2: the boxes with the best scores, per class and image, that do not
overlap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import FluidValueError, ShapeError
from ..infer import Spec
from ..ragged import Ragged, bounded, mask, rows_of, sequences_of, view
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import bare, counted
from .polygon_overlap import SIZES, polygon_overlap
from .similarity import overlap
from .suppress import Overlaps, best, each

CHOSEN = rows_by(
    "Scores BBoxes", "keep_top_k rows an image, or all boxes of all classes", exact=False
)


def _checked(op_type: str, boxes: Any, scores: Any) -> None:
    """Raises ShapeError for shapes that do not go together."""
    shapes = f"not {list(boxes.shape)} and {list(scores.shape)}"
    if len(boxes.shape) != 3 or len(scores.shape) not in (2, 3):
        raise ShapeError(
            f"op '{op_type}' takes BBoxes [N, M, 4] and Scores [N, C, M], or [M, C, 4] and [M, C]"
            f" with a LoD, {shapes}"
        )
    last = scores.shape[2 if len(scores.shape) == 3 else 1]
    if min(boxes.shape[1], last) >= 0 and boxes.shape[1] != last:
        raise ShapeError(f"op '{op_type}' takes a score for each box of a class, {shapes}")
    if boxes.shape[2] in SIZES and len(scores.shape) == 3:
        return
    if boxes.shape[2] not in (4, -1):
        raise ShapeError(
            f"op '{op_type}' takes boxes of 4 numbers, or polygons of {SIZES} where Scores has"
            f" three dimensions, {shapes}"
        )


def check_limits(op_type: str, **limits: int) -> None:
    """Raises FluidValueError for limits below -1 (-1: no limit)."""
    for name, value in limits.items():
        if value < -1:
            raise FluidValueError(f"op '{op_type}' takes {name} from 0, or -1 for all, not {value}")


def _spec(op_type: str, boxes: Spec, scores: Spec, attrs: Attrs) -> Spec:
    _checked(op_type, boxes, scores)
    check_limits(op_type, nms_top_k=attrs["nms_top_k"], keep_top_k=attrs["keep_top_k"])
    return Spec((-1, boxes.shape[2] + 2 if boxes.shape[2] > 0 else 6), boxes.dtype)


def _nms_spec(BBoxes: Spec, Scores: Spec, **attrs: Any) -> Spec:
    return _spec("multiclass_nms", BBoxes, Scores, attrs)


def _nms2_spec(BBoxes: Spec, Scores: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    return _spec("multiclass_nms2", BBoxes, Scores, attrs), Spec((-1, 1), "int32")


def _nms3_spec(BBoxes: Spec, Scores: Spec, RoisNum: Spec | None, **attrs: Any) -> tuple[Spec, ...]:
    images = Scores.shape[0] if Scores.ndim == 3 else -1 if RoisNum is None else RoisNum.shape[0]
    return (
        _spec("multiclass_nms3", BBoxes, Scores, attrs),
        Spec((-1, 1), "int32"),
        Spec((images,), "int32"),
    )


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": max(levels.get("BBoxes", 0), 1)}


def _levels2(levels: Any, attrs: Attrs) -> dict[str, int]:
    made = _levels(levels, attrs)
    return {**made, "Index": made["Out"]}


@op(outs="Out", infer=_nms_spec, rows=knows_rows(_levels), chosen=CHOSEN)
def multiclass_nms(
    BBoxes: Array | Ragged, Scores: Array | Ragged, *, background_label: int = 0, score_threshold: float, nms_top_k: int,
    nms_threshold: float = 0.3, nms_eta: float = 1.0, keep_top_k: int, normalized: bool = True,
):  # fmt: skip
    """Out [rows, 6] = (label, score, x1, y1, x2, y2) of the kept boxes, a sequence per image;
    [[-1]] if there are none.

    BBoxes [N, M, 4] and Scores [N, C, M]; or [M, C, 4] and [M, C] with one LoD level, a sequence an
    image. Each class except background_label takes the nms_top_k boxes with the largest scores
    above score_threshold, best first (the first box if scores are equal), and drops one that
    overlaps a kept box by more than nms_threshold. nms_eta below 1 multiplies a threshold above 0.5
    after every kept box. An image keeps its keep_top_k best boxes (-1: all). Rows are ordered by
    label, then by score (with a LoD, by box). normalized: false if the last pixel belongs to a box.
    BBoxes [N, M, 8, 16, 24 or 32]: polygons (x1, y1, x2, y2, ...), Out has as many columns more.
    """
    attrs = {"threshold": nms_threshold, "eta": nms_eta, "normalized": normalized}
    found = _run(
        "multiclass_nms",
        BBoxes,
        Scores,
        background_label,
        score_threshold,
        nms_top_k,
        keep_top_k,
        attrs,
    )
    return replace(found[0], nothing=-1.0)


@op(
    outs="Out Index~",
    infer=_nms2_spec,
    rows=knows_rows(_levels2),
    chosen=CHOSEN,
)
def multiclass_nms2(
    BBoxes: Array | Ragged, Scores: Array | Ragged, *, background_label: int = 0, score_threshold: float, nms_top_k: int,
    nms_threshold: float = 0.3, nms_eta: float = 1.0, keep_top_k: int, normalized: bool = True,
):  # fmt: skip
    """Out = as in multiclass_nms, without rows if there is no box.

    Index [rows, 1] int32: the row of the box in BBoxes [N * M, 4], or with a LoD in BBoxes [M * C,
    4].
    """
    attrs = {"threshold": nms_threshold, "eta": nms_eta, "normalized": normalized}
    return _run(
        "multiclass_nms2",
        BBoxes,
        Scores,
        background_label,
        score_threshold,
        nms_top_k,
        keep_top_k,
        attrs,
    )


@op(
    outs="Out Index NmsRoisNum?",
    infer=_nms3_spec,
    rows=knows_rows(),
    chosen=CHOSEN,
)
def multiclass_nms3(
    BBoxes: Array | Ragged, Scores: Array | Ragged, RoisNum: Array | None, *, background_label: int = 0, score_threshold: float,
    nms_top_k: int, nms_threshold: float = 0.3, nms_eta: float = 1.0, keep_top_k: int, normalized: bool = True,
):  # fmt: skip
    """Out, Index = as in multiclass_nms2; NmsRoisNum [N] int32: the number of rows per image.
    RoisNum [N]: the number of boxes, in place of a LoD.
    """
    attrs = {"threshold": nms_threshold, "eta": nms_eta, "normalized": normalized}
    boxes = counted(BBoxes, RoisNum) if rows_of(Scores).ndim == 2 else BBoxes
    out, index = _run(
        "multiclass_nms3",
        boxes,
        Scores,
        background_label,
        score_threshold,
        nms_top_k,
        keep_top_k,
        attrs,
    )
    return *bare(out, index.rows), jnp.diff(out.offsets[-1]).astype(np.int32)


def _run(
    op_type: str, boxes: Any, scores: Any, background: int, low: float, top: int, most: int, attrs: Attrs
) -> tuple[Ragged, Ragged]:  # fmt: skip
    """Out and Index."""
    _checked(op_type, rows_of(boxes), rows_of(scores))
    check_limits(op_type, nms_top_k=top, keep_top_k=most)
    by_lod = rows_of(scores).ndim == 2
    cells, scores, first = (
        _by_images(op_type, boxes, scores)
        if by_lod
        else _as_images(rows_of(boxes), rows_of(scores))
    )
    scores, cells, classes = jnp.asarray(scores), jnp.asarray(cells), scores.shape[1]
    labels = np.array([c for c in range(classes) if c != background], np.int32)
    if not labels.size:  # the background alone, which gives no boxes
        labels, scores = np.zeros(1, np.int32), jnp.full_like(scores, -jnp.inf)
    scores, cells = scores[:, labels], cells[:, labels] if by_lod else cells
    places, count = kept(cells, scores, low, top, most, attrs)
    if by_lod:  # rows go by box
        there = jnp.arange(places.shape[2], dtype=jnp.int32) < count[..., None]
        places = lax.sort(jnp.where(there, places, np.iinfo(np.int32).max), dimension=2)
        places = jnp.where(there, places, 0)
    index = first[:, None, None] + (places * classes + labels[:, None] if by_lod else places)
    return _rows(
        cells, scores, places, _most_of_image(scores, places, count, most), labels, index, most
    )


def overlaps(size: int, normalized: bool) -> Overlaps:
    """The function for the overlap of a box of so many numbers with others: (box, others) ->
    [others].
    """
    if size > 4:
        return polygon_overlap
    more = 0 if normalized else 1
    return lambda a, b: overlap(b, a, more)


def detections(
    boxes: Any, scores: Any, labels: Any, low: float, top: int, most: int, attrs: Attrs
) -> tuple[Ragged, Ragged]:
    """Out for the classes `labels`, and positions in M. boxes [N, C or 1, M, 4], scores [N, C, M]."""
    places, count = kept(boxes, scores, low, top, most, attrs)
    return _rows(
        boxes, scores, places, _most_of_image(scores, places, count, most), labels, places, most
    )


def _as_images(boxes: Any, scores: Any) -> tuple[Any, Any, Any]:
    """Boxes [N, 1, M, 4], scores [N, C, M], and the row of each image's first box."""
    return boxes[:, None], scores, jnp.arange(scores.shape[0], dtype=jnp.int32) * scores.shape[2]


def _by_images(op_type: str, boxes: Any, scores: Any) -> tuple[Any, Any, Any]:
    """The same for sequences: boxes [N, C, longest, 4]; cells after the end have scores that are
    never taken.
    """
    x = sequences_of(op_type, "BBoxes", boxes)
    cells = view(x.with_rows(rows_of(scores)))
    cells = jnp.where(mask(x)[..., None], cells, -jnp.inf)
    return (
        jnp.swapaxes(view(x), 1, 2),
        jnp.swapaxes(cells, 1, 2),
        x.offsets[-1][:-1] * cells.shape[2],
    )


def kept(boxes: Any, scores: Any, low: float, top: int, most: int, attrs: Attrs) -> tuple[Any, Any]:
    """Positions in M of the boxes that each class keeps, [N, C, kept], and their number. boxes [N,
    C or 1, M, 4], scores [N, C, M].
    """
    n, classes, width = scores.shape
    places, there = best(scores.reshape(n * classes, width), low, top)
    room = places.shape[1] if most < 0 else min(places.shape[1], most)
    lanes = jnp.broadcast_to(boxes, (n, classes, *boxes.shape[2:])).reshape(
        n * classes, *boxes.shape[2:]
    )
    lanes = jnp.take_along_axis(lanes, places[..., None], 1)
    at, count = each(
        lanes,
        there,
        overlaps(boxes.shape[-1], attrs["normalized"]),
        attrs["threshold"],
        attrs["eta"],
        room,
    )
    return jnp.take_along_axis(places, at, 1).reshape(n, classes, room), count.reshape(n, classes)


def _most_of_image(scores: Any, places: Any, count: Any, most: int) -> Any:
    """Which of the kept ones [N, C, kept] are among the best `most` of their image."""
    n, classes, room = places.shape
    there = jnp.arange(room, dtype=jnp.int32) < count[..., None]
    if most < 0 or classes * room <= most:
        return there
    found = jnp.take_along_axis(scores, places, 2)
    top, alive = best(jnp.where(there, found, -jnp.inf).reshape(n, classes * room), -np.inf, most)
    image = jnp.arange(n, dtype=jnp.int32)[:, None]
    return jnp.zeros((n, classes * room), bool).at[image, top].set(alive).reshape(there.shape)


def _rows(
    cells: Any, scores: Any, places: Any, chosen: Any, labels: Any, index: Any, most: int
) -> tuple[Ragged, Ragged]:
    """The chosen ones of all images as rows."""
    n, classes, room = places.shape
    size = classes * room
    longest = size if most < 0 else min(most, size)
    ends = jnp.cumsum(chosen.reshape(-1), dtype=jnp.int32)
    offsets = jnp.concatenate(
        [jnp.zeros((1,), jnp.int32), ends[size - 1 :: size] if size else jnp.zeros((n,), jnp.int32)]
    )
    cell = jnp.searchsorted(
        ends, jnp.arange(1, n * longest + 1, dtype=jnp.int32), method="scan_unrolled"
    ).astype(jnp.int32)
    cell = jnp.where(cell < n * size, cell, 0)
    lane = lax.div(cell, jnp.int32(max(room, 1)))  # image and class
    owner = lane if cells.shape[1] > 1 else lax.div(lane, jnp.int32(max(classes, 1)))
    at = places.reshape(-1)[cell]
    label = jnp.asarray(np.tile(labels, n))[lane].astype(scores.dtype)
    box = cells.reshape(-1, *cells.shape[2:])[owner, at]
    rows = jnp.concatenate(
        [
            label[:, None],
            scores.reshape(n * classes, -1)[lane, at][:, None],
            box.astype(scores.dtype),
        ],
        1,
    )
    out = bounded(rows, offsets, longest)
    return out, out.with_rows(index.reshape(-1)[cell].astype(jnp.int32)[:, None])
