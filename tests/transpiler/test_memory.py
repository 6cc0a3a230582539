"""fluid.memory_optimize and fluid.release_memory in place: training goes on as before, and no wrong
value is fetched.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FetchError, FluidTypeError, FluidValueError
from tests.nets import fresh

FEED = {"x": np.linspace(-1, 1, 24, dtype="float32").reshape(3, 8), "y": np.ones((3, 1), "float32")}


class Net:
    """A small training program with its hidden variables."""

    def __init__(self) -> None:
        with fresh(3) as (self.main, self.startup):
            x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
            self.a = layers.tanh(layers.fc(x, 8, bias_attr=False))
            self.b = layers.tanh(layers.fc(self.a, 6, bias_attr=False))
            self.dead = layers.scale(layers.scale(layers.scale(x, 2.0), 3.0), 4.0)
            self.loss = layers.mean(layers.square_error_cost(layers.fc(self.b, 1), y))
            fluid.optimizer.Momentum(0.1, 0.9).minimize(self.loss)

    def run(self, fetch: list[object], steps: int = 1) -> list[np.ndarray]:
        """The fetched values of some steps from the initial parameters, one after another."""
        exe, scope = fluid.Executor(), fluid.Scope()
        for name, value in initial().items():
            scope.var(name).set(value.copy())
        return [
            v
            for _ in range(steps)
            for v in exe.run(self.main, feed=FEED, fetch_list=fetch, scope=scope)
        ]

    def losses(self) -> list[bytes]:
        """Those of three steps, bit by bit."""
        return [v.tobytes() for v in self.run([self.loss.name], 3)]


@functools.cache
def initial() -> dict[str, np.ndarray]:
    """What the startup program gives."""
    net, scope = Net(), fluid.Scope()
    fluid.Executor().run(net.startup, scope=scope)
    return {n: scope.get(n) for n in scope.local_var_names()}


@functools.cache
def plain_losses() -> list[bytes]:
    """Without the rewrite, compiled for memory as what is rewritten: otherwise XLA may fuse, and so
    round, in another way.
    """
    net = Net()
    before = net.run([net.loss.name], 3)
    net.main.update_info(memory_optimized=True)
    np.testing.assert_allclose(net.run([net.loss.name], 3), before, rtol=1e-6)
    return net.losses()


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("skip_grads", [True, False])
def test_training_goes_on_as_before(level: int, skip_grads: bool) -> None:
    want = plain_losses()
    net = Net()
    assert fluid.memory_optimize(net.main, {net.loss}, level=level, skip_grads=skip_grads) is None
    assert net.main.info.memory_optimized and len(net.main.info.reused) > 4
    assert net.losses() == want
    fluid.release_memory(net.main, [net.loss.name])
    assert net.losses() == want


def test_signatures_are_those_of_fluid() -> None:
    assert str(inspect.signature(fluid.transpiler.memory_optimize)).startswith(
        "(input_program: 'Program', skip_opt_set: 'Any' = None, print_log: 'bool' = False, level:"
        " 'int' = 0, skip_grads: 'bool' = True, "
    )
    assert list(inspect.signature(fluid.release_memory).parameters) == [
        "input_program",
        "skip_opt_set",
    ]


@pytest.mark.filterwarnings("ignore:memory_optimize gave away")
def test_every_fetch_is_right() -> None:
    """Over all variables of the program: the value that the untouched program gives, step after
    step.
    """
    plain, shared = Net(), Net()
    fluid.memory_optimize(shared.main, [shared.loss], level=1, skip_grads=False)
    names = [
        n
        for n, v in plain.main.global_block().vars.items()
        if v.desc.kind == "LOD_TENSOR" and not v.persistable
    ]
    kept = [n for n in names if n not in shared.main.info.reused]
    assert len(names) - len(kept) == len(shared.main.info.reused) > 4 and len(kept) > 4
    # without the lost ones, with them, and without again: one training
    for group in (kept, names, kept):
        for name, want, got in zip(group, plain.run(group), shared.run(group), strict=True):
            assert want.tobytes() == got.tobytes(), name


def test_what_is_skipped_can_be_fetched() -> None:
    net = Net()
    names = [net.a.name, net.b.name]
    want = Net().run(names)
    fluid.memory_optimize(net.main, {net.loss.name, net.a, net.b.name}, level=1)
    assert [v.tobytes() for v in net.run(names)] == [v.tobytes() for v in want]


def lost(program: fluid.Program) -> list[str]:
    """A variable whose memory others took, and one that was merged into another."""
    reused = program.info.reused.items()
    return [next(n for n, now in reused if n == now), next(n for n, now in reused if n != now)]


@pytest.mark.slow
def test_a_value_that_was_given_away_is_there_all_the_same(tmp_path: Path) -> None:
    """As in 1.8.5, where memory_optimize does nothing but warn once."""
    plain, net = Net(), Net()
    fluid.memory_optimize(net.main)
    names = lost(net.main)
    with pytest.warns(
        RuntimeWarning, match=f"memory_optimize gave away the memory of '{names[0]}'.*skip_opt_set"
    ) as caught:
        assert [v.tobytes() for v in net.run(names[:1], 2)] == [
            v.tobytes() for v in plain.run(names[:1], 2)
        ]
        net.run(names)
    assert len(caught) == 1
    # and when other passes have run on the program, and of a copy for tests
    fluid.release_memory(net.main)
    for program, want in (
        (net.main, plain.main),
        (net.main.clone(for_test=True), plain.main.clone(for_test=True)),
    ):
        values = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for each in (program, want):
                scope, exe = fluid.Scope(), fluid.Executor()
                for name, value in initial().items():
                    scope.var(name).set(value.copy())
                values.append(
                    exe.run(
                        each, feed=FEED, fetch_list=[plain.loss.name, plain.b.name], scope=scope
                    )
                )
                values[-1] += exe.run_steps(each, [FEED] * 2, [plain.b.name], scope=scope)
                with fluid.scope_guard(scope):
                    state = fluid.read_state(each)
                    values[-1] += fluid.step_fn(each, [plain.b.name])(state, FEED)[1]
                    fluid.io.save_inference_model(
                        str(tmp_path), ["x"], [each.global_block().var(plain.b.name)], exe, each
                    )
                    values[-1] += exe.run(
                        fluid.io.load_inference_model(str(tmp_path), exe)[0],
                        {"x": FEED["x"]},
                        [plain.b.name],
                    )
        # sums that cancel are as exact as their terms
        for got, wanted in zip(*values, strict=True):
            np.testing.assert_allclose(
                got, wanted, rtol=1e-6, atol=4 * np.finfo("float32").eps * np.abs(wanted).max()
            )


def test_on_several_devices_too() -> None:
    values = []
    for optimized in (False, True):
        net = Net()
        if optimized:
            fluid.memory_optimize(net.main)
        compiled = fluid.CompiledProgram(net.main).with_data_parallel(
            net.loss.name, places=fluid.cpu_places(2)
        )
        scope, exe = fluid.Scope(), fluid.Executor()
        for name, value in initial().items():
            scope.var(name).set(value.copy())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values.append(
                [
                    exe.run(
                        compiled, feed=FEED, fetch_list=[net.loss.name, net.a.name], scope=scope
                    )
                    for _ in range(2)
                ]
            )
    for got, want in zip(values[1], values[0], strict=True):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_both_kinds_of_lost_values_are_explained() -> None:
    """Once the program was changed, so that what it was before says nothing of it any more."""
    net = Net()
    fluid.memory_optimize(net.main, [net.loss])
    host, merged = lost(net.main)
    with fluid.program_guard(net.main, net.startup):
        layers.scale(net.loss, 2.0)
    with pytest.raises(
        FetchError,
        match=f"'{host}' does not keep its value: other variables took its memory.*skip_opt_set",
    ):
        net.run([host])
    with pytest.raises(
        FetchError,
        match=f"'{merged}' does not keep its value: it was merged into '.*'.*skip_opt_set",
    ):
        net.run([merged])
    with pytest.raises(FetchError, match="does not keep its value"):
        fluid.step_fn(net.main, [host])
    with pytest.raises(FetchError, match="does not keep its value"):
        net.main._prune([host])
    with pytest.raises(FetchError, match="does not keep its value"):
        fluid.transpiler.apply_passes(net.main, "dce", [host])


COPIES = {
    "clone": lambda p: p.clone(),
    "compiled": fluid.CompiledProgram,
    "pass": lambda p: fluid.transpiler.apply_passes(p, "dce")[0],
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_remember(copy) -> None:
    net = Net()
    fluid.memory_optimize(net.main, [net.loss])
    host = lost(net.main)[0]
    plain, program = Net(), copy(net.main)
    exe, scope = fluid.Executor(), fluid.Scope()
    for name, value in initial().items():
        scope.var(name).set(value.copy())
    with pytest.warns(RuntimeWarning, match="skip_opt_set"):
        found = exe.run(program, feed=FEED, fetch_list=[host], scope=scope)
    np.testing.assert_allclose(found[0], plain.run([host])[0], rtol=1e-6)


def test_a_program_built_on_afterwards() -> None:
    """A lost value can neither be read by a new op nor differentiated; what was skipped can be
    read.
    """
    net = Net()
    fluid.memory_optimize(net.main, [net.loss, net.b])
    host = next(n for n, now in net.main.info.reused.items() if n == now)
    with fluid.program_guard(net.main, net.startup), fluid.unique_name.guard("more_"):
        with pytest.raises(FetchError, match="does not keep its value"):
            layers.scale(net.main.global_block().var(host), 2.0)
        more = layers.scale(net.b, 2.0)
        with pytest.raises(
            FluidValueError, match="call minimize or append_backward before memory_optimize"
        ):
            fluid.optimizer.SGD(0.1).minimize(layers.mean(more))
        with pytest.raises(FluidValueError, match="before memory_optimize"):
            fluid.gradients([more], [net.b])
    assert len(net.run([more.name])) == 1


def test_twice() -> None:
    net, want = Net(), plain_losses()
    fluid.memory_optimize(net.main, [net.loss])
    first = net.main.desc
    fluid.memory_optimize(net.main, [net.loss])
    assert net.main.desc == first
    fluid.memory_optimize(net.main, [net.loss], level=1)
    assert net.main.desc != first and net.losses() == want
    assert set(net.main.info.reused.values()) <= set(net.main.global_block().vars)


def test_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    net = Net()
    fluid.memory_optimize(net.main, [net.loss], print_log=True)
    lines = capsys.readouterr().out.splitlines()
    merged = {n: now for n, now in net.main.info.reused.items() if n != now}
    assert len(lines) == len(merged) > 2
    assert all(line.startswith("Hit Cache !!!! cache pool index is ") for line in lines)
    assert {line.split("var name is ")[1].split(",")[0] for line in lines} == set(merged)


@pytest.mark.parametrize("call", [fluid.memory_optimize, fluid.release_memory])
@pytest.mark.parametrize("skip, error, text", [
    ("loss", FluidTypeError, "skip_opt_set is a set or list of variables or names, not str"),
    (5, FluidTypeError, "skip_opt_set is a set or list of variables or names, not int"),
    ({5}, FluidTypeError, "skip_opt_set takes variables or their names, not int"),
    (["mean_0.tmp_O"], FluidValueError, r"skip_opt_set names 'mean_0.tmp_O', which the program does not have \(did you mean 'mean_0"),
])  # fmt: skip
def test_bad_skip_sets_leave_the_program_alone(call, skip, error, text) -> None:
    net = Net()
    before = net.main.desc
    with pytest.raises(error, match=text):
        call(net.main, skip)
    assert (
        net.main.desc == before and not net.main.info.reused and not net.main.info.memory_optimized
    )


@pytest.mark.parametrize("call", [fluid.memory_optimize, fluid.release_memory])
@pytest.mark.parametrize("program", [None, "x", 3])
def test_no_program(call, program) -> None:
    with pytest.raises(FluidTypeError, match="input_program is a Program, not"):
        call(program)


@pytest.mark.parametrize("level", [2, -1, "0", None])
def test_levels(level) -> None:
    with pytest.raises(ValueError, match=r"^only support opt_level 0 or 1\.$"):
        fluid.memory_optimize(Net().main, level=level)


def test_a_skipped_name_that_is_already_lost() -> None:
    net = Net()
    fluid.memory_optimize(net.main, [net.loss])
    with pytest.raises(FetchError, match="does not keep its value"):
        fluid.memory_optimize(net.main, [net.loss, next(iter(net.main.info.reused))], level=1)
