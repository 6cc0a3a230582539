"""CompiledProgram, ParallelExecutor and the strategies: one device, and 1.8.5's options."""

from __future__ import annotations

import enum
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import EnforceNotMet, FluidError, FluidTypeError, FluidValueError

RECORDED = json.loads((Path(__file__).parent / "data" / "feeding_1.8.5.json").read_text())[
    "strategies"
]
OPTIONS = [(kind, name) for kind in RECORDED for name in RECORDED[kind]]
X = np.arange(4, dtype="float32")[:, None]


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
def test_options_as_recorded(kind, name):
    made, row = getattr(fluid, kind)(), RECORDED[kind][name]
    default = getattr(made, name)
    shown = (
        f"{type(default).__name__}.{default.name}" if isinstance(default, enum.Enum) else default
    )
    assert (sorted(shown) if isinstance(shown, set) else shown) == row["default"]
    for value in ("a", 1.5, None, ["a"], [3], 1, True):
        if any(value == v and type(value) is type(v) for v in row["refused"]):
            with pytest.raises((TypeError, EnforceNotMet)) as error:
                setattr(made, name, value)
            assert isinstance(error.value, FluidError) and name in str(error.value)
        else:
            setattr(made, name, value)
            assert (
                getattr(made, name) == value or isinstance(default, bool) or isinstance(value, str)
            )


def test_unknown_options():
    strategy = fluid.BuildStrategy()
    with pytest.raises(
        AttributeError,
        match=r"BuildStrategy has no option 'reduce_stategy' \(did you mean 'reduce_strategy'",
    ):
        strategy.reduce_stategy = 1
    with pytest.raises(AttributeError, match="ExecutionStrategy has no option 'foo'") as error:
        fluid.ExecutionStrategy().foo  # noqa: B018
    assert isinstance(error.value, FluidError)
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    assert (strategy.reduce_strategy, strategy.gradient_scale_strategy) == (1, 1)
    strategy.trainers_endpoints.append("a:1")
    assert fluid.BuildStrategy().trainers_endpoints == []


@pytest.fixture
def network():
    """A trained program, its test clone, its startup program, and the loss."""
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        hidden = fluid.layers.fc(fluid.data("x", [None, 1]), 3)
        loss = fluid.layers.mean(hidden)
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(loss)
        yield main, test, startup, loss


def test_a_compiled_program_runs_like_its_program(network):
    main, _test, startup, loss = network
    runs = []
    startup.random_seed = 3
    for program in (main, fluid.CompiledProgram(main, fluid.BuildStrategy())):
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            runs.append([exe.run(program, feed={"x": X}, fetch_list=[loss])[0] for _ in range(3)])
    np.testing.assert_array_equal(*runs)
    assert runs[0][0].shape == (1,) and runs[0][0] != runs[0][2]


def test_data_parallel_on_one_place(network):
    main, test, startup, loss = network
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    train = fluid.CompiledProgram(main).with_data_parallel(
        loss.name, exec_strategy=fluid.ExecutionStrategy(), places=fluid.CPUPlace()
    )
    check = fluid.CompiledProgram(test).with_data_parallel(
        share_vars_from=train, places=[fluid.CPUPlace()]
    )
    first = exe.run(train, feed={"x": X}, fetch_list=[loss])[0]
    second = exe.run(check, feed=[{"x": X}], fetch_list=[loss.name])[0]
    assert first.shape == second.shape == (1,) and second < first


def test_refused(network):
    main, test, _startup, loss = network
    compiled, one = fluid.CompiledProgram, [fluid.CPUPlace()]
    for call, error, told in (
        (lambda: compiled(3), FluidTypeError, "CompiledProgram takes a Program, not int"),
        (lambda: compiled(compiled(main)), FluidTypeError, "takes a Program, not CompiledProgram"),
        (
            lambda: compiled(main, build_strategy=3),
            FluidTypeError,
            "build_strategy is a BuildStrategy, not int",
        ),
        (
            lambda: compiled(test).with_data_parallel(exec_strategy=3, places=one),
            FluidTypeError,
            "is a ExecutionStrategy, not int",
        ),
        (
            lambda: compiled(main).with_data_parallel(places=one),
            FluidValueError,
            "The loss name of CompiledProgram is None",
        ),
        (
            lambda: compiled(main).with_data_parallel(loss, places=one),
            FluidTypeError,
            "a string, not Variable",
        ),
        (
            lambda: compiled(test).with_data_parallel(places=[]),
            FluidValueError,
            "No places for execution",
        ),
        (
            lambda: compiled(test).with_data_parallel(places=["cpu"]),
            FluidTypeError,
            "a place is CPUPlace",
        ),
        (
            lambda: compiled(test).with_data_parallel(share_vars_from=compiled(main), places=one),
            FluidValueError,
            "The shared Program is not data parallel",
        ),
        (
            lambda: compiled(test).with_data_parallel(places=one).with_data_parallel(places=one),
            FluidValueError,
            "cannot be recompiled",
        ),
    ):
        with pytest.raises(error, match=told):
            call()


def test_parallel_executor(network, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "1")
    main, test, startup, loss = network
    fluid.Executor(fluid.CPUPlace()).run(startup)
    train = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=main)
    check = fluid.ParallelExecutor(use_cuda=False, main_program=test, share_vars_from=train)
    first = train.run(feed={"x": X}, fetch_list=[loss.name])[0]
    second = np.asarray(check.run([loss.name], [{"x": X}], return_numpy=False)[0])
    train.drop_local_exe_scopes()
    assert first.shape == second.shape == (1,) and second < first and train.device_count == 1
    with pytest.raises(FluidTypeError, match="share_vars_from should be ParallelExecutor, not int"):
        fluid.ParallelExecutor(use_cuda=False, main_program=test, share_vars_from=3)
    with pytest.raises(FluidValueError, match="for 2 trainers, but this process runs by itself"):
        fluid.ParallelExecutor(use_cuda=False, main_program=test, num_trainers=2)
    if not fluid.is_compiled_with_cuda():
        with pytest.raises(FluidValueError, match="JAX sees no GPU"):
            fluid.ParallelExecutor(use_cuda=True, main_program=test)
