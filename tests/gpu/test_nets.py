"""Nets that train on the GPU as on the CPU: images, words, sequences with a LoD, control flow,
loops, decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import data, fluid_models
from benchmarks.gpu import nets
from benchmarks.peers import ragged_nets
from fluidjax import layers
from tests.nets import fresh
from tests.tools import control_nets, decode_nets

from .card import PLACE, REHEARSAL, apart

NEAR = 2e-3  # of losses after three steps, each of which adds to the rounding of the one before

Feeds = list[dict[str, Any]]


def lengthy(seed: int = 0) -> Feeds:
    rng = np.random.default_rng(seed)
    feeds = []
    for lengths in ([3, 1, 7, 5], [2, 9, 4, 4], [1, 1, 2, 6]):
        rows = rng.integers(0, 50, (sum(lengths), 1))
        feeds.append(
            {
                "words": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace()),
                "label": rng.integers(0, 2, (4, 1)),
            }
        )
    return feeds


def gru() -> Any:
    h = layers.embedding(
        fluid.data("words", [None, 1], "int64", lod_level=1), [50, 12], is_sparse=True
    )
    h = layers.dynamic_gru(layers.fc(h, 24), 8)
    h = layers.sequence_conv(h, 8, 3)
    return layers.mean(
        layers.softmax_with_cross_entropy(
            layers.fc(layers.sequence_pool(h, "sqrt"), 2), fluid.data("label", [None, 1], "int64")
        )
    )


def dropped() -> Any:
    h = layers.dropout(layers.fc(fluid.data("x", [None, 16]), 64, act="tanh"), 0.4)
    return fluid_models._classify(layers.fc(h, 10), fluid.data("label", [None, 1], "int64"))


def nchw() -> Any:
    return nets.resnet50("NCHW", 32, 10, ((8, 2), (16, 1)))


def _first(feed: dict[str, Any]) -> dict[str, Any]:
    return {**feed, "img": np.ascontiguousarray(feed["img"].transpose(0, 3, 1, 2))}


NETS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Feeds]]] = {
    "mlp, Adam": (fluid_models.mlp, lambda: fluid.optimizer.Adam(1e-3), lambda: [data.vectors(32, 784, 10)] * 3),
    "dropout, SGD": (dropped, lambda: fluid.optimizer.SGD(0.1), lambda: [data.vectors(32, 16, 10)] * 3),
    "LeNet, Momentum": (fluid_models.lenet, lambda: fluid.optimizer.Momentum(0.01, 0.9), lambda: [data.images(16, 28, 1)] * 3),
    "bottlenecks NCHW, Momentum": (nchw, lambda: fluid.optimizer.Momentum(0.01, 0.9), lambda: [_first(data.images(8, 32, 3))] * 3),
    "transformer, Adam": (
        lambda: fluid_models.transformer(32, 8, 2, 1), lambda: fluid.optimizer.Adam(1e-3), lambda: [data.sequences(4, 8, 32, 10)] * 3,
    ),
    "words, Adagrad": (fluid_models.word_model, lambda: fluid.optimizer.Adagrad(0.1), lambda: [data.words(32, 4, 2000)] * 3),
    "recommender, sparse Adam": (
        lambda: nets.recommender(1000, 4, 3), lambda: fluid.optimizer.Adam(1e-2, lazy_mode=True),
        lambda: [{"ids": data.words(16, 3, 1000)["words"], "label": data.words(16, 3, 2)["label"]}] * 3,
    ),
    "LSTM, LoD": (lambda: nets.lstm(50, 8), lambda: fluid.optimizer.Adam(1e-2), lengthy),
    "GRU, LoD, sparse": (gru, lambda: fluid.optimizer.Adagrad(0.1), lengthy),
}  # fmt: skip
# The bias of an attention's keys, which adds the same to all scores of a query: its gradient is
# zero but for rounding, which Adam, that divides a gradient by its size, turns into steps of any
# direction. So it is compared by its gradient.
UNFELT = "fc_1.b_0"
MORE = {
    "Lamb": lambda: fluid.optimizer.Lamb(0.01), "RMSProp": lambda: fluid.optimizer.RMSProp(0.01),
    "Adamax": lambda: fluid.optimizer.Adamax(0.01), "LarsMomentum": lambda: fluid.optimizer.LarsMomentum(0.1, 0.9),
}  # fmt: skip


def trained(
    place: Any, network: Callable[[], Any], optimizer: Callable[[], Any], feeds: Feeds
) -> tuple[list[float], dict[str, Any]]:
    """The losses of three steps, and the parameters behind them. Of the one that is UNFELT the
    gradient alone is looked at.
    """
    main, startup, loss = fluid_models.build(network, optimizer())
    exe, scope = fluid.Executor(place), fluid.Scope()
    exe.run(startup, scope=scope)
    losses = [
        np.asarray(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0]).item()
        for feed in feeds
    ]
    values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    if network is NETS["transformer, Adam"][0]:
        del values[UNFELT]
        moments = {
            n: np.abs(scope.find_var(f"{n}_moment1_0").get_tensor()).max()
            for n in (UNFELT, *values)
        }
        assert moments.pop(UNFELT) < 1e-6 * min(moments.values()), moments
    return losses, values


def agree(
    got: tuple[list[float], dict[str, Any]],
    want: tuple[list[float], dict[str, Any]],
    near: float = NEAR,
) -> None:
    np.testing.assert_allclose(got[0], want[0], rtol=near)
    far = {n: apart(got[1][n], v) for n, v in want[1].items()}
    assert max(far.values()) < 10 * near, far


@pytest.mark.parametrize("name", NETS)
def test_trained(name: str) -> None:
    network, optimizer, feeds = NETS[name]
    agree(
        trained(PLACE, network, optimizer, feeds()),
        trained(fluid.CPUPlace(), network, optimizer, feeds()),
    )


@pytest.mark.parametrize("name", MORE)
def test_optimizers(name: str) -> None:
    network, _, feeds = NETS["dropout, SGD"]
    agree(
        trained(PLACE, network, MORE[name], feeds()),
        trained(fluid.CPUPlace(), network, MORE[name], feeds()),
    )


def test_the_default_precision_is_near() -> None:
    """With products as JAX takes them on a GPU by default (TF32) a net trains to within a
    hundredth.
    """
    network, optimizer, feeds = NETS["bottlenecks NCHW, Momentum"]
    want = trained(fluid.CPUPlace(), network, optimizer, feeds())
    with jax.default_matmul_precision(None):
        got = trained(PLACE, network, optimizer, feeds())
    np.testing.assert_allclose(got[0], want[0], rtol=2e-2)


@pytest.mark.parametrize("name", ragged_nets.RAGGED)
def test_ragged(name: str) -> None:
    """Semantic roles with a CRF, stacked LSTMs, attention in a DynamicRNN."""
    net, batches, rate = ragged_nets.RAGGED[name]

    def losses(place: Any) -> list[float]:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 1
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            loss = net(fluid, 8)
            fluid.optimizer.SGD(rate).minimize(loss)
        exe, scope = fluid.Executor(place), fluid.Scope()
        exe.run(startup, scope=scope)
        feeds = [ragged_nets.fed(fluid, b) for b in batches(1 if REHEARSAL else 2)]
        return [
            np.asarray(exe.run(main, feed=f, fetch_list=[loss], scope=scope)[0]).item()
            for f in feeds
        ]

    np.testing.assert_allclose(losses(PLACE), losses(fluid.CPUPlace()), rtol=NEAR)


CONTROL = {net.__name__: net for net in control_nets.NETS}


@pytest.mark.parametrize("name", CONTROL if not REHEARSAL else list(CONTROL)[2:4])
def test_control_flow(name: str, capfd: Any) -> None:
    def losses(place: Any) -> list[Any]:
        with fresh() as (main, startup):
            loss = CONTROL[name](fluid)
            pairs = fluid.backward.append_backward(loss)
        exe, scope = fluid.Executor(place), fluid.Scope()
        exe.run(startup, scope=scope)
        for p in main.all_parameters():
            scope.find_var(p.name).get_tensor().set(control_nets.initial(p.name, p.shape), place)
        found = []
        for feed in control_nets.FEEDS[name]:
            given = {k: control_nets.fed(fluid, v) for k, v in feed.items()}
            got = exe.run(
                main,
                feed=given,
                fetch_list=[loss, *(g for _, g in pairs)],
                scope=scope,
                return_numpy=False,
            )
            found += [np.array(v) for v in got]
        return found

    far = [apart(g, w) for g, w in zip(losses(PLACE), losses(fluid.CPUPlace()), strict=True)]
    assert max(far) < 1e-4


FOUND = {
    net.__name__: net for net in decode_nets.NETS if net.__name__ not in decode_nets.PROGRAMS_ALONE
}


@pytest.mark.parametrize("name", FOUND if not REHEARSAL else list(FOUND)[1:2])
def test_decoding(name: str) -> None:
    def found(place: Any) -> list[Any]:
        with fresh() as (main, startup):
            fetches = FOUND[name](fluid)
            if name in decode_nets.TRAINED:
                fluid.optimizer.SGD(0.1).minimize(fetches)
                fetches = [fetches]
        exe, scope = fluid.Executor(place), fluid.Scope()
        exe.run(startup, scope=scope)
        for p in main.all_parameters():
            scope.find_var(p.name).get_tensor().set(decode_nets.initial(p.name, p.shape), place)
        values = []
        for feed in decode_nets.FEEDS[name]:
            given = {k: decode_nets.fed(fluid, v) for k, v in feed.items()}
            got = exe.run(main, feed=given, fetch_list=fetches, scope=scope, return_numpy=False)
            values += [
                (np.array(v), v.lod() if isinstance(v, fluid.LoDTensor) else []) for v in got
            ]
        return values

    for (got, lod), (want, wanted) in zip(found(PLACE), found(fluid.CPUPlace()), strict=True):
        assert lod == wanted and apart(got, want) < 1e-3
