"""Threads of one program that share scopes, programs, executors and predictors.

What the threads must not do is tried where they can: they meet at barriers, and functions that a
step calls wait for one another.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.core import AnalysisConfig, create_paddle_predictor
from fluidjax.predictors.predictor import Predictor
from fluidjax.runtime import calling
from fluidjax.state.turns import NOBODY, Turn, looking, stepping

from ..nets import fresh
from .test_compiles_once import compiles  # noqa: F401

SECONDS = 60


def together(*works: Callable[[], Any]) -> list[Any]:
    """What these return, each in a thread of its own, all begun at once. Raises what one of them
    raises, or if they hang.
    """
    barrier = threading.Barrier(len(works), timeout=SECONDS)

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait()
        return work()

    pool = ThreadPoolExecutor(len(works))
    try:
        waiting = [pool.submit(begin, work) for work in works]
        return [each.result(timeout=SECONDS) for each in waiting]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Net:
    """Adam on a net with dropout and batch_norm: parameters, packed moments, statistics and random
    numbers.
    """

    def __init__(self, seed: int = 3, width: int = 4) -> None:
        with fresh(seed) as (self.main, self.startup):
            x = fluid.data("x", [None, 4])
            h = layers.dropout(layers.batch_norm(layers.fc(x, width, act="tanh")), 0.2)
            self.out = layers.fc(h, 1)
            self.loss = layers.mean(layers.square(self.out))
            self.test = self.main.clone(for_test=True)
            fluid.optimizer.Adam(0.1).minimize(self.loss)
        self.scope, self.exe = fluid.Scope(), fluid.Executor()
        self.exe.run(self.startup, scope=self.scope)
        self.names = sorted(v.name for v in self.main.list_vars() if v.persistable)

    def step(self, exe: fluid.Executor | None = None, scale: float = 1.0) -> Any:
        feed = {"x": np.full((2, 4), scale, np.float32)}
        return (exe or self.exe).run(
            self.main, feed=feed, fetch_list=[self.loss], scope=self.scope
        )[0]

    def predict(self, exe: fluid.Executor | None = None, rows: int = 2) -> np.ndarray:
        feed = {"x": np.ones((rows, 4), np.float32)}
        return (exe or self.exe).run(self.test, feed=feed, fetch_list=[self.out], scope=self.scope)[
            0
        ]

    def state(self) -> dict[str, np.ndarray]:
        return self.scope.between_steps(
            self.names, lambda: {n: self.scope.get(n) for n in self.names}
        )


# -- one scope, several threads --------------------------------------------------------------------


def test_training_by_threads_is_training_in_some_order() -> None:
    """Equal steps: whatever the order, so many of them were taken, each from where another one
    ended.
    """
    one, other = Net(), Net()
    together(*[lambda: [one.step() for _ in range(12)]] * 4)
    for _ in range(48):
        other.step()
    mine, alone = one.state(), other.state()
    assert all(np.array_equal(mine[n], alone[n]) for n in one.names)


def test_executors_of_several_threads_take_turns() -> None:
    """Without random numbers, of which each executor counts its own, their steps are one sequence
    too.
    """
    with fresh(3) as (main, startup):
        loss = layers.mean(layers.square(layers.fc(fluid.data("x", [None, 4]), 3)))
        fluid.optimizer.Adam(0.1).minimize(loss)
    feed, ends = {"x": np.ones((2, 4), np.float32)}, []
    for threads in (1, 4):
        scope = fluid.Scope()
        fluid.Executor().run(startup, scope=scope)

        def train(steps: int = 40 // threads, scope: fluid.Scope = scope) -> None:
            exe = fluid.Executor()
            for _ in range(steps):
                exe.run(main, feed=feed, fetch_list=[loss], scope=scope)

        together(*[train] * threads)
        ends.append({v.name: scope.get(v.name) for v in main.list_vars() if v.persistable})
    for name, value in ends[0].items():
        assert np.array_equal(value, ends[1][name]), name


@pytest.fixture
def waits() -> Iterator[tuple[threading.Event, threading.Event, fluid.Program, Any]]:
    """A program that adds 1 to `w`, which waits within its step: an event that says that it is
    there, one that lets it go on.
    """
    inside, go_on = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        inside.set()
        assert go_on.wait(SECONDS)
        return np.asarray(x)

    with fresh() as (main, _):
        w = layers.create_global_var([1], 0.0, "float32", persistable=True, name="w")
        seen = main.global_block().create_var(name="seen", shape=[1], dtype="float32")
        layers.py_func(wait, w, seen)
        layers.assign(seen + 1.0, w)
    yield inside, go_on, main, seen
    go_on.set()


def test_a_second_step_waits_for_the_first(waits: Any) -> None:
    inside, go_on, main, seen = waits
    scope, exe = fluid.Scope(), fluid.Executor()
    scope.var("w").set(np.zeros(1, np.float32))
    run = lambda: float(exe.run(main, fetch_list=[seen], scope=scope)[0][0])  # noqa: E731
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run)
        assert inside.wait(SECONDS)
        second = pool.submit(run)
        assert scope.get("w") == [0]  # who looks need not wait: it is the state before the step
        go_on.set()
        assert sorted((first.result(SECONDS), second.result(SECONDS))) == [0, 1]
    assert scope.get("w") == [2]


def test_a_write_from_outside_waits_for_the_step(waits: Any) -> None:
    inside, go_on, main, seen = waits
    scope, exe = fluid.Scope(), fluid.Executor()
    scope.var("w").set(np.zeros(1, np.float32))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: exe.run(main, fetch_list=[seen], scope=scope))
        assert inside.wait(SECONDS)
        write = pool.submit(lambda: scope.find_var("w").set(np.full(1, 7, np.float32)))  # type: ignore[union-attr]
        assert scope.get("w") == [0]
        go_on.set()
        first.result(SECONDS), write.result(SECONDS)
    assert scope.get("w") == [7]


def test_a_function_of_a_step_reads_and_sets_variables() -> None:
    """It runs in another thread, for which the step waits, so it must not wait for the step."""
    scope, exe = fluid.Scope(), fluid.Executor()
    seen = []

    def look(x: np.ndarray) -> np.ndarray:
        seen.append(float(scope.get("w")[0]))
        scope.find_var("rate").set(np.full(1, seen[-1], np.float32))  # type: ignore[union-attr]
        return np.asarray(x)

    with fresh() as (main, _):
        w = layers.create_global_var([1], 0.0, "float32", persistable=True, name="w")
        rate = layers.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
        out = main.global_block().create_var(name="out", shape=[1], dtype="float32")
        layers.py_func(look, w, out)
        layers.assign(out + rate * 0.0 + 1.0, w)
    for name in ("w", "rate"):
        scope.var(name).set(np.zeros(1, np.float32))
    together(*[lambda: [exe.run(main, scope=scope) for _ in range(3)]] * 2)
    assert seen == [0, 1, 2, 3, 4, 5] and scope.get("rate") == [5]


def test_steps_on_different_states_run_side_by_side() -> None:
    """Two programs in one scope, and one program in two scopes: each waits for the other within its
    step.
    """
    barrier = threading.Barrier(2, timeout=SECONDS)

    def meet(x: np.ndarray) -> np.ndarray:
        barrier.wait()
        return np.asarray(x)

    programs = []
    for name in "vw":
        with fresh() as (main, _):
            var = layers.create_global_var([1], 0.0, "float32", persistable=True, name=name)
            met = main.global_block().create_var(name="met", shape=[1], dtype="float32")
            layers.py_func(meet, var, met)
            layers.assign(met + 1.0, var)
        programs.append(main)
    scope, kids, exe = fluid.Scope(), [fluid.Scope(), fluid.Scope()], fluid.Executor()
    for each in (scope, *kids):
        for name in "vw":
            each.var(name).set(np.zeros(1, np.float32))
    together(*(lambda main=main: exe.run(main, scope=scope) for main in programs))
    together(*(lambda kid=kid: [exe.run(programs[0], scope=kid) for _ in range(2)] for kid in kids))
    assert [scope.get("v"), scope.get("w"), kids[0].get("v"), kids[1].get("v")] == [1, 1, 2, 2]


def test_readers_and_savers_see_a_state_between_two_steps(tmp_path: Path) -> None:
    """`a` and `b` are always equal between steps; the large one travels by itself, the small ones
    packed.
    """
    with fresh() as (main, startup):
        parts = [
            layers.create_global_var([n], 0.0, "float32", persistable=True, name=f"v{i}")
            for i, n in enumerate([9000] + [2] * 20)
        ]
        for part in parts:
            layers.assign(part + 1.0, part)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    names, ended, saved = [p.name for p in parts], threading.Event(), []

    def train() -> None:
        for _ in range(150):
            exe.run(main, scope=scope)
        ended.set()

    def look() -> None:
        while not ended.is_set():
            assert (
                len(
                    {
                        float(v.max())
                        for v in scope.between_steps(names, lambda: [scope.get(n) for n in names])
                    }
                )
                == 1
            )
            assert len(set(scope.get(names[0]).tolist())) == 1

    def save() -> None:
        with fluid.scope_guard(scope):
            while not ended.is_set():
                fluid.io.save_persistables(fluid.Executor(), str(tmp_path), main)
                state = fluid.read_state(main)
                saved.append({float(np.max(v)) for v in state.values()})

    together(train, train, look, save)
    assert scope.get(names[0])[0] == 300 and all(len(each) == 1 for each in saved)
    other = fluid.Scope()
    with fluid.scope_guard(other):
        fluid.io.load_persistables(exe, str(tmp_path), main)
    assert len({float(other.get(n)[0]) for n in names}) == 1


def test_loading_comes_between_two_steps(tmp_path: Path) -> None:
    """Every step sees all of what was loaded, or nothing."""
    with fresh() as (main, startup):
        parts = [
            layers.create_global_var([2], 0.0, "float32", persistable=True, name=f"v{i}")
            for i in range(20)
        ]
        apart = layers.reduce_sum(layers.abs(layers.concat([p - parts[0] for p in parts])))
        for part in parts:
            layers.assign(part + 1.0, part)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    with fluid.scope_guard(scope):
        fluid.save(main, str(tmp_path / "model"))
    ended = threading.Event()

    def load() -> None:
        with fluid.scope_guard(scope):
            while not ended.is_set():
                fluid.load(main, str(tmp_path / "model"))

    def train() -> list[float]:
        try:
            return [float(exe.run(main, fetch_list=[apart], scope=scope)[0]) for _ in range(60)]
        finally:
            ended.set()

    assert together(load, train)[1] == [0.0] * 60


@pytest.mark.slow
def test_predictions_beside_training_in_one_scope() -> None:
    """The program for tests reads what the other one donates; programs that share parameters; loads
    and stores between.
    """
    net = Net(width=40)
    net.step(), net.predict()
    stop = threading.Event()

    def train() -> None:
        try:
            for _ in range(100):
                net.step()
        finally:
            stop.set()

    def predict() -> None:
        exe = fluid.Executor()
        while not stop.is_set():
            assert np.isfinite(net.predict(exe)).all() and np.isfinite(net.predict()).all()

    together(train, predict, predict)
    alone = Net(width=40)
    for _ in range(101):
        alone.step()
    assert all(np.array_equal(net.scope.get(n), alone.scope.get(n)) for n in net.names)
    assert np.array_equal(net.predict(), alone.predict())


def test_programs_that_share_some_of_their_state() -> None:
    """Two optimizers on overlapping parameters, and one that reads what the other writes (a GAN's):
    all steps count.
    """
    programs = []
    with fresh() as (_, startup):
        for names in (("a", "b"), ("b", "c"), ("c", "a")):
            with fluid.program_guard(fluid.Program(), startup):
                first, second = (
                    layers.create_global_var([1], 0.0, "float32", persistable=True, name=n)
                    for n in names
                )
                layers.increment(first)
                seen = layers.create_global_var(
                    [1], 0.0, "float32", persistable=True, name="seen_" + names[1]
                )
                layers.assign(second + first * 0.0, seen)
                if names[0] != "c":
                    layers.increment(second)
            programs.append(first.block.program)
    scope, exe = fluid.Scope(), fluid.Executor()
    for name in ("a", "b", "c", "seen_a", "seen_b", "seen_c"):
        scope.var(name).set(np.zeros(1, np.float32))
    together(
        *(
            lambda main=main: [exe.run(main, scope=scope) for _ in range(25)]
            for main in programs * 2
        )
    )
    assert [float(scope.get(n)[0]) for n in "abc"] == [50, 100, 100]


def reader_and_writer() -> tuple[fluid.Program, fluid.Program, fluid.Scope]:
    """c = a + 1, and a += 1; both are state."""
    programs = fluid.Program(), fluid.Program()
    for main, (read, written) in zip(programs, ("ac", "aa"), strict=True):
        with fluid.program_guard(main, fluid.Program()):
            made = {
                n: layers.create_global_var([1], 0.0, "float32", persistable=True, name=n)
                for n in dict.fromkeys((read, written))
            }
            layers.assign(made[read] + 1.0, made[written])
    scope = fluid.Scope()
    for name in "ac":
        scope.var(name).set(np.zeros(1, np.float32))
    return *programs, scope


def test_what_a_step_reads_is_given_away_before_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer, scope = reader_and_writer()
    exe, held = fluid.Executor(), calling.held
    exe.run(writer, scope=scope)
    between = [lambda: exe.run(writer, scope=scope)]

    def overtaken(locks: Any, work: Callable[[], Any]) -> Any:
        if between:
            together(between.pop())
        return held(locks, work)

    monkeypatch.setattr(calling, "held", overtaken)
    exe.run(reader, scope=scope)
    assert not between
    assert [float(scope.get(n)[0]) for n in "ac"] == [2, 3]


def test_run_steps_and_runs_of_other_threads() -> None:
    one, other = Net(), Net()
    feed = {"x": np.ones((2, 4), np.float32)}
    many = lambda: [  # noqa: E731
        one.exe.run_steps(one.main, [feed] * 4, [one.loss], scope=one.scope) for _ in range(4)
    ]
    together(many, lambda: [one.step() for _ in range(16)])
    for _ in range(32):
        other.step()
    mine, alone = one.state(), other.state()
    for name in one.names:
        np.testing.assert_allclose(mine[name], alone[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_startup_program_comes_between_two_steps() -> None:
    with fresh() as (main, startup):
        parts = [
            layers.create_global_var([2], 0.0, "float32", persistable=True, name=f"v{i}")
            for i in range(20)
        ]
        apart = layers.reduce_sum(layers.abs(layers.concat([p - parts[0] for p in parts])))
        for part in parts:
            layers.assign(part + 1.0, part)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    run = lambda: [float(exe.run(main, fetch_list=[apart], scope=scope)[0]) for _ in range(40)]  # noqa: E731
    found = together(run, run, lambda: [exe.run(startup, scope=scope) for _ in range(20)])
    assert found[:2] == [[0.0] * 40] * 2


def test_an_executor_that_is_closed_meanwhile_says_so() -> None:
    net = Net()
    net.step()
    stepped = threading.Event()

    def train() -> None:
        for _ in range(10_000):
            net.step()
            stepped.set()

    def close() -> None:
        assert stepped.wait(SECONDS)
        net.exe.close()

    with pytest.raises(fluid.FluidError, match="the executor was closed"):
        together(train, close)
    assert np.isfinite(net.scope.get(net.names[0])).all()


# -- who only predicts -----------------------------------------------------------------------------


def looping() -> tuple[fluid.Program, fluid.Program, Any]:
    """A while loop whose body normalises by statistics that stay."""
    with fresh(5) as (main, startup):
        x, i = fluid.data("x", [None, 3]), layers.fill_constant([1], "int64", 0)
        n = layers.fill_constant([1], "int64", 3)
        attrs = {"moving_mean_name": "mean", "moving_variance_name": "variance", "is_test": True}

        def body(i: Any, x: Any) -> list[Any]:
            return [i + 1, layers.batch_norm(x, param_attr="scale", bias_attr="bias", **attrs)]

        out = layers.while_loop(lambda i, x: layers.less_than(i, n), body, [i, x])[1]
    return main, startup, out


def plain() -> tuple[fluid.Program, fluid.Program, Any]:
    net = Net()
    return net.test, net.startup, net.out


@pytest.mark.parametrize("build", [plain, looping])
def test_a_program_that_predicts_changes_nothing_and_is_given_nothing(
    build: Callable[[], Any],
) -> None:
    main, startup, out = build()
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    names = [
        v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name) is not None
    ]
    vars = [scope.find_var(n) for n in names]
    width = 4 if build is plain else 3
    before = [v.storage.read() for v in vars]
    for _ in range(3):
        exe.run(main, feed={"x": np.ones((2, width), np.float32)}, fetch_list=[out], scope=scope)
    (compiled,) = exe.compiled_steps(main)
    assert (
        compiled.plan.reads_only
        and not compiled.plan.written
        and all(v.turn is NOBODY for v in vars)
    )
    assert not any(a.is_deleted() for a in before if isinstance(a, jax.Array))
    assert all(np.array_equal(a, v.value) for a, v in zip(before, vars, strict=True))


def test_predictions_run_beside_each_other() -> None:
    """Two threads in one executor on one program and scope: each waits for the other within its
    run.

    They fetch different things, for XLA's CPU backend has calls of one executable that call Python
    wait for each other itself.
    """
    barrier = threading.Barrier(2, timeout=SECONDS)

    def meet(x: np.ndarray) -> np.ndarray:
        barrier.wait()
        return np.asarray(x)

    with fresh(2) as (main, startup):
        x = fluid.data("x", [None, 3])
        met = main.global_block().create_var(name="met", shape=[-1, 3], dtype="float32")
        layers.py_func(meet, x, met)
        out = layers.fc(met, 2)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((1, 3), np.float32)}
    fetches = [out], [out, met]
    found = together(
        *(
            lambda f=f: [exe.run(main, feed=feed, fetch_list=f, scope=scope)[0] for _ in range(3)]
            for f in fetches
        )
    )
    assert len({value.tobytes() for each in found for value in each}) == 1


@contextlib.contextmanager
def served(tmp_path: Path, width: int = 16) -> Iterator[Predictor]:
    net = Net(width=width)
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.test)
    yield create_paddle_predictor(AnalysisConfig(str(tmp_path)))


def ask(predictor: Predictor, times: int, sizes: tuple[int, ...] = (2,)) -> set[bytes]:
    """The first rows of the answers; all samples are alike, so these must be."""
    found = set()
    for i in range(times):
        predictor.get_input_tensor("x").copy_from_cpu(
            np.ones((sizes[i % len(sizes)], 4), np.float32)
        )
        predictor.zero_copy_run()
        answer = predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()
        assert answer.shape == (sizes[i % len(sizes)], 1)
        found.add(np.round(answer[0], 5).tobytes())
    return found


def test_clones_of_a_predictor_serve_in_threads(tmp_path: Path, compiles: list[str]) -> None:  # noqa: F811
    with served(tmp_path) as predictor:
        answers = together(*[lambda: ask(predictor.clone(), 40)] * 4)
        assert len(set.union(*answers)) == 1 and ask(predictor, 1) == answers[0]
        del compiles[:]
        assert ask(predictor.clone(), 1) == answers[0] and not compiles  # compiled once for all


def test_one_predictor_serves_in_threads(tmp_path: Path) -> None:
    """By `run`, whose inputs and outputs are the caller's."""
    from fluidjax.core import PaddleTensor

    def work(k: int) -> list[bool]:
        found = []
        for _ in range(20):
            (out,) = predictor.run([PaddleTensor(np.full((k, 4), 1, np.float32))])
            found.append(out.as_ndarray().shape == (k, 1))
        return found

    with served(tmp_path) as predictor:
        assert all(map(all, together(*(lambda k=k: work(k) for k in (1, 2, 3, 2)))))


def test_one_executor_serves_a_loaded_program_in_threads(tmp_path: Path) -> None:
    net, exe, scope = Net(), fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.test)
    with fluid.scope_guard(scope):
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe)

    def work(rows: int) -> bytes:
        feed = {feeds[0]: np.ones((rows, 4), np.float32)}
        answers = [
            exe.run(program, feed=feed, fetch_list=targets, scope=scope)[0] for _ in range(30)
        ]
        assert all(a.shape == (rows, 1) for a in answers)
        return np.round(answers[-1][0], 5).tobytes()

    assert len(set(together(*(lambda rows=rows: work(rows) for rows in (1, 2, 3, 1))))) == 1


