"""Fourier transforms, and the frames of signals for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import FluidValueError, ShapeError
from .registry import Array, Int64, Longs, op
from .traits import mixes


def _factor(kind: str, normalization: str, forward: bool, sizes: Sequence[int]) -> float:
    """The factor of the plain sum over exp(-+ 2 pi i j k / n)."""
    count = float(np.prod(sizes))
    if normalization not in ("backward", "ortho", "forward"):
        raise FluidValueError(
            f"{kind}: normalization is 'backward', 'ortho' or 'forward', not {normalization!r}"
        )
    if normalization == "ortho":
        return count**-0.5
    return 1 / count if (normalization == "forward") == forward else 1.0


def _scaled(x: Any, factor: float) -> Any:
    if factor == 1:
        return x
    by = np.asarray(factor, x.real.dtype)
    if not jnp.iscomplexobj(x):
        return x * by
    # a complex factor would have a part 0, which turns an infinity into nan
    return lax.complex(x.real * by, x.imag * by)


@op(outs="Out", grad="X", rows=mixes())
def fft_c2c(X: Array, *, axes: Longs, normalization: str, forward: bool):
    """Out = the discrete Fourier transform of complex X along `axes`; the inverse sign unless
    `forward`.

    normalization: the direction that divides by the number of points (backward, forward), or each
    by its square root (ortho).
    """
    sizes = [X.shape[a] for a in axes]
    factor = _factor("fft_c2c", normalization, forward, sizes)
    if forward:
        return _scaled(jnp.fft.fftn(X, axes=tuple(axes)), factor)
    return _scaled(jnp.fft.ifftn(X, axes=tuple(axes)), factor * float(np.prod(sizes)))


@op(outs="Out", grad="X", rows=mixes())
def fft_r2c(X: Array, *, axes: Longs, normalization: str, forward: bool, onesided: bool):
    """Out = the transform of real X along `axes`; with `onesided`, only the first n // 2 + 1 points
    of the last of these axes.
    """
    factor = _factor("fft_r2c", normalization, forward, [X.shape[a] for a in axes])
    if not onesided:
        whole = jnp.fft.fftn(X, axes=tuple(axes))
    else:
        whole = jnp.fft.rfftn(X, axes=tuple(axes))
    return _scaled(whole if forward else jnp.conj(whole), factor)


@op(outs="Out", grad="X", rows=mixes())
def fft_c2r(X: Array, *, axes: Longs, normalization: str, forward: bool, last_dim_size: Int64 = 0):
    """Out = the real transform of half a spectrum X; the last of `axes` gets the size last_dim_size
    (0: 2 (n - 1)).
    """
    last = last_dim_size if last_dim_size > 0 else 2 * (X.shape[axes[-1]] - 1)
    sizes = [*(X.shape[a] for a in axes[:-1]), last]
    factor = _factor("fft_c2r", normalization, forward, sizes) * float(np.prod(sizes))
    return _scaled(jnp.fft.irfftn(jnp.conj(X) if forward else X, sizes, axes=tuple(axes)), factor)


@op(outs="Out", grad="X", rows=mixes())
def frame(X: Array, *, frame_length: int, hop_length: int, axis: int = -1):
    """Out [..., frame_length, n] = frames of X along the last axis, one every hop_length; with axis
    0, Out [n, frame_length, ...].
    """
    if axis not in (0, -1) or frame_length < 1 or hop_length < 1 or X.shape[axis] < frame_length:
        raise ShapeError(
            f"frame takes pieces of 1 to {X.shape[axis]} along axis 0 or -1, not {frame_length}"
            f" every {hop_length} along {axis}"
        )
    count = 1 + (X.shape[axis] - frame_length) // hop_length
    at = np.arange(count)[:, None] * hop_length + np.arange(frame_length)
    return X[at] if axis == 0 else X[..., at.T]


@op(outs="Out", grad="X", rows=mixes())
def overlap_add(X: Array, *, hop_length: int, axis: int = -1):
    """Out = the frames of X [..., frame_length, n] added up, each shifted by hop_length.

    With axis 0, X is [n, frame_length, ...].
    """
    if axis not in (0, -1) or X.ndim < 2 or hop_length < 1:
        raise ShapeError(
            f"overlap_add takes frames along two axes, the first or the last, not {list(X.shape)}"
            f" along {axis}"
        )
    length, count = (X.shape[1], X.shape[0]) if axis == 0 else X.shape[-2:]
    at = np.arange(count)[:, None] * hop_length + np.arange(length)
    size = (count - 1) * hop_length + length
    if axis == 0:
        return jnp.zeros((size, *X.shape[2:]), X.dtype).at[at].add(X)
    return jnp.zeros((*X.shape[:-2], size), X.dtype).at[..., at.T].add(X)
