"""Deviations and integrals that Paddle 3 has as ops of their own."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .registry import Array, Float64, Longs, op
from .traits import mixes


def _axes(axis: Longs) -> tuple[int, ...] | None:
    return tuple(int(n) for n in axis) or None


@op(outs="out", grad="x", rows=mixes())
def std(x: Array, *, axis: Longs = Longs([]), keepdim: bool = False, unbiased: bool = True, correction: Float64 = Float64(1.0)):  # noqa: B008
    """out = sqrt(sum |x - mean|^2 / (n - correction)) over `axis` (none: all), n the number of elements."""
    return jnp.std(x, _axes(axis), ddof=correction, keepdims=keepdim)


@op(outs="out", grad="x y", nograd="x", rows=mixes())
def gammaincc(x: Array, y: Array):
    """out = the integral of t^(x - 1) e^-t from y to infinity, over that from 0; x, y from 0, of one shape."""
    return jax.scipy.special.gammaincc(x, y)
