"""Training steps within a budget of memory: bytes against time, beside jax.checkpoint of each block
and of sqrt(n) blocks.

``python -m benchmarks budget`` prints all; ``python -m benchmarks.budget NAME JSON [SHARE...]`` one
case, whose points it keeps.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidValueError
from fluidjax.ir import edit
from fluidjax.ir.desc import OpDesc
from fluidjax.lower.step import Step
from fluidjax.memory import compiler

from . import data, fluid_models
from .page import Table, shown

SHARES = (0.7, 0.55, 0.4, 0.3)  # of the temporaries of the step without a budget
# 0: as many groups as the root of the blocks
PEERS = {"jax.checkpoint, each block": None, "jax.checkpoint, sqrt(n)": 0}
RATE, MOMENTUM = 1e-2, 0.9


def stacked_lstm(length: int = 16, width: int = 64, depth: int = 3) -> Any:
    """Three LSTMs, one above the other, step by step."""
    x = fluid.data("x", [None, length, width])
    steps = [layers.reshape(layers.slice(x, [1], [t], [t + 1]), [-1, width]) for t in range(length)]
    for layer in range(depth):
        hidden = cell = layers.scale(steps[0], 0.0)
        for t in range(length):
            hidden, cell = layers.lstm_unit(
                steps[t],
                hidden,
                cell,
                param_attr=f"lstm_{layer}.w",
                bias_attr=f"lstm_{layer}.b",
                name=f"lstm_{layer}",
            )
            steps[t] = hidden
    return layers.mean(
        layers.softmax_with_cross_entropy(
            layers.fc(steps[-1], 10), fluid.data("label", [None, 1], "int64")
        )
    )


@dataclass(frozen=True)
class Case:
    """ends: whether an op, of all forward ops, ends a block that jax.checkpoint takes."""

    name: str
    network: Callable[[], Any]
    feed: Callable[[], dict[str, Any]]
    ends: Callable[[list[OpDesc], int], bool]


def _adds(ops: list[OpDesc], at: int) -> bool:
    """The relu of a residual block."""
    return ops[at].type == "relu" and ops[at - 1].type == "elementwise_add"


def _of(kind: str, every: int = 1) -> Callable[[list[OpDesc], int], bool]:
    return lambda ops, at: (
        ops[at].type == kind and sum(op.type == kind for op in ops[: at + 1]) % every == 0
    )


def sequence(batch: int, length: int, width: int) -> dict[str, Any]:
    """Sequences with a label each."""
    made = data.sequences(batch, length, width, 10)
    return {"x": made["x"], "label": made["label"][:, 0]}


CASES = {
    "resnet18": Case("ResNet-18, 32x32, batch 32", fluid_models.resnet18, lambda: data.images(32, 32, 3), _adds),
    "resnet50": Case("ResNet-50, 96x96, batch 8", partial(fluid_models.resnet50, 96, 10), lambda: data.images(8, 96, 3), _adds),
    "vgg16": Case("VGG-16, 64x64, batch 32", partial(fluid_models.vgg16, 64, 10), lambda: data.images(32, 64, 3), _of("pool2d")),
    "transformer": Case("transformer, 12 layers, batch 4", partial(fluid_models.transformer, depth=12),
                        lambda: data.sequences(4, 128, 256, 10), _of("layer_norm", 2)),
    "lstm": Case("stacked LSTM, 3 x 16 steps, batch 256", stacked_lstm, lambda: sequence(256, 16, 64), _of("lstm_unit", 4)),
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """temporaries, total: bytes of the compiled step, as the compiler tells them. budget: None
    where there is none. ratio: CPU time of a step over that of the step without a budget, the
    median over turns. search: CPU seconds."""

    name: str
    temporaries: int
    total: int
    budget: int | None = None
    ratio: float = 1.0
    search: float = 0.0


class Ours:
    """The program behind an Executor, as it is or within a budget."""

    def __init__(self, case: Case, budget: int | None = None) -> None:
        self.feed, batch = case.feed(), len(case.feed()["label"])
        self.main, startup, self.loss = built(case)
        self.search = 0.0
        if budget is not None:
            begun = time.process_time()
            fluid.memory_optimize(
                self.main, budget=budget, batch_size=batch, fetch_list=[self.loss]
            )
            self.search = time.process_time() - begun
        self.scope, self.exe = fluid.Scope(), fluid.Executor()
        self.exe.run(startup, scope=self.scope)

    def run(self) -> Any:
        return self.exe.run(
            self.main, feed=self.feed, fetch_list=[self.loss], scope=self.scope, return_numpy=False
        )[0]

    def figures(self) -> compiler.Figures:
        """Of the step that runs, as it was compiled for the run."""
        self.run()
        (compiled,) = self.exe.compiled_steps(self.main)
        with jax.enable_x64(True):
            args = (*compiled.bind(self.scope).arrays, compiled.plan.check_feed(self.feed), 0, 0)
            name = "memory-optimised" if self.main.info.memory_optimized else "default"
            return compiler.figures(compiled.function().lower(*args), [name], quick=True)[name]


class Checkpointed:
    """The same forward ops as pure functions under jax.checkpoint, one for each of `count` groups
    of blocks, jax.grad and Momentum.
    """

    def __init__(self, case: Case, count: int | None) -> None:
        self.feed = case.feed()
        main, startup, loss = built(case, train=False)
        self.parameters = [
            v.name for v in main.list_vars() if v.persistable and getattr(v, "trainable", False)
        ]
        held = fluid.init_fn(startup)(jax.random.fold_in(jax.random.key(1), 0))  # as Ours begins
        with jax.enable_x64(True):
            speeds = {n: jax.numpy.zeros_like(held[n]) for n in self.parameters}
            self.state = {n: jax.numpy.array(v) for n, v in held.items()}, speeds
        parts = list(_parts(case, main, count))
        steps = [
            Step(edit.replace_ops(main.desc, 0, part), _given(parts, at, loss.name))
            for at, part in enumerate(parts)
        ]

        def cost(trained: Any, held: Any, feed: Any, key: Any) -> Any:
            values, moved = dict(feed), {}
            for step in steps:
                state = {n: trained.get(n, held[n]) for n in step.reads}
                state, found = jax.checkpoint(step)(state, {n: values[n] for n in step.feeds}, key)
                values.update(zip(step.fetches, found, strict=True))
                moved.update({n: v for n, v in state.items() if n not in trained})
            return values[loss.name].reshape(()), moved

        def train(state: Any, feed: Any, key: Any) -> Any:
            held, speeds = state
            trained = {n: held[n] for n in self.parameters}
            (value, moved), slopes = jax.value_and_grad(cost, has_aux=True)(
                trained, held, feed, key
            )
            speeds = {n: MOMENTUM * speeds[n] + slopes[n] for n in trained}
            return (
                {**held, **moved, **{n: v - RATE * speeds[n] for n, v in trained.items()}},
                speeds,
            ), value

        self.key = jax.random.key(0)
        lowered = jax.jit(train, donate_argnums=0)
        with jax.enable_x64(True):
            found = compiler.figures(
                lowered.lower(self.state, self.feed, self.key),
                list(compiler.SCHEDULERS),
                quick=True,
            )
            name = min(found, key=lambda n: found[n].temporaries)  # the better for it
            self.best = found[name]
            self.step = lowered.lower(self.state, self.feed, self.key).compile(
                compiler_options=compiler.options_of(name)
            )

    def run(self) -> Any:
        with jax.enable_x64(True):
            self.state, loss = self.step(self.state, self.feed, self.key)
        return loss


def built(case: Case, train: bool = True) -> tuple[fluid.Program, fluid.Program, Any]:
    """(main, startup, loss), with Momentum."""

    class Nothing:
        def minimize(self, loss: Any) -> None:
            """The forward pass alone."""

    return fluid_models.build(
        case.network, fluid.optimizer.Momentum(RATE, MOMENTUM) if train else Nothing()
    )


def _parts(case: Case, main: fluid.Program, count: int | None) -> Iterator[list[OpDesc]]:
    """The forward ops, a list for each block, or in `count` groups of blocks."""
    ops = list(main.desc.blocks[0].ops)
    ends = [at + 1 for at in range(len(ops)) if case.ends(ops, at)]
    blocks = [ops[a:b] for a, b in zip([0, *ends], [*ends, len(ops)], strict=True) if a < b]
    count = len(blocks) if count is None else count or round(math.sqrt(len(blocks)))
    size = math.ceil(len(blocks) / count)
    for at in range(0, len(blocks), size):
        yield [op for block in blocks[at : at + size] for op in block]


def _given(parts: list[list[OpDesc]], at: int, loss: str) -> tuple[str, ...]:
    """What a part gives to later ones."""
    later = {n for part in parts[at + 1 :] for op in part for n in op.reads} | {loss}
    return tuple(dict.fromkeys(n for op in parts[at] for n in op.writes if n in later))


def measure(
    case: Case,
    shares: Sequence[float] = SHARES,
    turns: int = 7,
    peers: Mapping[str, int | None] = PEERS,
) -> list[Point]:
    """The points of a case, the step without a budget first. Every step takes its turn in each of
    the turns.
    """
    plain = Ours(case)
    least = plain.figures()
    runners: dict[str, Any] = {"no budget": plain}
    found = {"no budget": Point("no budget", least.temporaries, least.total)}
    for share in shares:
        name, budget = (
            f"budget {share:.2f}",
            least.total - least.temporaries + int(share * least.temporaries),
        )
        try:
            ours = Ours(case, budget)
        except FluidValueError as refused:
            print(f"  {name}: {refused}", flush=True)
            continue
        figures = ours.figures()
        assert figures.total <= budget, (figures, budget)
        runners[name], found[name] = (
            ours,
            Point(name, figures.temporaries, figures.total, budget, search=ours.search),
        )
    for name, count in peers.items():
        theirs = Checkpointed(case, count)
        runners[name], found[name] = theirs, Point(name, theirs.best.temporaries, theirs.best.total)
    times: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(turns + 1):
        for name in list(runners)[:: 1 if turn % 2 else -1]:
            begun = time.process_time()
            jax.block_until_ready(runners[name].run())
            if turn:  # the first compiles
                times[name].append(time.process_time() - begun)
    ratios = {
        n: statistics.median(a / b for a, b in zip(t, times["no budget"], strict=True))
        for n, t in times.items()
    }
    return [Point(**{**asdict(p), "ratio": ratios[n]}) for n, p in found.items()]


def rows(case: Case, points: list[Point]) -> Iterator[list[str]]:
    """A row of the table for each point."""
    for p in points:
        name, search = case.name if p is points[0] else "", f"{p.search:.1f}" if p.search else ""
        budget = f"{p.budget / 1e6:,.1f}" if p.budget else ""
        share = p.temporaries / points[0].temporaries
        yield [
            name,
            p.name,
            f"{p.temporaries / 1e6:,.1f}",
            f"{share:.2f}",
            f"{p.total / 1e6:,.1f}",
            budget,
            f"{p.ratio:.2f}",
            search,
        ]


def shown_rows(found: Iterable[list[str]]) -> Table:
    """They are printed as they come."""
    title = (
        "Steps within a budget of memory, MB; time: CPU time over that without a budget (medians of"
        " turns); search: CPU seconds"
    )
    heads = ["step", "", "temporaries", "share", "total", "budget", "time", "search"]
    return shown("budgets", title, heads, found, widths=[44, 28, 12, 7, 10, 10, 7, 8])


def draw(cases: dict[str, list[Point]], path: Path) -> None:
    """Bytes against time, a small picture for each case, with matplotlib."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(cases), 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    for axes, (name, points) in zip(
        figure.subplots(1, len(cases), squeeze=False)[0], cases.items(), strict=True
    ):
        whole = points[0].temporaries
        ours = sorted(
            (p.temporaries / whole, p.ratio) for p in points if not p.name.startswith("jax")
        )
        axes.plot(*zip(*ours, strict=True), "o-", color="#4c78a8", label="budget")
        for p, mark in zip([p for p in points if p.name.startswith("jax")], "s^", strict=False):
            axes.plot([p.temporaries / whole], [p.ratio], mark, color="#e1812c", label=p.name)
        axes.set_title(name.split(",")[0], fontsize=10)
        axes.set_xlabel("share of temporaries")
        axes.axhline(1.25, color="grey", linewidth=0.6, linestyle=":")
        axes.axvline(0.4, color="grey", linewidth=0.6, linestyle=":")
    figure.axes[0].set_ylabel("time, over that without a budget")
    figure.axes[0].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def table() -> list[Table]:
    """All cases at all shares, beside jax.checkpoint."""
    return [shown_rows(row for case in CASES.values() for row in rows(case, measure(case)))]


def main(name: str, path: str, *shares: str) -> None:
    """Measure one case, at other shares if some are given, and keep its points as JSON for `draw`."""
    points = measure(CASES[name], tuple(map(float, shares)) or SHARES)
    shown_rows(rows(CASES[name], points))
    Path(path).write_text(json.dumps([asdict(p) for p in points]))


if __name__ == "__main__":
    main(*sys.argv[1:])
