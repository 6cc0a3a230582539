"""Random functions of some forty functions of JAX's, with control flow in each other: a program
computes the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.ir.parse import parse
from fluidjax.ir.text import to_text

from .same import check_same

pytestmark = pytest.mark.hypothesis

Function = Callable[[Any], Any]
# Of a matrix of 3 x 3 float32 to another.
SIMPLE: dict[str, Function] = {
    "neg": lambda x: -x, "abs": jnp.abs, "exp": lambda x: jnp.exp(-jnp.abs(x)), "tanh": jnp.tanh, "sin": jnp.sin,
    "logistic": jax.nn.sigmoid, "relu": jax.nn.relu, "silu": jax.nn.silu, "log1p": lambda x: jnp.log1p(jnp.abs(x)),
    "floor": jnp.floor, "round": jnp.round, "sign": jnp.sign, "square": jnp.square, "cbrt": jnp.cbrt,
    "erf": jax.scipy.special.erf, "clip": lambda x: jnp.clip(x, -1, 1), "where": lambda x: jnp.where(x > 0, x, 2 * x),
    "transpose": lambda x: x.T, "rev": lambda x: x[::-1], "roll": lambda x: jnp.roll(x, 1, 1),
    "pad": lambda x: jnp.pad(x, 1)[1:-1, :3], "concatenate": lambda x: jnp.concatenate([x[:1], x[1:]]),
    "sort": lambda x: jnp.sort(x, 0), "cumsum": lambda x: jnp.cumsum(x, 1), "softmax": lambda x: jax.nn.softmax(x),
    "logsumexp": lambda x: x - jax.nn.logsumexp(x, 1, keepdims=True), "mean": lambda x: x - x.mean(0),
    "max": lambda x: x - x.max(1, keepdims=True), "argmax": lambda x: x * jnp.argmax(x, 0), "dot": lambda x: x @ x,
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x), "gather": lambda x: x[jnp.array([2, 0, 2])],
    "scatter": lambda x: x.at[1].add(x[0]), "slice": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (1, 1)),
    "integers": lambda x: (x * 4).astype(jnp.int32).astype(jnp.float32), "half": lambda x: x.astype(jnp.bfloat16).astype(x.dtype),
    "bits": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int32) & -8, jnp.float32),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(3)), "norm": lambda x: x / (1 + jnp.linalg.norm(x)),
    "draw": lambda x: x + jax.random.uniform(jax.random.key(3), (3, 3)), "grad": jax.grad(lambda x: jnp.sum(jnp.tanh(x) * x)),
    "one_hot": lambda x: x + jax.nn.one_hot(jnp.arange(3), 3), "power": lambda x: jnp.abs(x) ** 1.5,
    "constant": lambda x: x + jnp.arange(9.0).reshape(3, 3),
}  # fmt: skip


def chain(steps: list[Function]) -> Function:
    def run(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return run


def scanned(body: Function) -> Function:
    return lambda x: lax.scan(lambda c, row: (body(c) + row, row), x, x)[0]


def looped(body: Function) -> Function:
    return lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, body(s[1])), (0, x))[1]


def branched(body: Function) -> Function:
    return lambda x: lax.cond(x[0, 0] > 0, body, lambda v: v - 1, x)


WITHIN = [
    scanned,
    looped,
    branched,
    jax.checkpoint,
    jax.jit,
    lambda body: jax.vmap(lambda row: body(row * jnp.ones((3, 3)))[0]),
]
simple = st.sampled_from(sorted(SIMPLE)).map(SIMPLE.__getitem__)
functions = st.recursive(
    st.lists(simple, min_size=1, max_size=4).map(chain),
    lambda inner: st.builds(lambda wrap, body: wrap(body), st.sampled_from(WITHIN), inner),
    max_leaves=4,
)


@settings(max_examples=15)
@given(
    st.lists(functions, min_size=1, max_size=3),
    st.integers(0, 5),
    st.sampled_from(["inline", "keep"]),
)
def test_a_random_function_is_what_its_program_computes(
    steps: list[Function], seed: int, calls: str
) -> None:
    fn, x = chain(steps), np.float32(np.random.default_rng(seed).normal(size=(3, 3)))
    traced = fluid.trace(fn, x, calls=calls)
    text = to_text(traced.main.desc)
    assert parse(text) == traced.main.desc
    again = replace(traced, main=Program.from_desc(parse(text)))
    check_same(jax.jit(fn)(x), jax.jit(again.step())(x))
