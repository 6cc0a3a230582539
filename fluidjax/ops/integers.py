"""Integer arithmetic in which C differs from JAX: powers, conversion of floats, division by 0.

Paddle 1.8.5 computes these in C++ on x86: a float that an integer cannot hold (or nan) becomes the
least integer, and an integer of 8 or 16 bits is the low bits of a 32-bit one. XLA takes the nearest
integer, and 0 for nan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .checking import Objection
from .ragged import Ragged


def converted(x: Any, dtype: Any) -> Any:
    """x as another dtype."""
    kind = np.dtype(dtype)
    return (
        of_floats(x, kind)
        if kind.kind in "iu" and jnp.issubdtype(x.dtype, jnp.floating)
        else x.astype(kind)
    )


def of_floats(x: Any, dtype: Any) -> jax.Array:
    """Floats as integers, rounded toward zero; out of range as described above."""
    kind = np.dtype(dtype)
    wide = np.dtype(np.int32 if kind.itemsize < 4 else np.int64 if kind.kind == "u" else kind)
    low = np.iinfo(wide).min
    value = jnp.asarray(x)
    value = value if value.dtype.itemsize >= 4 else value.astype(np.float32)
    fits = (value >= low) & (value < -float(low))
    return jnp.where(fits, value, low).astype(wide).astype(kind)


def power(x: Any, y: Any) -> jax.Array:
    """x ** y of integers of one dtype, like the float64 result converted to an integer: 2 ** -1 is
    0; a result out of range, and 0 ** -1, is the least integer.

    It is computed in integers (the powers of a GPU's library are not exact) and rounded to a
    float64's digits.
    """
    kind = x.dtype
    x, y = (v.astype(np.int64) for v in jnp.broadcast_arrays(x, y))
    times = jnp.clip(jnp.where(y > 63, 62 + y % 2, y), 0, 63)
    size = jnp.abs(_repeated(x.astype(np.float64), times))
    fits = (size <= 2.0**63) & ((y <= 63) | (size <= 1))  # beyond 63 only 0, 1 and -1
    found = jnp.where(fits, _repeated(x, times).astype(np.float64), np.inf)
    inverse = jnp.where(x == 0, np.inf, jnp.where(jnp.abs(x) == 1, _repeated(x, y % 2), 0))
    return of_floats(jnp.where(y < 0, inverse, found), kind)


def _repeated(x: Any, y: Any) -> Any:
    """x ** y for y from 0 to 63, by squaring; the low bits of results that are too large."""
    result = jnp.ones_like(x)
    for bit in range(6):
        result = jnp.where((y >> bit) & 1 == 1, result * x, result)
        x = x * x
    return result


def divides_by_zero(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterable[Objection]:
    """Rejects an integer division by 0. In 1.8.5 elementwise_div raises, and the others end the
    process.
    """
    y = inputs["Y"]
    rows = y.rows if isinstance(y, Ragged) else y
    if jnp.issubdtype(rows.dtype, jnp.integer):
        zero = rows == 0
        if isinstance(y, Ragged):  # padded rows are zeros
            zero &= (jnp.arange(rows.shape[0]) < y.offsets[-1][-1]).reshape(
                -1, *[1] * (rows.ndim - 1)
            )
        yield jnp.any(zero), "divides integers by 0", np.int32(0)
