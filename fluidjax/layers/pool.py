"""Pooling over two and three dimensions, by window or adaptively."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import HALF, INTS, append, one_of, require, size_list, typed, variable
from .conv import FORMATS, window_padding


def _pool(
    n: int,
    input: Any,
    pool_size: Any,
    pool_type: str,
    pool_stride: Any,
    pool_padding: Any,
    global_pooling: bool,
    use_cudnn: bool,
    ceil_mode: bool,
    name: str | None,
    exclusive: bool,
    data_format: str,
) -> Variable:
    layer = f"pool{n}d"
    variable(input, "input", layer)
    one_of(pool_type, "pool_type", layer, ("max", "avg"))
    require(
        global_pooling or pool_size != -1,
        f"{layer} needs a pool_size unless global_pooling is True",
    )
    if not isinstance(use_cudnn, bool):
        raise FluidTypeError(f"{layer}'s use_cudnn is True or False, not {use_cudnn!r}")
    one_of(data_format, "data_format", layer, FORMATS[n])
    window = size_list(pool_size, n, "pool_size", layer)
    stride = size_list(pool_stride, n, "pool_stride", layer)
    paddings, algorithm = window_padding(
        pool_padding, n, data_format == FORMATS[n][1], layer, "pool_padding"
    )
    require(
        not (algorithm == "VALID" and ceil_mode),
        f"{layer}'s ceil_mode is False where pool_padding is 'VALID'",
    )
    attrs = {
        "pooling_type": pool_type,
        "ksize": window,
        "global_pooling": global_pooling,
        "strides": stride,
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return append(LayerHelper(layer, name=name), {"X": input}, {"Out": input.dtype}, attrs)


@located
def pool2d(
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Maximum ("max") or mean ("avg") of each window: [N, C, H, W] gives [N, C, H', W'].

    pool_padding: as conv2d's padding. global_pooling: one window over the whole image. ceil_mode:
    round the output size up. exclusive: padding does not count in means. use_cudnn is ignored.
    Raises FluidValueError for an argument that does not fit.
    """
    return _pool(2, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, name,
                 exclusive, data_format)  # fmt: skip


@located
def pool3d(
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Variable:
    """pool2d over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    return _pool(3, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, name,
                 exclusive, data_format)  # fmt: skip


def _adaptive(
    n: int, input: Any, pool_size: Any, pool_type: str, require_index: bool, name: str | None
) -> Any:
    layer = f"adaptive_pool{n}d"
    variable(input, "input", layer, (*HALF, *INTS))
    one_of(pool_type, "pool_type", layer, ("max", "avg"))
    typed(require_index, "require_index", bool, layer)
    require(
        not (pool_type == "avg" and require_index),
        f"{layer}'s require_index is False where pool_type is 'avg'",
    )
    attrs = {
        "pooling_type": pool_type,
        "ksize": size_list(pool_size, n, "pool_size", layer),
        "adaptive": True,
    }
    if pool_type == "avg":
        return append(
            LayerHelper(f"pool{n}d", name=name), {"X": input}, {"Out": input.dtype}, attrs
        )
    del attrs["pooling_type"]
    helper = LayerHelper(f"max_pool{n}d_with_index", name=name)
    out, mask = append(helper, {"X": input}, {"Out": input.dtype, "Mask": input.dtype}, attrs)
    return (out, mask) if require_index else out


@located
def adaptive_pool2d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """Pool to an output of size `pool_size`; require_index ("max" only) also returns the index of
    each maximum.
    """
    return _adaptive(2, input, pool_size, pool_type, require_index, name)


@located
def adaptive_pool3d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """adaptive_pool2d over three dimensions."""
    return _adaptive(3, input, pool_size, pool_type, require_index, name)


__all__ = ["adaptive_pool2d", "adaptive_pool3d", "pool2d", "pool3d"]
