"""Tensor arrays: the value of a LOD_TENSOR_ARRAY within a step.

Outside of loops an array is a list whose entries may have any shapes (:class:`Listed`). In a loop
the index is known only when the step runs, so the entries are in buffers with an extra leading
dimension (:class:`Stacked`), whose capacity is found before the loop runs (loop_course.py). An
array ends with its last written entry.

In the gradient of an array, the gradient of a write reads and removes an entry, and the gradient of
a read adds to it; so overwritten entries, and entries read twice, get the right gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, NotOneStep
from .forms import Each, form_of, joined, key_of, same, types_of, widened
from .ragged import Ragged, like, rows_of

KIND = "LOD_TENSOR_ARRAY"


@partial(jax.tree_util.register_dataclass, data_fields=("items",), meta_fields=("capacity",))
@dataclass(frozen=True)
class Listed:
    """items: the entries, None for unwritten ones. capacity: their number after a loop has run."""

    items: tuple[Any, ...] = ()
    capacity: int = 0

    @property
    def length(self) -> int:
        return len(self.items)


@partial(jax.tree_util.register_dataclass, data_fields=("rows", "written"), meta_fields=())
@dataclass(frozen=True)
class Stacked:
    """rows: the entries' buffers, [capacity, ...] each, zero for unwritten entries. written:
    [capacity] bool; a NumPy array if it is known while tracing.
    """

    rows: Any
    written: Any

    @property
    def capacity(self) -> int:
        return self.written.shape[0]

    @property
    def length(self) -> Any:
        """The length of the array: an int if it is known while tracing."""
        if isinstance(self.written, np.ndarray):
            return int(np.max(np.nonzero(self.written)[0], initial=-1)) + 1
        return jnp.max(
            jnp.where(self.written, jnp.arange(self.capacity, dtype=jnp.int32) + 1, 0), initial=0
        )


TensorArray = Listed | Stacked
Mark = Callable[[], Hashable] | None


def is_array(value: Any) -> bool:
    return isinstance(value, Listed | Stacked)


def as_gradient(value: Any) -> Any:
    """A gradient in the form of an array's gradient: rows alone, unless they are sequences."""
    return value.rows if isinstance(value, Ragged) and value.bare else value


def plus(a: Any, b: Any) -> Any:
    """The sum of two entries, with the sequences of the first, if any."""
    if isinstance(a, Ragged) or isinstance(b, Ragged):
        return like(a, rows_of(a) + rows_of(b))
    return jax.tree.map(jnp.add, a, b)


def empty_like(array: TensorArray) -> TensorArray:
    """A gradient for the same entries, all unwritten."""
    if isinstance(array, Listed):
        return Listed((None,) * array.length, array.capacity)
    entries = as_gradient(array.rows)
    return Stacked(
        like(entries, jax.tree.map(jnp.zeros_like, rows_of(entries))),
        jnp.zeros(array.capacity, bool),
    )


def entry(array: TensorArray, index: Any, mark: Mark = None) -> Any:
    """array[index]; None if it is known while tracing to be unwritten. index: an int or a scalar.

    mark: returns a token for an unknown index; equal tokens promise equal indices.
    """
    if isinstance(array, Listed):
        if not isinstance(index, int):
            array = stacked(array, array.length)
        else:
            return array.items[index] if index < array.length else None
    if isinstance(index, int) and (
        index >= array.capacity
        or (isinstance(array.written, np.ndarray) and not array.written[index])
    ):
        return None
    found = jax.tree.map(
        lambda r: jax.lax.dynamic_index_in_dim(r, index, keepdims=False), array.rows
    )
    return numbered(found, lambda: _number(index, mark)) if isinstance(found, Ragged) else found


def numbered(found: Ragged, number: Callable[[], Hashable]) -> Ragged:
    """An entry with its own keys in place of those of all entries. number: the token of its index."""
    keys = {
        n: entry_key(k, number())
        for n, k in (("key", found.key), ("each", found.each))
        if isinstance(k, Each)
    }
    return replace(found, **keys) if keys else found


def entry_key(key: Each, number: Hashable) -> Hashable:
    """The key of the entry with that index."""
    return "entry", key.key, number


def _number(index: Any, mark: Mark) -> Hashable:
    """The token of an entry's index in a key; a new object, equal to no other, if there is none."""
    return index if isinstance(index, int) else object() if mark is None else mark()


def is_written(array: TensorArray, index: Any) -> Any:
    """Whether array[index], for a scalar, is a written entry."""
    written = (
        np.array([v is not None for v in array.items], bool)
        if isinstance(array, Listed)
        else array.written
    )
    count = written.shape[0]
    return (
        (index >= 0) & (index < count) & jnp.asarray(written)[jnp.clip(index, 0, max(count - 1, 0))]
    )


def put(array: TensorArray, index: Any, value: Any, mark: Mark = None) -> TensorArray:
    """The array with array[index] = value (None: nothing). mark: as in :func:`entry`."""
    if isinstance(array, Listed):
        if isinstance(index, int) and not array.capacity:
            items = [*array.items, *[None] * (index + 1 - array.length)]
            items[index] = value
            return Listed(tuple(items))
        array = stacked(array, max(array.capacity, array.length), like=value)
    if isinstance(index, int):
        array = stacked(array, index + 1)
    zero = value is None
    if zero:
        value = jax.tree.map(lambda r: jnp.zeros(r.shape[1:], r.dtype), array.rows)
    else:
        array, value = _fitted(array, value, index, mark)
    rows = jax.tree.map(
        lambda r, v: jax.lax.dynamic_update_index_in_dim(r, jnp.asarray(v, r.dtype), index, 0),
        array.rows,
        value,
    )
    if isinstance(index, int) and isinstance(array.written, np.ndarray):
        return Stacked(rows, np.where(np.arange(array.capacity) == index, not zero, array.written))
    return Stacked(rows, jnp.asarray(array.written).at[index].set(not zero))


