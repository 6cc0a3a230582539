"""Samples of one distribution: jax.random's within a trace, and bitwise equal numbers with a
KnownKey, without a compilation for each shape.

jax.random compiles a sampler for each shape, about 0.2 s on a CPU. Here all samples of a
distribution and dtype share one small function, which makes CHUNK elements from any offset on, so a
parameter needs no compilation. Only an array of more than HOST elements has a separate function,
which fills it in place, so that its memory is needed once and it is never on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import loops
from .threefry import KnownKey, bits

CHUNK = 8192  # elements per call of a distribution's shared function
WORTH = 2**21  # elements that NumPy samples in the time of compiling the generator
BLOCK = 2**18  # elements per block of an array that is sampled by a separate function
HOST = 2**22  # elements: larger arrays are made on their device
DTYPES = ("float32", "float64")  # dtypes that a KnownKey samples


def uniform(key: Any, shape: Sequence[int], dtype: Any, low: float, high: float) -> Any:
    """Independent samples of U[low, high)."""
    if isinstance(key, KnownKey):
        return _drawn(_uniform, key, shape, dtype, _range(low, high, np.dtype(dtype).type))
    return jax.random.uniform(key, shape, dtype, low, high)


def normal(key: Any, shape: Sequence[int], dtype: Any, mean: float, std: float) -> Any:
    """Independent samples of N(mean, std^2)."""
    if isinstance(key, KnownKey):
        if std == 1 and mean:
            return _drawn(_shifted_normal, key, shape, dtype, (mean, math.sqrt(2)))
        return _drawn(_normal, key, shape, dtype, (mean or -0.0, std))
    return jax.random.normal(key, shape, dtype) * std + mean


def truncated_normal(key: Any, shape: Sequence[int], dtype: Any, mean: float, std: float) -> Any:
    """Independent samples of N(mean, std^2), within two deviations."""
    if isinstance(key, KnownKey):
        return _drawn(_truncated_normal, key, shape, dtype, (mean or -0.0, std))
    return jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype) * std + mean


# -- with a KnownKey -------------------------------------------------------------------------------

# bits, parameters -> elements. The parameters are arguments here but constants in a step, where XLA
# removes operations without effect; they are chosen so that the same roundings remain. A mean of 0
# is -0.0, which also keeps the sign of a zero.
Distribution = Callable[[Any, Any], Any]


def _range(low: float, high: float, dtype: Any) -> tuple[Any, ...]:
    """The parameters of _uniform for U[low, high)."""
    low, scale = dtype(low), dtype(high) - dtype(low)
    return (
        (low, low - dtype(1), scale, -0.0) if scale == 1 and _adds_up() else (low, -1.0, scale, low)
    )


@cache
def _adds_up() -> bool:
    """Whether XLA merges two successive additions of constants, as some versions do."""
    one, low = np.float32(1), np.float32(-0.3)
    return bool(jax.jit(lambda x: (x - one) + low)(np.float32(1.5)) != np.float32(0.5) + low)


def _number(drawn: Any, dtype: Any) -> Any:
    """Bits as floats in [1, 2): the highest bits are the mantissa."""
    info, one = np.finfo(dtype), np.ones((), dtype).view(drawn.dtype)
    return lax.bitcast_convert_type((drawn >> (info.bits - info.nmant)) | one, dtype)


def _uniform(drawn: Any, given: Any) -> Any:
    low, shift, scale, offset = given
    return jnp.maximum(low, (_number(drawn, given.dtype) + shift) * scale + offset)


def _inverse(drawn: Any, low: Any, high: Any) -> Any:
    """erf^-1(U[low, high))."""
    one = np.asarray(1, low.dtype)
    return lax.erf_inv(jnp.maximum(low, (_number(drawn, low.dtype) - one) * (high - low) + low))


def _normal(drawn: Any, given: Any) -> Any:
    mean, std = given
    return np.asarray(math.sqrt(2), given.dtype) * _symmetric(drawn, given.dtype) * std + mean


def _shifted_normal(drawn: Any, given: Any) -> Any:
    """N(mean, 1), with one product, by sqrt(2)."""
    mean, root = given
    return _symmetric(drawn, given.dtype) * root + mean


def _symmetric(drawn: Any, dtype: Any) -> Any:
    """erf^-1(U(-1, 1))."""
    one = np.asarray(1, dtype)
    return _inverse(drawn, np.nextafter(-one, np.zeros_like(one)), one)


def _truncated_normal(drawn: Any, given: Any) -> Any:
    mean, std = given
    two, root = np.asarray(2, given.dtype), np.asarray(math.sqrt(2), given.dtype)
    edge = lax.erf(jnp.asarray(two / root))
    inside = np.nextafter(two, np.zeros_like(two))
    return jnp.clip(root * _inverse(drawn, -edge, edge), -inside, inside) * std + mean


def _drawn(
    law: Distribution, key: KnownKey, shape: Sequence[int], dtype: Any, given: Sequence[Any]
) -> Any:
    """An array of `shape`: NumPy's, or on the default device if it is large."""
    dtype, size = np.dtype(dtype), math.prod(shape)
    with jax.enable_x64(True):
        parameters = np.asarray(given, dtype)
        if size > HOST:
            return whole(law, tuple(shape), dtype)(key.array, parameters)
        # they run asynchronously
        parts = [shared(law)(drawn, parameters) for drawn in _bits(key, size, dtype)]
        out = np.empty(size, dtype)
        for i, part in enumerate(parts):
            out[i * CHUNK : (i + 1) * CHUNK] = np.asarray(part)[: size - i * CHUNK]
    return out.reshape(shape)


_made = 0  # elements that NumPy has sampled in this process


def _bits(key: KnownKey, size: int, dtype: np.dtype) -> Iterator[Any]:
    """The first `size` elements of a key's bits, CHUNK by CHUNK; by NumPy while that is faster than
    compiling.
    """
    global _made
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    fast = _made + size > WORTH
    _made += 0 if fast else size
    for start in range(0, size, CHUNK):
        if fast:
            yield generator(unsigned)(key.array, np.uint64(start))
        else:
            # all of them, because the shared functions have one size
            drawn = np.zeros(CHUNK, unsigned)
            drawn[: size - start] = bits(
                key.array, np.arange(start, min(start + CHUNK, size), dtype=np.uint64), unsigned
            )
            yield drawn


@cache
def generator(unsigned: np.dtype) -> Any:
    return jax.jit(lambda key, start: bits(key, start + lax.iota(np.uint64, CHUNK), unsigned))


@cache
def shared(law: Distribution) -> Any:
    return jax.jit(law)


@cache
def whole(law: Distribution, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The function that samples a large array, block after block in place; the last block may
    overlap the one before it.
    """
    size, unsigned = math.prod(shape), np.dtype(f"uint{8 * dtype.itemsize}")

    def draw(key: Any, given: Any) -> Any:
        def fill(i: Any, flat: Any) -> Any:
            start = jnp.minimum(i * BLOCK, size - BLOCK)
            drawn = bits(key, start.astype(np.uint64) + lax.iota(np.uint64, BLOCK), unsigned)
            return lax.dynamic_update_slice(flat, law(drawn, given), (start,))

        return loops.fori_loop(0, -(-size // BLOCK), fill, jnp.zeros(size, dtype)).reshape(shape)

    return jax.jit(draw)
