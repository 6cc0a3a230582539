"""Modules of equinox given to fluid.trace, and among the arguments of what it takes, beside
eqx.filter_jit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import fluidjax as fluid

from .same import check_same

eqx = pytest.importorskip("equinox")
optax = pytest.importorskip("optax")
X = jax.random.normal(jax.random.key(0), (4, 6))


class Rows(eqx.Module):
    line: eqx.nn.Linear
    norm: eqx.nn.BatchNorm

    def __init__(self, key: Any) -> None:
        self.line = eqx.nn.Linear(6, 3, key=key)
        self.norm = eqx.nn.BatchNorm(3, axis_name="rows", mode="batch")

    def __call__(self, x: Any, state: Any) -> Any:
        def row(r: Any, state: Any) -> Any:
            return self.norm(self.line(r), state)

        return jax.vmap(row, axis_name="rows", in_axes=(0, None), out_axes=(0, None))(x, state)


def test_an_equinox_module_hands_its_state_on() -> None:
    model, state = eqx.nn.make_with_state(Rows)(jax.random.key(0))
    traced = fluid.trace(model, X, state)
    assert list(traced.feeds) == ["x"] and traced.continued == {0: None, 2: 1}
    step, arrays = jax.jit(traced.step()), eqx.filter(model, eqx.is_array)
    own = state
    for _ in range(3):
        out, state = step(arrays, X, state)
        expected, own = eqx.filter_jit(model)(X, own)
        check_same((expected, own), (out, state))


def test_an_equinox_step_takes_modules_with_functions_in_them() -> None:
    model = eqx.nn.MLP(6, 3, 8, 2, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)
    moments = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model: Any, moments: Any, x: Any) -> Any:
        def loss_of(model: Any) -> Any:
            return jnp.mean(jax.vmap(model)(x) ** 2)

        loss, grads = eqx.filter_value_and_grad(loss_of)(model)
        updates, moments = optimizer.update(grads, moments, model)
        return eqx.apply_updates(model, updates), moments, loss

    traced = fluid.trace(step, model, moments, X)
    assert list(traced.feeds) == ["x"] and traced.continued == {0: 0, 1: 1}
    assert "model.layers.0.weight" in traced.state
    run = jax.jit(traced.step())
    given: Any = eqx.filter(model, eqx.is_array), moments
    for _ in range(3):
        *given, loss = run(*given, X)
        model, moments, expected = step(model, moments, X)
        check_same((eqx.filter(model, eqx.is_array), moments, expected), (*given, loss))


def test_an_equinox_module_that_is_only_read_is_state() -> None:
    model = eqx.nn.MLP(6, 3, 8, 1, key=jax.random.key(0))
    traced = fluid.trace(lambda m, x: jax.vmap(m)(x), model, X)
    assert list(traced.feeds) == ["x"] and traced.continued == {0: None}
    check_same(
        eqx.filter_jit(lambda m, x: jax.vmap(m)(x))(model, X),
        jax.jit(traced.step())(traced.tree_of(traced.state)[0][0], X),
    )
    check_same(traced.step()(model, X), traced.step()(eqx.filter(model, eqx.is_array), X))
    assert fluid.trace(model, X[0]).report.scopes == ("MLP/layers.0", "MLP", "MLP/layers.1")
