"""A program run data parallel: the rewritten program, and how feeds are split and fetches merged
over the ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from ...base.flags import flag
from ...core import EOFException
from ...devices.placement import OWN, Mesh, Placement
from ...devices.shard_layout import ShardLayout
from ...errors import FeedError, FluidTypeError, UnsupportedError
from ...feeds.fetching import entries, to_tensor
from ...feeds.ragged_shards import of_each
from ...graph.program import Program
from ...ir.desc import ProgramDesc
from ...lod_tensor import LoDTensor, bare, create_lod_tensor
from ...ops.fixed import Fixed
from ...ops.ragged import Ragged
from ...ops.tensor_array import TensorArray, is_array
from ...passes.base import Pass, run
from ...runtime.runnable import Reads
from ...state.scope import Scope

if TYPE_CHECKING:
    from .ragged_ranks import RaggedRanks


class DeviceCountError(FeedError, IndexError):
    """A feed has fewer samples, or more or fewer dicts, than there are devices."""


# the version; the program; the variables over the ranks, and their layout
Rewritten = tuple[Any, ProgramDesc, Mapping[str, ShardLayout]]


@runtime_checkable
class Places(Protocol):
    """A pass that shards variables over the ranks."""

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """Their layout by name, from the programs before and after the pass."""
        ...


def rewritten(
    desc: ProgramDesc, rewrites: Sequence[Pass]
) -> tuple[ProgramDesc, Mapping[str, ShardLayout]]:
    """The program after the passes, and the layout of its sharded variables."""
    found: dict[str, ShardLayout] = {}
    for rewrite in rewrites:
        new = run(rewrite, desc).desc
        if isinstance(rewrite, Places):
            found.update(rewrite.placed(desc, new))
        desc = new
    return desc, found


class Parallel:
    """Runs a program on several ranks.

    where: the ranks. rewrites: the passes that make the program parallel; none for one without a
    backward part. memory_optimized: whether XLA orders the step for the least memory.
    """

    def __init__(
        self, where: Placement, rewrites: Sequence[Pass] = (), memory_optimized: bool = False
    ) -> None:
        self.where = where
        self.rewrites = tuple(rewrites)
        self.memory_optimized = memory_optimized
        self._made: WeakKeyDictionary[Program, Rewritten] = WeakKeyDictionary()
        self._over: RaggedRanks | None = None

    @property
    def local_count(self) -> int:
        """The number of ranks that this process feeds."""
        return len(self.where.local) if isinstance(self.where, Mesh) else self.where.count

    def desc(self, program: Program) -> ProgramDesc:
        """The program that every rank runs; rebuilt when the program has changed."""
        return self._rewritten(program)[1]

    def sharded(self, program: Program) -> Mapping[str, ShardLayout]:
        """The sharded variables, and their layout."""
        return self._rewritten(program)[2]

    def prepare(self, scope: Scope) -> None:
        """Extra values of the rewritten program, before it begins with the values of a scope."""

    def _rewritten(self, program: Program) -> Rewritten:
        made = self._made.get(program)
        if made is None or made[0] != program.version:
            made = self._made[program] = program.version, *rewritten(program.desc, self.rewrites)
        return made

    def read(self, feed: Any, readers: Sequence[Reads]) -> Any:
        """A feed with a batch of each reader for every rank of this process, as in Fluid, where
        each device reads separately.
        """
        count = self.local_count
        if isinstance(feed, list | tuple):
            given = self._listed(feed, count, dict)
        else:
            whole = {n: bare(v) for n, v in feed.items()}
            parts = zip(
                *(
                    _parts(n, v if isinstance(v, LoDTensor) else np.asarray(v), count)
                    for n, v in whole.items()
                ),
                strict=True,
            )
            given = (
                [dict(zip(feed, part, strict=True)) for part in parts]
                if feed
                else [{} for _ in range(count)]
            )
        for rank, one in enumerate(given):
            try:
                for reader in readers:
                    one.update(reader.next_feed())
            except EOFException:
                if rank and self._evaluates and not any(reader.drops_last for reader in readers):
                    # the rest is for the first ranks; the next run reaches the end
                    return given[:rank]
                raise
        return given[0] if count == 1 else given

    @property
    def _evaluates(self) -> bool:
        """Whether the ranks are independent, so that some may stay without feeds: the program has
        no backward part.
        """
        return not self.rewrites and self.local_count == self.where.count

    def fed(self, feed: Any) -> int:
        """The number of ranks of a feed: only the first ones, if an evaluation has too few samples
        for all.
        """
        count = self.local_count
        if not self._evaluates:
            return count
        if isinstance(feed, list | tuple):
            return min(len(feed), count) or count
        samples = next((n for v in (feed or {}).values() if (n := _samples(v))), 0)
        return (samples and -(-samples // -(-samples // count))) or count

    def split(self, feed: Any, check: Any) -> Any:
        """A feed in the step's form: a dict of whole batches if all ranks get equal parts, else a
        tuple of dicts.

        feed: a dict, whose arrays are split on dimension 0, or a list with a dict for every rank.
        check: the checks of a dict of feeds. Raises DeviceCountError for fewer samples than ranks
        or a list of another length, FluidTypeError for a list with anything except dicts.
        """
        count, some = self.local_count, self.fed(feed)
        if isinstance(feed, list | tuple):
            ranks = self._listed(feed, some, check)
        elif some < count:
            values = check(feed, some)
            ranks = [
                dict(zip(values, part, strict=True))
                for part in zip(*(_parts(n, v, some) for n, v in values.items()), strict=True)
            ]
        else:
            values = check(feed, count)
            if self._even(values, count) and not any(isinstance(v, Fixed) for v in values.values()):
                return self._whole(values)
            ranks = [
                dict(zip(values, part, strict=True))
                for part in zip(*(_parts(n, v, count) for n, v in values.items()), strict=True)
            ]
            ranks = ranks or [{} for _ in range(count)]
        ranks += ranks[-1:] * (count - some)  # whose results are not used
        if self.where.together and _equal_forms(ranks):
            fixed = {n: v for n, v in ranks[0].items() if isinstance(v, Fixed)}
            return {
                **self._whole(
                    {
                        n: np.concatenate([np.asarray(r[n]) for r in ranks])
                        for n in ranks[0]
                        if n not in fixed
                    }
                ),
                **fixed,
            }
        if count != self.where.count:
            return self._ragged(ranks)
        return tuple(ranks)

    def _listed(self, feed: Sequence[Any], count: int, check: Any) -> list[dict[str, Any]]:
        for one in feed:
            if not isinstance(one, Mapping):
                raise FluidTypeError(
                    f"Each element of feed list should be a dict, not {type(one).__name__}"
                )
        if len(feed) != count:
            raise DeviceCountError(
                f"the feed is a list of {len(feed)} dicts, but there are {count} devices; give one"
                " dict for each device"
            )
        return [check(one) for one in feed]

    def _ragged(self, ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Feeds with a LoD in the form for the processes of a job."""
        if not any(isinstance(v, LoDTensor) for one in ranks for v in one.values()):
            raise FeedError(
                f"in a job of several processes each of the {len(ranks)} devices here must get"
                " equally many samples"
            )
        if self._over is None:
            from .ragged_ranks import RaggedRanks

            assert isinstance(self.where, Mesh)
            self._over = RaggedRanks(self.where)
        return self._over.joined(ranks)

    def _even(self, values: Mapping[str, Any], count: int) -> bool:
        return self.where.together and all(
            not isinstance(v, LoDTensor) and v.ndim and v.shape[0] and v.shape[0] % count == 0
            for v in values.values()
        )

    def _whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Batches of this process in the mesh's form."""
        where = self.where
        assert isinstance(where, Mesh)
        if len(where.local) == where.count:
            return dict(values)
        sharding = where.sharding(OWN)
        with jax.enable_x64(True):
            return {
                n: jax.make_array_from_process_local_data(sharding, np.array(v))
                for n, v in values.items()
            }

    def check_steps(self, stacked: Mapping[str, Any]) -> None:
        """Raises UnsupportedError unless all ranks get equal parts of every one of several stacked
        feeds.
        """
        ragged = next((n for n, v in stacked.items() if isinstance(v, Ragged)), None)
        if ragged is not None:
            raise UnsupportedError(
                f"run_steps on several devices takes no sequences, as {ragged!r} holds; call run for"
                " each step"
            )
        decides = next((n for n, v in stacked.items() if isinstance(v, Fixed)), None)
        if decides is not None:
            raise UnsupportedError(
                f"run_steps on several devices takes no feed that decides sizes, as {decides!r}"
                " does; call run for each step"
            )
        if (
            not self._even({n: v[0] for n, v in stacked.items()}, self.local_count)
            or self.local_count != self.where.count
        ):
            raise UnsupportedError(
                f"run_steps on {self.where.count} devices needs a device for each, all in this"
                " process, and batches that they divide; call run for each step"
            )

    def merge(
        self, fetched: Sequence[Any], merged: bool, some: int, along: Sequence[int]
    ) -> list[Any]:
        """Fetches of the fed ranks, `some`: concatenated, or stacked on a new dimension if not
        `merged`.

        fetched: global arrays, or a list of values for each rank. along: the dimension of
        concatenation for each.
        """
        whole = [merged and not at for at in along]
        if fetched and isinstance(fetched[0], list):
            each = zip(zip(*fetched[:some], strict=True), whole, strict=True)
            found = [_merge(values, one) for values, one in each]
        else:
            found = [self._fetched(v, one, some) for v, one in zip(fetched, whole, strict=True)]
        return [
            jnp.concatenate(list(v), at) if merged and at else v
            for v, at in zip(found, along, strict=True)
        ]

    def _fetched(self, value: Any, merged: bool, some: int) -> Any:
        if isinstance(value, Ragged):
            return _merge(of_each(value)[:some], merged)
        if is_array(value):
            return _merge(self._arrays(value)[:some], merged)
        whole = _local(value)
        whole = (
            whole
            if some == self.local_count
            else whole[: whole.shape[0] // self.local_count * some]
        )
        return whole if merged else whole.reshape(some, -1, *whole.shape[1:])

    def _arrays(self, value: TensorArray) -> list[TensorArray]:
        """The arrays of the ranks of this process, split from concatenated entries."""
        count = self.local_count
        parts = jax.tree.map(lambda a: np.split(np.asarray(_local(a)), count), value)
        return [jax.tree.map(lambda _, each, k=k: each[k], value, parts) for k in range(count)]


def _equal_forms(ranks: Sequence[Mapping[str, Any]]) -> bool:
    if any(isinstance(v, LoDTensor) or not v.ndim for one in ranks for v in one.values()):
        return False
    return all(_forms(one) == _forms(ranks[0]) for one in ranks)


def _forms(feed: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that must be equal on all ranks of one run: shapes, and feeds that decide
    sizes.
    """
    return {n: v if isinstance(v, Fixed) else v.shape for n, v in feed.items()}


def sizes(samples: int, count: int) -> list[int]:
    """The number of `samples` for each of `count` ranks.

    Parts of ceil(samples / count), the last one smaller (7 on 4: 2, 2, 2, 1), as in Paddle 1.8.5;
    if that would leave a rank without any, as evenly as possible (5 on 4: 2, 1, 1, 1). With
    FLAGS_seed_doc_split parts of floor(samples / count), the last one larger (7 on 4: 1, 1, 1, 4),
    as Paddle's documents say.
    """
    if flag("FLAGS_seed_doc_split"):
        return [samples // count] * (count - 1) + [samples - samples // count * (count - 1)]
    part = -(-samples // count)
    if part * (count - 1) < samples:
        return [part] * (count - 1) + [samples - part * (count - 1)]
    return [samples // count + (r < samples % count) for r in range(count)]


def _parts(name: str, value: Any, count: int) -> list[Any]:
    """The parts of one fed array."""
    if isinstance(value, LoDTensor):
        return _sequences(name, value, count)
    if not value.ndim:
        raise FeedError(
            f"feed {name!r} is one number, which cannot be split over {count} devices; give it a"
            " first dimension, or feed a list of dicts, one for each device"
        )
    ends = np.cumsum(sizes(_enough(name, value.shape[0], count), count))[:-1]
    if isinstance(value, Fixed):
        return [Fixed(part) for part in np.split(value.array, ends)]
    return np.split(np.asarray(value), ends)


def _samples(value: Any) -> int:
    """The number of samples of a fed value; 0 for a single number."""
    if isinstance(value, LoDTensor):
        return len(value.offsets[0]) - 1 if value.offsets else (value.shape() or [0])[0]
    shape = np.shape(value)
    return shape[0] if shape else 0


def _enough(name: str, samples: int, count: int) -> int:
    if samples < count:
        raise DeviceCountError(
            f"the number ({samples}) of samples of feed {name!r} is less than the count ({count})"
            f" of devices; feed at least {count}, or use fewer devices (CPU_NUM, or the argument"
            " places)"
        )
    return samples


def _sequences(name: str, tensor: LoDTensor, count: int) -> list[Any]:
    """The parts of a fed tensor with a LoD: whole outermost sequences."""
    lengths = tensor.recursive_sequence_lengths()
    rows = np.asarray(tensor.array())
    parts: list[Any] = []
    taken = [0] * len(lengths)
    start = 0
    for size in sizes(_enough(name, len(lengths[0]), count), count):
        level_size, part = size, []
        for level, counts in enumerate(lengths):
            part.append(list(counts[taken[level] : taken[level] + level_size]))
            taken[level] += level_size
            level_size = sum(part[-1])
        if not all(part):
            raise FeedError(
                f"feed {name!r}, split over {count} devices, gives device {len(parts)} sequences"
                " that hold none of the level below, which is not a LoD; feed them beside others,"
                " or use fewer devices"
            )
        one = LoDTensor()
        one.set(rows[start : start + level_size])
        one.set_recursive_sequence_lengths(part)
        parts.append(one)
        start += level_size
    return parts


def _merge(values: Sequence[Any], merged: bool) -> Any:
    """One fetch of all ranks, whose shapes may differ."""
    if is_array(values[0]):
        lists = [entries(v) for v in values]
        return [_joined_entry(each) for each in zip(*lists, strict=True)] if merged else lists
    if any(isinstance(v, Ragged) for v in values):
        values = [to_tensor(v) for v in values]
        if isinstance(values[0], LoDTensor):
            return _joined(values) if merged else values
    if merged:
        return jnp.concatenate(list(values))
    same = all(v.shape == values[0].shape for v in values)
    return jnp.stack(list(values)) if same else list(values)


def _joined_entry(values: Sequence[Any]) -> Any:
    """An array's entry from all ranks; an empty one if none has written it."""
    there = [v for v in values if v is not None]
    return _merge(there, True) if there else jnp.zeros(0, "float32")


def _joined(tensors: Sequence[Any]) -> LoDTensor:
    """One tensor with the sequences of all."""
    levels = zip(*(t.recursive_sequence_lengths() for t in tensors), strict=True)
    lengths = [[n for level in same for n in level] for same in levels]
    return create_lod_tensor(np.concatenate([np.asarray(t) for t in tensors]), lengths)


def _local(value: Any) -> Any:
    """The rows of an array that this process holds."""
    if value.is_fully_addressable:
        return value
    shards = sorted(value.addressable_shards, key=lambda s: s.index[0].start or 0)
    return np.concatenate([np.asarray(s.data) for s in shards])


__all__ = ["DeviceCountError", "Parallel", "sizes"]
