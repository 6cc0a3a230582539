"""Typed random keys among the state of a step: its data persist, as other arrays do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid

from .same import check_same

KEY = jax.random.key(7)

STATE = {"k": jax.random.key(3), "more": jax.random.split(jax.random.key(4, impl="rbg"), 2)}
STATE |= {"kept": jax.random.key(5), "w": np.ones(2, np.float32)}
X = np.ones(2, np.float32)


def step(state: Any, x: Any) -> Any:
    key, draw = jax.random.split(state["k"])
    noise = jax.random.normal(draw, (2,)) + jax.random.normal(state["more"][0], (2,))
    y = x + noise * jax.random.uniform(state["kept"])
    new = {"k": key, "more": state["more"][::-1], "kept": state["kept"], "w": state["w"] + y}
    return new, y, draw


@pytest.fixture
def traced() -> Any:
    return fluid.trace(step, STATE, X)


def test_the_step_takes_and_returns_keys(traced: Any) -> None:
    state = expected = STATE
    for _ in range(3):
        expected, *of_jit = jax.jit(step)(expected, X)
        state, *found = jax.jit(traced.step())(state, X)
        check_same((expected, of_jit), (state, found))


def test_an_executor_carries_them_and_a_checkpoint_holds_them(traced: Any, tmp_path: Path) -> None:
    exe, expected = fluid.Executor(), STATE
    traced.write()
    assert traced.main.desc.blocks[0].vars["state.more"].shape == (2, 4)
    for _ in range(3):
        expected, y, draw = jax.jit(step)(expected, X)
        found = exe.run(traced.main, feed={"x": X}, fetch_list=list(traced.fetches))
        check_same((y, draw), [jax.numpy.asarray(v) for v in found])
    fluid.io.save_checkpoint(exe, str(tmp_path), traced.main)
    fluid.io.wait_checkpoint(str(tmp_path))
    traced.write()
    fluid.io.load_checkpoint(exe, str(tmp_path), traced.main)
    (state, _), _ = traced.tree_of(traced.read())
    check_same(expected, state)
    with pytest.raises(fluid.FluidError, match=r"state\.k. does not fit"):
        fluid.io.save_persistables(exe, str(tmp_path / "vars"), traced.main)


def test_keys_that_are_only_read_and_keys_that_swap(traced: Any) -> None:
    def draw(key: Any, w: Any) -> Any:
        return jax.random.normal(key, w.shape) + w

    forward = fluid.trace(draw, jax.random.key(1), X, state={"key": None})
    assert list(forward.state) == ["key"] and list(forward.feeds) == ["w"]
    check_same(draw(jax.random.key(1), X), forward.step()(jax.random.key(1), X))

    pair = {"a": jax.random.key(1), "b": jax.random.key(2)}
    swapped = fluid.trace(lambda s: ({"a": s["b"], "b": s["a"]},), pair)
    swapped.write()
    fluid.Executor().run(swapped.main)
    ((found,), _) = swapped.tree_of(swapped.read())
    check_same({"a": pair["b"], "b": pair["a"]}, found)


def test_the_data_of_a_key_that_is_fed_is_refused_with_how_to_make_the_key() -> None:
    traced = fluid.trace(lambda key, x: x + jax.random.normal(key, x.shape), KEY, np.ones(3, "f"))
    data = np.asarray(jax.random.key_data(KEY))
    exe, fetches = fluid.Executor(), list(traced.fetches)
    with pytest.raises(
        fluid.FluidError, match=r"wrap_key_data\(value, impl='threefry2x32'\) is one"
    ):
        exe.run(traced.main, {"key": data, "x": np.ones(3, "f")}, fetches)
    feed = {"key": jax.random.wrap_key_data(data, impl="threefry2x32"), "x": np.ones(3, "f")}
    (found,) = exe.run(traced.main, feed, fetches)
    np.testing.assert_array_equal(found, 1 + jax.jit(lambda k: jax.random.normal(k, (3,)))(KEY))


@pytest.mark.slow
def test_numbers_that_are_drawn_again_within_a_budget() -> None:
    """A dropout mask is drawn twice instead of kept: from the same key, so it is the same mask."""

    def train(w: Any, key: Any, x: Any) -> Any:
        key, *layers = jax.random.split(key, 5)

        def loss(w: Any) -> Any:
            h = x
            for each in layers:
                h = jax.numpy.tanh(h @ w) * jax.random.bernoulli(each, 0.8, h.shape)
            return (h**2).sum()

        return {"w": w - 0.01 * jax.grad(loss)(w)}["w"], key

    def step(state: Any, x: Any) -> Any:
        w, key = train(state["w"], state["key"], x)
        return {"w": w, "key": key}, w.sum()

    state = {"w": jax.random.normal(KEY, (16, 16)) / 4, "key": KEY}
    x = jax.random.normal(jax.random.key(1), (512, 16))
    plain = jax.jit(step, donate_argnums=0).lower(state, x).compile().memory_analysis()
    assert plain is not None
    held = plain.argument_size_in_bytes + plain.output_size_in_bytes - plain.alias_size_in_bytes
    budget = held + int(0.9 * plain.temp_size_in_bytes)
    fitted: Any = fluid.fit_memory(fluid.trace(step, state, x), budget)
    assert fitted.budget_report.chosen.way.again
    (found, _), (expected, _) = jax.jit(fitted)(state, x), jax.jit(step)(state, x)
    check_same(expected["key"], found["key"])
    np.testing.assert_allclose(found["w"], expected["w"], rtol=1e-5, atol=1e-6)


def test_keys_that_a_function_closes_over(tmp_path: Path) -> None:
    """Few and many of them, in the function and in its loops: their data are constants."""
    few, many = jax.random.split(KEY, 3), jax.random.split(jax.random.key(2, impl="rbg"), 200)

    def fn(state: Any, x: Any) -> Any:
        noise = jax.random.normal(few[1], (3,)) + jax.vmap(jax.random.uniform)(many)[:3]
        drawn = lambda c, k: (c + jax.random.normal(k) * jax.random.uniform(few[0]), None)  # noqa: E731
        return {"w": state["w"] + noise * x}, jax.lax.scan(drawn, 0.0, many)[0], many[0]

    state, x = {"w": np.ones(3, np.float32)}, np.ones(3, np.float32)
    traced = fluid.trace(fn, state, x, state=0)
    assert all(isinstance(value.dtype, np.dtype) for value in traced.state.values())
    expected = jax.jit(fn)(state, x)
    check_same(expected, jax.jit(traced.step())(state, x))
    traced.write()
    exe = fluid.Executor()
    found = exe.run(traced.main, feed={"x": x}, fetch_list=list(traced.fetches))
    np.testing.assert_allclose(found[0], expected[1], rtol=1e-5)
    fluid.export(traced, tmp_path / "f.hlo", platforms=("cpu",))
    loaded = fluid.load_exported(tmp_path / "f.hlo")({})
    np.testing.assert_allclose(loaded[traced.fetches[0]], expected[1], rtol=1e-5)
