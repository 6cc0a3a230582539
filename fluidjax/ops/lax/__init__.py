"""JAX's own primitives as op types: ``jax.add``, ``jax.dot_general``, ``jax.scan``.

A type has the name of the JAX function; its slots and attributes (of Paddle's kinds) hold the
function's arguments, and its body is one call of public ``jax.lax``. A program with such ops thus
prints, parses, and runs in any process and with any version of JAX that has the function.
`fluidjax.trace` writes such programs; a table there maps primitives to ops.

The registry imports this package at the first look-up of a type that begins with ``jax.``.
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
