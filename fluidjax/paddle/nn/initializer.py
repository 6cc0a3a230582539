"""paddle.nn.initializer: Fluid's initializers under the names of Paddle 2.0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import initializer as fluid
from ...errors import FluidTypeError, FluidValueError

Initializer = fluid.Initializer
_PLAIN = (
    "sigmoid",
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv1d_transpose",
    "conv2d_transpose",
    "conv3d_transpose",
)
_GAINS = {**dict.fromkeys(_PLAIN, 1.0), "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def Constant(value: float = 0.0) -> Initializer:
    """Every element is `value`."""
    return fluid.Constant(value)


def Uniform(low: float = -1.0, high: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers between `low` and `high`."""
    return fluid.Uniform(low, high)


def Normal(mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers of the normal distribution."""
    return fluid.Normal(mean, std)


def TruncatedNormal(mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers of the normal distribution, truncated at two `std` from the mean."""
    return fluid.TruncatedNormal(mean, std)


def XavierUniform(
    fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
) -> Initializer:
    """Uniform random numbers up to sqrt(6 / (fan_in + fan_out)) in absolute value."""
    return fluid.Xavier(True, fan_in, fan_out)


def XavierNormal(
    fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
) -> Initializer:
    """Normal random numbers with deviation sqrt(2 / (fan_in + fan_out))."""
    return fluid.Xavier(False, fan_in, fan_out)


class _Kaiming(fluid.MSRAInitializer):
    """MSRA's with the gain of another function than relu."""

    def __init__(
        self, uniform: bool, fan_in: float | None, negative_slope: float, nonlinearity: str
    ) -> None:
        super().__init__(uniform, fan_in)
        self._gain = calculate_gain(nonlinearity, negative_slope)

    def total(self, fan_in: float, fan_out: float) -> float:
        return super().total(fan_in, fan_out) * 2 / self._gain**2


def KaimingUniform(
    fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
) -> Initializer:
    """Uniform random numbers up to gain * sqrt(3 / fan_in) in absolute value, with calculate_gain
    of the nonlinearity.
    """
    return _Kaiming(True, fan_in, negative_slope, nonlinearity)


def KaimingNormal(
    fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
) -> Initializer:
    """Normal random numbers with deviation gain / sqrt(fan_in), with calculate_gain of the
    nonlinearity.
    """
    return _Kaiming(False, fan_in, negative_slope, nonlinearity)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor of weights before this function: 1, 5/3 for tanh, sqrt(2) for relu, 3/4 for selu.

    leaky_relu: sqrt(2 / (1 + param^2)), param default 0.01. Raises FluidValueError for another
    function.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise FluidValueError(
            f"calculate_gain knows {', '.join(sorted([*_GAINS, 'leaky_relu']))}, not"
            f" {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def Assign(value: Any, name: str | None = None) -> Initializer:
    """The numbers of an array or a list. Raises FluidTypeError for anything else."""
    if not isinstance(value, np.ndarray | list | tuple):
        raise FluidTypeError(
            f"Assign takes an array or a list of numbers, not {type(value).__name__}"
        )
    return fluid.NumpyArrayInitializer(np.asarray(value))


__all__ = [
    "Assign", "Constant", "Initializer", "KaimingNormal", "KaimingUniform", "Normal", "TruncatedNormal", "Uniform", "XavierNormal",
    "XavierUniform", "calculate_gain",
]  # fmt: skip
