"""The generator behind jax.random, written out: Threefry with two words of 32 bits and 20 rounds
(Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).

Element i of a sample depends only on the key and i, so parts can be computed separately; and a
known key can be folded without a compiler. Both are bitwise equal to jax.random if :func:`in_use`
is true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .concrete import known

_NAME = "threefry2x32"
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF

Pair = tuple[Any, Any]


def in_use() -> bool:
    """Whether jax.random samples in this way: by its defaults, which a user may have changed."""
    return getattr(jax.config, "jax_default_prng_impl", _NAME) == _NAME and getattr(
        jax.config, "jax_threefry_partitionable", True
    )


def threefry(key: Pair, counter: Pair, word: Callable[[Any], Any] = lambda x: x) -> Pair:
    """Two words of random bits: arrays of uint32, or integers that `word` reduces to 32 bits."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    a, b = word(counter[0] + keys[0]), word(counter[1] + keys[1])
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            a = word(a + b)
            b = (word(b << r) | (b >> (32 - r))) ^ a
        a, b = word(a + keys[(group + 1) % 3]), word(b + keys[(group + 2) % 3] + (group + 1))
    return a, b


def bits(key: Any, at: Any, unsigned: np.dtype) -> Any:
    """Elements `at` (uint64 [n]) of jax.random.bits(key, ..., unsigned), uint32 or uint64; in NumPy
    or JAX, like `at`.

    key: its two words, uint32 [2].
    """
    a, b = threefry((key[0:1], key[1:2]), ((at >> 32).astype(np.uint32), at.astype(np.uint32)))
    return a ^ b if unsigned == np.uint32 else a.astype(np.uint64) << 32 | b.astype(np.uint64)


def split_words(key: jax.Array, count: int) -> Any:
    """jax.random.key_data(jax.random.split(key, count)), uint32 [count, 2].

    XLA compiles it here in a quarter of the time: on a CPU, JAX writes the rounds as loops.
    """
    if (
        in_use()
        and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        and str(jax.random.key_impl(key)) == _NAME
    ):
        return _pairs(jax.random.key_data(key), count)
    return jax.random.key_data(jax.random.split(key, count))


@partial(jax.jit, static_argnames="count")  # traced once for each size
def _pairs(key: Any, count: int) -> Any:
    at = lax.iota(np.uint32, count)
    return jnp.stack(threefry((key[0:1], key[1:2]), (jnp.zeros_like(at), at)), axis=1)


@dataclass(frozen=True)
class KnownKey:
    """A random key whose two words are known on the host."""

    words: tuple[int, int]

    @staticmethod
    def of(seed: int) -> KnownKey:
        """jax.random.key(seed)."""
        return KnownKey(((seed & _LONG) >> 32, seed & _WORD))

    def fold_in(self, data: int) -> KnownKey:
        """jax.random.fold_in(key, data)."""
        return KnownKey(threefry(self.words, (0, data & _WORD), lambda x: x & _WORD))

    @property
    def array(self) -> np.ndarray:
        """jax.random.key_data(key): uint32 [2]."""
        return np.array(self.words, np.uint32)


def known_key(key: Any) -> KnownKey | None:
    """The KnownKey of a jax.random key; None for a traced key, or one of another generator."""
    if key is None or (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and str(jax.random.key_impl(key)) != _NAME
    ):
        return None
    words = known(jax.random.key_data(key))
    return (
        None if words is None or words.shape != (2,) else KnownKey((int(words[0]), int(words[1])))
    )


def new_key(seed: int, like: Any) -> Any:
    """The key of a seed; a KnownKey if `like` is one."""
    return KnownKey.of(seed) if isinstance(like, KnownKey) else jax.random.key(seed)


def fold_in(key: Any, data: Any) -> Any:
    """The key folded with an integer, for either kind of key."""
    return key.fold_in(int(data)) if isinstance(key, KnownKey) else jax.random.fold_in(key, data)
