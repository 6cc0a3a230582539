"""Loops over elements that XLA gives to a library have XLA's values, nan and infinities among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core.primitives import max_p, min_p

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ops.registry import lookup
from fluidjax.ops.target import Target
from fluidjax.xla_cpu import policy
from fluidjax.xla_cpu.library import kept_apart
from fluidjax.xla_cpu.options import IN_LIBRARY, known
from tests.nets import fresh

MANY = 256
ODD = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.5,
    -1.5,
    2.5,
    127.5,
    128.0,
    -129.0,
    255.0,
    256.0,
    3e9,
    -3e9,
    88.0,
    -104.0,
    1e-8,
    1e20,
    -1e20,
]
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "of a number": lambda x, _: jnp.maximum(0.5, x) + jnp.minimum(x, -0.5),
    "of a row": lambda x, y: max_p.bind(x.reshape(-1, 400), y[:400].reshape(1, 400)) * 2,
    "of a column": lambda x, y: min_p.bind(x[:MANY].reshape(-1, 1), y.reshape(MANY, -1)) * 2,
    "relu": lambda x, _: jax.nn.relu(x * 2),
    "clip": lambda x, y: jnp.clip(y * x, -1, 1),
    "bytes": lambda x, y: ((x * 1).astype(jnp.int8), (y * 1).astype(jnp.uint8)),
    "in a branch": lambda x, y: lax.cond(
        x[-1] < 0, lambda v: jnp.maximum(v, y) * 2, lambda v: v * 3, x
    ),
    "in a loop": lambda x, y: lax.fori_loop(0, 3, lambda _, v: jnp.minimum(v, y) * 2, x),
    "mapped": lambda x, _: lax.map(lambda v: jnp.maximum(v, 2) * 2, x.reshape(2, -1)),
    "in a scan": lambda x, y: lax.scan(
        lambda c, t: (jnp.maximum(c, t), jnp.minimum(c, t) * 2), x, jnp.stack([x, y])
    ),
    "of all": lambda x, _: jnp.max(x * 2),
    "of windows": lambda x, _: lax.reduce_window(
        x * 2, np.array(-np.inf, x.dtype), lax.max, (2,), (2,), "VALID"
    ),
    "the greatest's index": lambda x, _: jnp.argmax(x * 2),
    "running": lambda x, _: (
        lax.cummax((x * 2).reshape(-1, 16), 1),
        lax.cummin((x * 2).reshape(16, -1), 0, reverse=True),
    ),
    "scattered": lambda x, y: jnp.zeros(4, x.dtype).at[jnp.arange(x.size) % 4].max(x * 2),
    "its gradient": lambda x, y: jax.grad(lambda v: jnp.sum(jnp.maximum(v * 2, y)))(x),
}


def inputs(dtype: str) -> tuple[Any, Any]:
    """Every odd value beside every other, often enough for XLA to think of the library."""
    values = (
        np.array(ODD)
        .clip(*(-6e4, 6e4) if dtype == "float16" else (None, None))
        .astype(jnp.dtype(dtype))
    )
    return np.tile(np.repeat(values, len(ODD)), MANY), np.tile(values, len(ODD) * MANY)


def within(function: Callable[..., Any], *args: Any) -> Any:
    return (
        jax.jit(kept_apart(function))
        .lower(*args)
        .compile(compiler_options=known(IN_LIBRARY))(*args)
    )


@pytest.mark.first(6)
@pytest.mark.parametrize("name", EXACT)
def test_values_are_those_of_xla(name: str) -> None:
    """Of every dtype, each in loops of its own within one program."""

    def each(*args: Any) -> Any:
        return [EXACT[name](*both) for both in args]

    with jax.enable_x64(True):
        args = list(map(inputs, ("float32", "float64", "bfloat16", "float16")))
        wanted, found = (
            jax.tree.leaves(jax.jit(each)(*args)),
            jax.tree.leaves(within(each, *args)),
        )
        for one, other in zip(wanted, found, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(
                np.asarray(other).astype(np.float64), np.asarray(one).astype(np.float64)
            )


NEAR: dict[str, Callable[[Any], Any]] = {
    "exp": jnp.exp, "log": jnp.log, "tanh": jnp.tanh, "logistic": jax.nn.sigmoid, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "abs": jnp.abs,
    "floor": jnp.floor, "ceil": jnp.ceil, "round": jnp.round, "sign": jnp.sign, "square": jnp.square, "erf": lax.erf, "expm1": jnp.expm1,
    "log1p": jnp.log1p, "cbrt": jnp.cbrt, "a quotient": lambda x: 3 / x, "a product and a sum": lambda x: x * x - x,
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_functions_of_a_number_are_near_and_nan_where_they_are(name: str) -> None:
    with jax.enable_x64(True):
        args = [inputs(dtype)[1] for dtype in ("float32", "float64")]

        def doubled(*args: Any) -> Any:
            return [NEAR[name](x) * 2 for x in args]

        both = zip(within(doubled, *args), jax.jit(doubled)(*args), (1e-6, 1e-14), strict=True)
        for found, wanted, error in both:
            np.testing.assert_allclose(found, wanted, rtol=error)


def test_a_step_with_loops_in_the_library_hands_nan_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one with XLA's own does."""
    with fresh() as (main, startup):
        x = layers.scale(fluid.data("x", [None, 400]), 2.0)
        ones = layers.fill_constant([400], "float32", 1.0)
        outs = [
            layers.relu(x),
            layers.clip(x, -1.0, 1.0),
            layers.elementwise_max(x, ones, axis=1),
            layers.elementwise_min(x, ones, axis=1),
        ]
        loss = layers.mean(layers.fc(layers.sums(outs), 3))
        fluid.optimizer.SGD(0.1).minimize(loss)
    feed = {"x": inputs("float32")[0].reshape(-1, 400)}

    def values(library: bool) -> list[Any]:
        monkeypatch.setattr(policy, "loops_are_long", lambda desc, ops, batch: library)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        found = exe.run(main, feed=feed, fetch_list=[*outs, loss], scope=scope)
        assert [c.policy.library for c in exe.compiled_steps(main)] == [library]
        return found

    found, wanted = values(True), values(False)
    assert np.isnan(found[0]).any() and np.isnan(found[-1])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def channel(*values: float) -> Any:
    """Two channels: these values, and plain ones."""
    plain = np.linspace(-1, 1, 24)
    return np.stack([np.resize(values, 24), plain], -1).reshape(6, 2, 2, 2).astype("float32")