@pytest.mark.slow
def test_stress_of_a_server(tmp_path: Path) -> None:
    """8 threads, 2,000 requests of mixed sizes."""
    with served(tmp_path) as predictor:
        answers = together(*[lambda: ask(predictor.clone(), 250, (1, 2, 3, 5, 8))] * 8)
    assert len(set.union(*answers)) == 1


# -- the turns themselves --------------------------------------------------------------------------


class Var:
    def __init__(self, turn: Turn) -> None:
        self.turn = turn


def test_turns_are_taken_in_one_order() -> None:
    """Whoever asks for several in whatever order: nobody waits for somebody who waits for him."""
    first, second = Turn(), Turn()
    together(
        lambda: [stepping([first, second], lambda: None) for _ in range(300)],
        lambda: [
            looking([Var(second), Var(NOBODY), Var(first)], lambda: None, changing=True)
            for _ in range(300)
        ],
        lambda: [looking([Var(NOBODY), Var(first)], lambda: None) for _ in range(300)],
    )


def test_who_waits_comes_before_a_loop_of_steps() -> None:
    """A loop that lets pass whoever waits does not keep a reader out, however short its steps are."""
    turn, looked = Turn(), threading.Event()

    def loop() -> int:
        for steps in range(1_000_000):
            turn.let_pass()
            if looked.is_set():
                return steps
            with turn.steps, turn.arrays:
                pass
        raise AssertionError("the reader never came in")

    together(loop, lambda: looking([Var(turn)], looked.set))


def test_a_wait_that_is_interrupted_leaves_nothing_behind() -> None:
    turn = Turn()

    def stop() -> None:
        raise KeyboardInterrupt

    for work in (lambda: stepping([turn], stop), lambda: looking([Var(turn)], stop)):
        with pytest.raises(KeyboardInterrupt):
            work()
    assert not turn.waiting and together(
        lambda: looking([Var(turn)], lambda: 1, changing=True)
    ) == [1]
