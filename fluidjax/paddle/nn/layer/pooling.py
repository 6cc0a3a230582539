"""Pools as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer


class AdaptiveAvgPool1D(Layer):
    """paddle.nn.functional.adaptive_avg_pool1d as a layer."""

    def __init__(self, output_size: Any, name: str | None = None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Variable) -> Variable:
        return F.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveAvgPool2D(Layer):
    """paddle.nn.functional.adaptive_avg_pool2d as a layer."""

    def __init__(
        self, output_size: Any, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__()
        self.output_size, self.data_format = output_size, data_format

    def forward(self, x: Variable) -> Variable:
        return F.adaptive_avg_pool2d(x, self.output_size, self.data_format)


class AdaptiveAvgPool3D(Layer):
    """paddle.nn.functional.adaptive_avg_pool3d as a layer."""

    def __init__(
        self, output_size: Any, data_format: str = "NCDHW", name: str | None = None
    ) -> None:
        super().__init__()
        self.output_size, self.data_format = output_size, data_format

    def forward(self, x: Variable) -> Variable:
        return F.adaptive_avg_pool3d(x, self.output_size, self.data_format)


class AdaptiveMaxPool1D(Layer):
    """paddle.nn.functional.adaptive_max_pool1d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self.output_size, self.return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Any:
        return F.adaptive_max_pool1d(x, self.output_size, self.return_mask)


class AdaptiveMaxPool2D(Layer):
    """paddle.nn.functional.adaptive_max_pool2d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self.output_size, self.return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Any:
        return F.adaptive_max_pool2d(x, self.output_size, self.return_mask)


class AdaptiveMaxPool3D(Layer):
    """paddle.nn.functional.adaptive_max_pool3d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self.output_size, self.return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Any:
        return F.adaptive_max_pool3d(x, self.output_size, self.return_mask)


class AvgPool1D(Layer):
    """paddle.nn.functional.avg_pool1d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode = (
            kernel_size,
            stride,
            padding,
            exclusive,
            ceil_mode,
        )

    def forward(self, x: Variable) -> Variable:
        return F.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode
        )


class AvgPool2D(Layer):
    """paddle.nn.functional.avg_pool2d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        ) = (
            kernel_size,
            stride,
            padding,
            ceil_mode,
            exclusive,
            divisor_override,
            data_format,
        )

    def forward(self, x: Variable) -> Variable:
        return F.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )


class AvgPool3D(Layer):
    """paddle.nn.functional.avg_pool3d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        ) = (
            kernel_size,
            stride,
            padding,
            ceil_mode,
            exclusive,
            divisor_override,
            data_format,
        )

    def forward(self, x: Variable) -> Variable:
        return F.avg_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )


class MaxPool1D(Layer):
    """paddle.nn.functional.max_pool1d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode = (
            kernel_size,
            stride,
            padding,
            return_mask,
            ceil_mode,
        )

    def forward(self, x: Variable) -> Any:
        return F.max_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode
        )


class MaxPool2D(Layer):
    """paddle.nn.functional.max_pool2d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        (
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        ) = (
            kernel_size,
            stride,
            padding,
            return_mask,
            ceil_mode,
            data_format,
        )

    def forward(self, x: Variable) -> Any:
        return F.max_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        )


class MaxPool3D(Layer):
    """paddle.nn.functional.max_pool3d as a layer."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        (
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        ) = (
            kernel_size,
            stride,
            padding,
            return_mask,
            ceil_mode,
            data_format,
        )

    def forward(self, x: Variable) -> Any:
        return F.max_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        )


__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
]  # fmt: skip
