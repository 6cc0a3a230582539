"""xxHash of rows of integers, as arrays: the 64-bit form, and the 32-bit form of whole words.
Arithmetic wraps.

The bytes of a row are read as words of 8 or 4 bytes in little-endian order, as in the published
algorithm.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import loops

_P64 = tuple(
    map(
        np.uint64,
        (
            0x9E3779B185EBCA87,
            0xC2B2AE3D27D4EB4F,
            0x165667B19E3779F9,
            0x85EBCA77C2B2AE63,
            0x27D4EB2F165667C5,
        ),
    )
)
_P32 = tuple(map(np.uint32, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)))
_LANES = 4


def _rotated(x: Any, by: int) -> Any:
    """x, rotated left by `by` bits."""
    width = x.dtype.itemsize * 8
    return (x << x.dtype.type(by)) | (x >> x.dtype.type(width - by))


def _round64(lane: Any, word: Any) -> Any:
    return _rotated(lane + word * _P64[1], 31) * _P64[0]


def _round32(lane: Any, word: Any) -> Any:
    return _rotated(lane + word * _P32[1], 13) * _P32[0]


def _full(like: Any, value: int, dtype: Any) -> Any:
    return jnp.full(like.shape[:-1], value & (2 ** (8 * np.dtype(dtype).itemsize) - 1), dtype)


def xxh64(words: Any, seed: int) -> Any:
    """uint64 [...] of uint32 words [..., n]: the hash of 4 n bytes. seed: any integer,
    modulo 2^64.
    """
    count = words.shape[-1]
    pairs = words[..., : count // 2 * 2].reshape(*words.shape[:-1], count // 2, 2).astype(np.uint64)
    longs = pairs[..., 0] | (pairs[..., 1] << np.uint64(32))
    stripes = longs.shape[-1] // _LANES
    if stripes:
        begin = (seed + int(_P64[0]) + int(_P64[1]), seed + int(_P64[1]), seed, seed - int(_P64[0]))
        lanes = jnp.stack([_full(words, v, np.uint64) for v in begin], -1)
        parts = jnp.moveaxis(
            longs[..., : stripes * _LANES].reshape(*words.shape[:-1], stripes, _LANES), -2, 0
        )
        lanes, _ = loops.scan(lambda lane, word: (_round64(lane, word), None), lanes, parts)
        total = sum(_rotated(lanes[..., i], by) for i, by in enumerate((1, 7, 12, 18)))
        for i in range(_LANES):
            total = (total ^ _round64(jnp.zeros_like(total), lanes[..., i])) * _P64[0] + _P64[3]
    else:
        total = _full(words, seed + int(_P64[4]), np.uint64)
    total = total + np.uint64(4 * count)
    for i in range(stripes * _LANES, longs.shape[-1]):
        total = (
            _rotated(total ^ _round64(jnp.zeros_like(total), longs[..., i]), 27) * _P64[0] + _P64[3]
        )
    if count % 2:
        total = (
            _rotated(total ^ (words[..., -1].astype(np.uint64) * _P64[0]), 23) * _P64[1] + _P64[2]
        )
    total = (total ^ (total >> np.uint64(33))) * _P64[1]
    total = (total ^ (total >> np.uint64(29))) * _P64[2]
    return total ^ (total >> np.uint64(32))


def xxh32(words: Any, seed: int) -> Any:
    """uint32 [...] of uint32 words [..., n]: the hash of 4 n bytes. seed: any integer,
    modulo 2^32.
    """
    count = words.shape[-1]
    stripes = count // _LANES
    if stripes:
        begin = (seed + int(_P32[0]) + int(_P32[1]), seed + int(_P32[1]), seed, seed - int(_P32[0]))
        lanes = jnp.stack([_full(words, v, np.uint32) for v in begin], -1)
        parts = jnp.moveaxis(
            words[..., : stripes * _LANES].reshape(*words.shape[:-1], stripes, _LANES), -2, 0
        )
        lanes, _ = loops.scan(lambda lane, word: (_round32(lane, word), None), lanes, parts)
        total = sum(_rotated(lanes[..., i], by) for i, by in enumerate((1, 7, 12, 18)))
    else:
        total = _full(words, seed + int(_P32[4]), np.uint32)
    total = total + np.uint32(4 * count)
    for i in range(stripes * _LANES, count):
        total = _rotated(total + words[..., i] * _P32[2], 17) * _P32[3]
    total = (total ^ (total >> np.uint32(15))) * _P32[1]
    total = (total ^ (total >> np.uint32(13))) * _P32[2]
    return total ^ (total >> np.uint32(16))


def words_of(x: Any) -> Any:
    """Rows [..., n] of int32, int64 or float32 as their uint32 words in memory, [..., n or 2 n]."""
    words = lax.bitcast_convert_type(x, np.uint32)
    return words if x.dtype.itemsize == 4 else words.reshape(*x.shape[:-1], 2 * x.shape[-1])
