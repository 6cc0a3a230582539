"""Nets that hold blocks, one a construct and all together, with batches of two equal parts: what
everybody else has to see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers

LENGTHS = ([3, 1, 2], [2, 2, 2])  # of the sentences of each part
Rows = Callable[[Any], Any]


def number(value: int) -> Any:
    return layers.fill_constant([1], "int64", value)


def fc(x: Any, name: str) -> Any:
    return layers.fc(x, 3, act="tanh", param_attr=name + "_w", bias_attr=name + "_b")


def loop(h: Any) -> Any:
    """A While with an array, of which two entries are read behind it."""
    i, n = number(0), number(2)
    states = layers.array_write(h, i)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        after = fc(layers.array_read(states, i), "loop")
        layers.increment(i)
        layers.array_write(after, i, states)
        layers.less_than(i, n, cond=going)
    return layers.array_read(states, i) + layers.array_read(states, number(1))


def sentences(h: Any) -> Any:
    """A DynamicRNN with a While in it."""
    q = fluid.data("q", [None, 3], lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(q), rnn.memory(init=h, need_reorder=True)
        n = number(2)
        _, after = layers.while_loop(
            lambda i, y: layers.less_than(i, n),
            lambda i, y: [i + 1, fc(y, "inner")],
            [number(0), word + before],
        )
        rnn.update_memory(before, after)
        rnn.output(after)
    return layers.sequence_pool(rnn(), "average")


def parts(h: Any) -> Any:
    """IfElse."""
    sums = layers.reduce_sum(h, 1, keep_dim=True)
    both = layers.IfElse(layers.less_than(sums, layers.scale(sums, 0.0)))
    with both.true_block():
        both.output(fc(both.input(h), "true"))
    with both.false_block():
        both.output(layers.scale(both.input(h), 0.5))
    return both()[0]


def choice(h: Any) -> Any:
    """cond by a parameter, with a StaticRNN in a case."""
    w = layers.create_parameter(
        [3], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
    )
    positive = layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(w))

    def steps() -> Any:
        given, rnn = layers.stack([h, h * 0.5]), layers.StaticRNN()
        begin = layers.scale(h, 0.1)
        with rnn.step():
            row, before = rnn.step_input(given), rnn.memory(init=begin)
            after = fc([row, before], "step")
            rnn.update_memory(before, after)
            rnn.step_output(after)
        return layers.reduce_sum(rnn(), 0)

    return layers.cond(positive, lambda: steps() * w, lambda: layers.scale(h, 2.0))


NETS: dict[str, Rows] = {"loop": loop, "sentences": sentences, "parts": parts, "choice": choice}
NETS["all"] = lambda h: choice(parts(sentences(loop(h))))


def net(name: str) -> tuple[Any, Any]:
    """The rows that a net predicts, and its loss."""
    rows = NETS[name](fc(fluid.data("x", [None, 3]), "first"))
    return rows, layers.mean(layers.square(rows))


def part(k: int, ragged: bool = True) -> dict[str, Any]:
    """One of the two parts of a batch."""
    numbers = np.random.default_rng(k)
    x, q = (
        numbers.uniform(-1, 1, (n, 3)).astype("float32") for n in (len(LENGTHS[k]), sum(LENGTHS[k]))
    )
    return (
        {"x": x, "q": fluid.create_lod_tensor(q, [LENGTHS[k]], fluid.CPUPlace())}
        if ragged
        else {"x": x}
    )


def batch(ragged: bool = True) -> dict[str, Any]:
    """Both parts."""
    halves = [part(k, ragged) for k in (0, 1)]
    x = np.concatenate([h["x"] for h in halves])
    if not ragged:
        return {"x": x}
    q = np.concatenate([np.array(h["q"]) for h in halves])
    return {"x": x, "q": fluid.create_lod_tensor(q, [[*LENGTHS[0], *LENGTHS[1]]], fluid.CPUPlace())}
