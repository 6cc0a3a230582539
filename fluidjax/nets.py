"""Networks of several layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import layers
from .base.absent import reporter
from .base.loc import located
from .errors import ArgumentError, FluidTypeError
from .graph.variable import Variable
from .layers._build import require, typed, variable


@located
def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    pool_size: Any,
    pool_stride: Any,
    pool_padding: Any = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Any = 1,
    conv_padding: Any = 0,
    conv_dilation: Any = 1,
    conv_groups: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """conv2d, then pool2d; arguments as in those."""
    image = layers.conv2d(
        input,
        num_filters,
        filter_size,
        conv_stride,
        conv_padding,
        conv_dilation,
        conv_groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
    )
    return layers.pool2d(
        image, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn
    )


@located
def img_conv_group(
    input: Variable,
    conv_num_filter: Any,
    pool_size: Any,
    conv_padding: Any = 1,
    conv_filter_size: Any = 3,
    conv_act: str | None = None,
    param_attr: Any = None,
    conv_with_batchnorm: Any = False,
    conv_batchnorm_drop_rate: Any = 0.0,
    pool_stride: Any = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """One conv2d for each number in conv_num_filter, each with batch_norm and dropout if wanted,
    then a pool2d.

    conv_padding, conv_filter_size, param_attr, conv_with_batchnorm, conv_batchnorm_drop_rate: one
    for all convolutions, or a list with one for each. conv_act follows batch_norm if there is one.
    """
    typed(conv_num_filter, "conv_num_filter", (list, tuple), "img_conv_group")
    count = len(conv_num_filter)

    def each(value: Any) -> list[Any]:
        many = list(value) if isinstance(value, list | tuple) else [value] * count
        require(
            len(many) == count,
            f"img_conv_group has {count} convolutions, but a list of {len(many)} was given",
            ArgumentError,
        )
        return many

    settings = zip(
        conv_num_filter, each(conv_padding), each(conv_filter_size), each(param_attr), each(conv_with_batchnorm),
        each(conv_batchnorm_drop_rate), strict=True,
    )  # fmt: skip
    out = input
    for filters, padding, size, attr, normalised, drop in settings:
        act = None if normalised else conv_act
        out = layers.conv2d(
            out, filters, size, padding=padding, param_attr=attr, act=act, use_cudnn=use_cudnn
        )
        if normalised:
            out = layers.batch_norm(out, act=conv_act)
            if abs(drop) > 1e-5:
                out = layers.dropout(out, dropout_prob=drop)
    return layers.pool2d(
        out, pool_size=pool_size, pool_type=pool_type, pool_stride=pool_stride, use_cudnn=use_cudnn
    )


@located
def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: Any = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: Any = None,
) -> Variable:
    """sequence_conv, then sequence_pool; arguments as in those."""
    variable(input, "input", "sequence_conv_pool", ("float32", "float64"))
    rows = layers.sequence_conv(
        input, num_filters, filter_size, bias_attr=bias_attr, param_attr=param_attr, act=act
    )
    return layers.sequence_pool(rows, pool_type)


@located
def glu(input: Variable, dim: int = -1) -> Variable:
    """Gated linear unit: a * sigmoid(b), a and b the halves of `input` along `dim`."""
    variable(input, "input", "glu", ("float16", "float32", "float64"))
    a, b = layers.split(input, num_or_sections=2, dim=dim)
    return layers.elementwise_mul(a, layers.sigmoid(b))


@located
def scaled_dot_product_attention(
    queries: Variable,
    keys: Variable,
    values: Variable,
    num_heads: int = 1,
    dropout_rate: float = 0.0,
) -> Variable:
    """softmax(q k^T / sqrt(d)) v for queries [N, M, D], keys [N, L, D], values [N, L, V]: [N, M,
    V].

    num_heads > 1: q, k and v first pass through an fc each and attend in num_heads parts, d = D /
    num_heads. Raises FluidTypeError for integers, FluidValueError for shapes that do not fit.
    """
    for what, v in (("queries", queries), ("keys", keys), ("values", values)):
        variable(v, what, "scaled_dot_product_attention", ("float32", "float64"))
        require(
            v.ndim == 3,
            f"scaled_dot_product_attention's {what} has three dimensions, but {v.name!r} has shape"
            f" {list(v.shape)}",
        )
    if not queries.dtype == keys.dtype == values.dtype:
        raise FluidTypeError(
            "scaled_dot_product_attention's queries, keys and values are of one dtype"
        )
    width, out_width = keys.shape[-1], values.shape[-1]
    require(
        queries.shape[-1] == width,
        f"queries of width {queries.shape[-1]} cannot attend to keys of width {width}",
    )
    require(
        keys.shape[-2] == values.shape[-2],
        f"there are {keys.shape[-2]} keys but {values.shape[-2]} values",
    )
    for n in (width, out_width):
        require(n % num_heads == 0, f"width {n} does not divide into {num_heads} heads")
    q, k, v = queries, keys, values
    if num_heads > 1:
        q, k, v = (layers.fc(x, x.shape[-1], num_flatten_dims=2) for x in (q, k, v))
    q, k, v = (_split_heads(x, num_heads) for x in (q, k, v))
    product = layers.matmul(
        layers.scale(q, scale=(width // num_heads) ** -0.5), k, transpose_y=True
    )
    flat = layers.reshape(product, [-1, product.shape[-1]], act="softmax")
    weights = layers.reshape(flat, list(product.shape))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate, is_test=False)
    return _join_heads(layers.matmul(weights, v), num_heads)


def _split_heads(x: Variable, heads: int) -> Variable:
    """[N, M, D] to [N, heads, M, D / heads]."""
    if heads == 1:
        return x
    parts = layers.reshape(x, [x.shape[0], x.shape[1], heads, x.shape[2] // heads])
    return layers.transpose(parts, [0, 2, 1, 3])


def _join_heads(x: Variable, heads: int) -> Variable:
    """[N, heads, M, V / heads] to [N, M, V]."""
    if heads == 1:
        return x
    moved = layers.transpose(x, [0, 2, 1, 3])
    return layers.reshape(moved, [moved.shape[0], moved.shape[1], math.prod(moved.shape[2:])])


__all__ = [
    "glu",
    "img_conv_group",
    "scaled_dot_product_attention",
    "sequence_conv_pool",
    "simple_img_conv_pool",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.nets", __all__)
