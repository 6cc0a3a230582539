"""Fake quantisation: floats rounded to the steps of integers with few bits.

A scale is the greatest absolute value of the quantised tensor, now or in recent steps; b bits have
2^(b - 1) - 1 steps on either side of zero. None of these ops has a gradient in 1.8.5; its passes
add one.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError
from .registry import Array, Ints, op
from .traits import elementwise, mixes

_TINY = 1e-30  # divisions by a scale add 1e-6 to it
_EPS = 1e-6
_HUGE = 1e37
# rounding of halves: attribute round_type of later Paddles; 1.8.5's vector code rounds to even
EVEN, AWAY = 0, 1


def steps(bits: int) -> int:
    """The number of steps of a signed integer of so many bits on either side of zero."""
    if not 2 <= bits <= 31:
        raise FluidValueError(f"the bits of a quantised number are from 2 to 31, not {bits}")
    return (1 << (bits - 1)) - 1


def greatest(x: Any) -> Any:
    """The greatest absolute value of a vector, [1], or of each row of a matrix, [rows]. nan counts
    only in first place.
    """
    size = jnp.abs(jnp.atleast_2d(x))
    return jnp.where(
        jnp.isnan(size[:, 0]), size[:, 0], jnp.max(jnp.where(jnp.isnan(size), 0, size), 1)
    )


def quantised(x: Any, scale: Any, bits: int, ties: int = EVEN) -> Any:
    """round(clip(x, -scale, scale) / scale * steps), halves by `ties` (EVEN, AWAY from zero); scale
    broadcasts.
    """
    one, count = np.asarray(1, x.dtype), np.asarray(steps(bits), x.dtype)
    inverse = jnp.where(scale <= _TINY, one / (scale + np.asarray(_EPS, x.dtype)), one / scale)
    # the inverse of a huge scale would be flushed to zero
    factor = jnp.where(scale < _HUGE, count * inverse, count / scale)
    return rounded(factor * jnp.clip(x, -scale, scale), ties)


def rounded(x: Any, ties: int) -> Any:
    """The nearest integer."""
    if ties not in (EVEN, AWAY):
        raise FluidValueError(
            f"round_type is {EVEN} (halves to the even number) or {AWAY} (away from zero), not"
            f" {ties}"
        )
    if ties == EVEN:
        return jnp.round(x)
    whole = jnp.trunc(x)
    return whole + jnp.where(jnp.abs(x - whole) >= 0.5, jnp.sign(x), 0).astype(x.dtype)


def restored(x: Any, scale: Any, bits: int, ties: int = EVEN) -> Any:
    """The nearest integer as a float of x's size."""
    return quantised(x, scale, bits, ties) * (scale / np.asarray(steps(bits), x.dtype))


def moved(x: Any, accum: Any, state: Any, rate: float) -> tuple[Any, Any, Any]:
    """The moving-average scale accum / state, with state = rate * state + 1 and accum = rate *
    accum + max |x|.
    """
    rate = np.asarray(rate, x.dtype)
    state, accum = rate * state + 1, rate * accum + greatest(x.reshape(-1))
    return accum / state, state, accum


@op(outs="Out OutScale", rows=mixes("X"))
def fake_quantize_abs_max(X: Array, *, bit_length: int = 8, round_type: int = EVEN):
    """Out = round(X / OutScale * (2^(bit_length - 1) - 1)), OutScale [1] = max |X|."""
    scale = greatest(X.reshape(-1))
    return quantised(X, scale.reshape(()), bit_length, round_type), scale


@op(outs="Out OutScale", rows=mixes())
def fake_channel_wise_quantize_abs_max(
    X: Array, *, bit_length: int = 8, round_type: int = EVEN, quant_axis: int = 0
):
    """Out = round(X / OutScale * (2^(bit_length - 1) - 1)), OutScale = max |X| for each index of
    axis quant_axis.
    """
    scale = greatest(jnp.moveaxis(X, quant_axis, 0).reshape(X.shape[quant_axis], -1))
    return quantised(X, _along(scale, quant_axis, X.ndim), bit_length, round_type), scale


def _along(scale: Any, axis: int, rank: int) -> Any:
    """A vector as an array of this rank along an axis."""
    return scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def _moving(
    X: Any, scale: Any, accum: Any, state: Any, rate: float, test: bool
) -> tuple[Any, Any, Any]:
    """The scale to use, and state and accum after it."""
    if test:
        return scale, state, accum
    if accum is None or state is None:
        raise ShapeError("a moving average takes InAccum and InState, unless is_test")
    return moved(X, accum, state, rate)


