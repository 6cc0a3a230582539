"""What was tuned for XLA's CPU compiler is left out of a step for a GPU: by the one function that
decides, and in what is lowered.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import fluid_models
from benchmarks.gpu import lowered, nets
from fluidjax import layers
from fluidjax.devices import platforms
from fluidjax.devices.platforms import Packing, Tuning, tuning
from fluidjax.memory import compiler
from fluidjax.memory.budget import no_host
from fluidjax.ops import index
from fluidjax.saved.model import read_program

from ..nets import fresh

DATA = Path(__file__).parents[1] / "data"
STAGES = ((8, 2), (16, 1))


@pytest.mark.parametrize(
    ("platform", "also"), [("gpu", ["packs"]), ("cuda", ["packs"]), ("tpu", [])]
)
def test_what_was_tuned_for_the_cpu_applies_elsewhere_where_it_was_measured(
    platform: str, also: list[str]
) -> None:
    assert all(getattr(tuning("cpu"), f.name) for f in fields(Tuning))
    assert [f.name for f in fields(Tuning) if getattr(tuning(platform), f.name)] == also
    assert tuning(platform).packs != tuning("cpu").packs
    assert (
        compiler.schedulers(lowered.Elsewhere(platform))
        == ("default",)
        != compiler.schedulers(lowered.Elsewhere("cpu"))
    )
    assert "the device's own" in str(no_host(lowered.Elsewhere("cpu")))


def step_for(platform: str, network: Any, optimizer: Any = None) -> tuple[Any, fluid.Scope]:
    main, startup, loss = fluid_models.build(
        network, optimizer or fluid.optimizer.Momentum(0.1, 0.9)
    )
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    return lowered.compiled_for(main, [loss.name], platform), scope


@pytest.mark.slow
def test_a_step_for_a_gpu_is_made_as_the_program_has_it() -> None:
    """XLA gets no options; small state is packed."""
    images = {
        "img": jax.ShapeDtypeStruct((4, 3, 32, 32), "float32"),
        "label": jax.ShapeDtypeStruct((4, 1), "int64"),
    }
    made = {p: step_for(p, partial(nets.resnet50, "NCHW", 32, 10, STAGES)) for p in ("cpu", "gpu")}
    for platform, (step, scope) in made.items():
        here = platform == "cpu"
        step.lower(lowered.state_of(step, scope), images, "cuda" if not here else "cpu")
        assert here or step.policy.options() is None
        small, scope = step_for(platform, partial(fluid_models.many_parameters, 40))
        vectors = {"x": jax.ShapeDtypeStruct((4, 8), "float32"), "label": images["label"]}
        small.lower(lowered.state_of(small, scope), vectors, "cuda" if not here else "cpu")
        assert small.layouts is not None and [len(p.names) for p in small.layouts[0].packs] == [80]


def test_what_a_gpu_packs() -> None:
    """Of a step that is long the single numbers alone, which are kernels of their own; of a short
    one all that is small.
    """
    packs = {}
    for name, network in (
        ("long", partial(fluid_models.transformer, 512, 256, 8, 2)),
        ("short", partial(fluid_models.many_parameters, 8)),
    ):
        step, scope = step_for("gpu", network, fluid.optimizer.Adam(1e-3))
        state = lowered.state_of(step, scope)
        step.plan_layouts(state)
        assert step.layouts is not None
        packs[name] = (
            [{int(np.prod(s)) == 1 for s in p.shapes} for p in step.layouts[0].packs],
            len(step.layouts[0].singles),
        )
        assert all(v.size > 1 for n, v in state.items() if n in step.layouts[0].singles)
    assert packs["long"][0] == [{True}] and packs["long"][1] > 100
    assert packs["short"] == ([{True}, {False}], 0)


@pytest.mark.slow
def test_state_packed_as_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It trains as unpacked state does, is donated, saved and loaded, and counted in the report."""
    feed = {"x": np.ones((4, 8), "float32"), "label": np.zeros((4, 1), "int64")}
    ways: dict[str, Packing | None] = {"gpu": tuning("gpu").packs, "none": None}
    main, startup, loss = fluid_models.build(
        partial(fluid_models.many_parameters, 8), fluid.optimizer.Adam(1e-2)
    )
    main.random_seed = startup.random_seed = 1
    losses, reports = {}, {}
    for name, packs in ways.items():
        monkeypatch.setattr(
            platforms, "tuning", lambda _p, packs=packs: replace(tuning("cpu"), packs=packs)
        )
        program, exe, scope = main.clone(), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        losses[name] = [
            exe.run(program, feed=feed, fetch_list=[loss.name], scope=scope)[0].item()
            for _ in range(3)
        ]
        (compiled,) = exe.compiled_steps(program)
        before = compiled.bind(scope).arrays[0]
        assert (len(before) == 2) == (packs is not None)
        with fluid.scope_guard(scope):
            fluid.io.save_persistables(exe, str(tmp_path / name), program)
            losses[name] += [exe.run(program, feed=feed, fetch_list=[loss.name])[0].item()]
            assert all(a.is_deleted() for a in before)
            fluid.io.load_persistables(exe, str(tmp_path / name), program)
            losses[name] += [exe.run(program, feed=feed, fetch_list=[loss.name])[0].item()]
        assert losses[name][3] == losses[name][4] != losses[name][2]
        figures = program.memory_report(batch_size=4, fetch_list=[loss.name]).compiled["default"]
        reports[name] = figures.total - figures.temporaries
    np.testing.assert_allclose(losses["gpu"], losses["none"], rtol=1e-6)
    assert abs(reports["gpu"] - reports["none"]) < 64 * 8 * 6


