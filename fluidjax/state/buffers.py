"""StateBuffers: the device arrays of one program's state in one scope, ready for the compiled step.

A jitted call costs more than a microsecond per output array, so small arrays (biases, moments,
batch-norm statistics) are packed: one flat array per dtype, cut apart inside the step. Large arrays
stay as they are. While the buffers are in force, the storage of the variables that the step writes
is Buffered: it points here. Variables that a step on one device only reads are borrowed: they keep
their arrays, and the step looks whether these have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..devices import forked
from ..devices.placement import (
    Mesh,
    PerRank,
    Placement,
    Spanning,
    copied,
    per_rank,
    spread_out,
)
from ..devices.platforms import Packing
from ..devices.shard_layout import ShardedValue, ShardLayout, arrays_of
from ..errors import EnforceNotMet
from .scope import CHANGES, Scope, ScopeVar
from .storage import Held
from .turns import NOBODY, Turn, claim, ordered

SMALL = 8192  # elements: an array up to this size may be packed
WORTHWHILE = 16  # fewer arrays than this are not packed
NUMBERS = 4  # fewer single numbers than this are not packed, even where single numbers always are


@dataclass(frozen=True)
class Pack:
    """Arrays of one dtype in one flat array: names, shapes, and the offset of each. own: every rank
    has its own values.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    size: int
    own: bool = False

    def _span(self, k: int) -> slice:
        return slice(self.starts[k], self.starts[k] + int(np.prod(self.shapes[k], dtype=int)))

    def part(self, flat: Any, name: str) -> Any:
        """The elements of one array, flat: a slice of the flat array or of each of its rows."""
        return flat[..., self._span(self.names.index(name))]

    def cut(self, flat: Any) -> dict[str, Any]:
        """The arrays by name, sliced from the flat one."""
        return {n: flat[self._span(k)].reshape(self.shapes[k]) for k, n in enumerate(self.names)}

    def cut_rows(self, flat: Any) -> dict[str, Any]:
        """The arrays by name with a row for each rank, sliced from the flat one."""
        return {
            n: per_rank(flat[:, self._span(k)].reshape(-1, *self.shapes[k]))
            for k, n in enumerate(self.names)
        }

    def cut_rows_of(self, flat: Any, name: str) -> Any:
        """One array with a row for each rank, sliced from the flat one on any devices."""
        return self.part(flat, name).reshape(-1, *self.shapes[self.names.index(name)])

    def join(self, values: Mapping[str, Any]) -> Any:
        """The flat array of these values."""
        return jnp.concatenate([jnp.ravel(values[n]) for n in self.names])


@dataclass(frozen=True)
class StateLayout:
    """The form in which state is passed to a step: packs, then single arrays by name. Arrays with
    per-rank values (`owned` names the single ones) have a leading dimension of ranks.
    """

    packs: tuple[Pack, ...]
    singles: tuple[str, ...]
    owned: frozenset[str] = frozenset()

    @cached_property  # looked up for each variable that is read or written
    def own(self) -> list[bool]:
        """For each array of the layout, whether it has per-rank values."""
        return [p.own for p in self.packs] + [n in self.owned for n in self.singles]

    def types(self, values: Mapping[str, jax.ShapeDtypeStruct]) -> list[jax.ShapeDtypeStruct]:
        """The types of the layout's arrays of one rank."""
        packs = [jax.ShapeDtypeStruct((p.size,), values[p.names[0]].dtype) for p in self.packs]
        return packs + [values[n] for n in self.singles]

    def unpack(self, arrays: Sequence[Any], row: int = 0) -> dict[str, Any]:
        """Name -> array of one rank, inside the compiled step."""
        arrays = [a[row] if own else a for a, own in zip(arrays, self.own, strict=True)]
        values = dict(zip(self.singles, arrays[len(self.packs) :], strict=True))
        for pack, flat in zip(self.packs, arrays, strict=False):
            values.update(pack.cut(flat))
        return values

    def pack(self, values: Mapping[str, Any]) -> list[Any]:
        """The layout's arrays of one rank, inside the compiled step."""
        arrays = [p.join(values) for p in self.packs] + [values[n] for n in self.singles]
        return [a[None] if own else a for a, own in zip(arrays, self.own, strict=True)]

    def stack(self, ranks: Sequence[Sequence[Any]]) -> list[Any]:
        """The layout's arrays of all ranks, stacked from those of each."""
        return [
            jnp.concatenate(each) if own else each[0]
            for each, own in zip(zip(*ranks, strict=True), self.own, strict=True)
        ]


