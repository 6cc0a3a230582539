"""Operations counted from a step's equations: against XLA's own count, and against formulas."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower.step import Step
from fluidjax.memory.sizes import arguments
from fluidjax.planning.local import local
from fluidjax.planning.work import count
from tests.planning.nets import build


def images() -> Any:
    """Convolutions with strides, groups, dilations and padding, and their gradients."""
    x, label = fluid.data("x", [None, 4, 17, 15]), fluid.data("label", [None, 1], "int64")
    h = layers.conv2d(x, 8, 3, stride=2, padding=1, act="relu")
    h = layers.pool2d(
        layers.conv2d(h, 8, 3, groups=4, padding=[2, 1], dilation=2), 2, pool_stride=2
    )
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 5), label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return loss


def attention() -> Any:
    x, label = fluid.data("x", [None, 12, 16]), fluid.data("label", [None, 12, 1], "int64")
    q, k, v = (layers.fc(x, 16, num_flatten_dims=2) for _ in range(3))
    h = layers.matmul(layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=0.25)), v)
    loss = layers.mean(
        layers.softmax_with_cross_entropy(
            layers.fc(layers.layer_norm(h, begin_norm_axis=2), 7, num_flatten_dims=2), label
        )
    )
    fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


@pytest.mark.parametrize("net", [images, attention])
def test_operations_are_those_that_xla_counts(net: Any) -> None:
    """XLA counts what the step is before it optimises, for GPUs, where convolutions are XLA's own;
    element by element it counts a little otherwise."""
    main, _, loss = build(net)
    ours = local(main.desc, (loss.name,), 6, {}).work
    step = Step(main.desc, (loss.name,))
    types = arguments(step, 6, None)
    with jax.enable_x64(True):
        traced = jax.jit(lambda state, feed: step(state, feed)).trace(
            dict(types.state), dict(types.feed)
        )
        theirs = traced.lower(lowering_platforms=("cuda",)).cost_analysis()["flops"]
    assert ours.total == pytest.approx(theirs, rel=0.04)
    assert 0.5 * ours.total < sum(ours.flops.values()) < ours.total


def brute(
    size: int, taps: int, stride: int, before: int, after: int, gaps: int, spread: int
) -> int:
    """Products of a convolution along one axis: a convolution of ones with ones, summed."""
    y = jax.lax.conv_general_dilated(
        np.ones((1, 1, size), np.float32),
        np.ones((1, 1, taps), np.float32),
        (stride,),
        [(before, after)],
        (gaps,),
        (spread,),
    )
    return int(y.sum())


@pytest.mark.parametrize("case", [(5, 3, 1, 2, 2, 2, 1), (6, 7, 1, 0, 5, 3, 2)])
def test_padding_and_gaps_are_no_work(case: tuple[int, ...]) -> None:
    size, taps, stride, before, after, gaps, spread = case

    def f(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (stride,), [(before, after)], (gaps,), (spread,))

    traced = jax.make_jaxpr(f)(jnp.ones((2, 3, size)), jnp.ones((4, 3, taps)))
    assert count(traced).total == 2 * 2 * 3 * 4 * brute(*case)


def test_what_nothing_needs_is_not_counted_and_loops_are() -> None:
    def f(x: Any, w: Any) -> Any:
        _, back = jax.vjp(lambda x, w: x @ w, x, w)
        _, d_w = back(jnp.ones((4, 6)))  # the product for x is not needed
        y, _ = jax.lax.scan(lambda c, _: (c @ d_w @ d_w.T, None), x, None, length=3)
        return jax.lax.cond(y[0, 0] > 0, lambda v: v @ d_w, lambda v: jnp.zeros((4, 6)), y)

    work = count(jax.make_jaxpr(f)(jnp.ones((4, 5)), jnp.ones((5, 6))))
    product = 2 * 4 * 5 * 6
    assert (
        math.isclose(sum(work.flops.values()), product + 3 * 2 * product + product)
        and not work.open_loops
    )
    assert (
        count(
            jax.make_jaxpr(lambda x: jax.lax.while_loop(lambda v: v.sum() < 9, lambda v: v @ v, x))(
                jnp.ones((2, 2))
            )
        ).open_loops
        == 1
    )