BATCHES = {
    "plain": channel(*np.linspace(-2, 3, 24)),
    "far from 0": channel(*(1e4 + np.linspace(-1, 1, 24))),
    "equal": channel(0.1),
    "large": channel(1e18, -1e18, 3e17),
    "small": channel(1e-20, -3e-20),
    "too large": channel(1e30, -1e30),
    "infinity": channel(*[1.0] * 23, np.inf),
    "nan": channel(*[1.0] * 23, np.nan),
}
FINITE = ("plain", "far from 0", "equal", "large", "small")
GIVEN = {
    "Scale": np.array([2.0, -0.5], "f4"),
    "Bias": np.array([0.25, 1.0], "f4"),
    "Mean": np.zeros(2, "f4"),
    "Variance": np.ones(2, "f4"),
}
ATTRS = {"data_layout": "NHWC", "epsilon": 1e-5, "momentum": 0.9}


def batch_norm(x: Any, dy: Any, library: bool) -> dict[str, Any]:
    """What batch_norm and its gradient give, traced for the library or not."""
    target = Target(library=library)
    out = lookup("batch_norm")({"X": jnp.asarray(x), **GIVEN}, ATTRS, target=target)
    saved = {slot: out[slot] for slot in ("SavedMean", "SavedVariance")}
    given = {
        "X": jnp.asarray(x),
        "Scale": GIVEN["Scale"],
        "Bias": GIVEN["Bias"],
        **saved,
        "Y@GRAD": jnp.asarray(dy),
    }
    found = lookup("batch_norm_grad")(given, ATTRS, target=target)
    return {slot: np.asarray(v) for slot, v in {**out, **found}.items() if v is not None}


def in_float64(x: Any, dy: Any) -> dict[str, Any]:
    x, dy = x.astype("f8"), dy.astype("f8")
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    inverse = 1 / np.sqrt(variance + ATTRS["epsilon"])
    n = (x - mean) * inverse
    falls = dy.mean((0, 1, 2)) + n * (dy * n).mean((0, 1, 2))
    return {
        "Y": n * GIVEN["Scale"] + GIVEN["Bias"], "MeanOut": 0.1 * mean, "VarianceOut": 0.9 + 0.1 * variance, "SavedMean": mean,
        "SavedVariance": inverse, "X@GRAD": GIVEN["Scale"] * inverse * (dy - falls), "Scale@GRAD": (dy * n).sum((0, 1, 2)),
        "Bias@GRAD": dy.sum((0, 1, 2)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_norm_for_the_library_is_the_same(kind: str) -> None:
    x, dy = BATCHES[kind], np.random.default_rng(1).normal(size=(6, 2, 2, 2)).astype("float32")
    found, ordinary = batch_norm(x, dy, True), batch_norm(x, dy, False)
    assert found.keys() == ordinary.keys() and len(found) == 8
    for slot, value in found.items():
        assert (np.isnan(value) == np.isnan(ordinary[slot])).all() and (
            np.isinf(value) == np.isinf(ordinary[slot])
        ).all(), slot
    if kind in FINITE:
        wanted = in_float64(x, dy)
        # in deviations, what a mean in float32 may lack
        rounded = np.spacing(np.abs(wanted["SavedMean"]).astype("f4")) * wanted["SavedVariance"]
        for slot, value in wanted.items():
            scale = np.abs(value).max((0, 1, 2)) if value.ndim == 4 else np.abs(value)
            sums = (
                np.abs(dy).sum((0, 1, 2))
                if slot == "Scale@GRAD"
                else wanted["SavedVariance"]
                if slot == "X@GRAD"
                else 1
            )
            assert (
                np.abs(found[slot] - value) <= 2e-6 * scale + 4 * rounded * sums + 1e-6
            ).all(), slot
