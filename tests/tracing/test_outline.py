"""The outline of a training step: what updates parameters alike is one line."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import optax

import fluidjax as fluid


def test_the_updates_of_many_leaves_are_one_line() -> None:
    tx = optax.adam(1e-2)
    params = {f"layer{i}": {"kernel": jnp.ones((4, 4)), "bias": jnp.ones(4)} for i in range(5)}
    params["scale"] = jnp.ones(())

    def step(params: Any, opt_state: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            h = x
            for i in range(5):
                h = jnp.tanh(h @ p[f"layer{i}"]["kernel"] + p[f"layer{i}"]["bias"])
            return (h * p["scale"]).sum()

        grads = jax.grad(loss)(params)
        grads["scale"] = jnp.clip(grads["scale"], -1.0, 1.0)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    traced = fluid.trace(step, params, tx.init(params), jnp.ones((2, 4)))
    text = traced.outline()
    after = text.partition("Optimize\n")[2].splitlines()
    (many,) = [line for line in after if " and " in line]
    name, each, count = re.match(r" +(\S+) and (\d+) more +(\d+) x", many).groups()  # type: ignore[union-attr]
    assert name.startswith("params.layer") and int(each) == 9
    of_scale = [op for op in traced.main.desc.blocks[0].ops if "params.scale" in op.writes]
    assert len(of_scale) == 1 and any(line.strip().startswith("params.scale ") for line in after)
    told = sum(int(re.search(r"  (\d+)( x (\d+))?  ", line)[1]) * int(  # type: ignore[index]
        (re.search(r" x (\d+)  ", line) or [0, 1])[1]) for line in after)  # fmt: skip
    roles = [op.attrs["op_role"] for op in traced.main.desc.blocks[0].ops]
    assert told == roles.count(2) and int(count) > 8
