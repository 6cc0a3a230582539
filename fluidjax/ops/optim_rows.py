"""Optimizer updates by a sparse gradient, for the optimizers that touch only its rows; others use
it as a dense table.

Paddle 1.8.5 has such a kernel for sgd, adagrad and adam with lazy_mode. momentum, rmsprop, lamb and
adam without lazy_mode let the accumulators of every row decay, as with the same gradient as a plain
array.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .selected import SelectedRows


def sgd(param: Any, rate: Any, grad: SelectedRows) -> Any:
    """param[row] -= rate * value. Rows may repeat, since the update is linear."""
    return grad.with_values(-rate * grad.values).added_to(param)


def adagrad(
    param: Any, grad: SelectedRows, moment: Any, rate: Any, epsilon: float
) -> tuple[Any, Any]:
    """The rule of adagrad in the rows of the gradient, equal rows added up first."""
    grad = grad.merged()
    m = grad.of(moment) + grad.values * grad.values
    step = -rate * grad.values / (jnp.sqrt(m) + epsilon)
    return grad.with_values(step).added_to(param), grad.with_values(m).put_into(moment)


def lazy_adam(
    param: Any,
    grad: SelectedRows,
    moment1: Any,
    moment2: Any,
    rate: Any,
    betas: tuple[Any, Any],
    epsilon: float,
) -> tuple[Any, Any, Any]:
    """The rule of adam in the rows of the gradient, equal rows added up first; `rate` includes the
    bias correction.
    """
    grad = grad.merged()
    b1, b2 = betas
    m1 = b1 * grad.of(moment1) + (1 - b1) * grad.values
    m2 = b2 * grad.of(moment2) + (1 - b2) * grad.values * grad.values
    step = -rate * (m1 / (jnp.sqrt(m2) + epsilon))
    put = grad.with_values
    return put(step).added_to(param), put(m1).put_into(moment1), put(m2).put_into(moment2)
