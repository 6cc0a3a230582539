"""A number of bytes, told as one or as text."""

from __future__ import annotations

import re
from typing import Any

from ..errors import FluidTypeError, FluidValueError

UNITS = {"": 1, "B": 1, **{f"{u}B": 1000**i for i, u in enumerate("KMGT", 1)}, **{f"{u}IB": 1024**i for i, u in enumerate("KMGT", 1)}}


def bytes_of(budget: Any) -> int:
    """A number of bytes from a number or from text: "2GB" is 2 * 1000^3, "1.5 GiB" 1.5 * 1024^3.

    Raises FluidValueError for what is negative, zero, not finite or of an unknown unit, FluidTypeError for other types.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | float | str):
        raise FluidTypeError(f'budget is a number of bytes or text such as "2GB", not {budget!r}')
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", str(budget))
    if isinstance(budget, str) and (found is None or found[2].upper() not in UNITS):
        raise FluidValueError(f"budget {budget!r} is not a number with one of the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB")
    number = float(budget) if found is None or not isinstance(budget, str) else float(found[1]) * UNITS[found[2].upper()]
    if not 1 <= number < float("inf"):
        raise FluidValueError(f"budget is a positive number of bytes, not {budget!r}")
    return int(number)
