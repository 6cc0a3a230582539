"""fluid.plan: estimates the cost of a program on many devices."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ..base import units
from ..devices.placement import refuse_mesh
from ..errors import FluidError, FluidTypeError, FluidValueError, ShapeError
from ..graph.fetches import fetch_names, found_names
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir import walk
from ..lower.sizes import refuse_fed_sizes
from ..lower.step import Step
from ..memory import compiler
from ..memory.budget import Sizing, fit
from ..memory.sizes import Lengths, arguments
from .devices import Device, as_device
from .figures import COMPUTE, LINKS, MEMORY, ROOM, Row
from .links import Links, as_links, wire_bytes
from .local import Local, local
from .ranks import (
    STRATEGIES,
    WHOLE,
    Update,
    as_strategy,
    held,
    rank_program,
    refuse_talking,
    trains,
    update,
)
from .report import Plan
from .work import Work

JOINED = 30 * 2**20  # bytes: XLA on GPUs joins smaller collectives of a kind into one message


def plan(
    program: Program,
    devices: int | Sequence[int] = (8, 64, 512, 4096),
    batch: int | None = None,
    batch_per_device: int | None = None,
    strategies: str | Sequence[str] | None = None,
    links: Links | Any = None,
    device: Device | str | None = None,
    measured: Mapping[int, Any] | None = None,
    cores: int | None = None,
    budget: Any = None,
    compiled: bool = False,
    fetch_list: Sequence[Variable | str] | Variable | str | None = None,
    feed_shapes: Mapping[str, Sequence[int]] | None = None,
    lengths: Lengths | None = None,
) -> Plan:
    """The cost of a step of the program on many devices; nothing is run or allocated, and the
    devices need not exist.

        print(fluid.plan(main, devices=(8, 4096), batch_per_device=64, links="h100", device="h100",
        fetch_list=[loss]))

    devices: one number of devices, or several. batch: samples of all devices together, which the
    devices have to divide; or batch_per_device. strategies: of a program that trains, "data
    parallel" (each device has everything), "pieces" (the optimizer's state in pieces,
    ReduceStrategy.Reduce) and "pservers" (each device is a trainer and a pserver: blocks, and
    tables by rows); default all three.

    links: a preset's name ("h100"), Links, a Link, or a speed ("50GB/s", "400Gb/s"). device: a
    preset's name or a Device: its peaks and its memory. measured: seconds of a step on one device,
    {samples: seconds}; between two of them the time goes with the work. Without it a step takes
    what the device takes at its peak. cores: the devices are virtual ones of one machine that share
    so many cores, and `measured` is in core seconds. The step's time is what the device takes and
    then what the links take: nothing is assumed to be done meanwhile.

    budget: bytes that the step of one device is to need at most, as in memory_optimize; then values
    are computed again. compiled: ask the compiler for the temporaries, which takes as long as
    compiling does. feed_shapes: as in memory_report, with -1 for the batch. lengths: how many rows
    the sequences of ragged feeds have, all equal; {name: length} if feeds differ, and a list for
    one with several levels of sequences, outermost first; a sample is a sequence of the first.

    Raises FluidValueError for devices that are not positive integers, a batch that they do not
    divide, links that are missing, zero or in an unknown unit; what memory_report raises for sizes
    that nothing tells; UnsupportedError for a program that has collectives of its own, for ragged
    feeds without lengths, and for feeds whose values decide sizes.
    """
    if not isinstance(program, Program):
        raise FluidTypeError(f"plan takes a Program, not {type(program).__name__}")
    refuse_mesh("a plan is made for meshes that need not be there")
    counts = _counts(devices)
    program = program.holding(fetch_names(fetch_list))
    found = found_names(program, fetch_list)
    step = Step(program.desc, found)
    if not step.ops:
        raise FluidValueError(
            "no op of the program would run, since nothing is fetched or persistable; pass"
            " fetch_list=[...]"
        )
    refuse_fed_sizes(step.sizes, "a plan")
    refuse_talking(step.ops)
    job = _Job(
        program,
        found,
        dict(feed_shapes or {}),
        lengths,
        as_device(device),
        None,
        _times(measured),
        _cores(cores),
        budget,
        compiled,
    )
    if links is not None or (max(counts) > 1 and job.timed):
        job = replace(job, links=as_links(links))
    each = {n: _each(n, batch, batch_per_device) for n in counts}
    chosen = _strategies(strategies, trains(program.desc))
    return Plan(tuple(job.row(s, n, each[n]) for s in chosen for n in counts), job.given)


def _counts(devices: Any) -> list[int]:
    counts = list(devices) if isinstance(devices, list | tuple | range) else [devices]
    for n in counts:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise FluidValueError(f"devices is a positive integer or several, not {n!r}")
    if not counts:
        raise FluidValueError("devices is empty; give at least one number of devices")
    return list(dict.fromkeys(counts))


def _each(devices: int, batch: Any, batch_per_device: Any) -> int:
    if (batch is None) == (batch_per_device is None):
        raise FluidValueError(
            "give one of batch (samples of all devices together) and batch_per_device"
        )
    value, what = (batch, "batch") if batch is not None else (batch_per_device, "batch_per_device")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FluidValueError(f"{what} is a positive integer, not {value!r}")
    if batch_per_device is not None:
        return value
    if value % devices:
        raise FluidValueError(
            f"a batch of {value:,} samples does not divide over {devices:,} devices"
        )
    return value // devices


def _strategies(given: Any, training: bool) -> list[str]:
    if given is None:
        return list(STRATEGIES) if training else [WHOLE]
    chosen = [as_strategy(s) for s in (given if isinstance(given, list | tuple) else [given])]
    if not training and chosen != [WHOLE]:
        raise FluidValueError(
            f"strategies other than {WHOLE!r} are for programs that train, and this one has no"
            " gradient ops"
        )
    return list(dict.fromkeys(chosen))


def _times(measured: Any) -> dict[int, float]:
    if measured is None:
        return {}
    if not isinstance(measured, Mapping):
        raise FluidTypeError(
            "measured is {samples: seconds} of one device's step, such as {32: 0.05}, not"
            f" {measured!r}"
        )
    for samples in measured:
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
            raise FluidValueError(
                f"measured has the seconds of a positive number of samples, not of {samples!r}"
            )
    found = {n: units.seconds(f"the time of {n} samples", t) for n, t in measured.items()}
    if not all(found.values()):
        raise FluidValueError(
            f"a measured step takes a positive number of seconds, not {measured!r}"
        )
    return found


def _cores(cores: Any) -> int | None:
    if cores is not None and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise FluidValueError(
            f"cores is how many cores the devices share, a positive integer, not {cores!r}"
        )
    return cores


@dataclass(frozen=True)
class _Phases:
    """The parts of a device's step: before the exchange of gradients, and the update."""

    before: Work
    update: Work

    @property
    def flops(self) -> float:
        return self.before.total + self.update.total

    @property
    def traffic(self) -> float:
        return self.before.traffic + self.update.traffic

    def compute(self, device: Device) -> float:
        return _compute(self.before, device) + _compute(self.update, device)

    def seconds(self, device: Device) -> float:
        """The least time: within a phase operations and memory may overlap, but the second phase
        waits for the first.
        """
        return sum(
            max(_compute(w, device), w.traffic / device.bandwidth)
            for w in (self.before, self.update)
        )


