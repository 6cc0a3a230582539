"""What convolutions and pools share: layouts, and paddings by Paddle's three algorithms."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError

Pads = tuple[tuple[int, int], ...]


def spatial_axes(ndim: int, data_format: str) -> tuple[int, ...]:
    """The spatial axes of an [N, C, ...] or (formats that end in C) [N, ..., C] array."""
    first = 1 if channel_last(data_format) else 2
    return tuple(range(first, first + ndim - 2))


def channel_last(data_format: str) -> bool:
    """Whether "NHWC" or "NDHWC"; every other name means channels first, as in Paddle."""
    return data_format in ("NHWC", "NDHWC")


def paddings_of(
    algorithm: str, paddings: Sequence[int], sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> Pads:
    """(before, after) of each spatial axis.

    EXPLICIT takes one number an axis, or two (before, after); SAME makes the output ceil(size / stride), its odd cell
    after; VALID pads nothing.
    """
    if algorithm == "VALID":
        return ((0, 0),) * len(sizes)
    if algorithm == "SAME":
        total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, window, strides, strict=True)]
        return tuple((t // 2, t - t // 2) for t in total)
    if algorithm != "EXPLICIT":
        raise ShapeError(f"padding_algorithm is {algorithm!r}; it can be 'EXPLICIT', 'SAME' or 'VALID'")
    if len(paddings) == len(sizes):
        return tuple((p, p) for p in paddings)
    if len(paddings) == 2 * len(sizes):
        return tuple(zip(paddings[::2], paddings[1::2], strict=True))
    raise ShapeError(f"paddings has {len(paddings)} numbers; {len(sizes)} or {2 * len(sizes)} are needed")
