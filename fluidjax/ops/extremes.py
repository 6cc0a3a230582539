"""What looks for the value that equals an extreme of all.

XLA:CPU computes a cheap value once for each loop that reads it, and may round it otherwise each time: a product and a sum at once, or
one after the other. So the maximum that one loop has found may equal none of the values that another one reads, and its gradient, or
its index, would be lost. A barrier is no help: XLA drops it before it makes loops. But a branch finds its operands in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from .registry import Array


def by_equality(function: Callable[..., Any], x: Array, *more: Any) -> Any:
    """function(x, *more), which finds x equal to what it takes of x. Both branches are that: of x, and of nothing but nan."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return function(x, *more)
    return lax.cond(jnp.any(x == x), function, lambda x, *more: function(jnp.full_like(x, jnp.nan), *more), x, *more)
