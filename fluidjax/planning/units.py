"""Speeds and times from numbers or text: "50GB/s", "400Gb/s", "2us"."""

from __future__ import annotations

import math
import re
from typing import Any

from ..errors import FluidTypeError, FluidValueError

_BITS = {f"{u}{b}": 1000**i / 8 for i, u in enumerate(("", "K", "M", "G", "T")) for b in ("b", "bit")}
SPEEDS = {**{f"{u}B": 1000.0**i for i, u in enumerate(("", "K", "M", "G", "T"))}, **_BITS}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def speed(what: str, value: Any) -> float:
    """Bytes a second from a number, or from text: "50GB/s" is 50e9, "400Gb/s" (bits) as well.

    Raises FluidValueError for what is missing, zero, negative, not finite or in an unknown unit, FluidTypeError for other types.
    """
    found = _number(what, value, SPEEDS, r"\s*/\s*s", 'bytes a second, or text such as "50GB/s" (bytes) and "400Gb/s" (bits)')
    if found <= 0:
        raise FluidValueError(f"{what} is a positive number of bytes a second, not {value!r}")
    return found


def seconds(what: str, value: Any, least: float = 0.0) -> float:
    """Seconds from a number, or from text: "2us" is 2e-6. Errors as of `speed`; `least` itself is allowed if it is 0."""
    found = _number(what, value, TIMES, "", 'seconds, or text such as "2us"')
    if found < least or (least > 0 and found == 0):
        raise FluidValueError(f"{what} is a number of seconds that is not negative, not {value!r}")
    return found


def _number(what: str, value: Any, units: dict[str, float], tail: str, wanted: str) -> float:
    if value is None:
        raise FluidValueError(f"{what} is missing; give {wanted}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FluidTypeError(f"{what} is {wanted}, not {value!r}")
    if isinstance(value, str):
        parts = re.fullmatch(rf"\s*(-?\d+(?:\.\d*)?)\s*([A-Za-z]+){tail}\s*", value)
        if parts is None or parts[2] not in units:
            raise FluidValueError(f"{what} {value!r} is not a number with one of the units {', '.join(units)}{'/s' if tail else ''}")
        value = float(parts[1]) * units[parts[2]]
    if not math.isfinite(value):
        raise FluidValueError(f"{what} is a finite number, not {value!r}")
    return float(value)
