"""What pservers do in asynchronous jobs, on programs of Paddle 1.8.5, replayed message by message
in NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist import LocalJob
from fluidjax.errors import FluidValueError
from tests.dist.jobs import LINE, feeds, line, line_grads, transpiled
from tests.nets import fresh

RATE = np.float32(0.1)
W, B = "fc_0.w_0", "fc_0.b_0"


def close(a: object, b: object) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-5, rtol=1e-5)


def holder(job: LocalJob, name: str) -> LocalJob:
    return next(s for s in job.pservers.values() if s.scope.find_var(name) is not None)


@pytest.mark.parametrize("seed", [0, 1])
def test_async_gradients_are_applied_one_by_one_as_they_arrive(seed: int) -> None:
    """A trainer computes on what it received last; p -= rate * g at once; the schedule counts all
    batches.
    """
    job, params = line("async_decay", seed=seed)
    sent = {0: 1, 1: 1}  # the trainers' counters begin at 1
    own = {i: dict(params) for i in (0, 1)}
    rate = {W: None, B: None}
    orders = set()
    for step in feeds(LINE):
        grads: dict[int, dict[str, np.ndarray]] = {}
        order = []
        counted = {W: dict(sent), B: dict(sent)}
        for message in job.trace(step):
            t, name = message.trainer, message.name.removesuffix("@GRAD")
            order.append(str(message))
            if message.kind == "get":
                close(holder(job, name).scope.get(name), params[name])
                own[t][name] = params[name]
            elif name in params:
                grads.setdefault(t, line_grads(step[t], own[t]))
                close(message.value, grads[t][name])
                if rate[name] is None:
                    rate[name] = 0.5 * 0.5 ** (sum(counted[name].values()) // 2)
                params[name] = params[name] - np.float32(rate[name]) * np.asarray(message.value)
            else:  # a trainer's counter, for the pserver of one of the two
                at = W if holder(job, W).endpoint == message.endpoint else B
                counted[at][t] += 1
                rate[at] = 0.5 * 0.5 ** (sum(counted[at].values()) // 2)
        sent = counted[W]
        orders.add(tuple(o.split(":")[0] for o in order))
    assert sent == counted[B] == {0: 9, 1: 9}
    assert len(orders) > 1  # the trainers do not always come in the same order
    close(job.get(W), params[W])
    close(job.get(B), params[B])


@pytest.mark.parametrize("config", [{}, {"runtime_split_send_recv": True}])
def test_schedules_of_asynchronous_jobs(config: dict[str, bool]) -> None:
    """Every trainer's batches count on every pserver, whichever way the program sends them."""
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 3])
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 2)))
        fluid.optimizer.SGD(fluid.layers.exponential_decay(0.5, 2, 0.5)).minimize(loss)
    job = LocalJob.of(
        transpiled(main, startup, sync_mode=False, config={"sync_mode": False, **config})
    )
    job.start()
    for _ in range(3):
        job.step([{"x": np.ones((1, 3), "float32")}] * 2)
    for server in job.pservers.values():
        assert server.scope.get("@LR_DECAY_COUNTER@").item() == 2 * (1 + 3)
    before = job.get("fc_0.b_0")
    (sent,) = [
        np.asarray(m.value)
        for m in job.trace([{"x": np.ones((1, 3), "float32")}, None])
        if m.name == "fc_0.b_0@GRAD"
    ]
    np.testing.assert_allclose(before - job.get("fc_0.b_0"), 0.5 * 0.5 ** (8 / 2) * sent, rtol=2e-4)


def test_delay_compensation() -> None:
    """enable_dc_asgd: p -= rate * (g + (p - p as the trainer received it) * g * g)."""
    job, params = line("dc_asgd", seed=5)
    seen = {i: dict(params) for i in (0, 1)}
    compensated = 0
    for step in feeds(LINE):
        for message in job.trace(step):
            name, t = message.name.removesuffix("@GRAD"), message.trainer
            if message.kind == "get":
                seen[t][name] = params[name]
                continue
            g = np.asarray(message.value)
            moved = params[name] - seen[t][name]
            compensated += bool(np.abs(moved).max() > 1e-3)
            params[name] = params[name] - RATE * (g + moved * g * g)
            close(holder(job, name).scope.get(name), params[name])
    assert compensated > 4
    close(job.get(W), params[W])


@pytest.mark.parametrize("push_every", [1, 3])
def test_geo_trainers_exchange_differences(push_every: int) -> None:
    """delta = (mine - old) / n to the pserver; mine += new - (old + delta); old = new. In between
    they step alone.
    """
    job, params = line("geo", seed=2, push_every=push_every)
    mine, old = ({i: dict(params) for i in (0, 1)} for _ in range(2))
    pushes = 0
    for count, step in enumerate(feeds(LINE), 1):
        for i in (0, 1):
            grads = line_grads(step[i], mine[i])
            mine[i] = {n: v - RATE * grads[n] for n, v in mine[i].items()}
        for message in job.trace(step):
            name, i = message.name.removesuffix(".delta"), message.trainer
            delta = (mine[i][name] - old[i][name]) / 2
            if message.kind == "send":
                close(message.value, delta)
                params[name] = params[name] + delta
                pushes += 1
            else:
                mine[i][name] = mine[i][name] + params[name] - (old[i][name] + delta)
                old[i][name] = params[name]
        assert (pushes > 0) == (count >= push_every)
        for i in (0, 1):
            close(job.trainers[i].scope.get(W), mine[i][W])
    assert pushes == 2 * 2 * (8 // push_every)
    close(job.get(W), params[W])
    with pytest.raises(FluidValueError, match="1 or more, not 0"):
        line("geo", push_every=0)


def test_late_gradients_were_computed_on_old_parameters() -> None:
    job, params = line("async_decay", seed=4, staleness=3)
    own = {i: dict(params) for i in (0, 1)}
    computed: dict[int, list[np.ndarray]] = {0: [], 1: []}
    lags = []
    for count, step in enumerate(feeds(LINE)):
        for i in (0, 1):
            computed[i].append(line_grads(step[i], own[i])[W])
        for message in job.trace(step):
            if message.kind == "get":
                own[message.trainer][message.name] = holder(job, message.name).scope.get(
                    message.name
                )
            elif message.name == f"{W}@GRAD":
                made = [
                    k
                    for k, g in enumerate(computed[message.trainer])
                    if np.allclose(g, message.value, atol=1e-6)
                ]
                lags.append(count - made[0])
    assert set(lags) == {0, 1, 2, 3}  # up to `staleness` rounds
    assert holder(job, W).rounds == len(lags) < 16  # the rest is under way
    job.flush()
    assert holder(job, W).rounds == 16
