"""Geo-SGD on a mesh of the trainers, against the same in NumPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.devices.placement import Mesh
from fluidjax.dist import LocalJob
from fluidjax.dist.spmd.pserver import PserverJob, trains
from fluidjax.ir import text
from fluidjax.runtime.runnable import Runnable
from tests.dist.jobs import line_grads, transpiled
from tests.dist.test_local_digits import digits, network, share
from tests.nets import fresh

RATE, W, B = np.float32(0.1), "fc_0.w_0", "fc_0.b_0"
FIRST = {W: np.linspace(-0.3, 0.3, 13, dtype="float32")[:, None], B: np.full(1, 0.1, "float32")}


def on_mesh(program: fluid.Program, ranks: int) -> Runnable:
    """A trainer's program on the ranks that it runs on."""
    return Runnable(
        program, PserverJob(Mesh(tuple(jax.devices()[:ranks])), program.info.pserver_plan)
    )


def fit(ranks: int, every: int) -> tuple[Runnable, fluid.Program, Any]:
    """A line that is fitted: the trainer's program on a mesh, the startup program as it was, the
    loss.
    """
    with fresh() as (main, startup):
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(float(RATE)).minimize(loss)
    first = startup.clone()
    t = transpiled(
        main,
        startup,
        ranks,
        2,
        False,
        {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": every},
    )
    return on_mesh(t.get_trainer_program(), ranks), first, loss


def batches(ranks: int, steps: int) -> list[list[dict[str, np.ndarray]]]:
    """[step][rank]."""
    r = np.random.RandomState(5)
    x = r.uniform(-1, 1, (steps, ranks, 8, 13)).astype("f4")
    y = (x @ np.linspace(-1, 1, 13).astype("f4")[:, None] + 0.5).astype("f4")
    return [[{"x": x[s, r], "y": y[s, r]} for r in range(ranks)] for s in range(steps)]


class Simulated:
    """Geo-SGD in NumPy: trainers, and the values that pservers would hold."""

    def __init__(self, ranks: int, every: int, first: dict[str, np.ndarray]) -> None:
        self.every, self.count = every, 0
        self.mine = [dict(first) for _ in range(ranks)]
        self.old = [dict(first) for _ in range(ranks)]
        self.server = dict(first)

    def step(self, feeds: list[dict[str, np.ndarray]]) -> None:
        for mine, feed in zip(self.mine, feeds, strict=True):
            for name, grad in line_grads(feed, mine).items():
                mine[name] = mine[name] - RATE * grad
        self.count += 1
        if self.count % self.every == 0:
            self.exchange()

    def exchange(self) -> None:
        for name in self.server:
            deltas = [
                (mine[name] - old[name]) / len(self.mine)
                for mine, old in zip(self.mine, self.old, strict=True)
            ]
            self.server[name] = self.server[name] + sum(deltas)
            for mine, old, delta in zip(self.mine, self.old, deltas, strict=True):
                mine[name] = mine[name] + self.server[name] - (old[name] + delta)
                old[name] = self.server[name]


def close(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("ranks", "every"), [(2, 1), (2, 3), (3, 2), (4, 4)])
def test_every_rank_trains_alone_and_takes_in_what_the_others_moved(ranks: int, every: int) -> None:
    program, startup, _ = fit(ranks, every)
    exe, scope = started(program, startup, **FIRST)
    wanted = Simulated(ranks, every, FIRST)
    for count, feeds in enumerate(batches(ranks, 9), 1):
        wanted.step(feeds)
        w, b = exe.run(program, feeds, [W, B], scope=scope, return_merged=False)
        close(w, [mine[W] for mine in wanted.mine])
        close(b.reshape(ranks, 1), [mine[B] for mine in wanted.mine])
        assert not np.allclose(w[0], w[1], atol=1e-4)  # what is taken in leaves each its own
        close(scope.get(W + "@SNAPSHOT"), wanted.server[W])
        assert every == 1 or scope.get("@GEO_STEP@").item() == count % every


@pytest.mark.optimized
def test_nothing_is_sent_in_steps_that_do_not_exchange() -> None:
    """The only all-reduce of the compiled step stands in a branch of its conditional."""
    program, startup, loss = fit(2, 4)
    assert "conditional_block" in text.to_text(program.ranks.desc(program.program))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    (feeds,) = batches(2, 1)
    exe.run(program, feeds, [loss], scope=scope)
    (compiled,) = exe.compiled_steps(program)
    assert compiled.own == {W, B}  # snapshots and the counter are alike on all ranks
    feed = {n: np.concatenate([f[n] for f in feeds]) for n in feeds[0]}
    with jax.enable_x64(True):
        hlo = compiled.function().lower(*compiled.buffers.arrays, feed, 0, 0).compile().as_text()
    bodies = re.findall(r"^(?:ENTRY )?(%[\w.\-]+) [^\n]*\{\n(.*?)^\}", hlo, re.M | re.S)
    talking = {name for name, body in bodies if " all-reduce(" in body}
    choices = [line for line in hlo.splitlines() if " conditional(" in line]
    assert len(bodies) > 2 and len(talking) == len(choices) == 1
    assert talking <= set(re.findall(r"%[\w.\-]+", choices[0].partition("_computation")[2]))
    assert not re.search(r" (all-gather|reduce-scatter|all-to-all|collective-permute)", hlo)


def started(
    program: Runnable, startup: fluid.Program, **values: np.ndarray
) -> tuple[fluid.Executor, fluid.Scope]:
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for name, value in values.items():
        scope.var(name).set(value)
    return exe, scope


def test_the_first_exchange_gives_what_pservers_hold_in_a_local_job() -> None:
    """Later ones do not: there trainers exchange in turn, and the first to come has not seen the
    last one's delta.
    """
    program, startup, _ = fit(2, 3)
    exe, scope = started(program, startup, **FIRST)
    job = LocalJob.of(program.program, seed=1)
    job.start(FIRST)
    for feeds in batches(2, 3):
        exe.run(program, feeds, scope=scope)
        job.step(feeds)
    for name in FIRST:
        np.testing.assert_allclose(job.get(name), scope.get(name + "@SNAPSHOT"), atol=1e-6, rtol=0)


def words() -> tuple[fluid.Program, fluid.Program]:
    """A table with sparse gradients, a schedule and an optimizer with state."""
    # by chance one start in sixty has a batch norm that makes much of roundings
    with fresh(3) as (main, startup):
        word, y = fluid.data("word", [None, 1], "int64"), fluid.data("y", [None, 1])
        vector = fluid.layers.embedding(word, [20, 4], is_sparse=True, is_distributed=True)
        hidden = fluid.layers.fc(fluid.layers.batch_norm(fluid.layers.reshape(vector, [-1, 4])), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(hidden, y))
        fluid.optimizer.Adam(fluid.layers.exponential_decay(0.1, 2, 0.5)).minimize(loss)
    return main, startup


@pytest.mark.parametrize("at_once", [False, True], ids=["run", "run_steps"])
def test_ranks_are_programs_that_run_by_themselves_but_for_the_exchange(at_once: bool) -> None:
    """State of the optimizer, schedules, moving averages and sparse tables are each rank's own."""
    main, startup = words()
    plain, first = main.clone(), startup.clone()
    t = transpiled(
        main,
        startup,
        2,
        2,
        False,
        {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 3},
    )
    program = on_mesh(t.get_trainer_program(), 2)
    r = np.random.RandomState(3)
    steps = [
        {
            "word": r.randint(0, 9, (6, 1)) + np.repeat([[0], [9]], 3, 0),
            "y": r.randn(6, 1).astype("f4"),
        }
        for _ in range(7)
    ]
    exe, scope = started(program, first)
    params = [p.name for p in plain.all_parameters() if p.trainable]
    begun = {v.name: scope.get(v.name) for v in plain.list_vars() if v.persistable}
    if at_once:
        exe.run_steps(program, steps[:-1], scope=scope)
    else:
        for feed in steps[:-1]:
            exe.run(program, feed, scope=scope)
    state = sorted(begun)
    seen = exe.run(program, steps[-1], state, scope=scope, return_merged=False)
    alone = [fluid.Scope() for _ in range(2)]
    for one in alone:
        for name, value in begun.items():
            one.var(name).set(value)
    old = {n: begun[n] for n in params}
    for count, feed in enumerate(steps, 1):
        for k, one in enumerate(alone):
            exe.run(plain, {n: v[3 * k : 3 * k + 3] for n, v in feed.items()}, scope=one)
        for name in params if count % 3 == 0 else ():
            deltas = [(one.get(name) - old[name]) / 2 for one in alone]
            for one, delta in zip(alone, deltas, strict=True):
                one.var(name).set(one.get(name) + sum(deltas) - delta)
            old[name] = old[name] + sum(deltas)
    for name, found in zip(state, seen, strict=True):
        for k, one in enumerate(alone):
            np.testing.assert_allclose(
                found[k].reshape(one.get(name).shape),
                one.get(name),
                atol=1e-5,
                rtol=1e-5,
                err_msg=name,
            )


def test_looking_at_the_test_program_in_between_changes_nothing() -> None:
    """It runs on one device, with rank 0's values; what the others have of their own stays theirs."""
    with fresh() as (main, startup):
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 4))
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    first = startup.clone()
    t = transpiled(
        main,
        startup,
        2,
        2,
        False,
        {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 3},
    )
    program, names = (
        on_mesh(t.get_trainer_program(), 2),
        sorted(v.name for v in test.list_vars() if v.persistable),
    )
    exe, scope = started(program, first)
    other, begun = (
        fluid.Scope(),
        {v.name: scope.get(v.name) for v in t.get_trainer_program().list_vars() if v.persistable},
    )
    for name, value in begun.items():
        other.var(name).set(value)
    tested, plain = [], []
    for feeds in batches(2, 5):
        exe.run(program, feeds, scope=scope)
        undisturbed = exe.run(program, feeds, names, scope=other, return_merged=False)
        seen = fluid.Scope()
        for name, value in zip(names, undisturbed, strict=True):
            seen.var(name).set(value[0].reshape(begun[name].shape))
        plain.append(exe.run(test, feeds[0], [loss], scope=seen)[0])
        tested += [exe.run(test, feeds[0], [loss], scope=scope)[0] for _ in range(2)]
    np.testing.assert_array_equal(tested[::2], plain)
    np.testing.assert_array_equal(tested[1::2], plain)
    last = [exe.run(program, feeds, names, scope=s, return_merged=False) for s in (scope, other)]
    for name, here, there in zip(names, *last, strict=True):
        np.testing.assert_array_equal(here, there, err_msg=name)
    # made of the trainer's program, it sends nothing and trains nothing
    clone = t.get_trainer_program().clone(for_test=True)
    assert not trains(clone)
    np.testing.assert_array_equal(
        *(exe.run(p, feeds[0], [loss], scope=scope)[0] for p in (test, clone))
    )
    scope.var(names[-1]).set(begun[names[-1]] + 1)  # what is stored is seen at once
    assert not np.array_equal(
        exe.run(test, feeds[0], [loss], scope=scope)[0],
        exe.run(test, feeds[0], [loss], scope=other)[0],
    )


