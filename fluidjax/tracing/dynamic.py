"""Open sizes: arguments whose dimensions have names, as jax.export's symbolic shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from ..errors import TraceError, near
from ..ir.dims import bare, bounded

Dynamic = Mapping[str, Sequence[str | int | None]]


def opened(
    dynamic: Dynamic, labels: Sequence[str], values: Sequence[Any], names: Sequence[Sequence[str]]
) -> list[Any]:
    """The arguments, with types with open sizes in place of these leaves.

    names: of the leaves of each argument. Raises TraceError for a name that no argument or leaf
    has, for more sizes than a leaf has, and for texts that are not sizes.
    """
    known = {*labels, *(n for each in names for n in each)}
    for word in dynamic:
        if word not in known:
            raise TraceError(
                f"dynamic names {word!r}, which is neither an argument nor a leaf of"
                f" one{near(word, known)}; they are {', '.join(sorted(known)[:20])}"
            )
    texts = [text for sizes in dynamic.values() for text in sizes or () if isinstance(text, str)]
    try:
        scope = scope_of(texts)
    except Exception as error:  # JAX's have no common class
        raise TraceError(f"dynamic gives bounds that are none: {error}") from None
    found = []
    for label, value, each in zip(labels, values, names, strict=True):
        leaves, tree = jax.tree.flatten(value)
        shaped = [
            _leaf(name, leaf, dynamic.get(name, dynamic.get(label)), scope)
            for name, leaf in zip(each, leaves, strict=True)
        ]
        found.append(jax.tree.unflatten(tree, shaped))
    return found


def _leaf(name: str, leaf: Any, sizes: Sequence[str | int | None] | None, scope: Any) -> Any:
    if sizes is None:
        return leaf
    shape = tuple(leaf.shape) if hasattr(leaf, "shape") else ()
    fits = isinstance(sizes, tuple | list) and len(sizes) <= len(shape)
    if not fits or any(
        n not in (None, old) and not isinstance(n, str)
        for n, old in zip(sizes, shape, strict=False)
    ):
        raise TraceError(
            f"dynamic gives {name!r} the sizes {sizes!r}, and its shape is {list(shape)}: give one"
            " name for each dimension, None for one that is as it was traced"
        )
    if not any(isinstance(n, str) for n in sizes):
        return leaf
    parts = [
        bare(n) if isinstance(n, str) else str(old) for n, old in zip(sizes, shape, strict=False)
    ]
    text = ", ".join([*parts, *map(str, shape[len(sizes) :])])
    try:
        # JAX's current setting decides the dtype of NumPy's 64-bit values
        kind = jnp.result_type(leaf) if isinstance(leaf, np.ndarray) else leaf.dtype
        return jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), kind)
    except Exception as error:
        raise TraceError(
            f"dynamic gives {name!r} the shape ({text}), and JAX says:"
            f" {next(iter(str(error).splitlines()), '')}"
        ) from None


def scope_of(texts: Iterable[str]) -> export.SymbolicScope:
    """A scope of open sizes in which these are at least what their bounds say (``t>=4``)."""
    bounds = [f"{size} >= {low}" for size, low in map(bounded, texts) if low]
    return export.SymbolicScope(list(dict.fromkeys(bounds)))


def text_of(size: Any) -> str:
    """The text of an open size, with its bound if its scope says more than that names are from 1."""
    low = _least(size)
    return f"{size}>={low}" if low > _least(export.symbolic_shape(str(size))[0]) else str(size)


def _least(size: Any) -> int:
    """The greatest number that a size surely reaches, 0 if none."""
    low = 0
    for step in (2**k for k in reversed(range(32))):
        with suppress(jax.errors.InconclusiveDimensionOperation):
            low += step if size >= low + step else 0
    return low
