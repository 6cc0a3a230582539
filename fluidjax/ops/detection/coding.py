"""Boxes written as differences from other boxes, and back: box_coder, box_decoder_and_assign;
box_clip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, FluidValueError, ShapeError
from ..greatest import first_greatest
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, Floats, op
from ..traits import Attrs, Shapes, knows_rows, row_wise

CODES = ("encode_center_size", "decode_center_size")


def centred(boxes: Any, more: int) -> tuple[Any, Any]:
    """Centres and sizes [..., 2]; more: 1 if the last pixel belongs to a box."""
    sizes = boxes[..., 2:4] - boxes[..., :2] + more
    return boxes[..., :2] + sizes / 2, sizes


def cornered(centres: Any, sizes: Any, more: int) -> Any:
    return jnp.concatenate([centres - sizes / 2, centres + sizes / 2 - more], -1)


def _fit(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes may be one, -1 being any size."""
    return len(a) == len(b) and all(m == n or min(m, n) < 0 for m, n in zip(a, b, strict=True))


def _coder_spec(
    PriorBox: Spec, PriorBoxVar: Spec | None, TargetBox: Spec, *, code_type: str, axis: int, variance: Sequence[float], **_: Any
) -> Spec:  # fmt: skip
    if code_type not in CODES:
        raise FluidValueError(
            f"op 'box_coder' has the code_type {' or '.join(CODES)}, not {code_type!r}"
        )
    if axis not in (0, 1):
        raise FluidValueError(f"op 'box_coder' takes priors along axis 0 or 1, not {axis}")
    if PriorBox.ndim != 2 or PriorBox.shape[1] not in (4, -1):
        raise ShapeError(f"op 'box_coder' takes PriorBox [priors, 4], not {list(PriorBox.shape)}")
    if (variance and len(variance) != 4) or (variance and PriorBoxVar is not None):
        raise FluidValueError(
            "op 'box_coder' takes four numbers as variance, or PriorBoxVar, not both; variance is"
            f" {list(variance)}"
        )
    if PriorBoxVar is not None and not _fit(PriorBoxVar.shape, PriorBox.shape):
        raise ShapeError(
            f"op 'box_coder' takes PriorBoxVar of PriorBox's shape {list(PriorBox.shape)}, not"
            f" {list(PriorBoxVar.shape)}"
        )
    if code_type == CODES[0]:
        if TargetBox.ndim != 2 or TargetBox.shape[1] not in (4, -1):
            raise ShapeError(
                f"op 'box_coder' encodes TargetBox [rows, 4], not {list(TargetBox.shape)}"
            )
        return Spec((TargetBox.shape[0], PriorBox.shape[0], 4), TargetBox.dtype)
    known = TargetBox.shape[1 - axis] if TargetBox.ndim == 3 else -1
    if (
        TargetBox.ndim != 3
        or TargetBox.shape[2] not in (4, -1)
        or (min(known, PriorBox.shape[0]) >= 0 and known != PriorBox.shape[0])
    ):
        raise ShapeError(
            "op 'box_coder' decodes TargetBox [rows, boxes, 4] with a prior for each on axis"
            f" {1 - axis}, not {list(TargetBox.shape)} with {PriorBox.shape[0]} priors"
        )
    return TargetBox


def _along_rows(attrs: Attrs) -> bool:
    """Whether the priors go along the rows."""
    return bool(attrs["code_type"] != CODES[0] and attrs["axis"] == 1)


def _row_by_row(attrs: Attrs, shapes: Shapes) -> bool:
    """Priors go along the columns, or along the rows as the targets do."""
    given = {s for s in ("PriorBox", "PriorBoxVar", "TargetBox") if shapes.get(s) is not None}
    return bool(shapes["ragged"] == (given if _along_rows(attrs) else {"TargetBox"}))


def _with_the_rows(attrs: Attrs, _: Mapping[str, Any]) -> str:
    """The value whose LoD the boxes take: the one along the rows."""
    return "PriorBox" if _along_rows(attrs) else "TargetBox"


@op(
    outs="OutputBox",
    infer=_coder_spec,
    rows=row_wise(
        "TargetBox",
        "PriorBox",
        "PriorBoxVar",
        beside="PriorBox PriorBoxVar",
        when=_row_by_row,
        lod=_with_the_rows,
    ),
)
def box_coder(
    PriorBox: Array, PriorBoxVar: Array | None, TargetBox: Array, *, code_type: str = CODES[0], box_normalized: bool = True,
    axis: int = 0, variance: Floats = (),
):  # fmt: skip
    """OutputBox [rows, priors, 4] = (centre - prior centre) / prior size and log(size / prior
    size), over variances; or the inverse.

    Boxes are (x1, y1, x2, y2). encode_center_size: codes of TargetBox [rows, 4] for every prior.
    decode_center_size: boxes from the codes TargetBox [rows, priors, 4]; with axis 1 the priors go
    along the rows. Variances: PriorBoxVar [priors, 4], or `variance`, or 1. box_normalized: false
    if the last pixel belongs to a box, which makes sides longer by one.
    """
    more = 0 if box_normalized else 1
    centres, sizes = centred(PriorBox, more)
    if code_type == CODES[0]:
        target, extent = centred(TargetBox[:, None, :], more)
        if more:  # centres of targets are halfway between their corners
            target = (TargetBox[:, None, 2:] + TargetBox[:, None, :2]) / 2
        code = jnp.concatenate([(target - centres) / sizes, jnp.log(jnp.abs(extent / sizes))], -1)
        return code / _spread(PriorBoxVar, variance, code.dtype, 0)
    place = (None, slice(None)) if axis == 0 else (slice(None), None)
    code = TargetBox * _spread(PriorBoxVar, variance, TargetBox.dtype, axis)
    return cornered(
        code[..., :2] * sizes[place] + centres[place], jnp.exp(code[..., 2:]) * sizes[place], more
    )