def test_a_checkpoint_goes_to_other_jobs_and_to_one_device(tmp_path: Path) -> None:
    """All begin with the first trainer's parameters there; the steps since the last exchange go on
    counting.
    """
    program, startup, _ = fit(2, 3)
    exe, scope = started(program, startup, **FIRST)
    for feeds in batches(2, 4):
        exe.run(program, feeds, scope=scope)
    fluid.io.save_checkpoint(exe, str(tmp_path), program.program, scope=scope)
    first = {n: scope.get(n) for n in (W, B)}
    assert not np.allclose(first[W], scope.get(W + "@SNAPSHOT"), atol=1e-4)
    with fresh() as (main, _):
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(float(RATE)).minimize(loss)
    plain = fluid.Scope()
    fluid.io.load_checkpoint(exe, str(tmp_path), main, scope=plain)
    four, _, _ = fit(4, 3)
    more, wanted = fluid.Scope(), Simulated(4, 3, first)
    fluid.io.load_checkpoint(exe, str(tmp_path), four.program, scope=more)
    wanted.count = 1
    for feeds in batches(4, 3):
        wanted.step(feeds)
        (w,) = exe.run(four, feeds, [W], scope=more, return_merged=False)
        close(w, [mine[W] for mine in wanted.mine])
    for name, value in first.items():
        np.testing.assert_array_equal(plain.get(name), value)
    assert plain.find_var(W + "@SNAPSHOT") is None


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_digits(ranks: int) -> None:
    """Every rank learns on its own part of the data; what all agree on, and each one's own
    parameters, read new digits.
    """
    main, startup, test, guess = network()
    first = startup.clone()
    t = transpiled(
        main,
        startup,
        ranks,
        2,
        False,
        {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 4},
    )
    program = on_mesh(t.get_trainer_program(), ranks)
    exe, scope = started(program, first)
    image, label = digits()
    names = [p.name for p in main.all_parameters()]
    for feeds in zip(
        *(share(image[:-400], label[:-400], r, ranks, 30) for r in range(ranks)), strict=False
    ):
        own = exe.run(program, list(feeds), names, scope=scope, return_merged=False)
    agreed = [scope.get(n + "@SNAPSHOT") for n in names]
    for values in (agreed, *zip(*own, strict=True)):
        alone = fluid.Scope()
        for name, value in zip(names, values, strict=True):
            alone.var(name).set(value)
        answers = exe.run(
            test, {"image": image[-400:], "label": label[-400:]}, [guess], scope=alone
        )[0].argmax(1)
        right = float((answers == label[-400:, 0]).mean())
        assert right > 0.93


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_script_in_the_documents_form_runs_as_a_job_of_processes(tmp_path: Path) -> None:
    """Two trainers and two pservers: each trainer's parameters after every step, what it saves, and
    a checkpoint.
    """
    steps, script = batches(2, 7), Path(__file__).with_name("geo_script.py")
    np.savez(
        tmp_path / "given.npz",
        **{f"{n}_{t}": np.array([s[t][n] for s in steps]) for t in range(2) for n in "xy"},
    )
    assert cli.main(["launch", "--nproc", "2", "--pservers", "2", str(script), str(tmp_path)]) == 0
    found = [dict(np.load(tmp_path / f"trainer_{t}.npz")) for t in range(2)]
    # trainer 0's first values are everybody's
    wanted = Simulated(2, 3, {n: found[0][f"first {n}"] for n in (W, B)})
    for at, feeds in enumerate(steps):
        wanted.step(feeds)
        for trainer, mine in zip(found, wanted.mine, strict=True):
            for name in (W, B):
                close(trainer[name][at], mine[name])
        off = feeds[0]["x"] @ found[0][W][at] + found[0][B][at] - feeds[0]["y"]
        close(found[0]["tested"][at], np.mean(off * off))
    for trainer in found:
        for name in (W, B):  # from a checkpoint between two exchanges, bit for bit
            np.testing.assert_array_equal(trainer[f"again {name}"], trainer[name][-1])
    with fresh():
        fluid.layers.fc(fluid.data("x", [None, 13]), 1)
        for t in range(2):
            scope = fluid.Scope()
            with fluid.scope_guard(scope):
                fluid.io.load_params(fluid.Executor(fluid.CPUPlace()), str(tmp_path / f"saved {t}"))
            np.testing.assert_array_equal(scope.get(W), found[t][W][-1])
