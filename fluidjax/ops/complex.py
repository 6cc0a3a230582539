"""Conversions between complex numbers and pairs of reals.

Gradients follow Paddle's convention: dL/dRe(z) + i dL/dIm(z) for a real loss L, the conjugate of
JAX's (derivative.py).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ..errors import FluidTypeError, ShapeError
from .registry import Array, op
from .traits import elementwise, mixes


@op("complex", outs="Out", grad="X Y", rows=mixes())
def complex_(X: Array, Y: Array):
    """Out = X + i Y, broadcast as in NumPy; complex64 from float32, complex128 from float64."""
    return lax.complex(*jnp.broadcast_arrays(X, Y))


@op(outs="Out", grad="X", rows=elementwise("X"))
def real(X: Array):
    """Out = the real part of X."""
    return jnp.real(X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def imag(X: Array):
    """Out = the imaginary part of X."""
    return jnp.imag(X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def conj(X: Array):
    """Out = the conjugate of X; a real X is unchanged."""
    return jnp.conj(X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def angle(X: Array):
    """Out = the angle of X in the complex plane, from -pi to pi; 0 or pi for a real X."""
    if jnp.issubdtype(X.dtype, jnp.complexfloating):
        return jnp.arctan2(X.imag, X.real)
    return jnp.where(
        X < 0, X.dtype.type(jnp.pi), jnp.where(jnp.isnan(X), lax.stop_gradient(X), X.dtype.type(0))
    )


@op(outs="Out", grad="X", rows=mixes("X"))
def as_complex(X: Array):
    """Out [...] = X[..., 0] + i X[..., 1], for X [..., 2]."""
    if not X.ndim or X.shape[-1] != 2:
        raise ShapeError(f"as_complex takes pairs, [..., 2], not {list(X.shape)}")
    return lax.complex(X[..., 0], X[..., 1])


@op(outs="Out", grad="X", rows=mixes("X"))
def as_real(X: Array):
    """Out [..., 2] = the real and the imaginary part of X [...]."""
    if not jnp.issubdtype(X.dtype, jnp.complexfloating):
        raise FluidTypeError(f"as_real takes complex numbers, not {X.dtype}")
    return jnp.stack([X.real, X.imag], -1)
