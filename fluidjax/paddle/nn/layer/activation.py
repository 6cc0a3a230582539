"""Activations as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from ....initializer import Constant
from .. import functional as F
from .base import Layer


class ELU(Layer):
    """paddle.nn.functional.elu as a layer."""

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Variable) -> Variable:
        return F.elu(x, self.alpha)


class GELU(Layer):
    """paddle.nn.functional.gelu as a layer."""

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Variable) -> Variable:
        return F.gelu(x, self.approximate)


class Hardshrink(Layer):
    """paddle.nn.functional.hardshrink as a layer."""

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Variable) -> Variable:
        return F.hardshrink(x, self.threshold)


class Hardsigmoid(Layer):
    """paddle.nn.functional.hardsigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.hardsigmoid(x)


class Hardswish(Layer):
    """paddle.nn.functional.hardswish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.hardswish(x)


class Hardtanh(Layer):
    """paddle.nn.functional.hardtanh as a layer."""

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self.min, self.max = min, max

    def forward(self, x: Variable) -> Variable:
        return F.hardtanh(x, self.min, self.max)


class LeakyReLU(Layer):
    """paddle.nn.functional.leaky_relu as a layer."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Variable) -> Variable:
        return F.leaky_relu(x, self.negative_slope)


class LogSigmoid(Layer):
    """paddle.nn.functional.log_sigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.log_sigmoid(x)


class LogSoftmax(Layer):
    """paddle.nn.functional.log_softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.log_softmax(x, self.axis)


class Maxout(Layer):
    """paddle.nn.functional.maxout as a layer."""

    def __init__(self, groups: int, axis: int = 1, name: str | None = None) -> None:
        super().__init__()
        self.groups, self.axis = groups, axis

    def forward(self, x: Variable) -> Variable:
        return F.maxout(x, self.groups, self.axis)


class Mish(Layer):
    """paddle.nn.functional.mish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.mish(x)


class ReLU(Layer):
    """paddle.nn.functional.relu as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.relu(x)


class ReLU6(Layer):
    """paddle.nn.functional.relu6 as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.relu6(x)


class SELU(Layer):
    """paddle.nn.functional.selu as a layer."""

    def __init__(
        self,
        scale: float = 1.0507009873554805,
        alpha: float = 1.6732632423543772,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.scale, self.alpha = scale, alpha

    def forward(self, x: Variable) -> Variable:
        return F.selu(x, self.scale, self.alpha)


class Sigmoid(Layer):
    """paddle.nn.functional.sigmoid as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.sigmoid(x)


class Silu(Layer):
    """paddle.nn.functional.silu as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.silu(x)


class Softmax(Layer):
    """paddle.nn.functional.softmax as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.softmax(x, self.axis)


class Softplus(Layer):
    """paddle.nn.functional.softplus as a layer."""

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Variable) -> Variable:
        return F.softplus(x, self.beta, self.threshold)


class Softshrink(Layer):
    """paddle.nn.functional.softshrink as a layer."""

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Variable) -> Variable:
        return F.softshrink(x, self.threshold)


class Softsign(Layer):
    """paddle.nn.functional.softsign as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.softsign(x)


class Swish(Layer):
    """paddle.nn.functional.swish as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.swish(x)


class Tanh(Layer):
    """paddle.nn.functional.tanh as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.tanh(x)


class Tanhshrink(Layer):
    """paddle.nn.functional.tanhshrink as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        return F.tanhshrink(x)


class ThresholdedReLU(Layer):
    """paddle.nn.functional.thresholded_relu as a layer."""

    def __init__(self, threshold: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Variable) -> Variable:
        return F.thresholded_relu(x, self.threshold)


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


class CELU(Layer):
    """paddle.nn.functional.celu as a layer."""

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Variable) -> Variable:
        return F.celu(x, self.alpha)


class GLU(Layer):
    """paddle.nn.functional.glu as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Variable) -> Variable:
        return F.glu(x, self.axis)


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
