"""The one function of distutils.util that scripts use."""

from __future__ import annotations

_TRUE, _FALSE = ("y", "yes", "t", "true", "on", "1"), ("n", "no", "f", "false", "off", "0")


def strtobool(val: str) -> int:
    """1 for y, yes, t, true, on and 1; 0 for n, no, f, false, off and 0. Raises ValueError for
    other words.
    """
    word = val.lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError(f"invalid truth value {word!r}")
    return int(word in _TRUE)


__all__ = ["strtobool"]