def _compute(work: Work, device: Device) -> float:
    flops = {**work.flops}
    flops["float32"] = flops.get("float32", 0.0) + work.others
    return sum(f / device.peak(dtype) for dtype, f in flops.items())


@dataclass(frozen=True, eq=False)
class _Job:
    """One program, and the data that its times are computed from."""

    program: Program
    fetches: tuple[str, ...]
    feed_shapes: Mapping[str, Sequence[int]]
    lengths: Lengths | None
    device: Device | None
    links: Links | None
    measured: Mapping[int, float]
    cores: int | None
    budget: Any
    compiled: bool

    @property
    def timed(self) -> bool:
        return self.device is not None or bool(self.measured)

    @property
    def given(self) -> dict[str, str]:
        given = {}
        ops = (op for _, op in walk.ops(self.program.desc))
        hints = [op.attrs["spec"] or "-" for op in ops if op.type == "jax.sharding_constraint"]
        if hints:
            given["hints"] = (
                f"{len(hints)} of with_sharding_constraint ({' '.join(dict.fromkeys(hints))}) not"
                " followed: a strategy decides what lies where"
            )
        if self.device is not None:
            given["device"] = f"{self.device.name}, {self.device.memory / 1e9:g} GB"
        if self.links is not None:
            within, between = self.links.within, self.links.between
            given["links"] = (
                f"{self.links.name}: {within.speed / 1e9:g} GB/s a device,"
                f" {within.latency * 1e6:g} us"
            )
            if between is not None:
                given["links"] += (
                    f"; between groups of {self.links.group}: {between.speed / 1e9:g} GB/s,"
                    f" {between.latency * 1e6:g} us"
                )
        if self.measured:
            given["measured on one device"] = ", ".join(
                f"{n:,} samples in {t:.4g} s" for n, t in self.measured.items()
            )
        return given

    def row(self, strategy: str, ranks: int, each: int) -> Row:
        one = self.local(each)
        desc = rank_program(self.program, strategy, ranks)
        keeps = held(self.program.desc, desc, self.fetches)
        alone = ranks == 1
        # XLA's all-reduce on GPUs overwrites its operand
        in_place = self.device is not None
        last = self.update(each) if alone else update(desc, self.fetches, ranks, one, in_place)
        payload = Counter[str]()
        for m in last.messages:
            payload[m.kind] += m.bytes
        again, temporaries = self._temporaries(each)
        # ids, rows and gradients on their way may be far more than what one computes
        exchange = 0 if alone else last.live
        activations = max(one.activations, exchange)
        temporaries = None if temporaries is None else max(temporaries, exchange)
        work = _Phases((one.work - self.update(each).work) * again, last.phase)
        compute, traffic, own = self._seconds(work, ranks)
        over = (
            None
            if self.links is None
            else self._over(self.links, payload, Counter(m.kind for m in last.messages), ranks)
        )
        seconds = None if own is None or (over is None and not alone) else own + (over or 0.0)
        row = Row(
            strategy, ranks, each * ranks, each, keeps.parameters, keeps.state, one.feeds, activations, temporaries,
            work.flops, dict(payload), sum(wire_bytes(k, b, ranks) for k, b in payload.items()),
            compute, traffic, over, seconds, None,
        )  # fmt: skip
        return replace(row, bound=self._bound(row))

    def update(self, each: int) -> Update:
        """The work of one device for its update."""
        if each not in self._updates:
            self._updates[each] = update(self.program.desc, self.fetches, 1, self.local(each))
        return self._updates[each]

    @cached_property
    def _updates(self) -> dict[int, Update]:
        return {}

    def local(self, each: int) -> Local:
        if each not in self._locals:
            with _fitting(each):
                self._locals[each] = local(
                    self.program.desc, self.fetches, each, self.feed_shapes, self.lengths
                )
        return self._locals[each]

    @cached_property
    def _locals(self) -> dict[int, Local]:
        return {}

    @cached_property
    def _asked(self) -> dict[int, tuple[float, int | None]]:
        return {}

    def _temporaries(self, each: int) -> tuple[float, int | None]:
        """How many times the work is done in all (1: once), and the compiler's temporaries, if it
        was asked.
        """
        if each not in self._asked:
            self._asked[each] = (
                self._compiled(each) if self.compiled or self.budget is not None else (1.0, None)
            )
        return self._asked[each]

    def _compiled(self, each: int) -> tuple[float, int]:
        shapes = {
            n: [each if d == -1 else d for d in shape] for n, shape in self.feed_shapes.items()
        }
        if self.budget is not None:
            chosen = fit(
                self.program, self.budget, Sizing(each, shapes, self.lengths), list(self.fetches)
            ).chosen
            return 1.0 + chosen.way.work, chosen.figures.temporaries
        types = arguments(Step(self.program.desc, self.fetches), each, shapes, self.lengths)
        figures = compiler.run_figures(
            self.program.desc, self.fetches, types, jax.local_devices()[0], "default"
        )
        return 1.0, figures.temporaries

    def _seconds(
        self, work: _Phases, ranks: int
    ) -> tuple[float | None, float | None, float | None]:
        """How long a device computes, how long its memory takes for what has to pass through it,
        and how long both take it together.
        """
        traffic = work.traffic / self.device.bandwidth if self.device is not None else None
        if self.measured:
            known = sorted((self._weight(self._whole(n)), t) for n, t in self.measured.items())
            taken = self._shared(_interpolated(self._weight(work), known), ranks)
            return taken, traffic, taken
        if self.device is None:
            return None, None, None
        return work.compute(self.device), traffic, work.seconds(self.device)

    def _whole(self, each: int) -> _Phases:
        """A step of one device on the whole program."""
        return _Phases(self.local(each).work - self.update(each).work, self.update(each).phase)

    def _weight(self, work: _Phases) -> float:
        """What measured times scale with: the minimal time on the device, or, if no device is
        given, the number of operations.
        """
        return work.flops if self.device is None else work.seconds(self.device)

    def _shared(self, seconds: float, ranks: int) -> float:
        """Virtual devices share cores: all of their work over the cores, and no device is done
        before its own is.
        """
        return (
            seconds
            if self.cores is None
            else max(seconds * ranks / self.cores, seconds / self.cores)
        )

    def _over(
        self, links: Links, payload: Mapping[str, int], many: Mapping[str, int], ranks: int
    ) -> float:
        together = {
            kind: min(many[kind], math.ceil(size / JOINED)) for kind, size in payload.items()
        }
        taken = sum(
            links.seconds(kind, size, ranks, together[kind]) for kind, size in payload.items()
        )
        return taken if self.cores is None else taken * max(1.0, ranks / self.cores)

    def _bound(self, row: Row) -> str | None:
        if self.device is not None and row.bytes > self.device.memory:
            return ROOM
        times = {COMPUTE: row.compute, MEMORY: row.traffic, LINKS: row.links}
        known = {what: t for what, t in times.items() if t is not None}
        return max(known, key=lambda what: known[what]) if row.seconds is not None else None


@contextlib.contextmanager
def _fitting(each: int) -> Iterator[None]:
    """Within the block, add the number of samples to errors for shapes that do not fit."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, FluidError) and not isinstance(error, ShapeError):
            raise
        found = ShapeError(
            f"a step on {each:,} samples does not fit the program:"
            f" {str(error).splitlines()[0][:200]}"
        )
        for text in getattr(error, "__notes__", ()):
            if text.startswith("in op"):  # jax's note about its frames does not help here
                found.add_note(text)
        raise found from error


def _interpolated(work: float, known: Sequence[tuple[float, float]]) -> float:
    """The time of so much work, between two measured ones; outside of them it goes with the nearest
    one's.
    """
    least, most = known[0], known[-1]
    if work <= least[0]:
        return least[1] * work / least[0] if least[0] else least[1]
    if work >= most[0]:
        return most[1] * work / most[0]
    return float(np.interp(work, [w for w, _ in known], [t for _, t in known]))
