"""What looks for the value that equals an extreme of all.

XLA:CPU computes a cheap value once for each loop that reads it, and may round it otherwise each
time: a product and a sum at once, or one after the other. So the maximum that one loop has found
may equal none of the values that another one reads, and its gradient, or its index, would be lost.
A barrier is no help: XLA:CPU drops it before it makes loops. But a branch finds its operands in
memory. On a GPU a barrier stands until loops are made, and a branch would have the host wait for
what it goes by.
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
    """function(x, *more), which finds x equal to what it takes of x. Both branches are that: of x,
    and of nothing but nan.
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
