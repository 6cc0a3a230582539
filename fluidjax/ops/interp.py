"""Resizing of images and volumes: nearest, linear, bilinear, trilinear and bicubic interpolation.

Every axis is resized by itself: output position k lies at input position p, and the result is a sum over a few inputs
around p (its taps) with weights that do not depend on the data. Positions are computed in float32, as Paddle does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .concrete import concrete
from .infer import Spec
from .registry import Array, Floats, op

Taps = list[tuple[np.ndarray, np.ndarray]]  # (input index, weight) of each output position; one pair a tap
CUBIC = np.float32(-0.75)  # Keys' parameter


def _positions(size: int, out: int, ratio: np.float32, corners: bool, centred: bool) -> np.ndarray:
    """Where each output position lies in the input; `centred` counts from the middles of the cells."""
    k = np.arange(out, dtype=np.float32)
    return ratio * (k + np.float32(0.5)) - np.float32(0.5) if centred and not corners else ratio * k


def _ratio(size: int, out: int, corners: bool, scale: float) -> np.float32:
    if out <= 1:
        return np.float32(0)
    if corners:
        return np.float32(size - 1) / np.float32(out - 1)
    return np.float32(1.0) / np.float32(scale) if scale > 0 else np.float32(size) / np.float32(out)


def _nearest(size: int, out: int, ratio: np.float32, corners: bool, mode: int) -> Taps:
    at = _positions(size, out, ratio, corners, False) + np.float32(0.5 if corners else 0)
    return [(np.minimum(at.astype(np.int64), size - 1), np.ones(out, np.float32))]


def _linear(size: int, out: int, ratio: np.float32, corners: bool, mode: int) -> Taps:
    at = np.maximum(_positions(size, out, ratio, corners, mode == 0), np.float32(0))
    low = np.minimum(at.astype(np.int64), size - 1)
    share = at - low.astype(np.float32)
    return [(low, np.float32(1) - share), (np.minimum(low + 1, size - 1), share)]


def _cubic(size: int, out: int, ratio: np.float32, corners: bool, mode: int) -> Taps:
    at = _positions(size, out, ratio, corners, True)
    low = np.floor(at)
    t = (at - low).astype(np.float32)

    def near(x: np.ndarray) -> np.ndarray:
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: np.ndarray) -> np.ndarray:
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    index = low.astype(np.int64)
    return [(np.clip(index + i - 1, 0, size - 1), w.astype(np.float32)) for i, w in enumerate(weights)]


_TAPS: dict[str, Callable[..., Taps]] = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}


def _resize_axis(x: Any, axis: int, taps: Taps) -> jax.Array:
    size, out = x.shape[axis], len(taps[0][0])
    if len(taps) == 1 and out % size == 0 and (taps[0][0] == np.arange(out) // (out // size)).all():
        return jnp.repeat(x, out // size, axis=axis)  # a broadcast: no gather
    parts = []
    for index, weight in taps:
        taken = x if (len(index) == size and (index == np.arange(size)).all()) else jnp.take(x, index, axis=axis)
        shape = [1] * x.ndim
        shape[axis] = out
        parts.append(taken if len(taps) == 1 else taken * weight.astype(x.dtype).reshape(shape))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _axes(rank: int, layout: str) -> range:
    return range(1, rank - 1) if layout in ("NHWC", "NDHWC", "NWC") else range(2, rank)


def _tensor_sizes(kind: str, OutSize: Any, SizeTensor: Any, Scale: Any, shape: Sequence[int]) -> tuple[list[int] | None, list[float]]:
    """Sizes from tensors, and the scales that a Scale tensor gives."""
    if SizeTensor:
        return [int(concrete(t, kind, "SizeTensor").reshape(-1)[0]) for t in SizeTensor], []
    if OutSize is not None:
        return [int(n) for n in concrete(OutSize, kind, "OutSize").reshape(-1)], []
    scales = [] if Scale is None else [float(s) for s in concrete(Scale, kind, "Scale").reshape(-1)]
    return None, scales


def _outputs(kind: str, shape: Sequence[int], given: Sequence[int], scales: Sequence[float]) -> list[int]:
    """The output sizes from scales (one for all, or one an axis), else from the attributes."""
    scales = list(scales) * len(shape) if len(scales) == 1 else list(scales)
    if scales and all(s > 0 for s in scales):
        return [int(np.float32(n) * np.float32(s)) if n >= 0 else -1 for n, s in zip(shape, scales, strict=True)]
    if any(n <= 0 for n in given):
        raise ShapeError(f"{kind} needs a size for every axis or a positive scale, not sizes {list(given)} and scale {list(scales)}")
    return list(given)


def _declare(kind: str, method: str, axes: int, later: bool) -> None:
    def sizes(shape: Sequence[int], out_d: int, out_h: int, out_w: int, scales: Sequence[float]) -> list[int]:
        return _outputs(kind, shape, [out_d, out_h, out_w][3 - axes :], scales)

    def listed(scale: Any) -> list[float]:
        values = list(scale) if isinstance(scale, tuple | list) else [scale]
        return [float(s) for s in values if s > 0]

    def spec(X, OutSize, SizeTensor, Scale, *, data_layout, out_d, out_h, out_w, scale, **_):
        where = _axes(len(X.shape), data_layout)
        if len(where) != axes:
            raise ShapeError(f"{kind} takes {axes + 2} dimensions, not {list(X.shape)}")
        shape = list(X.shape)
        inner = [X.shape[a] for a in where]
        unknown = OutSize is not None or SizeTensor or Scale is not None
        for a, n in zip(where, [-1] * axes if unknown else sizes(inner, out_d, out_h, out_w, listed(scale)), strict=True):
            shape[a] = n
        return Spec(tuple(shape), X.dtype)

    def compute(X, OutSize, SizeTensor, Scale, data_layout, out_d, out_h, out_w, scale, align_corners, align_mode):
        where = _axes(X.ndim, data_layout)
        inner = [X.shape[a] for a in where]
        found, scales = _tensor_sizes(kind, OutSize, SizeTensor, Scale, inner)
        scales = scales or listed(scale)
        out = found if found is not None else sizes(inner, out_d, out_h, out_w, scales)
        used = scales * axes if len(scales) == 1 else scales
        for i, (axis, n) in enumerate(zip(where, out, strict=True)):
            by_scale = used[i] if later and found is None and used else 0.0
            ratio = _ratio(X.shape[axis], n, align_corners, by_scale)
            X = _resize_axis(X, axis, _TAPS[method](X.shape[axis], n, ratio, align_corners, align_mode))
        return X

    doc = f"""Out = X resized to (out_d, out_h, out_w) or by scale, {method} along {axes} axes.

    X [N, C, ...] or [N, ..., C] by data_layout. Sizes come from SizeTensor, OutSize, Scale, `scale` or the attributes, in
    this order; tensors must be known while tracing. align_corners: the corners' middles coincide. align_mode 0 counts from
    the middles of the cells, 1 from their edges (linear methods without align_corners)."""

    def resize(
        X: Array, OutSize: Array | None, SizeTensor: list[Array] | None, Scale: Array | None, *, data_layout: str = "NCHW",
        out_d: int = 0, out_h: int = 0, out_w: int = 0, scale: float = 0.0, interp_method: str = "bilinear",
        align_corners: bool = True, align_mode: int = 1,
    ):  # fmt: skip
        return compute(X, OutSize, SizeTensor, Scale, data_layout, out_d, out_h, out_w, scale, align_corners, align_mode)

    if later:
        resize.__annotations__["scale"] = Floats
        assert resize.__kwdefaults__ is not None
        resize.__kwdefaults__["scale"] = ()
    resize.__doc__ = doc
    op(kind, outs="Out", grad="X OutSize SizeTensor Scale", nograd="OutSize SizeTensor Scale", infer=spec)(resize)


for _kind, _method, _count in (("nearest", "nearest", 2), ("bilinear", "linear", 2), ("trilinear", "linear", 3), ("bicubic", "cubic", 2)):
    _declare(f"{_kind}_interp", _method, _count, later=False)
for _kind, _method, _count in (
    ("nearest", "nearest", 2), ("linear", "linear", 1), ("bilinear", "linear", 2), ("trilinear", "linear", 3), ("bicubic", "cubic", 2),
):  # fmt: skip
    _declare(f"{_kind}_interp_v2", _method, _count, later=True)
