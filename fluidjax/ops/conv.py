"""Convolutions and transposed convolutions of 2 and 3 spatial dimensions.

Filters are [out channels, in channels / groups, ...] whatever the data format; those of transposed convolutions
[in channels, out channels / groups, ...].
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .registry import Array, Ints, grad_of, op
from .traits import row_wise
from .window import Pads, channel_last, paddings_of, spatial_axes, window_count

_LETTERS = {2: "HW", 3: "DHW"}
_MAX_TAPS = 49  # a depthwise filter up to 7x7 is unrolled


def _layout(data_format: str, rank: int) -> str:
    """The layout as jax.lax names it; every name but NHWC and NDHWC means channels first."""
    return f"N{_LETTERS[rank]}C" if channel_last(data_format) else f"NC{_LETTERS[rank]}"


def _convolve(
    x: Array, w: Array, *, strides: Sequence[int], paddings: Sequence[int], padding_algorithm: str,
    dilations: Sequence[int], groups: int, data_format: str,
) -> jax.Array:
    rank = x.ndim - 2
    layout = _layout(data_format, rank)
    channels, window = x.shape[layout.index("C")], w.shape[2:]
    if channels != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            f"the filter {list(w.shape)} with groups={groups} takes {w.shape[1] * groups} channels, "
            f"the input {list(x.shape)} ({data_format}) has {channels}"
        )
    sizes = [x.shape[a] for a in spatial_axes(x.ndim, data_format)]
    pads = paddings_of(padding_algorithm, paddings, sizes, window, strides)
    if padding_algorithm == "SAME":
        dilations = (1,) * rank  # Paddle's SAME takes no dilation
    pads = _completed(sizes, window, strides, pads, dilations)
    plain = partial(
        lax.conv_general_dilated, window_strides=strides, padding=pads, rhs_dilation=dilations,
        feature_group_count=groups, dimension_numbers=(layout, f"OI{_LETTERS[rank]}", layout),
    )  # fmt: skip
    if math.prod(window) == 1 and groups == 1 and not any(map(any, pads)):
        if layout.endswith("C"):
            return _mix_last(x, w, strides=strides)
        # XLA:CPU convolves channels last anyway; a GPU would only pay for the transposes
        return lax.platform_dependent(x, w, cpu=partial(_mix_first, strides=strides), default=plain)
    if groups == channels > 1 and math.prod(window) <= _MAX_TAPS:
        taps = partial(_depthwise, strides=strides, pads=pads, dilations=dilations, layout=layout)
        return lax.platform_dependent(x, w, cpu=taps, default=plain)
    return plain(x, w)


def _every(x: Array, strides: Sequence[int], first: int) -> Array:
    """Every strides-th cell of the spatial axes, which begin at `first`."""
    return x[(slice(None),) * first + tuple(slice(None, None, s) for s in strides)]


def _mix_last(x: Array, w: Array, *, strides: Sequence[int]) -> jax.Array:
    """A 1x1 convolution of [N, ..., C] as a matmul, 1.3 to 2 times as fast."""
    return lax.dot_general(_every(x, strides, 1), w.reshape(w.shape[:2]), (((x.ndim - 1,), (1,)), ((), ())))


def _mix_first(x: Array, w: Array, *, strides: Sequence[int]) -> jax.Array:
    """A 1x1 convolution of [N, C, ...] as a matmul."""
    return jnp.einsum("oi,ni...->no...", w.reshape(w.shape[:2]), _every(x, strides, 2))


def _depthwise(x: Array, w: Array, *, strides, pads, dilations, layout: str) -> jax.Array:
    """Out = the sum over filter cells of the shifted input times a weight for each channel.

    5 to 10 times as fast as what XLA:CPU does. w is [C * m, 1, ...]: output channel c * m + j reads input channel c.
    """
    axis, window = layout.index("C"), w.shape[2:]
    first = 1 if axis > 1 else 2
    if w.shape[0] > x.shape[axis]:
        x = jnp.repeat(x, w.shape[0] // x.shape[axis], axis=axis)
    widths = [(0, 0)] * x.ndim
    widths[first : first + len(window)] = pads
    x = jnp.pad(x, widths)
    spread = [d * (k - 1) for k, d in zip(window, dilations, strict=True)]
    stops = [n - e for n, e in zip(x.shape[first:], spread, strict=False)]
    per_channel = (-1,) if axis > 1 else (-1,) + (1,) * len(window)

    def term(tap: tuple[int, ...]) -> Array:
        at = [t * d for t, d in zip(tap, dilations, strict=True)]
        cut = [slice(a, a + n, s) for a, n, s in zip(at, stops, strides, strict=True)]
        return x[(slice(None),) * first + tuple(cut)] * w[(slice(None), 0, *tap)].reshape(per_channel)

    return reduce(operator.add, map(term, np.ndindex(*window)))


def _completed(sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], pads: Pads, dilations: Sequence[int]) -> Pads:
    """The paddings with as many zeros behind as a filter lacks that reaches over the end (see window_count)."""
    found = []
    for n, k, s, (lo, hi), d in zip(sizes, window, strides, pads, dilations, strict=True):
        reach = d * (k - 1) + 1
        if window_count(n + lo + hi, reach, s) < 1:
            raise ShapeError(f"a filter of {k} cells dilated by {d} does not fit in {n} cells padded by {lo} and {hi}")
        found.append((lo, hi + max(reach - n - lo - hi, 0)))
    return tuple(found)


def _with_extras(out: jax.Array, bias: Array | None, residual: Array | None, data_format: str) -> jax.Array:
    """Add what Paddle's fused kernels add: a bias for each channel and an array of the output's shape."""
    if bias is not None:
        shape = (-1,) if channel_last(data_format) else (-1,) + (1,) * (out.ndim - 2)
        out = out + bias.reshape(shape)
    return out if residual is None else out + residual


def _declare_conv2d(kind: str) -> None:
    @op(kind, outs="Output", grad="Input Filter Bias", nograd="ResidualData", rows=row_wise("Input", "ResidualData"))
    def conv2d(
        Input: Array, Filter: Array, Bias: Array | None, ResidualData: Array | None, *, strides: Ints = (1, 1),
        paddings: Ints = (0, 0), padding_algorithm: str = "EXPLICIT", groups: int = 1, dilations: Ints = (1, 1),
        data_format: str = "NCHW", is_test: bool = False,
    ):  # fmt: skip
        """Output = conv(Input, Filter) (+ Bias + ResidualData).

        Input [N, C, H, W] or [N, H, W, C] by data_format, Filter [O, C / groups, h, w] in both. paddings: two
        numbers, or four (top, bottom, left, right). padding_algorithm SAME ignores the dilations.
        """
        out = _convolve(
            Input, Filter, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format,
        )  # fmt: skip
        return _with_extras(out, Bias, ResidualData, data_format)


for _kind in ("conv2d", "depthwise_conv2d"):
    _declare_conv2d(_kind)


@op(outs="Output", grad="Input Filter ResidualData", nograd="ResidualData", rows=row_wise("Input", "ResidualData"))
def conv3d(
    Input: Array, Filter: Array, ResidualData: Array | None, *, strides: Ints = (1, 1, 1), paddings: Ints = (0, 0, 0),
    padding_algorithm: str = "EXPLICIT", groups: int = 1, dilations: Ints = (1, 1, 1), data_format: str = "NCDHW",
    is_test: bool = False,
):  # fmt: skip
    """Output = conv(Input, Filter) (+ ResidualData).

    Input [N, C, D, H, W] or [N, D, H, W, C] by data_format, Filter [O, C / groups, d, h, w]. paddings: three numbers,
    or six (before and after of each axis).
    """
    out = _convolve(
        Input, Filter, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm, dilations=dilations,
        groups=groups, data_format=data_format,
    )  # fmt: skip
    return _with_extras(out, None, ResidualData, data_format)


def _double_grad(
    Input: Array, Filter: Array, DOutput: Array | None, DDInput: Array | None, DDFilter: Array | None, **attrs: Any
) -> tuple[Any, Any, Any]:
    """A convolution is linear in each argument, so each term is a convolution or the transpose of one."""
    conv: Callable[[Array, Array], jax.Array] = partial(_convolve, **attrs)
    terms = []
    d_input = d_filter = None
    if DDInput is not None:
        out, pull = jax.vjp(lambda w: conv(DDInput, w), Filter)
        terms.append(out)
        d_filter = None if DOutput is None else pull(DOutput)[0]
    if DDFilter is not None:
        out, pull = jax.vjp(lambda x: conv(x, DDFilter), Input)
        terms.append(out)
        d_input = None if DOutput is None else pull(DOutput)[0]
    return sum(terms[1:], terms[0]) if terms else None, d_filter, d_input


def _declare_double_grad(kind: str) -> None:
    @grad_of(
        f"{kind}_grad", "Input Filter", grad_type=f"{kind}_grad_grad",
        wiring={"DOutput": "Output@GRAD", "DDInput": "Input@GRAD@GRAD", "DDFilter": "Filter@GRAD@GRAD"},
        gives={"DDOutput": "Output@GRAD", "DFilter": "Filter", "DInput": "Input"},
        needs={"DDOutput": "DDInput", "DFilter": "DDInput", "DInput": "DDFilter"},
    )  # fmt: skip
    def conv_grad_grad(
        Input, Filter, DOutput, DDInput, DDFilter, *, strides, paddings, padding_algorithm, groups, dilations,
        data_format,
    ):  # fmt: skip
        """DDOutput = conv(DDInput, Filter) + conv(Input, DDFilter), and the gradients of both products."""
        return _double_grad(
            Input, Filter, DOutput, DDInput, DDFilter, strides=strides, paddings=paddings, groups=groups,
            padding_algorithm=padding_algorithm, dilations=dilations, data_format=data_format,
        )  # fmt: skip


for _kind in ("conv2d", "conv3d"):
    _declare_double_grad(_kind)


def _transpose_of(
    x: Array, w: Array, *, strides: Sequence[int], paddings: Sequence[int], padding_algorithm: str,
    dilations: Sequence[int], groups: int, data_format: str, output_size: Sequence[int],
) -> tuple[tuple[int, ...], Callable[[Array, Array], jax.Array]]:
    """The shape of the transposed convolution's output, and the convolution (array, filter) from there to x."""
    rank = x.ndim - 2
    axis = _layout(data_format, rank).index("C")
    if x.shape[axis] != w.shape[0] or w.shape[0] % groups:
        raise ShapeError(
            f"the filter {list(w.shape)} with groups={groups} takes {w.shape[0]} channels, "
            f"the input {list(x.shape)} ({data_format}) has {x.shape[axis]}"
        )
    axes = spatial_axes(x.ndim, data_format)
    sizes = [x.shape[a] for a in axes]
    pads = paddings_of(padding_algorithm, paddings, sizes, w.shape[2:], strides)
    if padding_algorithm == "SAME":
        dilations = (1,) * rank
    shape = list(x.shape)
    shape[axis] = w.shape[1] * groups
    for a, n in zip(axes, _outer_sizes(output_size, sizes, w.shape[2:], strides, pads, dilations), strict=True):
        shape[a] = n
    if any(shape[a] < 1 for a in axes):
        raise ShapeError(f"paddings {list(pads)} take away all of the output {shape}")
    conv = partial(
        _convolve, strides=strides, paddings=[p for pair in pads for p in pair], padding_algorithm="EXPLICIT",
        dilations=dilations, groups=groups, data_format=data_format,
    )  # fmt: skip
    return tuple(shape), conv