def test_a_lowered_step_has_the_convolutions_of_the_program() -> None:
    """For CUDA each convolution and each of its gradients is one, channels first, and nothing
    transposes an image between them.
    """
    step, scope = step_for("gpu", partial(nets.resnet50, "NCHW", 32, 10, STAGES))
    feed = {"img": np.zeros((4, 3, 32, 32), "float32"), "label": np.zeros((4, 1), "int64")}
    text = compiler.lower_padded(
        step, lowered.state_of(step, scope), feed, platform="cuda"
    ).as_text()
    count = sum(op.type == "conv2d" for op in step.step.ops)
    # nobody asks for the gradient of the image
    assert text.count("stablehlo.convolution") == 3 * count - 1
    assert "b, 0, 1, f" not in text and lowered.branches(text) == 0
    images = [
        line
        for line in text.splitlines()
        if "stablehlo.transpose" in line and line.count("x") > 8 and "dims = [0, " in line
    ]
    assert images == []


@pytest.mark.first(2)
@pytest.mark.parametrize("net", ["lenet", "transformer", "word_model", "mlp"])
def test_nets_have_no_branches(net: str) -> None:
    """A branch would have the host wait for what it goes by."""
    step, scope = step_for("gpu", getattr(fluid_models, net), fluid.optimizer.Adam(1e-3))
    feed = {
        n: np.zeros([4 if d < 0 else d for d in v.shape], fluid.base.dtypes.numpy_dtype(v.dtype))
        for n, v in step.step.feeds.items()
    }
    text = compiler.lower_padded(
        step, lowered.state_of(step, scope), feed, platform="cuda"
    ).as_text()
    assert lowered.branches(text) == 0


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["det", "rec", "cls"])
def test_recorded_models_lower(name: str) -> None:
    """PP-OCR's programs, predicting and, with a loss behind them, training."""
    x = np.load(DATA / f"models/ocr_{name}.npz")
    feed = {"x": np.zeros((1, 3, 32, 32) if name == "det" else (1, 3, 48, 40), x[x.files[0]].dtype)}
    program, _, targets = read_program((DATA / f"models/ocr_{name}.pdmodel").read_bytes(), name)
    step = lowered.compiled_for(program, [targets[0].name], "gpu")
    vars = program.desc.blocks[0].vars
    state = {
        n: jax.ShapeDtypeStruct(vars[n].shape, fluid.base.dtypes.numpy_dtype(vars[n].dtype))
        for n in step.step.reads
    }
    text = compiler.lower_padded(step, state, feed, platform="cuda").as_text()
    assert text.count("stablehlo.convolution") >= sum(
        op.type == "conv2d" for op in program.desc.blocks[0].ops
    )
    assert lowered.branches(text) == 0


def test_an_extreme_is_looked_for_behind_a_barrier() -> None:
    """Elsewhere than on the CPU, where a branch has XLA find one value in memory (ops/extremes.py)."""
    with fresh() as (main, startup):
        x = fluid.data("x", [4, 3, 8, 8])
        x.stop_gradient = False
        (slope,) = fluid.gradients([layers.reduce_max(x, dim=1)], [x])
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    feed = {"x": np.zeros((4, 3, 8, 8), "float32")}
    text = lowered.for_cuda(main, [slope.name], scope, feed)
    assert lowered.branches(text) == 0 and "optimization_barrier" in text
    step = lowered.compiled_for(main, [slope.name], "cpu")
    assert (
        lowered.branches(
            compiler.lower_padded(step, {}, step.plan.check_feed(feed), platform="cpu").as_text()
        )
        == 1
    )


@pytest.mark.parametrize("repeats", [True, False])
def test_the_last_of_rows_that_are_written_twice_counts(repeats: bool) -> None:
    """A GPU writes rows in any order, so all but the last are dropped beforehand: then any order
    gives what the CPU gives.
    """
    rng = np.random.default_rng(0)
    ids = (rng.integers(0, 6, (9, 1)) if repeats else rng.permutation(9)[:, None]).astype("int64")
    updates, want = rng.standard_normal((9, 2), dtype="float32"), np.zeros((9, 2), "float32")
    for i, row in zip(ids[:, 0], updates, strict=True):
        want[i] = row
    order = rng.permutation(9)
    kept = np.asarray(index.last_of_each(ids, 9))[order]
    np.testing.assert_array_equal(
        index.put(np.zeros_like(want), kept, updates[order], add=False), want
    )
    with fresh() as (main, _):
        data = [
            fluid.data("x", [9, 2]),
            fluid.data("ids", [9, 1], "int64"),
            fluid.data("u", [9, 2]),
        ]
        out = layers.scatter(*data)
    feed = {"x": np.zeros_like(want), "ids": ids, "u": updates}
    texts = [lowered.for_cuda(main, [out.name], fluid.Scope(), feed)]
    step = lowered.compiled_for(main, [out.name], "cpu")
    texts += [compiler.lower_padded(step, {}, step.plan.check_feed(feed), platform="cpu").as_text()]
    assert ["stablehlo.sort" in text for text in texts] == [True, False]


def test_a_pools_gradient_is_written_down() -> None:
    """On a GPU, where a sum over all images would look it up anew for each of its parts."""
    with fresh() as (main, _):
        x = fluid.data("x", [2, 3, 8, 8])
        x.stop_gradient = False
        (slope,) = fluid.gradients([layers.pool2d(x, 2, "max", 2)], [x])
    text = lowered.for_cuda(
        main, [slope.name], fluid.Scope(), {"x": np.zeros((2, 3, 8, 8), "float32")}
    )
    assert text.count("optimization_barrier") == 1
