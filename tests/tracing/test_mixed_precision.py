"""Mixed precision of traced functions, beside the same casts written in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid

from ..weights import normal

LISTS = fluid.contrib.mixed_precision.AutoMixedPrecisionLists
PARAMS = {"a": normal(8, 16) / 3, "b": normal(16, seed=1), "c": normal(16, 1, seed=2), "s": jnp.float32(1.25)}  # fmt: skip
X = np.asarray(normal(32, 8, seed=3))
Y = X.sum(1, keepdims=True)


def network(params: Any, x: Any, y: Any) -> Any:
    hidden = jax.nn.relu(x @ params["a"] + params["b"])
    return jnp.mean((params["s"] * (hidden @ params["c"]) - y) ** 2)


def by_hand(params: Any, x: Any, y: Any, half: Any) -> Any:
    """Products in half precision, and after them the sums; what has a rule of its own, squares and
    sums of many in float32.
    """

    def product(a: Any, b: Any) -> Any:
        return jnp.matmul(a.astype(half), b.astype(half), preferred_element_type=half)

    hidden = product(x, params["a"]) + params["b"].astype(half)
    out = product(jax.nn.relu(hidden.astype("float32")), params["c"])
    error = params["s"].astype(half) * out - y.astype(half)
    return jnp.mean(error.astype("float32") ** 2)


def minimized(fn: Any, half: str, lists: Any = None, **options: Any) -> tuple[Any, Any]:
    traced = fluid.trace(fn, PARAMS, X, Y, state=0, **options)
    with fluid.program_guard(traced.main, traced.startup):
        loss = traced.main.global_block().var(traced.fetches[0])
        fluid.contrib.mixed_precision.decorate(
            fluid.optimizer.SGD(0.05), amp_lists=lists, init_loss_scaling=64.0, dtype=half
        ).minimize(loss)
    return traced, loss


@pytest.mark.first(2)
@pytest.mark.parametrize("dynamic", [None, {"x": ("b",), "y": ("b",)}])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_products_compute_in_half_precision_and_parameters_stay(half: str, dynamic: Any) -> None:
    """Three steps of SGD; a parameter of shape [] keeps it.

    Each step is compared from where the one before ended. Its loss is the one written by hand; its
    gradients are. That of the bias is a sum in half precision, which a compiler may add up in
    another order if it is float16: one rounding is allowed.
    """
    traced, loss = minimized(network, half, dynamic=dynamic)
    dtype = jnp.dtype(half)
    step = jax.jit(jax.value_and_grad(lambda p: 64 * by_hand(p, X, Y, dtype)))
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(traced.startup)
        for _ in range(3):
            before = held(traced)
            (found,) = exe.run(traced.main, feed={"x": X, "y": Y}, fetch_list=[loss])
            expected, grads = step(before)
            np.testing.assert_allclose(found, expected / 64, rtol=1e-5)
            assert expected / 64 != network(before, X, Y)
            after = held(traced)
            for name, grad in grads.items():
                assert (after[name].dtype, after[name].shape) == ("float32", grad.shape)
                move = np.asarray(0.05 * (grad / 64))
                summed = half == "float16" and name == "b"
                rounding = float(jnp.finfo(dtype).eps) * np.abs(move).max() if summed else 0
                np.testing.assert_allclose(
                    after[name], before[name] - move, rtol=1e-5, atol=max(1e-6, rounding)
                )


def held(traced: Any) -> dict[str, Any]:
    """The parameters in the scope, by the names of PARAMS."""
    values = traced.read()
    return {name: np.asarray(values[f"params.{name}"]) for name in PARAMS}


def test_lists_name_ops_of_traced_programs_too() -> None:
    lists = LISTS(custom_black_varnames={"params.c"})
    traced, _ = minimized(network, "bfloat16", lists)
    made = traced.main.desc.blocks[0].vars
    products = [op for op in traced.main.desc.blocks[0].ops if op.type == "jax.dot_general"]
    assert [made[op.output("Out")[0]].dtype for op in products] == ["bfloat16", "float32"]
    with pytest.warns(UserWarning, match=r"changes nothing \(.*test_mixed_precision.py:\d+\)"):
        minimized(network, "bfloat16", LISTS(custom_black_list={"jax.dot_general"}))


def test_what_stays_in_float32_as_a_whole_is_told() -> None:
    with pytest.warns(UserWarning, match="within jax.checkpoint, scan or kept calls stay"):
        minimized(jax.checkpoint(network), "float16")


@pytest.mark.parametrize(
    "options",
    [
        {"grad_clip": fluid.clip.GradientClipByGlobalNorm(0.01)},
        {"grad_clip": fluid.clip.GradientClipByNorm(0.01)},
        {"regularization": fluid.regularizer.L2Decay(0.1)},
        "lookahead",
    ],
)
def test_a_parameter_of_shape_nothing_keeps_it(options: Any) -> None:
    """Fluid's own factors have the shape [1]."""
    traced = fluid.trace(network, PARAMS, X, Y, state=0)
    plain = fluid.optimizer.SGD(0.05, **({} if options == "lookahead" else options))
    rule = fluid.optimizer.LookaheadOptimizer(plain, k=1) if options == "lookahead" else plain
    with fluid.program_guard(traced.main, traced.startup):
        loss = traced.main.global_block().var(traced.fetches[0])
        rule.minimize(loss)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(traced.startup)
        before, after = (
            exe.run(traced.main, feed={"x": X, "y": Y}, fetch_list=[loss])[0] for _ in range(2)
        )
        scale = traced.read()["params.s"]
    assert after < before and scale.shape == () and scale != PARAMS["s"]
    if options == "lookahead":  # half of each step
        grad = jax.grad(network)(PARAMS, X, Y)["s"]
        np.testing.assert_allclose(before, network(PARAMS, X, Y), rtol=1e-5)
        assert abs(scale - PARAMS["s"]) < 0.05 * abs(grad) * 1.5
