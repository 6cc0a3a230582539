"""Signatures as one writes them, broken into lines where they are long."""

from __future__ import annotations

import enum
import inspect
from typing import Any

WIDTH = 88


def parameters(thing: Any) -> list[str]:
    """The names of what it takes; none for what has no signature."""
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def code(name: str, thing: Any) -> str:
    """``fluid.layers.relu(x: Variable, name: str | None = None) -> Variable``."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}(...)"
    words = [word for word in written(signature) if word != "self"]
    result = signature.return_annotation
    end = (
        ""
        if result in (inspect.Signature.empty, None, "None") or inspect.isclass(thing)
        else f" -> {annotation(result)}"
    )
    line = f"{name}({', '.join(words)}){end}"
    return (
        line
        if len(line) <= WIDTH
        else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"
    )


def written(signature: inspect.Signature, annotated: bool = True) -> list[str]:
    """Each parameter, with the marks between kinds. annotated: with their types."""
    words, bare = [], True
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and bare:
            words.append("*")
        bare = bare and p.kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        kind = (
            ""
            if not annotated or p.annotation is p.empty or p.annotation in ("Any", Any)
            else f": {annotation(p.annotation)}"
        )
        equals = " = " if kind else "="
        words.append(
            f"{star}{p.name}{kind}"
            + ("" if p.default is p.empty else f"{equals}{default(p.default)}")
        )
    return words


def annotation(kind: Any) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def default(value: Any) -> str:
    """A default value as one would write it, the same in every process."""
    if isinstance(value, enum.Enum):
        return str(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    text = repr(value)
    return text if " at 0x" not in text else f"<{type(value).__qualname__}>"
