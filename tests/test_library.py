"""Loops over elements that XLA gives to a library have XLA's values, nan and infinities among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower.library import kept_apart
from fluidjax.runtime.effort import QUICK

from .nets import fresh

MANY = 256
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 2.5, 127.5, 128.0, -129.0, 255.0, 256.0, 3e9, -3e9, 88.0, -104.0, 1e-8, 1e20, -1e20]
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "of a number": lambda x, _: jnp.maximum(0.5, x) + jnp.minimum(x, -0.5),
    "relu": lambda x, _: jax.nn.relu(x * 2),
    "clip": lambda x, y: jnp.clip(y * x, -1, 1),
    "bytes": lambda x, y: ((x * 1).astype(jnp.int8), (y * 1).astype(jnp.uint8)),
    "in a branch": lambda x, y: lax.cond(x[-1] < 0, lambda v: jnp.maximum(v, y) * 2, lambda v: v * 3, x),
    "in loops": lambda x, y: lax.fori_loop(0, 3, lambda _, v: jnp.minimum(v, y) * 2, lax.map(lambda v: jnp.maximum(v, 2) * 2, x.reshape(2, -1)).reshape(-1)),
    "in a scan": lambda x, y: lax.scan(lambda c, t: (jnp.maximum(c, t), jnp.minimum(c, t) * 2), x, jnp.stack([x, y])),
    "of all": lambda x, _: jnp.max(x * 2),
    "of windows": lambda x, _: lax.reduce_window(x * 2, np.array(-np.inf, x.dtype), lax.max, (2,), (2,), "VALID"),
    "the greatest's index": lambda x, _: jnp.argmax(x * 2),
    "scattered": lambda x, y: jnp.zeros(4, x.dtype).at[jnp.arange(x.size) % 4].max(x * 2),
    "its gradient": lambda x, y: jax.grad(lambda v: jnp.sum(jnp.maximum(v * 2, y)))(x),
}


def inputs(dtype: str) -> tuple[Any, Any]:
    """Every odd value beside every other, often enough for XLA to think of the library."""
    values = np.array(ODD).clip(*(-6e4, 6e4) if dtype == "float16" else (None, None)).astype(jnp.dtype(dtype))
    return np.tile(np.repeat(values, len(ODD)), MANY), np.tile(values, len(ODD) * MANY)


def quick(function: Callable[..., Any], *args: Any) -> Any:
    return jax.jit(kept_apart(function)).lower(*args).compile(compiler_options=QUICK.options())(*args)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", EXACT)
def test_values_are_those_of_xla(name: str, dtype: str) -> None:
    with jax.enable_x64(True):
        args = inputs(dtype)
        wanted, found = jax.tree.leaves(jax.jit(EXACT[name])(*args)), jax.tree.leaves(quick(EXACT[name], *args))
        for one, other in zip(wanted, found, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(other).astype(np.float64), np.asarray(one).astype(np.float64))


NEAR: dict[str, Callable[[Any], Any]] = {
    "exp": jnp.exp, "log": jnp.log, "tanh": jnp.tanh, "logistic": jax.nn.sigmoid, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "abs": jnp.abs,
    "floor": jnp.floor, "ceil": jnp.ceil, "round": jnp.round, "sign": jnp.sign, "square": jnp.square, "erf": lax.erf, "expm1": jnp.expm1,
    "log1p": jnp.log1p, "cbrt": jnp.cbrt, "a quotient": lambda x: 3 / x, "a product and a sum": lambda x: x * x - x,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NEAR)
def test_functions_of_a_number_are_near_and_nan_where_they_are(name: str, dtype: str) -> None:
    with jax.enable_x64(True):
        x = inputs(dtype)[1]

        def doubled(x: Any) -> Any:
            return NEAR[name](x) * 2

        np.testing.assert_allclose(quick(doubled, x), jax.jit(doubled)(x), rtol=1e-6 if dtype == "float32" else 1e-14)


@pytest.fixture
def quick_steps() -> Iterator[None]:
    before = fluid.get_flags("FLAGS_quick_steps")
    fluid.set_flags({"FLAGS_quick_steps": 2})
    yield
    fluid.set_flags(before)


@pytest.mark.usefixtures("quick_steps")
def test_a_quick_step_hands_nan_on() -> None:
    """Through every op of a net whose maxima would take a number for it."""
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 400])
        out = layers.elementwise_max(layers.clip(layers.relu6(layers.relu(layers.scale(x, 2.0))), 0.0, 9.0), layers.scale(x, 1.0))
        out = layers.elementwise_min(out, layers.scale(out, 3.0))
        loss = layers.mean(layers.fc(out, 3, act="relu"))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": inputs("float32")[0].reshape(-1, 400)}
    found, total = exe.run(main, feed=feed, fetch_list=[out, loss], scope=scope)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(feed["x"]))
    assert np.isnan(total)
