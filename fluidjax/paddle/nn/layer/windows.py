"""Norms and fractions of windows, and windows put back where they came from, as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class LPPool1D(FunctionLayer, function=F.lp_pool1d):
    """paddle.nn.functional.lp_pool1d as a layer."""


class LPPool2D(FunctionLayer, function=F.lp_pool2d):
    """paddle.nn.functional.lp_pool2d as a layer."""


class MaxUnPool1D(FunctionLayer, function=F.max_unpool1d, inputs=2):
    """paddle.nn.functional.max_unpool1d as a layer."""


class MaxUnPool2D(FunctionLayer, function=F.max_unpool2d, inputs=2):
    """paddle.nn.functional.max_unpool2d as a layer."""


class MaxUnPool3D(FunctionLayer, function=F.max_unpool3d, inputs=2):
    """paddle.nn.functional.max_unpool3d as a layer."""


class FractionalMaxPool2D(FunctionLayer, function=F.fractional_max_pool2d):
    """paddle.nn.functional.fractional_max_pool2d as a layer."""


class FractionalMaxPool3D(FunctionLayer, function=F.fractional_max_pool3d):
    """paddle.nn.functional.fractional_max_pool3d as a layer."""


class Fold(Layer):
    """paddle.nn.functional.fold as a layer."""

    def __init__(
        self, output_sizes: Any, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_sizes, self.kernel_sizes, self.dilations, self.paddings = (
            output_sizes,
            kernel_sizes,
            dilations,
            paddings,
        )
        self.strides = strides

    def forward(self, x: Variable) -> Variable:
        return F.fold(
            x, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations
        )


class Unfold(Layer):
    """paddle.nn.functional.unfold as a layer."""

    def __init__(
        self, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_sizes, self.dilations, self.paddings, self.strides = (
            kernel_sizes,
            dilations,
            paddings,
            strides,
        )

    def forward(self, x: Variable) -> Variable:
        return F.unfold(x, self.kernel_sizes, self.strides, self.paddings, self.dilations)


__all__ = [
    "Fold", "FractionalMaxPool2D", "FractionalMaxPool3D", "LPPool1D", "LPPool2D", "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D",
    "Unfold",
]  # fmt: skip
