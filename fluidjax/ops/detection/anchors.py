"""rpn_target_assign and retinanet_target_assign: which anchors are trained to find which boxes, and
which are background.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..greatest import first_greatest
from ..infer import Spec
from ..ragged import Ragged, mask, same_sequences, sequences_of, view
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import boxes_checked
from .overlaps import deltas, pixel_overlaps
from .packing import firsts, packed
from .sampling import sampled

NEAR = 1e-4  # overlaps that differ by less are equal


def _scored(
    anchors: Any, there: Any, boxes: Any, real: Any, positive: float, negative: float
) -> tuple[Any, Any, Any]:
    """Which anchors [A] among `there` find a box, which may be background, and the box that each
    overlaps most.

    boxes [G, 4]; only `real` ones count. An anchor finds a box that it overlaps by `positive`, or
    that no anchor overlaps by more than it.
    """
    overlap = jnp.where(real, pixel_overlaps(anchors, boxes), -np.inf)
    best = jnp.max(overlap, 1, initial=-np.inf)
    of_box = jnp.max(jnp.where(there[:, None], overlap, -np.inf), 0, initial=-np.inf)
    # avoids nan for absent boxes, which are not real
    greatest = (jnp.abs(overlap - of_box) < NEAR).any(1)
    return (
        there & (greatest | (best >= positive)),
        there & (best < negative),
        first_greatest(overlap, 1) if boxes.shape[0] else best * 0,
    )


def _assigned(fg: Any, bg: Any, first: Any, room: tuple[int, int]) -> tuple[Any, ...]:
    """The positions of the anchors with a box target and of those with a score target, their
    weights and numbers.

    An anchor sampled for both is background; the first that finds a box (`first`) replaces it among
    the box targets, with weight 0.
    """
    both = (fg & bg).sum().astype(np.int32)
    real = fg & ~bg
    places, number = firsts(real, room[0])
    at = jnp.arange(room[0], dtype=np.int32)
    location = jnp.where(at < both, first, jnp.take(places, jnp.maximum(at - both, 0), mode="clip"))
    others, background = firsts(bg, room[1])
    slot = jnp.arange(room[1], dtype=np.int32)
    shifted = jnp.take(others, jnp.maximum(slot - number, 0), mode="clip")
    score = jnp.where(slot < number, jnp.take(places, slot, mode="clip"), shifted)
    return location, (at >= both), number + both, score, slot < number, number + background


def _inputs(op: str, anchors: Any, info: Any, **ragged: Any) -> dict[str, Ragged]:
    """The boxes of each image, and the inputs that belong to them."""
    boxes_checked(op, "Anchor", anchors)
    found = {slot: sequences_of(op, slot, value, 1) for slot, value in ragged.items()}
    same_sequences(op, found)
    boxes = found["GtBoxes"]
    boxes_checked(op, "GtBoxes", boxes.rows)
    if info.ndim != 2 or info.shape != (boxes.sequences, 3):
        raise ShapeError(
            f"op '{op}' takes ImInfo [{boxes.sequences}, 3] for the images that GtBoxes has, not"
            f" {list(info.shape)}"
        )
    return found


def _targets(
    anchors: Any,
    boxes: Ragged,
    crowd: Ragged,
    info: Any,
    thresholds: tuple[float, float],
    straddle: float,
    draw: Any,
) -> Any:
    """The result of _assigned for each image, with the offsets of the box targets and the box of
    each, stacked.
    """
    anchors = jnp.asarray(anchors)
    real = mask(boxes) & (view(crowd).reshape(boxes.sequences, boxes.longest[-1]) == 0)

    def one(boxes: Any, real: Any, info: Any, key: Any) -> tuple[Any, ...]:
        if straddle >= 0:
            limit = jnp.stack([info[1], info[0]]) + straddle
            there = (anchors[:, :2] >= -straddle).all(1) & (anchors[:, 2:] < limit).all(1)
        else:
            there = jnp.ones(anchors.shape[0], bool)
        boxes = boxes * info[2]
        fg, bg, best = _scored(anchors, there, boxes, real, *thresholds)
        fg, bg, first, room = draw(fg, bg, key)
        location, weight, wanted, *scores = _assigned(fg, bg, first, room)
        box = best[location].astype(np.int32)
        target = deltas(anchors[location], jnp.take(boxes, box, axis=0, mode="clip"))
        return (location, target, weight, wanted, best, *scores)

    keys = draw.keys(boxes.sequences)
    return jax.vmap(one)(view(boxes), real, info, keys)


class _Draw:
    """Which candidate anchors are sampled, at most so many; see sampled."""

    def __init__(self, anchors: int, most_fg: int | None, most: int | None, key: Any) -> None:
        self.anchors, self.most_fg, self.most, self.key = anchors, most_fg, most, key

    def keys(self, images: int) -> Any:
        return jax.random.split(jax.random.key(0) if self.key is None else self.key, images)

    def __call__(self, fg: Any, bg: Any, key: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
        keys = [None, None] if self.key is None else jax.random.split(key)
        room = self.anchors if self.most_fg is None else min(self.most_fg, self.anchors)
        fg, first = sampled(fg, room, keys[0])
        every = self.anchors if self.most is None else min(self.most, self.anchors)
        left = self.anchors if self.most is None else self.most - fg.sum()
        bg, _ = sampled(bg, left, keys[1])
        return fg, bg, first, (max(room, 1), max(every, 1))


def _spec(Anchor: Spec) -> tuple[Spec, ...]:
    boxes_checked("rpn_target_assign", "Anchor", Anchor)
    return (
        Spec((-1,), "int32"), Spec((-1,), "int32"), Spec((-1, 4), Anchor.dtype), Spec((-1, 1), "int32"), Spec((-1, 4), Anchor.dtype),
    )  # fmt: skip


def _rpn_spec(
    Anchor: Spec,
    GtBoxes: Spec,
    IsCrowd: Spec,
    ImInfo: Spec,
    *,
    rpn_batch_size_per_im: int,
    **attrs: Any,
) -> tuple[Spec, ...]:
    if rpn_batch_size_per_im < 1:
        raise ShapeError(
            "op 'rpn_target_assign' takes a rpn_batch_size_per_im from 1, not"
            f" {rpn_batch_size_per_im}"
        )
    return _spec(Anchor)


_ROWS = ("LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight")


def _no_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    """No LoD is declared, as in 1.8.5; the fetched values have one."""
    return {}


@op(
    outs=" ".join(_ROWS),
    infer=_rpn_spec,
    rows=knows_rows(_no_level),
    chosen=rows_by(
        "Anchor GtBoxes IsCrowd ImInfo", "rpn_batch_size_per_im rows an image", exact=False
    ),
)
def rpn_target_assign(
    Anchor: Array, GtBoxes: Ragged, IsCrowd: Ragged, ImInfo: Array, key: Any, *, rpn_straddle_thresh: float,
    rpn_batch_size_per_im: int = 256, rpn_positive_overlap: float = 0.7, rpn_negative_overlap: float = 0.3, rpn_fg_fraction: float = 0.25,
    use_random: bool = True,
):  # fmt: skip
    """LocationIndex [F], ScoreIndex [S] = positions in N * A anchors: those trained to find a box,
    and all that are trained.

    Anchor [A, 4]; GtBoxes [G, 4] and IsCrowd [G, 1], whose boxes count for nothing, with a LoD of
    the N images; ImInfo [N, 3] (height, width, the scale of GtBoxes). Anchors farther than
    rpn_straddle_thresh outside the image are left out (unless it is negative). An anchor finds a
    box (label 1) from an overlap of rpn_positive_overlap on, or if it is the one that overlaps it
    most; below rpn_negative_overlap it finds none (0). Each image gives at most
    rpn_batch_size_per_im anchors, at most a share of rpn_fg_fraction with a box: the first ones, or
    random ones if use_random. TargetLabel [S, 1], TargetBBox [F, 4]: how the box differs from the
    anchor, BBoxInsideWeight [F, 4]: 0 for those sampled for both.
    """
    found = _inputs("rpn_target_assign", Anchor, ImInfo, GtBoxes=GtBoxes, IsCrowd=IsCrowd)
    count = Anchor.shape[0]
    batch = rpn_batch_size_per_im
    most_fg = int(np.float32(batch) * np.float32(rpn_fg_fraction)) if rpn_fg_fraction > 0 else None
    draw = _Draw(count, most_fg, batch, key if use_random else None)
    thresholds = rpn_positive_overlap, rpn_negative_overlap
    location, target, weight, wanted, _, score, label, scored = _targets(
        Anchor, found["GtBoxes"], found["IsCrowd"], ImInfo, thresholds, rpn_straddle_thresh, draw
    )
    base = (jnp.arange(location.shape[0], dtype=np.int32) * count)[:, None]
    weights = jnp.broadcast_to(weight[..., None], target.shape).astype(Anchor.dtype)
    location, target, weights = packed(wanted, location + base, target, weights)
    score, label = packed(scored, score + base, label[..., None].astype(np.int32))
    return location, score, target, label, weights


def _retinanet_spec(
    Anchor: Spec, GtBoxes: Spec, GtLabels: Spec, IsCrowd: Spec, ImInfo: Spec, **attrs: Any
) -> tuple[Spec, ...]:
    return *_spec(Anchor), Spec((-1, 1), "int32")


@op(
    outs=" ".join((*_ROWS, "ForegroundNumber")),
    infer=_retinanet_spec,
    rows=knows_rows(_no_level),
    chosen=rows_by(
        "Anchor GtBoxes GtLabels IsCrowd ImInfo",
        "as many rows an image as there are anchors",
        exact=False,
    ),
)
def retinanet_target_assign(
    Anchor: Array, GtBoxes: Ragged, GtLabels: Ragged, IsCrowd: Ragged, ImInfo: Array, *, positive_overlap: float = 0.5,
    negative_overlap: float = 0.4,
):  # fmt: skip
    """LocationIndex, ScoreIndex and so on = those of rpn_target_assign for all anchors, without
    sampling.

    TargetLabel is GtLabels [G, 1] of the box that an anchor finds, 0 for none. ForegroundNumber [N,
    1] (int32): 1 + the anchors that find a box.
    """
    found = _inputs(
        "retinanet_target_assign",
        Anchor,
        ImInfo,
        GtBoxes=GtBoxes,
        GtLabels=GtLabels,
        IsCrowd=IsCrowd,
    )
    count = Anchor.shape[0]
    thresholds = positive_overlap, negative_overlap
    location, target, weight, wanted, best, score, label, scored = _targets(
        Anchor,
        found["GtBoxes"],
        found["IsCrowd"],
        ImInfo,
        thresholds,
        -1.0,
        _Draw(count, None, None, None),
    )
    images = location.shape[0]
    labels = view(found["GtLabels"]).reshape(images, -1)
    box = jnp.take_along_axis(best, score, 1).astype(np.int32)
    kind = jnp.where(label, jnp.take_along_axis(labels, box, 1, mode="clip"), 0).astype(np.int32)
    base = (jnp.arange(images, dtype=np.int32) * count)[:, None]
    weights = jnp.broadcast_to(weight[..., None], target.shape).astype(Anchor.dtype)
    location, target, weights = packed(wanted, location + base, target, weights)
    score, kind = packed(scored, score + base, kind[..., None])
    number = (wanted + 1).astype(np.int32)[:, None]
    offsets = jnp.arange(images + 1, dtype=np.int32)
    return (
        location,
        score,
        target,
        kind,
        weights,
        Ragged(number, (offsets,), (1,), ("one an image", images)),
    )
