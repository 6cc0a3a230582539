"""fluid.average: weighted averages of fetched values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base.loc import warn
from .errors import FluidValueError
from .feeds.fetching import one_element


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, np.ndarray) and value.shape == (1,))


def double(value: Any) -> Any:
    """A float, or an array of floats, in double precision, because since NumPy 2 a Python float
    takes the precision of the other operand. What is computed from an array of one converts to a
    number.
    """
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
        value = value.astype("float64")
    return one_element(value) if isinstance(value, np.ndarray) else value


class WeightedAverage:
    """sum(value_i * weight_i) / sum(weight_i) of the added values. 1.8.5 warns and recommends
    fluid.metrics instead.
    """

    def __init__(self) -> None:
        warn("WeightedAverage is deprecated; fluid.metrics has Accuracy and others", Warning)
        self.reset()

    def reset(self) -> None:
        """Drop all added values."""
        self.numerator: Any = None
        self.denominator: Any = None

    def add(self, value: Any, weight: Any) -> None:
        """Add a number or an array with a weight. Raises FluidValueError for another value, or for
        a weight that is not a number.
        """
        if not (_is_number(value) or isinstance(value, np.ndarray)):
            raise FluidValueError(
                "WeightedAverage.add: value is a number or a NumPy array, not"
                f" {type(value).__name__}"
            )
        if not _is_number(weight):
            raise FluidValueError(
                f"WeightedAverage.add: weight is a number, not {type(weight).__name__}"
            )
        value, weight = double(value), double(weight)
        if self.numerator is None or self.denominator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator += value * weight
            self.denominator += weight

    def eval(self) -> Any:
        """The average. Raises FluidValueError before anything was added."""
        if self.numerator is None or self.denominator is None:
            raise FluidValueError("WeightedAverage.eval: nothing was added, so there is no average")
        return self.numerator / self.denominator


__all__ = ["WeightedAverage"]