def plan(
    values: Mapping[str, Any],
    packing: Packing | None,
    flops: float = 0.0,
    owned: frozenset[str] = frozenset(),
) -> StateLayout:
    """A layout for arrays of these shapes and dtypes. packing: the cost of passing each array by
    itself; None means that nothing is packed. flops: of the matrix products that the step computes.
    owned: names with per-rank values.

    Packed arrays take longer to compile (every use has its own offset). So they are packed only if
    the cost of the calls would be noticeable beside the step's other work.
    """
    small = {n: v for n, v in values.items() if v.size <= SMALL}
    made: list[Pack] = []
    if packing is not None:
        numbers = {n: v for n, v in small.items() if v.size == 1} if packing.numbers else {}
        made += _packs(numbers, owned, NUMBERS)
        small = {n: v for n, v in small.items() if n not in numbers}
        moved = 2 * sum(
            v.size * np.dtype(v.dtype).itemsize for n, v in values.items() if n not in small
        )
        busy = moved / packing.bytes + flops / packing.flops
        if len(small) * packing.array > packing.noticed * busy:
            made += _packs(small, owned, WORTHWHILE)
    packed = {n for p in made for n in p.names}
    singles = tuple(n for n in values if n not in packed)
    return StateLayout(
        tuple(made),
        singles,
        owned.intersection(values) - packed,
    )


def _packs(values: Mapping[str, Any], owned: frozenset[str], fewest: int) -> list[Pack]:
    """A pack for the replicated values of each dtype and another for the per-rank ones, if there
    are at least `fewest` of them.
    """
    groups: dict[tuple[Any, bool], list[str]] = {}
    for name, v in values.items():
        groups.setdefault((np.dtype(v.dtype), name in owned), []).append(name)
    return [_pack(names, values, own) for (_, own), names in groups.items() if len(names) >= fewest]


def _pack(names: Sequence[str], values: Mapping[str, Any], own: bool) -> Pack:
    sizes = [int(values[n].size) for n in names]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    return Pack(
        tuple(names), tuple(tuple(values[n].shape) for n in names), tuple(starts), sum(sizes), own
    )


def borrows(where: Placement) -> bool:
    """Whether variables that a step only reads stay in their own arrays. On several devices they
    are placed on all of them, so the buffers take them over.
    """
    return where.count == 1 and not isinstance(where, Mesh | Spanning)