def _fitted(array: Stacked, value: Any, index: Any, mark: Mark) -> tuple[Stacked, Any]:
    """The array and a value in one form; the entries are converted if they are rows and the value's
    rows differ.
    """
    have, new = entry_type(array), types_of(value)
    if same(have, new):
        return array, value
    form = joined(have, new, Each(("put", key_of(have), _number(index, mark), key_of(new))))
    if form is None:
        _refuse_other_shape(array, value)
        return array, value
    return in_form(array, form), widened(value, form)


def entry_type(array: Stacked) -> Any:
    """The type of an entry."""
    return jax.tree.map(lambda r: jax.ShapeDtypeStruct(r.shape[1:], r.dtype), array.rows)


def in_form(array: Stacked, form: Any) -> Stacked:
    """The array with its entries in a form that holds them."""
    if same(entry_type(array), form):
        return array
    if not array.capacity:
        return replace(array, rows=jax.tree.map(lambda t: jnp.zeros((0, *t.shape), t.dtype), form))
    return replace(array, rows=jax.vmap(lambda rows: widened(rows, form))(array.rows))


def _refuse_other_shape(array: Stacked, value: Any) -> None:
    had, has = (
        [tuple(v.shape[skip:]) for v in jax.tree.leaves(t)]
        for t, skip in ((array.rows, 1), (value, 0))
    )
    if had != has or form_of(array.rows) != form_of(value):
        raise NotOneStep(
            f"an array in a loop holds entries of one shape, but has one of {list(had[0])} and gets"
            f" one of {list(has[0])}; the shapes of what a loop writes may not change between"
            " iterations"
        )


def stacked(array: TensorArray, capacity: int, like: Any = None) -> Stacked:
    """The array in buffers of at least this capacity. like: an entry, for an array that has none."""
    if isinstance(array, Stacked):
        more = capacity - array.capacity
        if more <= 0:
            return array
        rows = jax.tree.map(
            lambda r: jnp.concatenate([r, jnp.zeros((more, *r.shape[1:]), r.dtype)]), array.rows
        )
        join = np.concatenate if isinstance(array.written, np.ndarray) else jnp.concatenate
        return Stacked(rows, join([array.written, np.zeros(more, bool)]))
    there = [v for v in array.items if v is not None]
    if not there and like is None:
        raise EnforceNotMet("an array is read before anything is written to it")
    form = _common([jax.tree.map(jnp.asarray, v) for v in there or [like]])
    empty = zeros(form)
    items = [
        empty if v is None else widened(jax.tree.map(jnp.asarray, v), form) for v in array.items
    ]
    items += [empty] * (capacity - len(items))
    rows = jax.tree.map(lambda *v: jnp.stack(v), *items)
    return Stacked(
        rows, np.array([i < array.length and array.items[i] is not None for i in range(len(items))])
    )


def _common(items: list[Any]) -> Any:
    """The type that holds all these entries. Raises NotOneStep if they have different shapes."""
    found = types_of(items[0])
    for item in items[1:]:
        form = joined(found, types_of(item), Each(("entries", tuple(map(key_of, items)))))
        if form is None:
            _refuse_other_shape(
                Stacked(jax.tree.map(lambda v: v[None], items[0]), np.ones(1, bool)), item
            )
        found = found if form is None else form
    return found


def zeros(types: Any) -> Any:
    """Zeros of these types, as jax.eval_shape gives them."""
    return jax.tree.map(lambda t: jnp.zeros(t.shape, t.dtype), types)


def unstacked(array: TensorArray) -> Listed:
    """The entries as a list. Raises NotOneStep if their number is known only when the step runs."""
    if isinstance(array, Listed):
        return array
    if not isinstance(array.written, np.ndarray):
        raise NotOneStep(
            "how long an array is, which a loop has written, is known only when the step runs, but"
            " decides a shape"
        )
    return Listed(tuple(entry(array, i) for i in range(array.length)))


def added(arrays: list[TensorArray]) -> TensorArray:
    """The sum, entry by entry; a missing entry counts as zero."""
    if all(isinstance(a, Listed) for a in arrays):
        return _added_lists([a for a in arrays if isinstance(a, Listed)])
    capacity = max(a.capacity if isinstance(a, Stacked) else a.length for a in arrays)
    one = next(jax.tree.map(lambda r: r[0], a.rows) for a in arrays if isinstance(a, Stacked))
    wide = [stacked(a, capacity, one) for a in arrays]
    rows = reduce(plus, [a.rows for a in wide])
    written = wide[0].written
    for a in wide[1:]:
        written = written | a.written
    return replace(wide[0], rows=rows, written=written)


def _added_lists(arrays: list[Listed]) -> Listed:
    items: list[Any] = []
    for i in range(max(a.length for a in arrays)):
        there = [a.items[i] for a in arrays if i < a.length and a.items[i] is not None]
        items.append(reduce(plus, there) if there else None)
    return Listed(tuple(items))
