"""The check that optimizers make on their own hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError


def numbers(owner: Any, **given: Any) -> None:
    """Raise FluidValueError for a hyperparameter that is None, FluidTypeError for one that is not a
    number.
    """
    who = type(owner).__name__
    for name, value in given.items():
        if value is None:
            raise ArgumentError(f"{name} is not set: {who} needs a number")
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ArgumentError(f"{who}'s {name} is a number, not {value!r}")
