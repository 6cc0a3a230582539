"""Recurrences whose weights' gradient is one product behind the loop: derivatives of every kind are
those of the loop itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidjax.ops.ragged import Ragged
from fluidjax.ops.rnn import scanned

WIDTH = 3
CASES = {"ragged": [2, 5, 1], "equal": [3, 3], "with an empty one": [0, 4], "no rows": [0, 0]}


def step(weights: Any, others: Any, state: Any, rows: Any) -> tuple[Any, Any]:
    """A state, a product of it, and a product of that."""
    (h,) = state
    inner = jnp.tanh(rows[:, :WIDTH] + h @ weights[0]) * others[0]
    new = h + jnp.sin(rows[:, WIDTH:] + inner @ weights[1])
    return (new,), (new, inner)


def products(weights: Any, h: Any, outputs: Any) -> Any:
    return jnp.concatenate([h @ weights[0], outputs[1] @ weights[1]], -1)


def summed(lengths: list[int], reverse: bool, hoisted: bool) -> Callable[..., Any]:
    offsets = np.cumsum([0, *lengths]).astype(np.int32)

    def function(weights: Any, others: Any, first: Any, rows: Any) -> Any:
        x = Ragged(rows, (jnp.asarray(offsets),), (max(lengths),), "rows", padded=True)
        end = products if hoisted else None
        new, inner = scanned(x, reverse, step, (first,), weights, others, end)
        return jnp.sum(new[: offsets[-1]] ** 2) + jnp.sum(jnp.cos(inner[: offsets[-1]]))

    return function


def drawn(lengths: list[int]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    square = rng.standard_normal((2, WIDTH, WIDTH))
    rows = rng.standard_normal((sum(lengths) + 2, 2 * WIDTH))  # two of them fill up the array
    others = (rng.standard_normal(WIDTH),)
    return tuple(square), others, rng.standard_normal((len(lengths), WIDTH)), rows


def slope(function: Callable[..., Any], *given: Any) -> Any:
    return jax.jvp(function, given, jax.tree.map(jnp.cos, given))[1]


def gradient(function: Callable[..., Any], *given: Any) -> Any:
    return jax.grad(function, argnums=(0, 1, 2, 3))(*given)


def forward_over_reverse(function: Callable[..., Any], *given: Any) -> Any:
    return jax.jacfwd(jax.grad(function))(*given)


def reverse_over_reverse(function: Callable[..., Any], *given: Any) -> Any:
    return jax.jacrev(jax.grad(function))(*given)


@pytest.mark.parametrize(
    "derivative", [slope, gradient, forward_over_reverse, reverse_over_reverse]
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_the_loops(
    name: str, reverse: bool, derivative: Callable[..., Any]
) -> None:
    with jax.enable_x64(True):
        given = drawn(CASES[name])
        got, want = (
            jax.jit(derivative, static_argnums=0)(summed(CASES[name], reverse, hoisted), *given)
            for hoisted in (True, False)
        )
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def sums_in_loops(function: Callable[..., Any], *given: Any) -> set[tuple[int, ...]]:
    """The shapes of the sums that loops of the function compute in each step."""
    found: set[tuple[int, ...]] = set()

    def look(jaxpr: Any, looped: bool) -> None:
        for eqn in jaxpr.eqns:
            if looped and eqn.primitive.name in ("add", "add_any"):
                found.update(v.aval.shape for v in eqn.outvars)
            for inner in jax.tree.leaves(eqn.params, is_leaf=lambda p: hasattr(p, "eqns")):
                if hasattr(inner, "eqns"):
                    look(getattr(inner, "jaxpr", inner), looped or eqn.primitive.name == "scan")

    look(jax.make_jaxpr(function)(*given).jaxpr, False)
    return found


def test_no_loop_adds_the_gradient_of_the_weights_up() -> None:
    lengths = [2, 5, 1, 3]
    by_loop, behind = (
        sums_in_loops(jax.grad(summed(lengths, False, hoisted)), *drawn(lengths))
        for hoisted in (False, True)
    )
    assert (WIDTH, WIDTH) in by_loop
    assert (WIDTH, WIDTH) not in behind and (len(lengths), WIDTH) in behind


def test_what_a_step_computes_behind_the_end_counts_nothing() -> None:
    """The state of the first sequence would be infinite two steps after its end."""

    def growing(weight: Any, _: Any, state: Any, rows: Any) -> tuple[Any, Any]:
        new = rows + state[0] @ weight
        return (new,), (new,)

    def function(weight: Any, rows: Any) -> Any:
        x = Ragged(rows, (jnp.array([0, 1, 4], jnp.int32),), (3,), "rows", padded=True)
        first = (jnp.zeros((2, 1)),)
        (new,) = scanned(x, False, growing, first, weight, (), lambda w, h, _: h @ w)
        return new.sum()

    rows = jnp.array([[1e38], [1.0], [1.0], [1.0]])
    # of 1, 1 + w, 1 + w + w * w
    assert jax.grad(function)(jnp.array([[10.0]]), rows) == 2 + 2 * 10