class StateBuffers:
    """State arrays in two groups: `mutable` arrays are donated to the step and replaced, `constant`
    arrays are only read.
    """

    def __init__(
        self, scope: Scope, layouts: tuple[StateLayout, StateLayout], values: Mapping[str, Any], where: Placement,
        sharded: Mapping[str, ShardLayout] = MappingProxyType({}), step: Callable[[], Any] = lambda: None,
    ) -> None:  # fmt: skip
        """sharded: variables whose elements are in the arrays that their layouts name; the scope
        shows each as a whole. step: a weak reference to the compiled step that this state belongs
        to.
        """
        self.in_force = False  # whether the scope's variables point here
        self.turns: list[Turn] = []  # the turn of the variables that the step writes
        self.locks: list[Any] = []  # a call that donates holds it
        self.borrowed = Borrowed()
        self.step = step
        self._absent: list[str] = []
        self.sharded = sharded
        holders = frozenset(arrays_of(sharded.values()))
        # the array that was read last, and its rows on the host
        self._gathered: tuple[str, Any, Any] | None = None
        self.scope = scope
        self.layouts = layouts
        self.where = where
        own = layouts[:1] if borrows(where) else layouts
        arrays = [
            n
            for layout in own
            for n in (*layout.singles, *(m for p in layout.packs for m in p.names))
        ]
        # variables that the scope has and that are here
        self.names = [*(n for n in arrays if n not in holders), *sharded]
        self.constant = _arrays(layouts[1], values, where)
        # Results of steps are appended (a donating call does it in C), and the last one holds the
        # state in force. So an interrupt at any moment finds the old state or the new one.
        self.cell: list[Any] = [(_arrays(layouts[0], values, where),)]
        self._at = self._index()

    @property
    def constants(self) -> list[str]:
        """The variables that the step only reads."""
        return [n for n, (group, _, _) in self._at.items() if group]

    def _index(self) -> dict[str, tuple[int, int, Pack | None]]:
        where: dict[str, tuple[int, int, Pack | None]] = {}
        for g, layout in enumerate(self.layouts):
            for i, pack in enumerate(layout.packs):
                where.update((n, (g, i, pack)) for n in pack.names)
            where.update(
                (n, (g, len(layout.packs) + i, None)) for i, n in enumerate(layout.singles)
            )
        return where

    @property
    def arrays(self) -> tuple[list[Any], list[Any]]:
        """The mutable group and the constant group."""
        return self.cell[-1][0], self.constant

    @property
    def own_arrays(self) -> list[Any]:
        """The arrays [ranks, ...] with a row for each rank."""
        groups = zip(self.arrays, self.layouts, strict=True)
        return [
            a for group, layout in groups for a, own in zip(group, layout.own, strict=True) if own
        ]

    def read(self, name: str) -> Any:
        """The value of a variable; a copy if it is packed. Of per-rank values, that of the first
        rank here.
        """
        if name in self.sharded:
            return self.sharded[name].joined(self._rows_of)
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        forked.refuse_unfinished(array)
        if self.layouts[g].own[i]:
            array = first_row(array)
        if pack is None:
            return array
        k = pack.names.index(name)
        return np.array(_columns(np.asarray(array), pack, name)).reshape(pack.shapes[k])

    def _rows_of(self, name: str) -> Any:
        """All ranks' rows, on the host, of an array that holds shards of variables. The last result
        is cached.
        """
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        if self._gathered is None or self._gathered[0] != name or self._gathered[1] is not array:
            self._gathered = (
                name,
                array,
                _columns(self.where.read(name, array), pack, name).reshape(self.where.count, -1),
            )
        return self._gathered[2]

    def holder(self, name: str) -> Any:
        """The array of this name, or the pack that contains it; None if neither is here."""
        if name not in self._at:
            return None
        g, i, _ = self._at[name]
        return self.arrays[g][i]

    def every_rank(self, name: str) -> Any:
        """The per-rank device array of a variable, shape [ranks, ...]; None for replicated
        variables.
        """
        if name not in self._at:
            return None
        g, i, pack = self._at[name]
        array = self.arrays[g][i]
        if not self.layouts[g].own[i]:
            return None
        return array if pack is None else pack.cut_rows_of(array, name)

    def write(self, name: str, value: Any) -> bool:
        """Store a value of the same shape and dtype for all ranks. False if it does not fit
        here.
        """
        if isinstance(self.where, Mesh) and self.where.shared:
            # the processes have to agree on a new value: the next step takes process 0's
            return False
        if value is None or isinstance(value, ShardedValue):
            return False
        if name in self.sharded:
            return self._write_parts(self.sharded[name], value)
        g, i, pack = self._at[name]
        old, own = self.arrays[g][i], self.layouts[g].own[i]
        shape = old.shape[own:] if pack is None else pack.shapes[pack.names.index(name)]
        if tuple(np.shape(value)) != tuple(shape) or np.asarray(value).dtype != old.dtype:
            return False
        self._put(name, value)
        return True

    def _write_parts(self, placed: ShardLayout, value: Any) -> bool:
        host = {n: np.array(self._rows_of(n)) for n in arrays_of([placed])}
        if np.shape(value) != placed.shape or any(
            np.asarray(value).dtype != h.dtype for h in host.values()
        ):
            return False
        placed.deal(value, host.__getitem__)
        for name, array in host.items():
            self._put(name, per_rank(array))
        return True

    def _put(self, name: str, value: Any) -> None:
        """Replace an array for all ranks; by a PerRank if each rank has its own value."""
        g, i, pack = self._at[name]
        old, own = self.arrays[g][i], self.layouts[g].own[i]
        if pack is None:
            new = self.where.put(
                (value.reshape(old.shape) if isinstance(value, PerRank) else value),
                own,
            )
        else:
            flat = self._own_rows(old) if own else np.array(old)
            _columns(flat, pack, name)[...] = (
                value if isinstance(value, PerRank) else np.ravel(value)
            )
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
        """Make the scope's variables point here. Variables that nothing has set yet are added by
        `keep`.
        """
        self._absent = []
        for name in self.names:
            var = self.scope.find_var(name)
            if var is None:
                self._absent.append(name)
            else:
                var.storage = Buffered(self, name)
        self.in_force = True

    def keep(self) -> None:
        """Add to the scope the variables that the first step created."""
        names, self._absent = self._absent, []
        vars = [self.scope.persistable(name) for name in names]
        self._claim(vars)
        for var in vars:
            var.storage = Buffered(self, var.name)
        self.borrowed.changes = CHANGES[0]

    def _claim(self, vars: Sequence[ScopeVar]) -> None:
        self.turns = ordered([*self.turns, *claimed(vars)])
        self.locks = [
            *(t.steps for t in self.turns),
            *(t.arrays for t in ordered([*self.turns, *self.borrowed.turns])),
        ]

    def bind(self, borrowed: Borrowed) -> None:
        """Take over, or borrow, the variables that the arrays were made from. The caller holds
        their turn.
        """
        self.borrowed = borrowed
        self._claim([var for name in self.names if (var := self.scope.find_var(name)) is not None])
        self.adopt()
        borrowed.changes = CHANGES[0]

    def copied(self) -> list[Any]:
        """Copies of the constant group as it is now."""

        def copies() -> list[Any]:
            if not self.renew(borrow(self.scope, self.constants)):
                raise EnforceNotMet(
                    "the variables that a program reads came to have other shapes while it ran"
                )
            return [copied(array) for array in self.constant]

        return self.scope.between_steps(self.constants, copies)

    def renew(self, borrowed: Borrowed) -> bool:
        """Borrow again; the caller holds the variables' turn. False if a shape or dtype has
        changed.
        """
        old, new, layout = self.borrowed.values, borrowed.values, self.layouts[1]
        if new.keys() != old.keys():
            return False
        changed = {n for n, v in new.items() if v is not old[n]}
        if any(new[n].shape != old[n].shape or new[n].dtype != old[n].dtype for n in changed):
            return False
        if changed:
            arrays = list(self.constant)
            for i, pack in enumerate(layout.packs):
                if not changed.isdisjoint(pack.names):
                    arrays[i] = self.where.put(_joined(pack, new, self.where.count), pack.own)
            for i, name in enumerate(layout.singles, len(layout.packs)):
                if name in changed:
                    arrays[i] = self.where.put(new[name], name in layout.owned)
            self.constant = arrays
        self.borrowed = borrowed
        self._claim([])
        return True

    def _ungathered(self) -> set[str]:
        """Sharded variables on a mesh with an array of their own, which need not be gathered."""
        if not isinstance(self.where, Mesh):
            return set()
        singles = {n for layout in self.layouts for n in layout.singles}
        return {
            n
            for n, placed in self.sharded.items()
            if n in singles and set(arrays_of([placed])) == {n}
        }

    def dissolve(self) -> None:
        """Give every variable its own array back."""
        values: dict[str, Any] = {}
        apart = self._ungathered()
        for layout, arrays in zip(self.layouts, self.arrays, strict=True):
            values.update(zip(layout.singles, arrays[len(layout.packs) :], strict=True))
            values.update({n: self._own_rows(values[n]) for n in layout.owned if n not in apart})
            for pack, flat in zip(layout.packs, arrays, strict=False):
                values.update(
                    pack.cut_rows(self._own_rows(flat)) if pack.own else pack.cut(np.array(flat))
                )
        whole = {n: placed for n, placed in self.sharded.items() if n not in apart}
        parts = {n: ShardedValue(self.sharded[n], {n: values[n]}, self.where.read) for n in apart}
        values.update(
            {**{n: placed.joined(values.__getitem__) for n, placed in whole.items()}, **parts}
        )
        for name in self.names:
            var = self.scope.find_var(name)
            if (
                var is not None
                and isinstance(var.storage, Buffered)
                and var.storage.buffers is self
            ):
                var.storage = Held(values[name])
        self.in_force = False
        step = self.step()
        if step is not None and self.scope.bound.get(step) is self:
            self.scope.bound.pop(step, None)


