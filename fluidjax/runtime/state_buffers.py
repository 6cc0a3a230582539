"""StateBuffers: the device arrays of one program's state in one scope, ready to be passed to the compiled step.

A jitted call costs more than a microsecond per output array, so small arrays (biases, moments, batch-norm statistics)
travel packed: one flat array per dtype, cut apart inside the step. Large arrays travel as they are. While the buffers are
in force, the storage of the scope's variables is Buffered: it points here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..ops.concrete import known
from .placement import Mesh, PerRank, Placement, per_rank, spread_out
from .scope import Scope
from .shard_layout import ShardedValue, ShardLayout, arrays_of
from .storage import Held

SMALL = 8192  # elements: an array up to this size may be packed
WORTHWHILE = 16  # packing fewer arrays than this gains nothing
CALL_SECONDS = 1.4e-6  # what an array that travels by itself adds to a call (measured, CPU)
BYTES_A_SECOND = 10e9  # a step reads and writes its large state at about this speed, or does more
Axes = tuple[int, ...]
NOTICED = 0.05  # share of the step's time below which the cost of the calls does not matter


@dataclass(frozen=True)
class Pack:
    """Arrays of one dtype in one flat array: names, shapes, and where each begins. own: every rank has its own values.

    joint: where the step takes them as they are, stacked: the name of the stack.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    size: int
    own: bool = False
    joint: str | None = None

    def _span(self, k: int) -> slice:
        return slice(self.starts[k], self.starts[k] + int(np.prod(self.shapes[k], dtype=int)))

    def part(self, flat: Any, name: str) -> Any:
        """The elements of one array, flat, out of the flat one or out of each of its rows."""
        return flat[..., self._span(self.names.index(name))]

    def cut(self, flat: Any) -> dict[str, Any]:
        """The arrays by name, out of the flat one."""
        return {n: flat[self._span(k)].reshape(self.shapes[k]) for k, n in enumerate(self.names)}

    def cut_rows(self, flat: Any) -> dict[str, Any]:
        """The arrays by name with a row for each rank, out of the flat one."""
        return {n: per_rank(flat[:, self._span(k)].reshape(-1, *self.shapes[k])) for k, n in enumerate(self.names)}

    def cut_rows_of(self, flat: Any, name: str) -> Any:
        """One array with a row for each rank, out of the flat one, wherever that is."""
        return self.part(flat, name).reshape(-1, *self.shapes[self.names.index(name)])

    def join(self, values: Mapping[str, Any]) -> Any:
        """The flat array of these values."""
        return jnp.concatenate([jnp.ravel(values[n]) for n in self.names])

    def opened(self, flat: Any) -> dict[str, Any]:
        """What the step takes, by name."""
        return self.cut(flat) if self.joint is None else {self.joint: flat.reshape(len(self.names), *self.shapes[0])}

    def closed(self, values: Mapping[str, Any]) -> Any:
        """The flat array of what the step has left."""
        return self.join(values) if self.joint is None else values[self.joint].reshape(-1)


@dataclass(frozen=True)
class StateLayout:
    """How state travels: packs, then single arrays by name. Those of which every rank has its own (`owned` names the
    single ones) have a leading dimension of ranks. turned: single ones, none of them owned, that travel with their axes in
    another order.
    """

    packs: tuple[Pack, ...]
    singles: tuple[str, ...]
    owned: frozenset[str] = frozenset()
    turned: Mapping[str, Axes] = field(default_factory=dict)

    @property
    def own(self) -> list[bool]:
        """Of each travelling array, whether every rank has its own."""
        return [p.own for p in self.packs] + [n in self.owned for n in self.singles]

    def types(self, values: Mapping[str, jax.ShapeDtypeStruct]) -> list[jax.ShapeDtypeStruct]:
        """The types of the travelling arrays of one rank."""
        packs = [jax.ShapeDtypeStruct((p.size,), values[p.names[0]].dtype) for p in self.packs]
        singles = ((values[n], self.turned.get(n)) for n in self.singles)
        return packs + [v if axes is None else jax.ShapeDtypeStruct([v.shape[a] for a in axes], v.dtype) for v, axes in singles]

    def unpack(self, arrays: Sequence[Any], row: int = 0) -> dict[str, Any]:
        """Name -> array of one rank, inside the compiled step."""
        arrays = [a[row] if own else a for a, own in zip(arrays, self.own, strict=True)]
        values = {n: self.back(n, a) for n, a in zip(self.singles, arrays[len(self.packs) :], strict=True)}
        for pack, flat in zip(self.packs, arrays, strict=False):
            values.update(pack.opened(flat))
        return values

    def pack(self, values: Mapping[str, Any]) -> list[Any]:
        """The travelling arrays of one rank, inside the compiled step."""
        arrays = [p.closed(values) for p in self.packs] + [self.out(n, values[n]) for n in self.singles]
        return [a[None] if own else a for a, own in zip(arrays, self.own, strict=True)]

    def out(self, name: str, value: Any) -> Any:
        """A single array as it travels."""
        return _transposed(value, self.turned[name]) if name in self.turned else value

    def back(self, name: str, array: Any) -> Any:
        """A single array as the program has it."""
        return _transposed(array, np.argsort(self.turned[name]).tolist()) if name in self.turned else array

    def stack(self, ranks: Sequence[Sequence[Any]]) -> list[Any]:
        """The travelling arrays of all ranks, from those of each."""
        return [jnp.concatenate(each) if own else each[0] for each, own in zip(zip(*ranks, strict=True), self.own, strict=True)]


