"""A step in two tiers: which executable a step runs on, and that nothing but the last bits depends on it."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import cli, layers
from fluidjax.lower.step import Step
from fluidjax.ops import convolution_ways
from fluidjax.runtime import tiers, work
from fluidjax.runtime.building import feed_types
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.effort import (
    OPTIMISED,
    OPTIMISED_IN_LIBRARY,
    QUICK,
    QUICK_IN_LIBRARY,
    QUICK_WITH_FAST_LOOPS,
    QUICK_WITH_FAST_LOOPS_IN_LIBRARY,
    Effort,
)
from fluidjax.runtime.placement import OneDevice
from fluidjax.runtime.recompiles import Recompiles
from fluidjax.runtime.tiers import Tiers

from ..checkpoint.model import Job
from ..examples import examples
from ..nets import fresh
from ..ops import compile_time
from ..random_programs import build, recipes


@pytest.fixture(autouse=True)
def steps() -> Iterator[Callable[[int], None]]:
    """Sets how many steps are quick; afterwards it is what it was."""
    before = fluid.get_flags("FLAGS_quick_steps")
    yield lambda count: fluid.set_flags({"FLAGS_quick_steps": count})
    fluid.set_flags(before)
    for thread in threading.enumerate():
        if thread.name == "fluidjax-background":
            thread.join(60)  # what it would write to the cache of this run must not come after its end


@functools.cache
def net() -> tuple[fluid.Program, fluid.Program, Any]:
    """Dropout, norms and Adam, with enough small state that the optimised step packs it."""
    with fresh(3) as (main, startup):
        h = layers.batch_norm(fluid.data("x", [None, 6]))
        h = layers.dropout(layers.layer_norm(layers.fc(h, 6, act="tanh")), 0.2)
        loss = layers.mean(layers.square(h))
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, loss


class Training:
    """A run of `net` with the first `quick` steps quick: its losses, and its state at the end."""

    def __init__(self, quick: int, **given: Any) -> None:
        self.main, self.startup, self.loss = cast("Any", given.get("net") or net())
        fluid.set_flags({"FLAGS_quick_steps": 0})
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        self.exe.run(self.startup, scope=self.scope)
        fluid.set_flags({"FLAGS_quick_steps": quick})
        self.program = given.get("program") or self.main
        self.losses: list[Any] = []
        self.efforts: list[str] = []

    def feeds(self, count: int) -> list[dict[str, Any]]:
        first = len(self.losses)
        return [{"x": np.random.RandomState(first + i).rand(4, 6).astype("float32")} for i in range(count)]

    def run(self, count: int, fetch: Any = None) -> Training:
        for feed in self.feeds(count):
            self._ran(self.exe.run(self.program, feed, [fetch or self.loss], scope=self.scope))
        return self

    def run_steps(self, count: int) -> Training:
        (losses,) = self.exe.run_steps(self.program, self.feeds(count), [self.loss], scope=self.scope)
        for loss in losses:
            self._ran([loss])
        return self

    @property
    def effort(self) -> Effort:
        """How the executable was compiled that ran last."""
        (compiled,) = self.exe.compiled_steps(self.program)
        return compiled.effort

    def _ran(self, values: list[Any]) -> None:
        self.losses.append(np.array(values[0]).tobytes())
        self.efforts.append(self.exe.compiled_steps(self.program)[0].effort.name)

    @property
    def state(self) -> dict[str, np.ndarray]:
        return {v.name: self.scope.get(v.name) for v in fluid.io.get_program_persistable_vars(self.main)}

    def near(self, other: Training) -> bool:
        for one, two in zip(self.losses, other.losses, strict=True):
            np.testing.assert_allclose(np.frombuffer(one, "f4"), np.frombuffer(two, "f4"), rtol=1e-4, atol=1e-6)
        mine, theirs = self.state, other.state
        for name in mine:
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-3, atol=1e-5, err_msg=name)
        return True

    def same(self, other: Training) -> bool:
        mine, theirs = self.state, other.state
        return self.losses == other.losses and all((mine[n] == theirs[n]).all() for n in mine)


PLAIN, FIRST = OPTIMISED.name, QUICK.name


def test_the_swap_comes_at_its_step_and_a_second_run_is_the_same() -> None:
    plain, one, again = Training(0).run(7), Training(3).run(7), Training(3).run(7)
    assert plain.efforts == [PLAIN] * 7
    assert one.efforts == again.efforts == [FIRST] * 3 + [PLAIN] * 4
    assert one.same(again) and one.near(plain)
    assert list(feed_types({"b": np.ones(3), "a": np.ones(2)})) == ["b", "a"]  # a call's signature goes by the order
    quick, optimised = one.exe.compilations(one.main)
    assert (quick.effort, quick.background, optimised.effort, optimised.background) == (FIRST, False, PLAIN, True)
    assert quick.feed == {"x": "float32[4, 6]"} and quick.fetches == (one.loss.name,) and min(quick.trace, quick.compile) > 0
    (last,), (first,) = (run.exe.compiled_steps(run.main) for run in (one, Training(3).run(1)))
    packs = [[p.joint is None for p in layouts[0].packs] for step in (first, last) if (layouts := step.layouts)]
    assert packs == [[False] * 4, [True]]  # stacks of moments; all that is small


ACTS = st.lists(st.sampled_from(["run", "run", "fetch", "steps", "nan", "read", "write"]), min_size=4, max_size=6)


@examples(5)
@given(ACTS, st.integers(0, 6))
def test_at_any_step_with_whatever_comes_between(acts: list[str], quick: int) -> None:
    def train(quick: int) -> Training:
        this = Training(quick)
        for act in acts:
            if act == "steps":
                this.run_steps(2)
            elif act == "fetch":
                this.run(1, "batch_norm_0.w_0")
            elif act == "read":
                this.state  # noqa: B018 - looking at it is the act
            elif act == "write":
                weight = cast("Any", this.scope.find_var("fc_0.w_0")).get_tensor()
                weight.set(np.array(weight) * 0.5, fluid.CPUPlace())
            else:
                fluid.set_flags({"FLAGS_check_nan_inf": act == "nan"})
                this.run(1)
                fluid.set_flags({"FLAGS_check_nan_inf": False})
        return this

    one = train(quick)
    assert one.same(train(quick)) and one.near(train(0))


@examples(3)
@given(recipes(), st.integers(0, 4))
def test_random_programs(recipe: list[tuple[Any, ...]], quick: int) -> None:
    made = build(recipe, fluid.optimizer.Adam(0.01))

    def train(quick: int) -> Training:
        this = Training(quick, net=(made.main, made.startup, made.loss))
        this.feeds = lambda count: [made.feed] * count  # type: ignore[method-assign]
        return this.run(4)

    one = train(quick)
    assert one.same(train(quick)) and one.near(train(0))


@pytest.mark.first(1)
@pytest.mark.parametrize("random", [True, False])
@pytest.mark.parametrize("saved", [1, 4])
def test_a_resumed_run_is_in_the_tier_of_one_that_went_on(steps: Callable[[int], None], tmp_path: Any, saved: int, random: bool) -> None:
    """The number of steps is in the checkpoint, also where nothing is drawn by it."""

    def job() -> Job:
        steps(0)
        made = Job()
        steps(3)
        if not random:
            made.runs = made.main = made.main.clone(for_test=False)
            for op in [op for op in made.main.global_block().ops if op.type == "dropout"]:
                op._set_attr("is_test", True)
        return made

    whole, begun, resumed = job(), job(), job()
    whole.train(6)
    begun.train(saved, str(tmp_path), save_at=[saved], asynchronous=False)
    resumed.load(str(tmp_path))
    resumed.train(6)
    assert resumed.losses == whole.losses[saved:] and resumed.state() == whole.state()
    efforts = [[made.effort for made in one.exe.compilations(one.main)] for one in (whole, resumed)]
    assert efforts == [[FIRST, PLAIN], [FIRST, PLAIN] if saved < 3 else [PLAIN]]


def test_an_optimised_step_that_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick one goes on, one warning."""

    def refused(compiled: Any, *args: Any, **given: Any) -> Iterator[None]:
        raise RuntimeError("XLA is out of memory\nat length")
        yield

    monkeypatch.setattr(tiers, "building", refused)
    one = Training(3).run(3)
    with pytest.warns(RuntimeWarning, match=r"could not be compiled \(RuntimeError: XLA is out of memory\); the program goes on") as told:
        one.run(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.run(3)
    assert len(told) == 1 and one.efforts == [FIRST] * 7 and one.same(Training(100).run(7))


def test_ctrl_c_while_a_step_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost: the next step waits again."""
    go, slow = threading.Event(), tiers.building

    def building(*args: Any, **given: Any) -> Iterator[None]:
        assert go.wait(60)
        yield from slow(*args, **given)

    monkeypatch.setattr(tiers, "building", building)
    one = Training(3).run(3)
    with monkeypatch.context() as patch:
        patch.setattr(tiers.Future, "exception", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.run(1)
    go.set()
    assert one.run(4).efforts == [FIRST] * 3 + [PLAIN] * 4 and one.same(Training(3).run(7))


def _interrupted(future: Any, timeout: Any = None) -> None:
    raise KeyboardInterrupt


def test_several_devices_at_once_and_in_turn() -> None:
    main, _, loss = net()
    for places in ([fluid.CPUPlace(), fluid.CPUPlace()], None):
        places = places or fluid.cpu_places(2)

        def train(quick: int, places: Any = places) -> Training:
            program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
            return Training(quick, program=program).run(5)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the two places share a device
            one = train(2)
            assert one.efforts == [FIRST] * 2 + [PLAIN] * 3
            assert one.same(train(2)) and one.near(train(0))


def test_who_has_tiers(steps: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of themselves programs of many ops, on the CPU; a prediction too; never what only initialises, which is not compiled."""

    def of(program: Any, fetch: list[Any], given: dict[str, Any]) -> list[str]:
        exe = fluid.Executor()
        exe.run(program, given, fetch, scope=scope)
        return [made.effort for made in exe.compilations(program)]

    main, startup, loss = net()
    scope, feed = fluid.Scope(), {"x": np.ones((2, 6), "float32")}
    test = main.clone(for_test=True)._prune([loss])
    steps(5)
    assert of(startup, [], {}) == []
    assert of(main, [loss], feed) == of(test, [loss], feed) == [FIRST]
    steps(0)
    assert of(main, [loss], feed) == [PLAIN]
    steps(-1)
    assert of(main, [loss], feed) == [PLAIN]
    with monkeypatch.context() as patch:
        patch.setattr(tiers, "MANY_OPS", 20)
        assert of(main, [loss], feed) == [FIRST] and of(test, [loss], feed) == [PLAIN]
    monkeypatch.setattr(work, "DEAR", {"layer_norm": 0.2, "tanh": 0.2})  # a small program whose ops are long to compile
    assert of(main, [loss], feed) == [PLAIN]
    monkeypatch.setattr(work, "DEAR", {"layer_norm": 0.3, "tanh": 0.2})
    assert of(main, [loss], feed) == of(test, [loss], feed) == [FIRST]


def test_what_the_compiler_has_to_do_is_told_from_the_ops() -> None:
    """Those of a loop's block too; the dearest are in a table, which is that of the page of measurements."""
    with fresh() as (main, _):
        x, number = fluid.data("x", [None, 8], lod_level=1), layers.fill_constant([1], "int64", 0)
        ten = layers.fill_constant([1], "int64", 10)
        going = layers.less_than(number, ten)
        with layers.While(going).block():
            layers.increment(number)
            layers.less_than(number, ten, cond=going)
        hidden, _ = layers.dynamic_lstm(x, 8, use_peepholes=False)
    step = Step(main.desc, (number.name, hidden.name))
    assert sorted(op.type for op in work.ops_within(step)) == [*["fill_constant"] * 2, "increment", *["less_than"] * 2, "lstm", "while"]
    assert work.dear_seconds(step) == work.DEAR["lstm"]
    assert work.compiling_seconds(step) == pytest.approx(7 * work.COMPILE_SECONDS + work.DEAR["lstm"])
    assert work.recurrent(step) == 2 * 2 * 8  # a row of 2 times a weight [2, 8]
    measured = compile_time.read(compile_time.PATH.read_text())
    assert {op: f.optimised for op, f in measured.items() if f.optimised >= compile_time.TABLED} == work.DEAR


def test_a_report_is_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="fluidjax"):
        one = Training(1).run(2)
    for made in one.exe.compilations(one.main):
        how = f"{made.effort} in the background" if made.background else made.effort
        assert str(made).startswith(f"one, fetching {one.loss.name}, fed x: float32[4, 6]: {how}: ")
        assert any(text.startswith("compiled a step") and text.endswith(f" ({made}): {made.reason}") for text in caplog.messages)
        assert made.seconds == made.trace + made.lower + made.compile
    assert f"after 1 steps, the step that fetches {one.loss.name} runs optimised" in caplog.messages


