"""Random tensors and dropout.

The caller makes `key` from the program's seed, the step, the op's uid and the op's own seed
attribute (`seed`, `startup_seed`, `fix_seed`), so the functions ignore those.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from . import sampling
from .concrete import new_shape, shape_spec
from .fill import batch_shape
from .infer import Spec
from .ragged import Ragged
from .registry import Array, Ints, Longs, grad_of, op
from .threefry import split_words
from .traits import Eager, knows_rows, mixes, row_wise, sizes_from

_SIZES = sizes_from("ShapeTensor ShapeTensorList")


def _random_spec(
    ShapeTensor: Any, ShapeTensorList: Any, *, shape: Longs, dtype: int, **attrs: Any
) -> Spec:
    if "max" in attrs and attrs["min"] >= attrs["max"]:
        raise ShapeError(
            f"op 'uniform_random' takes a min below max, not {attrs['min']} and {attrs['max']}"
        )
    return Spec(shape_spec(shape, ShapeTensor, ShapeTensorList), name_of(dtype))


def _normal(key: jax.Array, shape: tuple[int, ...], mean: float, std: float, dtype: int) -> Array:
    return sampling.normal(key, shape, numpy_dtype(name_of(dtype)), mean, std)


def _uniform(
    key: jax.Array, shape: tuple[int, ...], low: float, high: float, dtype: int,
    diag_num: int, diag_step: int, diag_val: float,
) -> Array:  # fmt: skip
    drawn = sampling.uniform(key, shape, numpy_dtype(name_of(dtype)), low, high)
    if diag_num <= 0:
        return drawn
    stride = diag_step + 1
    if math.prod(shape) <= (diag_num - 1) * stride:
        raise ShapeError(
            f"uniform_random: {diag_num} diagonal elements {stride} apart do not fit in"
            f" {list(shape)}"
        )
    at = np.arange(diag_num) * stride
    if isinstance(drawn, np.ndarray):
        drawn.reshape(-1)[at] = diag_val
        return drawn
    return drawn.reshape(-1).at[at].set(diag_val).reshape(shape)


# Samples of these dtypes are equal outside of a compiled step (ops/sampling.py).
_EAGER = Eager(when=lambda attrs: name_of(attrs["dtype"]) in sampling.DTYPES)


@op(outs="Out", infer=_random_spec, rows=mixes(), fills=True, eager=_EAGER, sizes=_SIZES)
def gaussian_random(
    ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, *,
    shape: Longs = (), mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: int = 5, key: jax.Array,
):  # fmt: skip
    """Out[...] ~ N(mean, std^2), independent; tensors override `shape`."""
    dims = new_shape("gaussian_random", ShapeTensor, ShapeTensorList, shape)
    return _normal(key, dims, mean, std, dtype)


@op(outs="Out", infer=_random_spec, rows=mixes(), fills=True, eager=_EAGER, sizes=_SIZES)
def uniform_random(
    ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, *,
    shape: Longs = (), min: float = -1.0, max: float = 1.0, seed: int = 0,
    diag_num: int = 0, diag_step: int = 0, diag_val: float = 1.0, dtype: int = 5, key: jax.Array,
):  # fmt: skip
    """Out[...] ~ U[min, max), independent, with diag_val at diag_num elements, every (diag_step +
    1)-th.
    """
    dims = new_shape("uniform_random", ShapeTensor, ShapeTensorList, shape)
    return _uniform(key, dims, min, max, dtype, diag_num, diag_step, diag_val)


@op(outs="Out", fills=True, eager=_EAGER)
def truncated_gaussian_random(
    *, shape: Ints, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: int = 5, a: float = -2.0, b: float = 2.0,
    key: jax.Array,
):  # fmt: skip
    """Out[...] ~ N(mean, std^2), truncated to [mean + a * std, mean + b * std] (-2 and 2 before
    Paddle 3).
    """
    kind = numpy_dtype(name_of(dtype))
    if (a, b) == (-2.0, 2.0):
        return sampling.truncated_normal(key, shape, kind, mean, std)
    return jax.random.truncated_normal(key, a, b, shape, kind) * std + mean


@op(outs="Out", rows=knows_rows(), shape_of=("Input",))
def gaussian_random_batch_size_like(
    Input: Array | Ragged, *, shape: Ints, input_dim_idx: int = 0, output_dim_idx: int = 0,
    mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: int = 5, key: jax.Array,
):  # fmt: skip
    """Out[...] ~ N(mean, std^2), of `shape` but with Input's dim input_dim_idx as dim
    output_dim_idx.
    """
    dims = batch_shape(
        "gaussian_random_batch_size_like", Input, shape, input_dim_idx, output_dim_idx
    )
    return _normal(key, dims, mean, std, dtype)


@op(outs="Out", rows=knows_rows(), shape_of=("Input",))
def uniform_random_batch_size_like(
    Input: Array | Ragged, *, shape: Ints, input_dim_idx: int = 0, output_dim_idx: int = 0,
    min: float = -1.0, max: float = 1.0, seed: int = 0, diag_num: int = 0, diag_step: int = 0, diag_val: float = 1.0,
    dtype: int = 5, key: jax.Array,
):  # fmt: skip
    """Out[...] ~ U[min, max), of `shape` but with Input's dim input_dim_idx as dim
    output_dim_idx.
    """
    dims = batch_shape(
        "uniform_random_batch_size_like", Input, shape, input_dim_idx, output_dim_idx
    )
    return _uniform(key, dims, min, max, dtype, diag_num, diag_step, diag_val)


@op(outs="Out", infer=_random_spec, rows=mixes(), sizes=_SIZES)
def randint(
    ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, *,
    shape: Longs = (), low: int, high: int, seed: int = 0, dtype: int = 3, key: jax.Array,
):  # fmt: skip
    """Out[...] ~ the integers in [low, high), independent; tensors override `shape`."""
    dims = new_shape("randint", ShapeTensor, ShapeTensorList, shape)
    return jax.random.randint(key, dims, low, high, np.int32).astype(numpy_dtype(name_of(dtype)))


@op(outs="Out")
def randperm(*, n: int, seed: int = 0, dtype: int = 3, key: jax.Array):
    """Out = 0, 1, ..., n - 1 in random order."""
    return jax.random.permutation(key, n).astype(numpy_dtype(name_of(dtype)))


def keep_mask(key: jax.Array, shape: tuple[int, ...], drop: float) -> Array:
    """True with probability 1 - drop, independent; never for drop 1, always for drop 0.

    Random bits dominate the cost of a dropout. One 64-bit sample serves four elements, or two if 16
    bits are too coarse for `drop` (their error is at most 2^-17). The samples are the data of split
    keys, because jax.random.bits of uint64 cannot be lowered by a caller's jit without x64, and of
    uint32 discards half of the generator's bits.
    """
    if drop <= 0.0 or drop >= 1.0:
        return jnp.full(shape, drop <= 0.0)
    width = 16 if 2**-6 <= drop <= 1 - 2**-6 else 32
    unit = jnp.uint16 if width == 16 else jnp.uint32
    total = math.prod(shape)
    drawn = split_words(key, -(-total * width // 64))  # uint32 [n, 2]
    # exported for any batch: XLA cannot split words of an array with a symbolic size
    if width == 16 and not isinstance(total, int):
        bits = jnp.stack([drawn & 0xFFFF, drawn >> 16], -1).astype(unit)
    else:
        bits = lax.bitcast_convert_type(drawn, unit)
    bits = bits.reshape(-1)[:total].reshape(shape)
    threshold = min(round(drop * 2**width), 2**width - 1)
    return bits >= np.asarray(threshold, unit)


@op(outs="Out Mask~", rows=row_wise("X"))
def dropout(
    X: Array, Seed: Array | None, *, dropout_prob: float = 0.5, is_test: bool = False, fix_seed: bool = False,
    seed: int = 0, dropout_implementation: str = "downgrade_in_infer", key: jax.Array,
):  # fmt: skip
    """Out = X Mask, Mask (uint8) 0 with probability dropout_prob.

    upscale_in_train divides the kept elements by 1 - dropout_prob and gives X in a test;
    downgrade_in_infer leaves them unchanged and gives X (1 - dropout_prob) in a test, where Mask is
    all 1. The caller makes the key from Seed.
    """
    upscale = dropout_implementation == "upscale_in_train"
    if is_test:
        out = X if upscale else X * np.asarray(1.0 - dropout_prob, X.dtype)
        return out, jnp.ones(X.shape, np.uint8)
    keep = keep_mask(key, X.shape, dropout_prob)
    kept = _scaled(X, dropout_prob) if upscale else X
    return jnp.where(keep, kept, np.zeros((), X.dtype)), keep.astype(np.uint8)


def _scaled(X: Array, drop: float) -> Array:
    """X / (1 - drop); if everything is dropped, any finite value will do."""
    return X / np.asarray(1.0 - drop, X.dtype) if drop < 1.0 else X


@grad_of("dropout", "Mask", nograd="Seed", grad_outs="Out")
def dropout_grad(Mask: Array, d_Out: Array, *, dropout_prob: float, dropout_implementation: str):
    """d_X = d_Out Mask, divided by 1 - dropout_prob for upscale_in_train."""
    kept = _scaled(d_Out, dropout_prob) if dropout_implementation == "upscale_in_train" else d_Out
    return jnp.where(Mask != 0, kept, np.zeros((), d_Out.dtype))


@op(outs="Out", rows=mixes("X"))
def sampling_id(X: Array, *, min: float = 0.0, max: float = 1.0, seed: int = 0, key: jax.Array):
    """Out[i] (int64) = the first column where X[i]'s running sum exceeds a sample from U[min, max),
    at most the last.
    """
    if X.ndim != 2:
        raise ShapeError(f"sampling_id takes probabilities [N, columns], not {list(X.shape)}")
    drawn = jax.random.uniform(key, (X.shape[0], 1), X.dtype, min, max)
    passed = jnp.sum(jnp.cumsum(X, axis=1) <= drawn, axis=1, dtype=np.int64)
    return jnp.minimum(passed, X.shape[1] - 1)


@op("seed", outs="Out")
def seed_(*, seed: int = 0, key: jax.Array):
    """Out [1] (int32) = seed, or a random number if that is 0."""
    if seed:
        return np.array([seed], np.int32)
    return jax.random.randint(key, (1,), 1, 2**31 - 1, np.int32)


@op(outs="Out SeedOut~", rows=mixes())
def random_crop(X: Array, Seed: Array, *, shape: Ints, startup_seed: int = 0, key: jax.Array):
    """Out = a box of `shape` from the last dims of X, at a random position for each index of the
    first dims.
    """
    rank = len(shape)
    lead, dims = X.shape[: X.ndim - rank], X.shape[X.ndim - rank :]
    room = np.array([n - m for n, m in zip(dims, shape, strict=True)], np.int32)
    if (room < 0).any():
        raise ShapeError(
            f"random_crop: a box of shape {list(shape)} does not fit in {list(X.shape)}"
        )
    boxes = X.reshape(-1, *dims)
    start = jax.random.randint(key, (boxes.shape[0], rank), 0, room + 1, np.int32)
    out = jax.vmap(lambda box, at: lax.dynamic_slice(box, at, shape))(boxes, start)
    return out.reshape(*lead, *shape), Seed