def _convolve_transpose(x: Array, w: Array, **attrs: Any) -> jax.Array:
    shape, conv = _transpose_of(x, w, **attrs)
    (out,) = jax.linear_transpose(lambda y: conv(y, w), jax.ShapeDtypeStruct(shape, x.dtype))(x)
    return out


def _outer_sizes(output_size: Sequence[int], sizes, window, strides, pads, dilations) -> list[int]:
    """The output's sides: as small as the input's allow, or what `output_size` says (less than a stride more)."""
    least = [
        (n - 1) * s - lo - hi + d * (k - 1) + 1
        for n, k, s, (lo, hi), d in zip(sizes, window, strides, pads, dilations, strict=True)
    ]
    if not output_size:
        return least
    for wanted, n, s in zip(output_size, least, strides, strict=True):
        if not n <= wanted < n + s:
            raise ShapeError(f"output_size {list(output_size)}: an axis of {wanted} must lie in [{n}, {n + s})")
    return list(output_size)


def _transpose_grad(x: Array, w: Array, d_out: Array | None, **attrs: Any) -> tuple[Any, Any]:
    """d_x = conv(d_out, w); d_w is that of the filter of this convolution at the cotangent x."""
    if d_out is None:
        return None, None
    _, conv = _transpose_of(x, w, **attrs)
    d_x, pull = jax.vjp(lambda w: conv(d_out, w), w)
    return d_x, pull(x)[0]


