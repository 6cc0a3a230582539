"""What is not about blocks sees them all the same: devices, jobs, passes, saved models and pages,
on programs with loops and branches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.dist import LocalJob
from fluidjax.lower.step import Step
from fluidjax.xla_cpu import batching, stacks

from ..dist.jobs import transpiled
from ..nets import fresh
from ..tools import decode_nets
from .block_nets import batch, net, number, part

CPU = fluid.CPUPlace()
STEPS = 2
# the losses of the steps, and the parameters behind them
Trained = tuple[list[float], dict[str, np.ndarray]]


class Built:
    """All nets of block_nets in one, with Momentum, and a scope of first values."""

    def __init__(self) -> None:
        with fresh(5) as (main, startup):
            self.rows, self.loss = net("all")
            self.test = main.clone(for_test=True)
            fluid.optimizer.Momentum(0.1, 0.9).minimize(self.loss)
        self.main, self.startup, self.scope, self.exe = (
            main,
            startup,
            fluid.Scope(),
            fluid.Executor(CPU),
        )
        self.exe.run(startup, scope=self.scope)

    def train(self, program: Any, feed: Any) -> Trained:
        losses = [
            np.mean(self.exe.run(program, feed=feed, fetch_list=[self.loss], scope=self.scope)[0])
            for _ in range(STEPS)
        ]
        return losses, self.parameters()

    def parameters(self) -> dict[str, np.ndarray]:
        return {p.name: self.scope.get(p.name) for p in self.main.all_parameters()}


@pytest.fixture(scope="module")
def alone() -> Trained:
    built = Built()
    return built.train(built.main, batch())


def on_two_devices() -> Trained:
    built = Built()
    program = fluid.CompiledProgram(built.main).with_data_parallel(
        built.loss.name, places=[CPU] * 2
    )
    return built.train(program, [part(0), part(1)])


def in_a_pserver_job() -> Trained:
    """Trainers send gradients that a loop has made: within its gradient block they have the names
    that they had.
    """
    built = Built()
    job = LocalJob.of(transpiled(built.main, built.startup, 2, 2))
    job.start({n: built.scope.get(n) for n in job.parameters})
    losses = [
        np.mean(job.step([part(0), part(1)], fetch_list=[built.loss.name])) for _ in range(STEPS)
    ]
    return losses, {n: job.get(n) for n in job.parameters}


def in_less_memory() -> Trained:
    """Names are shared, of gradients too, so no op may go by them."""
    built = Built()
    for rewrite in (fluid.memory_optimize, fluid.release_memory):
        rewrite(built.main, skip_opt_set={built.loss.name})
    return built.train(built.main, batch())


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [on_two_devices, in_a_pserver_job, in_less_memory], ids=lambda way: way.__name__
)
def test_trains_as_alone(way: Callable[[], Trained], alone: Trained) -> None:
    if way is on_two_devices and jax.device_count() < 2:
        pytest.skip("one device")
    losses, parameters = way()
    np.testing.assert_allclose(losses, alone[0], rtol=2e-5)
    for name, value in alone[1].items():
        np.testing.assert_allclose(parameters[name], value, rtol=2e-4, atol=2e-6, err_msg=name)


def test_small_ops_around_a_block_are_not_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When an op with a block runs is said by more than it reads and writes, so the order of such a
    program stays.
    """

    def built(branch: bool) -> Step:
        with fresh() as (main, _):
            x = fluid.data("x", [None, 4, 2])
            total = layers.sum([layers.tanh(x[:, i] * x[:, j]) for i in range(4) for j in range(i)])
            if branch:
                total = layers.cond(
                    layers.less_than(number(0), number(1)), lambda: total * 2.0, lambda: total
                )
            out = layers.reduce_sum(total)
            return Step(main.desc, (out.name,))

    for module, name in ((batching, "SAVED"), (batching, "LEAST"), (stacks, "LEAST")):
        monkeypatch.setattr(module, name, 3)
    feed = {"x": np.arange(24, dtype="float32").reshape(3, 4, 2) / 24}
    with jax.enable_x64(True):
        (plain,), (doubled,) = (built(branch)({}, feed)[1] for branch in (False, True))
    assert built(False).schedule is not None and built(True).schedule is None
    np.testing.assert_allclose(doubled, 2 * np.asarray(plain), rtol=1e-6)


@pytest.mark.slow
def test_a_copy_for_testing_a_saved_model_and_what_shows_programs(tmp_path: Path) -> None:
    built = Built()
    exe, feed = built.exe, batch()
    (want,) = exe.run(built.test, feed=feed, fetch_list=[built.rows], scope=built.scope)
    folded = built.test.clone()
    with fluid.scope_guard(built.scope):
        fluid.io.save_inference_model(
            str(tmp_path), ["x", "q"], [built.rows], exe, main_program=built.main
        )
        fluid.transpiler.InferenceTranspiler().transpile(folded, CPU, built.scope)
    assert [op.type for op in folded.global_block().ops] == [
        op.type for op in built.test.global_block().ops
    ]
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
        np.testing.assert_allclose(
            exe.run(program, feed=feed, fetch_list=fetches)[0], want, rtol=1e-6
        )
    assert all(f"block {b.idx}" in built.main._repr_html_() for b in built.main.blocks[1:])
    assert built.main._prune([built.rows]).desc.blocks[1:]


@pytest.mark.slow
def test_a_beam_search_is_rewritten() -> None:
    """Every pass leaves the loop, and what it finds, alone."""
    with fresh() as (main, _):
        found = [v.name for v in decode_nets.book(fluid)]
    state = {p.name: decode_nets.initial(p.name, p.shape) for p in main.all_parameters()}
    every = "inference,memory_optimize,fold_constants,fuse_batch_norm,fuse_conv_affine,dce,release_memory"
    result = passes.run(every, main.desc, state, found)
    feed = fluid.bucketed(
        {k: decode_nets.fed(fluid, v) for k, v in decode_nets.FEEDS["book"][0].items()}
    )
    with jax.enable_x64(True):
        want, got = (
            (jax.jit(Step(d, tuple(found)))({**state, **p}, feed)[1])
            for d, p in ((main.desc, {}), (result.desc, result.params))
        )
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(a, b)
