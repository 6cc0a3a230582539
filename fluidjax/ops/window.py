"""Shared parts of convolutions and pools: layouts, paddings by Paddle's three algorithms, and the
windows of pools.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .concrete import are_numbers, is_number, numbers_of
from .registry import Array
from .symbolic import largest

Pads = tuple[tuple[int, int], ...]


def spatial_axes(ndim: int, data_format: str) -> tuple[int, ...]:
    """The spatial axes of an [N, C, ...] or (formats that end in C) [N, ..., C] array."""
    first = 1 if channel_last(data_format) else 2
    return tuple(range(first, first + ndim - 2))


def channel_last(data_format: str) -> bool:
    """Whether the format is "NHWC" or "NDHWC"; every other name means channels first, as in Paddle."""
    return data_format in ("NHWC", "NDHWC")


def from_one(**sizes: Sequence[int]) -> None:
    """Raises ShapeError unless all sizes of windows, strides and dilations are 1 or more."""
    for what, numbers in sizes.items():
        if any(n < 1 for n in numbers):
            raise ShapeError(f"{what} are numbers from 1, not {list(numbers)}")


def paddings_of(
    algorithm: str,
    paddings: Sequence[int],
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
) -> Pads:
    """(before, after) of each spatial axis.

    EXPLICIT takes one number per axis, or two (before, after); SAME makes the output ceil(size /
    stride), with an odd cell after; VALID pads nothing.
    """
    from_one(strides=strides)
    if algorithm == "VALID":
        return ((0, 0),) * len(sizes)
    if algorithm == "SAME":
        total = [
            max((-(-n // s) - 1) * s + k - n, 0)
            for n, k, s in zip(sizes, window, strides, strict=True)
        ]
        return tuple((t // 2, t - t // 2) for t in total)
    if algorithm != "EXPLICIT":
        raise ShapeError(
            f"padding_algorithm is {algorithm!r}; it can be 'EXPLICIT', 'SAME' or 'VALID'"
        )
    if len(paddings) == len(sizes):
        return tuple((p, p) for p in paddings)
    if len(paddings) == 2 * len(sizes):
        return tuple(zip(paddings[::2], paddings[1::2], strict=True))
    raise ShapeError(
        f"paddings has {len(paddings)} numbers; {len(sizes)} or {2 * len(sizes)} are needed"
    )


def _within(end: int, cells: int) -> bool:
    return end == cells or (are_numbers((end, cells)) and end <= cells)


def window_count(cells: int, size: int, stride: int) -> int:
    """The number of windows of `size` cells that fit in `cells` at a stride, at least 0.

    As in Paddle, the quotient is rounded toward zero, so a single window may lack up to stride - 1
    cells.
    """
    room = cells - size
    if not is_number(room):
        # not rounded toward zero: JAX's decisions about nested ones take minutes then
        return largest(room // stride + 1, 0)
    return max((room // stride if room >= 0 else -(-room // stride)) + 1, 0)


@dataclass(frozen=True)
class Windows:
    """The windows of a pool over the axes `axes`: position o of axis i covers cells o * stride -
    before ... + size.
    """

    axes: tuple[int, ...]
    cells: tuple[int, ...]  # how many the input has, each axis
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    outs: tuple[int, ...]

    @property
    def ends(self) -> list[int]:
        """The end of the last window on each axis, counted from the first window's start."""
        return [
            (o - 1) * s + k for o, s, k in zip(self.outs, self.strides, self.sizes, strict=True)
        ]

    @property
    def tiling(self) -> bool:
        """Whether the windows are adjacent and within the input."""
        return (
            self.sizes == self.strides
            and not any(self.before)
            and all(map(_within, self.ends, self.cells))
        )

    def few(self, most: int) -> bool:
        """Whether a window has at most this many cells, and there surely is one (symbolic sizes may
        be too small).
        """
        there = all(largest(o - 1, 0) == o - 1 for o in self.outs)
        return are_numbers(self.sizes) and math.prod(self.sizes) <= most and there

    def counts(self) -> Array:
        """Input cells in each window, [outs...]; 0 or less for a window that begins past the end,
        as in Paddle.
        """
        xp = numbers_of(self.cells)
        total = xp.ones((), np.int64)
        for o, s, k, b, n in zip(
            self.outs, self.strides, self.sizes, self.before, self.cells, strict=True
        ):
            start = xp.arange(o) * s - b
            total = total[..., None] * (xp.minimum(start + k, n) - xp.maximum(start, 0))
        return total

    def widths(self, rank: int) -> list[tuple[int, int, int]]:
        """lax.pad's argument that makes the windows tile or fit: negative after the last one that
        is needed.
        """
        pads = [(0, 0, 0)] * rank
        for a, b, e, n in zip(self.axes, self.before, self.ends, self.cells, strict=True):
            pads[a] = (b, e - b - n, 0)
        return pads

    def taps(self, x: Array, fill: float) -> Iterator[Array]:
        """For each cell of a window, in order, its values in all windows; cells outside the input
        hold `fill`.
        """
        if any(map(any, self.widths(x.ndim))):
            x = lax.pad(x, jnp.asarray(fill, x.dtype), self.widths(x.ndim))
        for tap in np.ndindex(*self.sizes):
            cut = [slice(None)] * x.ndim
            for a, t, o, s in zip(self.axes, tap, self.outs, self.strides, strict=True):
                cut[a] = slice(t, t + (o - 1) * s + 1, s)
            yield x[tuple(cut)]

    def blocks(self, x: Array) -> tuple[Array, tuple[int, ...]]:
        """For tiling windows: x with each axis as [outs, size], and the axes of the sizes."""
        shape, inner = [], []
        for a, n in enumerate(x.shape):
            if a in self.axes:
                i = self.axes.index(a)
                shape += [self.outs[i], self.sizes[i]]
                inner.append(len(shape) - 1)
            else:
                shape.append(n)
        for a, e in zip(self.axes, self.ends, strict=True):
            x = lax.slice_in_dim(x, 0, e, axis=a)
        return x.reshape(shape), tuple(inner)


