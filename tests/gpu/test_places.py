"""The GPU as Fluid's scripts name it: places, feeds on either side, files, predictors, checks,
profiles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import data, fluid_models
from fluidjax import layers
from fluidjax.errors import FluidError, FluidValueError
from tests.nets import fresh

from .card import GPU, PLACE, REHEARSAL

ROOT = Path(__file__).parents[2]
core = fluid.core
ON_A_GPU = pytest.mark.skipif(REHEARSAL, reason="the GPU is the CPU")


@ON_A_GPU
def test_names() -> None:
    assert (
        fluid.is_compiled_with_cuda()
        and core.is_compiled_with_cuda()
        and core.get_cuda_device_count() == len(jax.devices("gpu"))
    )
    assert str(fluid.CUDAPlace(0)) == "CUDAPlace(0)" and fluid.cuda_places()[0].device() == GPU
    assert fluid.Executor().place == fluid.CUDAPlace(0)
    assert fluid.CUDAPinnedPlace().device().platform == "cpu" == fluid.CPUPlace().device().platform
    with pytest.raises(FluidValueError, match="JAX sees"):
        fluid.CUDAPlace(64).device()


def _line(place: Any, feed: dict[str, Any]) -> tuple[Any, fluid.Scope, Any]:
    main, startup, loss = fluid_models.build(fluid_models.fit_a_line, fluid.optimizer.SGD(0.01))
    exe, scope = fluid.Executor(place), fluid.Scope()
    exe.run(startup, scope=scope)
    (value,) = exe.run(main, feed=feed, fetch_list=[loss], scope=scope)
    return main, scope, value


FEED = {
    "x": np.linspace(-1, 1, 260, dtype="float32").reshape(20, 13),
    "y": np.ones((20, 1), "float32"),
}


@ON_A_GPU
def test_each_place_runs_on_its_device() -> None:
    values = []
    for place in (fluid.CUDAPlace(0), fluid.CPUPlace()):
        main, scope, value = _line(place, FEED)
        names = [p.name for p in main.all_parameters()]
        assert {d for n in names for d in scope.find_var(n).storage.read().devices()} == {
            place.device()
        }
        values.append(value)
    np.testing.assert_allclose(*values, rtol=1e-5)


@ON_A_GPU
def test_one_scope_on_both_devices() -> None:
    """A program that ran on the GPU goes on on the CPU, and back, with the same variables."""
    main, startup, loss = fluid_models.build(fluid_models.fit_a_line, fluid.optimizer.SGD(0.01))
    scope, on = fluid.Scope(), [fluid.Executor(p) for p in (fluid.CUDAPlace(0), fluid.CPUPlace())]
    on[0].run(startup, scope=scope)
    losses = [
        on[i].run(main, feed=FEED, fetch_list=[loss], scope=scope)[0].item() for i in (0, 1, 0, 1)
    ]
    other, alone = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    startup.random_seed = 1
    alone.run(startup, scope=other)
    want = [alone.run(main, feed=FEED, fetch_list=[loss], scope=other)[0].item() for _ in range(4)]
    np.testing.assert_allclose(losses, want, rtol=1e-5)


@pytest.mark.parametrize("where", ["numpy", "gpu", "cpu"])
def test_feeds_from_anywhere(where: str) -> None:
    device = {"gpu": GPU, "cpu": jax.devices("cpu")[0]}.get(where)
    feed = FEED if device is None else {n: jax.device_put(v, device) for n, v in FEED.items()}
    np.testing.assert_allclose(_line(PLACE, feed)[2], _line(fluid.CPUPlace(), FEED)[2], rtol=1e-5)


def test_a_fed_array_may_change_at_once() -> None:
    """What is fed counts as it was when it was fed, though the transfer goes on while Python does."""
    with fresh() as (main, startup):
        out = layers.reduce_sum(fluid.data("x", [1 << 20]))
    exe, scope, x = fluid.Executor(PLACE), fluid.Scope(), np.zeros(1 << 20, "float32")
    exe.run(startup, scope=scope)
    found = []
    for k in range(8):
        x[:] = k
        found += exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope, return_numpy=False)
    assert [int(np.asarray(v).item()) >> 20 for v in found] == list(range(8))


def test_files(tmp_path: Path) -> None:
    main, scope, _ = _line(PLACE, FEED)
    exe, other = fluid.Executor(PLACE), fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(exe, str(tmp_path / "all"), main)
        fluid.save(main, str(tmp_path / "one"))
    with fluid.scope_guard(other):
        fluid.io.load_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path / "all"), main)
        for p in main.all_parameters():
            np.testing.assert_array_equal(
                np.array(other.find_var(p.name).get_tensor()),
                np.array(scope.find_var(p.name).get_tensor()),
            )
        fluid.load(main, str(tmp_path / "one"), exe)


def test_predictors() -> None:
    """A saved model of real Paddle 1.8.5, by a predictor that asked for the GPU: what 1.8.5
    computed.
    """
    recorded = np.load(ROOT / "tests/data/predictor_1.8.5.npz")
    config = core.AnalysisConfig()
    model, params = recorded["model"].tobytes(), recorded["params"].tobytes()
    config.set_model_buffer(model, len(model), params, len(params))
    if not REHEARSAL:
        config.enable_use_gpu(100, 0)
        assert config.use_gpu()
    predictor = core.create_paddle_predictor(config)
    outs = predictor.run([core.PaddleTensor(recorded["x"]), core.PaddleTensor(recorded["i"])])
    for k, out in enumerate(outs):
        np.testing.assert_allclose(out.as_ndarray(), recorded[f"out{k}"], rtol=1e-4, atol=1e-5)


def test_lac() -> None:
    """LAC's tags, ragged, by a predictor."""
    from fluidjax.paddle import inference

    ref = np.load(ROOT / "tests/data/models/lac_ref.npz")
    predictor = inference.create_predictor(
        inference.Config(str(ROOT / "tests/data/models/lac_seg/model"))
    )
    tensor = core.PaddleTensor(ref["ids"])
    tensor.lod = [[0, *np.cumsum(ref["lod"]).tolist()]]
    (out,) = predictor.run([tensor])
    assert (out.as_ndarray() == ref["out"]).all()


