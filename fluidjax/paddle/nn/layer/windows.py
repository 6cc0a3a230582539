"""Norms over windows, fractional pools, and the inverses of pools and unfold, as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class LPPool1D(FunctionLayer):
    """paddle.nn.functional.lp_pool1d as a layer."""

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, data_format: str = "NCL",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.lp_pool1d,
            norm_type=norm_type,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


class LPPool2D(FunctionLayer):
    """paddle.nn.functional.lp_pool2d as a layer."""

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.lp_pool2d,
            norm_type=norm_type,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


class MaxUnPool1D(FunctionLayer):
    """paddle.nn.functional.max_unpool1d as a layer."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCL", output_size: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.max_unpool1d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            data_format=data_format,
            output_size=output_size,
        )


class MaxUnPool2D(FunctionLayer):
    """paddle.nn.functional.max_unpool2d as a layer."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCHW", output_size: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.max_unpool2d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            data_format=data_format,
            output_size=output_size,
        )


class MaxUnPool3D(FunctionLayer):
    """paddle.nn.functional.max_unpool3d as a layer."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCDHW", output_size: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.max_unpool3d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            data_format=data_format,
            output_size=output_size,
        )


class FractionalMaxPool2D(FunctionLayer):
    """paddle.nn.functional.fractional_max_pool2d as a layer."""

    def __init__(
        self, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.fractional_max_pool2d,
            output_size=output_size,
            kernel_size=kernel_size,
            random_u=random_u,
            return_mask=return_mask,
        )


class FractionalMaxPool3D(FunctionLayer):
    """paddle.nn.functional.fractional_max_pool3d as a layer."""

    def __init__(
        self, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.fractional_max_pool3d,
            output_size=output_size,
            kernel_size=kernel_size,
            random_u=random_u,
            return_mask=return_mask,
        )


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
