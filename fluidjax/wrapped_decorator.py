"""fluid.wrapped_decorator: decorators that keep a function's signature."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any


def wrap_decorator(
    decorator_func: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[..., Any]:
    """A decorator like `decorator_func` whose results show name, docstring and signature of the
    function.
    """

    def wrap(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            return decorator_func(func)(*args, **kwargs)

        return call

    return wrap


def signature_safe_contextmanager(func: Callable[..., Any]) -> Callable[..., Any]:
    """contextlib.contextmanager, which keeps the signature by itself."""
    return contextlib.contextmanager(func)


__all__ = ["signature_safe_contextmanager", "wrap_decorator"]
