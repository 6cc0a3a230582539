"""Sizes that a program leaves open, as texts: ``b``, ``2*b + 1``, ``floordiv(h, 2)``, and of a feed
``t>=4``, a size that is at least 4.

A variable whose shape has -1 may give that size a name in `VarDesc.dims`; attributes that hold
sizes use the same names. Feeds give the names their values (:func:`bound`), and :func:`value`
computes other sizes from these. The syntax is that of jax.export's symbolic dimensions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..errors import FluidValueError

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a**b,
}
Functions = Mapping[str, Callable[[Any, Any], Any]]


def symbols(text: str) -> frozenset[str]:
    """The names in a size. Raises FluidValueError for text that is not a size."""
    return _parsed(bare(text))[1]


def bounded(text: str) -> tuple[str, int]:
    """A size without its bound, and the bound, 0 if there is none. Raises FluidValueError for a
    bound that is not a number.
    """
    size, sign, low = (part.strip() for part in text.partition(">="))
    if sign and not low.isdecimal():
        raise FluidValueError(f"{text!r} is not a size: after >= stands a number, not {low!r}")
    return size, int(low or 0)


def bare(text: str) -> str:
    """A size without its bound."""
    return bounded(text)[0]


def value(text: str, known: Mapping[str, Any], functions: Functions = _FUNCTIONS) -> Any:
    """The value of a size, given the values of the names, whatever its bound. Raises
    FluidValueError for a name without a value.

    functions: replacements for ``floordiv``, ``mod``, ``max`` and ``min``, for values that are not
    ints.
    """
    tree, names = _parsed(bare(text))
    for name in sorted(names - known.keys()):
        raise FluidValueError(f"the size {text!r} needs {name!r}, which no feed gives")
    return _computed(tree, known, functions)


def bound(
    sizes: Iterable[tuple[str, str, Any]], functions: Functions = _FUNCTIONS
) -> dict[str, Any]:
    """The values of all names, from triples of (owner, text of a size, actual size).

    Raises FluidValueError if two of them contradict each other, and for a size below its bound.
    """
    known: dict[str, Any] = {}
    left = sorted(sizes, key=lambda each: (len(each[1]), each[1]))
    for _, text, size in left:
        unknown = symbols(text) - known.keys()
        if len(unknown) == 1:
            (name,) = unknown
            found = _solved(text, name, size, known, functions)
            if found is not None:
                known[name] = found
    for whose, text, size in left:
        if (low := bounded(text)[1]) and size < low:
            raise FluidValueError(f"{whose} has the size {size}, and the program needs {text}")
        if symbols(text) <= known.keys() and (expected := value(text, known, functions)) != size:
            names = ", ".join(f"{n} = {known[n]}" for n in sorted(symbols(text)))
            raise FluidValueError(
                f"{whose} has the size {size} where the program says {text}, which is {expected}:"
                f" {names}"
            )
    return known


def _solved(text: str, name: str, size: Any, known: Mapping[str, Any], functions: Functions) -> Any:
    """The value of the one unknown name in a size that is linear in it; None if the size is not
    linear.
    """
    if bare(text) == name:
        return size
    found = line(text, name, known, functions)
    return None if found is None else (size - found[0]) // found[1]


def line(
    text: str, name: str, known: Mapping[str, Any] = {}, functions: Functions = _FUNCTIONS
) -> tuple[Any, Any] | None:
    """(a, b) if a size is a + b times this name, given the other names' values; None if it is not
    linear in it.
    """
    first, second, third = (value(text, {**known, name: n}, functions) for n in (0, 1, 2))
    step = second - first
    return None if step == 0 or third - second != step else (first, step)


def apart(size: str | int, other: str | int) -> int | None:
    """The number by which a size is greater than another, None if it depends on their names."""
    text = f"({size}) - ({other})"
    names = sorted(symbols(text))
    values = [[11 + 2 * i, 40 + 3 * i, 97 + 5 * i] for i in range(len(names))]
    found = {
        int(value(text, dict(zip(names, each, strict=True))))
        for each in (zip(*values, strict=True) if names else [()])
    }
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[ast.expr, frozenset[str]]:
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise FluidValueError(f"{text!r} is not a size") from None
    found = set()
    stack: list[ast.expr] = [tree]
    while stack:
        node = stack.pop()
        match node:
            case ast.Name():
                found.add(node.id)
            case ast.Constant(value=int()):
                pass
            case ast.UnaryOp(op=ast.USub()):
                stack.append(node.operand)
            case ast.BinOp() if type(node.op) in _OPERATORS:
                stack += [node.left, node.right]
            case ast.Call(func=ast.Name(id=word), args=[_, _], keywords=[]) if word in _FUNCTIONS:
                stack += node.args
            case _:
                raise FluidValueError(
                    f"{text!r} is not a size: {ast.unparse(node)} is not understood"
                )
    return tree, frozenset(found)


def _computed(node: ast.expr, known: Mapping[str, Any], functions: Functions) -> Any:
    match node:
        case ast.Name():
            return known[node.id]
        case ast.Constant():
            return node.value
        case ast.UnaryOp():
            return -_computed(node.operand, known, functions)
        case ast.BinOp():
            sides = (_computed(side, known, functions) for side in (node.left, node.right))
            return _OPERATORS[type(node.op)](*sides)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return functions[node.func.id](*(_computed(arg, known, functions) for arg in node.args))


def texts(shape: Sequence[int], dims: Sequence[str]) -> list[str]:
    """Each size in its printed form: a number, a name, or any other expression in quotes."""
    if not dims:
        return list(map(str, shape))
    return [
        str(n) if not text else text if text.isidentifier() else f'"{text}"'
        for n, text in zip(shape, dims, strict=True)
    ]
