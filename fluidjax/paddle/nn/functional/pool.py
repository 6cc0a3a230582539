"""paddle.nn.functional: pooling by window, and to a given size."""

from __future__ import annotations

import math
from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers._build import append, require, size_list
from ....layers.conv import FORMATS, window_padding


def _pool(
    n: int, x: Variable, kind: str, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, data_format: str, name: Any,
    exclusive: bool = True, divisor: int | None = None,
) -> Variable:  # fmt: skip
    kernel = size_list(kernel_size, n, "kernel_size", f"{kind}_pool{n}d")
    pool = layers.pool2d if n == 2 else layers.pool3d
    out = pool(x, kernel, kind, kernel if stride is None else stride, padding, ceil_mode=ceil_mode, name=name,
               exclusive=exclusive and divisor is None, data_format=data_format)  # fmt: skip
    return out if divisor is None else layers.scale(out, math.prod(kernel) / divisor)


def _masked(
    n: int,
    x: Variable,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    data_format: str,
    name: Any,
) -> Any:
    """Maxima, and the index of each in its image."""
    layer = f"max_pool{n}d"
    require(
        data_format == FORMATS[n][0],
        f"{layer}'s return_mask takes channels first, not {data_format!r}",
    )
    require(not ceil_mode, f"{layer}'s return_mask takes ceil_mode=False")
    kernel = size_list(kernel_size, n, "kernel_size", layer)
    paddings, algorithm = window_padding(padding, n, False, layer)
    require(
        algorithm == "EXPLICIT" and len(paddings) == n,
        f"{layer}'s return_mask takes as much padding before as after, not {padding!r}",
    )
    attrs = {
        "ksize": kernel,
        "strides": kernel if stride is None else size_list(stride, n, "stride", layer),
        "paddings": paddings,
    }
    helper = LayerHelper(layer, name=name)
    return append(
        helper,
        {"X": x},
        {"Out": x.dtype, "Mask": "int32"},
        attrs,
        kind=f"max_pool{n}d_with_index",
        stop="Mask",
    )


def _row(value: Any, fill: int) -> Any:
    """A window argument for images of one row, from that of rows."""
    return (
        value
        if value is None or isinstance(value, str)
        else [fill, *size_list(value, 1, "size", "pool1d")]
    )


def _row_padding(padding: Any) -> Any:
    """The padding of an image with the row as its one line."""
    if isinstance(padding, str):
        return padding
    ends, _ = window_padding(padding, 1, False, "pool1d")
    return [0, 0, *(ends * 2 if len(ends) == 1 else ends)]


def avg_pool1d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, exclusive: bool = True, ceil_mode: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Means over windows of [N, C, L]; exclusive: padding does not count. stride: default the
    kernel's size.
    """
    out = _pool(2, layers.unsqueeze(x, [2]), "avg", _row(kernel_size, 1), _row(stride, 1), _row_padding(padding), ceil_mode, "NCHW",
                name, exclusive)  # fmt: skip
    return layers.squeeze(out, [2])


def avg_pool2d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: int | None = None, data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """Means over windows; exclusive: padding does not count. divisor_override: the divisor of sums,
    instead of the window's size.
    """
    return _pool(
        2,
        x,
        "avg",
        kernel_size,
        stride,
        padding,
        ceil_mode,
        data_format,
        name,
        exclusive,
        divisor_override,
    )


def avg_pool3d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: int | None = None, data_format: str = "NCDHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """avg_pool2d over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    return _pool(
        3,
        x,
        "avg",
        kernel_size,
        stride,
        padding,
        ceil_mode,
        data_format,
        name,
        exclusive,
        divisor_override,
    )


