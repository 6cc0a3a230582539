"""docs/compile-time.md: what each op, with its gradient, adds to the compilation of a step, at its sample's size.

    python -m tests.ops.compile_time            measures every op (make compile-times; a quarter of an hour)
    python -m tests.ops.compile_time OP ...     measures these again, or single samples (rnn-gru-0)

CPU seconds (all threads) of the first `Executor.run` of a program that has one sample's op and its gradient ops: feed, trace, lower,
compile, run and fetch, with empty caches; less those of a program with one `scale`. Of an op's samples that one is measured which is
traced to the longest text, or that was named.
"""

from __future__ import annotations

import gc
import re
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from benchmarks.page import machine
from fluidjax.errors import FluidError
from fluidjax.ops import ring
from fluidjax.ops.registry import lookup
from fluidjax.runtime import dear

from .recorded import recorded
from .running import Run
from .sample import Sample
from .samples import all_samples

PATH = Path(__file__).parents[2] / "docs" / "compile-time.md"
TABLE = Path(dear.__file__)  # what tiers go by
LIMIT = 0.5  # seconds that an op may add
TABLED = LIMIT / 2  # and that it takes to stand in TABLE
AGAIN = 3  # measurements of what is near the limit; the least counts, as other processes only ever add
HEAD = """# What an op adds to a step's compilation

CPU seconds (all threads) that the first `Executor.run` of a program with one op and its gradient ops takes, from the feed to the
fetched arrays, with empty caches, less those of a program with one `scale`. One sample of an op is measured (`tests/ops/samples`), that
which is traced to the longest text unless another was named. `optimised` is XLA's ordinary effort, as in small programs and in later
steps of others; `quick` is how the first steps of those are [compiled](tiers.md) that are large or have ops that take {limit} s or more
together, measured where the other is above what is asked: at most {limit} s. So what an op adds to the first step is the lower of both
where `quick` is given. What is near the limit was measured {again} times, and the least counts. Nearly all of it is the code
that XLA writes: some 15 ms for each kernel, however small its arrays; `gru` with its gradient has 50 kernels. `make compile-times`
measures all ops, `python -m tests.ops.compile_time OP` single ones. A sample is named FAMILY-OP-NUMBER, as in
[errors-by-op.md](errors-by-op.md). What tiers go by is the column `optimised` from {tabled} s on. Other work on the machine makes CPU
seconds longer, up to twice as long: its load stands in each row. Ops that Python runs and those that need other processes are left out.

{summary}

| op | optimised | quick | sample | measured |
| --- | --- | --- | --- | --- |
"""
ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\d.]*) \| (\S+) \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Named:
    """A sample, and where it stands."""

    family: str
    index: int
    sample: Sample

    def __str__(self) -> str:
        return f"{self.family}-{self.sample.op}-{self.index}"


class Net:
    """A program of one sample: what it is fed and what is fetched."""

    def __init__(self, named: Named | None) -> None:
        self.main, self.scope = fluid.Program(), fluid.Scope()
        self.feed: dict[str, Any] = {}
        self.block = self.main.global_block()
        with fluid.program_guard(self.main, fluid.Program()):
            if named is None:
                x = self._given("X", 0, "x", np.ones(3, np.float32), None)
                self.fetched = [fluid.layers.scale(x, 2.0)]
            else:
                self._build(named)

    def _build(self, named: Named) -> None:
        sample, definition = named.sample, lookup(named.sample.op)
        ins = {s: [self._given(s, i, n, a, sample) for i, (n, a) in enumerate(sample.variables(s))] for s in sample.inputs}
        outs: dict[str, list[Any]] = {}
        for slot in definition.outputs:
            if slot.name in sample.inplace:
                outs[slot.name] = [ins[sample.inplace[slot.name]][0]]
            elif slot.name in sample.outputs or not slot.optional or sample.op == "rnn":
                count = sample.outputs.get(slot.name) or 1
                outs[slot.name] = [self.block.create_var(name=f"out.{slot.name}.{i}", stop_gradient=False) for i in range(count)]
        self.block.append_op(type=sample.op, inputs=ins, outputs=outs, attrs=dict(sample.attrs))
        between = {s.name for s in definition.outputs if s.intermediate}
        shown = [v for s in sample.outputs for v in outs[s] if s not in between]
        self.fetched = shown or [v for s in sample.outputs for v in outs[s]]
        if sample.grad:
            self._differentiate(named, ins, outs)

    def _differentiate(self, named: Named, ins: dict[str, list[Any]], outs: dict[str, list[Any]]) -> None:
        sample = named.sample
        answer = recorded(named.family, named.index, sample) if sample.paddle else {}
        targets, flows = [], []
        for slot in sample.outputs:
            values = answer.get(slot)
            for i, target in enumerate(outs[slot]):
                value = values[i] if isinstance(values, list) else values
                value = np.zeros([max(n, 1) for n in target.shape], np.float32) if value is None else value
                if sample.starts_gradient(slot, value):
                    known = target.shape == value.shape and not (target.lod_level or sample.lod or sample.rows)
                    targets.append(target if known else fluid.layers.reduce_sum(target))  # of rows that may be padded, ones
                    flows.append(self._given("", 0, f"flow.{target.name}", np.ones_like(value), None) if known else None)
        wrt = [v for slot in sample.grad for v in ins[slot]]
        self.fetched = [*self.fetched, *(g for g in fluid.gradients(targets, wrt, flows) if g is not None)]

    def _given(self, slot: str, index: int, name: str, array: Any, sample: Sample | None) -> Any:
        lod, array = sample.lod_of(slot, index) if sample else None, np.asarray(array)
        state = sample is not None and slot in sample.inplace.values()
        if state:
            self.scope.var(name).set(array)
        else:
            self.feed[name] = fluid.create_lod_tensor(array, lod, fluid.CPUPlace()) if lod else array
        shape = (-1, *array.shape[1:]) if lod else array.shape
        return self.block.create_var(
            name=name, shape=shape, dtype=str(array.dtype), is_data=not state, persistable=state, lod_level=len(lod or ()),
            stop_gradient=sample is None or slot not in sample.grad,
        )  # fmt: skip

    def seconds(self) -> float:
        """CPU seconds of its first run, of which nothing was kept."""
        jax.clear_caches()
        gc.collect()
        exe = fluid.Executor()
        begin = time.process_time()
        exe.run(self.main, feed=self.feed, fetch_list=self.fetched, scope=self.scope, return_numpy=False)
        return time.process_time() - begin