def _declare_conv2d_transpose(kind: str) -> None:
    @op(kind, outs="Output", rows=row_wise("Input", lod=None))
    def conv2d_transpose(
        Input: Array, Filter: Array, Bias: Array | None, *, output_size: Ints = (), groups: int = 1,
        dilations: Ints = (1, 1), strides: Ints = (1, 1), paddings: Ints = (0, 0), data_format: str = "NCHW",
        padding_algorithm: str = "EXPLICIT", is_test: bool = False,
    ):  # fmt: skip
        """Output = the gradient of conv(Output, Filter) with respect to its input, at Input (+ Bias).

        Input [N, C, H, W] or [N, H, W, C], Filter [C, O / groups, h, w]; a side of Output is
        (H - 1) * stride - padding + dilation * (h - 1) + 1, or what output_size says (less than a stride more).
        """
        out = _convolve_transpose(
            Input, Filter, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
        )  # fmt: skip
        return _with_extras(out, Bias, None, data_format)

    @grad_of(kind, "Input Filter Bias")
    def conv2d_transpose_grad(
        Input, Filter, Bias, d_Output, *, output_size, groups, dilations, strides, paddings, data_format,
        padding_algorithm,
    ):  # fmt: skip
        """Input@GRAD = conv(Output@GRAD, Filter)."""
        d_input, d_filter = _transpose_grad(
            Input, Filter, d_Output, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
        )  # fmt: skip
        d_bias = None if Bias is None or d_Output is None else _per_channel_sum(d_Output, data_format)
        return d_input, d_filter, d_bias


