"""A stack of scopes for each thread, under the names that scripts import. No executor looks at it:
run with ``scope=get_cur_scope()`` to use the values of its top.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .errors import FluidValueError
from .state.scope import Scope, ScopeVar


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes = [Scope()]


_STACK = _Stack()


def get_cur_scope() -> Scope:
    """The scope at the top of this thread's stack."""
    return _STACK.scopes[-1]


def enter_local_scope() -> None:
    """Push a new child of the top scope."""
    _STACK.scopes.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Drop the top scope of the stack. Raises FluidValueError for the last one."""
    if len(_STACK.scopes) == 1:
        raise FluidValueError(
            "this thread is in no local scope; call enter_local_scope before leave_local_scope"
        )
    _STACK.scopes.pop()
    get_cur_scope().drop_kids()


def var(name: str) -> ScopeVar:
    """The variable of this name in the top scope, which creates it if it has none."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVar | None:
    """The variable of this name in the top scope or a parent of it, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Call `func` in a new scope, and drop the scope afterwards."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()


__all__ = [
    "enter_local_scope",
    "find_var",
    "get_cur_scope",
    "leave_local_scope",
    "scoped_function",
    "var",
]
