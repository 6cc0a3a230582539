"""One trainer of a job in this process: its programs, its scope, and how it runs between
messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...base.loc import warn
from ...errors import EnforceNotMet, FeedError, FetchError, MixesRows, near
from ...feeds.bucketing import bucketed
from ...feeds.feeding import FeedRule, ranges, rule_for, unknown_feed
from ...feeds.fetching import refuse_lod, to_numpy, to_tensor
from ...graph.program import Program
from ...ir import walk
from ...ir.desc import OpDesc, ProgramDesc, VarDesc
from ...lod_tensor import LoDTensor
from ...lower.sizes import SizeNeeds, refuse_fed_sizes
from ...lower.step import carried
from ...ops.ragged import Ragged
from ...ops.registry import GRAD
from ...state.scope import Scope
from .messages import GET, SEND, Message
from .owners import Home
from .segments import Part, Segment, cut
from .tables import HANDLERS

Conversation = Generator[Message, Any, list[Any]]


class LocalTrainer:
    """A trainer. `program`, `startup_program` and `scope` may be inspected at any time.

    id: its number. program: from get_trainer_program. startup_program: the startup program after
    transpile.
    """

    def __init__(self, id: int, program: Program, startup_program: Program, seed: int) -> None:
        self.id = id
        self.program, self.startup_program = program, startup_program
        self.scope = Scope()
        self.steps = 0
        self._seed = seed
        self._blank = frozenset(
            n
            for op in startup_program.desc.blocks[0].ops
            if op.type == "fake_init"
            for n in op.writes
        )
        self._cuts: dict[Any, tuple[Part, ...]] = {}
        self._rules: tuple[ProgramDesc, dict[str, FeedRule]] | None = None
        self._exact = False
        self._local: dict[str, Any] = {}
        self._exchanged: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"LocalTrainer({self.id}, {self.steps} steps)"

    # -- what the job asks of it -------------------------------------------------------------------

    def start(self) -> Conversation:
        """Run the startup program. A seeded one samples the same numbers every time."""
        desc = self.startup_program.desc
        return self._run(desc, cut(desc), {}, (), desc.seed or self._seed, 0)

    def step(self, feed: Mapping[str, Any], fetches: Sequence[str]) -> Conversation:
        """Run the program once on a checked feed; the generator returns the fetched values."""
        desc = self.program.desc
        key = (self.program.version, tuple(fetches))
        if key not in self._cuts:
            refuse_fed_sizes(SizeNeeds.of_program(desc), "LocalJob")
            self._cuts = {k: v for k, v in self._cuts.items() if k[0] == key[0]}
            self._cuts[key] = cut(
                desc, fetches, self._feeds(desc), self._blank, self._shared_names(desc)
            )
        count, self.steps = self.steps, self.steps + 1
        return self._run(desc, self._cuts[key], feed, fetches, desc.seed or self._seed, count)

    def remember(self, parameters: Iterable[str]) -> None:
        """Geo mode: the parameters at the last exchange."""
        self._exchanged = {name: self.scope.find_var(name).value for name in parameters}  # type: ignore[union-attr]

    def exchange(self, where: Mapping[str, Home], trainers: int) -> Generator[Message, Any, None]:
        """Geo mode: send the n-th part of the parameters' change, and add the others' changes.

        delta = (param - old) / n is sent to the pservers, which add it; then param += new - (old +
        delta), old = new.
        """
        for name, home in where.items():
            delta = (self._find(name) - self._exchanged[name]) / np.float32(trainers)
            parts = []
            for (endpoint, block), part in zip(home.blocks, home.split(delta), strict=True):
                yield Message(SEND, self.id, endpoint, f"{block}.delta", part)
                parts.append((yield Message(GET, self.id, endpoint, block)))
            new = jnp.concatenate(parts)
            self.scope.var(name).value = self._find(name) + (new - (self._exchanged[name] + delta))
            self._exchanged[name] = new

    def check_feed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The fed values, checked by name, dtype, shape and range. Raises FeedError, naming the
        trainer.

        Unknown names are ignored with a warning, as on one device.
        """
        rules = self._feeds(self.program.desc)
        for reader in self.program.info.readers:
            feed = {**feed, **reader.next_feed()}
        try:
            unknown = [
                unknown_feed(name, self.program.desc)
                for name in feed
                if self.program.desc.find_var(name) is None
            ]
            for name in rules:
                if name not in feed:
                    raise unknown[0] if unknown else FeedError(f"{name!r} must be fed")
            for passed_over in unknown:
                warn(f"{passed_over}; it is ignored", RuntimeWarning)
            return {name: rules[name](value) for name, value in feed.items() if name in rules}
        except FeedError as error:
            raise FeedError(f"trainer {self.id}: {error}") from None

    def check_fetches(self, fetches: Iterable[str]) -> None:
        """Raises FetchError for a name that the program does not have."""
        vars = self.program.desc.blocks[0].vars
        for name in fetches:
            if name not in vars:
                raise FetchError(
                    f"fetch target {name!r} is not in the program of trainer"
                    f" {self.id}{near(name, vars)}"
                )

    # -- what an op that talks asks of it ----------------------------------------------------------

    def value(self, name: str, op: OpDesc) -> Any:
        """The value of a name, in this step or in the scope."""
        found = self._find(name)
        if found is None:
            raise EnforceNotMet(
                f"trainer {self.id}: op '{op.type}' reads {name!r}, which has no value"
            )
        return found

    def store(self, name: str, value: Any) -> None:
        """Bind a name, in the scope if it outlives the step."""
        var = self._desc.blocks[0].vars.get(name)
        if var is not None and var.persistable:
            self.scope.var(name).value = value
        else:
            self._local[name] = value

    def declared(self, name: str) -> VarDesc | None:
        """The program's declaration of a variable."""
        return self._desc.blocks[0].vars.get(name)

    # -- inside ------------------------------------------------------------------------------------

    def _run(
        self,
        desc: ProgramDesc,
        parts: tuple[Part, ...],
        feed: Mapping[str, Any],
        fetches: Sequence[str],
        seed: int,
        count: int,
    ) -> Conversation:
        self._desc, self._local = desc, bucketed(feed, self._exact)
        silent, at = True, 0
        while at < len(parts):
            part = parts[at]
            if isinstance(part, OpDesc):
                silent &= part.type != SEND
                yield from HANDLERS[part.type](part, self)
            elif not self._computed(part, seed, count, may_retry=silent):
                self._exact, self._local, at = True, bucketed(feed, exact=True), -1
            at += 1
        fetched = [self._fetched(name) for name in fetches]
        self._local = {}
        return fetched

    def _computed(self, segment: Segment, seed: int, count: int, may_retry: bool) -> bool:
        """Run a segment and keep its results. False if its ragged feeds have to be packed exactly
        first.
        """
        try:
            values = {n: v for n in segment.takes if (v := self._find(n)) is not None}
            results = segment(values, seed, count)
        except MixesRows:
            if self._exact or not may_retry:
                raise
            return False
        for name, value in results.items():
            self.store(name, value)
        return True

    def _find(self, name: str) -> Any:
        if name in self._local:
            return self._local[name]
        var = self.scope.find_var(name)
        return None if var is None else var.value

    def _shared_names(self, desc: ProgramDesc) -> dict[str, str]:
        """This trainer's own names -> trainer 0's, so that equal segments are compiled once."""
        own, first = f".trainer_{self.id}", ".trainer_0"
        names = {n for op in desc.blocks[0].ops for n in (*op.reads, *op.writes)} | set(
            desc.blocks[0].vars
        )
        mapping = {n: n.replace(own, first) for n in names if own in n}
        return {} if self.id == 0 or names & set(mapping.values()) else mapping

    def _fetched(self, name: str) -> Any:
        value = self._find(name)
        if value is None:
            raise FetchError(
                f"fetch target {name!r} has no value on trainer {self.id}: no op computes it"
            )
        return value

    def _feeds(self, desc: ProgramDesc) -> dict[str, FeedRule]:
        """The names that must be fed: data that ops read before anything writes it."""
        if self._rules is None or self._rules[0] is not desc:
            ops = desc.blocks[0].ops
            wanted = {
                n: v
                for n in walk.uses(desc, ops, carried)[0]
                if (v := desc.blocks[0].vars.get(n)) and not v.persistable
            }
            bounds = ranges(desc, ops)
            self._rules = (
                desc,
                {
                    n: rule_for(v, bounds.get(n, ()))
                    for n, v in wanted.items()
                    if GRAD not in n or v.is_data
                },
            )
        return self._rules[1]


def shown(names: Sequence[str], values: Sequence[Any], return_numpy: bool) -> list[Any]:
    """Fetched values in the caller's form."""
    if not return_numpy:
        return [to_tensor(v) for v in values]
    for name, value in zip(names, values, strict=True):
        if isinstance(value, LoDTensor) or (isinstance(value, Ragged) and not value.bare):
            raise refuse_lod(name)
    return [to_numpy(v) for v in values]