def compiled(named: Named | None, quick: int, times: int = 1) -> float:
    """The least of some measurements, each of a new program; `quick`: how many steps are quick."""
    fluid.set_flags({"FLAGS_quick_steps": quick})
    return min(Net(named).seconds() for _ in range(times))


def longest() -> list[Named]:
    """Of each op the sample that is traced to the longest text."""
    found: dict[str, tuple[int, Named]] = {}
    with jax.enable_x64(True):
        for named in (Named(*n) for n in all_samples()):
            run = Run(named.sample)
            if (jitted := run.jitted) is not None:
                function, slots = jitted
                length = len(str(function.trace({s: run.inputs[s] for s in slots}).jaxpr))
                if length > found.get(named.sample.op, (0,))[0]:
                    found[named.sample.op] = length, named
    return [named for _, named in found.values()]


@dataclass(frozen=True)
class Figure:
    """Seconds of an op's sample, and when and where they were measured. quick: None where it does not matter."""

    optimised: float
    quick: float | None
    sample: str
    measured: str


def measured(chosen: list[Named]) -> dict[str, Figure]:
    """Of each op what its dearest sample takes. A sample that cannot run alone is said and left out."""
    found: dict[str, Figure] = {}
    empty = [compiled(None, quick, 5) for quick in (0, 1)]
    now = f"{datetime.now(UTC):%Y-%m-%d}, {machine()}, jax {jax.__version__}"
    for named in chosen:
        try:
            took = compiled(named, 0) - empty[0]
            if took > LIMIT / 2:
                took = min(took, compiled(named, 0, AGAIN - 1) - empty[0])
            quickly = compiled(named, 1, AGAIN) - empty[1] if took > LIMIT else None
        except (FluidError, RuntimeError, ValueError, TypeError) as error:
            print(f"{named}: {type(error).__name__}: {str(error).splitlines()[0][:150]}", file=sys.stderr, flush=True)
            continue
        print(f"{named!s:<50}{took:8.3f}{'' if quickly is None else f'{quickly:8.3f}'}", flush=True)
        op = named.sample.op
        if op not in found or took > found[op].optimised:
            found[op] = Figure(max(took, 0.0), quickly, str(named), now)
    return found


def read(text: str) -> dict[str, Figure]:
    """What a page says."""
    return {op: Figure(float(a), float(b) if b else None, name, when) for op, a, b, name, when in ROW.findall(text)}


def page(found: dict[str, Figure]) -> str:
    times = sorted(f.optimised for f in found.values())
    above = [f for f in found.values() if f.optimised > LIMIT]
    slow = sorted(op for op, f in found.items() if min(f.optimised, f.optimised if f.quick is None else f.quick) > LIMIT)
    summary = (
        f"{len(times)} of {len({s.op for *_, s in all_samples()})} ops: median {times[len(times) // 2]:.2f}, nine in ten at most "
        f"{times[len(times) * 9 // 10]:.2f}, greatest {times[-1]:.2f}, {len(above)} above {LIMIT}; "
        f"quickly {len(slow)} of these{': ' if slow else ''}{', '.join(slow)}."
    )
    rows = sorted(found.items(), key=lambda item: (-round(item[1].optimised, 2), item[0]))
    return HEAD.format(limit=LIMIT, tabled=TABLED, again=AGAIN, summary=summary) + "".join(
        f"| {op} | {f.optimised:.2f} | {'' if f.quick is None else f'{f.quick:.2f}'} | {f.sample} | {f.measured} |\n" for op, f in rows
    )


def table(found: dict[str, Figure]) -> str:
    """The module with the dearest ops."""
    head = TABLE.read_text().partition("DEAR = {\n")[0]
    rows = (f'    "{op}": {f.optimised:.2f},\n' for op, f in sorted(found.items()) if round(f.optimised, 2) >= TABLED)
    return f"{head}DEAR = {{\n{''.join(rows)}}}\n"


def main(wanted: list[str]) -> None:
    fluid.set_flags({"FLAGS_compilation_cache": 0})
    named = (Named(*n) for n in all_samples())
    with ring.bound(ring.Ring(None, 1)):
        new = measured([n for n in named if n.sample.op in wanted or str(n) in wanted] if wanted else longest())
    found = {**(read(PATH.read_text()) if wanted and PATH.exists() else {}), **new}
    PATH.write_text(page(found))
    TABLE.write_text(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
