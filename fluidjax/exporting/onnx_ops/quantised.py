"""Quantisation: the rounding of fake ops becomes QuantizeLinear and DequantizeLinear, and weights
of whole numbers become int8.
"""

from __future__ import annotations

import numpy as np

from ...ops.quantize import AWAY
from ..graph import Graph, Value
from ..rules import Op, rule
from ..values import Lacking


def _steps(bits: int) -> float:
    return float(2 ** (bits - 1) - 1)


def _limits(g: Graph, op: Op, x: Value) -> Value:
    """The largest value that is not clipped, a scalar."""
    if int(op.attr("bit_length") or 8) != 8:
        raise Lacking(f"it has {op.attr('bit_length')} bits", "quantise to 8")
    if op.has("InScale") or op.has("Scale"):
        if not op.attr("is_test"):
            raise Lacking("its scale moves with what comes by", "export what predicts")
        return g.reshape(op["InScale"] if op.has("InScale") else op["Scale"], [])
    return g.reduce("Max", g.like("Abs", x), None, False)


def _quantised(g: Graph, op: Op, x: Value, limit: Value) -> tuple[Value, Value]:
    """int8, and the size of a step. The smallest value is the negative of the largest."""
    none = g.binary("LessOrEqual", limit, g.number(1e-30, limit), "bool")  # zeros alone
    step = g.over(g.where(none, g.plus(limit, 1e-6), limit), 127.0)
    low = g.like("Neg", limit)
    cut = g.binary("Max", g.binary("Min", x, limit), low)
    zero = g.zero_point()
    if op.attr("round_type") == AWAY:  # ONNX itself rounds halves to even
        size = g.like("Abs", g.over(cut, step))
        whole = g.like("Floor", size)
        up = g.binary("GreaterOrEqual", g.minus(size, whole), g.number(0.5, x), "bool")
        rounded = g.times(g.plus(whole, g.cast(up, x.dtype)), g.like("Sign", cut))
        return g.add(
            "QuantizeLinear", rounded, g.number(1, x), zero, dtype="int8", shape=x.shape
        ), step
    return g.add("QuantizeLinear", cut, step, zero, dtype="int8", shape=x.shape), step


def _restored(g: Graph, x: Value, step: Value, like: Value) -> Value:
    zero = g.zero_point()
    made = g.add("DequantizeLinear", x, step, zero, dtype=like.dtype, shape=x.shape)
    return made.ragged(like.lengths)


@rule(
    "fake_quantize_abs_max", "fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max"
)
def quantise(g: Graph, op: Op) -> dict[str, Value]:
    """Whole numbers as floats; the op behind it restores their scale."""
    x = op["X"]
    limit = _limits(g, op, x)
    whole, _ = _quantised(g, op, x, limit)
    return {"Out": _restored(g, whole, g.number(1, x), x), "OutScale": g.reshape(limit, [1])}


@rule("fake_quantize_dequantize_abs_max", "fake_quantize_dequantize_moving_average_abs_max")
def quantise_and_restore(g: Graph, op: Op) -> dict[str, Value]:
    x = op["X"]
    limit = _limits(g, op, x)
    return {"Out": _restored(g, *_quantised(g, op, x, limit), x), "OutScale": g.reshape(limit, [1])}


@rule("moving_average_abs_max_scale")
def observed(g: Graph, op: Op) -> dict[str, Value]:
    return {"Out": op["X"]}


@rule("fake_dequantize_max_abs", "dequantize_abs_max")
def restore(g: Graph, op: Op) -> Value:
    x, scale = op["X"], g.reshape(op["Scale"], [])
    floats = g.cast(x, scale.dtype)
    return g.over(g.times(floats, scale), float(op.attr("max_range"))).ragged(x.lengths)


@rule("fake_channel_wise_dequantize_max_abs")
def restore_channels(g: Graph, op: Op) -> Value:
    x, scales, bits = op["X"], op.all("Scales"), list(op.attr("quant_bits"))
    axis = int(op.attr("quant_axis") or 0 if len(scales) == 1 else op.attr("x_num_col_dims") or 1)
    shape = [-1 if a == axis else 1 for a in range(x.rank)]
    made = g.times(x, g.reshape(scales[0], shape))
    for whole in scales[1:]:
        made = g.times(made, g.reshape(whole, []))
    return g.over(made, float(np.prod([_steps(b) for b in bits[: len(scales)]])))


@rule("quantize_linear")
def quantize_linear(g: Graph, op: Op) -> dict[str, Value]:
    x = op["X"]
    if op.attr("only_observer"):
        return {"Y": x}
    if int(op.attr("quant_axis")) >= 0:
        raise Lacking("each channel of what flows has a scale of its own")
    whole, _ = _quantised(g, op, x, _limits(g, op, x))
    return {"Y": _restored(g, whole, g.number(1, x), x)}


@rule("dequantize_linear")
def dequantize_linear(g: Graph, op: Op) -> dict[str, Value]:
    x, scale, axis = op["X"], op["Scale"], int(op.attr("quant_axis"))
    if op.attr("only_observer"):
        return {"Y": x}
    x = g.whole(x, scale.dtype)
    spread = [] if axis < 0 else [-1 if a == axis else 1 for a in range(x.rank)]
    scaled = g.times(x, g.reshape(scale, spread))
    return {"Y": g.over(scaled, _steps(int(op.attr("bit_length") or 8)))}
