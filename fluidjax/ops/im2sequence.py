"""im2sequence: the windows of images as sequences."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .concrete import numbers_of
from .infer import Spec
from .layout import unfold
from .ragged import Ragged, bounded, segments
from .registry import Array, Ints, op
from .traits import Attrs, knows_rows
from .window import from_one


def _outs(size: Any, axis: int, kernels: Any, strides: Any, paddings: Any) -> Any:
    """How many windows fit along an axis of `size` pixels; paddings: up, left, down, right."""
    return (size - kernels[axis] + paddings[axis] + paddings[axis + 2]) // strides[axis] + 1


def _spec(
    X: Spec, Y: Spec | None, *, kernels: Ints, strides: Ints, paddings: Ints, **_: Any
) -> Spec:
    if len(X.shape) != 4 or len(kernels) != 2 or len(strides) != 2 or len(paddings) != 4:
        raise ShapeError(
            "op 'im2sequence' takes X [N, C, H, W], two kernels and strides, and four paddings,"
            f" not {list(X.shape)}, {list(kernels)}, {list(strides)} and {list(paddings)}"
        )
    from_one(kernels=kernels, strides=strides)
    n, channels, *sizes = X.shape
    rows = -1
    if Y is None and all(size >= 0 for size in (n, *sizes)):
        rows = n * math.prod(_outs(sizes[a], a, kernels, strides, paddings) for a in (0, 1))
    return Spec((rows, channels * kernels[0] * kernels[1]), X.dtype)


def _one_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 1}


@op(
    outs="Out",
    grad="X",
    nograd="Y",
    infer=_spec,
    rows=knows_rows(_one_level),
)
def im2sequence(
    X: Array,
    Y: Array | None,
    *,
    kernels: Ints,
    strides: Ints = (1, 1),
    paddings: Ints = (0, 0, 0, 0),
    out_stride: Ints = (1, 1),
):
    """Out = the windows of each image, one per row, as a sequence: [N * windows, C * kh * kw] from
    X [N, C, H, W].

    Windows go row by row; paddings: up, left, down, right. Y [N, 2]: real heights and widths,
    out_stride times those in X; image n has only the windows within its own part of X (ignored if N
    is 1, as in 1.8.5).
    """
    cells = unfold(X, kernel_sizes=kernels, strides=strides, paddings=paddings, dilations=[1, 1])
    n, width, count = cells.shape
    rows = jnp.swapaxes(cells, 1, 2).reshape(n * count, width)
    if Y is None or n == 1:
        offsets = numbers_of((n, count)).arange(n + 1, dtype=np.int32) * count
        return Ragged(rows, (jnp.asarray(offsets),), (count,), ("windows", n, count))
    if Y.shape != (n, 2):
        raise EnforceNotMet(f"input Y of op 'im2sequence' has shape [{n}, 2], not {list(Y.shape)}")
    return _parts(rows, X, Y, (kernels, strides, paddings), out_stride, count)


def _parts(rows: Any, X: Any, Y: Any, window: Any, out_stride: Any, count: int) -> Ragged:
    """The windows within the real sizes only."""
    real = -(-Y.astype(np.int32) // np.asarray(out_stride, np.int32))
    high, wide = (jnp.maximum(_outs(real[:, a], a, *window), 0) for a in (0, 1))
    offsets = jnp.concatenate(
        [jnp.zeros((1,), jnp.int32), jnp.cumsum(high * wide, dtype=jnp.int32)]
    )
    at = jnp.arange(rows.shape[0], dtype=jnp.int32)
    image = jnp.minimum(segments(offsets, rows.shape[0]), X.shape[0] - 1)
    within, across = at - offsets[image], jnp.maximum(wide[image], 1)
    full = _outs(X.shape[3], 1, *window)
    source = image * count + within // across * full + within % across
    return bounded(jnp.take(rows, source, axis=0, mode="clip"), offsets, count)
