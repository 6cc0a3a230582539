"""paddle.compat: texts and bytes, rounding and division under the names that Python 2 and 3 scripts
share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError

int_type = long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Bytes decoded, str unchanged; applied to the elements of lists, sets and dicts (keys too).
    inplace: modifies the given list, set or dict.

    Other objects are unchanged. Raises UnicodeDecodeError for bytes that cannot be decoded.
    """

    def text(one: Any) -> Any:
        return one.decode(encoding) if isinstance(one, bytes) else one

    if isinstance(obj, dict):
        new = {text(key): text(value) for key, value in obj.items()}
        if inplace:
            obj.update(new)
        return obj if inplace else new
    return _each(obj, text, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Str encoded, bytes unchanged; applied to the elements of lists and sets. inplace: modifies
    the given list or set.

    None is unchanged. Raises TypeError for anything else, UnicodeEncodeError for a text that cannot
    be encoded.
    """

    def encoded(one: Any) -> Any:
        if one is None or isinstance(one, bytes):
            return one
        if isinstance(one, str):
            return one.encode(encoding)
        raise TypeError(f"to_bytes takes texts and bytes, not {type(one).__name__}")

    return _each(obj, encoded, inplace)


def _each(obj: Any, change: Callable[[Any], Any], inplace: bool) -> Any:
    if isinstance(obj, list):
        new = [change(one) for one in obj]
        if inplace:
            obj[:] = new
        return obj if inplace else new
    if isinstance(obj, set):
        changed = {change(one) for one in obj}
        if inplace:
            obj.clear()
            obj.update(changed)
        return obj if inplace else changed
    return change(obj)


def round(x: float, d: int = 0) -> float:
    """x to d decimals, halves away from zero."""
    if x == 0:
        return math.copysign(0.0, x)
    scale = 10**d
    shifted = x * scale + math.copysign(0.5, x)
    return float(math.floor(shifted) if x > 0 else math.ceil(shifted)) / scale


def floor_division(x: float, y: float) -> float:
    """floor(x / y)."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """The message of an exception. Raises ArgumentError for None."""
    if exc is None:
        raise ArgumentError("get_exception_message takes an exception, not None")
    return str(exc)


__all__ = ["floor_division", "get_exception_message", "long_type", "round", "to_bytes", "to_text"]
