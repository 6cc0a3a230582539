"""JAX's own primitives as op types: ``jax.add``, ``jax.dot_general``, ``jax.scan``.

A type is called as JAX calls the function, its slots and attributes say in Paddle's kinds of
attributes what the function is given, and its body is one call of public ``jax.lax``. So a program
that holds them prints, parses, and runs in any process and with any version of JAX that has the
function. `fluidjax.trace` writes such programs; the table there says which primitive becomes which
op.

The registry imports this package when a type that begins with ``jax.`` is asked for.
"""

from __future__ import annotations

from . import (
    callbacks,
    calls,
    collectives,
    combining,
    control,
    indexing,
    linalg,
    pointwise,
    products,
    randomness,
    reduction,
    shaping,
    windows,
)

__all__ = [
    "callbacks",
    "calls",
    "collectives",
    "combining",
    "control",
    "indexing",
    "linalg",
    "pointwise",
    "products",
    "randomness",
    "reduction",
    "shaping",
    "windows",
]
