"""paddle.nn.functional: norms over windows, fractional pools, and the inverses of pools and unfold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers._build import append, one_of, require, size_list
from ....layers.conv import window_padding
from .pool import _row, _row_padding, _sizes


def lp_pool2d(
    x: Variable, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """(sum of x ** norm_type) ** (1 / norm_type) over windows, the maximum for inf; stride: default
    the kernel's size.

    Powers are of x, not of |x|, as in Paddle: the root of a negative sum is nan. Raises
    FluidValueError for norm_type 0.
    """
    one_of(data_format, "data_format", "lp_pool2d", ("NCHW", "NHWC"))
    require(
        norm_type not in (0, -math.inf),
        f"lp_pool2d's norm_type is a number other than 0 and -inf, not {norm_type}",
    )
    kernel = size_list(kernel_size, 2, "kernel_size", "lp_pool2d")
    paddings, algorithm = window_padding(padding, 2, data_format == "NHWC", "lp_pool2d")
    attrs = {
        "kernel_size": kernel, "strides": kernel if stride is None else size_list(stride, 2, "stride", "lp_pool2d"), "paddings": paddings,
        "padding_algorithm": algorithm, "ceil_mode": ceil_mode, "exclusive": True, "data_format": data_format, "pooling_type": "lp",
        "global_pooling": False, "norm_type": float(norm_type),
    }  # fmt: skip
    return append(LayerHelper("lp_pool2d", name=name), {"x": x}, {"out": x.dtype}, attrs)


def lp_pool1d(
    x: Variable, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCL", name: str | None = None,
) -> Variable:  # fmt: skip
    """lp_pool2d of rows: [N, C, L], or [N, L, C] for "NLC"."""
    one_of(data_format, "data_format", "lp_pool1d", ("NCL", "NLC"))
    axis, layout = (2, "NCHW") if data_format == "NCL" else (1, "NHWC")
    ends = _row_padding(padding)
    out = lp_pool2d(
        layers.unsqueeze(x, [axis]),
        norm_type,
        _row(kernel_size, 1),
        _row(stride, 1),
        ends,
        ceil_mode,
        layout,
        name,
    )
    return layers.squeeze(out, [axis])


def _fractional(
    n: int,
    x: Variable,
    output_size: Any,
    kernel_size: Any,
    random_u: float | None,
    return_mask: bool,
    name: Any,
) -> Any:
    layer = f"fractional_max_pool{n}d"
    require(
        x.ndim == n + 2,
        f"{layer} takes {n + 2} dimensions, but {x.name!r} has shape {list(x.shape)}",
    )
    require(
        random_u is None or 0 < random_u < 1,
        f"{layer}'s random_u lies between 0 and 1, or is None, and not {random_u}",
    )
    attrs = {
        "output_size": _sizes(x, output_size, n, layer), "return_mask": return_mask, "random_u": float(random_u or 0.0),
        "kernel_size": [0] * n if kernel_size is None else size_list(kernel_size, n, "kernel_size", layer),
    }  # fmt: skip
    made = append(
        LayerHelper(layer, name=name),
        {"x": x},
        {"out": x.dtype, "mask": "int32"},
        attrs,
        stop="mask",
    )
    return made if return_mask else made[0]


def fractional_max_pool2d(
    x: Variable, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Maxima of [N, C, H, W] over output_size windows, whose sizes differ by at most one, in an
    order given by random_u (None: random).

    Window i begins at floor((i + u) * alpha) - floor(u * alpha), alpha = size / output_size, and
    ends where the next begins; with a kernel_size, windows have that size and overlap. return_mask:
    also return the index of each maximum in its image, int32.
    """
    return _fractional(2, x, output_size, kernel_size, random_u, return_mask, name)


