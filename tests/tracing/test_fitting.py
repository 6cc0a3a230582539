"""Traced training steps within a budget: what the compiler says they need, and their results."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.xla_cpu.options import MEMORY_OPTIMIZED

from ..weights import weights

X, Y = jax.random.normal(jax.random.key(0), (256, 32)), jnp.arange(256) % 10


class Deep(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(32)(x)
        for _ in range(4):
            x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
        return nn.Dense(10)(x)


def loss(params: Any, x: Any, y: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(Deep().apply(params, x), y).mean()


TX = optax.sgd(0.1, 0.9)


def train(params: Any, opt_state: Any, x: Any, y: Any) -> Any:
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, opt_state = TX.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


@cache
def start() -> tuple[Any, Any]:
    params = weights(Deep().init, jax.random.key(1), X)
    return params, TX.init(params)


def needs(fn: Any, *args: Any, **options: Any) -> int:
    """What a function needs in memory, as the compiler says of a jit that donates its state."""
    compiled = jax.jit(fn, donate_argnums=(0, 1), **options).lower(*args).compile()
    figures = compiled.memory_analysis()
    assert figures is not None
    held = figures.argument_size_in_bytes + figures.output_size_in_bytes
    return int(held + figures.temp_size_in_bytes - figures.alias_size_in_bytes)


def check_same(found: Any, expected: Any) -> None:
    """To two units in the last place of the scale of each array."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = max(float(np.abs(b).max()), 1e-6)
        np.testing.assert_allclose(a, b, rtol=0, atol=2 * np.finfo(np.float32).eps * scale)


@pytest.mark.slow
def test_a_step_keeps_its_budget_within_a_jit_of_the_users() -> None:
    params, state = start()
    plain = needs(train, params, state, X, Y)
    budget = int(0.85 * plain)
    step: Any = fluid.fit_memory(fluid.trace(train, params, state, X, Y), budget)
    assert step.budget_report.chosen.way.again and "twice" in str(step.budget_report)

    def twice(params: Any, state: Any, x: Any, y: Any) -> Any:
        params, state, value = step.inside(params, state, x, y)
        return params, state, value * 2

    options = {"compiler_options": step.compiler_options}
    assert needs(twice, params, state, X, Y, **options) <= budget < plain
    found = jax.jit(twice, **options)(params, state, X, Y)
    *expected, value = jax.jit(train)(params, state, X, Y)
    check_same(found, (*expected, value * 2))


@pytest.mark.slow
def test_the_least_is_told_and_kept() -> None:
    params, state = start()
    traced = fluid.trace(train, params, state, X, Y)
    with pytest.raises(FluidValueError) as told:
        fluid.fit_memory(traced, 1)
    least = re.search(r"least that was found is ([\d,]+)", str(told.value))
    assert least is not None and "its state and feeds alone are" in str(told.value)
    bytes_ = int(least[1].replace(",", ""))
    assert bytes_ < 0.8 * needs(train, params, state, X, Y)
    step: Any = fluid.fit_memory(traced, bytes_)
    assert step.budget_report.chosen.figures.total <= bytes_
    expected = jax.jit(train)(params, state, X, Y)
    copy = jax.tree.map(jnp.copy, (params, state))
    check_same(step.jit()(*copy, X, Y), expected)


@pytest.mark.slow
def test_half_of_the_temporaries_under_xlas_own_scheduler() -> None:
    params, state = start()
    plain = jax.jit(train, donate_argnums=(0, 1)).lower(params, state, X, Y).compile()
    figures = plain.memory_analysis()
    assert figures is not None
    held = figures.argument_size_in_bytes + figures.output_size_in_bytes
    budget = held - figures.alias_size_in_bytes + figures.temp_size_in_bytes // 2
    step: Any = fluid.fit_memory(fluid.trace(train, params, state, X, Y), budget)
    # its gradients have names of JAX's, and hold back what is computed again all the same
    assert step.budget_report.chosen.scheduler == "default"
    assert not step.compiler_options.keys() & MEMORY_OPTIMIZED
    assert needs(step, params, state, X, Y) <= budget
    expected = jax.jit(train)(params, state, X, Y)
    check_same(jax.jit(step)(params, state, X, Y), expected)


@pytest.mark.slow
def test_of_a_forward_pass_that_fluid_differentiates_at_any_batch() -> None:
    params, _ = start()
    with fluid.unique_name.guard():
        dynamic = {"x": ("b", None), "y": ("b",)}
        traced = fluid.trace(loss, params, X, Y, state=0, dynamic=dynamic)
        with fluid.program_guard(traced.main, traced.startup):
            fluid.optimizer.SGD(0.1).minimize(traced.main.global_block().var(traced.fetches[0]))
        plain = fluid.step_fn(traced.main, list(traced.fetches))
        feed = dict(zip(traced.feeds, (X, Y), strict=True))
        state = {**fluid.init_fn(traced.startup)(jax.random.key(0)), **traced.state}

        def total(fn: Any) -> int:
            figures = jax.jit(fn, donate_argnums=0).lower(state, feed).compile().memory_analysis()
            assert figures is not None
            held = figures.argument_size_in_bytes + figures.output_size_in_bytes
            return int(held + figures.temp_size_in_bytes - figures.alias_size_in_bytes)

        budget = int(0.85 * total(plain))
        step: Any = fluid.fit_memory(traced.main, budget, traced.fetches, batch_size=len(X))
        assert step.budget_report.chosen.way.again
        assert step.budget_report.chosen.figures.total <= budget
        new, (value,) = step.jit()(jax.tree.map(jnp.copy, state), feed)
    expected, grads = jax.jit(jax.value_and_grad(loss))(params, X, Y)
    check_same(value, expected)
    leaves = jax.tree.leaves(jax.tree.map(lambda p, g: p - 0.1 * g, params, grads))
    for name, leaf in zip(traced.places, leaves, strict=False):
        check_same(new[name], leaf)


class Images(nn.Module):
    """Its first layer's gradients alone are more than half of what it needs."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.avg_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape((x.shape[0], -1)))


@pytest.mark.slow
def test_where_half_cannot_be_reached_the_remedy_is_a_smaller_batch() -> None:
    x = jax.random.normal(jax.random.key(0), (64, 16, 16, 1))
    y = jnp.arange(64) % 10
    params = weights(Images().init, jax.random.key(1), x)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(Images().apply(p, x), y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = TX.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state = TX.init(params)
    half = needs(step, params, state, x, y) // 2
    dynamic = {"x": ("b",), "y": ("b",)}
    traced = fluid.trace(step, params, state, x, y, dynamic=dynamic)
    with pytest.raises(FluidValueError) as told:
        fluid.fit_memory(traced, half, batch_size=64)
    said = str(told.value)
    assert "test_fitting.py" in said and said.endswith("or feed fewer samples at a time")
    # as it says: a part of the batch is within the budget
    fitted: Any = fluid.fit_memory(traced, half, batch_size=16)
    assert fitted.budget_report.chosen.figures.total <= half


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(FluidTypeError, match=r"what fluid\.trace returned"):
        fluid.fit_memory(train, "1MB")  # type: ignore[arg-type]
    traced = fluid.trace(loss, start()[0], X, Y, state=0)
    with pytest.raises(FluidTypeError, match="fetch_list belongs to a program"):
        fluid.fit_memory(traced, "1MB", ["loss"])
    with pytest.raises(FluidValueError):
        fluid.fit_memory(traced, "1MB")  # it trains nothing
