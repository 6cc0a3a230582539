"""Modules of flax nnx and equinox: their arrays apart from the rest, and the names of their parts
as scopes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax

from ..errors import TraceError

_CALL = "__call__"


@dataclass(frozen=True)
class Module:
    """A module taken apart.

    arrays: its state as a tree. function: takes these arrays, then what a call of the module takes;
    where a call may change them (`mutable`), it returns the new ones first. classes: those of the
    module and of the modules within. call: what the module does when it is called. named: what a
    module calls one within.
    """

    function: Callable[..., Any]
    arrays: Any
    mutable: bool
    classes: tuple[type, ...]
    call: Callable[..., Any]
    named: Callable[[Any, type], str | None]


def split(fn: Any) -> Module | None:
    """A module taken apart, None for what is none. Raises TraceError for a linen module, which
    holds no arrays.
    """
    if _is("flax.nnx", "Module", fn):
        return _nnx(fn)
    if _is("equinox", "Module", fn):
        return _equinox(fn)
    if _is("flax.linen", "Module", fn):
        raise TraceError(
            "a linen module holds no arrays: trace its apply with its variables,"
            f" trace({type(fn).__name__.lower()}.apply, variables, x, state=0)"
        )
    return None


def _is(module: str, name: str, value: Any) -> bool:
    """Whether a value is of this class, without importing what nobody has imported."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)


def _nnx(model: Any) -> Module:
    from flax import nnx

    graph, arrays = nnx.split(model)
    pure = nnx.to_pure_dict(arrays)

    def function(model: Any, *args: Any, **kwargs: Any) -> Any:
        state = jax.tree.map(lambda v: v, arrays)
        nnx.replace_by_pure_dict(state, model)
        merged = nnx.merge(graph, state)
        out = merged(*args, **kwargs)
        return nnx.to_pure_dict(nnx.state(merged)), out

    classes = tuple({type(part) for _, part in nnx.iter_modules(model)})
    return Module(function, pure, True, classes, model.__call__, _attribute)


def _equinox(model: Any) -> Module:
    import equinox as eqx  # type: ignore[import-not-found, unused-ignore]

    arrays, rest = eqx.partition(model, eqx.is_array)

    def function(model: Any, *args: Any, **kwargs: Any) -> Any:
        return eqx.combine(model, rest)(*args, **kwargs)

    classes: set[type] = set()
    seen = [model]
    while seen:
        part = seen.pop()
        classes.add(type(part))
        seen += _within(part, eqx.Module)
    return Module(
        function,
        arrays,
        False,
        tuple(classes),
        model.__call__,
        _attribute,
    )


def _within(module: Any, kind: type) -> list[Any]:
    """The modules that stand directly in one."""
    leaves = jax.tree.leaves(module, is_leaf=lambda v: v is not module and isinstance(v, kind))
    return [v for v in leaves if isinstance(v, kind)]


def _attribute(owner: Any, part: Any) -> str | None:
    """What a module calls a module within: the attribute, with the number or key where it is a list
    or a dict.
    """
    for name, value in _attributes(owner):
        if value is part:
            return name
        items = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list | tuple)
            else ()
        )
        for key, item in items:
            if item is part:
                return f"{name}.{key}"
    return None


def _attributes(owner: Any) -> list[tuple[str, Any]]:
    return list(vars(owner).items()) if hasattr(owner, "__dict__") else []


@contextlib.contextmanager
def scopes(module: Module | None) -> Iterator[None]:
    """While the function is traced, each call of a module within enters a scope with the name that
    its owner gives it.

    nnx and equinox enter none of their own. The classes' ``__call__`` are wrapped for as long.
    """
    if module is None:
        yield
        return
    stack: list[Any] = []
    kept: list[tuple[type, Any]] = []

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            name = (
                next((n for owner in reversed(stack) if (n := module.named(owner, self))), None)
                if stack
                else type(self).__name__
            )
            stack.append(self)
            try:
                with jax.named_scope(name or type(self).__name__):
                    return call(self, *args, **kwargs)
            finally:
                stack.pop()

        return run

    try:
        for cls in module.classes:
            if _CALL in vars(cls):
                kept.append((cls, vars(cls)[_CALL]))
                setattr(cls, _CALL, wrapped(kept[-1][1]))
        yield
    finally:
        for cls, call in kept:
            setattr(cls, _CALL, call)
