"""paddle.static.nn: layers with parameters, under the names and arguments of Paddle 2.0."""

from __future__ import annotations

from typing import Any

from ... import layers
from ...graph.variable import Variable
from ...input import embedding as embedding
from ...layers import batch_norm as batch_norm
from ...layers import bilinear_tensor_product as bilinear_tensor_product
from ...layers import conv2d as conv2d
from ...layers import conv2d_transpose as conv2d_transpose
from ...layers import conv3d as conv3d
from ...layers import conv3d_transpose as conv3d_transpose
from ...layers import create_parameter as create_parameter
from ...layers import data_norm as data_norm
from ...layers import group_norm as group_norm
from ...layers import instance_norm as instance_norm
from ...layers import layer_norm as layer_norm
from ...layers import prelu as prelu
from ...layers import spectral_norm as spectral_norm


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Variable:
    """activation(sum_i flatten(x_i) @ w_i + b): fluid's layers.fc.

    x: a variable or a list of them; the first num_flatten_dims dimensions stay, the others become one.
    """
    return layers.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)


__all__ = [
    "batch_norm", "bilinear_tensor_product", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "create_parameter",
    "data_norm", "embedding", "fc", "group_norm", "instance_norm", "layer_norm", "prelu", "spectral_norm",
]  # fmt: skip
