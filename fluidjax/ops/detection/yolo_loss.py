"""yolov3_loss: the loss of a YOLO head for given true boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import FluidValueError, ShapeError
from ..checking import Objection
from ..greatest import first_greatest
from ..infer import Spec
from ..outside import outside
from ..ragged import rows_of
from ..registry import Array, Ints, grad_of, op
from ..traits import row_wise
from ..window import from_one
from .yolo import check_anchors

TINY = 1e-6  # a true box with a smaller width or height is ignored
POSITIVE = 1e-5  # a cell with a larger weight is trained as holding a box
NEGATIVE = -0.5  # one with a larger weight as holding none; others are not trained


def _spec(
    X: Spec, GTBox: Spec, GTLabel: Spec, GTScore: Spec | None, **attrs: Any
) -> tuple[Spec, Spec, Spec]:
    used = attrs["anchor_mask"]
    if not used or min(used) < 0 or max(used) >= len(attrs["anchors"]) // 2:
        count = len(attrs["anchors"]) // 2
        raise FluidValueError(
            f"op 'yolov3_loss' takes anchor_mask of numbers of its {count} anchors, not"
            f" {list(used)}"
        )
    check_anchors("yolov3_loss", X, attrs["anchors"], len(used), attrs["class_num"])
    if min(X.shape[2:]) >= 0 and X.shape[2] != X.shape[3]:
        raise ShapeError(f"op 'yolov3_loss' takes square maps, not {list(X.shape)}")
    if (
        GTBox.ndim != 3
        or GTBox.shape[2] not in (4, -1)
        or any(s is not None and s.ndim != 2 for s in (GTLabel, GTScore))
    ):
        raise ShapeError(
            "op 'yolov3_loss' takes GTBox [N, B, 4], GTLabel and GTScore [N, B], not"
            f" {list(GTBox.shape)}, {list(GTLabel.shape)} and"
            f" {None if GTScore is None else list(GTScore.shape)}"
        )
    return (
        Spec((X.shape[0],), X.dtype),
        Spec((X.shape[0], len(used), *X.shape[2:]), X.dtype),
        Spec(GTBox.shape[:2], "int32"),
    )


def _sigmoid_cross_entropy(x: Any, label: Any) -> Any:
    return jnp.maximum(x, 0) - x * label + jnp.log1p(jnp.exp(-jnp.abs(x)))


def _overlap(a: Any, b: Any) -> Any:
    """Intersection over union of boxes (x, y, w, h) [..., 4] around their centres."""
    low = jnp.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = jnp.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    side = high - low
    common = jnp.where((side < 0).any(-1), 0, side[..., 0] * side[..., 1])
    return common / (a[..., 2] * a[..., 3] + b[..., 2] * b[..., 3] - common)


@dataclass(frozen=True)
class _Head:
    """The attributes of the op, and the shape of X."""

    shape: tuple[int, ...]
    anchors: Sequence[int]
    used: Sequence[int]
    classes: int
    ratio: int

    @property
    def cells(self) -> int:
        return self.shape[2] * self.shape[3]

    @property
    def size(self) -> int:
        """The input's height, in pixels."""
        return self.ratio * self.shape[2]

    def targets(self, boxes: Any, best: Any) -> Any:
        """The position of each true box's centre in its cell, and the log of its size over its
        anchor's: [N, B, 4].
        """
        high = self.shape[2]
        place = jnp.stack([boxes[..., 0] * high, boxes[..., 1] * high], -1) - jnp.stack(
            self.cell(boxes), -1
        )
        anchor = jnp.asarray(np.array(self.anchors, boxes.dtype).reshape(-1, 2))[best]
        return jnp.concatenate([place, jnp.log(boxes[..., 2:] * self.size / anchor)], -1)

    def cell(self, boxes: Any) -> tuple[Any, Any]:
        """Column and row of the cell that each true box is in."""
        high, wide = self.shape[2:]
        return (boxes[..., 0] * wide).astype(jnp.int32), (boxes[..., 1] * high).astype(jnp.int32)

    def entries(self, boxes: Any, mask: Any) -> Any:
        """The places in X, flattened, of the 5 + classes numbers of each true box's cell and
        anchor: [N, B, 5 + classes].
        """
        column, row = self.cell(boxes)
        anchor = jnp.arange(self.shape[0])[:, None] * len(self.used) + jnp.maximum(mask, 0)
        first = anchor * (5 + self.classes) * self.cells + row * self.shape[3] + column
        return first[..., None] + jnp.arange(5 + self.classes) * self.cells

    def owned(self, boxes: Any, mask: Any, owner: Any) -> Any:
        """The flattened positions, in a map [N, anchors, H, W], of the cells of `owner` boxes;
        beyond the end for others: [N, B].
        """
        column, row = self.cell(boxes)
        at = (
            (jnp.arange(self.shape[0])[:, None] * len(self.used) + jnp.maximum(mask, 0))
            * self.cells
            + row * self.shape[3]
            + column
        )
        return jnp.where(owner, at, self.shape[0] * len(self.used) * self.cells)


