"""Convolutions and transposed convolutions of 2 and 3 spatial dimensions.

Filters are [out channels, in channels / groups, ...] in every data format; filters of transposed
convolutions are [in channels, out channels / groups, ...].
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import ShapeError
from .concrete import is_number
from .convolution import filter_gradient, input_gradient, output
from .convolution_geometry import Geometry
from .registry import Array, Ints, grad_of, op
from .symbolic import largest
from .target import PLAIN, Target
from .traits import row_wise
from .window import Pads, channel_last, from_one, paddings_of, spatial_axes, window_count

GRADIENTS = ("Input@GRAD", "Filter@GRAD")


def _geometry(
    x: tuple[int, ...], w: tuple[int, ...], *, strides: Sequence[int], paddings: Sequence[int], padding_algorithm: str,
    dilations: Sequence[int], groups: int, data_format: str,
) -> Geometry:  # fmt: skip
    """The convolution of these shapes; ShapeError if they do not fit."""
    last, rank = channel_last(data_format), len(x) - 2
    channels, window = x[-1 if last else 1], w[2:]
    from_one(dilations=dilations)
    if channels != w[1] * groups or w[0] % groups:
        raise ShapeError(
            f"the filter {list(w)} with groups={groups} takes {w[1] * groups} channels, "
            f"the input {list(x)} ({data_format}) has {channels}"
        )
    sizes = [x[a] for a in spatial_axes(len(x), data_format)]
    pads = paddings_of(padding_algorithm, paddings, sizes, window, strides)
    if padding_algorithm == "SAME":
        dilations = (1,) * rank  # Paddle's SAME takes no dilation
    pads = _completed(sizes, window, strides, pads, dilations)
    return Geometry(tuple(x), tuple(w), tuple(strides), pads, tuple(dilations), groups, last)


def _convolve(x: Array, w: Array, target: Target, **attrs: Any) -> jax.Array:
    # quantised weights stay integers
    if w.dtype == jnp.int8 and jnp.issubdtype(x.dtype, jnp.floating):
        w = w.astype(x.dtype)
    return output(_geometry(x.shape, w.shape, **attrs), x, w, target)


def _completed(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
) -> Pads:
    """The paddings, with zeros added at the end for a filter that extends beyond it (see
    window_count).
    """
    found = []
    for n, k, s, (lo, hi), d in zip(sizes, window, strides, pads, dilations, strict=True):
        reach = d * (k - 1) + 1
        count = window_count(n + lo + hi, reach, s)
        if is_number(count) and count < 1:
            raise ShapeError(
                f"a filter of {k} cells dilated by {d} does not fit in {n} cells padded by {lo} and"
                f" {hi}"
            )
        found.append((lo, hi + largest(reach - n - lo - hi, 0)))
    return tuple(found)


def _with_extras(
    out: jax.Array, bias: Array | None, residual: Array | None, data_format: str
) -> jax.Array:
    """Add what Paddle's fused kernels add: a bias for each channel and an array of the output's
    shape.
    """
    if bias is not None:
        shape = (-1,) if channel_last(data_format) else (-1,) + (1,) * (out.ndim - 2)
        out = out + bias.reshape(shape)
    return out if residual is None else out + residual


def _output_spec(
    Input: Any, Filter: Any, Bias: Any, ResidualData: Any, *, is_test: bool, **attrs: Any
) -> Any:
    batch, *sizes = Input.shape
    plain = (
        Bias is None
        and ResidualData is None
        and Input.ndim == Filter.ndim == 4
        and Input.dtype == Filter.dtype
    )
    if not plain or min(*sizes, *Filter.shape) < 1:
        return None
    try:
        _, *found = _geometry((1, *sizes), Filter.shape, **attrs).y
    except ShapeError:
        return None
    return Input.like(batch, *found)


def _declare_conv2d(kind: str) -> None:
    @op(
        kind,
        outs="Output",
        infer=_output_spec,
        rows=row_wise("Input", "ResidualData"),
        heavy=True,
    )
    def conv2d(
        Input: Array, Filter: Array, Bias: Array | None, ResidualData: Array | None, *, strides: Ints = (1, 1),
        paddings: Ints = (0, 0), padding_algorithm: str = "EXPLICIT", groups: int = 1, dilations: Ints = (1, 1),
        data_format: str = "NCHW", is_test: bool = False, target: Target = PLAIN,
    ):  # fmt: skip
        """Output = conv(Input, Filter) (+ Bias + ResidualData).

        Input [N, C, H, W] or [N, H, W, C] by data_format, Filter [O, C / groups, h, w] in both.
        paddings: two numbers, or four (top, bottom, left, right). padding_algorithm SAME ignores
        the dilations.
        """
        out = _convolve(
            Input, Filter, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format,
        )  # fmt: skip
        return _with_extras(out, Bias, ResidualData, data_format)


for _kind in ("conv2d", "depthwise_conv2d"):
    _declare_conv2d(_kind)


@op(
    outs="Output",
    rows=row_wise("Input", "ResidualData"),
    heavy=True,
)
def conv3d(
    Input: Array, Filter: Array, ResidualData: Array | None, *, strides: Ints = (1, 1, 1), paddings: Ints = (0, 0, 0),
    padding_algorithm: str = "EXPLICIT", groups: int = 1, dilations: Ints = (1, 1, 1), data_format: str = "NCDHW",
    is_test: bool = False, target: Target = PLAIN,
):  # fmt: skip
    """Output = conv(Input, Filter) (+ ResidualData).

    Input [N, C, D, H, W] or [N, D, H, W, C] by data_format, Filter [O, C / groups, d, h, w].
    paddings: three numbers, or six (before and after of each axis).
    """
    out = _convolve(
        Input, Filter, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm, dilations=dilations,
        groups=groups, data_format=data_format,
    )  # fmt: skip
    return _with_extras(out, None, ResidualData, data_format)


def _gradients(
    x: Array,
    w: Array,
    dy: Array | None,
    wanted: Collection[str],
    target: Target,
    **attrs: Any,
) -> tuple[Any, Any]:
    """The gradients of the input and of the filter; None for one that is not in `wanted`."""
    if dy is None:
        return None, None
    geo = _geometry(x.shape, w.shape, **attrs)
    return (
        input_gradient(geo, w, dy, target) if "Input@GRAD" in wanted else None,
        filter_gradient(geo, x, dy, target) if "Filter@GRAD" in wanted else None,
    )


def _declare_conv2d_grad(kind: str) -> None:
    @grad_of(kind, "Input Filter Bias", nograd="ResidualData")
    def conv2d_grad(
        Input,
        Filter,
        Bias,
        d_Output,
        *,
        strides,
        paddings,
        padding_algorithm,
        groups,
        dilations,
        data_format,
        counts,
        target,
    ):
        """Input@GRAD, Filter@GRAD = the gradients of sum(Output@GRAD * conv(Input, Filter))."""
        wanted = GRADIENTS if counts is None else counts
        d_input, d_filter = _gradients(
            Input, Filter, d_Output, wanted, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            groups=groups, dilations=dilations, data_format=data_format,
        )  # fmt: skip
        d_bias = (
            None
            if Bias is None or d_Output is None
            else _per_channel_sum(d_Output, data_format).reshape(Bias.shape)
        )
        return d_input, d_filter, d_bias


for _kind in ("conv2d", "depthwise_conv2d"):
    _declare_conv2d_grad(_kind)


@grad_of("conv3d", "Input Filter ResidualData", nograd="ResidualData")
def conv3d_grad(
    Input,
    Filter,
    ResidualData,
    d_Output,
    *,
    strides,
    paddings,
    padding_algorithm,
    groups,
    dilations,
    data_format,
    counts,
    target,
):
    """Input@GRAD, Filter@GRAD = the gradients of sum(Output@GRAD * conv(Input, Filter))."""
    return _gradients(
        Input, Filter, d_Output, GRADIENTS if counts is None else counts, target, strides=strides, paddings=paddings,
        padding_algorithm=padding_algorithm, groups=groups, dilations=dilations, data_format=data_format,
    )  # fmt: skip


def _double_grad(
    Input: Array,
    Filter: Array,
    DOutput: Array | None,
    DDInput: Array | None,
    DDFilter: Array | None,
    target: Target,
    **attrs: Any,
) -> tuple[Any, Any, Any]:
    """A convolution is linear in each argument, so each term is one of its three products. Missing
    arguments are zero.
    """
    geo = _geometry(Input.shape, Filter.shape, **attrs)
    zeros = jnp.zeros_like
    terms = [] if DDInput is None else [output(geo, DDInput, Filter, target)]
    terms += [] if DDFilter is None else [output(geo, Input, DDFilter, target)]
    d_filter = (
        zeros(Filter)
        if DDInput is None or DOutput is None
        else filter_gradient(geo, DDInput, DOutput, target)
    )
    d_input = (
        zeros(Input)
        if DDFilter is None or DOutput is None
        else input_gradient(geo, DDFilter, DOutput, target)
    )
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
        data_format, target,
    ):  # fmt: skip
        """DDOutput = conv(DDInput, Filter) + conv(Input, DDFilter), and the gradients of both
        products.
        """
        return _double_grad(
            Input, Filter, DOutput, DDInput, DDFilter, target, strides=strides, paddings=paddings, groups=groups,
            padding_algorithm=padding_algorithm, dilations=dilations, data_format=data_format,
        )  # fmt: skip


for _kind in ("conv2d", "conv3d"):
    _declare_double_grad(_kind)


def _transpose_of(
    x: Array, w: Array, *, strides: Sequence[int], paddings: Sequence[int], padding_algorithm: str,
    dilations: Sequence[int], groups: int, data_format: str, output_size: Sequence[int], output_padding: Sequence[int],
) -> Geometry:  # fmt: skip
    """The convolution whose output gradient is x; its input has the shape of the transposed
    convolution's output.
    """
    rank = x.ndim - 2
    axis = x.ndim - 1 if channel_last(data_format) else 1
    from_one(dilations=dilations)
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
    for a, n in zip(
        axes,
        _outer_sizes(output_size, sizes, w.shape[2:], strides, pads, dilations, output_padding),
        strict=True,
    ):
        shape[a] = n
    if any(shape[a] < 1 for a in axes):
        raise ShapeError(f"paddings {list(pads)} take away all of the output {shape}")
    return _geometry(
        tuple(shape), w.shape, strides=strides, paddings=[p for pair in pads for p in pair], padding_algorithm="EXPLICIT",
        dilations=dilations, groups=groups, data_format=data_format,
    )  # fmt: skip


def _convolve_transpose(x: Array, w: Array, target: Target, **attrs: Any) -> jax.Array:
    return input_gradient(_transpose_of(x, w, **attrs), w, x, target)


def _outer_sizes(
    output_size: Sequence[int], sizes, window, strides, pads, dilations, more: Sequence[int] = ()
) -> list[int]:
    """The output's sides: the smallest that the input's allow plus `more`, or `output_size` (less
    than a stride larger).
    """
    least = [
        (n - 1) * s - lo - hi + d * (k - 1) + 1
        for n, k, s, (lo, hi), d in zip(sizes, window, strides, pads, dilations, strict=True)
    ]
    if not output_size:
        return _with_more(least, more, strides, dilations)
    for wanted, n, s in zip(output_size, least, strides, strict=True):
        if not n <= wanted < n + s:
            raise ShapeError(
                f"output_size {list(output_size)}: an axis of {wanted} must lie in [{n}, {n + s})"
            )
    return list(output_size)


def _with_more(
    least: list[int], more: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """The sides with the attribute output_padding; each padding must be less than the stride or the
    dilation.
    """
    if not more:
        return least
    if len(more) != len(least) or any(
        not 0 <= m < max(s, d) for m, s, d in zip(more, strides, dilations, strict=True)
    ):
        raise ShapeError(
            f"output_padding {list(more)} is a number for each side, less than its stride or its"
            " dilation"
        )
    return [n + m for n, m in zip(least, more, strict=True)]


def _transpose_grad(
    x: Array, w: Array, d_out: Array | None, target: Target, **attrs: Any
) -> tuple[Any, Any]:
    """d_x = conv(d_out, w); d_w is the filter gradient of this convolution at the cotangent x."""
    if d_out is None:
        return None, None
    geo = _transpose_of(x, w, **attrs)
    return output(geo, d_out, w, target), filter_gradient(geo, d_out, x, target)


def _declare_conv2d_transpose(kind: str) -> None:
    @op(
        kind,
        outs="Output",
        rows=row_wise("Input", lod=None),
        heavy=True,
    )
    def conv2d_transpose(
        Input: Array, Filter: Array, Bias: Array | None, *, output_size: Ints = (), groups: int = 1,
        dilations: Ints = (1, 1), strides: Ints = (1, 1), paddings: Ints = (0, 0), data_format: str = "NCHW",
        padding_algorithm: str = "EXPLICIT", is_test: bool = False, output_padding: Ints = (),
        target: Target = PLAIN,
    ):  # fmt: skip
        """Output = the gradient of conv(Output, Filter) with respect to its input, at Input (+
        Bias).

        Input [N, C, H, W] or [N, H, W, C], Filter [C, O / groups, h, w]; a side of Output is
        (H - 1) * stride - padding + dilation * (h - 1) + 1, or what output_size says (less than a
        stride more).
        """
        out = _convolve_transpose(
            Input, Filter, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
            output_padding=output_padding,
        )  # fmt: skip
        return _with_extras(out, Bias, None, data_format)

    @grad_of(kind, "Input Filter Bias")
    def conv2d_transpose_grad(
        Input, Filter, Bias, d_Output, *, output_size, groups, dilations, strides, paddings, data_format,
        padding_algorithm, output_padding, target,
    ):  # fmt: skip
        """Input@GRAD = conv(Output@GRAD, Filter)."""
        d_input, d_filter = _transpose_grad(
            Input, Filter, d_Output, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
            output_padding=output_padding,
        )  # fmt: skip
        d_bias = (
            None if Bias is None or d_Output is None else _per_channel_sum(d_Output, data_format)
        )
        return d_input, d_filter, d_bias


for _kind in ("conv2d_transpose", "depthwise_conv2d_transpose"):
    _declare_conv2d_transpose(_kind)


def _per_channel_sum(x: Array, data_format: str) -> jax.Array:
    return jnp.sum(x, (0, *spatial_axes(x.ndim, data_format)))


@op(
    outs="Output",
    rows=row_wise("Input", lod=None),
    heavy=True,
)
def conv3d_transpose(
    Input: Array, Filter: Array, *, output_size: Ints = (), groups: int = 1, dilations: Ints = (1, 1, 1),
    strides: Ints = (1, 1, 1), paddings: Ints = (0, 0, 0), data_format: str = "NCHW",
    padding_algorithm: str = "EXPLICIT", output_padding: Ints = (), target: Target = PLAIN,
):  # fmt: skip
    """Output = the gradient of conv(Output, Filter) with respect to its input, at Input.

    Input [N, C, D, H, W] or [N, D, H, W, C], Filter [C, O / groups, d, h, w]; sides as in
    conv2d_transpose.
    """
    return _convolve_transpose(
        Input, Filter, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm, dilations=dilations,
        groups=groups, data_format=data_format, output_size=output_size,
            output_padding=output_padding,
    )  # fmt: skip


@grad_of("conv3d_transpose", "Input Filter")
def conv3d_transpose_grad(
    Input,
    Filter,
    d_Output,
    *,
    output_size,
    groups,
    dilations,
    strides,
    paddings,
    data_format,
    padding_algorithm,
    output_padding,
    target,
):
    """Input@GRAD = conv(Output@GRAD, Filter)."""
    return _transpose_grad(
        Input, Filter, d_Output, target, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
        dilations=dilations, groups=groups, data_format=data_format, output_size=output_size,
            output_padding=output_padding,
    )  # fmt: skip
