"""Tensor arrays: what travels in a step in place of a LOD_TENSOR_ARRAY.

Outside of loops an array is a list, whose entries may have any shapes (:class:`Listed`). In a loop the index is known only
when the step runs, so the entries stand in buffers with one more leading dimension (:class:`Stacked`), whose capacity the
loop finds out before it runs (loop_course.py). An array is as long as its last entry that was written.

In the gradient of an array, reading what a write has put there takes it away, and what a read has taken is added; so an
entry that is written anew, or read twice, has the gradient that it should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, UnsupportedError

KIND = "LOD_TENSOR_ARRAY"


@partial(jax.tree_util.register_dataclass, data_fields=("items",), meta_fields=("capacity",))
@dataclass(frozen=True)
class Listed:
    """items: the entries, None for those that nobody has written. capacity: how many there will be when a loop has run."""

    items: tuple[Any, ...] = ()
    capacity: int = 0

    @property
    def length(self) -> int:
        return len(self.items)


@partial(jax.tree_util.register_dataclass, data_fields=("rows", "written"), meta_fields=())
@dataclass(frozen=True)
class Stacked:
    """rows: the entries' buffers, [capacity, ...] each, zero where nothing was written. written: [capacity] bool; a NumPy
    array where it is known while tracing.
    """

    rows: Any
    written: Any

    @property
    def capacity(self) -> int:
        return self.written.shape[0]

    @property
    def length(self) -> Any:
        """How long the array is: an int where that is known while tracing."""
        if isinstance(self.written, np.ndarray):
            return int(np.max(np.nonzero(self.written)[0], initial=-1)) + 1
        return jnp.max(jnp.where(self.written, jnp.arange(self.capacity, dtype=jnp.int32) + 1, 0), initial=0)


TensorArray = Listed | Stacked


def form_of(value: Any) -> Any:
    """How a value is made of arrays, which compares."""
    return jax.tree.structure(value)


def is_array(value: Any) -> bool:
    return isinstance(value, Listed | Stacked)


def empty_like(array: TensorArray) -> TensorArray:
    """An array in which nothing was written, of the same entries."""
    if isinstance(array, Listed):
        return Listed((None,) * array.length, array.capacity)
    return Stacked(jax.tree.map(jnp.zeros_like, array.rows), jnp.zeros(array.capacity, bool))


def entry(array: TensorArray, index: Any) -> Any:
    """array[index], None if nothing was written there as far as is known while tracing. index: an int or a scalar."""
    if isinstance(array, Listed):
        if not isinstance(index, int):
            array = stacked(array, array.length)
        else:
            return array.items[index] if index < array.length else None
    if isinstance(index, int) and (index >= array.capacity or (isinstance(array.written, np.ndarray) and not array.written[index])):
        return None
    return jax.tree.map(lambda r: jax.lax.dynamic_index_in_dim(r, index, keepdims=False), array.rows)


def put(array: TensorArray, index: Any, value: Any) -> TensorArray:
    """The array with array[index] = value (None: nothing)."""
    if isinstance(array, Listed):
        if isinstance(index, int) and not array.capacity:
            items = [*array.items, *[None] * (index + 1 - array.length)]
            items[index] = value
            return Listed(tuple(items))
        array = stacked(array, max(array.capacity, array.length), like=value)
    if isinstance(index, int):
        array = stacked(array, index + 1)
    zero = value is None
    value = jax.tree.map(lambda r: jnp.zeros(r.shape[1:], r.dtype), array.rows) if zero else value
    _refuse_other_shape(array, value)
    rows = jax.tree.map(lambda r, v: jax.lax.dynamic_update_index_in_dim(r, jnp.asarray(v, r.dtype), index, 0), array.rows, value)
    if isinstance(index, int) and isinstance(array.written, np.ndarray):
        return Stacked(rows, np.where(np.arange(array.capacity) == index, not zero, array.written))
    return Stacked(rows, jnp.asarray(array.written).at[index].set(not zero))


def _refuse_other_shape(array: Stacked, value: Any) -> None:
    had, has = ([tuple(v.shape[skip:]) for v in jax.tree.leaves(t)] for t, skip in ((array.rows, 1), (value, 0)))
    if had != has or form_of(array.rows) != form_of(value):
        raise UnsupportedError(
            f"an array in a loop holds entries of one shape, but has one of {list(had[0])} and gets one of {list(has[0])}; "
            "the shapes of what a loop writes may not change between iterations"
        )


def stacked(array: TensorArray, capacity: int, like: Any = None) -> Stacked:
    """The array in buffers of this capacity, at least. like: an entry, for an array that has none."""
    if isinstance(array, Stacked):
        more = capacity - array.capacity
        if more <= 0:
            return array
        rows = jax.tree.map(lambda r: jnp.concatenate([r, jnp.zeros((more, *r.shape[1:]), r.dtype)]), array.rows)
        join = np.concatenate if isinstance(array.written, np.ndarray) else jnp.concatenate
        return Stacked(rows, join([array.written, np.zeros(more, bool)]))
    there = [v for v in array.items if v is not None]
    if not there and like is None:
        raise EnforceNotMet("an array that nobody has written is read")
    first = jax.tree.map(jnp.asarray, there[0] if there else like)
    empty = jax.tree.map(jnp.zeros_like, first)
    items = [empty if v is None else jax.tree.map(jnp.asarray, v) for v in array.items]
    items += [empty] * (capacity - len(items))
    for item in items:
        _refuse_other_shape(Stacked(jax.tree.map(lambda v: v[None], first), np.ones(1, bool)), item)
    rows = jax.tree.map(lambda *v: jnp.stack(v), *items)
    return Stacked(rows, np.array([i < array.length and array.items[i] is not None for i in range(len(items))]))


def unstacked(array: TensorArray) -> Listed:
    """The entries as a list. Raises UnsupportedError where how many there are is known only when the step runs."""
    if isinstance(array, Listed):
        return array
    if not isinstance(array.written, np.ndarray):
        raise UnsupportedError("how long an array is, which a loop has written, is known only when the step runs, but decides a shape")
    return Listed(tuple(entry(array, i) for i in range(array.length)))


def added(arrays: list[TensorArray]) -> TensorArray:
    """The sum, entry by entry; an entry that is missing counts as zero."""
    if all(isinstance(a, Listed) for a in arrays):
        return _added_lists([a for a in arrays if isinstance(a, Listed)])
    capacity = max(a.capacity if isinstance(a, Stacked) else a.length for a in arrays)
    like = next(jax.tree.map(lambda r: r[0], a.rows) for a in arrays if isinstance(a, Stacked))
    wide = [stacked(a, capacity, like) for a in arrays]
    rows = jax.tree.map(lambda *v: sum(v[1:], v[0]), *[a.rows for a in wide])
    written = wide[0].written
    for a in wide[1:]:
        written = written | a.written
    return replace(wide[0], rows=rows, written=written)


def _added_lists(arrays: list[Listed]) -> Listed:
    items: list[Any] = []
    for i in range(max(a.length for a in arrays)):
        there = [a.items[i] for a in arrays if i < a.length and a.items[i] is not None]
        items.append(jax.tree.map(lambda *v: sum(v[1:], v[0]), *there) if there else None)
    return Listed(tuple(items))
