"""Distributions and noisy activations that Paddle 2 and 3 added. The random numbers differ from
Paddle's; results that depend on them are compared.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..errors import FluidValueError
from .greatest import first_greatest
from .registry import Array, grad_of, op
from .traits import mixes


@op(outs="Out", rows=mixes("X"))
def poisson(X: Array, *, key: jax.Array):
    """Out = samples of the Poisson distribution with mean X, in X's dtype."""
    return jax.random.poisson(key, X).astype(X.dtype)


@op(outs="out", rows=mixes("x"))
def standard_gamma(x: Array, *, key: jax.Array):
    """out = samples of the gamma distribution with shape x and scale 1."""
    return jax.random.gamma(key, x, dtype=x.dtype)


@op(outs="Out", rows=mixes("Alpha"))
def dirichlet(Alpha: Array, *, key: jax.Array):
    """Out [..., k] = samples of the Dirichlet distribution with Alpha [..., k]; each adds up to 1."""
    return jax.random.dirichlet(key, Alpha, dtype=Alpha.dtype)


@op(outs="out", rows=mixes("count"))
def binomial(count: Array, prob: Array, *, key: jax.Array):
    """out (int64) = the number of successes in `count` trials, each with probability `prob`."""
    return jax.random.binomial(key, count.astype(prob.dtype), prob).astype(jnp.int64)


@op(outs="Out Noise~", rows=mixes("X"))
def rrelu(
    X: Array, *, lower: float = 0.125, upper: float = 1.0 / 3, is_test: bool = False, key: jax.Array
):
    """Out = X * Noise; Noise = 1 where X >= 0, else a random number between lower and upper (their
    mean with is_test).
    """
    if not 0 <= lower <= upper <= 1:
        raise FluidValueError(f"rrelu takes 0 <= lower <= upper <= 1, not {lower} and {upper}")
    slope = (
        (lower + upper) / 2 if is_test else jax.random.uniform(key, X.shape, X.dtype, lower, upper)
    )
    noise = jnp.where(X >= 0, jnp.ones((), X.dtype), slope).astype(X.dtype)
    return X * noise, noise


@grad_of("rrelu", "X Noise", grad_outs="Out")
def rrelu_grad(X: Array, Noise: Array, d_Out: Array):
    """X@GRAD = Out@GRAD * Noise."""
    return d_Out * Noise


@op(outs="Out", rows=mixes("X"))
def gumbel_softmax(
    X: Array, *, temperature: float = 1.0, hard: bool = False, axis: int = -1, key: jax.Array
):
    """Out = softmax((X + g) / temperature) along `axis`, with g from the Gumbel distribution; hard:
    1 at its maximum, else 0.
    """
    if temperature <= 0:
        raise FluidValueError(f"gumbel_softmax takes a temperature above 0, not {temperature}")
    out = jax.nn.softmax((X + jax.random.gumbel(key, X.shape, X.dtype)) / temperature, axis)
    return (
        jax.nn.one_hot(first_greatest(out, axis), X.shape[axis], dtype=X.dtype, axis=axis)
        if hard
        else out
    )


@grad_of("gumbel_softmax", "Out")
def gumbel_softmax_grad(Out: Array, d_Out: Array, *, axis: int = -1):
    """X@GRAD = Out * (Out@GRAD - sum(Out@GRAD * Out)): softmax's as in Paddle, without the
    temperature, and 0 with hard.
    """
    return Out * (d_Out - jnp.sum(d_Out * Out, axis, keepdims=True))
