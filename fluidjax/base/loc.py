"""The user's line: the innermost stack frame outside this package."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from ..errors import ArgumentError, FluidError

Function = TypeVar("Function", bound=Callable[..., Any])

_IN = re.compile(r"In\[(\d+)\]")
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep


@cache
def _shown(filename: str) -> str | None:
    """The name of a file in messages; None for fluidjax's own files."""
    path = os.path.abspath(filename)
    if path.startswith(_PACKAGE):
        return None
    inside = os.path.relpath(path)
    return path if inside.startswith("..") else inside


def line_of(filename: str, number: int) -> str | None:
    """``"train.py:31"``, or ``"cell 3, line 18"`` of a notebook; None for fluidjax's own files."""
    shown = _shown(filename)
    if shown is None:
        return None
    cell = _cell_number(filename)
    return f"{shown}:{number}" if cell is None else f"cell {cell}, line {number}"


def _cell_number(filename: str) -> int | None:
    """The N of the ``In[N]`` that an IPython file belongs to. It is not cached, because a cell that
    runs again keeps its file and gets a new number.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # IPython 8
    cell = named(filename) if named else None
    found = _IN.fullmatch(cell[1]) if cell else None
    return int(found[1]) if found else None


def user_line() -> str | None:
    """The line of the user's code that called into fluidjax, as `line_of` formats it (takes about a
    microsecond).
    """
    frame = sys._getframe(1)
    while frame is not None:
        line = line_of(frame.f_code.co_filename, frame.f_lineno)
        if line is not None:
            return line
        frame = frame.f_back  # type: ignore[assignment]
    return None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code. A notebook cell is shown as ``cell 3``, not as the
    temporary file that IPython compiles.
    """
    frame = sys._getframe(1)
    while _between(frame) and frame.f_back is not None:
        frame = frame.f_back
    filename, names = frame.f_code.co_filename, frame.f_globals
    cell = _cell_number(filename)
    warnings.warn_explicit(
        message,
        category,
        filename if cell is None else f"cell {cell}",
        frame.f_lineno,
        names.get("__name__"),
        names.setdefault("__warningregistry__", {}),
    )


def _between(frame: FrameType) -> bool:
    """Whether code belongs to this package or runs on its behalf: the ``__init__`` of a dataclass,
    a context manager, a function that jax traces.
    """
    room = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return (
        room in ("contextlib", "jax", "jaxlib")
        or _shown(frame.f_code.co_filename) is None
        or (frame.f_code.co_filename == "<string>" and room == __name__.partition(".")[0])
    )


def name_line(exc: FluidError, loc: str | None) -> None:
    """Add the user's line to an error's sentence, unless the sentence has it."""
    if loc and exc.args and isinstance(exc.args[0], str) and loc not in exc.args[0]:
        exc.args = (f"{exc.args[0]} (at {loc})", *exc.args[1:])


def _ours(exc: BaseException) -> bool:
    """Whether an exception was raised in this package, not in a user's function that a layer
    calls.
    """
    last = exc.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and _shown(last.tb_frame.f_code.co_filename) is None


def located(fn: Function) -> Function:
    """Make the errors of a function that users call name the user's line."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except FluidError as exc:
            name_line(exc, user_line())
            raise
        except (TypeError, ValueError) as exc:
            # Python's own error for an argument that nothing checked before
            if not _ours(exc):
                raise
            error = ArgumentError(
                f"{fn.__qualname__.removesuffix('.__init__')} does not take these arguments: {exc}"
            )
            name_line(error, user_line())
            raise error from exc

    return call  # type: ignore[return-value]
