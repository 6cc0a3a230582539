"""Random small networks for property tests: a hypothesis strategy that builds training programs
layer by layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers

from .nets import fresh

WIDTH = 4
UNARY = ("relu", "tanh", "sigmoid", "square", "softplus", "softsign", "softmax", "abs", "exp")
BINARY = ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_max")


@dataclass(frozen=True)
class Net:
    """A built network: programs, loss, and a batch that fits."""

    main: fluid.Program
    startup: fluid.Program
    loss: Any
    feed: dict[str, np.ndarray]


@st.composite
def recipes(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Steps over a growing list of [batch, WIDTH] variables; numbers pick earlier ones."""
    pick = st.integers(0, 50)
    step = st.one_of(
        st.tuples(st.just("unary"), st.sampled_from(UNARY), pick),
        st.tuples(st.just("binary"), st.sampled_from(BINARY), pick, pick),
        st.tuples(st.just("fc"), st.booleans(), pick),
        st.tuples(st.just("scale"), st.floats(-2, 2, width=32), pick),
        st.tuples(st.just("concat_split"), pick, pick),
        st.tuples(st.just("layer_norm"), pick),
        st.tuples(st.just("batch_norm"), pick),
        st.tuples(st.just("reshape"), pick),
        st.tuples(st.just("stop"), pick),
        st.tuples(st.just("assign_over"), pick, pick),
    )
    return draw(st.lists(step, min_size=1, max_size=8))


def _apply(step: tuple[Any, ...], values: list[Any]) -> Any:
    def at(number: int) -> Any:
        return values[number % len(values)]

    kind, *rest = step
    if kind == "unary":
        return getattr(layers, rest[0])(at(rest[1]))
    if kind == "binary":
        return getattr(layers, rest[0])(at(rest[1]), at(rest[2]))
    if kind == "fc":  # a shared weight accumulates its gradients
        return layers.fc(at(rest[1]), WIDTH, param_attr="shared" if rest[0] else None)
    if kind == "scale":
        return layers.scale(at(rest[1]), rest[0], bias=0.5)
    if kind == "concat_split":
        return layers.split(layers.concat([at(rest[0]), at(rest[1])], axis=1), 2, dim=1)[1]
    if kind == "dropout":  # not among the recipes, which others run without a key
        return layers.dropout(at(rest[0]), 0.5)
    if kind == "reshape":
        return layers.transpose(layers.reshape(at(rest[0]), [-1, 2, WIDTH // 2]), [0, 2, 1])
    if kind == "assign_over":  # a name that is written twice
        target = layers.scale(at(rest[0]), 1.0)
        return layers.assign(layers.tanh(at(rest[1])), target)
    if kind == "stop":
        out = layers.scale(at(rest[0]), 1.5)
        out.stop_gradient = True
        return out
    return getattr(layers, kind)(at(rest[0]))


def build(recipe: list[tuple[Any, ...]], optimizer: Any = None, seed: int = 7) -> Net:
    """The training program of a recipe; every program has at least one parameter that the loss
    depends on.
    """
    with fresh(seed) as (main, startup):
        x = fluid.data("x", [None, WIDTH])
        values = [x, layers.fc(x, WIDTH)]
        for step in recipe:
            out = _apply(step, values)
            values.append(layers.reshape(out, [-1, WIDTH]) if len(out.shape) == 3 else out)
        loss = layers.mean(layers.elementwise_add(values[-1], layers.tanh(values[1])))
        (optimizer or fluid.optimizer.SGD(0.1)).minimize(loss)
    feed = {"x": np.random.default_rng(seed).standard_normal((3, WIDTH), dtype=np.float32)}
    return Net(main, startup, loss, feed)