def pooled(sides: int, parameters: int) -> Step:
    """A training step with a pool and a parameter; its slow loops are counted in the test below."""
    with fresh() as (main, _):
        image = fluid.data("image", [None, 3, sides, sides])
        weight = layers.create_parameter([parameters], "float32")
        pool = layers.pool2d(image * layers.reduce_sum(weight), 3, "max", 2)
        fluid.optimizer.SGD(0.1).minimize(layers.mean(pool))
    return Step(main.desc, ())


def test_the_quick_executable_has_fast_loops_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the elements that loops write, windows of pools counted, and by the number of ops; not for programs of too many."""
    found = [work.slow_loops_seconds(pooled(sides, parameters), batch) for sides, parameters, batch in ((9, 5, 1), (9, 5, 3), (9, 7, 1))]
    image, windows = 3 * 81, 3 * 16  # image * sum, the gradient of the mean; the pool, and its gradient: windows of nine cells
    a_sample = (image + windows + windows * 9) * work.SLOW_ELEMENT + image * 9 / 4 * work.SLOW_TAP
    assert found[1] - found[0] == pytest.approx(2 * a_sample)
    assert found[2] - found[0] == pytest.approx(2 * 2 * work.SLOW_ELEMENT)  # the gradient and the new value
    small, large, heavy = pooled(9, 5), pooled(500, 5), pooled(9, 10**8)
    assert [tiers.quick_effort(each) for each in (small, large, heavy)] == [QUICK, QUICK_WITH_FAST_LOOPS, QUICK_WITH_FAST_LOOPS]
    monkeypatch.setattr(tiers, "MOST_OPS", len(large.ops) - 1)
    assert tiers.quick_effort(large) is QUICK and QUICK.name == QUICK_WITH_FAST_LOOPS.name


def in_library(this: Training) -> bool:
    return this.effort is QUICK_IN_LIBRARY


def test_long_loops_of_many_samples_are_a_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told from what is fed to the first step; not where the step is within a budget of memory."""
    monkeypatch.setattr(tiers, "LEAST_BATCH", 4)
    assert not in_library(Training(3).run(1))  # its loops are short
    monkeypatch.setattr(tiers, "LONG_LOOPS", 0)
    one, again, plain = (Training(quick).run(6) for quick in (3, 3, 0))
    assert in_library(Training(3).run(1)) and one.same(again) and one.near(plain)
    monkeypatch.setattr(tiers, "LEAST_BATCH", 5)
    assert not in_library(Training(3).run(1))
    monkeypatch.setattr(tiers, "LEAST_BATCH", 4)
    frugal = Training(3, net=tuple(v.clone() if isinstance(v, fluid.Program) else v for v in net()))
    fluid.memory_optimize(frugal.main, skip_opt_set={frugal.loss.name})
    assert not in_library(frugal.run(1))
    fitted = Training(3, net=tuple(v.clone() if isinstance(v, fluid.Program) else v for v in net()))
    fluid.memory_optimize(fitted.main, budget="1GB", batch_size=4, fetch_list=[fitted.loss.name])
    assert not fitted.main.info.memory_optimized and not in_library(fitted.run(1))
    strategy = fluid.BuildStrategy()
    strategy.memory_budget = "1GB"
    within = Training(3)
    within.program = fluid.CompiledProgram(within.main, build_strategy=strategy)
    within.run(1)
    assert [c.effort for c in within.exe.compiled_steps(within.program)] == [QUICK]
    monkeypatch.setattr(tiers, "quick_effort", lambda step: QUICK_WITH_FAST_LOOPS)
    assert not in_library(Training(3).run(1))


