"""Activations as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from ....initializer import Constant
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class ELU(FunctionLayer, function=F.elu):
    """paddle.nn.functional.elu as a layer."""


class GELU(FunctionLayer, function=F.gelu):
    """paddle.nn.functional.gelu as a layer."""


class Hardshrink(FunctionLayer, function=F.hardshrink):
    """paddle.nn.functional.hardshrink as a layer."""


class Hardsigmoid(Layer):
    """paddle.nn.functional.hardsigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.hardsigmoid(x)


class Hardswish(FunctionLayer, function=F.hardswish):
    """paddle.nn.functional.hardswish as a layer."""


class Hardtanh(FunctionLayer, function=F.hardtanh):
    """paddle.nn.functional.hardtanh as a layer."""


class LeakyReLU(FunctionLayer, function=F.leaky_relu):
    """paddle.nn.functional.leaky_relu as a layer."""


class LogSigmoid(FunctionLayer, function=F.log_sigmoid):
    """paddle.nn.functional.log_sigmoid as a layer."""


class LogSoftmax(Layer):
    """paddle.nn.functional.log_softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.log_softmax(x, self.axis)


class Maxout(FunctionLayer, function=F.maxout):
    """paddle.nn.functional.maxout as a layer."""


class Mish(FunctionLayer, function=F.mish):
    """paddle.nn.functional.mish as a layer."""


class ReLU(FunctionLayer, function=F.relu):
    """paddle.nn.functional.relu as a layer."""


class ReLU6(FunctionLayer, function=F.relu6):
    """paddle.nn.functional.relu6 as a layer."""


class SELU(FunctionLayer, function=F.selu):
    """paddle.nn.functional.selu as a layer."""


class Sigmoid(FunctionLayer, function=F.sigmoid):
    """paddle.nn.functional.sigmoid as a layer."""


class Silu(FunctionLayer, function=F.silu):
    """paddle.nn.functional.silu as a layer."""


class Softmax(Layer):
    """paddle.nn.functional.softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.softmax(x, self.axis)


class Softplus(FunctionLayer, function=F.softplus):
    """paddle.nn.functional.softplus as a layer."""


class Softshrink(FunctionLayer, function=F.softshrink):
    """paddle.nn.functional.softshrink as a layer."""


class Softsign(FunctionLayer, function=F.softsign):
    """paddle.nn.functional.softsign as a layer."""


class Swish(FunctionLayer, function=F.swish):
    """paddle.nn.functional.swish as a layer."""


class Tanh(FunctionLayer, function=F.tanh):
    """paddle.nn.functional.tanh as a layer."""


class Tanhshrink(FunctionLayer, function=F.tanhshrink):
    """paddle.nn.functional.tanhshrink as a layer."""


class ThresholdedReLU(FunctionLayer, function=F.thresholded_relu):
    """paddle.nn.functional.thresholded_relu as a layer."""


class PReLU(Layer):
    """x where x > 0, else weight * x, with a trained weight for all or for each channel; it begins
    as `init`.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.data_format = data_format
        self.weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=Constant(init)
        )

    def forward(self, x: Variable) -> Variable:
        return F.prelu(x, self.weight, self.data_format)


class CELU(FunctionLayer, function=F.celu):
    """paddle.nn.functional.celu as a layer."""


class GLU(FunctionLayer, function=F.glu):
    """paddle.nn.functional.glu as a layer."""


class RReLU(Layer):
    """paddle.nn.functional.rrelu as a layer. In training it draws."""

    def __init__(
        self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None
    ) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def forward(self, x: Variable) -> Variable:
        return F.rrelu(x, self.lower, self.upper, self.training)


class Softmax2D(Layer):
    """softmax over the channels of images [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.softmax(x, axis=-3)


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softmax2D",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
]  # fmt: skip