def plan(
    values: Mapping[str, Any], owned: frozenset[str] = frozenset(), busy: float = 0.0, turned: Mapping[str, Axes] = MappingProxyType({}),
    joints: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> StateLayout:  # fmt: skip
    """A layout for arrays of these shapes and dtypes. owned: names of which every rank has its own value. busy: seconds that
    a step takes in any case. turned: the axes of those that travel in another order. joints: names that the step takes stacked.

    Packed arrays take longer to compile (every use has its own offset), so they are packed only where the calls would
    otherwise be noticed beside the large arrays that the step moves and what else it does.
    """
    stacks = [_pack(names, values, False, joint) for joint, names in joints.items() if _alike(names, values, owned)]
    stacked = {n for p in stacks for n in p.names}
    by_dtype: dict[tuple[Any, bool], list[str]] = {}
    moved = 0
    for name, v in values.items():
        if name in stacked:
            continue
        if v.size <= SMALL and name not in turned:
            by_dtype.setdefault((np.dtype(v.dtype), name in owned), []).append(name)
        else:
            moved += 2 * v.size * np.dtype(v.dtype).itemsize
    small = sum(len(names) for names in by_dtype.values())
    made: list[Pack] = []
    if small * CALL_SECONDS > NOTICED * (moved / BYTES_A_SECOND + busy):
        made = [_pack(names, values, own) for (_, own), names in by_dtype.items() if len(names) >= WORTHWHILE]
    made = stacks + made
    packed = {n for p in made for n in p.names}
    singles = tuple(n for n in values if n not in packed)
    return StateLayout(tuple(made), singles, owned.intersection(values) - packed, {n: turned[n] for n in singles if n in turned})


def _alike(names: Sequence[str], values: Mapping[str, Any], owned: frozenset[str]) -> bool:
    """Whether they can be stacked."""
    return owned.isdisjoint(names) and all(n in values for n in names) and len({(values[n].shape, values[n].dtype) for n in names}) == 1


def _pack(names: Sequence[str], values: Mapping[str, Any], own: bool, joint: str | None = None) -> Pack:
    sizes = [int(values[n].size) for n in names]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    return Pack(tuple(names), tuple(tuple(values[n].shape) for n in names), tuple(starts), sum(sizes), own, joint)


class StateBuffers:
    """State arrays in two groups: `mutable` ones are donated to the step and replaced, `constant` ones are only read."""

    def __init__(
        self, scope: Scope, layouts: tuple[StateLayout, StateLayout], values: Mapping[str, Any], where: Placement,
        sharded: Mapping[str, ShardLayout] = MappingProxyType({}), beside: bool = False,
    ) -> None:  # fmt: skip
        """sharded: variables that no rank holds whole, whose elements are in the arrays that they name; the scope shows the whole.

        beside: the values are copies, and the scope's variables stay where they are.
        """
        self.beside = beside
        self.in_force = False  # whether the scope's variables point here
        self.sharded = sharded
        self._holders = frozenset(arrays_of(sharded.values()))
        self._gathered: tuple[str, Any, Any] | None = None  # the array that was looked at last, and its rows on the host
        self.scope = scope
        self.layouts = layouts
        self.where = where
        arrays = [n for layout in layouts for n in (*layout.singles, *(m for p in layout.packs for m in p.names))]
        self.names = [*(n for n in arrays if n not in self._holders), *sharded]  # those that the scope knows
        self.constant = _arrays(layouts[1], values, where)
        # Results of steps are appended (the donating call does it itself, in C); the last one holds the state in force.
        # So an interrupt at any moment sees the old state or the new one, never none.
        self.cell: list[Any] = [(_arrays(layouts[0], values, where),)]
        self._at = self._index()

    def _index(self) -> dict[str, tuple[int, int, Pack | None]]:
        where: dict[str, tuple[int, int, Pack | None]] = {}
        for g, layout in enumerate(self.layouts):
            for i, pack in enumerate(layout.packs):
                where.update((n, (g, i, pack)) for n in pack.names)
            where.update((n, (g, len(layout.packs) + i, None)) for i, n in enumerate(layout.singles))
        return where

    @property
    def arrays(self) -> tuple[list[Any], list[Any]]:
        """The mutable group and the constant group."""
        return self.cell[-1][0], self.constant

    @property
    def own_arrays(self) -> list[Any]:
        """The arrays [ranks, ...] of which every rank has a row of its own."""
        groups = zip(self.arrays, self.layouts, strict=True)
        return [a for group, layout in groups for a, own in zip(group, layout.own, strict=True) if own]

    def read(self, name: str) -> Any:
        """The value of a variable; a copy if it travels packed. Where every rank has its own, that of the first here."""
        if name in self.sharded:
            return self.sharded[name].joined(self._rows_of)
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        if self.layouts[g].own[i]:
            array = first_row(array)
        if pack is None:
            return self.layouts[g].back(name, array)
        k = pack.names.index(name)
        return np.array(_columns(np.asarray(array), pack, name)).reshape(pack.shapes[k])

    def _rows_of(self, name: str) -> Any:
        """All ranks' rows of an array that holds parts of variables, on the host; the last one is remembered."""
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        if self._gathered is None or self._gathered[0] != name or self._gathered[1] is not array:
            self._gathered = name, array, _columns(self.where.read(name, array), pack, name).reshape(self.where.count, -1)
        return self._gathered[2]

    def holder(self, name: str) -> Any:
        """The array that has this name, or that it travels in; None where there is none of it."""
        if name not in self._at:
            return None
        g, i, _ = self._at[name]
        return self.arrays[g][i]

    def every_rank(self, name: str) -> Any:
        """[ranks, ...] of a variable of which every rank has its own value, as it lies on the devices; None of others."""
        if name not in self._at:
            return None
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        if not self.layouts[g].own[i]:
            return None
        return array if pack is None else pack.cut_rows_of(array, name)

    def write(self, name: str, value: Any) -> bool:
        """Store a value of the same shape and dtype, for all ranks; False if it does not fit here."""
        if isinstance(self.where, Mesh) and self.where.shared:
            return False  # the processes have to agree on a new value: the next step takes process 0's
        if value is None or isinstance(value, ShardedValue):
            return False
        if name in self.sharded:
            return self._write_parts(self.sharded[name], value)
        g, i, pack = self._at[name]
        old, own = self.arrays[g][i], self.layouts[g].own[i]
        shape = self.layouts[g].back(name, old).shape[own:] if pack is None else pack.shapes[pack.names.index(name)]
        if tuple(np.shape(value)) != tuple(shape) or np.asarray(value).dtype != old.dtype:
            return False
        self._put(name, value)
        return True

    def _write_parts(self, placed: ShardLayout, value: Any) -> bool:
        host = {n: np.array(self._rows_of(n)) for n in arrays_of([placed])}
        if np.shape(value) != placed.shape or any(np.asarray(value).dtype != h.dtype for h in host.values()):
            return False
        placed.deal(value, host.__getitem__)
        for name, array in host.items():
            self._put(name, per_rank(array))
        return True

    def _put(self, name: str, value: Any) -> None:
        """Replace an array for all ranks; by a PerRank where each has its own."""
        g, i, pack = self._at[name]
        old, own = self.arrays[g][i], self.layouts[g].own[i]
        if pack is None:
            new = self.where.put(value.reshape(old.shape) if isinstance(value, PerRank) else self.layouts[g].out(name, value), own)
        else:
            flat = self._own_rows(old) if own else np.array(old)
            _columns(flat, pack, name)[...] = value if isinstance(value, PerRank) else np.ravel(value)
            new = self.where.put(flat, own)
        group = list(self.arrays[g])
        group[i] = new
        if g == 0:
            self.cell[:] = [(group,)]
        else:
            self.constant = group

    def _own_rows(self, array: Any) -> PerRank:
        return per_rank(self.where.everywhere(array)) if self.sharded else all_rows(array)

    def adopt(self) -> None:
        """Make the scope's variables point here, unless they are only copied."""
        if self.beside:
            return
        for name in self.names:
            var = self.scope.find_var(name) or self.scope.var(name)  # an accumulator that nothing has set is not there yet
            var.storage = Buffered(self, name)
        self.in_force = True

    def _apart(self) -> set[str]:
        """Variables that lie on a mesh in an array of their own, and need not be put together."""
        if not isinstance(self.where, Mesh):
            return set()
        singles = {n for layout in self.layouts for n in layout.singles}
        return {n for n, placed in self.sharded.items() if n in singles and set(arrays_of([placed])) == {n}}

    def dissolve(self) -> None:
        """Give every variable its own array back."""
        values: dict[str, Any] = {}
        apart = self._apart()
        for layout, arrays in zip(self.layouts, self.arrays, strict=True):
            values.update({n: layout.back(n, a) for n, a in zip(layout.singles, arrays[len(layout.packs) :], strict=True)})
            values.update({n: self._own_rows(values[n]) for n in layout.owned if n not in apart})
            for pack, flat in zip(layout.packs, arrays, strict=False):
                values.update(pack.cut_rows(self._own_rows(flat)) if pack.own else pack.cut(np.array(flat)))
        whole = {n: placed for n, placed in self.sharded.items() if n not in apart}
        parts = {n: ShardedValue(self.sharded[n], {n: values[n]}, self.where.read) for n in apart}
        values.update({**{n: placed.joined(values.__getitem__) for n, placed in whole.items()}, **parts})
        for name in self.names:
            var = self.scope.find_var(name)
            if var is not None and isinstance(var.storage, Buffered) and var.storage.buffers is self:
                var.storage = Held(values[name])
        self.in_force = False


@dataclass(frozen=True, slots=True)
class Buffered:
    """The storage of a variable whose value is among the buffers of a program's state."""

    buffers: StateBuffers
    name: str
    empty = False

    def read(self) -> Any:
        return self.buffers.read(self.name)

    def write(self, value: Any) -> bool:
        return self.buffers.write(self.name, value)

    def per_rank(self) -> Any:
        return self.buffers.every_rank(self.name)

    def shards(self) -> ShardedValue | None:
        layout = self.buffers.sharded.get(self.name)
        if layout is None:
            return None
        return ShardedValue(layout, {n: self.buffers.every_rank(n) for n in layout.arrays}, self.buffers.where.read)

    def release(self) -> None:
        self.buffers.dissolve()


def in_force(scope: Scope) -> list[StateBuffers]:
    """The buffers that hold values of this scope's variables, one for each program that runs on some of them."""
    storages = (scope.var(name).storage for name in scope.local_var_names())
    return list(dict.fromkeys(s.buffers for s in storages if isinstance(s, Buffered)))


def held_by_mesh(names: Iterable[str], scope: Scope) -> list[Any]:
    """The buffers that hold these variables, if a mesh of several devices holds some of them; else nothing.

    A program that only reads them, on one device, takes copies, so that they stay on the mesh: each rank keeps what is
    its own, and the processes of a job need not look at the same time.
    """
    vars = [var for n in names if (var := scope.find_var(n)) is not None]
    used = dict.fromkeys(var.storage.buffers for var in vars if isinstance(var.storage, Buffered))
    if not any(isinstance(b.where, Mesh) and b.where.count > 1 for b in used):
        return []
    return [*(part for b in used for part in (b, *b.arrays)), *(var.storage.value for var in vars if isinstance(var.storage, Held))]


def identical(these: Sequence[Any], those: Sequence[Any]) -> bool:
    """Whether both are the very same objects."""
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def _columns(array: Any, pack: Pack | None, name: str) -> Any:
    """The part of a host array, or of each of its rows, that is the variable's."""
    return array if pack is None else pack.part(array, name)


def first_row(array: Any) -> Any:
    """Row 0 of those that this process holds."""
    shard = min(array.addressable_shards, key=lambda s: s.index[0].start or 0)
    return np.array(shard.data)[0]


def all_rows(array: Any) -> PerRank:
    """A host copy of an array with a row for each rank; of a job's other processes' rows, this one's first instead."""
    if array.is_fully_addressable:
        return per_rank(np.array(array))
    host = np.broadcast_to(first_row(array), array.shape).copy()
    for shard in array.addressable_shards:
        host[shard.index] = shard.data
    partial = per_rank(host)
    partial.partial = True
    return partial


def _transposed(value: Any, axes: Sequence[int]) -> Any:
    """value.transpose(axes). Of an array that is there it needs no compilation, which JAX would make one for each shape."""
    held = known(value) if isinstance(value, jax.Array) else None
    if held is None:
        return value.transpose(axes)
    return jax.device_put(held.transpose(axes), value.sharding, may_alias=False)


def _arrays(layout: StateLayout, values: Mapping[str, Any], where: Placement) -> list[Any]:
    flat = [_joined(pack, values, where.count) for pack in layout.packs]
    return where.put_all([*flat, *(layout.out(n, values[n]) for n in layout.singles)], layout.own)


def _joined(pack: Pack, values: Mapping[str, Any], count: int) -> Any:
    """The flat array of a pack; with a row for each of `count` ranks where these have their own already."""
    if not (pack.own and any(isinstance(values[n], PerRank) for n in pack.names)):
        return np.concatenate([np.ravel(np.asarray(values[n])) for n in pack.names])
    return per_rank(np.concatenate([spread_out(values[n], count).reshape(count, -1) for n in pack.names], axis=1))