def _labels(classes: int, smooth: bool, label: Any, dtype: Any) -> Any:
    """The targets of the classes, [N, B, classes]."""
    weight = min(1.0 / classes, 1.0 / 40) if smooth else 0.0
    return jnp.where(
        label[..., None] == jnp.arange(classes),
        np.asarray(1 - weight, dtype),
        np.asarray(weight, dtype),
    )


def _last(places: Any, matched: Any) -> Any:
    """Which matched boxes are the last ones in their cell, [N, B]; places: cell numbers, distinct
    between images.
    """
    later = jnp.triu(jnp.ones((places.shape[1],) * 2, bool), 1)
    same = (places[:, :, None] == places[:, None, :]) & matched[:, None, :] & later
    return matched & ~same.any(2)


def _best(boxes: Any, head: _Head) -> Any:
    """The anchor that each true box overlaps most if both are at one position: [N, B]; the first of
    equal ones.
    """
    anchors = jnp.asarray(np.array(head.anchors, boxes.dtype).reshape(-1, 2)) / head.size
    nowhere = jnp.zeros((*boxes.shape[:2], 1, 2), boxes.dtype)
    here = jnp.concatenate([nowhere, boxes[:, :, None, 2:]], -1)
    there = jnp.concatenate([jnp.zeros_like(anchors), anchors], -1)
    overlap = _overlap(there, here).astype(jnp.float32)
    return first_greatest(jnp.where(overlap > 0, overlap, 0), -1)


def _match(best: Any, valid: Any, used: Sequence[int]) -> Any:
    """The position of the best anchor in anchor_mask, -1 if it is absent or the box is ignored: [N,
    B] int32.
    """
    places = jnp.asarray(np.array(used, np.int32)) == best[..., None]
    return jnp.where(places.any(-1) & valid, first_greatest(places, -1), -1)


def _crowded(x: Any, boxes: Any, valid: Any, head: _Head, scale: float) -> Any:
    """The largest overlap of the box that each cell predicts with a true one: [N, anchors, H, W]."""
    n, _, high, wide = head.shape
    cells = x.reshape(n, len(head.used), 5 + head.classes, high, wide)
    place = jnp.stack(
        jnp.meshgrid(jnp.arange(wide, dtype=x.dtype), jnp.arange(high, dtype=x.dtype))
    )
    moved = jax.nn.sigmoid(cells[:, :, :2]) * np.asarray(scale, x.dtype) + np.asarray(
        -0.5 * (scale - 1), x.dtype
    )
    anchors = (
        np.array(head.anchors, x.dtype).reshape(-1, 2)[list(head.used)].reshape(1, -1, 2, 1, 1)
    )
    guess = jnp.concatenate(
        [(place + moved) / high, jnp.exp(cells[:, :, 2:4]) * anchors / head.size], 2
    )
    overlap = _overlap(jnp.moveaxis(guess, 2, -1)[..., None, :], boxes[:, None, None, None])
    return jnp.where(valid[:, None, None, None] & (overlap > 0), overlap, 0).max(-1, initial=0)


