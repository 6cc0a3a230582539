"""The user's line: the innermost stack frame outside this package."""

from __future__ import annotations

import os
import sys
from functools import cache

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@cache
def _shown(filename: str) -> str | None:
    """How a file is named in messages; None for fluidjax's own."""
    path = os.path.abspath(filename)
    if path.startswith(_PACKAGE):
        return None
    inside = os.path.relpath(path)
    return path if inside.startswith("..") else inside


def user_line() -> str | None:
    """``"train.py:31"``: where the user's code called into fluidjax (about a microsecond)."""
    frame = sys._getframe(1)
    while frame is not None:
        shown = _shown(frame.f_code.co_filename)
        if shown is not None:
            return f"{shown}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
