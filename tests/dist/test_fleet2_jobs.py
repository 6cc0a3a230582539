"""paddle.distributed.fleet in a job of two processes: each strategy against one process, collective
ops against NumPy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from tests.dist import fleet2_trainers as trainers

SCRIPT = str(Path(trainers.__file__))


def one_process(kind, feeds):
    return trainers.train(
        trainers.net(kind, lambda loss: trainers.optimizer(kind).minimize(loss)), feeds
    )


def local_by_hand(k_steps, begin_step, adapts=False):
    """Two trainers in turn, whose parameters are averaged after steps up to begin_step, then after
    every k_steps more.

    adapts: the number follows the mean loss. Also the steps after which they were.
    """
    made = trainers.net("local", lambda loss: trainers.optimizer("local").minimize(loss))
    exe, scopes = fluid.Executor(fluid.CPUPlace()), [trainers.begun(made) for _ in range(2)]
    last, often, first, averaged = 0 if adapts else begin_step, k_steps, None, []
    names = [p.name for p in made[0].all_parameters()]
    for step in range(1, trainers.STEPS + 1):
        loss = np.mean(
            [
                exe.run(made[0], trainers.batches(r, 2)[step - 1], [made[2]], scope=s)[0]
                for r, s in enumerate(scopes)
            ]
        )
        first = loss if first is None else first
        if step <= begin_step or step - last == often:
            if adapts and step > begin_step:
                often = int(np.clip(np.ceil(np.sqrt(loss / first * k_steps)), 1, 16))
            last = step
            averaged.append(step)
            for name in names:
                mean = (scopes[0].get(name) + scopes[1].get(name)) / 2
                for scope in scopes:
                    scope.var(name).set(mean)
    return [{n: scope.get(n) for n in names} for scope in scopes], averaged


def close(found, expected, **tolerance):
    for name in (n for n in expected if n != "loss"):
        if name in found:
            np.testing.assert_allclose(
                found[name],
                expected[name],
                err_msg=name,
                **{"rtol": 2e-5, "atol": 2e-6, **tolerance},
            )


def merged(feeds, k):
    """Every k batches as one; each worker's part of it comes first."""
    return [
        {n: np.concatenate([f[n] for f in feeds[i : i + k]]) for n in feeds[0]}
        for i in range(0, len(feeds), k)
    ]


@pytest.fixture
def job(tmp_path, monkeypatch, forked):
    """Run kinds in a job of two workers: {kind: [what each found]}."""
    monkeypatch.chdir(Path(SCRIPT).parents[2])

    def run(*kinds):
        assert cli.main(["launch", "--nproc_per_node", "2", SCRIPT, str(tmp_path), *kinds]) == 0
        return {
            k: [dict(np.load(tmp_path / f"{k}-{r}.npz")) for r in (0, 1)]
            for k in (*kinds, "together")
        }

    return run


def test_workers_that_merge_gradients(job):
    found = job("merged")
    expected = one_process("plain", merged(trainers.batches(), 2))
    for one in found["merged"]:
        close(one, expected)
        assert one["gradient_merge_step"] == 0 and not one["fc_0.w_0@GRAD@GradientMerge"].any()
    _collectives(found["together"])


@pytest.mark.thorough
def test_workers_with_other_strategies(job):
    found = job("plain", "sharded", "half", "synchronised", "mixed", "local", "adaptive")
    for kind, (by_hand, averaged) in {
        "local": local_by_hand(2, 1),
        "adaptive": local_by_hand(2, 2, adapts=True),
    }.items():
        for one, expected in zip(found[kind], by_hand, strict=True):
            close(one, expected)
            assert one["last_step"] == averaged[-1], (kind, averaged)
    plain = one_process("plain", trainers.batches())
    for both in (found[k] for k in ("plain", "sharded", "half", "synchronised")):
        for name in (n for n in both[0] if n.startswith("fc_")):
            np.testing.assert_array_equal(both[0][name], both[1][name], err_msg=name)
    for kind in ("plain", "sharded"):
        close(found[kind][1], plain)
        np.testing.assert_allclose(
            sum(one["loss"] for one in found[kind]) / 2, plain["loss"], rtol=2e-5
        )
    merging = lambda loss: fluid.optimizer.Lamb(0.05, epsilon=1e-8).minimize(loss)  # noqa: E731
    expected = trainers.train(trainers.net("plain", merging), merged(trainers.batches(), 2))
    close(found["mixed"][1], expected, rtol=0.02, atol=0.02)
    assert not np.allclose(found["mixed"][1]["fc_0.w_0"], expected["fc_0.w_0"], rtol=1e-6, atol=0)
    close(found["half"][0], plain, rtol=0.02, atol=0.02)
    # the gradients did travel in half
    assert not np.allclose(found["half"][0]["fc_0.w_0"], plain["fc_0.w_0"], rtol=1e-6, atol=0)
    close(
        found["synchronised"][0],
        one_process("synchronised", trainers.batches()),
        rtol=1e-4,
        atol=1e-5,
    )


def _collectives(found):
    x = [np.arange(6, dtype="f4").reshape(2, 3) + 10 * rank - 2 for rank in (0, 1)]
    for rank, one in enumerate(found):
        for op, value in {
            "SUM": x[0] + x[1],
            "MAX": x[1],
            "MIN": x[0],
            "PROD": x[0] * x[1],
        }.items():
            np.testing.assert_array_equal(one[f"all {op}"], value)
            np.testing.assert_array_equal(one[f"to 1 {op}"], value if rank else x[0])
            np.testing.assert_array_equal(one["broadcast"], x[1])
        assert all(np.array_equal(one[f"gathered {i}"], x[i]) for i in (0, 1))
        np.testing.assert_array_equal(one["scattered"], x[1] * (2 + rank))
        np.testing.assert_array_equal(one["util sum"], [[2, 4], [6, 1]])
        np.testing.assert_array_equal(one["util max"], [0.5, 1])
        assert one["util gather"].tolist() == [5, 6] and one["who"].tolist() == [rank, 2]
        assert one["files"].tolist() == (list("de") if rank else list("abc"))