def test_the_longest_loops_are_a_librarys_in_an_optimised_step_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are of kinds that suit it; and the rest of the quick step's has vectors."""
    monkeypatch.setattr(tiers, "LEAST_BATCH", 4)
    monkeypatch.setattr(tiers, "LONG_LOOPS", 0)
    monkeypatch.setattr(tiers, "LONGEST_LOOPS", 0)
    monkeypatch.setattr(tiers, "MANY_OPS", 0)
    plain = Training(0).run(6)
    assert plain.effort is OPTIMISED
    monkeypatch.setattr(work, "SUITED_SHARE", 0)
    one, again, never_quick = (Training(quick).run(6) for quick in (3, 3, 0))
    assert Training(3).run(1).effort is QUICK_WITH_FAST_LOOPS_IN_LIBRARY
    assert one.effort is never_quick.effort is OPTIMISED_IN_LIBRARY
    assert one.same(again) and one.near(plain) and never_quick.near(plain)


def images(kind: str) -> Step:
    """Training of some convolutions."""
    with fresh() as (main, _):
        x = fluid.data("image", [None, 8, 16, 16])
        for _i in range(3):
            groups = 8 if kind == "depthwise" else 1
            h = layers.batch_norm(layers.conv2d(x, 8, 3, padding=1, groups=groups, bias_attr=False))
            x = layers.leaky_relu(h) if kind == "leaky" else layers.relu(layers.elementwise_add(x, h))
        fluid.optimizer.SGD(0.1).minimize(layers.mean(x))
    return Step(main.desc, ())


