"""StepPlan: all decisions about a step that are made before it is compiled.

A plan is a frozen value. If a step cannot be traced as planned, adapting.py makes another plan from
it; this one does not change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from ..base.loc import warn
from ..compiling.kind import Kind
from ..devices import platforms
from ..devices.placement import Mesh, OneDevice, Placement, Spanning
from ..devices.shard_layout import ShardLayout, arrays_of
from ..errors import FeedError, FetchError, near
from ..feeds.bucketing import limits
from ..feeds.feeding import (
    FeedRule,
    Range,
    fixed,
    overwritten,
    ranges,
    rule_for,
    unknown_feed,
    variable_bounds,
)
from ..feeds.padding import Padding, goes_by_offsets, inner_levels
from ..ir import walk
from ..ir.desc import ProgramDesc
from ..ir.dims import symbols
from ..ir.recomputed import segment
from ..lower.open import batch_of
from ..lower.read_only import is_read_only
from ..lower.step import Step
from ..lower.uncompiled import Uncompiled, uncompiled
from ..ops.fixed import Fixed
from ..state.buffers import borrows
from ..xla_cpu.policy import choose
from .raising import may_raise


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A step, and how it is run.

    where: the ranks. memory_optimized: XLA orders the step for the least memory. within_budget: the
    number of bytes that it was fitted into. placed: sharded variables, and where their elements
    are. limited: feeds that bound loops: a step is compiled for each of their buckets. cutting: the
    step in segments (a CutStep), if it cannot be one function. batch_sizes: see Padding.
    max_executables: see Executables.
    """

    step: Step
    where: Placement
    memory_optimized: bool = False
    within_budget: bool = False
    placed: Mapping[str, ShardLayout] = field(default_factory=dict)
    limited: frozenset[str] = frozenset()
    cutting: Any = None
    batch_sizes: tuple[int, ...] | None = None
    max_executables: int | None = None

    @staticmethod
    def of(
        desc: ProgramDesc,
        fetches: tuple[str, ...],
        where: Placement,
        memory_optimized: bool = False,
        placed: Mapping[str, ShardLayout] = MappingProxyType({}),
        given: frozenset[str] = frozenset(),
        unset: frozenset[str] = frozenset(),
        within_budget: bool = False,
        batch_sizes: tuple[int, ...] | None = None,
        max_executables: int | None = None,
    ) -> StepPlan:
        """The plan for a program as one rank runs it. given: persistable variables that are fed.
        unset: persistable variables that begin without a value. Raises FetchError for a fetch that
        does not exist.
        """
        where = _spanning(desc, where)
        step = Step(
            desc,
            fetches,
            in_blocks=True,
            in_place=memory_optimized and choose(where.device.platform).orders_for_memory,
            given=given,
            unset=unset,
            offloads=isinstance(where, OneDevice) and where.count == 1,
        )
        found = StepPlan(
            step,
            where,
            memory_optimized,
            within_budget,
            placed,
            batch_sizes=batch_sizes,
            max_executables=max_executables,
        )
        found._check_fetches()
        return found

    def _check_fetches(self) -> None:
        desc = self.step.desc
        for name in self.fetches:
            if desc.find_var(name) is None and name in self.sharded:
                raise FetchError(
                    f"fetch target {name!r} lies in parts on the ranks; read it from the scope"
                    " after the run"
                )
            if desc.find_var(name) is None:
                raise FetchError(
                    f"fetch target {name!r} is not in the program{near(name, desc.blocks[0].vars)}"
                )

    # -- derived -----------------------------------------------------------------------------------

    @property
    def fetches(self) -> tuple[str, ...]:
        return self.step.fetches

    @property
    def tuning(self) -> platforms.Tuning:
        """The tuning for the kind of device."""
        return platforms.tuning(self.where.device.platform)

    @property
    def shared(self) -> bool:
        """Whether the step runs with other processes."""
        return isinstance(self.where, Mesh) and self.where.shared

    @property
    def tight(self) -> bool:
        """Whether memory counts more than time."""
        saves = any(segment(op) is not None for op in self.step.ops)
        return self.within_budget or self.memory_optimized or saves

    @cached_property
    def sharded(self) -> Mapping[str, ShardLayout]:
        """The variables of `placed` that the step reads."""
        reads = self.step.reads
        return {n: p for n, p in self.placed.items() if not set(arrays_of([p])).isdisjoint(reads)}

    @cached_property
    def made(self) -> Mapping[str, ShardLayout]:
        """The variables of `placed` that the step creates."""
        return {
            n: p
            for n, p in self.placed.items()
            if n not in self.sharded and set(arrays_of([p])) == {n} and n in self.step.writes
        }

    @cached_property
    def holders(self) -> Mapping[str, int]:
        """The arrays that hold shards of variables, and how many elements of each a rank has."""
        vars = self.step.desc.blocks[0].vars
        return {n: math.prod(vars[n].shape or ()) for n in arrays_of(self.sharded.values())}

    @cached_property
    def reads_only(self) -> bool:
        """Whether the step changes nothing. A feed of a persistable variable changes the state."""
        return is_read_only(self.step) and not self.step.given and borrows(self.where)

    @cached_property
    def written(self) -> tuple[str, ...]:
        return () if self.reads_only else tuple(dict.fromkeys(self.step.writes))

    @cached_property
    def creates(self) -> bool:
        """Whether the step creates variables that need not exist before."""
        return any(n not in self.step.reads for n in self.written)

    @cached_property
    def initialises(self) -> bool:
        return self.creates and not self.step.reads and not self.rules

    @cached_property
    def may_raise(self) -> bool:
        return may_raise(self.step)

    def donates(self, kind: Kind) -> bool:
        """Whether a call donates the old state, whose arrays are deleted by it."""
        return not (kind.checked or self.may_raise or self.reads_only)

    @cached_property
    def alone(self) -> Uncompiled | None:
        """How the step runs op by op, not compiled."""
        plain = type(self.where) in (OneDevice, Mesh) and not self.placed
        return uncompiled(self.step, self.where.together) if plain else None

    @cached_property
    def joined_along(self) -> tuple[int, ...]:
        """Of each fetch the dimension that holds the batch: the first, but where a traced program
        says that another does.
        """
        batch, vars = batch_of(self.step.desc), self.step.desc.blocks[0].vars
        named = [(v.dims if batch and (v := vars.get(n)) is not None else ()) for n in self.fetches]
        own = [[at for at, text in enumerate(t) if text and batch in symbols(text)] for t in named]
        return tuple(at[0] if len(at) == 1 else 0 for at in own)

    @cached_property
    def persistable_fetches(self) -> tuple[int, ...]:
        vars = self.step.desc.blocks[0].vars
        named = enumerate(self.fetches)
        return tuple(i for i, n in named if (v := vars.get(n)) is not None and v.persistable)

    # -- feeds -------------------------------------------------------------------------------------

    @cached_property
    def fixed(self) -> frozenset[str]:
        """Feeds that decide sizes; a step is compiled for each of their values."""
        return self.step.sizes.fixed

    @cached_property
    def rules(self) -> Mapping[str, FeedRule]:
        desc, feeds = self.step.desc, self.step.feeds
        bounds = ranges(desc, self.step.ops)
        readers = {n: [op for _, op in walk.ops(desc) if n in op.reads] for n in feeds}
        return {n: rule_for(var, bounds.get(n, ()), readers[n]) for n, var in feeds.items()}

    @cached_property
    def fed_bounds(self) -> list[tuple[str, str, str]]:
        """A fed value, the one that bounds it, and what it is called."""
        found = variable_bounds(self.step.desc, self.step.ops)
        return [t for t in found if t[0] in self.rules and t[1] in self.rules]

    def padding(self) -> Padding:
        """A new Padding for this step's ragged feeds."""
        feeds = self.step.feeds.items()
        batches = frozenset(n for n, v in feeds if not v.lod_level and (v.shape or (0,))[0] < 0)
        inner, offsets = inner_levels(self.step), goes_by_offsets(self.step)
        return Padding(batches, inner, offsets, self.batch_sizes, not self.reads_only)

    def check_feed(self, feed: Mapping[str, Any], parts: int = 1) -> dict[str, Any]:
        """The fed values that the step takes; `parts` is the number of parts in which they then go
        to devices. Raises FeedError for a missing feed or one that does not fit.

        Names that the program does not know are ignored with a warning. They are an error on
        several devices, as in 1.8.5, and if another feed is missing.
        """
        rules = self.rules
        values: dict[str, Any] = {}
        unknown: list[FeedError] = []
        for name, value in feed.items():
            rule = rules.get(name)
            if rule is not None:
                if parts > 1:
                    rule.refuse_parts(parts)
                try:
                    values[name] = (
                        self.where.fed(rule(value))
                        if name not in self.fixed
                        else fixed(rule(value))
                    )
                except FeedError as error:
                    raise overwritten(error, name, self.step.desc) from None
            else:
                var = self.step.desc.find_var(name)
                if var is None:
                    unknown.append(unknown_feed(name, self.step.desc))
                else:
                    rule_for(var, readers=())(value)  # fed, but no fetch depends on it
        if unknown and (len(values) < len(rules) or self.where.count > 1):
            raise unknown[0]
        for passed_over in unknown:
            warn(f"{passed_over}; it is ignored", RuntimeWarning)
        if len(values) < len(rules):
            name = next(n for n in rules if n not in values)
            given = f"; fed are {', '.join(map(repr, feed))}" if feed else ""
            raise FeedError(f"{name!r} must be fed{self.step.reader_of(name)}{given}")
        for name, bound, what in self.fed_bounds:
            if isinstance(values[bound], Fixed) and isinstance(values[name], np.ndarray):
                Range(0, int(values[bound].array.reshape(-1)[0]), None, what).check(
                    name, values[name]
                )
        return values

    def packed(self, values: Any, padding: Padding) -> Any:
        """Checked values with LoDTensors as a step takes them: padded up to a bucket unless an op
        mixes rows.
        """
        if isinstance(values, tuple):
            return tuple(self.packed(one, padding) for one in values)
        if self.fixed:  # some may have been found after these values were checked
            values = {
                n: fixed(v) if n in self.fixed and not isinstance(v, Fixed) else v
                for n, v in values.items()
            }
        return padding.packed(limits(self.limited, values))


def _spanning(desc: ProgramDesc, where: Placement) -> Placement:
    """One device, or the devices among which the ops of a program divide their work."""
    sizes = [
        math.prod(op.attrs["mesh_sizes"])
        for block in desc.blocks
        for op in block.ops
        if op.type == "jax.shard_map"
    ]
    most = max(sizes, default=1)
    if most == 1 or type(where) is not OneDevice or most > len(jax.devices()):
        return where
    return Spanning(where.device, tuple(jax.devices()[:most]))
