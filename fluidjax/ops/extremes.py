"""Searches for the element that equals an extreme of all.

XLA:CPU recomputes a cheap value in each loop that reads it, and may round it differently each time:
a product and a sum fused, or separately. The maximum found by one loop may then equal none of the
values that another loop reads, and its gradient or index would be lost. A barrier does not help,
because XLA:CPU drops it before it builds loops; but a branch reads its operands from memory. On a
GPU a barrier stays until loops are built, and a branch would make the host wait for its condition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from . import loops
from .registry import Array


def by_equality(function: Callable[..., Any], x: Array, *more: Any) -> Any:
    """function(x, *more), computed so that x equals the extremes that the function finds in it.
    Both branches compute it: one of x, one of nan alone.
    """
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return function(x, *more)
    return lax.platform_dependent(
        x, *more, cpu=partial(_in_a_branch, function), default=partial(_behind_a_barrier, function)
    )


def _in_a_branch(function: Callable[..., Any], x: Array, *more: Any) -> Any:
    return loops.cond(
        jnp.any(x == x),
        function,
        lambda x, *more: function(jnp.full_like(x, jnp.nan), *more),
        x,
        *more,
    )


def _behind_a_barrier(function: Callable[..., Any], x: Array, *more: Any) -> Any:
    return function(lax.optimization_barrier(x), *more)
