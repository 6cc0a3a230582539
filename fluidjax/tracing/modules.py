"""Modules of flax nnx and equinox: separates their arrays from the rest, and makes scopes from the
names of their parts.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..errors import FluidTypeError, TraceError

_CALL = "__call__"


@dataclass(frozen=True)
class Split:
    """A function and its arguments, with the modules among these taken apart.

    values: the arguments, with arrays in place of modules. function: takes them, then keywords. It
    returns first the new arrays of all modules of nnx, which calls may change, and then the
    function's own results. continued: an nnx argument -> the number of its new arrays. read:
    arguments that persist even if no result continues them, as modules of equinox. trained:
    argument -> for each leaf whether it is trained. classes: of all modules, and of their parts.
    """

    function: Callable[..., Any]
    values: tuple[Any, ...]
    continued: Mapping[int, int]
    read: frozenset[int]
    trained: Mapping[int, tuple[bool, ...]]
    classes: frozenset[type]


def owner_of(fn: Any) -> tuple[Any, str] | None:
    """The module that a callable is, or whose method it is, and the name of that method; None for
    any other callable. Raises TraceError for a linen module, which holds no arrays, and
    FluidTypeError for a module that cannot be called.
    """
    if _is("flax.linen", "Module", fn):
        raise TraceError(
            "a linen module holds no arrays: trace its apply with its variables,"
            f" trace({type(fn).__name__.lower()}.apply, variables, x, state=0)"
        )
    owner = getattr(fn, "__self__", None)
    if _is("flax.nnx", "Module", owner) or _is_equinox(owner):
        return owner, getattr(fn, "__func__", fn).__name__
    if _is("flax.nnx", "Module", fn) or (
        _is_equinox(fn) and any(map(_is_array, jax.tree.leaves(fn)))
    ):
        if not callable(fn):
            kind = type(fn).__name__
            raise FluidTypeError(f"{kind} has no __call__: trace one of its methods")
        return fn, _CALL
    return None


def split(fn: Callable[..., Any], args: Sequence[Any], names: Sequence[str]) -> Split | None:
    """A function with its arguments, the last of which are keywords of these names. None if no
    argument is or holds a module.
    """
    objects = [at for at, value in enumerate(args) if _is_of_nnx(value)]
    others = [at for at, value in enumerate(args) if any(map(_is_equinox, _modules(value)))]
    if not objects and not others:
        return None
    values, rest = list(args), dict[int, Any]()
    trained: dict[int, tuple[bool, ...]] = {}
    for at in others:
        values[at], rest[at] = _split_arrays(args[at])
        if _is_equinox(args[at]):
            trained[at] = (True,) * len(jax.tree.leaves(values[at]))
    whole: Any = None
    if objects:
        whole, arrays, params = _of_nnx([args[at] for at in objects])
        values = [arrays[objects.index(at)] if at in objects else v for at, v in enumerate(values)]
        trained |= {at: _marked(arrays[i], params[i]) for i, at in enumerate(objects)}
    count = len(args) - len(names)

    def function(*given: Any, **keywords: Any) -> Any:
        full = [*given, *(keywords[name] for name in names)]
        for at in others:
            full[at] = _joined_arrays(full[at], rest[at])
        merged = _merged(whole, [full[at] for at in objects])
        for at, value in zip(objects, merged, strict=True):
            full[at] = value
        out = arrays_of(fn(*full[:count], **dict(zip(names, full[count:], strict=True))), False)
        if not objects:
            return out
        new = _of_nnx(merged)[1]
        for at, arrays in zip(objects, new, strict=True):
            _check_same(values[at], arrays, type(args[at]).__name__)
        return (*new, out)

    function.__name__ = getattr(fn, "__name__", type(fn).__name__)
    found = [m for at in (*objects, *others) for m in _modules(args[at])]
    return Split(
        function,
        tuple(values),
        {at: i for i, at in enumerate(objects)},
        frozenset(at for at in others if _is_equinox(args[at])),
        trained,
        frozenset(_classes(found)),
    )


def arrays_of(value: Any, nnx: bool = True) -> Any:
    """A tree with the arrays of modules in place of the modules; with `nnx`, also for modules of
    nnx.
    """
    if nnx and _is_of_nnx(value):
        return _of_nnx([value])[1][0]
    return _split_arrays(value)[0] if any(map(_is_equinox, _modules(value))) else value


def _is(module: str, name: str, value: Any) -> bool:
    """Whether a value is of this class; the class's package is not imported for this."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)


def _is_equinox(value: Any) -> bool:
    return _is("equinox", "Module", value)


def _is_nnx(value: Any) -> bool:
    """Whether a value is a module, an optimizer, a metric or another object of flax nnx."""
    return _is("flax.nnx", "Pytree", value)


def _is_module(value: Any) -> bool:
    return _is_nnx(value) or _is_equinox(value)


def _modules(value: Any) -> list[Any]:
    """The outermost modules of a tree."""
    if "equinox" not in sys.modules and "flax.nnx" not in sys.modules:
        return []
    return [v for v in jax.tree.leaves(value, is_leaf=_is_module) if _is_module(v)]


