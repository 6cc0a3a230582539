"""Two or more ways to compute the same, timed in turns; what their executables need; which kernels
they run.
"""

from __future__ import annotations

import gc
import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.devices import platforms
from fluidjax.ops.products import products

from ..flax_models import training
from .records import Found

TURN, TURNS = (
    (0.12, 9) if jax.default_backend() != "cpu" else (0.002, 2)
)  # seconds a side has in a turn, and how many turns


def tiny() -> bool:
    """Whether this is a rehearsal: the CPU in the GPU's place."""
    return jax.default_backend() == "cpu"


def choose(real: Any, small: Any) -> Any:
    """A size for the GPU, and one for a rehearsal."""
    return small if tiny() else real


def on_device(feed: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays on the device, with their dtypes."""
    with jax.enable_x64(True):
        return {n: jax.device_put(v) for n, v in feed.items()}


def narrowed(feed: Mapping[str, Any]) -> dict[str, Any]:
    """The integers as JAX has them by default."""
    return {n: v.astype(np.int32) if v.dtype == np.int64 else v for n, v in feed.items()}


@contextmanager
def packing(how: platforms.Packing | None) -> Iterator[None]:
    """Steps that are made meanwhile have their state packed so."""
    chosen = replace(platforms.tuning(jax.default_backend()), packs=how)
    with mock.patch.object(platforms, "tuning", lambda _platform: chosen):
        yield


UNPACKED = partial(packing, None)


@dataclass
class Side:
    """One way to compute. step: a call with what is fed. compiled: its step lowered, and compiled,
    for figures; None where none are asked for. within: what holds while the step is made."""

    name: str
    step: Callable[[Any], Any]
    feed: Any
    compiled: Callable[[], tuple[Any, Any]] | None = None
    first: float = 0.0
    found: Found = field(default_factory=dict)
    within: Callable[[], AbstractContextManager[None]] = nullcontext

    def prepare(self) -> None:
        """The first call: it traces, compiles and runs."""
        began = time.perf_counter()
        with self.within():
            jax.block_until_ready(self.step(self.feed))
        self.first = time.perf_counter() - began


class Fluid:
    """A Fluid program behind an Executor."""

    def __init__(
        self,
        program: fluid.Program,
        startup: fluid.Program,
        fetch: Sequence[Any],
        scope: fluid.Scope | None = None,
    ) -> None:
        self.program, self.fetch, self.scope = program, list(fetch), scope or fluid.Scope()
        self.exe = fluid.Executor()
        self.exe.run(startup, scope=self.scope)

    def run(self, feed: Mapping[str, Any]) -> Any:
        """The fetched values, which are computed while Python goes on."""
        return self.exe.run(
            self.program, feed=feed, fetch_list=self.fetch, scope=self.scope, return_numpy=False
        )

    def numpy(self, feed: Mapping[str, Any]) -> Any:
        """The fetched values as a script gets them."""
        return self.exe.run(self.program, feed=feed, fetch_list=self.fetch, scope=self.scope)

    def compiled(self, feed: Mapping[str, Any]) -> tuple[Any, Any]:
        """The step that ran for such a feed."""
        (compiled,) = self.exe.compiled_steps(self.program)
        with jax.enable_x64(True):
            lowered = compiled.function().lower(
                *compiled.bind(self.scope).arrays, compiled.plan.check_feed(feed), 0, 0
            )
            return lowered, lowered.compile()

    def state_bytes(self) -> int:
        """Of the step's variables."""
        (compiled,) = self.exe.compiled_steps(self.program)
        return sum(a.nbytes for group in compiled.bind(self.scope).arrays for a in group)

    def gflop(self, samples: int) -> float:
        """Of the step's convolutions and matrix products."""
        (compiled,) = self.exe.compiled_steps(self.program)
        return products(compiled.step.desc, compiled.step.ops) * samples / 1e9

    def side(self, name: str, feed: Mapping[str, Any]) -> Side:
        given = on_device(feed)
        return Side(name, self.run, given, lambda: self.compiled(given))


class Flax:
    """A model's hand-written training step."""

    def __init__(self, model: Any, optimizer: Any, feed: Mapping[str, Any]) -> None:
        self.state, self.step = training(model, optimizer, narrowed(feed), jitted=True)

    def run(self, feed: Mapping[str, Any]) -> Any:
        self.state, loss = self.step(self.state, feed)
        return loss

    def numpy(self, feed: Mapping[str, Any]) -> Any:
        return np.asarray(self.run(feed))

    def side(self, name: str, feed: Mapping[str, Any]) -> Side:
        given = on_device(narrowed(feed))
        return Side(name, self.run, given, lambda: both(self.step, self.state, given))


def both(function: Any, *args: Any) -> tuple[Any, Any]:
    """A jitted function lowered, and compiled."""
    lowered = function.lower(*args)
    return lowered, lowered.compile()


def timed(sides: Sequence[Side], turns: int = TURNS, turn: float = TURN) -> dict[str, list[float]]:
    """Seconds a call of each side, turn by turn; who begins changes."""
    calls = {}
    for side in sides:
        for _ in range(2):
            jax.block_until_ready(side.step(side.feed))
        began = time.perf_counter()
        jax.block_until_ready(side.step(side.feed))
        calls[side.name] = min(max(1, int(turn / (time.perf_counter() - began))), 300)
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    gc.collect()
    gc.disable()
    try:
        for k in range(turns):
            for side in sides[:: 1 if k % 2 else -1]:
                last, count = None, calls[side.name]
                began = time.perf_counter()
                for _ in range(count):
                    last = side.step(side.feed)
                jax.block_until_ready(last)
                times[side.name].append((time.perf_counter() - began) / count)
    finally:
        gc.enable()
    return times


def compared(times: Mapping[str, Sequence[float]], peer: str, samples: int = 0) -> dict[str, Found]:
    """Of each side the median milliseconds, the ratio to the peer's (the median over turns), and
    samples a second.
    """
    rows = {}
    for name, each in times.items():
        ratio = statistics.median(a / b for a, b in zip(each, times[peer], strict=True))
        rows[name] = {
            "ms": statistics.median(each) * 1e3,
            "ratio": ratio,
            "least_ms": min(each) * 1e3,
        }
        if samples:
            rows[name]["samples_a_second"] = samples / statistics.median(each)
    return rows


def executable(side: Side, case: str) -> Found:
    """What the compiler says of a side's step: megabytes, how many kernels; its text is kept."""
    assert side.compiled is not None
    _, compiled = side.compiled()
    memory, text = compiled.memory_analysis(), compiled.as_text()
    found: Found = {"first_s": side.first}
    if memory is not None:
        sizes = (
            memory.temp_size_in_bytes,
            memory.argument_size_in_bytes,
            memory.output_size_in_bytes - memory.alias_size_in_bytes,
        )
        found["temporaries_mb"], found["total_mb"] = sizes[0] / 1e6, sum(sizes) / 1e6
    entry = text[text.rfind("ENTRY ") :]
    found["instructions"] = {
        k: entry.count(f" {k}(")
        for k in ("fusion", "custom-call", "copy", "transpose", "conditional", "while")
    }
    folder = os.environ.get("GPU_WORK")
    if folder:
        there = Path(folder) / "hlo"
        there.mkdir(exist_ok=True)
        name = f"{case}-{side.name}".replace("/", "_").replace(" ", "_").replace(",", "")
        (there / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode(), 5))
    return found


def peak() -> float | None:
    """The most megabytes that this process has had on the device, where it counts."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats["peak_bytes_in_use"] / 1e6 if "peak_bytes_in_use" in stats else None


def kernels(side: Side, steps: int = 3, most: int = 14) -> Found:
    """Which kernels take a side's time: microseconds a step, as the profiler saw them."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready([side.step(side.feed) for _ in range(steps)])
        (path,) = Path(folder).rglob("*.xplane.pb")
        planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
    found: dict[str, list[float]] = {}
    for plane in planes:
        if "device:GPU" not in plane.name:
            continue
        for line in plane.lines:
            if not line.name.startswith("Stream"):
                continue
            for event in line.events:
                found.setdefault(event.name, []).append(event.duration_ns / 1e3 / steps)
    largest = sorted(found, key=lambda n: -sum(found[n]))[:most]
    rows = [[name[:110], sum(found[name]), len(found[name]) / steps] for name in largest]
    return {
        "us": sum(map(sum, found.values())),
        "launches": sum(map(len, found.values())) / steps,
        "largest": rows,
    }