def _no_classes(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
    """Labels of boxes that are not a class; ignored boxes may have any label."""
    none = (rows_of(inputs["GTBox"])[..., 2:] < TINY).any(-1)
    yield from outside(
        "label", rows_of(inputs["GTLabel"]).reshape(none.shape), 0, attrs["class_num"], none
    )


@op(
    outs="Loss ObjectnessMask~ GTMatchMask~",
    infer=_spec,
    rows=row_wise("X", "GTBox", "GTLabel", "GTScore", lod=None),
    refuses=_no_classes,
)
def yolov3_loss(
    X: Array, GTBox: Array, GTLabel: Array, GTScore: Array | None, *, anchors: Ints = (), anchor_mask: Ints = (), class_num: int,
    ignore_thresh: float = 0.7, downsample_ratio: int = 32, use_label_smooth: bool = True, scale_x_y: float = 1.0,
):  # fmt: skip
    """Loss [N] = sums of cross entropies and distances of X [N, anchors * (5 + classes), H, H] from
    the true boxes.

    GTBox [N, B, 4]: centre, width, height as parts of the image, none where a side is below 1e-6;
    GTLabel [N, B] int32; GTScore [N, B]: weights, 1 if absent. Each true box is trained in the cell
    of its centre, with the anchor that it overlaps most, if anchor_mask has it (GTMatchMask: which,
    else -1): 2 - w * h times cross entropies of the centre and distances of the log sizes, and
    cross entropies of the classes. Every cell is trained to hold a box (ObjectnessMask: the weight)
    or none (0), but those whose box overlaps a true one by more than ignore_thresh (-1).
    use_label_smooth: classes are trained to 1 - s and s, s = min(1 / classes, 1 / 40).
    """
    from_one(downsample_ratio=[downsample_ratio])
    head = _Head(X.shape, anchors, anchor_mask, class_num, downsample_ratio)
    valid = ~(GTBox[..., 2:] < TINY).any(-1)
    best = _best(GTBox, head)
    matches = _match(best, valid, anchor_mask)
    scores = jnp.ones(GTLabel.shape, X.dtype) if GTScore is None else GTScore
    crowded = _crowded(X, GTBox, valid, head, scale_x_y) > np.asarray(ignore_thresh, np.float32)
    matched = matches >= 0
    owner = _last(head.entries(GTBox, matches)[..., 0], matched)
    weights = jnp.where(crowded, np.asarray(-1, X.dtype), 0).reshape(-1)
    weights = weights.at[head.owned(GTBox, matches, owner)].set(scores, mode="drop")
    weights = weights.reshape(crowded.shape)
    given = jnp.take(X.reshape(-1), head.entries(GTBox, matches), mode="clip")
    target = head.targets(GTBox, best)
    scale = (2 - GTBox[..., 2] * GTBox[..., 3]) * scores
    place = _sigmoid_cross_entropy(given[..., :2], target[..., :2]).sum(-1) + jnp.abs(
        target[..., 2:] - given[..., 2:4]
    ).sum(-1)
    kind = _sigmoid_cross_entropy(
        given[..., 5:], _labels(class_num, use_label_smooth, GTLabel, X.dtype)
    ).sum(-1)
    loss = jnp.where(matched, place * scale + kind * scores, 0).sum(1)
    there = X.reshape(X.shape[0], len(anchor_mask), 5 + class_num, *X.shape[2:])[:, :, 4]
    held = _sigmoid_cross_entropy(there, (weights > POSITIVE).astype(X.dtype))
    held = jnp.where(weights > POSITIVE, held * weights, jnp.where(weights > NEGATIVE, held, 0))
    return loss + held.sum((1, 2, 3)), weights, matches


@grad_of(
    "yolov3_loss",
    "X GTBox GTLabel GTScore ObjectnessMask GTMatchMask",
    nograd="GTBox GTLabel GTScore",
    grad_outs="Loss",
)
def yolov3_loss_grad(
    X: Array, GTBox: Array, GTLabel: Array, GTScore: Array | None, ObjectnessMask: Array, GTMatchMask: Array, d_Loss: Array, *,
    anchors: Ints, anchor_mask: Ints, class_num: int, downsample_ratio: int, use_label_smooth: bool,
):  # fmt: skip
    """X@GRAD = Loss@GRAD times the derivative; if true boxes share a cell and an anchor, only the
    last one counts.

    The slope of a distance at 0 is -1.
    """
    head = _Head(X.shape, anchors, anchor_mask, class_num, downsample_ratio)
    matched = GTMatchMask >= 0
    scores = jnp.ones(GTLabel.shape, X.dtype) if GTScore is None else GTScore
    best = jnp.asarray(np.array(anchor_mask, np.int32))[jnp.maximum(GTMatchMask, 0)]
    entries = head.entries(GTBox, GTMatchMask)
    given = jnp.take(X.reshape(-1), entries, mode="clip")
    target = head.targets(GTBox, best)
    each = (d_Loss[:, None] * scores)[..., None]
    scale = each * (2 - GTBox[..., 2:3] * GTBox[..., 3:])
    size = jnp.where(given[..., 2:4] > target[..., 2:], scale, -scale)
    place = (jax.nn.sigmoid(given[..., :2]) - target[..., :2]) * scale
    kind = (
        jax.nn.sigmoid(given[..., 5:]) - _labels(class_num, use_label_smooth, GTLabel, X.dtype)
    ) * each
    there = X.reshape(X.shape[0], len(anchor_mask), 5 + class_num, *X.shape[2:])
    w = ObjectnessMask
    slope = jax.nn.sigmoid(there[:, :, 4]) - (w > POSITIVE).astype(X.dtype)
    held = jnp.where(w > POSITIVE, slope * w, jnp.where(w > NEGATIVE, slope, 0)) * d_Loss.reshape(
        -1, 1, 1, 1
    )
    grad = jnp.zeros_like(there).at[:, :, 4].set(held).reshape(-1)
    at = jnp.where(_last(entries[..., 0], matched)[..., None], entries, X.size)
    grad = grad.at[jnp.delete(at, 4, -1, assume_unique_indices=True)].set(
        jnp.concatenate([place, size, kind], -1), mode="drop"
    )
    return grad.reshape(X.shape)
