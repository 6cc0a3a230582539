"""Values of loops and arrays whose number of rows changes from iteration to iteration: one form
that holds them all.

A compiled loop carries buffers of fixed sizes. If an iteration returns more rows than it got, or
rows with another LoD (a beam search does both), the buffers get the larger of the two sizes; the
number of true rows is data, and padding follows them (:class:`Ragged`). A plain array becomes such
a value without a LoD (``bare``).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .ragged import ROWS, Ragged, some_rows


@dataclass(frozen=True)
class Each:
    """The key of array entries whose offsets differ: they are equal if two arrays have this key and
    the entry is the same.
    """

    key: Hashable


def form_of(value: Any) -> Any:
    """The structure of a value made of arrays, comparable."""
    return jax.tree.structure(value)


def types_of(value: Any) -> Any:
    """The value with shapes and dtypes in place of its arrays."""
    return jax.tree.map(
        lambda v: (
            v if isinstance(v, jax.ShapeDtypeStruct) else _type(jnp.shape(v), jnp.result_type(v))
        ),
        value,
    )


def same(a: Any, b: Any) -> bool:
    """Whether two values (or types) have one form and the same shapes."""
    return form_of(a) == form_of(b) and [v.shape for v in jax.tree.leaves(a)] == [
        v.shape for v in jax.tree.leaves(b)
    ]


def key_of(value: Any) -> Hashable | None:
    """The key that tells whether two values have the same offsets; None for a value without rows."""
    return value.key if isinstance(value, Ragged) else None


def joined(a: Any, b: Any, key: Hashable) -> Any | None:
    """The type that holds values of both types, with this key if their LoD may differ; None if
    there is none.

    a, b: plain or ragged types whose rows have one shape and one dtype.
    """
    if not (isinstance(a, Ragged) or isinstance(b, Ragged)):
        return a if _plain(a) and same(a, b) else None
    if not _equal_rows(a, b):
        return None
    if same(a, b):
        return a
    x, y = _as_rows(a), _as_rows(b)
    bare, padded = x.bare or y.bare, x.padded or y.padded or x.capacity != y.capacity
    rows = _type((max(x.capacity, y.capacity), *x.rows.shape[1:]), x.dtype)
    if not _same_levels(x, y) or ROWS in (x.each, y.each):
        return (
            Ragged(rows, (_type((2,), np.int32),), (rows.shape[0],), key, padded, bare, each=ROWS)
            if bare
            else None
        )
    offsets = tuple(
        _type((max(p.shape[0], q.shape[0]),), np.int32)
        for p, q in zip(x.offsets, y.offsets, strict=True)
    )
    filled = x.alive is not None or y.alive is not None
    each, alive = (each_under(key), _type((), np.int32)) if filled else (None, None)
    return Ragged(
        rows,
        offsets,
        tuple(map(max, x.longest, y.longest)),
        key,
        padded,
        bare,
        _most(x, y),
        each,
        alive,
    )


def each_under(key: Hashable) -> Hashable:
    """The key of values with a row for each sequence of a value with this key."""
    return Each(("of each", key.key)) if isinstance(key, Each) else ("of each", key)


def widened(value: Any, form: Any) -> Any:
    """The value in a form that holds it (a type that :func:`joined` gave)."""
    if not isinstance(form, Ragged) or same(value, form):
        return value
    x = value if isinstance(value, Ragged) else _counted(value)
    rows = jnp.asarray(x.rows)
    more = form.rows.shape[0] - rows.shape[0]
    if more:  # copies of a row, so that padding is as finite as the true rows
        fill = rows[-1:] if rows.shape[0] else jnp.zeros((1, *rows.shape[1:]), rows.dtype)
        rows = jnp.concatenate([rows, jnp.broadcast_to(fill, (more, *rows.shape[1:]))])
    levels = x.offsets
    if len(levels) != len(form.offsets) or levels[0].shape != form.offsets[0].shape:
        levels = _counted(x).offsets
    offsets = tuple(
        _longer(jnp.asarray(level, jnp.int32), want.shape[0])
        for level, want in zip(levels, form.offsets, strict=True)
    )
    alive = (
        None
        if form.alive is None
        else jnp.asarray(levels[0].shape[0] - 1 if x.alive is None else x.alive, jnp.int32)
    )
    return replace(form, rows=rows.astype(form.dtype), offsets=offsets, alive=alive)


def _most(x: Ragged, y: Ragged) -> tuple[int, ...] | None:
    """The largest number of rows of any sequence of either."""
    if x.most is None and y.most is None:
        return None
    return tuple(max(x.rows_in(level), y.rows_in(level)) for level in range(len(x.offsets)))


def _longer(level: Any, size: int) -> Any:
    """Offsets with empty sequences appended."""
    more = size - level.shape[0]
    return jnp.concatenate([level, jnp.broadcast_to(level[-1:], (more,))]) if more else level


def _counted(value: Any) -> Ragged:
    """Rows of which only the number is known: one sequence, without a LoD for the program."""
    rows = value.rows if isinstance(value, Ragged) else value
    count = value.count if isinstance(value, Ragged) else jnp.asarray(rows.shape[0], jnp.int32)
    return some_rows(rows, count, None)


def _as_rows(a: Any) -> Ragged:
    if isinstance(a, Ragged):
        return a
    return Ragged(a, (_type((2,), np.int32),), (a.shape[0],), None, bare=True, each=ROWS)


def _same_levels(x: Ragged, y: Ragged) -> bool:
    """Whether two values have equal numbers of levels, and of sequences in the first level."""
    return len(x.offsets) == len(y.offsets) and x.offsets[0].shape == y.offsets[0].shape


def _equal_rows(a: Any, b: Any) -> bool:
    parts = [v.rows if isinstance(v, Ragged) else v for v in (a, b)]
    if not all(_plain(v) and v.ndim for v in parts):
        return False
    return parts[0].shape[1:] == parts[1].shape[1:] and parts[0].dtype == parts[1].dtype


def _plain(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _type(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)
