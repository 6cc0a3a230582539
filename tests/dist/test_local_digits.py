"""Asynchronous jobs learn to read digits, stale as their gradients are, and do so again with the
same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.dist import LocalJob
from tests.nets import fresh

TRAINERS, BATCH, EPOCHS = 3, 32, 12
MODES: dict[str, tuple[dict[str, Any], int]] = {
    "async": ({}, 0),
    "async, stale": ({}, 2),
    "half async": ({"half_async": True, "runtime_split_send_recv": True}, 0),
    "delay compensated, stale": ({"enable_dc_asgd": True}, 2),
    "geo": ({"geo_sgd_mode": True, "geo_sgd_need_push_nums": 4}, 0),
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # takes a second, in each worker

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.data[order] / 16).astype("float32"), data.target[order].astype("int64")[:, None]


def network() -> tuple[fluid.Program, fluid.Program, fluid.Program, Any]:
    with fresh(2) as (main, startup):
        image, label = fluid.data("image", [None, 64]), fluid.data("label", [None, 1], "int64")
        guess = layers.fc(layers.fc(image, 32, act="relu"), 10, act="softmax")
        loss = layers.mean(layers.cross_entropy(guess, label))
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, test, guess


def share(
    image: np.ndarray,
    label: np.ndarray,
    trainer: int,
    trainers: int = TRAINERS,
    epochs: int = EPOCHS,
) -> Iterator[dict[str, np.ndarray]]:
    """The batches of one trainer: its own part of the data, several times."""
    mine = np.arange(trainer, len(image), trainers)
    for epoch in range(epochs):
        order = np.random.default_rng([trainer, epoch]).permutation(mine)
        for at in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[at : at + BATCH]
            yield {"image": image[chosen], "label": label[chosen]}


def trained(config: dict[str, Any], staleness: int) -> tuple[dict[str, np.ndarray], float]:
    """Final parameters of a job, and how many of the digits that it has not seen it reads rightly."""
    main, startup, test, guess = network()
    settings = fluid.DistributeTranspilerConfig()
    settings.sync_mode = False
    for name, value in config.items():
        setattr(settings, name, value)
    kind = (
        fluid.transpiler.GeoSgdTranspiler
        if config.get("geo_sgd_mode")
        else fluid.DistributeTranspiler
    )
    t = kind(config=settings)
    t.transpile(
        0,
        program=main,
        startup_program=startup,
        pservers="a:1,b:2",
        trainers=TRAINERS,
        sync_mode=False,
    )
    job = LocalJob.of(t, seed=7, staleness=staleness)
    job.start()
    image, label = digits()
    job.run([share(image[:-400], label[:-400], i) for i in range(TRAINERS)])
    scope = fluid.Scope()
    for name in job.parameters:
        scope.var(name).set(job.get(name))
    feed = {"image": image[-400:], "label": label[-400:]}
    answers = fluid.Executor(fluid.CPUPlace()).run(test, feed, [guess], scope=scope)[0].argmax(1)
    return {name: job.get(name) for name in job.parameters}, float(
        (answers == label[-400:, 0]).mean()
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_digits(mode: str) -> None:
    first, right = trained(*MODES[mode])
    again, _ = trained(*MODES[mode])
    assert right > 0.93
    for name, value in first.items():
        np.testing.assert_array_equal(again[name], value)
