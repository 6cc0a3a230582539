"""Convolutions as layers."""

from __future__ import annotations

import math
from typing import Any

from ....graph.variable import Variable
from ....initializer import Normal
from ....layers._build import one_of, require, size_list
from .. import functional as F
from .base import Layer


class _Conv(Layer):
    """The base of convolutions: a trained filter and bias, and the window's parameters."""

    def __init__(
        self, n: int, transposed: bool, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        groups: int, padding_mode: str, output_padding: Any, weight_attr: Any, bias_attr: Any, data_format: str,
    ) -> None:  # fmt: skip
        super().__init__()
        layer = type(self).__name__
        require(weight_attr is not False, f"{layer} needs its filter; weight_attr is not False")
        one_of(padding_mode, "padding_mode", layer, ("zeros", "reflect", "replicate", "circular"))
        fits = groups > 0 and in_channels % groups == 0 and out_channels % groups == 0
        require(
            fits,
            f"{layer}'s {in_channels} and {out_channels} channels do not divide into {groups}"
            " groups",
        )
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.padding_mode, self.output_padding, self.data_format = (
            padding_mode,
            output_padding,
            data_format,
        )
        window = size_list(kernel_size, n, "kernel_size", layer)
        if transposed:
            shape, begin = [in_channels, out_channels // groups, *window], None
        else:
            shape = [out_channels, in_channels // groups, *window]
            begin = Normal(0.0, math.sqrt(2.0 / (math.prod(window) * in_channels)))
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=begin)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def padded(self, x: Variable) -> tuple[Variable, Any]:
        """x padded by its padding_mode, and the remaining padding for the convolution."""
        if self.padding_mode == "zeros":
            return x, self.padding
        n = x.ndim - 2
        sides = size_list(self.padding, n, "padding", type(self).__name__)
        return (
            F.pad(
                x,
                [s for side in reversed(sides) for s in (side, side)],
                self.padding_mode,
                data_format=self.data_format,
            ),
            0,
        )

    def extra_repr(self) -> str:
        return f"weight={list(self.weight.shape)}, stride={self.stride}, padding={self.padding}"


class Conv1D(_Conv):
    """paddle.nn.functional.conv1d with a trained filter, normal with variance 2 / (window *
    in_channels), and bias (False: none).

    padding_mode: "zeros", "reflect", "replicate" or "circular".
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCL",
    ) -> None:  # fmt: skip
        super().__init__(1, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable) -> Variable:
        x, padding = self.padded(x)
        return F.conv1d(
            x,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
            self.data_format,
        )


class Conv2D(_Conv):
    """paddle.nn.functional.conv2d with a trained filter, normal with variance 2 / (window *
    in_channels), and bias (False: none).

    padding_mode: "zeros", "reflect", "replicate" or "circular".
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(2, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable) -> Variable:
        x, padding = self.padded(x)
        return F.conv2d(
            x,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
            self.data_format,
        )


class Conv3D(_Conv):
    """paddle.nn.functional.conv3d with a trained filter, normal with variance 2 / (window *
    in_channels), and bias (False: none).

    padding_mode: "zeros", "reflect", "replicate" or "circular".
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        super().__init__(3, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable) -> Variable:
        x, padding = self.padded(x)
        return F.conv3d(
            x,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
            self.data_format,
        )


class Conv1DTranspose(_Conv):
    """paddle.nn.functional.conv1d_transpose with a trained filter and bias (False: none)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCL",
    ) -> None:  # fmt: skip
        super().__init__(1, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros", output_padding,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable, output_size: Any = None) -> Variable:
        more = self.output_padding if output_size is None else 0
        return F.conv1d_transpose(x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation, output_size,
                                  self.data_format)  # fmt: skip


class Conv2DTranspose(_Conv):
    """paddle.nn.functional.conv2d_transpose with a trained filter and bias (False: none)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        dilation: Any = 1, groups: int = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(2, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros", output_padding,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable, output_size: Any = None) -> Variable:
        more = self.output_padding if output_size is None else 0
        return F.conv2d_transpose(x, self.weight, self.bias, self.stride, self.padding, more, self.dilation, self.groups, output_size,
                                  self.data_format)  # fmt: skip


class Conv3DTranspose(_Conv):
    """paddle.nn.functional.conv3d_transpose with a trained filter and bias (False: none)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        dilation: Any = 1, groups: int = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        super().__init__(3, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros", output_padding,
                         weight_attr, bias_attr, data_format)  # fmt: skip

    def forward(self, x: Variable, output_size: Any = None) -> Variable:
        more = self.output_padding if output_size is None else 0
        return F.conv3d_transpose(x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation, output_size,
                                  self.data_format)  # fmt: skip


__all__ = [
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose",
]  # fmt: skip
