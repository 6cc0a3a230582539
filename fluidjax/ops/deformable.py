"""Deformable convolutions: every tap of every window is read at its own position, interpolated
between pixels.

The taps are gathered into columns [N, C, taps, pixels], as by im2col, and multiplied by the filter.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .concrete import are_numbers, numbers_of
from .grid import corners
from .registry import Array, Ints, op
from .traits import row_wise
from .window import window_count


def _outs(x: Any, filter: Any, strides: Ints, paddings: Ints, dilations: Ints) -> list[int]:
    """Height and width of the output."""
    return [
        window_count(n + 2 * p, d * (k - 1) + 1, s)
        for n, k, s, p, d in zip(
            x.shape[2:], filter.shape[2:], strides, paddings, dilations, strict=True
        )
    ]


def _checked(op: str, x: Any, offset: Any, mask: Any, filter: Any, attrs: Any) -> list[int]:
    """The output's height and width. Raises ShapeError for shapes that do not fit together."""
    strides, paddings, dilations, groups, deformable, step = attrs
    if x.ndim != 4 or filter.ndim != 4 or any(len(v) != 2 for v in (strides, paddings, dilations)):
        raise ShapeError(
            f"op '{op}' takes Input [N, C, H, W], Filter [O, C / groups, h, w] and two strides,"
            f" paddings and dilations, not {list(x.shape)}, {list(filter.shape)}, {list(strides)},"
            f" {list(paddings)} and {list(dilations)}"
        )
    if min(*strides, *dilations, groups, deformable, step) < 1 or min(paddings) < 0:
        raise ShapeError(
            f"op '{op}' takes strides, dilations, groups, deformable_groups and im2col_step from 1"
            " and paddings from 0"
        )
    if (
        x.shape[1] != filter.shape[1] * groups
        or filter.shape[0] % groups
        or x.shape[1] % deformable
    ):
        raise ShapeError(
            f"op '{op}' takes Input of {filter.shape[1] * groups} channels, which"
            f" deformable_groups={deformable} divides, for a filter {list(filter.shape)} with"
            f" groups={groups}, not {x.shape[1]}"
        )
    if are_numbers(x.shape[:1]) and x.shape[0] % min(step, x.shape[0] or 1):
        raise ShapeError(
            f"op '{op}' takes a batch that im2col_step={step} divides, not {x.shape[0]}"
        )
    outs, taps = _outs(x, filter, strides, paddings, dilations), filter.shape[2] * filter.shape[3]
    for slot, value, each in (("Offset", offset, 2), ("Mask", mask, 1)):
        wanted = (x.shape[0], each * deformable * taps, *outs)
        if value is not None and tuple(value.shape) != wanted:
            raise ShapeError(f"op '{op}' takes {slot} {list(wanted)} here, not {list(value.shape)}")
    return outs


def _positions(
    count: int, kernel: int, stride: int, padding: int, dilation: int, dtype: Any
) -> Array:
    """The position of each tap of each window without offsets, [kernel, count]."""
    return (
        numbers_of((count,)).arange(count) * stride
        - padding
        + (np.arange(kernel) * dilation)[:, None]
    ).astype(dtype)


def _columns(
    x: Any, offset: Any, mask: Any, kernel: tuple[int, int], outs: list[int], attrs: Any
) -> Any:
    """[N, C, taps, pixels of the output]: the value at each tap, times its mask."""
    strides, paddings, dilations, _, deformable, _ = attrs
    n, channels, height, width = x.shape
    taps, pixels = kernel[0] * kernel[1], outs[0] * outs[1]
    rows, columns = (
        _positions(o, k, s, p, d, x.dtype)
        for o, k, s, p, d in zip(outs, kernel, strides, paddings, dilations, strict=True)
    )
    shift = offset.reshape(n, deformable, kernel[0], kernel[1], 2, *outs)
    y = rows[:, None, :, None] + shift[..., 0, :, :]
    at = columns[None, :, None, :] + shift[..., 1, :, :]
    near = (y > -1) & (y < height) & (at > -1) & (at < width)
    plane = jnp.moveaxis(x.reshape(n, deformable, channels // deformable, height * width), 2, 3)
    found = jnp.zeros((n, deformable, taps * pixels, channels // deformable), x.dtype)
    for row, column, weight in corners(y, at):
        there = near & (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        place = jnp.where(there, row, 0).astype(np.int32) * width + jnp.where(
            there, column, 0
        ).astype(np.int32)
        flat = (n, deformable, taps * pixels, 1)
        value = jnp.take_along_axis(plane, place.reshape(flat), 2, mode="clip")
        found = found + jnp.where(there.reshape(flat), value * weight.reshape(flat), 0)
    if mask is not None:
        found = found * mask.reshape(n, deformable, taps * pixels, 1)
    return jnp.moveaxis(found, 3, 2).reshape(n, channels, taps, pixels)


def _convolve(op: str, x: Any, offset: Any, mask: Any, filter: Any, attrs: Any) -> Any:
    outs = _checked(op, x, offset, mask, filter, attrs)
    groups, out_channels = attrs[3], filter.shape[0]
    columns = _columns(x, offset, mask, filter.shape[2:], outs, attrs).reshape(
        x.shape[0], groups, -1, outs[0] * outs[1]
    )
    weights = filter.reshape(groups, out_channels // groups, -1)
    return jnp.einsum("ngkp,gok->ngop", columns, weights, precision="highest").reshape(
        x.shape[0], out_channels, *outs
    )


@op(
    outs="Output",
    grad="Input Offset Mask Filter",
    rows=row_wise("Input", "Offset", "Mask"),
    heavy=True,
)
def deformable_conv(
    Input: Array, Offset: Array, Mask: Array, Filter: Array, *, strides: Ints = (1, 1), paddings: Ints = (0, 0),
    dilations: Ints = (1, 1), groups: int = 1, deformable_groups: int = 1, im2col_step: int = 64,
):  # fmt: skip
    """Output = conv(Input, Filter), with each tap moved by Offset, interpolated between pixels (0
    outside), and multiplied by Mask.

    Input [N, C, H, W], Filter [O, C / groups, h, w], Output [N, O, H', W']; Offset [N, 2 *
    deformable_groups * h * w, H', W'] (y and x of each tap), Mask [N, deformable_groups * h * w,
    H', W'].
    """
    attrs = strides, paddings, dilations, groups, deformable_groups, im2col_step
    return _convolve("deformable_conv", Input, Offset, Mask, Filter, attrs)


@op(
    outs="Output",
    grad="Input Offset Filter",
    rows=row_wise("Input", "Offset"),
    heavy=True,
)
def deformable_conv_v1(
    Input: Array, Offset: Array, Filter: Array, *, strides: Ints = (1, 1), paddings: Ints = (0, 0), dilations: Ints = (1, 1),
    groups: int = 1, deformable_groups: int = 1, im2col_step: int = 64,
):  # fmt: skip
    """Output = deformable_conv of Input with Offset and Filter, without a Mask."""
    attrs = strides, paddings, dilations, groups, deformable_groups, im2col_step
    return _convolve("deformable_conv_v1", Input, Offset, None, Filter, attrs)