def test_what_suits_the_library_was_measured() -> None:
    assert [work.suits_library(images(kind), 8) for kind in ("dense", "depthwise", "leaky")] == [True, False, False]
    assert not work.suits_library(pooled(9, 5), 8)


@examples(4)
@given(recipes())
def test_random_programs_with_loops_in_a_library(recipe: list[tuple[Any, ...]]) -> None:
    """Not with Adam, which makes a step of any gradient: where that is 0 but for rounding, roundings decide about it."""
    made = build(recipe, fluid.optimizer.Momentum(0.1, 0.9))

    def train(quick: int) -> Training:
        this = Training(quick, net=(made.main, made.startup, made.loss))
        this.feeds = lambda count: [made.feed] * count  # type: ignore[method-assign]
        return this.run(3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "LONG_LOOPS", 0)
        patch.setattr(tiers, "LEAST_BATCH", 0)
        one = train(9)
        assert in_library(one) and one.same(train(9)) and one.near(train(0))
        patch.setattr(tiers, "LONGEST_LOOPS", 0)
        patch.setattr(work, "SUITED_SHARE", -1)
        longest = train(2)
        assert longest.effort is OPTIMISED_IN_LIBRARY and longest.same(train(2)) and longest.near(one)


def test_only_slow_loops_leave_a_grouped_convolution_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_ways, "LARGE", 100)
    with fresh() as (main, _):
        image = fluid.data("image", [2, 8, 8, 8])
        out = layers.conv2d(image, 8, 3, groups=2, bias_attr=False)
    whole = Compiled(main.desc, (out.name,), OneDevice(fluid.CPUPlace().device()), Recompiles())
    weight = {n: jax.ShapeDtypeStruct((8, 4, 3, 3), np.float32) for n in whole.step.reads}
    image_type = {"image": jax.ShapeDtypeStruct((2, 8, 8, 8), np.float32)}
    texts = [whole.again(effort).lower(weight, image_type).as_text() for effort in (QUICK, QUICK_WITH_FAST_LOOPS, OPTIMISED, QUICK)]
    assert ["feature_group_count = 2" in text for text in texts] == [True, False, False, True] and texts[0] == texts[3]


