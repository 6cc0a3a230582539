"""FetchHandler: inspects values while a program runs over a dataset."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...errors import FluidTypeError


class FetchHandler:
    """Gets the newest values of some variables at intervals of seconds; override ``handler``.

    var_dict: your name for each variable; train_from_dataset raises FluidTypeError for anything but
    a dict.
    """

    def __init__(self, var_dict: Any = None, period_secs: float = 60) -> None:
        if var_dict is None:
            raise FluidTypeError("a FetchHandler takes a dict of variables, not None")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """res_dict: an array for each name, or None before the first step. Prints the first number
        of each.
        """
        for key, value in res_dict.items():
            if type(value) is np.ndarray:
                sys.stdout.write(f"{key}[0]: {value[0]} ")
        sys.stdout.write("\n")

    @staticmethod
    def help() -> None:
        """Print an example of a handler."""
        print(
            "class Mine(fluid.executor.FetchHandler):\n    def handler(self, res_dict):\n       "
            ' print(res_dict["cost"])\n\nexe.train_from_dataset(main, dataset,'
            ' fetch_handler=Mine({"cost": cost}, period_secs=10))'
        )


__all__ = ["FetchHandler"]
