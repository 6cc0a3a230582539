"""multiclass_nms, multiclass_nms2: of every class of an image the boxes with the best scores that do not overlap."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import EnforceNotMet, FluidValueError, ShapeError
from ..infer import Spec
from ..ragged import Ragged, bounded, rows_of, segments, sequences_of
from ..registry import Array, op
from ..traits import CHANNELS_FIRST, Attrs, knows_rows, rows_by
from .similarity import overlap
from .suppress import best, each

POLYGONS = (8, 16, 24, 32)
CHOSEN = rows_by("Scores BBoxes", "keep_top_k rows an image, or all boxes of all classes", exact=False)


def _checked(op_type: str, boxes: Any, scores: Any) -> None:
    """Raises ShapeError for shapes that do not go together, UnsupportedError for polygons."""
    shapes = f"not {list(boxes.shape)} and {list(scores.shape)}"
    if len(boxes.shape) != 3 or len(scores.shape) not in (2, 3):
        raise ShapeError(f"op '{op_type}' takes BBoxes [N, M, 4] and Scores [N, C, M], or [M, C, 4] and [M, C] with a LoD, {shapes}")
    last = scores.shape[2 if len(scores.shape) == 3 else 1]
    if min(boxes.shape[1], last) >= 0 and boxes.shape[1] != last:
        raise ShapeError(f"op '{op_type}' takes a score for each box of a class, {shapes}")
    if boxes.shape[2] in POLYGONS and len(scores.shape) == 3:
        raise ShapeError(f"op '{op_type}' takes boxes of 4 numbers; overlaps of polygons ({boxes.shape[2]} numbers) are not there")
    if boxes.shape[2] not in (4, -1):
        raise ShapeError(f"op '{op_type}' takes boxes of 4 numbers, {shapes}")


def check_limits(op_type: str, **limits: int) -> None:
    """Raises FluidValueError for limits below -1, which is none."""
    for name, value in limits.items():
        if value < -1:
            raise FluidValueError(f"op '{op_type}' takes {name} from 0, or -1 for all, not {value}")


def _spec(op_type: str, BBoxes: Spec, Scores: Spec, attrs: Attrs) -> Spec:
    _checked(op_type, BBoxes, Scores)
    check_limits(op_type, nms_top_k=attrs["nms_top_k"], keep_top_k=attrs["keep_top_k"])
    rows = BBoxes.shape[1] if Scores.ndim == 3 else -1
    return Spec((-1, BBoxes.shape[2] + 2 if BBoxes.shape[2] > 0 else -1), BBoxes.dtype) if rows < 0 else Spec((rows, BBoxes.shape[2] + 2), BBoxes.dtype)


def _nms_spec(BBoxes: Spec, Scores: Spec, **attrs: Any) -> Spec:
    return _spec("multiclass_nms", BBoxes, Scores, attrs)


def _nms2_spec(BBoxes: Spec, Scores: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    return _spec("multiclass_nms2", BBoxes, Scores, attrs), Spec((-1, 1), "int32")