def test_a_run_on_fast_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "LOOP_SECONDS", 0)
    one = Training(2).run(3)
    assert one.exe.compiled_steps(one.main)[0].tiers is None and one.efforts == [FIRST] * 2 + [PLAIN] and one.near(Training(0).run(3))


def test_the_longer_a_step_the_fewer_are_quick() -> None:
    """As many as take as long as the compiler; the products of a step are counted from its shapes."""
    with fresh() as (main, _):
        image, other = fluid.data("image", [None, 3, 8, 8]), fluid.data("other", [None, 5, 6])
        conv = layers.conv2d(image, 4, 3, groups=1, bias_attr=False)  # [-1, 4, 6, 6], each a sum of 27
        up = layers.conv2d_transpose(conv, 2, filter_size=3, bias_attr=False)  # each of [-1, 4, 6, 6] goes into 18
        out = layers.fc(up, 7, bias_attr=False)  # 128 by 7
        both = layers.matmul(other, other, transpose_x=True)  # 6 by 6, each a sum of 5
        fetches = (out.name, both.name)
    want = 2 * (4 * 36 * 27 + 4 * 36 * 18 + 128 * 7 + 36 * 5)
    step = Step(main.desc, fetches)
    assert work.products(step) == want
    with fluid.program_guard(main):
        fluid.optimizer.SGD(0.1).minimize(layers.mean(out))
    step = Step(main.desc, fetches)
    assert work.products(step) == 3 * want
    assert [work.batch_of(f) for f in ({}, {"x": np.ones((5, 2)), "y": np.ones(3)}, ({"x": np.ones(2)}, {"x": np.ones(4)}))] == [1, 5, 6]
    rows = fluid.create_lod_tensor(np.zeros((7, 1), "int64"), [[3, 4]], fluid.CPUPlace())
    assert work.batch_of({"x": rows, "y": np.ones((2, 3))}) == 7  # of sequences, their rows
    quick = Tiers(Compiled(main.desc, fetches, OneDevice(fluid.CPUPlace().device()), Recompiles()))
    counts = [quick.swap({"x": np.broadcast_to(0, (n, 1))}) for n in (1, 10**3, 10**6, 10**9)]
    assert counts == sorted(counts, reverse=True) and counts[0] == tiers.MOST and counts[-1] == tiers.FEWEST