def test_the_check_of_an_installation(capsys: Any) -> None:
    fluid.install_check.run_check()
    said = capsys.readouterr().out
    assert f"It works on {fluid.Executor().place}" in said and "fluidjax is ready" in said


def test_ids_out_of_range_are_refused() -> None:
    """Fed ids are looked at before the step; those that a step computes, in it. The scope stays as
    it was.
    """
    with fresh() as (main, startup):
        ids = layers.scale(fluid.data("ids", [None, 1], "int64"), 2.0)
        loss = layers.mean(layers.embedding(ids, [8, 4], param_attr="table"))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    exe.run(main, feed={"ids": np.array([[1], [3]])}, fetch_list=[loss], scope=scope)
    before = np.array(scope.find_var("table").get_tensor())
    with pytest.raises(FluidError, match="8"):
        exe.run(main, feed={"ids": np.array([[1], [4]])}, fetch_list=[loss], scope=scope)
    np.testing.assert_array_equal(np.array(scope.find_var("table").get_tensor()), before)


def test_not_a_number_is_found() -> None:
    with fresh() as (main, startup):
        out = layers.mean(layers.log(fluid.data("x", [None, 2])))
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(FluidError, match="log"):
            exe.run(
                main, feed={"x": np.array([[-1.0, 1.0]], "float32")}, fetch_list=[out], scope=scope
            )
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_an_equal_run_compiles_nothing() -> None:
    """Of ten runs the first compiles one executable: none is quick first on a GPU, and none is made
    again.
    """
    main, startup, loss = fluid_models.build(fluid_models.lenet, fluid.optimizer.Adam(1e-3))
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = data.images(4, 28, 1)
    for k in range(10):
        exe.run(main, feed=feed, fetch_list=[loss], scope=scope, return_numpy=bool(k % 2))
    assert REHEARSAL or len(exe.compilations(main)) == 1


def test_steps_in_one_call() -> None:
    main, startup, loss = fluid_models.build(fluid_models.mlp, fluid.optimizer.Momentum(0.01, 0.9))
    feeds = [data.vectors(8, 784, 10)] * 4
    found = []
    for place in (PLACE, fluid.CPUPlace()):
        exe, scope = fluid.Executor(place), fluid.Scope()
        exe.run(startup, scope=scope)
        found.append(
            np.asarray(exe.run_steps(main, feeds, fetch_list=[loss], scope=scope)[0]).ravel()
        )
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_a_data_loader_feeds_the_gpu() -> None:
    with fresh(1) as (main, startup):
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
        fluid.optimizer.SGD(0.01).minimize(loss)
    loader = fluid.io.DataLoader.from_generator(feed_list=[x, y], capacity=4)
    loader.set_batch_generator(lambda: iter([(FEED["x"], FEED["y"])] * 5), places=[PLACE])
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    losses = [
        exe.run(main, feed=batch, fetch_list=[loss], scope=scope)[0].item() for batch in loader()
    ]
    assert len(losses) == 5 and losses == sorted(losses, reverse=True)


def test_data_parallel_on_all_gpus() -> None:
    main, startup, loss = fluid_models.build(fluid_models.fit_a_line, fluid.optimizer.SGD(0.01))
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    places = [PLACE] if REHEARSAL else fluid.cuda_places()
    parallel = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
    (got,) = exe.run(parallel, feed=FEED, fetch_list=[loss], scope=scope)
    np.testing.assert_allclose(np.mean(got), _line(fluid.CPUPlace(), FEED)[2], rtol=1e-5)