def _spread(given: Any, numbers: Sequence[float], dtype: Any, axis: int) -> Any:
    """The variances beside [rows, priors, 4]."""
    if given is not None:
        return given[None] if axis == 0 else given[:, None]
    return np.asarray(numbers, dtype) if numbers else np.ones((), dtype)


def _clip_spec(Input: Spec, ImInfo: Spec) -> Spec:
    if Input.ndim < 2 or Input.shape[-1] not in (4, -1):
        raise ShapeError(f"op 'box_clip' takes Input [..., 4], not {list(Input.shape)}")
    if ImInfo.ndim != 2 or ImInfo.shape[1] not in (3, -1):
        raise ShapeError(f"op 'box_clip' takes ImInfo [N, 3], not {list(ImInfo.shape)}")
    return Input


@op(outs="Output", infer=_clip_spec, rows=knows_rows(Output="Input"))
def box_clip(Input: Ragged | Array, ImInfo: Array):
    """Output = the boxes (x1, y1, x2, y2) of Input [..., 4] cut to their image: 0 to round(size /
    scale) - 1.

    ImInfo [N, 3]: height, width, scale of each image. Input: one LoD level, a sequence an image, or
    none for one image.
    """
    info, rows = rows_of(ImInfo), rows_of(Input)
    ends = jnp.stack([whole(info[:, a] / info[:, 2]) - 1 for a in (1, 0, 1, 0)], -1)
    if isinstance(Input, Ragged) and not Input.bare:
        if len(Input.offsets) != 1 or info.shape[0] != Input.sequences:
            raise EnforceNotMet(
                "op 'box_clip' takes one LoD level and a row of ImInfo for each sequence, not"
                f" {len(Input.offsets)} levels, {Input.sequences} sequences and {info.shape[0]}"
                " rows"
            )
        ends = ends[jnp.minimum(Input.sequence(), max(Input.sequences - 1, 0))].reshape(
            rows.shape[0], *[1] * (rows.ndim - 2), 4
        )
    else:
        ends = ends[0]
    cut = jnp.minimum(rows, ends)
    cut = jnp.maximum(cut, 0)
    return Input.with_rows(cut) if isinstance(Input, Ragged) else cut


def whole(x: Any) -> Any:
    """The nearest whole number, halves away from 0."""
    return jnp.where(x < 0, -jnp.floor(0.5 - x), jnp.floor(x + 0.5))


def _assign_spec(
    PriorBox: Spec, PriorBoxVar: Spec | None, TargetBox: Spec, BoxScore: Spec, **_: Any
) -> tuple[Spec, Spec]:
    shapes = [list(s.shape) for s in (PriorBox, TargetBox, BoxScore)]
    if any(len(s) != 2 for s in shapes) or shapes[0][1] not in (4, -1):
        raise ShapeError(
            "op 'box_decoder_and_assign' takes PriorBox [R, 4], TargetBox [R, 4 * C] and BoxScore"
            f" [R, C], not {shapes}"
        )
    if min(shapes[1][1], shapes[2][1]) >= 0 and shapes[1][1] != 4 * shapes[2][1]:
        raise ShapeError(
            "op 'box_decoder_and_assign' takes four columns of TargetBox for each of BoxScore, not"
            f" {shapes[1:]}"
        )
    if PriorBoxVar is not None and (PriorBoxVar.ndim != 1 or PriorBoxVar.shape[0] not in (4, -1)):
        raise ShapeError(
            f"op 'box_decoder_and_assign' takes PriorBoxVar [4], not {list(PriorBoxVar.shape)}"
        )
    return TargetBox, PriorBox


@op(
    outs="DecodeBox OutputAssignBox",
    infer=_assign_spec,
    rows=row_wise("PriorBox", "TargetBox", "BoxScore"),
)
def box_decoder_and_assign(
    PriorBox: Array,
    PriorBoxVar: Array | None,
    TargetBox: Array,
    BoxScore: Array,
    *,
    box_clip: float = 4.135,
):
    """DecodeBox [R, 4 * C] = the boxes decoded from the codes TargetBox beside PriorBox [R, 4];
    OutputAssignBox [R, 4] = one of them: that of the best class of BoxScore [R, C] except the
    first, or the prior if no score is above -1.

    Boxes are in pixels and include the last one. PriorBoxVar [4] multiplies codes; codes of sizes
    are at most box_clip.
    """
    if PriorBoxVar is None:
        raise EnforceNotMet(
            "op 'box_decoder_and_assign' takes four variances, PriorBoxVar, which is missing"
        )
    rows, classes = BoxScore.shape
    codes = TargetBox.reshape(rows, classes, 4) * PriorBoxVar
    sizes = PriorBox[:, 2:] - PriorBox[:, :2] + 1
    centres = (PriorBox[:, :2] + sizes / 2)[:, None]
    extent = codes[..., 2:]
    extent = (
        jnp.exp(jnp.where(box_clip < extent, np.asarray(box_clip, extent.dtype), extent))
        * sizes[:, None]
    )
    boxes = cornered(codes[..., :2] * sizes[:, None] + centres, extent, 1)
    scores = BoxScore.astype(np.float32)
    scores = jnp.where((scores > -1) & (jnp.arange(classes) > 0), scores, -jnp.inf)
    best = first_greatest(scores, 1)
    found = jnp.take_along_axis(boxes, best[:, None, None], 1)[:, 0]
    chosen = jnp.take_along_axis(scores, best[:, None], 1) > -1
    return boxes.reshape(rows, classes * 4), jnp.where(chosen, found, PriorBox)
