"""roi_perspective_transform: quadrilaterals of an image, drawn as rectangles."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from ..infer import Spec
from ..ragged import Ragged, rows_of
from ..registry import Array, op
from ..traits import knows_rows
from .boxes import images_of, with_images
from .regions import checked

NEAR = 1e-4  # numbers that differ by less are equal


def _matrix(quad: Any, height: int, width: int) -> Any:
    """The projective map [9] from pixels of the rectangle to a quadrilateral [4, 2], as high as the
    rectangle and at most as wide.
    """
    kind = quad.dtype
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quad
    sides = jnp.sqrt(((quad - jnp.roll(quad, -1, 0)) ** 2).sum(1))
    high, wide = (sides[1] + sides[3]) / 2, (sides[0] + sides[2]) / 2
    rows = max(2, height)
    ratio = wide * (rows - 1) / high
    # 2 for what no int of C holds, such as nan
    columns = jnp.where(ratio < 2**31, jnp.trunc(ratio + 0.5) + 1, 2)
    columns = jnp.maximum(jnp.minimum(columns, width), 2).astype(kind)
    dx1, dx2, dx3 = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
    dy1, dy2, dy3 = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
    base = dx1 * dy2 - dx2 * dy1 + np.asarray(1e-5, kind)
    m6, m7 = (
        (dx3 * dy2 - dx2 * dy3) / base / (columns - 1),
        (dx1 * dy3 - dx3 * dy1) / base / (rows - 1),
    )
    m3, m4 = (
        (y1 - y0 + m6 * (columns - 1) * y1) / (columns - 1),
        (y3 - y0 + m7 * (rows - 1) * y3) / (rows - 1),
    )
    m0, m1 = (
        (x1 - x0 + m6 * (columns - 1) * x1) / (columns - 1),
        (x3 - x0 + m7 * (rows - 1) * x3) / (rows - 1),
    )
    return jnp.stack([m0, m1, x0, m3, m4, y0, m6, m7, jnp.ones((), kind)])


def _more(a: Any, b: Any) -> Any:
    return a - b > NEAR


def _same(a: Any, b: Any) -> Any:
    return jnp.abs(a - b) < NEAR


def _inside(x: Any, y: Any, quad: Any) -> Any:
    """Whether places lie within a quadrilateral [4, 2] or on its border."""
    # all four at once
    edges = jnp.stack([quad, jnp.roll(quad, -1, 0)]).reshape(2, 4, 2, *[1] * x.ndim)
    (xs, ys), (xe, ye) = (jnp.moveaxis(corner, 1, 0) for corner in edges)
    level = _same(ys, ye)
    low, high = jnp.minimum(ys, ye), jnp.maximum(ys, ye)
    left, right = jnp.minimum(xs, xe), jnp.maximum(xs, xe)
    on_level = (
        _same(y, ys)
        & _same(y, ye)
        & ((x > left) | _same(x, left))
        & ((x < right) | _same(x, right))
    )
    cut = (y - ys) * (xe - xs) / jnp.where(level, 1, ye - ys) + xs
    on_edge = _same(cut, x) & ((y > low) | _same(y, low)) & ((y < high) | _same(y, high))
    border = jnp.where(level, on_level, on_edge).any(0)
    passes = ~level & ~((y < low) | _same(y, low)) & ~_more(y, high)
    return border | ((passes & _more(cut, x)).sum(0) % 2 == 1)


def _taps(quad: Any, shape: tuple[int, int], height: int, width: int) -> tuple[Any, Any, Any, Any]:
    """For one quadrilateral in an image of `shape`: the matrix; which pixels of the rectangle are
    in it, [h * w]; and the four source pixels of each with their weights, [h * w, 4]; -1 and 0
    outside.
    """
    matrix = _matrix(quad, height, width)
    row, column = (
        v.reshape(-1).astype(quad.dtype)
        for v in np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    )
    u, v, w = (
        matrix[3 * i] * column + matrix[3 * i + 1] * row + matrix[3 * i + 2] for i in range(3)
    )
    x, y = u / w, v / w
    near = ~(_more(-0.5, x) | _more(x, shape[1] - 0.5) | _more(-0.5, y) | _more(y, shape[0] - 0.5))
    inside = _inside(x, y, quad) & near
    (left, right, share_x), (top, bottom, share_y) = _between(x, shape[1]), _between(y, shape[0])
    places = jnp.stack(
        [
            top * shape[1] + left,
            bottom * shape[1] + left,
            bottom * shape[1] + right,
            top * shape[1] + right,
        ],
        1,
    )
    weights = [
        (1 - share_y) * (1 - share_x),
        share_y * (1 - share_x),
        share_y * share_x,
        (1 - share_y) * share_x,
    ]
    kept = inside[:, None]
    return matrix, inside, jnp.where(kept, places, -1), jnp.where(kept, jnp.stack(weights, 1), 0)


def _between(at: Any, size: int) -> tuple[Any, Any, Any]:
    """The pixels before and after a place along an axis, and its distance from the first."""
    at = jnp.where(_more(0, at), 0, at)
    low = jnp.floor(at)
    last = (low > size - 1) | _same(low, size - 1)
    low = jnp.where(last, size - 1, low)
    high, share = jnp.where(last, size - 1, low + 1), jnp.where(last, 0, at - low)
    return (
        *(
            jnp.where(jnp.isfinite(v), jnp.clip(v, 0, size - 1), 0).astype(np.int32)
            for v in (low, high)
        ),
        share,
    )


def _spec(
    X: Spec, ROIs: Spec, *, spatial_scale: float, transformed_height: int, transformed_width: int
) -> tuple[Spec, ...]:
    checked(
        "roi_perspective_transform",
        X,
        ROIs,
        8,
        (transformed_height, transformed_width),
        spatial_scale,
    )
    if X.dtype != ROIs.dtype:
        raise ShapeError(
            f"op 'roi_perspective_transform' takes X and ROIs of one dtype, not {X.dtype} and"
            f" {ROIs.dtype}"
        )
    rows, size = ROIs.shape[0], (transformed_height, transformed_width)
    out = Spec((rows, X.shape[1], *size), X.dtype)
    return (
        out,
        Spec((rows, 1, *size), "int32"),
        Spec((rows, 9), X.dtype),
        out.as_dtype("int32"),
        out,
    )


@op(
    outs="Out Mask TransformMatrix Out2InIdx~ Out2InWeights~",
    grad="X ROIs Out2InIdx Out2InWeights",
    nograd="ROIs",
    grad_outs="Out",
    infer=_spec,
    rows=knows_rows(Out="ROIs"),
)
def roi_perspective_transform(
    X: Array,
    ROIs: Array | Ragged,
    *,
    spatial_scale: float = 1.0,
    transformed_height: int = 1,
    transformed_width: int = 1,
):
    """Out [R, C, transformed_height, transformed_width] = each quadrilateral of X [N, C, H, W],
    drawn as a rectangle; 0 outside.

    ROIs [R, 8] (x, y of its corners, from the upper left on clockwise; times spatial_scale) with a
    LoD of the N images. Mask (int32, one channel): 1 where a pixel lies in the quadrilateral and in
    the image. TransformMatrix [R, 9]: from pixels of Out to places in X. Out2InIdx and
    Out2InWeights, of Out's shape, hold 0: as on 1.8.5's CPU, the gradient finds the pixels again.
    """
    rois, size = rows_of(ROIs), (transformed_height, transformed_width)
    checked("roi_perspective_transform", X, rois, 8, size, spatial_scale)
    image = images_of("roi_perspective_transform", ROIs, X.shape[0])
    quads = (rois * np.asarray(spatial_scale, rois.dtype)).reshape(-1, 4, 2)
    matrix, inside, places, weights = jax.vmap(lambda quad: _taps(quad, X.shape[2:], *size))(quads)
    planes = jnp.asarray(X).reshape(*X.shape[:2], -1)
    found = planes[
        image[:, None, None],
        np.arange(X.shape[1])[:, None],
        jnp.maximum(places, 0).reshape(places.shape[0], 1, -1),
    ]
    values = found.reshape(places.shape[0], X.shape[1], -1, 4)
    values = jnp.where(inside[:, None, :, None], values * weights[:, None], 0)
    out = values.sum(-1).reshape(places.shape[0], X.shape[1], *size)
    mask = inside.astype(np.int32).reshape(-1, 1, *size)
    rest = with_images(ROIs, jnp.zeros(out.shape, np.int32)), with_images(ROIs, jnp.zeros_like(out))
    shown = ROIs.with_rows(out) if isinstance(ROIs, Ragged) else out
    return shown, with_images(ROIs, mask), with_images(ROIs, matrix), *rest