@op(
    outs="Out OutScale OutState? OutAccum?",
    rows=mixes("X"),
    inplace={"OutScale": "InScale", "OutState": "InState", "OutAccum": "InAccum"},
)
def fake_quantize_moving_average_abs_max(
    X: Array, InScale: Array, InAccum: Array | None, InState: Array | None, *,
    moving_rate: float = 0.9, bit_length: int = 8, is_test: bool = False, round_type: int = EVEN,
):  # fmt: skip
    """Out = round(X / OutScale * (2^(bit_length - 1) - 1)), OutScale = OutAccum / OutState.

    OutState = moving_rate * InState + 1, OutAccum = moving_rate * InAccum + max |X|; with is_test,
    InScale is used and the average does not change.
    """
    scale, state, accum = _moving(X, InScale, InAccum, InState, moving_rate, is_test)
    return quantised(X, scale.reshape(()), bit_length, round_type), scale, state, accum


@op(
    outs="Out OutScale OutState? OutAccum?",
    rows=mixes("X"),
    inplace={"OutScale": "InScale", "OutState": "InState", "OutAccum": "InAccum"},
)
def fake_quantize_dequantize_moving_average_abs_max(
    X: Array, InScale: Array, InAccum: Array | None, InState: Array | None, *,
    moving_rate: float = 0.9, bit_length: int = 8, is_test: bool = False, round_type: int = EVEN,
):  # fmt: skip
    """Out = the output of fake_quantize_moving_average_abs_max, times OutScale / (2^(bit_length -
    1) - 1).
    """
    scale, state, accum = _moving(X, InScale, InAccum, InState, moving_rate, is_test)
    return restored(X, scale.reshape(()), bit_length, round_type), scale, state, accum


@op(
    outs="Out OutScale OutState? OutAccum?",
    rows=mixes("X"),
    inplace={"OutState": "InState", "OutAccum": "InAccum"},
)
def moving_average_abs_max_scale(
    X: Array,
    InAccum: Array | None,
    InState: Array | None,
    *,
    moving_rate: float = 0.9,
    is_test: bool = False,
):
    """Out = X; OutScale = OutAccum / OutState as in fake_quantize_moving_average_abs_max. With
    is_test the average does not change.
    """
    if is_test:
        return X, jnp.zeros(1, X.dtype), InState, InAccum
    return X, *_moving(X, None, InAccum, InState, moving_rate, False)


@op(outs="Out", rows=elementwise("X"))
def fake_dequantize_max_abs(X: Array, Scale: Array, *, max_range: float):
    """Out = X * Scale / max_range; Scale [1]."""
    if Scale.size != 1:
        raise ShapeError(
            f"fake_dequantize_max_abs takes a Scale of one number, not {list(Scale.shape)}"
        )
    return X * Scale.reshape(()) / np.asarray(max_range, X.dtype)


@op(outs="Out", rows=mixes())
def fake_channel_wise_dequantize_max_abs(
    X: Array,
    Scales: list[Array],
    *,
    quant_bits: Ints = (8,),
    quant_axis: int = 0,
    x_num_col_dims: int = 1,
):
    """Out = X * Scales[0][i] / steps along axis quant_axis; or X * Scales[0][j] * Scales[1] /
    (steps * steps) along axis x_num_col_dims.

    steps: 2^(bits - 1) - 1 for each of quant_bits.
    """
    if len(Scales) not in (1, 2) or len(quant_bits) < len(Scales):
        raise ShapeError(
            "fake_channel_wise_dequantize_max_abs takes one or two Scales with quant_bits for"
            f" each, not {len(Scales)}"
        )
    axis = quant_axis if len(Scales) == 1 else x_num_col_dims
    if X.ndim <= axis or Scales[0].size != X.shape[axis] or any(s.size != 1 for s in Scales[1:]):
        raise ShapeError(
            "fake_channel_wise_dequantize_max_abs takes a number of Scales for each index of axis"
            f" {axis} of X, not {[list(s.shape) for s in Scales]} for {list(X.shape)}"
        )
    out, range_ = (
        X * _along(Scales[0], axis, X.ndim),
        np.prod([steps(b) for b in quant_bits[: len(Scales)]], dtype=np.int64),
    )
    for whole in Scales[1:]:
        out = out * whole.reshape(())
    return out / np.asarray(range_, X.dtype)


@op(outs="Out", rows=elementwise("X"))
def dequantize_abs_max(X: Array, Scale: Array, *, max_range: float):
    """Out (float32) = Scale * X / max_range; X int8, Scale [1]."""
    return Scale.reshape(()) * X.astype(np.float32) / np.float32(max_range)


@op(outs="Out", rows=elementwise("X"))
def dequantize_log(X: Array, Dict: Array):
    """Out (float32) = Dict[X], but -Dict[X + 128] where X < 0; X int8, Dict [128]."""
    if Dict.size != 128:
        raise ShapeError(f"dequantize_log takes a Dict of 128 numbers, not {list(Dict.shape)}")
    x = X.astype(np.int32)
    found = jnp.take(Dict.reshape(-1), jnp.where(x < 0, x + 128, x), mode="clip")
    return jnp.where(x < 0, -found, found)
