"""Activations as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from ....initializer import Constant
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class ELU(FunctionLayer):
    """paddle.nn.functional.elu as a layer."""

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(F.elu, alpha=alpha)


class GELU(FunctionLayer):
    """paddle.nn.functional.gelu as a layer."""

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__(F.gelu, approximate=approximate)


class Hardshrink(FunctionLayer):
    """paddle.nn.functional.hardshrink as a layer."""

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(F.hardshrink, threshold=threshold)


class Hardsigmoid(Layer):
    """paddle.nn.functional.hardsigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.hardsigmoid(x)


class Hardswish(FunctionLayer):
    """paddle.nn.functional.hardswish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.hardswish)


class Hardtanh(FunctionLayer):
    """paddle.nn.functional.hardtanh as a layer."""

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None) -> None:
        super().__init__(F.hardtanh, min=min, max=max)


class LeakyReLU(FunctionLayer):
    """paddle.nn.functional.leaky_relu as a layer."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__(F.leaky_relu, negative_slope=negative_slope)


class LogSigmoid(FunctionLayer):
    """paddle.nn.functional.log_sigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.log_sigmoid)


class LogSoftmax(Layer):
    """paddle.nn.functional.log_softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.log_softmax(x, self.axis)


class Maxout(FunctionLayer):
    """paddle.nn.functional.maxout as a layer."""

    def __init__(self, groups: int, axis: int = 1, name: str | None = None) -> None:
        super().__init__(F.maxout, groups=groups, axis=axis)


class Mish(FunctionLayer):
    """paddle.nn.functional.mish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.mish)


class ReLU(FunctionLayer):
    """paddle.nn.functional.relu as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.relu)


class ReLU6(FunctionLayer):
    """paddle.nn.functional.relu6 as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.relu6)


class SELU(FunctionLayer):
    """paddle.nn.functional.selu as a layer."""

    def __init__(
        self,
        scale: float = 1.0507009873554805,
        alpha: float = 1.6732632423543772,
        name: str | None = None,
    ) -> None:
        super().__init__(F.selu, scale=scale, alpha=alpha)


class Sigmoid(FunctionLayer):
    """paddle.nn.functional.sigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.sigmoid)


class Silu(FunctionLayer):
    """paddle.nn.functional.silu as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.silu)


class Softmax(Layer):
    """paddle.nn.functional.softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.softmax(x, self.axis)


class Softplus(FunctionLayer):
    """paddle.nn.functional.softplus as a layer."""

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__(F.softplus, beta=beta, threshold=threshold)


class Softshrink(FunctionLayer):
    """paddle.nn.functional.softshrink as a layer."""

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(F.softshrink, threshold=threshold)


class Softsign(FunctionLayer):
    """paddle.nn.functional.softsign as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.softsign)


class Swish(FunctionLayer):
    """paddle.nn.functional.swish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.swish)


class Tanh(FunctionLayer):
    """paddle.nn.functional.tanh as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.tanh)


class Tanhshrink(FunctionLayer):
    """paddle.nn.functional.tanhshrink as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.tanhshrink)


class ThresholdedReLU(FunctionLayer):
    """paddle.nn.functional.thresholded_relu as a layer."""

    def __init__(self, threshold: float = 1.0, name: str | None = None) -> None:
        super().__init__(F.thresholded_relu, threshold=threshold)


class PReLU(Layer):
    """x where x > 0, else weight * x, with a trained weight for all or for each channel, initially
    `init`.
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


class CELU(FunctionLayer):
    """paddle.nn.functional.celu as a layer."""

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(F.celu, alpha=alpha)


class GLU(FunctionLayer):
    """paddle.nn.functional.glu as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(F.glu, axis=axis)


class RReLU(Layer):
    """paddle.nn.functional.rrelu as a layer. In training its slopes are random."""

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
