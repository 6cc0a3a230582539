"""generate_proposal_labels: the proposals of an image to train on, with the target class and box of
each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..checking import Objection
from ..greatest import first_greatest
from ..infer import Spec
from ..outside import outside
from ..ragged import Ragged, mask, rows_of, same_sequences, sequences_of, view
from ..registry import Array, Floats, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import boxes_checked
from .overlaps import deltas, pixel_overlaps
from .packing import firsts, packed
from .sampling import sampled

NEAR = 1e-5
_OUTS = ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights")


def _candidates(
    rois: Any,
    kept: Any,
    boxes: Any,
    real: Any,
    crowd: Any,
    thresholds: tuple[float, float, float],
    cascade: bool,
) -> Any:
    """The boxes and then the proposals of an image [M, 4] (only the proposals for a cascade): which
    find a box, which find none, and the box of each.

    A crowd's box finds nothing; in a cascade, as in 1.8.5, the proposal with its index does not.
    """
    fg_thresh, high, low = thresholds
    if cascade:
        place, number = firsts(
            kept & (rois[:, 2:] - rois[:, :2] + 1 > 0).all(1), max(rois.shape[0], 1)
        )
        every, there = rois[place], jnp.arange(place.shape[0]) < number
    else:
        every, there = jnp.concatenate([boxes, rois]), jnp.concatenate([real, kept])
    overlap = jnp.where(real, pixel_overlaps(every, boxes), -np.inf)
    best = jnp.max(overlap, 1, initial=-np.inf)
    box = (
        first_greatest(jnp.abs(best[:, None] - overlap) < NEAR, 1)
        if boxes.shape[0]
        else jnp.zeros(best.shape, np.int32)
    )
    void = jnp.concatenate([crowd & real, jnp.zeros(every.shape[0], bool)])[: every.shape[0]]
    best = jnp.where(void, -1, best)
    fg = there & (best >= fg_thresh)
    return every, fg, there & ~fg & (best >= low) & (best < high), box


def _inputs(
    rois: Any, classes: Any, crowd: Any, boxes: Any, info: Any
) -> tuple[Ragged, Ragged, Ragged, Ragged]:
    op = "generate_proposal_labels"
    slots = {"GtClasses": classes, "IsCrowd": crowd, "GtBoxes": boxes}
    found = {slot: sequences_of(op, slot, value) for slot, value in slots.items()}
    same_sequences(op, found)
    regions = sequences_of(op, "RpnRois", rois)
    boxes_checked(op, "RpnRois", regions.rows)
    boxes_checked(op, "GtBoxes", found["GtBoxes"].rows)
    if (
        info.ndim != 2
        or info.shape[1] != 3
        or not regions.sequences == found["GtBoxes"].sequences == info.shape[0]
    ):
        raise ShapeError(
            f"op '{op}' takes RpnRois, GtBoxes and ImInfo [N, 3] of the same images, not of"
            f" {regions.sequences}, {found['GtBoxes'].sequences} and {list(info.shape)}"
        )
    return regions, *(found[slot] for slot in slots)


def _spec(
    RpnRois: Spec,
    GtClasses: Spec,
    IsCrowd: Spec,
    GtBoxes: Spec,
    ImInfo: Spec,
    *,
    class_nums: int,
    **_: Any,
) -> tuple[Spec, ...]:
    if class_nums < 2:
        raise ShapeError(
            "op 'generate_proposal_labels' takes class_nums of at least 2, the background among"
            f" them, not {class_nums}"
        )
    kind, wide = GtBoxes.dtype, Spec((-1, 4 * class_nums), GtBoxes.dtype)
    return Spec((-1, 4), kind), Spec((-1, 1), "int32"), wide, wide, wide


def _no_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    """No LoD is declared, as in 1.8.5; the fetched values have one."""
    return {}


def _no_classes(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """Classes of boxes beyond class_nums; boxes around crowds are not trained on."""
    crowd = rows_of(inputs["IsCrowd"]) != 0
    yield from outside(
        "class",
        inputs["GtClasses"],
        0,
        attrs["class_nums"],
        crowd.reshape(rows_of(inputs["GtClasses"]).shape),
    )


@op(
    outs=" ".join(_OUTS),
    infer=_spec,
    rows=knows_rows(_no_level),
    chosen=rows_by(
        "RpnRois GtClasses IsCrowd GtBoxes ImInfo", "batch_size_per_im rows an image", exact=False
    ),
    refuses=_no_classes,
)
def generate_proposal_labels(
    RpnRois: Ragged, GtClasses: Ragged, IsCrowd: Ragged, GtBoxes: Ragged, ImInfo: Array, key: Any, *, batch_size_per_im: int,
    fg_fraction: float, fg_thresh: float, bg_thresh_hi: float, bg_thresh_lo: float, bbox_reg_weights: Floats, class_nums: int,
    use_random: bool = True, is_cascade_rcnn: bool = False, is_cls_agnostic: bool = False,
):  # fmt: skip
    """Rois = the boxes and proposals of each image to train on: first those that find a box, then
    background.

    RpnRois [R, 4], GtClasses [G, 1], IsCrowd [G, 1] and GtBoxes [G, 4] with a LoD of the N images,
    ImInfo [N, 3] (height, width, the scale of RpnRois). A region finds a box at an overlap of at
    least fg_thresh, and at most a share fg_fraction of batch_size_per_im does; from bg_thresh_lo to
    bg_thresh_hi it is background, up to batch_size_per_im in total. is_cascade_rcnn: all proposals
    with an extent are taken, and no boxes. Rois [S, 4], LabelsInt32 [S, 1] (0: background),
    BboxTargets [S, 4 * class_nums]: the offset of the box over bbox_reg_weights, in the columns of
    its class (is_cls_agnostic: of class 1), and 1 there in BboxInsideWeights and
    BboxOutsideWeights.
    """
    rois, classes, crowd, boxes = _inputs(RpnRois, GtClasses, IsCrowd, GtBoxes, ImInfo)
    most = rois.longest[-1] + boxes.longest[-1]
    room = most if is_cascade_rcnn else min(batch_size_per_im, most)
    most_fg = (
        most
        if is_cascade_rcnn
        else int(np.floor(np.float32(batch_size_per_im) * np.float32(fg_fraction)))
    )
    thresholds = fg_thresh, bg_thresh_hi, bg_thresh_lo

    def one(
        rois: Any, kept: Any, boxes: Any, real: Any, crowd: Any, classes: Any, info: Any, key: Any
    ) -> tuple[Any, ...]:
        rois = rois / info[2]
        every, fg, bg, box = _candidates(
            rois, kept, boxes, real, crowd, thresholds, is_cascade_rcnn
        )
        keys = jax.random.split(key) if use_random and not is_cascade_rcnn else [None, None]
        fg, _ = sampled(fg, most_fg, keys[0])
        bg, _ = sampled(bg, most if is_cascade_rcnn else batch_size_per_im - fg.sum(), keys[1])
        (first, number), (second, rest) = firsts(fg, max(room, 1)), firsts(bg, max(room, 1))
        at = jnp.arange(max(room, 1), dtype=np.int32)
        true = at < number
        place = jnp.where(true, first, jnp.take(second, jnp.maximum(at - number, 0), mode="clip"))
        label = jnp.where(true, jnp.take(classes, box[place], mode="clip"), 0).astype(np.int32)
        taken = every[place]
        target = deltas(taken, jnp.take(boxes, box[place], axis=0, mode="clip"), bbox_reg_weights)
        return taken * info[2], label, target, number + rest

    keys = jax.random.split(jax.random.key(0) if key is None else key, rois.sequences)
    flat = [view(v).reshape(boxes.sequences, -1) for v in (crowd, classes)]
    taken, label, target, count = jax.vmap(one)(
        view(rois), mask(rois), view(boxes), mask(boxes), flat[0] != 0, flat[1], ImInfo, keys
    )  # fmt: skip
    column = jnp.where(label > 0, 1, 0) if is_cls_agnostic else label
    here = (jnp.arange(class_nums) == column[..., None]) & (label > 0)[..., None]
    wide = (*label.shape, 4 * class_nums)
    targets = jnp.where(here[..., None], target[..., None, :], 0).reshape(wide)
    weights = jnp.broadcast_to(here[..., None], (*here.shape, 4)).reshape(wide).astype(target.dtype)
    return tuple(packed(count, taken, label[..., None], targets, weights, weights))
