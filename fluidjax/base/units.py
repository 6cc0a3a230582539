"""Parses bytes, speeds and times, given as numbers or as text: "2GB", "50GB/s", "400Gb/s",
"2us".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

from ..errors import FluidTypeError, FluidValueError

_THOUSANDS = {u: 1000.0**i for i, u in enumerate(("", "K", "M", "G", "T"))}
BYTES = {f"{u}B": n for u, n in _THOUSANDS.items()}
SIZES = {**BYTES, **{f"{u}iB": 1024.0**i for i, u in enumerate("KMGT", 1)}}
SPEEDS = {**BYTES, **{f"{u}{b}": n / 8 for b in ("b", "bit") for u, n in _THOUSANDS.items()}}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def bytes_of(budget: Any) -> int:
    """A number of bytes from a number or from text: "2GB" is 2 * 1000^3, "1.5 GiB" 1.5 * 1024^3;
    case does not matter.

    Raises FluidValueError for a number that is negative, zero or not finite and for an unknown
    unit, FluidTypeError for other types.
    """
    units = {"": 1.0, **{u.upper(): n for u, n in SIZES.items()}}
    found = _number(
        "budget", budget, units, 'a number of bytes or text such as "2GB"', shown=SIZES, fold=True
    )
    if found < 1:
        raise FluidValueError(f"budget is a positive number of bytes, not {budget!r}")
    return int(found)


def speed(what: str, value: Any) -> float:
    """Bytes a second from a number, or from text: "50GB/s" is 50e9, "400Gb/s" (bits) as well.

    Raises FluidValueError for a number that is missing, zero, negative or not finite and for an
    unknown unit, FluidTypeError for other types.
    """
    found = _number(
        what,
        value,
        SPEEDS,
        'bytes a second, or text such as "50GB/s" (bytes) and "400Gb/s" (bits)',
        tail="/s",
    )
    if found <= 0:
        raise FluidValueError(f"{what} is a positive number of bytes a second, not {value!r}")
    return found


def seconds(what: str, value: Any) -> float:
    """Seconds from a number, or from text: "2us" is 2e-6. Zero is allowed; other errors are those
    of `speed`.
    """
    found = _number(what, value, TIMES, 'seconds, or text such as "2us"')
    if found < 0:
        raise FluidValueError(f"{what} is a number of seconds that is not negative, not {value!r}")
    return found


def _number(
    what: str, value: Any, units: Mapping[str, float], wanted: str, tail: str = "", shown: Mapping[str, float] | None = None,
    fold: bool = False,
) -> float:  # fmt: skip
    """A number, parsed if it is text with a unit. fold: ignore the case of the unit."""
    if value is None:
        raise FluidValueError(f"{what} is missing; give {wanted}")
    if isinstance(value, bool) or not isinstance(value, Real | str):  # NumPy's numbers are Real too
        raise FluidTypeError(f"{what} is {wanted}, not {value!r}")
    try:
        number = (
            _read(what, value, units, tail, shown or units, fold)
            if isinstance(value, str)
            else float(value)
        )
    except OverflowError:  # an int larger than any float
        number = math.inf
    if not math.isfinite(number):
        raise FluidValueError(f"{what} is a finite number, not {value!r}")
    return number


def _read(
    what: str,
    text: str,
    units: Mapping[str, float],
    tail: str,
    shown: Mapping[str, float],
    fold: bool,
) -> float:
    slash = rf"\s*{tail[0]}\s*{tail[1:]}" if tail else ""
    parts = re.fullmatch(rf"\s*(-?\d+(?:\.\d*)?)\s*([A-Za-z]*){slash}\s*", text)
    unit: str = "" if parts is None else parts[2].upper() if fold else parts[2]
    if parts is None or unit not in units:
        raise FluidValueError(
            f"{what} {text!r} is not a number with one of the units {', '.join(shown)}{tail}"
        )
    return float(parts[1]) * units[unit]