def windows_of(
    x: Array, ksize: Sequence[int], strides: Sequence[int], paddings: Sequence[int], data_format: str,
    global_pooling: bool, ceil_mode: bool = False, padding_algorithm: str = "EXPLICIT",
) -> Windows:  # fmt: skip
    """The windows of a pool with equal windows; global_pooling: one for the whole input."""
    axes = spatial_axes(x.ndim, data_format)
    cells = tuple(x.shape[a] for a in axes)
    if global_pooling:
        return Windows(axes, cells, cells, cells, (0,) * len(axes), (1,) * len(axes))
    if len(ksize) != len(axes) or len(strides) != len(axes):
        raise ShapeError(
            f"ksize {list(ksize)} and strides {list(strides)} must have {len(axes)} numbers each"
        )
    from_one(ksize=ksize)
    pads = paddings_of(padding_algorithm, paddings, cells, ksize, strides)
    outs = tuple(
        window_count(n + lo + hi + (s - 1 if ceil_mode else 0), k, s)
        for n, k, s, (lo, hi) in zip(cells, ksize, strides, pads, strict=True)
    )
    if any(isinstance(n, int) and n < 1 for n in outs):
        raise ShapeError(
            f"a window of {list(ksize)} does not fit in {list(cells)} cells padded by {list(pads)}"
        )
    return Windows(axes, cells, tuple(ksize), tuple(strides), tuple(lo for lo, _ in pads), outs)


def uneven(cells: int, outs: int) -> tuple[Array, Array]:
    """Cells of each adaptive window, [outs, longest], and which of them count."""
    xp = numbers_of((cells, outs))
    starts = xp.arange(outs) * cells // outs
    ends = -(-(xp.arange(1, outs + 1) * cells) // outs)
    longest = (ends - starts).max() if xp is np else -(-cells // outs) + 1
    index = starts[:, None] + xp.arange(longest)
    return xp.minimum(index, cells - 1), index < ends[:, None]


def even(n: int, o: int, k: int, s: int, b: int) -> tuple[Array, Array]:
    """Cells of each of `o` windows of k at stride s after a padding of b, and which of them are
    within the n cells.
    """
    xp = numbers_of((n, o, k))
    index = (xp.arange(o) * s - b)[:, None] + xp.arange(k)
    return xp.clip(index, 0, n - 1), (index >= 0) & (index < n)


def gathered(x: Array, tables: Sequence[tuple[Array, Array]]) -> tuple[jax.Array, Array, Array]:
    """[N, C, ...] as [N, C, outs..., cells of a window], the cells' positions in the plane, and
    which of them count.
    """
    rank, cells = len(tables), x.shape[2:]
    places: Array = np.zeros((), np.int32)
    valid: Array = np.ones((), bool)
    for i, (index, ok) in enumerate(tables):
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = index.shape
        places = places * cells[i] + index.reshape(shape)
        valid = valid & ok.reshape(shape)
    outs = places.shape[:rank]
    places = places.reshape(*outs, -1)
    return x.reshape(*x.shape[:2], -1)[:, :, places], places, valid.reshape(places.shape)