def _is_of_nnx(value: Any) -> bool:
    """Whether a value is an object of nnx, or a tree of only such objects."""
    if "flax.nnx" not in sys.modules:
        return False
    leaves = jax.tree.leaves(value, is_leaf=_is_module)
    return bool(leaves) and all(map(_is_nnx, leaves))


def _of_nnx(objects: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
    """Some objects as their graph and state, the arrays of each, and the parameters among them. An
    array that several objects hold belongs to the first.
    """
    from flax import nnx

    whole = nnx.split(tuple(objects))
    every: Any = nnx.to_pure_dict(whole[1])
    params: Any = nnx.to_pure_dict(nnx.state(tuple(objects), nnx.Param))
    count = range(len(objects))
    return whole, [every.get(i, {}) for i in count], [params.get(i, {}) for i in count]


def _merged(whole: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Objects of nnx, made from a graph and a state with other arrays."""
    if whole is None:
        return ()
    from flax import nnx

    graph, state = whole[0], jax.tree.map(lambda v: v, whole[1])
    given: Any = {i: a for i, a in enumerate(arrays) if a}
    nnx.replace_by_pure_dict(state, given)
    found: tuple[Any, ...] = nnx.merge(graph, state)
    return found


def _marked(arrays: Any, params: Any) -> tuple[bool, ...]:
    """For each leaf whether it is one of the parameters."""
    paths = {path for path, _ in jax.tree_util.tree_leaves_with_path(params)}
    return tuple(path in paths for path, _ in jax.tree_util.tree_leaves_with_path(arrays))


def _check_same(old: Any, new: Any, kind: str) -> None:
    """Raises TraceError if a call gave a module other variables."""
    before, after = (
        {jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in found}
        for found in map(jax.tree_util.tree_leaves_with_path, (old, new))
    )
    if before != after:
        what = "adds" if after - before else "removes"
        raise TraceError(
            f"the function {what} {', '.join(sorted(before ^ after))} of the {kind}, and a program"
            " keeps the variables that it has: make them before, and return what nnx.pop takes out"
            " of what is sown"
        )


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def _split_arrays(value: Any) -> tuple[Any, Any]:
    """Two trees: one with the arrays and None in place of everything else in modules of equinox,
    and one with only the rest.
    """
    within = jax.tree.map(
        lambda v: jax.tree.map(_is_array, v) if _is_equinox(v) else True, value, is_leaf=_is_equinox
    )
    keep = jax.tree.map(lambda v, kept: v if kept else None, value, within)
    rest = jax.tree.map(lambda v, kept: None if kept else v, value, within)
    return keep, rest


def _joined_arrays(arrays: Any, rest: Any) -> Any:
    return jax.tree.map(
        lambda a, r: r if a is None else a, arrays, rest, is_leaf=lambda v: v is None
    )


def _classes(modules: Iterable[Any]) -> Iterator[type]:
    """The classes of modules and of all modules in them."""
    todo, seen = list(modules), set[int]()
    while todo:
        module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        if _is_module(module):
            yield type(module)
        todo += [value for _, value in _parts(module)]


def _parts(value: Any) -> list[tuple[str, Any]]:
    """The direct members of a module, a list or a dict, with their names there."""
    if isinstance(value, dict):
        found: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list | tuple):
        found = enumerate(value)
    else:
        found = vars(value).items() if _is_module(value) and hasattr(value, "__dict__") else ()
    kinds = (dict, list, tuple)
    return [(str(k), v) for k, v in found if _is_module(v) or isinstance(v, kinds)]


def _name_in(owner: Any, part: Any, depth: int = 4) -> str | None:
    """A module's name for one of its members: ``out``, ``layers.3``."""
    level: list[tuple[str, Any]] = [("", owner)]
    for _ in range(depth):
        level = [(f"{at}.{name}".strip("."), v) for at, each in level for name, v in _parts(each)]
        for name, value in level:
            if value is part:
                return name
    return None


@contextlib.contextmanager
def scopes(classes: Iterable[type]) -> Iterator[None]:
    """While a function is traced, each call of a module enters a scope with its name in its owner.

    nnx and equinox enter no scopes themselves, so the classes' ``__call__`` are wrapped during the
    trace.
    """
    stack: list[Any] = []
    kept: list[tuple[type, Any]] = []

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if any(self is caller for caller in stack[-1:]):  # super().__call__
                return call(self, *args, **kwargs)
            named = (n for owner in reversed(stack) if (n := _name_in(owner, self)))
            name = next(named, None) or type(self).__name__
            stack.append(self)
            try:
                with jax.named_scope(name):
                    return call(self, *args, **kwargs)
            finally:
                stack.pop()

        return run

    try:
        for cls in classes:
            if _CALL in vars(cls):
                kept.append((cls, vars(cls)[_CALL]))
                setattr(cls, _CALL, wrapped(kept[-1][1]))
        yield
    finally:
        for cls, call in kept:
            setattr(cls, _CALL, call)
