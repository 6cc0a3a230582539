"""A pserver job in one process: every trainer and every pserver of a transpiled program, stepped
together.

    job = LocalJob.of(transpiler)           # or from programs: LocalJob([(main, startup), ...],
    {endpoint: (main, startup), ...}) job.start() losses = job.step([batch_of_trainer_0,
    batch_of_trainer_1], fetch_list=[loss])

No sockets, no threads: trainers are generators that yield messages, and a loop answers them.
docs/pserver.md describes what is exact and what is emulated.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ...devices.place import Place, as_place
from ...errors import EnforceNotMet, FeedError, FluidTypeError, FluidValueError, near
from ...graph.fetches import fetch_names
from ...graph.program import Program
from ...graph.variable import Variable
from ...ir.desc import ProgramDesc
from ...look.picture import Picture
from ..pserver_plan import PserverPlan
from .arrivals import Arrivals
from .diagram import conversation
from .messages import BARRIERS, GET, LOOKUP, OPTIMIZE, SEND, SEND_BARRIER, Message
from .owners import Home, placement
from .server import GEO, MODES, SYNC, LocalServer
from .trainer import Conversation, LocalTrainer, shown

Pair = tuple[Program, Program]


class LocalJob:
    """Trainers and pservers of a transpiled program, all in this process.

    trainers: for each trainer its program and startup program. pservers: for each endpoint its
    program and startup program. place: the place of all computations. seed: for random numbers of
    programs without a seed (random_seed 0), and for the order of arrival in an asynchronous job;
    equal seeds give equal runs. staleness: the largest delay, in rounds, of a trainer's gradients
    in an asynchronous job. push_every: the number of steps between exchanges of differences in geo
    mode.

    Raises FluidValueError for programs that do not belong together.
    """

    def __init__(
        self,
        trainers: Sequence[Pair],
        pservers: Mapping[str, Pair],
        place: Place | None = None,
        seed: int = 0,
        staleness: int = 0,
        push_every: int = 1,
    ) -> None:
        if not trainers or not pservers:
            raise FluidValueError(
                f"a job needs a trainer and a pserver at least, not {len(trainers)} and"
                f" {len(pservers)}"
            )
        for pair in (*trainers, *pservers.values()):
            if not (
                isinstance(pair, tuple | list)
                and len(pair) == 2
                and all(isinstance(p, Program) for p in pair)
            ):
                raise FluidTypeError(
                    "every trainer and every pserver is a pair of Programs: the main and the"
                    " startup program"
                )
        self.trainers = [
            LocalTrainer(i, *pair, seed=_derived(seed, "trainer", i))
            for i, pair in enumerate(trainers)
        ]
        self.pservers = {
            ep: LocalServer(ep, i, *pair, seed=_derived(seed, "pserver", i))
            for i, (ep, pair) in enumerate(pservers.items())
        }
        self.mode = self._mode()
        self.arrivals = Arrivals(seed, staleness, ordered=self.mode == SYNC)
        self.started = False
        if not isinstance(push_every, int) or push_every < 1:
            raise FluidValueError(f"push_every is a number of steps, 1 or more, not {push_every!r}")
        self._push_every = push_every
        self._place = as_place(place)
        self._where = placement(
            self.trainers[0].program.desc, self.trainers[0].startup_program.desc
        )

    def _mode(self) -> int:
        servers = list(self.pservers.values())
        modes = {s.mode for s in servers}
        if len(modes) != 1:
            raise FluidValueError(
                "the pservers run in different modes:"
                f" {', '.join(f'{s.endpoint} {MODES[s.mode]}' for s in servers)}"
            )
        for s in servers:
            if s.trainers != len(self.trainers):
                raise FluidValueError(
                    f"pserver {s.endpoint} expects {s.trainers} trainers (Fanin), but the job has"
                    f" {len(self.trainers)}"
                )
        mode = modes.pop()
        for t in self.trainers:
            barriers = [op for op in t.program.desc.blocks[0].ops if op.type == SEND_BARRIER]
            waits = any(mode == SYNC or not op.attrs.get("half_async") for op in barriers)
            if waits != (mode == SYNC):
                raise FluidValueError(
                    f"the pservers run in {MODES[mode]} mode, but the program of trainer {t.id} has"
                    f" {'a' if waits else 'no'} 'send_barrier'; transpile all of them with the same"
                    " sync_mode"
                )
        return mode

    @classmethod
    def of(
        cls, plan: Any, place: Place | None = None, seed: int = 0, staleness: int = 0
    ) -> LocalJob:
        """The job of a transpiled program: all its trainers and pservers.

        plan: a DistributeTranspiler after transpile, one of its programs, or its plan. Other
        arguments as in the constructor. Raises FluidTypeError for anything else.
        """
        if isinstance(plan, Program):
            found = plan.info.pserver_plan
        else:
            found = plan.plan if hasattr(type(plan), "plan") else plan
        if not isinstance(found, PserverPlan):
            raise FluidTypeError(
                "LocalJob.of takes a DistributeTranspiler in pserver mode after transpile, or a"
                " program that it gave, not "
                f"{'a Program that was not transpiled' if isinstance(plan, Program) else type(plan).__name__}"
            )
        trainers = [_programs(found.trainer(i)) for i in range(found.trainers)]
        return cls(
            trainers,
            {ep: _programs(found.pserver(ep)) for ep in found.endpoints},
            place,
            seed,
            staleness,
            found.push_every,
        )

    def __repr__(self) -> str:
        return (
            f"LocalJob({len(self.trainers)} trainers, {len(self.pservers)} pservers,"
            f" {MODES[self.mode]})"
        )

    # -- running -----------------------------------------------------------------------------------

    def start(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Run all startup programs: first the pservers', then the trainers', which get the
        parameters from the pservers.

        parameters: values by parameter name that replace the initial values of the pservers'
        startup programs.
        """
        with jax.default_device(self._place.device()):
            for server in self.pservers.values():
                server.start()
            for name, value in (parameters or {}).items():
                self.set(name, value)
            for _ in self._converse({t.id: t.start() for t in self.trainers}):
                pass
        if self.mode == GEO:
            for trainer in self.trainers:
                trainer.remember(self._where)
        self.started = True

    def step(
        self,
        feeds: Sequence[Mapping[str, Any] | None],
        fetch_list: Sequence[Variable | str] = (),
        return_numpy: bool = True,
    ) -> list[list[Any] | None]:
        """One round: every trainer runs its program once on its feed. Returns the fetched values of
        each.

        feeds: a feed for each trainer, in their order. In asynchronous jobs, None marks a trainer
        without further batches; its result is None. Raises FeedError for feeds that do not fit,
        before anything runs.
        """
        trace = self.trace(feeds, fetch_list, return_numpy)
        while True:
            try:
                next(trace)
            except StopIteration as end:
                return list(end.value)

    def trace(
        self,
        feeds: Sequence[Mapping[str, Any] | None],
        fetch_list: Sequence[Variable | str] = (),
        return_numpy: bool = True,
    ) -> Generator[Message, None, list[list[Any] | None]]:
        """Like step, but message by message: a generator of the messages between trainers and
        pservers.

        Each Message is yielded after its effect (a late one, when it arrives); between two of them
        every program and scope can be inspected. The generator returns the result of step.
        """
        if not self.started:
            raise EnforceNotMet("the job has not started: call start() first")
        names = fetch_names(fetch_list)
        checked = self._checked(feeds)
        taking_part = [self.trainers[i] for i in checked]
        for trainer in taking_part:
            trainer.check_fetches(names)
        for message in self.arrivals.next_round(list(checked)):
            self._deliver(message)
            yield message
        talks = {t.id: self._turn(t, checked[t.id], names) for t in taking_part}
        fetched = yield from self._converse(talks)
        return [
            shown(names, fetched[t.id], return_numpy) if t.id in fetched else None
            for t in self.trainers
        ]

    def run(
        self,
        readers: Sequence[Iterable[Mapping[str, Any]]],
        fetch_list: Sequence[Variable | str] = (),
        return_numpy: bool = True,
    ) -> list[list[list[Any]]]:
        """Steps until the readers have no more batches. Returns, for each trainer, the fetched
        values of all its steps.

        readers: an iterable of feeds for each trainer. Raises FeedError, naming the trainer, if one
        ends before the others in a synchronous job. In an asynchronous one the others continue, and
        messages in transit arrive at the end.
        """
        if len(readers) != len(self.trainers):
            raise FeedError(
                f"the job has {len(self.trainers)} trainers, but {len(readers)} readers are given"
            )
        iterators = [iter(r) for r in readers]
        results: list[list[list[Any]]] = [[] for _ in readers]
        while True:
            feeds = [next(it, None) for it in iterators]
            if all(f is None for f in feeds):
                self.flush()
                return results
            for done, got in zip(results, self.step(feeds, fetch_list, return_numpy), strict=True):
                if got is not None:
                    done.append(got)

    def flush(self) -> None:
        """Deliver all messages in transit (asynchronous jobs with staleness)."""
        for message in self.arrivals.rest():
            self._deliver(message)

    def diagram(self, messages: Iterable[Message]) -> Picture:
        """A sequence diagram of messages: trainers and pservers side by side, time from top to
        bottom.

            job.diagram(job.trace(feeds))
        """
        return conversation(
            f"messages of {self!r}", len(self.trainers), list(self.pservers), messages
        )

    # -- parameters --------------------------------------------------------------------------------

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that live on the pservers."""
        return tuple(self._where)

    def get(self, name: str) -> np.ndarray:
        """The value of a parameter on the pservers, assembled from its blocks."""
        home = self._home(name)
        return home.join([self.pservers[ep].value(block) for ep, block in home.blocks])

    def set(self, name: str, value: Any) -> None:
        """Store a parameter on the pservers, split into its blocks; trainers receive it at the end
        of their next step.

        Raises FluidValueError for an unknown name, or a value of another shape or dtype.
        """
        old, value, home = self.get(name), np.asarray(value), self._home(name)
        if value.shape != old.shape or value.dtype != old.dtype:
            raise FluidValueError(
                f"parameter {name!r} is {old.dtype} {list(old.shape)}, not {value.dtype}"
                f" {list(value.shape)}"
            )
        for (endpoint, block), part in zip(home.blocks, home.split(value), strict=True):
            self.pservers[endpoint].put(block, jax.numpy.array(part))

    def _home(self, name: str) -> Home:
        if name not in self._where:
            raise FluidValueError(f"no pserver holds a parameter {name!r}{near(name, self._where)}")
        return self._where[name]

    # -- inside ------------------------------------------------------------------------------------

    def _checked(self, feeds: Any) -> dict[int, dict[str, Any]]:
        """The checked feed of every trainer that takes part."""
        if (
            isinstance(feeds, Mapping)
            or not isinstance(feeds, Sequence)
            or len(feeds) != len(self.trainers)
        ):
            given = (
                "one dict"
                if isinstance(feeds, Mapping)
                else f"{len(feeds)}"
                if isinstance(feeds, Sequence)
                else type(feeds).__name__
            )
            raise FeedError(
                f"a job takes a list of feeds, one for each of its {len(self.trainers)} trainers,"
                f" not {given}"
            )
        done = [i for i, f in enumerate(feeds) if f is None]
        if done and (self.mode == SYNC or len(done) == len(feeds)):
            raise FeedError(
                f"trainer {done[0]} has no batch for step {self.trainers[done[0]].steps}, but"
                " others have: in a synchronous job the pservers wait for the gradients of all"
                " trainers, so give every trainer the same number of batches"
            )
        return {
            i: t.check_feed(f)
            for i, (t, f) in enumerate(zip(self.trainers, feeds, strict=True))
            if f is not None
        }

    def _turn(
        self, trainer: LocalTrainer, feed: Mapping[str, Any], names: Sequence[str]
    ) -> Conversation:
        """A trainer's part of a round."""
        fetched = yield from trainer.step(feed, names)
        if self.mode == GEO and trainer.steps % self._push_every == 0:
            yield from trainer.exchange(self._where, len(self.trainers))
        return fetched

    def _converse(self, talks: dict[int, Conversation]) -> Generator[Message, None, dict[int, Any]]:
        """Run the trainers until all are done; returns their results."""
        answers: dict[int, Any] = {}
        waiting: dict[int, Message] = {}
        results: dict[int, Any] = {}
        while talks:
            ready = [i for i in talks if i not in waiting]
            if not ready:
                yield from self._meet(waiting, results)
                continue
            chosen = self.arrivals.pick(ready)
            with jax.default_device(self._place.device()):
                try:
                    message = talks[chosen].send(answers.pop(chosen, None))
                except StopIteration as end:
                    results[chosen] = end.value
                    del talks[chosen]
                    continue
                if message.kind == SEND and self.arrivals.held(message):
                    continue
                answers[chosen] = self._answer(message)
            if message.kind in BARRIERS:
                waiting[chosen] = message
            yield message
        return results

    def _meet(self, waiting: dict[int, Message], ended: Mapping[int, Any]) -> Iterator[Message]:
        """Release the running trainers from a barrier at which all wait, after a round of the
        pservers if the barrier requires one.
        """
        kinds = {m.kind for m in waiting.values()}
        if len(kinds) != 1 or ended:
            first = next(iter(waiting.values()))
            others = [f"trainer {i} has ended its step" for i in ended] or [
                str(m) for m in waiting.values() if m.kind != first.kind
            ]
            raise EnforceNotMet(f"{first}, but {others[0]}: the trainers' programs differ")
        message, *_ = waiting.values()
        waiting.clear()
        if message.kind != SEND_BARRIER or self.mode != SYNC:
            return
        for server in self.pservers.values():
            with jax.default_device(self._place.device()):
                server.optimize()
            yield Message(OPTIMIZE, None, server.endpoint)

    def _answer(self, message: Message) -> Any:
        if message.kind == SEND:
            self._deliver(message)
            return None
        if message.kind in BARRIERS:
            return None
        server = self._server(message)
        assert message.trainer is not None
        if message.kind == LOOKUP:
            return server.lookup(message.name, message.value, message.trainer)
        assert message.kind == GET
        return server.get(message.name, message.trainer)

    def _deliver(self, message: Message) -> None:
        assert message.trainer is not None
        self._server(message).receive(message.name, message.value, message.trainer)

    def _server(self, message: Message) -> LocalServer:
        found = self.pservers.get(message.endpoint)
        if found is None:
            hint = near(message.endpoint, self.pservers)
            raise FluidValueError(
                f"trainer {message.trainer} talks to {message.endpoint!r}, which is not a pserver of"
                f" the job{hint}"
            )
        return found


def _programs(descs: tuple[ProgramDesc, ProgramDesc]) -> Pair:
    return Program.from_desc(descs[0]), Program.from_desc(descs[1])


def _derived(seed: int, *party: Any) -> int:
    """A distinct nonzero seed for every party."""
    return zlib.crc32(f"{seed} {party}".encode()) or 1


__all__ = ["LocalJob", "LocalServer", "LocalTrainer", "Message"]
