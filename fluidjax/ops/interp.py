"""Resizing of images and volumes: nearest, linear, bilinear, trilinear and bicubic interpolation.

Every axis is resized separately: output position k lies at input position p, and the result is a
sum over a few inputs around p (its taps) with weights that do not depend on the data. Positions and
weights are rounded to float32 as in Paddle. Integers are resized along all axes at once, in
float32, and cut off after the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .concrete import are_numbers, concrete, integers, numbers_of, refuse_huge
from .infer import Spec
from .registry import Array, Floats, op
from .symbolic import take
from .traits import row_wise, sizes_from

Taps = list[tuple[Array, Array]]  # (input index, weight) of each output position; one pair per tap
CUBIC = np.float32(-0.75)  # Keys' parameter


def _positions(out: int, ratio: Any, centred: bool) -> Array:
    """The position in the input of each output position, float64; `centred` counts from the middles
    of the cells.
    """
    xp = np if are_numbers((out,)) and isinstance(ratio, np.floating) else jnp
    if xp is jnp:
        return (
            ratio * (jnp.arange(out, dtype=np.float32) + 0.5) - 0.5
            if centred
            else ratio * jnp.arange(out, dtype=np.float32)
        )
    if centred:
        return np.float64(ratio) * (np.arange(out) + 0.5) - 0.5
    return (ratio * np.arange(out, dtype=np.float32)).astype(np.float64)


def _cells(at: Array, last: Any) -> Array:
    """The cells of positions, clipped to the last."""
    if isinstance(at, np.ndarray) and are_numbers((last,)):
        return np.minimum(at.astype(np.int64), last)
    return jnp.minimum(at.astype(np.int32), last)


def _ratio(size: int, out: int, corners: bool, scale: float, single: bool) -> Any:
    """Input cells for each output cell. `single`: a single output cell is placed like any other,
    not at the first one.
    """
    if not are_numbers((size, out)):
        cells, outs = (jnp.asarray(n, np.float32) for n in (size, out))
        found = (
            (cells - 1) / (outs - 1)
            if corners
            else cells / outs
            if scale <= 0
            else np.float32(1) / np.float32(scale)
        )
        return jnp.where(outs <= 1, 0, found) if corners or not single else found
    if out <= 1 and (corners or not single):
        return np.float32(0)
    if corners:
        return np.float32(size - 1) / np.float32(out - 1)
    return np.float32(1.0) / np.float32(scale) if scale > 0 else np.float32(size) / np.float32(out)


def _nearest(size: int, out: int, ratio: Any, corners: bool, mode: int, dtype: np.dtype) -> Taps:
    at = _positions(out, ratio, False) + (0.5 if corners else 0)
    return [(_cells(at, size - 1), numbers_of((out,)).ones(out, np.float32))]


def _linear(size: int, out: int, ratio: Any, corners: bool, mode: int, dtype: np.dtype) -> Taps:
    at = _positions(out, ratio, mode == 0 and not corners)
    at = np.maximum(at, 0) if isinstance(at, np.ndarray) else jnp.maximum(at, 0)
    low = _cells(at, size - 1)
    share = at.astype(np.float32) - low.astype(np.float32)
    return [(low, np.float32(1) - share), (_cells(low + 1, size - 1), share)]


def _cubic(size: int, out: int, ratio: Any, corners: bool, mode: int, dtype: np.dtype) -> Taps:
    at = _positions(out, ratio, not corners).astype(dtype)
    xp = np if isinstance(at, np.ndarray) and are_numbers((size,)) else jnp
    low = xp.floor(at)
    t = at - low

    def near(x: np.ndarray) -> np.ndarray:
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: np.ndarray) -> np.ndarray:
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    index = low.astype(np.int64 if xp is np else np.int32)
    return [(xp.clip(index + i - 1, 0, size - 1), w.astype(dtype)) for i, w in enumerate(weights)]


_TAPS: dict[str, Callable[..., Taps]] = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}


def _resize_axis(x: Any, axis: int, taps: Taps) -> jax.Array:
    size, out = x.shape[axis], taps[0][0].shape[0]
    fixed = all(isinstance(index, np.ndarray) for index, _ in taps) and are_numbers((size,))
    if (
        fixed
        and len(taps) == 1
        and out % size == 0
        and (taps[0][0] == np.arange(out) // (out // size)).all()
    ):
        return jnp.repeat(x, out // size, axis=axis)  # a broadcast: no gather
    parts = []
    for index, weight in taps:
        taken = (
            x
            if fixed and (len(index) == size and (index == np.arange(size)).all())
            else take(x, index, axis)
        )
        shape = [1] * x.ndim
        shape[axis] = out
        parts.append(taken if len(taps) == 1 else taken * weight.astype(x.dtype).reshape(shape))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _to_float32(x: Any) -> jax.Array:
    """float64 rounded to float32's digits. In float32, XLA would fuse a product and a sum and round
    only once.
    """
    return lax.reduce_precision(x, 8, 23)


def _resize_integers(x: Any, axes: Sequence[int], taps: Sequence[Taps]) -> jax.Array:
    """Resize all axes at once and in Paddle's order, because truncation exposes the rounding of a
    sum.

    The last of three axes varies fastest, or the first of two.
    """
    total: Any = 0
    orders = product(*taps) if len(taps) == 3 else (each[::-1] for each in product(*taps[::-1]))
    for chosen in orders:
        term = x
        for axis, (index, _) in zip(axes, chosen, strict=True):
            term = take(term, index, axis)
        term = term.astype(jnp.float64)
        for axis, (_, weight) in zip(axes, chosen, strict=True):
            shape = [1] * x.ndim
            shape[axis] = weight.shape[0]
            term = _to_float32(term * weight.astype(np.float64).reshape(shape))
        total = _to_float32(total + term)
    return total.astype(x.dtype)


@dataclass(frozen=True)
class Resize:
    """One op type: its taps, how many axes it resizes, and whether it is of Paddle 2.x."""

    kind: str
    method: str
    axes: tuple[int, ...]
    later: bool

    def where(self, shape: Sequence[int], layout: str) -> range:
        """The axes to resize. Paddle calls every layout with channels last NHWC."""
        if len(shape) - 2 not in self.axes:
            raise ShapeError(
                f"{self.kind} takes {' or '.join(str(n + 2) for n in self.axes)} dimensions, not"
                f" {list(shape)}"
            )
        return range(1, len(shape) - 1) if layout == "NHWC" else range(2, len(shape))

    def sizes(
        self, shape: Sequence[int], given: Sequence[int], scales: Sequence[float]
    ) -> list[int]:
        """The output sizes by scales (one for all axes, or one an axis), else those given (depth,
        height, width).
        """
        if scales:
            return [self._scaled(n, s) for n, s in zip(shape, scales, strict=True)]
        given = given[3 - len(shape) :]
        if any(n <= 0 for n in given):
            raise ShapeError(
                f"{self.kind} needs a positive scale, or a positive size for every axis, not sizes"
                f" {list(given)}"
            )
        return list(given)

    def _scaled(self, size: int, scale: float) -> int:
        if are_numbers((size,)):
            return int(np.float32(size) * np.float32(scale)) if size >= 0 else -1
        times, parts = float(np.float32(scale)).as_integer_ratio()
        if parts > 1024:
            raise ShapeError(
                f"{self.kind} scales {size} by {scale}, and {size} is known only when the step"
                " runs; give it out_shape"
            )
        return size * times // parts

    def scales(self, Scale: Any, scale: Any, axes: int) -> list[float]:
        """A scale for each axis, from the tensor or the attribute; none if it is not positive."""
        attribute = scale if isinstance(scale, tuple | list) else [scale]
        values = [
            float(s)
            for s in (
                attribute if Scale is None else concrete(Scale, self.kind, "Scale").reshape(-1)
            )
        ]
        values = values * axes if len(values) == 1 else values
        if Scale is not None and not all(s > 0 for s in values):
            raise ShapeError(f"{self.kind} takes positive scales, not {values}")
        if values and len(values) != axes:
            raise ShapeError(
                f"{self.kind} resizes {axes} axes, so it takes as many scales or one, not {values}"
            )
        return values if all(s > 0 for s in values) else []

    def spec(
        self, X, OutSize, SizeTensor, Scale, *, data_layout, out_d, out_h, out_w, scale, **_
    ) -> Spec:
        """The shape of Out. OutSize and Scale leave its sizes open; with SizeTensor, the attributes
        give the fixed ones.
        """
        where, shape = self.where(X.shape, data_layout), list(X.shape)
        inner, given = [X.shape[a] for a in where], [out_d, out_h, out_w]
        if SizeTensor:
            out = [n if n > 0 else -1 for n in given[3 - len(inner) :]]
        elif OutSize is not None or Scale is not None:
            out = [-1] * len(inner)
        else:
            out = self.sizes(inner, given, self.scales(None, scale, len(inner)))
        for a, n in zip(where, out, strict=True):
            shape[a] = n
        return Spec(tuple(shape), X.dtype)

    def compute(
        self,
        X: Any,
        OutSize: Any,
        SizeTensor: Any,
        Scale: Any,
        *,
        data_layout,
        out_d,
        out_h,
        out_w,
        scale,
        align_corners,
        align_mode,
    ) -> Any:
        """Out, one axis after another."""
        where = self.where(X.shape, data_layout)
        inner = [X.shape[a] for a in where]
        scales = [] if SizeTensor else self.scales(Scale, scale, len(inner))
        out = list(
            integers(self.kind, "SizeTensor" if SizeTensor else "OutSize", OutSize, SizeTensor, ())
        )
        out = out or self.sizes(inner, [out_d, out_h, out_w], scales)
        if len(out) != len(inner) or (are_numbers(out) and min(out) <= 0):
            raise ShapeError(
                f"{self.kind} resizes {len(inner)} axes, each to a positive size, not to {out}"
            )
        refuse_huge(self.kind, out, X.dtype)  # before any array of an axis' length is made
        if out == inner:
            return X  # unchanged: a weight of zero would turn an infinite neighbour into nan
        # 2.x steps by the scale, even if OutSize gives the size; 1.8.5 by the ratio of the sizes
        steps = scales if self.later and scales else [0.0] * len(inner)
        single = self.later and len(inner) != 2
        exact = np.dtype(np.float64 if X.dtype == np.float64 and not self.later else np.float32)
        taps = []
        for axis, n, step in zip(where, out, steps, strict=True):
            ratio = _ratio(X.shape[axis], n, align_corners, step, single)
            taps.append(
                _TAPS[self.method](X.shape[axis], n, ratio, align_corners, align_mode, exact)
            )
        if self.method != "nearest" and jnp.issubdtype(X.dtype, jnp.integer):
            return _resize_integers(X, where, taps)
        for axis, each in zip(where, taps, strict=True):
            X = _resize_axis(X, axis, each)
        return X

    def declare(self) -> None:
        def resize(
            X: Array, OutSize: Array | None, SizeTensor: list[Array] | None, Scale: Array | None, *, data_layout: str = "NCHW",
            out_d: int = 0, out_h: int = 0, out_w: int = 0, scale: float = 0.0, interp_method: str = "bilinear",
            align_corners: bool = True, align_mode: int = 1,
        ):  # fmt: skip
            return self.compute(
                X, OutSize, SizeTensor, Scale, data_layout=data_layout, out_d=out_d, out_h=out_h, out_w=out_w, scale=scale,
                align_corners=align_corners, align_mode=align_mode,
            )  # fmt: skip

        if self.later:
            resize.__annotations__["scale"] = Floats
            assert resize.__kwdefaults__ is not None
            resize.__kwdefaults__["scale"] = ()
        resize.__doc__ = _DOC.format(self.method, " or ".join(map(str, self.axes)))
        rows = row_wise("X", lod="X" if self.later else None)
        tensors = "OutSize SizeTensor Scale"
        sizes = sizes_from(
            tensors, lambda op, slot, i: slot != "SizeTensor" and bool(op.input("SizeTensor"))
        )
        op(
            self.kind,
            outs="Out",
            grad=f"X {tensors}",
            nograd=tensors,
            infer=self.spec,
            rows=rows,
            sizes=sizes,
        )(resize)


_DOC = """Out = X resized to (out_d, out_h, out_w) or by scale, {} along {} axes.

X [N, C, ...], or [N, ..., C] where data_layout is "NHWC". Sizes come from SizeTensor, OutSize, Scale, `scale` or the
attributes, in this order. align_corners: the corners' middles coincide. align_mode 0
counts from the middles of the cells, 1 from their edges (linear methods without align_corners)."""

for _name, _method, _rank in (
    ("nearest", "nearest", 2),
    ("bilinear", "linear", 2),
    ("trilinear", "linear", 3),
    ("bicubic", "cubic", 2),
):
    Resize(f"{_name}_interp", _method, (_rank,), later=False).declare()
    Resize(
        f"{_name}_interp_v2", _method, (2, 3) if _name == "nearest" else (_rank,), later=True
    ).declare()
Resize("linear_interp_v2", "linear", (1,), later=True).declare()
