"""Optimizer updates that Paddle 3 added. Their slots are in lower case; master_param is MasterParam
of sgd.
"""

from __future__ import annotations

import jax.numpy as jnp

from .optim import settled
from .registry import Array, op
from .traits import mixes


def _outs(*names: str) -> dict[str, str]:
    return {f"{name}_out": name for name in names}


def _one(x: Array) -> Array:
    return x.reshape(())


@op(
    outs=(
        "param_out momentum_decay_pow_out beta2_pow_out mu_product_out moment1_out moment2_out"
        " master_param_out?"
    ),
    rows=mixes(),
    inplace=_outs(
        "param",
        "momentum_decay_pow",
        "beta2_pow",
        "mu_product",
        "moment1",
        "moment2",
        "master_param",
    ),
)
def nadam(
    param: Array, grad: Array, learning_rate: Array, momentum_decay_pow: Array, beta2_pow: Array, mu_product: Array, moment1: Array,
    moment2: Array, master_param: Array | None, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    momentum_decay: float = 0.004, multi_precision: bool = False,
):  # fmt: skip
    """param_out = p - lr * (mu' * m1 / (1 - M * mu') + (1 - mu) * g / (1 - M)) / (sqrt(m2 / (1 -
    b2)) + epsilon).

    m1, m2: adam's averages. d = momentum_decay_pow * 0.96, mu = beta1 * (1 - d^momentum_decay / 2),
    mu' the same one step later, M = mu_product * mu, b2 = beta2_pow * beta2. d, b2 and M, [1] or
    one per element, are state for the next step.
    """
    p = param if master_param is None else master_param
    g = grad.astype(p.dtype)
    decay, power = momentum_decay_pow * 0.96, beta2_pow * beta2
    now = beta1 * (1 - 0.5 * decay**momentum_decay)
    later = beta1 * (1 - 0.5 * decay**momentum_decay * 0.96**momentum_decay)
    product = mu_product * now
    m1, m2 = beta1 * moment1 + (1 - beta1) * g, beta2 * moment2 + (1 - beta2) * g * g
    ahead = later / (1 - product * later) * m1 + (1 - now) / (1 - product) * g
    new = p - _one(learning_rate) * ahead / (jnp.sqrt(m2 / (1 - power)) + epsilon)
    return settled(param, master_param, new, decay, power, product, m1, m2)


@op(
    outs="param_out beta1_pow_out beta2_pow_out rho_out moment1_out moment2_out master_param_out?",
    rows=mixes(),
    inplace=_outs("param", "beta1_pow", "beta2_pow", "rho", "moment1", "moment2", "master_param"),
)
def radam(
    param: Array, grad: Array, learning_rate: Array, beta1_pow: Array, beta2_pow: Array, rho: Array, moment1: Array, moment2: Array,
    master_param: Array | None, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, multi_precision: bool = False,
):  # fmt: skip
    """param_out = p - lr * m * r * sqrt(1 - b2) / (sqrt(m2) + epsilon) where s > 5, else p - lr *
    m.

    m1, m2: adam's averages, m = m1 / (1 - b1), with the powers b1, b2 ([1], or one per element)
    after this step. s = S - 2 * rho_out, S = 2 / (1 - beta2) - 1, rho_out = (rho * (beta2 - b2) +
    b2) / (1 - b2), r = sqrt((s - 4) (s - 2) S / ((S - 4) (S - 2) s)).
    """
    p = param if master_param is None else master_param
    g = grad.astype(p.dtype)
    pow1, pow2 = beta1_pow * beta1, beta2_pow * beta2
    top = 2 / (1 - beta2) - 1
    after = (rho * (beta2 - pow2) + pow2) / (1 - pow2)
    s = top - 2 * after
    m1, m2 = beta1 * moment1 + (1 - beta1) * g, beta2 * moment2 + (1 - beta2) * g * g
    mean = m1 / (1 - pow1)
    certain = jnp.maximum(s, 5)  # the other branch does not read it
    scale = (
        jnp.sqrt((certain - 4) * (certain - 2) * top / ((top - 4) * (top - 2) * certain))
        if top > 4
        else jnp.zeros_like(s)
    )
    adapted = mean * scale * jnp.sqrt(1 - pow2) / (jnp.sqrt(m2) + epsilon)
    new = p - _one(learning_rate) * jnp.where(s > 5, adapted, mean)
    return settled(param, master_param, new, pow1, pow2, after, m1, m2)


@op(
    outs="param_out d_out y_out master_param_out?",
    inplace=_outs("param", "d", "y", "master_param"),
    rows=mixes(),
)
def asgd(
    param: Array, grad: Array, learning_rate: Array, d: Array, y: Array, n: Array, master_param: Array | None, *,
    multi_precision: bool = False,
):  # fmt: skip
    """d_out = d - y + grad, y_out = grad, param_out = p - lr / n * d_out: d is the sum of the last
    n gradients, y the oldest.
    """
    p = param if master_param is None else master_param
    g = grad.astype(p.dtype)
    total = d - y + g
    return settled(param, master_param, p - _one(learning_rate) / _one(n) * total, total, g)


@op(
    outs="param_out prev_out learning_rate_out master_param_out?",
    inplace=_outs("param", "prev", "learning_rate", "master_param"),
    rows=mixes(),
)
def rprop(
    param: Array, grad: Array, prev: Array, learning_rate: Array, master_param: Array | None, learning_rate_range: Array, etas: Array, *,
    multi_precision: bool = False,
):  # fmt: skip
    """param_out = p - sign(g) * r, with a rate for each element: r = learning_rate * etas[1] where
    grad * prev > 0, * etas[0] where below.

    r stays within learning_rate_range, and is its minimum where grad * prev is nan. prev_out = g =
    grad, and 0 where grad * prev < 0; learning_rate_out = r.
    """
    p = param if master_param is None else master_param
    g = grad.astype(p.dtype)
    turn = g * prev
    (down, up), (low, high) = etas.reshape(-1), learning_rate_range.reshape(-1)
    factor = jnp.where(turn > 0, up, jnp.where(turn < 0, down, 1))
    rate = jnp.where(jnp.isnan(turn), low, jnp.clip(learning_rate * factor, low, high))
    g = jnp.where(turn < 0, 0, g)
    return settled(param, master_param, p - jnp.sign(g) * rate, g, rate)
