"""Fluid's autodiff on traced forward functions, beside jax.grad: at ordinary values, at ties and at
kinks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

import fluidjax as fluid
from fluidjax.ir.parse import parse
from fluidjax.ir.text import to_text

from ..weights import normal
from .functions import CASES
from .same import check_same

SQUARE = normal(3, 3)


def solved(p: Any) -> Any:
    return jnp.linalg.solve(p["a"] @ p["a"].T + 3 * jnp.eye(3), SQUARE).sum()


def rows(p: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = jax.nn.relu(h @ p["a"] + x)
        return h, h.sum()

    return lax.scan(cell, jnp.zeros(3), SQUARE)[1].sum()


def branches(p: Any) -> Any:
    return lax.cond(p["a"][0, 0] > 0, lambda a: (a**2).sum(), lambda a: jnp.sin(a).sum(), p["a"])


def remembered(p: Any) -> Any:
    return jax.checkpoint(lambda a: jnp.sin(jnp.tanh(a @ a)))(p["a"]).sum()


def held(p: Any) -> Any:
    """Rules that hold large arrays of their own."""
    big = np.eye(3, 3000, 7, dtype="f")  # mostly zeros: sums have no order

    @jax.custom_jvp
    def f(x: Any) -> Any:
        return x @ big

    f.defjvp(lambda given, along: (f(*given), along[0] @ (2 * big)))
    return lax.scan(lambda c, x: (c + f(x).sum(), f(c * x).sum()), 0.0, p["a"])[1].sum()


FUNCTIONS = {
    "relu": lambda p: jax.nn.relu(p["a"]).sum(),
    "relu6": lambda p: jax.nn.relu6(p["a"]).sum(),
    "maximum": lambda p: jnp.maximum(p["a"], 0.0).sum() + p["a"].max(),
    "where": lambda p: jnp.where(p["a"] > 0, p["a"], 2 * p["a"]).sum(),
    "softplus": lambda p: jax.nn.softplus(p["a"]).sum(),
    "logsumexp": lambda p: jax.nn.logsumexp(p["a"], axis=1).sum(),
    "log_softmax": lambda p: (jax.nn.log_softmax(p["a"])[:, 0] * jnp.arange(3)).sum(),
    "silu and gelu": lambda p: (jax.nn.silu(p["a"]) + jax.nn.gelu(p["a"])).sum(),
    "norm": lambda p: jnp.linalg.norm(p["a"] + 1.0),
    "sort": lambda p: (jnp.sort(p["a"], 1) * jnp.arange(3.0)).sum(),
    "gather and scatter": lambda p: p["a"][jnp.array([0, 2, 0])].sum() + p["a"].at[1].add(2.0).prod(),
    "solve": solved, "scan": rows, "cond": branches, "checkpoint": remembered, "held": held,
}  # fmt: skip
POINTS = {"ordinary": normal(3, 3, seed=4), "zero": jnp.zeros((3, 3)), "ties": jnp.ones((3, 3))}


@cache
def both(name: str) -> tuple[Any, Any]:
    """The gradient by Fluid, and by JAX."""
    fn = FUNCTIONS[name]
    traced = fluid.trace(fn, {"a": POINTS["ordinary"]}, state=0)
    loss = traced.main.global_block().var(traced.fetches[0])
    with fluid.program_guard(traced.main):
        (grad,) = fluid.gradients(loss, [traced.main.global_block().var("p.a")])
    step = jax.jit(fluid.step_fn(traced.main, [grad]))
    return lambda p: step({**traced.state, "p.a": p}, {})[1][0], jax.jit(jax.grad(fn))


@pytest.mark.parametrize("where", POINTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_jaxs(name: str, where: str) -> None:
    fluids, jaxs = both(name)
    found, expected = fluids(POINTS[where]), jaxs({"a": POINTS[where]})["a"]
    scale = float(np.abs(np.nan_to_num(expected)).max()) or 1.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-7 * scale)


def network(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jax.nn.relu(x @ params["w"]) @ params["v"] - y) ** 2)


OPTIMIZERS = {
    "sgd": (lambda: fluid.optimizer.SGD(0.1), lambda: optax.sgd(0.1)),
    "momentum": (lambda: fluid.optimizer.Momentum(0.1, 0.9), lambda: optax.sgd(0.1, momentum=0.9)),
    "optax": (lambda: fluid.optimizer.Optax(optax.adamw(0.1)), lambda: optax.adamw(0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_minimize_takes_a_scalar_loss_and_trains(name: str) -> None:
    """Each step's loss, and the parameters at the end, are those of the training by hand."""
    fluids, by_hand = OPTIMIZERS[name][0](), OPTIMIZERS[name][1]()
    params = {"w": normal(4, 8), "v": normal(8, 1, seed=1)}
    x, y = normal(16, 4, seed=2), normal(16, 1, seed=3)
    traced = fluid.trace(network, params, x, y, state=0)
    startup = fluid.Program()
    with fluid.program_guard(traced.main, startup):
        fluids.minimize(traced.main.global_block().var(traced.fetches[0]))
    exe, state = fluid.Executor(), by_hand.init(params)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        loss, grads = jax.value_and_grad(network)(params, x, y)
        updates, state = by_hand.update(grads, state, params)
        return loss, optax.apply_updates(params, updates), state

    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(startup)
        for _ in range(3):
            (found,) = exe.run(traced.main, feed={"x": x, "y": y}, fetch_list=[traced.fetches[0]])
            expected, params, state = step(params, state)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(traced.read()["params.w"], params["w"], rtol=1e-5, atol=1e-6)


