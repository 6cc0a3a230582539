"""Pools as layers."""

from __future__ import annotations

from .. import functional as F
from .function import FunctionLayer


class AdaptiveAvgPool1D(FunctionLayer, function=F.adaptive_avg_pool1d):
    """paddle.nn.functional.adaptive_avg_pool1d as a layer."""


class AdaptiveAvgPool2D(FunctionLayer, function=F.adaptive_avg_pool2d):
    """paddle.nn.functional.adaptive_avg_pool2d as a layer."""


class AdaptiveAvgPool3D(FunctionLayer, function=F.adaptive_avg_pool3d):
    """paddle.nn.functional.adaptive_avg_pool3d as a layer."""


class AdaptiveMaxPool1D(FunctionLayer, function=F.adaptive_max_pool1d):
    """paddle.nn.functional.adaptive_max_pool1d as a layer."""


class AdaptiveMaxPool2D(FunctionLayer, function=F.adaptive_max_pool2d):
    """paddle.nn.functional.adaptive_max_pool2d as a layer."""


class AdaptiveMaxPool3D(FunctionLayer, function=F.adaptive_max_pool3d):
    """paddle.nn.functional.adaptive_max_pool3d as a layer."""


class AvgPool1D(FunctionLayer, function=F.avg_pool1d):
    """paddle.nn.functional.avg_pool1d as a layer."""


class AvgPool2D(FunctionLayer, function=F.avg_pool2d):
    """paddle.nn.functional.avg_pool2d as a layer."""


class AvgPool3D(FunctionLayer, function=F.avg_pool3d):
    """paddle.nn.functional.avg_pool3d as a layer."""


class MaxPool1D(FunctionLayer, function=F.max_pool1d):
    """paddle.nn.functional.max_pool1d as a layer."""


class MaxPool2D(FunctionLayer, function=F.max_pool2d):
    """paddle.nn.functional.max_pool2d as a layer."""


class MaxPool3D(FunctionLayer, function=F.max_pool3d):
    """paddle.nn.functional.max_pool3d as a layer."""


__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
]  # fmt: skip
