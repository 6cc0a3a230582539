"""Pools as layers."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .function import FunctionLayer


class AdaptiveAvgPool1D(FunctionLayer):
    """paddle.nn.functional.adaptive_avg_pool1d as a layer."""

    def __init__(self, output_size: Any, name: str | None = None) -> None:
        super().__init__(F.adaptive_avg_pool1d, output_size=output_size)


class AdaptiveAvgPool2D(FunctionLayer):
    """paddle.nn.functional.adaptive_avg_pool2d as a layer."""

    def __init__(
        self, output_size: Any, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(F.adaptive_avg_pool2d, output_size=output_size, data_format=data_format)


class AdaptiveAvgPool3D(FunctionLayer):
    """paddle.nn.functional.adaptive_avg_pool3d as a layer."""

    def __init__(
        self, output_size: Any, data_format: str = "NCDHW", name: str | None = None
    ) -> None:
        super().__init__(F.adaptive_avg_pool3d, output_size=output_size, data_format=data_format)


class AdaptiveMaxPool1D(FunctionLayer):
    """paddle.nn.functional.adaptive_max_pool1d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__(F.adaptive_max_pool1d, output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool2D(FunctionLayer):
    """paddle.nn.functional.adaptive_max_pool2d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__(F.adaptive_max_pool2d, output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool3D(FunctionLayer):
    """paddle.nn.functional.adaptive_max_pool3d as a layer."""

    def __init__(
        self, output_size: Any, return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__(F.adaptive_max_pool3d, output_size=output_size, return_mask=return_mask)


class AvgPool1D(FunctionLayer):
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
        super().__init__(
            F.avg_pool1d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            exclusive=exclusive,
            ceil_mode=ceil_mode,
        )


class AvgPool2D(FunctionLayer):
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
        super().__init__(
            F.avg_pool2d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )


class AvgPool3D(FunctionLayer):
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
        super().__init__(
            F.avg_pool3d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )


class MaxPool1D(FunctionLayer):
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
        super().__init__(
            F.max_pool1d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
        )


class MaxPool2D(FunctionLayer):
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
        super().__init__(
            F.max_pool2d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


class MaxPool3D(FunctionLayer):
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
        super().__init__(
            F.max_pool3d,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
]  # fmt: skip