def fractional_max_pool3d(
    x: Variable, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """fractional_max_pool2d over three dimensions: [N, C, D, H, W]."""
    return _fractional(3, x, output_size, kernel_size, random_u, return_mask, name)


def _unpooled(
    n: int, x: Variable, indices: Variable, kernel_size: Any, stride: Any, padding: Any, output_size: Sequence[int] | None, name: Any,
) -> Variable:  # fmt: skip
    layer = f"max_unpool{n}d"
    fits = x.ndim == indices.ndim == n + 2
    require(
        fits,
        f"{layer} takes x and indices of {n + 2} dimensions, not {list(x.shape)},"
        f" {list(indices.shape)}",
    )
    kernel, pads = (
        size_list(kernel_size, n, "kernel_size", layer),
        size_list(padding, n, "padding", layer),
    )
    strides = kernel if stride is None else size_list(stride, n, "stride", layer)
    usual = [
        (c - 1) * s + k - 2 * p
        for c, s, k, p in zip(x.shape[2:], strides, kernel, pads, strict=True)
    ]
    size = usual if output_size is None else [int(v) for v in output_size][-n:]
    fits = len(size) == n and all(
        -1 in x.shape[2:] or u - s < v < u + s for u, s, v in zip(usual, strides, size, strict=True)
    )
    require(fits, f"{layer}'s output_size is less than a stride from {usual}, not {output_size!r}")
    attrs: dict[str, Any] = {
        "ksize": kernel,
        "strides": strides,
        "paddings": pads,
        "output_size": size,
    }
    attrs |= {"unpooling_type": "max"} if n == 2 else {"data_format": "NCDHW"}
    kind = "unpool" if n == 2 else "unpool3d"
    return append(
        LayerHelper(layer, name=name),
        {"X": x, "Indices": indices},
        {"Out": x.dtype},
        attrs,
        kind=kind,
    )


def max_unpool1d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCL",
    output_size: Sequence[int] | None = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """max_unpool2d of rows [N, C, L]."""
    one_of(data_format, "data_format", "max_unpool1d", ("NCL",))
    size = None if output_size is None else [1, int(output_size[-1])]
    row, where = layers.unsqueeze(x, [2]), layers.unsqueeze(indices, [2])
    out = _unpooled(
        2, row, where, _row(kernel_size, 1), _row(stride, 1), _row(padding, 0), size, name
    )
    return layers.squeeze(out, [2])


def max_unpool2d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCHW",
    output_size: Sequence[int] | None = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """Zeros with x's values at `indices`, positions in the planes of the result: the inverse of
    max_pool2d with return_mask.

    The result's size is (size - 1) * stride + kernel_size - 2 * padding, or output_size, which
    differs by less than a stride. Raises FluidValueError for another output_size or data_format.
    """
    one_of(data_format, "data_format", "max_unpool2d", ("NCHW",))
    return _unpooled(2, x, indices, kernel_size, stride, padding, output_size, name)


def max_unpool3d(
    x: Variable, indices: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCDHW",
    output_size: Sequence[int] | None = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """max_unpool2d over three dimensions: [N, C, D, H, W]."""
    one_of(data_format, "data_format", "max_unpool3d", ("NCDHW",))
    return _unpooled(3, x, indices, kernel_size, stride, padding, output_size, name)


def fold(
    x: Variable,
    output_sizes: Any,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Variable:
    """The images [N, C, H, W] whose windows are the columns of x [N, C * kh * kw, number of
    windows]; overlaps are added up.

    output_sizes: H and W; paddings: one, [h, w], or [top, left, bottom, right].
    """
    pads = (
        [paddings] * 4
        if isinstance(paddings, int)
        else list(paddings) * (2 if len(paddings) == 2 else 1)
    )
    require(len(pads) == 4, f"fold's paddings is an integer or a list of 2 or 4, not {paddings!r}")
    sizes = {
        "output_sizes": output_sizes,
        "kernel_sizes": kernel_sizes,
        "strides": strides,
        "dilations": dilations,
    }
    attrs = {what: size_list(v, 2, what, "fold") for what, v in sizes.items()}
    return append(
        LayerHelper("fold", name=name), {"X": x}, {"Y": x.dtype}, {**attrs, "paddings": pads}
    )


__all__ = [
    "fold", "fractional_max_pool2d", "fractional_max_pool3d", "lp_pool1d", "lp_pool2d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip
