"""Quantisation as exported by Paddle 2 and 3: quantize_linear before an op and dequantize_linear
after it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError
from .quantize import EVEN, greatest, moved, restored, rounded, steps
from .registry import Array, grad_of, op
from .traits import mixes


def _along(scale: Any, axis: int, rank: int) -> Any:
    """A scale for all as a scalar, one for each index of an axis as an array of this rank."""
    return (
        scale.reshape(())
        if axis < 0
        else scale.reshape([-1 if i == axis else 1 for i in range(rank)])
    )


_OUTS = "Y OutState? OutAccum? OutScale?"
_INPLACE = {"OutScale": "Scale", "OutState": "InState", "OutAccum": "InAccum"}


@op("quantize_linear", outs=_OUTS, rows=mixes("X"), inplace=_INPLACE)
def quantize_linear(
    X: Array, Scale: Array, ZeroPoint: Array, InAccum: Array | None, InState: Array | None, *, quant_axis: int = 0, bit_length: int = 8,
    qmin: int = -128, qmax: int = 127, round_type: int = EVEN, is_test: bool = True, only_observer: bool = False,
):  # fmt: skip
    """Y = round(X / scale * (2^(bit_length - 1) - 1)), or X with only_observer.

    scale: Scale with is_test; otherwise max |X| for each index of quant_axis, or if that is -1 a
    moving average of max |X|, which is OutScale = OutAccum / OutState with OutState = 0.9 * InState
    + 1 and OutAccum = 0.9 * InAccum + max |X|.
    """
    scale, state, accum = Scale, InState, InAccum
    if not is_test and quant_axis >= 0:
        scale = greatest(jnp.moveaxis(X, quant_axis, 0).reshape(X.shape[quant_axis], -1))
    elif not is_test:
        if InAccum is None or InState is None:
            raise FluidValueError("quantize_linear takes InAccum and InState, unless is_test")
        scale, state, accum = moved(X, InAccum, InState, 0.9)
    if only_observer:
        return X, state, accum, scale
    s, count = _along(scale, quant_axis, X.ndim), np.asarray(steps(bit_length), X.dtype)
    y = X * count / s if round_type == EVEN else jnp.clip(X, -s, s) * count / s
    return jnp.clip(rounded(y, round_type), -count - 1, count), state, accum, scale


@op("dequantize_linear", outs=_OUTS, rows=mixes("X"), inplace=_INPLACE)
def dequantize_linear(
    X: Array, Scale: Array, ZeroPoint: Array, InAccum: Array | None, InState: Array | None, *, quant_axis: int = 0, bit_length: int = 8,
    qmin: int = -128, qmax: int = 127, round_type: int = EVEN, is_test: bool = True, only_observer: bool = False,
):  # fmt: skip
    """Y = X * Scale / (2^(bit_length - 1) - 1), Scale for all (quant_axis -1) or one for each index
    of quant_axis; X with only_observer.
    """
    if only_observer:
        return X, InState, InAccum, Scale
    s = _along(Scale, quant_axis, X.ndim)
    return (
        X.astype(Scale.dtype) * s / np.asarray(steps(bit_length), Scale.dtype),
        InState,
        InAccum,
        Scale,
    )


@op(outs="Out OutScale", rows=mixes("X"))
def fake_quantize_dequantize_abs_max(X: Array, *, bit_length: int = 8, round_type: int = 1):
    """Out = X rounded to OutScale / (2^(bit_length - 1) - 1) * an integer, OutScale [1] = max |X|."""
    scale = greatest(X.reshape(-1))
    return restored(X, scale.reshape(()), bit_length, round_type), scale


@op(outs="Out OutScale", rows=mixes())
def fake_channel_wise_quantize_dequantize_abs_max(
    X: Array, *, bit_length: int = 8, round_type: int = 1, quant_axis: int = 0
):
    """Out = X rounded as in fake_quantize_dequantize_abs_max, with an OutScale = max |X| for each
    index of quant_axis.
    """
    scale = greatest(jnp.moveaxis(X, quant_axis, 0).reshape(X.shape[quant_axis], -1))
    return restored(X, _along(scale, quant_axis, X.ndim), bit_length, round_type), scale


def _straight(d_Out: Array):
    """X@GRAD = Out@GRAD."""
    return d_Out


grad_of("fake_quantize_dequantize_abs_max", "", grad_outs="Out")(_straight)
grad_of("fake_channel_wise_quantize_dequantize_abs_max", "", grad_outs="Out")(_straight)