for _kind in ("conv2d_transpose", "depthwise_conv2d_transpose"):
    _declare_conv2d_transpose(_kind)


def _per_channel_sum(x: Array, data_format: str) -> jax.Array:
    return jnp.sum(x, (0, *spatial_axes(x.ndim, data_format)))


@op(outs="Output", rows=row_wise("Input", lod=None))
def conv3d_transpose(
    Input: Array, Filter: Array, *, output_size: Ints = (), groups: int = 1, dilations: Ints = (1, 1, 1),
    strides: Ints = (1, 1, 1), paddings: Ints = (0, 0, 0), data_format: str = "NCHW",
    padding_algorithm: str = "EXPLICIT",
):  # fmt: skip
    """Output = the gradient of conv(Output, Filter) with respect to its input, at Input.

    Input [N, C, D, H, W] or [N, D, H, W, C], Filter [C, O / groups, d, h, w]; sides as in conv2d_transpose.
    """
    return _convolve_transpose(
        Input, Filter, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm, dilations=dilations,
        groups=groups, data_format=data_format, output_size=output_size,
    )  # fmt: skip


@grad_of("conv3d_transpose", "Input Filter")
def conv3d_transpose_grad(
    Input, Filter, d_Output, *, output_size, groups, dilations, strides, paddings, data_format, padding_algorithm
):
    """Input@GRAD = conv(Output@GRAD, Filter)."""
    return _transpose_grad(
        Input, Filter, d_Output, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
        dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
    )  # fmt: skip
