"""The identity of an optax transformation, equal in every process: a digest of its computation, and
its settings in words.

A transformation is two closures, so neither its address nor its name identifies it. Its computation
is both functions traced for the given parameters: their equations, with every constant. Equal
settings give equal digests in every process; a learning rate, a schedule, a mask or a table of
constants that differs gives another. The computation of a host callback is unknown, so a
transformation with one has no digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import CellType
from typing import Any

import jax
import numpy as np

LONGEST = 300  # characters of a description; the rest counts only in the digest
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_PLAIN = (type(None), bool, int, float, complex, str, np.generic, np.dtype)


class _Unseen(Exception):
    """A traced function calls back to the host."""


def digest(*parts: Any) -> str | None:
    """Twelve hexadecimal digits for the contents of `parts`: traced functions (of jax.make_jaxpr),
    trees, arrays, plain values.

    None if a traced function calls back to the host.
    """
    try:
        return _digest(parts)
    except _Unseen:
        return None


def _digest(parts: tuple[Any, ...]) -> str:
    return hashlib.sha256("\n".join(map(_text, parts)).encode()).hexdigest()[:12]


def _text(value: Any) -> str:
    """A value as text, equal in every process."""
    if hasattr(value, "eqns"):
        return _equations(value)
    if isinstance(value, np.ndarray | jax.Array):
        return _array(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_text(v)}' for k, v in sorted(value.items(), key=lambda item: str(item[0])))}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return _ADDRESS.sub("", str(value))


def _array(value: Any) -> str:
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    held = np.asarray(value)
    return f"{held.dtype}{list(held.shape)}:{hashlib.sha256(held.tobytes()).hexdigest()}"


def _equations(traced: Any) -> str:
    """A traced function as text, with variables by number, independent of how a jaxpr is printed."""
    numbers: dict[Any, int] = {}

    def name(v: Any) -> str:
        if hasattr(v, "val"):  # a constant in place
            return f"{_text(np.asarray(v.val))}:{v.aval}"
        return f"{numbers.setdefault(v, len(numbers))}:{v.aval}"

    def names(variables: Any) -> str:
        return " ".join(map(name, variables))

    inner = getattr(traced, "jaxpr", traced)
    if any("callback" in e.primitive.name for e in traced.eqns):
        raise _Unseen
    lines = [
        names(inner.constvars),
        *map(_text, getattr(traced, "consts", ())),
        names(inner.invars),
    ]
    lines += [
        f"{names(e.outvars)} = {e.primitive}{_text(e.params)} {names(e.invars)}"
        for e in traced.eqns
    ]
    return "\n".join([*lines, names(inner.outvars)])


def describe(transformation: Any) -> str:
    """A transformation's settings, from its closures: ``chain(scale_by_adam(b1=0.9, ...),
    scale(step_size=-0.001))``.
    """
    text = _words(getattr(transformation, "update", transformation), set())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _words(value: Any, seen: set[int]) -> str:
    if isinstance(value, _PLAIN):
        return str(value) if isinstance(value, np.generic) else repr(value)
    if isinstance(value, np.ndarray | jax.Array):
        return (
            repr(value.item())
            if value.size == 1 and value.dtype.kind in "biuf"
            else f"{value.dtype}{list(value.shape)}"
        )
    if callable(getattr(value, "update", None)) and not isinstance(value, Mapping):
        return _words(value.update, seen)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_words(v, seen)}' for k, v in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_words(v, seen) for v in value)}]"
    if callable(value) and id(value) not in seen:
        return _function(value, seen | {id(value)})
    return type(value).__name__


def _function(fn: Callable[..., Any], seen: set[int]) -> str:
    """The name of the function's factory, and the contents of its closure; wrappers around one
    function are unwrapped.
    """
    if isinstance(fn, partial):
        held = {**{str(i): v for i, v in enumerate(fn.args)}, **fn.keywords, "": fn.func}
        return f"partial({_held(held, seen)})"
    owner, fn = getattr(fn, "__self__", None), getattr(fn, "__func__", fn)
    code = getattr(fn, "__code__", None)
    name = (
        getattr(fn, "__qualname__", type(fn).__name__)
        .removesuffix(".<lambda>")
        .split(".<locals>")[0]
    )
    if code is None:
        return name
    cells = zip(code.co_freevars, getattr(fn, "__closure__", None) or (), strict=True)
    held = {n: cell.cell_contents for n, cell in cells if _filled(cell)} | getattr(
        owner, "__dict__", {}
    )
    if name == "with_extra_args_support" and len(held) == 1:
        return _words(next(iter(held.values())), seen)
    return f"{name}({_held(held, seen)})" if held else name


def _filled(cell: CellType) -> bool:
    """Whether a cell has a value; the cell of a recursive function is empty until it is defined."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _held(values: Mapping[str, Any], seen: set[int]) -> str:
    """The contents of a closure, numbers by name; functions by their own names."""

    def of_functions(value: Any) -> bool:
        return callable(value) or (isinstance(value, tuple | list) and all(map(callable, value)))

    return ", ".join(
        _words(v, seen).strip("[]") if of_functions(v) else f"{n}={_words(v, seen)}"
        for n, v in values.items()
    )