JOB = '''
import os
import fluidjax as fluid
from tests.runtime import test_tiers

main, startup, loss = test_tiers.net()
fluid.dist.init_from_env()
wrong = os.environ.get("WRONG_IN") == os.environ["PADDLE_TRAINER_ID"]
if wrong:
    def refused(*args, **given):
        raise RuntimeError("XLA is out of memory")
        yield
    test_tiers.tiers.building = refused
strategy = fluid.BuildStrategy()
strategy.num_trainers, strategy.trainer_id = 2, int(os.environ["PADDLE_TRAINER_ID"])
program = fluid.CompiledProgram(main).with_data_parallel(loss.name, strategy)
one = test_tiers.Training(2, program=program).run(5)
print("efforts", *one.efforts)
print("losses", *(b.hex() for b in one.losses))
'''


@pytest.mark.parametrize("wrong", [None, "1"])
@pytest.mark.usefixtures("forked")
def test_the_processes_of_a_job_swap_together(
    wrong: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or, where the optimised executable fails in one of them, not at all."""
    script = tmp_path / "train.py"
    script.write_text(JOB)
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setenv("WRONG_IN", wrong or "none")
    assert cli.main(["launch", "--nproc", "2", str(script)]) == 0
    out, err = capfd.readouterr()
    said = {what: [line.partition(what)[2].split() for line in out.splitlines() if what in line] for what in ("efforts", "losses")}
    assert said["efforts"] == [[FIRST] * 2 + [FIRST if wrong else PLAIN] * 3] * 2, (out, err)
    assert len(said["losses"]) == 2
    assert err.count("could not be compiled") == (2 if wrong else 0) and ("in another process" in err) == bool(wrong)


def test_ragged_feeds() -> None:
    with fresh(2) as (main, startup):
        x = fluid.data("x", [None, 6], lod_level=1)
        loss = layers.mean(layers.sequence_pool(layers.fc(x, 4), "sum"))
        fluid.optimizer.Adam(0.01).minimize(loss)

    def train(quick: int) -> Training:
        this = Training(quick, net=(main, startup, loss))
        tensor = fluid.create_lod_tensor(np.ones((5, 6), "float32"), [[2, 3]], fluid.CPUPlace())
        this.feeds = lambda count: [{"x": tensor}] * count  # type: ignore[method-assign]
        return this.run(4)

    one = train(2)
    assert one.efforts == [FIRST] * 2 + [PLAIN] * 2 and one.same(train(2)) and one.near(train(0))
    assert [made.background for made in one.exe.compilations(main)] == [False, True]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "MANY_OPS", 1)
        assert train(-1).efforts == [FIRST] * 4
