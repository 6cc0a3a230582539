"""Training steps beside hand-written flax and optax, in one process, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fluidjax as fluid
from fluidjax.contrib import mixed_precision
from fluidjax.devices import platforms

from .. import data, fluid_models
from ..flax_models import LeNet
from . import nets
from .bench import (
    UNPACKED,
    Flax,
    Fluid,
    Side,
    choose,
    compared,
    executable,
    kernels,
    packing,
    peak,
    timed,
    tiny,
)
from .records import Found

Optimizer = Callable[[], Any]


def momentum() -> Any:
    return fluid.optimizer.Momentum(1e-3, 0.9)


def adam() -> Any:
    return fluid.optimizer.Adam(1e-3)


def half(optimizer: Optimizer, dynamic: bool = False) -> Optimizer:
    """The optimizer in mixed precision of bfloat16, its scale fixed at 1, or moving as Fluid's does
    by default.
    """
    scale = {} if dynamic else {"init_loss_scaling": 1.0, "use_dynamic_loss_scaling": False}

    class Decorated:
        def minimize(self, loss: Any) -> Any:
            return mixed_precision.decorate(optimizer(), dtype="bfloat16", **scale).minimize(loss)

    return Decorated


def ours(network: Callable[[], Any], optimizer: Optimizer) -> Fluid:
    main, startup, loss = fluid_models.build(network, optimizer())
    return Fluid(main, startup, [loss])


def numbers_alone() -> Any:
    """Of the state single numbers alone are packed."""
    packs = platforms.tuning(jax.default_backend()).packs
    return packing(packs and replace(packs, noticed=float("inf"), numbers=True))


def all_packed() -> Any:
    """All of the state that is small is packed."""
    packs = platforms.tuning(jax.default_backend()).packs
    return packing(packs and replace(packs, noticed=0.0))


# How else the state may travel, to see whether what is chosen is right.
OTHERWISE = {"nothing packed": UNPACKED, "numbers packed": numbers_alone, "all packed": all_packed}


def steps(
    case: str, peer: Flax, peer_feed: Any, sides: Sequence[tuple[str, Fluid, Any]], samples: int
) -> Iterator[Found]:
    """Prepares all; then times them fed from the device and, the first of ours and the peer, from
    NumPy; then tells the kernels.
    """
    made = [
        replace(net.side(name, feed), within=OTHERWISE.get(name, nullcontext))
        for name, net, feed in sides
    ]
    flax = peer.side("flax", peer_feed)
    for side in (*made, flax):
        side.prepare()
    figures = {side.name: executable(side, case) for side in (*made, flax)}
    state = sides[0][1].state_bytes()
    yield {"sides": figures, "batch": samples}
    times = timed([*made, flax])
    yield {
        "sides": compared(times, "flax", samples),
        "gflop": sides[0][1].gflop(samples),
        "state_mb": state / 1e6,
        "peak_mb": peak(),
    }
    hosts = [Side(sides[0][0], sides[0][1].numpy, sides[0][2]), Side("flax", peer.numpy, peer_feed)]
    yield {"fed from NumPy": compared(timed(hosts, turns=choose(5, 1)), "flax", samples)}
    for side in () if tiny() else (made[0], flax):
        yield {"kernels": side.name, **kernels(side)}


def resnet50(half_precision: bool) -> Iterator[Found]:
    batch, pixels, classes = choose((64, 224, 1000), (2, 32, 10))
    stages = choose(nets.STAGES, ((8, 1), (16, 1)))
    feed = data.images(batch, pixels, 3, classes)
    first = {**feed, "img": np.ascontiguousarray(feed["img"].transpose(0, 3, 1, 2))}
    optimizer = half(momentum) if half_precision else momentum
    made = [
        (name, ours(partial(nets.resnet50, name, pixels, classes, stages), optimizer), given)
        for name, given in (("NCHW", first), ("NHWC", feed))
    ]
    model = nets.ResNet50(classes, stages, jnp.bfloat16 if half_precision else jnp.float32)
    case = f"resnet50-{'bf16' if half_precision else 'f32'}"
    yield from steps(case, Flax(model, optax.sgd(1e-3, 0.9), feed), feed, made, batch)


def transformer(half_precision: bool) -> Iterator[Found]:
    width, length, heads, depth, batch = choose((1024, 512, 16, 6, 16), (32, 8, 2, 1, 2))
    feed = data.sequences(batch, length, width, 10)
    network = partial(fluid_models.transformer, width, length, heads, depth)
    made = [
        (
            "bf16" if half_precision else "f32",
            ours(network, half(adam) if half_precision else adam),
            feed,
        )
    ]
    if half_precision:
        made.append(("bf16, dynamic scale", ours(network, half(adam, dynamic=True)), feed))
    else:
        made.append(("all packed", ours(network, adam), feed))
    model = nets.Encoder(width, heads, depth, jnp.bfloat16 if half_precision else jnp.float32)
    case = f"transformer-{'bf16' if half_precision else 'f32'}"
    yield from steps(case, Flax(model, optax.adam(1e-3), feed), feed, made, batch)


def mlp() -> Iterator[Found]:
    inputs, width, batch = choose((784, 2048, 4096), (8, 16, 4))
    feed = data.vectors(batch, inputs, 10)
    network = partial(nets.mlp, inputs, width)
    made = [(name, ours(network, adam), feed) for name in ("f32", "nothing packed", "all packed")]
    yield from steps("mlp", Flax(nets.MLP(width), optax.adam(1e-3), feed), feed, made, batch)


def lenet() -> Iterator[Found]:
    batch = choose(1024, 4)
    feed = data.images(batch, 28, 1)
    made = [
        (name, ours(fluid_models.lenet, adam), feed)
        for name in ("f32", "nothing packed", "numbers packed")
    ]
    yield from steps("lenet", Flax(LeNet(), optax.adam(1e-3), feed), feed, made, batch)


def recommender() -> Iterator[Found]:
    """A table of 1e7 rows, of which a step looks up a few; beside optax, whose gradient is as tall
    as the table, and by hand.
    """
    height, width, slots, batch = choose((10_000_000, 16, 26, 4096), (1000, 4, 3, 8))
    rng = np.random.default_rng(0)
    feed = {
        "ids": rng.integers(0, height, (batch, slots, 1)),
        "label": rng.integers(0, 2, (batch, 1)),
    }
    network = partial(nets.recommender, height, width, slots)
    adagrad = ours(network, lambda: fluid.optimizer.Adagrad(0.01))
    hand = _by_hand(height, width, slots, feed)
    peer = Flax(nets.Recommender(height, width), optax.adagrad(0.01), feed)
    made = [adagrad.side("sparse Adagrad", feed), hand, peer.side("flax", feed)]
    for side in made:
        side.prepare()
    figures = {side.name: executable(side, "recommender") for side in made}
    yield {"sides": figures, "batch": batch}
    times = timed(made)
    yield {
        "sides": compared(times, "flax", batch),
        "state_mb": adagrad.state_bytes() / 1e6,
        "peak_mb": peak(),
    }
    yield {"beside by hand": compared(times, "by hand", batch)}
    hosts = [Side("sparse Adagrad", adagrad.numpy, feed), Side("flax", peer.numpy, feed)]
    yield {"fed from NumPy": compared(timed(hosts, turns=choose(5, 1)), "flax", batch)}
    for side in () if tiny() else made[:2]:
        yield {"kernels": side.name, **kernels(side)}


def _by_hand(height: int, width: int, slots: int, feed: Any) -> Side:
    """The step in plain JAX: gradients of the rows that are looked up, added up where a row
    repeats, and scattered.
    """
    sizes = [slots * width, 512, 256, 2]
    drawn = [
        jax.random.normal(jax.random.key(k), (a, b)) * a**-0.5
        for k, (a, b) in enumerate(pairwise(sizes))
    ]
    weights = [(w, jnp.zeros(w.shape[1])) for w in drawn]
    table = jax.random.uniform(jax.random.key(9), (height, width))
    state = weights, jax.tree.map(jnp.zeros_like, weights), table, jnp.zeros_like(table)

    def loss_of(weights: Any, rows: Any, label: Any) -> Any:
        h = rows.reshape(rows.shape[0], -1)
        for w, b in weights[:-1]:
            h = jax.nn.relu(h @ w + b)
        h = h @ weights[-1][0] + weights[-1][1]
        return optax.softmax_cross_entropy_with_integer_labels(h, label[:, 0]).mean()

    def step(state: Any, feed: Any) -> Any:
        weights, squares, table, sums = state
        ids = feed["ids"][..., 0]
        loss, (slopes, d_rows) = jax.value_and_grad(loss_of, (0, 1))(
            weights, table[ids], feed["label"]
        )
        squares = jax.tree.map(lambda s, g: s + g * g, squares, slopes)
        weights = jax.tree.map(
            lambda w, g, s: w - 0.01 * g / (jnp.sqrt(s) + 1e-6), weights, slopes, squares
        )
        flat, count = ids.reshape(-1), ids.size
        unique, place = jnp.unique(flat, return_inverse=True, size=count, fill_value=height)
        d = jnp.zeros((count, width)).at[place.reshape(-1)].add(d_rows.reshape(-1, width))
        sums = sums.at[unique].add(d * d, mode="drop", unique_indices=True, indices_are_sorted=True)
        rate = 0.01 / (jnp.sqrt(sums.at[unique].get(mode="clip")) + 1e-6)
        table = table.at[unique].add(
            -rate * d, mode="drop", unique_indices=True, indices_are_sorted=True
        )
        return (weights, squares, table, sums), loss

    jitted = jax.jit(step, donate_argnums=0)
    kept = [state]
    given = {n: jax.device_put(v.astype(np.int32)) for n, v in feed.items()}

    def call(feed: Any) -> Any:
        kept[0], loss = jitted(kept[0], feed)
        return loss

    def compiled() -> tuple[Any, Any]:
        lowered = jitted.lower(kept[0], given)
        return lowered, lowered.compile()

    return Side("by hand", call, given, compiled)


def lstm() -> Iterator[Found]:
    """Sentences of many lengths: ours are fed as they are, flax's padded to the longest there can
    be.
    """
    words, width, batch, count, longest = choose((30_000, 512, 64, 8, 100), (50, 8, 4, 2, 9))
    rng = np.random.default_rng(0)
    lengths = [rng.integers(longest // 5, longest + 1, batch) for _ in range(count)]
    ragged, padded = [], []
    for each in lengths:
        rows, label = rng.integers(0, words, (int(each.sum()), 1)), rng.integers(0, 2, (batch, 1))
        ragged.append(
            {
                "words": fluid.create_lod_tensor(rows, [each.tolist()], fluid.CPUPlace()),
                "label": label,
            }
        )
        wide = np.zeros((batch, longest + 1, 1), np.int32)
        wide[:, 0, 0] = each
        for row, at, n in zip(wide, np.cumsum(each) - each, each, strict=True):
            row[1 : n + 1] = rows[at : at + n]
        padded.append({"x": wide, "label": label})
    net = ours(partial(nets.lstm, words, width), adam)
    peer = Flax(nets.LSTM(words, width), optax.adam(1e-3), padded[0])
    began, first = time.perf_counter(), {}
    for name, run, feeds in (("LoD", net.run, ragged), ("flax", peer.run, padded)):
        for feed in feeds:
            jax.block_until_ready(jax.tree.leaves(_array(run(feed))))
        first[name], began = time.perf_counter() - began, time.perf_counter()
    yield {"first_s": first, "executables": len(net.exe.compilations(net.program)), "batch": batch}

    def through(run: Callable[[Any], Any], feeds: Sequence[Any]) -> Callable[[Any], Any]:
        return lambda _none: [_array(run(feed)) for feed in feeds]

    sides = [
        Side("LoD", through(net.run, ragged), None),
        Side("flax", through(peer.run, padded), None),
    ]
    rows = compared(timed(sides, turns=choose(5, 1)), "flax", batch * count)
    yield {
        "sides": {
            n: {**r, "ms": r["ms"] / count, "least_ms": r["least_ms"] / count}
            for n, r in rows.items()
        },
        "peak_mb": peak(),
    }
    for side in () if tiny() else sides:
        yield {"kernels": side.name, **kernels(side, steps=1)}


def _array(value: Any) -> Any:
    """What is fetched, as an array to wait for."""
    value = value[0] if isinstance(value, list) else value
    return value.array() if hasattr(value, "array") else value