@dataclass
class Borrowed:
    """The variables that a step only reads, as they were found. changes: the count of changes at
    that time. sources: buffers that held some of them, with their state at that time. turns: the
    turns of programs that write some of them.
    """

    values: dict[str, Any] = field(default_factory=dict)
    changes: int = -1
    sources: list[tuple[StateBuffers, Any]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def stands(self) -> bool:
        """Whether nothing has changed since."""
        if self.changes != CHANGES[0]:
            return False
        return not self.sources or all(buffers.cell[-1] is state for buffers, state in self.sources)


def borrow(scope: Scope, names: Iterable[str]) -> Borrowed:
    """The values of variables, not copied; variables without a value are left out. The caller holds
    their turn.
    """
    found, sources, turns = Borrowed(changes=CHANGES[0]), {}, set()
    for name in names:
        var = scope.find_var(name)
        if var is None:
            continue
        storage = var.storage
        if isinstance(storage, Buffered):
            sources[id(storage.buffers)] = storage.buffers, storage.buffers.cell[-1]
        value = storage.read()
        if value is not None:
            found.values[name] = value if isinstance(value, jax.Array) else np.asarray(value)
            turns.add(var.turn)
    found.sources, found.turns = list(sources.values()), ordered(turns - {NOBODY})
    return found


def claimed(vars: Sequence[ScopeVar]) -> list[Turn]:
    """The turns of variables that a step writes and may donate. From now on they change only in
    their turn.
    """
    return claim(vars, _own_arrays)


def _own_arrays(vars: Sequence[ScopeVar]) -> None:
    """Fresh arrays in place of those that another thread may be reading without a turn."""
    for var in vars:
        value = var.storage.value if isinstance(var.storage, Held) else None
        if isinstance(value, jax.Array) and len(value.devices()) == 1:
            var.storage = Held(copied(value))


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
        return ShardedValue(
            layout, {n: self.buffers.every_rank(n) for n in layout.arrays}, self.buffers.where.read
        )

    def release(self) -> None:
        self.buffers.dissolve()


def in_force(scope: Scope) -> list[StateBuffers]:
    """The buffers that hold values of this scope's variables, one for each program that uses some
    of them.
    """
    storages = (scope.var(name).storage for name in scope.local_var_names())
    return list(dict.fromkeys(s.buffers for s in storages if isinstance(s, Buffered)))


def _columns(array: Any, pack: Pack | None, name: str) -> Any:
    """The variable's slice of a host array, or of each of its rows."""
    return array if pack is None else pack.part(array, name)


def first_row(array: Any) -> Any:
    """The first row that this process holds."""
    shard = min(array.addressable_shards, key=lambda s: s.index[0].start or 0)
    return np.array(shard.data)[0]


def all_rows(array: Any) -> PerRank:
    """A host copy of an array with a row for each rank. The first row of this process stands in for
    the rows of other processes.
    """
    if array.is_fully_addressable:
        return per_rank(np.array(array))
    host = np.broadcast_to(first_row(array), array.shape).copy()
    for shard in array.addressable_shards:
        host[shard.index] = shard.data
    partial = per_rank(host)
    partial.partial = True
    return partial


def _arrays(layout: StateLayout, values: Mapping[str, Any], where: Placement) -> list[Any]:
    flat = [_joined(pack, values, where.count) for pack in layout.packs]
    return where.put_all([*flat, *(values[n] for n in layout.singles)], layout.own)


def _joined(pack: Pack, values: Mapping[str, Any], count: int) -> Any:
    """The flat array of a pack; with a row for each of `count` ranks if some values are
    per-rank.
    """
    if not (pack.own and any(isinstance(values[n], PerRank) for n in pack.names)):
        return np.concatenate([np.ravel(np.asarray(values[n])) for n in pack.names])
    return per_rank(
        np.concatenate(
            [spread_out(values[n], count).reshape(count, -1) for n in pack.names], axis=1
        )
    )