def max_pool1d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Maxima over windows of [N, C, L]; with return_mask, also their indices."""
    image, kernel, step = layers.unsqueeze(x, [2]), _row(kernel_size, 1), _row(stride, 1)
    if return_mask:
        pair = _masked(2, image, kernel, step, _row_padding(padding), ceil_mode, "NCHW", name)
        return tuple(layers.squeeze(v, [2]) for v in pair)
    return layers.squeeze(
        _pool(2, image, "max", kernel, step, _row_padding(padding), ceil_mode, "NCHW", name), [2]
    )


def max_pool2d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    data_format: str = "NCHW", name: str | None = None,
) -> Any:  # fmt: skip
    """Maxima over windows. stride: default the kernel's size. return_mask: also return the index of
    each maximum in its image.

    Raises FluidValueError for return_mask with channels last, ceil_mode or uneven padding.
    """
    if return_mask:
        return _masked(2, x, kernel_size, stride, padding, ceil_mode, data_format, name)
    return _pool(2, x, "max", kernel_size, stride, padding, ceil_mode, data_format, name)


def max_pool3d(
    x: Variable, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    data_format: str = "NCDHW", name: str | None = None,
) -> Any:  # fmt: skip
    """max_pool2d over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    if return_mask:
        return _masked(3, x, kernel_size, stride, padding, ceil_mode, data_format, name)
    return _pool(3, x, "max", kernel_size, stride, padding, ceil_mode, data_format, name)


def _sizes(x: Variable, output_size: Any, n: int, layer: str, last: bool = False) -> list[int]:
    """The output's sizes; None keeps x's, which must be known."""
    sizes = list(output_size) if isinstance(output_size, list | tuple) else [output_size] * n
    require(
        len(sizes) == n, f"{layer}'s output_size is a number or {n} of them, not {output_size!r}"
    )
    held = x.shape[1:-1] if last else x.shape[2:]
    return [held[i] if s is None else int(s) for i, s in enumerate(sizes)]


def adaptive_avg_pool1d(x: Variable, output_size: Any, name: str | None = None) -> Variable:
    """Means over output_size regions of [N, C, L]."""
    size = _sizes(x, output_size, 1, "adaptive_avg_pool1d")
    return layers.squeeze(
        layers.adaptive_pool2d(layers.unsqueeze(x, [2]), [1, *size], "avg", name=name), [2]
    )


def _adaptive_mean(n: int, x: Variable, output_size: Any, data_format: str, name: Any) -> Variable:
    layer = f"adaptive_avg_pool{n}d"
    require(
        data_format in FORMATS[n],
        f"{layer}'s data_format is {' or '.join(FORMATS[n])}, not {data_format!r}",
    )
    last = data_format == FORMATS[n][1]
    attrs = {
        "pooling_type": "avg",
        "ksize": _sizes(x, output_size, n, layer, last),
        "adaptive": True,
        "data_format": data_format,
    }
    return append(
        LayerHelper(layer, name=name), {"X": x}, {"Out": x.dtype}, attrs, kind=f"pool{n}d"
    )


def adaptive_avg_pool2d(
    x: Variable, output_size: Any, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """Means over output_size[0] x output_size[1] regions; None keeps a size."""
    return _adaptive_mean(2, x, output_size, data_format, name)


def adaptive_avg_pool3d(
    x: Variable, output_size: Any, data_format: str = "NCDHW", name: str | None = None
) -> Variable:
    """adaptive_avg_pool2d over three dimensions."""
    return _adaptive_mean(3, x, output_size, data_format, name)


def adaptive_max_pool1d(
    x: Variable, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Any:
    """Maxima over output_size regions of [N, C, L]; with return_mask, also their indices."""
    size = _sizes(x, output_size, 1, "adaptive_max_pool1d")
    out, mask = layers.adaptive_pool2d(layers.unsqueeze(x, [2]), [1, *size], "max", True, name)
    return (
        (layers.squeeze(out, [2]), layers.squeeze(mask, [2]))
        if return_mask
        else layers.squeeze(out, [2])
    )


def adaptive_max_pool2d(
    x: Variable, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Any:
    """Maxima over output_size[0] x output_size[1] regions; with return_mask, also their indices."""
    return layers.adaptive_pool2d(
        x, _sizes(x, output_size, 2, "adaptive_max_pool2d"), "max", return_mask, name
    )


def adaptive_max_pool3d(
    x: Variable, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Any:
    """adaptive_max_pool2d over three dimensions."""
    return layers.adaptive_pool3d(
        x, _sizes(x, output_size, 3, "adaptive_max_pool3d"), "max", return_mask, name
    )


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip
