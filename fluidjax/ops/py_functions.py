"""Python functions that a program calls: py_func's ops name them by numbers, and no file stores
them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import EnforceNotMet

_functions: list[Callable[..., Any]] = []
_raised: list[BaseException] = []
_calling = threading.local()


def is_calling() -> bool:
    """Whether this thread is inside a function that a step has called."""
    return getattr(_calling, "on", False)


def add(function: Callable[..., Any]) -> int:
    """The number by which ops of this process name a function."""
    _functions.append(function)
    return len(_functions) - 1


def function(number: int, place: str) -> Callable[..., Any]:
    """The function of a number. Raises EnforceNotMet in a process that has not made it."""
    if not 0 <= number < len(_functions):
        raise EnforceNotMet(
            f"op 'py_func'{place} calls a Python function that this process has not made, since"
            " files of programs hold none; build the program by layers.py_func here"
        )
    return _functions[number]


def count() -> int:
    """How many functions there are."""
    return len(_functions)


def raised() -> BaseException | None:
    """The error that a function has raised since the last call of this."""
    found = _raised[-1] if _raised else None
    _raised.clear()
    return found


def raised_by_one(error: Any) -> bool:
    """Whether one of the functions raised this error, which its step raises again."""
    return any(error is one for one in _raised)


def called(
    number: int,
    place: str,
    given: Sequence[Any],
    outs: Sequence[tuple[str, tuple[int, ...], np.dtype]],
) -> list[np.ndarray]:
    """The results of function `number` for these arguments, as arrays of the declared shapes and
    dtypes; an output without a name is dropped.

    given: arrays, values with a LoD, or None for absent ones. outs: name, shape (-1: any size) and
    dtype of each; the name of an unused one is empty. Any error is also stored for :func:`raised`:
    EnforceNotMet for results of another number, shape or dtype, else the function's own.
    """
    try:
        fn = function(number, place)
        _calling.on = True
        try:
            result = fn(*given) if inspect.signature(fn).parameters else fn()
        finally:
            _calling.on = False
        results = list(result) if isinstance(result, list | tuple) else [result]
        if outs and len(results) != len(outs):
            raise EnforceNotMet(
                f"the function of op 'py_func'{place} returns {len(results)} values, but the op has"
                f" {len(outs)} outputs"
            )
        return [_declared(v, out, place) for v, out in zip(results, outs, strict=False) if out[0]]
    except BaseException as exc:
        _raised.append(exc)
        raise


def _declared(value: Any, out: tuple[str, tuple[int, ...], np.dtype], place: str) -> np.ndarray:
    name, shape, dtype = out
    if value is None and "@GRAD" in name:
        return np.zeros(shape, dtype)
    array = np.asarray(value)
    fits = array.ndim == len(shape) and all(
        n in (-1, m) for n, m in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        raise EnforceNotMet(
            f"the function of op 'py_func'{place} returns {array.dtype} of shape"
            f" {list(array.shape)} for {name!r}, which is declared as {dtype} of shape"
            f" {list(shape)}"
        )
    return array
