"""JAX functions as programs on the GPU: the bits of jax.jit, runs by an Executor, budgets, files of
StableHLO.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen

import fluidjax as fluid
from tests.tracing.test_functions import check_case

from .card import PLACE, REHEARSAL

KINDS = """convolutions pools_and_their_gradients random_typed_keys scans loops_and_branches custom_rules
    rematerialized linen_mlp_momentum nnx_batch_norm_and_dropout optax_multi_steps""".split()
TX = optax.adam(1e-2)


class Net(linen.Module):
    depth: int = 2
    width: int = 16

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(self.depth):
            x = linen.tanh(linen.Dense(self.width)(x))
        return linen.Dense(1)(x)


def training(net: Net, batch: int) -> tuple[Any, tuple[Any, ...]]:
    """A step of flax and optax, and its arguments."""
    x = jax.random.normal(jax.random.key(0), (batch, net.width))
    params = net.init(jax.random.key(1), x)["params"]

    def train(params: Any, opt_state: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return jnp.mean((net.apply({"params": p}, x) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = TX.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return train, (params, TX.init(params), x, x.sum(1, keepdims=True))


@pytest.mark.parametrize("name", KINDS if not REHEARSAL else KINDS[-1:])
def test_the_bits_of_jit(name: str) -> None:
    check_case(name)


def test_an_executor_trains_it_on_either_device() -> None:
    train, given = training(Net(), 32)
    losses = []
    for place in (PLACE, fluid.CPUPlace()):
        traced, exe, scope = fluid.trace(train, *given), fluid.Executor(place), fluid.Scope()
        traced.write(scope)
        feed = {n: np.asarray(v) for n, v in zip("xy", given[2:], strict=True)}
        losses.append(
            [
                exe.run(traced.main, feed=feed, fetch_list=list(traced.fetches), scope=scope)[0]
                for _ in range(5)
            ]
        )
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_a_budget_is_kept(record_property: Any) -> None:
    """A step of flax in six tenths of its temporaries."""
    train, given = training(*((Net(40, 16), 512) if REHEARSAL else (Net(40, 512), 8192)))
    plain = jax.jit(train, donate_argnums=(0, 1)).lower(*given).compile()
    figures = plain.memory_analysis()
    assert figures is not None
    held = figures.argument_size_in_bytes + figures.output_size_in_bytes
    budget = held - figures.alias_size_in_bytes + int(0.6 * figures.temp_size_in_bytes)
    step: Any = fluid.fit_memory(fluid.trace(train, *given), budget)
    record_property("chosen", str(step.budget_report.chosen))
    assert step.budget_report.chosen.figures.total <= budget
    expected = plain(*jax.tree.map(jnp.copy, given[:2]), *given[2:])
    found = step.jit()(*jax.tree.map(jnp.copy, given[:2]), *given[2:])
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-3)


def test_a_file_of_stablehlo_runs_on_either_device(tmp_path: Path) -> None:
    net = Net()
    x = jax.random.normal(jax.random.key(0), (8, net.width))
    params = net.init(jax.random.key(1), x)["params"]
    traced = fluid.trace(lambda p, x: net.apply({"params": p}, x), params, x, state=0)
    fluid.export(traced, str(tmp_path / "net"), "stablehlo", platforms=("cpu", "cuda"))
    loaded = fluid.load_exported(str(tmp_path / "net"))
    (name,) = traced.feeds
    (found,) = loaded({name: x}).values()
    expected = net.apply({"params": params}, x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with jax.default_device(jax.devices("cpu")[0]):
        (there,) = loaded({name: np.asarray(x)}).values()
    np.testing.assert_allclose(there, expected, rtol=1e-5, atol=1e-6)
