"""Copies a program's state out of a scope, so that later steps do not change it, and stores it
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..devices.placement import PerRank, per_rank
from ..devices.shard_layout import ShardLayout, Span
from ..errors import EnforceNotMet, UnsupportedError
from ..ops.selected import SelectedRows
from ..saved.values import listed
from ..state.scope import Scope, ScopeVar
from .record import Lod

# Every array costs orbax about a millisecond of CPU. Values of at most so many bytes are stored
# together in one array for each dtype.
SMALL = 4 << 20


@dataclass(frozen=True)
class Snapshot:
    """replicated: name -> value in the declared shape. own: name -> a row for each rank, for
    per-rank values.

    pieces: arrays with a row for each rank, which hold the shards of the variables of `placed`; or
    arrays of one dimension, which hold small values one after another.
    """

    replicated: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    pieces: Mapping[str, Any] = field(default_factory=dict)
    placed: Mapping[str, ShardLayout] = field(default_factory=dict)
    lods: Mapping[str, Lod] = field(default_factory=dict)


def nbytes(snapshot: Snapshot) -> int:
    """The bytes of all its values."""
    groups = snapshot.replicated, snapshot.own, snapshot.pieces
    return sum(leaf.nbytes for leaf in jax.tree.leaves(groups))


def take(names: list[str], scope: Scope) -> Snapshot:
    """The values of these variables between two steps. Raises EnforceNotMet that names all
    variables without a value.

    A step donates its arrays to the next one, so they are copied: on the device if its memory is
    the host's, else by orbax, which copies them to the host before its save returns.
    """
    vars = {n: var for n in names if (var := scope.find_var(n)) is not None}
    missing = [n for n in names if n not in vars or vars[n].storage.empty]
    if missing:
        raise EnforceNotMet(
            f"nothing to save for {listed(missing)}: not initialised in the scope; run the startup"
            " program first"
        )
    replicated: dict[str, Any] = {}
    own: dict[str, Any] = {}
    pieces: dict[str, Any] = {}
    placed: dict[str, ShardLayout] = {}

    def add() -> None:
        with jax.enable_x64(True):
            for var in vars.values():
                _add(var, replicated, own, pieces, placed)
            _pack(replicated, pieces, placed)
            for name, value in replicated.items():
                replicated[name] = _kept(value)

    scope.between_steps(names, add)
    return Snapshot(replicated, own, pieces, placed, {n: v.lod for n, v in vars.items() if v.lod})


def _add(var: ScopeVar, replicated: Any, own: Any, pieces: Any, placed: Any) -> None:
    """Add one variable's value to its group: a copy, except for `replicated`."""
    name, shards = var.name, var.storage.shards()
    if shards is not None:  # as they are on the devices; reading the value would gather them
        placed[name] = replace(shards.placed, copies=())
        pieces.update({n: _kept(a) for n, a in shards.arrays.items() if n not in pieces})
        return
    every = var.storage.per_rank()
    if isinstance(every, PerRank) and every.partial:
        raise EnforceNotMet(
            f"each trainer has its own value of {name!r}, and the scope was written to since the"
            " last step, so this process no longer reaches the others'; run a step before you save"
        )
    value = var.storage.read()
    if isinstance(value, SelectedRows):
        raise UnsupportedError(
            f"{name!r} holds sparse rows (SELECTED_ROWS), which a checkpoint does not keep; save"
            " its table instead"
        )
    replicated[name] = value
    if every is not None:
        own[name] = _kept(np.asarray(every) if isinstance(every, PerRank) else every)


def _pack(replicated: Any, pieces: Any, placed: Any) -> None:
    """Move small values of `replicated` into one array for each dtype."""
    small = jax.device_get({n: v for n, v in replicated.items() if _is_small(v)})
    by_dtype: dict[np.dtype, list[str]] = {}
    for name, value in small.items():
        by_dtype.setdefault(value.dtype, []).append(name)
    for dtype, names in by_dtype.items():
        array, at = f"small values, {dtype.name}", 0
        row = _aligned(sum(small[n].size for n in names), dtype)
        for name in names:
            value = small[name]
            row[at : at + value.size] = value.reshape(-1)
            placed[name] = ShardLayout(value.shape, (Span(array, 0, at, 0, value.size),))
            at += value.size
            del replicated[name]
        # of one dimension, because tensorstore would copy an array [1, n] once more before it is
        # written
        pieces[array] = row if _must_be_numpy() else jax.device_put(row)


def _must_be_numpy() -> bool:
    # with several processes orbax takes the arrays of all processes or of none
    return jax.process_count() > 1 or jax.default_backend() != "cpu"


def _is_small(value: Any) -> bool:
    whole = not isinstance(value, jax.Array) or value.is_fully_replicated
    return whole and 0 < value.nbytes <= SMALL


def _aligned(size: int, dtype: np.dtype) -> np.ndarray:
    """An empty array that JAX takes over without a copy."""
    held = np.empty(size * dtype.itemsize + 64, np.uint8)
    start = -held.ctypes.data % 64
    return held[start : start + size * dtype.itemsize].view(dtype)


def _kept(value: Any) -> Any:
    if not isinstance(value, jax.Array):
        return np.array(value)
    alone = len(value.sharding.device_set) == 1 and jax.process_count() == 1
    if not alone and (
        value.is_fully_replicated or (jax.process_count() > 1 and value.is_fully_addressable)
    ):
        # one copy is enough; with several processes orbax takes the arrays of all or of none
        return np.array(value)
    # orbax would copy NumPy arrays once more before its save returns
    device: Any = next(iter(value.sharding.device_set))
    if device.platform != "cpu":
        return value
    if not alone:
        return jnp.copy(value)
    # NumPy requests large pages: XLA's own copy takes four times as long, mostly in the kernel
    held = _aligned(value.size, value.dtype).reshape(value.shape)
    np.copyto(held, np.asarray(value))
    return jax.device_put(held, value.sharding)


def put(snapshot: Snapshot, scope: Scope, ranks: int) -> None:
    """Store all values. ranks: the number of ranks that the program runs on; if as many had their
    own values, they get them back.
    """
    whole = {n: placed.joined(snapshot.pieces.__getitem__) for n, placed in snapshot.placed.items()}
    values = {**snapshot.replicated, **whole}

    def store() -> None:
        for name, value in values.items():
            var = scope.persistable(name)
            every = snapshot.own.get(name)
            var.value = per_rank(every) if every is not None and len(every) == ranks else value
            var.lod = snapshot.lods.get(name, ())

    scope.between_steps(values, store, changing=True)
