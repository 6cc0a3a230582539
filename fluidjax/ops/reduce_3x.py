"""Deviations and integrals that are separate ops in Paddle 3."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .registry import Array, Float64, Longs, grad_of, op
from .traits import mixes


def _axes(axis: Longs) -> tuple[int, ...] | None:
    return tuple(int(n) for n in axis) or None


@op(outs="out", rows=mixes())
def std(
    x: Array,
    *,
    axis: Longs = Longs([]),  # noqa: B008
    keepdim: bool = False,
    unbiased: bool = True,
    correction: Float64 = Float64(1.0),  # noqa: B008
):
    """out = sqrt(sum |x - mean|^2 / (n - correction)) over `axis` (empty: all), n the number of
    elements.
    """
    return jnp.std(x, _axes(axis), ddof=correction, keepdims=keepdim)


@grad_of("std", "x")
def std_grad(x: Array, d_out: Array, *, axis: Longs, keepdim: bool, correction: float) -> Any:
    """x@GRAD = out@GRAD * (x - mean) / ((n - correction) * out), 0 if all elements are equal, as in
    Paddle.
    """
    axes = _axes(axis)
    apart = x - x.mean(axes, keepdims=True)
    count = x.size // max(apart.mean(axes).size, 1) - correction
    out = jnp.sqrt((apart * apart).sum(axes, keepdims=True) / count)
    return d_out.reshape(out.shape) * jnp.where(out == 0, 0, apart / (count * out))


@op(outs="out", rows=mixes())
def gammaincc(x: Array, y: Array):
    """out = the integral of t^(x - 1) e^-t from y to infinity, divided by that from 0; x, y >= 0,
    of one shape.
    """
    return jax.scipy.special.gammaincc(x, y)


@grad_of("gammaincc", "x y", nograd="x")
def gammaincc_grad(x: Array, y: Array, d_out: Array) -> Any:
    """y@GRAD = -out@GRAD * y^(x - 1) e^-y / gamma(x), with y^0 = 1."""
    power = jnp.where(x == 1, 0, (x - 1) * jnp.log(y))
    return -d_out * jnp.exp(power - y - jax.scipy.special.gammaln(x))
