"""Random keys and samples from them. Keys are data: no op uses the step's own key."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..registry import Array, Sizes
from .declare import dtype as dtype_of
from .declare import lax_op, over_leading


@lax_op("random_seed")
def random_seed(Seeds: Array, *, impl: str):
    """Out = a key for each seed. impl: threefry2x32, rbg or unsafe_rbg."""
    return over_leading(lambda seed: jax.random.key(seed, impl=impl), Seeds, np.ndim(Seeds))


@lax_op("random_wrap")
def random_wrap(X: Array, *, impl: str):
    """Out = the keys whose words are X."""
    return jax.random.wrap_key_data(X, impl=impl)


@lax_op("random_unwrap")
def random_unwrap(Keys: Array):
    """Out = the words of the keys (uint32)."""
    return jax.random.key_data(Keys)


@lax_op("random_split")
def random_split(Keys: Array, *, shape: Sizes):
    """Out = this many new keys from each key."""
    return over_leading(lambda key: jax.random.split(key, tuple(shape)), Keys, np.ndim(Keys))


@lax_op("random_fold_in")
def random_fold_in(Keys: Array, Data: Array):
    """Out = a new key from each key and number."""
    if np.ndim(Keys) == np.ndim(Data) == 0:
        return jax.random.fold_in(Keys, Data)
    keys, data = jnp.broadcast_arrays(Keys, Data)
    return jax.vmap(jax.random.fold_in)(keys.ravel(), data.ravel()).reshape(keys.shape)


@lax_op("random_bits")
def random_bits(Keys: Array, *, bit_width: int, shape: Sizes):
    """Out = random unsigned integers of this many bits, with this shape for each key."""
    kind = np.dtype(f"uint{bit_width}")
    return over_leading(lambda key: jax.random.bits(key, tuple(shape), kind), Keys, np.ndim(Keys))


@lax_op("random_gamma", grad="Keys Alpha", nograd="Keys")
def random_gamma(Keys: Array, Alpha: Array, *, log_space: bool = False):
    """Out = samples of the gamma distribution with concentration Alpha, or their logarithms."""
    draw = jax.random.loggamma if log_space else jax.random.gamma
    return draw(Keys, Alpha, dtype=Alpha.dtype)


@lax_op("rng_bit_generator", outs="KeyOut Out")
def rng_bit_generator(Key: Array, *, shape: Sizes, dtype: str, algorithm: str = "RNG_DEFAULT"):
    """KeyOut, Out = the next state of XLA's generator, and random bits."""
    return lax.rng_bit_generator(Key, tuple(shape), dtype_of(dtype), lax.RandomAlgorithm[algorithm])


@lax_op("rng_uniform")
def rng_uniform(Low: Array, High: Array, *, shape: Sizes):
    """Out = uniform samples of XLA's own generator, which has no key: other numbers in every
    run.
    """
    return lax.rng_uniform(Low, High, tuple(shape))