def test_gradients_of_a_module_of_many_layers() -> None:
    fn, (variables, x), _ = CASES["linen_mlp_predicts"]()
    traced = fluid.trace(lambda v, x: fn(v, x).sum(), variables, x, state=0)
    names = [p.name for p in traced.main.all_parameters()]
    loss = traced.main.global_block().var(traced.fetches[0])
    with fluid.program_guard(traced.main):
        grads = fluid.gradients(loss, [traced.main.global_block().var(n) for n in names])
    _, found = jax.jit(fluid.step_fn(traced.main, grads))(traced.state, {"x": x})
    expected = jax.tree.leaves(jax.jit(jax.grad(lambda v: fn(v, x).sum()))(variables))
    assert len(found) == len(expected) == 6
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("calls", ["inline", "keep"])
def test_an_accuracy_that_is_asked_for_is_kept(calls: str) -> None:
    """jax 0.12 asks for one in the derivative of erf, and has a call of its own for checkpoints."""
    x = normal(5)

    def fn(x: Any) -> Any:
        return (
            jax.lax.exp(x, accuracy=jax.lax.AccuracyMode.HIGHEST),
            jax.lax.tanh(x, accuracy=jax.lax.Tolerance(1e-3, 2e-4, 3)),
            jax.grad(lambda x: jax.nn.gelu(x, approximate=False).sum())(x),
            jax.grad(lambda x: jax.checkpoint(jax.scipy.special.erf)(x).sum())(x),
        )

    traced = fluid.trace(fn, x, calls=calls)
    text = to_text(traced.main.desc)
    assert 'accuracy="HIGHEST"' in text and 'accuracy="0.001,0.0002,3"' in text
    again = replace(traced, main=fluid.Program.from_desc(parse(text)))
    check_same(jax.jit(fn)(x), jax.jit(again.step())(x))


def test_ops_of_a_rule_stand_in_the_scope_of_their_function() -> None:
    """Not in that scope twice."""

    def fn(p: Any, x: Any) -> Any:
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return jax.nn.relu(x @ p["w"]).sum()

    for calls in ("inline", "keep"):
        traced = fluid.trace(fn, {"w": SQUARE}, SQUARE, state=0, calls=calls)
        assert traced.report.scopes == ("outer/inner",)


def looped(p: Any) -> Any:
    return lax.while_loop(lambda c: c.sum() < 1e4, lambda c: 2 * c, jnp.abs(p["a"])).sum()


def asked(p: Any) -> Any:
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3, 3), "float32"), p["a"]).sum()


@pytest.mark.parametrize("fn", [looped, asked, lambda p: jnp.linalg.eig(p["a"])[1].real.sum()])
@pytest.mark.parametrize("way", ["gradients", "minimize"])
def test_a_part_of_a_gradient_is_not_lost(fn: Any, way: str) -> None:
    """Beside what has a gradient stands what has none: JAX refuses the whole, as we do."""
    params = {"a": SQUARE}
    with pytest.raises((ValueError, NotImplementedError)):
        jax.grad(lambda p: p["a"].sum() + fn(p))(params)
    traced = fluid.trace(lambda p: p["a"].sum() + fn(p), params, state=0, strict=False)
    block = traced.main.global_block()
    loss = block.var(traced.fetches[0])
    with (
        fluid.program_guard(traced.main, traced.startup),
        pytest.raises(
            fluid.FluidError, match=r"op 'jax.\w+' \(.*\d+\) has no gradient, .*stop_gradient"
        ),
    ):
        if way == "gradients":
            fluid.gradients(loss, [block.var("p.a")])
        else:
            fluid.optimizer.SGD(0.1).minimize(loss)


def stopping(p: Any) -> Any:
    return (lax.stop_gradient(looped(p)) * p["a"]).sum()


def of_data_alone(p: Any) -> Any:
    return (looped({"a": SQUARE}) * p["a"]).sum()


def flat(p: Any) -> Any:
    bits = lax.bitcast_convert_type(p["a"], jnp.int32) & -8
    return ((jnp.round(p["a"]) + lax.bitcast_convert_type(bits, jnp.float32)) * p["a"]).sum()


def windows(p: Any) -> Any:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID")

    return (jax.grad(lambda x: (pool(x) ** 2).sum())(p["a"]) ** 2).sum()


@pytest.mark.parametrize(
    "fn", [stopping, of_data_alone, flat, windows, lambda p: lax.approx_max_k(p["a"], 2)[0].sum()]
)
def test_what_has_no_gradient_may_stand_where_none_flows(fn: Any) -> None:
    traced = fluid.trace(fn, {"a": SQUARE}, state=0)
    block = traced.main.global_block()
    with fluid.program_guard(traced.main):
        grads = fluid.gradients(block.var(traced.fetches[0]), [block.var("p.a")])
    _, found = jax.jit(fluid.step_fn(traced.main, grads))(traced.state, {})
    expected = jax.jit(jax.grad(fn))({"a": SQUARE})["a"]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
