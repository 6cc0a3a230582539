"""A training step of flax and optax as a program that fluid.trace read, beside jax.jit of the
function itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax

import fluidjax as fluid

from .cases import CASES, Case, Theirs
from .page import Table, shown
from .timing import interleaved

COLUMNS = "of,program ms,jit ms,ratio,reading,lowering,compiling,flops,bytes".split(",")


def table() -> list[Table]:
    """The step's time; what fluid.trace adds to make_jaxpr; lowering (tracing included) and
    compiling, of each the least of three turns, flops and bytes, each over jit's.
    """
    title = (
        "A traced step: medians of interleaved turns; in CPU seconds reading over jax.make_jaxpr,"
        " lowering and compiling over jax.jit"
    )
    # what is imported once counts for nobody
    jax.jit(fluid.trace(jax.nn.relu, 1.0).step()).lower(1.0)
    rows = (row(case) for case in CASES)
    return [shown("a traced step", title, COLUMNS, rows, widths=[20, 12, 10, 8, 9, 10, 11, 8, 8])]


def row(case: Case, budget: float = 8.0) -> list[str]:
    theirs = Theirs(case)
    given = theirs.state, theirs.feed
    reading = _reading(theirs.step, given)
    traced = fluid.trace(theirs.step, *given, state={0: 0})
    jitted = [jax.jit(f, donate_argnums=0) for f in (traced.step(), theirs.step)]
    turns = [[_made(f, given) for f in jitted] for _ in range(3)]
    lowered, compiled = (
        [min(turn[side][what] for turn in turns) for side in (0, 1)] for what in (0, 1)
    )
    made = [each for _, _, each in turns[-1]]
    costs = [each.cost_analysis() for each in made]
    states = [jax.tree.map(jax.numpy.copy, theirs.state) for _ in made]
    runs = [_turn(each, [state], theirs.feed) for each, state in zip(made, states, strict=True)]
    t = interleaved(runs[0], runs[1], jax.block_until_ready, budget=budget)
    ratios = [lowered[0] / lowered[1], compiled[0] / compiled[1]]
    ratios += [costs[0][key] / costs[1][key] for key in ("flops", "bytes accessed")]
    cells = [t.ours * 1e3, t.theirs * 1e3, t.ratio, reading, *ratios]
    return [case.name, *(f"{cell:.3f}" for cell in cells)]


def _turn(compiled: Any, held: list[Any], feed: Any) -> Callable[[], Any]:
    def run() -> Any:
        held[0], loss = compiled(held[0], feed)
        return loss

    return run


def _reading(step: Callable[..., Any], given: Any) -> float:
    """What fluid.trace does beside make_jaxpr, as a part of that one's time; caches are empty, as
    where a function is traced for the first time.
    """
    making: list[float] = []
    make = jax.make_jaxpr

    def timed(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        def run(*values: Any, **named: Any) -> Any:
            seconds, found = _seconds(lambda: make(*args, **kwargs)(*values, **named))
            making.append(seconds)
            return found

        return run

    with mock.patch.object(jax, "make_jaxpr", timed):
        ratios = []
        for _ in range(3):
            making.clear()
            jax.clear_caches()
            whole, _ = _seconds(lambda: fluid.trace(step, *given, state={0: 0}))
            ratios.append(whole / making[0] - 1)
    return sorted(ratios)[1]


def _made(jitted: Any, given: Any) -> tuple[float, float, Any]:
    """The seconds of lowering and of compiling, and what comes; caches are empty, so that neither
    side finds what the other has traced.
    """
    jax.clear_caches()
    lowering, lowered = _seconds(lambda: jitted.lower(*given))
    compiling, compiled = _seconds(lowered.compile)
    return lowering, compiling, compiled


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads, for other work on the machine shall not count."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found
