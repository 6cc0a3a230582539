"""WeightQuantization: a saved model with integer weights, for engines that support them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ....devices.place import CPUPlace
from ....errors import FluidValueError
from ....executor import Executor
from ....graph.operator import Operator
from ....graph.program import Program
from ....ops.quantize import steps
from ....saved.model import load_inference_model, save_inference_model
from ....state.scope import Scope, global_scope, scope_guard
from .held import read, write
from .tables import CONVOLUTIONS, checked_choice, checked_types

_BINS = 5000
_DTYPES = {8: np.dtype("int8"), 16: np.dtype("int16")}


class WeightQuantization:
    """Quantises only the weights of a model from save_inference_model.

    model_dir, model_filename, params_filename: as in load_inference_model. The values of the scope
    do not change (1.8.5 loads the model into the global one).
    """

    _supported_quantizable_op_type: ClassVar = ["conv2d", "depthwise_conv2d", "mul"]
    _supported_weight_quantize_type: ClassVar = ["channel_wise_abs_max", "abs_max"]

    def __init__(
        self, model_dir: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        self._model = (model_dir, model_filename, params_filename)

    def quantize_weight_to_int(
        self,
        save_model_dir: str,
        save_model_filename: str | None = None,
        save_params_filename: str | None = None,
        quantizable_op_type: Sequence[str] = ["conv2d", "mul"],
        weight_bits: int = 8,
        weight_quantize_type: str = "channel_wise_abs_max",
        generate_test_model: bool = False,
        threshold_rate: float = 0.0,
    ) -> None:
        """Save the model with int8 (weight_bits 16: int16) weights under
        ``save_model_dir/quantized_model``.

        Scales are in the ops' attributes ``<weight>_quant_scale``: value = integer * scale.
        "channel_wise_abs_max": one for each filter of a convolution and each column of a mul;
        "abs_max": one in all, with the greatest magnitudes, a fraction threshold_rate of all,
        clipped. Such files are for engines that restore the weights (Paddle Lite);
        load_inference_model restores them too, but Paddle does not. generate_test_model: also
        ``save_model_dir/test_model``, with the same weights restored, which runs anywhere. A weight
        that is all zero stays zero (1.8.5 divides by zero), and one that several ops read is
        quantised once (1.8.5 quantises the integers again).

        Raises FluidValueError for a type of op without such weights, for other bits and other types
        of quantisation, and the errors of load_inference_model.
        """
        kinds = checked_types(quantizable_op_type, self._supported_quantizable_op_type)
        checked_choice("weight_bits", weight_bits, _DTYPES)
        how = checked_choice(
            "weight_quantize_type", weight_quantize_type, self._supported_weight_quantize_type
        )
        if not 0 <= threshold_rate < 1:
            raise FluidValueError(
                "threshold_rate is the part of the weights that is cut, from 0 to below 1, not"
                f" {threshold_rate!r}"
            )
        for folder, restored in [("quantized_model", False), ("test_model", True)][
            : 1 + bool(generate_test_model)
        ]:
            with scope_guard(Scope()):
                exe = Executor(CPUPlace())
                program, feeds, fetches = load_inference_model(
                    self._model[0], exe, *self._model[1:]
                )
                _quantise(program, kinds, weight_bits, how, threshold_rate, restored)
                save_inference_model(
                    os.path.join(save_model_dir, folder),
                    feeds,
                    fetches,
                    exe,
                    program,
                    save_model_filename,
                    save_params_filename,
                )


def _quantise(
    program: Program, kinds: Sequence[str], bits: int, how: str, rate: float, restored: bool
) -> None:
    """Quantise the weights in the scope, and record it in the ops' attributes."""
    weights = {v.name for v in program.list_vars() if v.persistable}
    count, scope = steps(bits), global_scope()
    scales: dict[str, np.ndarray] = {}  # for a weight that several ops read, those of the first
    ops = [op for block in program.blocks for op in block.ops if op.type in kinds]
    for op in ops:
        for name in op.input_arg_names:
            if name not in weights:
                continue
            if name not in scales:
                weight = read(scope, name)
                scales[name] = scale = _scales(op, weight, how, count, rate)
                by = (
                    scale.reshape(_spread(op, weight.ndim))
                    if how == "channel_wise_abs_max"
                    else scale
                )
                weight = (
                    np.clip(weight, -by * count, by * count).astype(weight.dtype)
                    if rate
                    else weight
                )
                whole = np.around(weight / np.where(by == 0, 1.0, by).astype(weight.dtype)).astype(
                    _DTYPES[bits]
                )
                write(
                    scope, CPUPlace(), name, (whole * by).astype("float32") if restored else whole
                )
            op._set_attr("quantization_type", f"post_weight_{how}")
            op._set_attr("quantize_weight_bits", bits)
            op._set_attr(f"{name}_quant_scale", scales[name].reshape(-1).tolist())


def _spread(op: Operator, rank: int) -> tuple[int, ...]:
    """The shape in which scales of channels broadcast over a weight: the filters of a convolution,
    the columns of a mul.
    """
    return (-1,) + (1,) * (rank - 1) if op.type in CONVOLUTIONS else (1,) * (rank - 1) + (-1,)


def _scales(op: Operator, weight: np.ndarray, how: str, count: int, rate: float) -> np.ndarray:
    """Greatest magnitudes over the greatest integer, in float64: per channel, or over all."""
    if how == "channel_wise_abs_max":
        channel = 0 if op.type in CONVOLUTIONS else weight.ndim - 1
        others = tuple(d for d in range(weight.ndim) if d != channel)
        return np.abs(weight).max(axis=others).astype(np.float64) / count
    return np.asarray((float(np.abs(weight).max()) if rate < 1e-10 else _cut(weight, rate)) / count)


def _cut(weight: np.ndarray, rate: float) -> float:
    """The magnitude that only a fraction `rate` of the weights exceed, by a histogram."""
    counts, edges = np.histogram(np.abs(weight), bins=_BINS, range=(0, np.abs(weight).max()))
    enough = np.flatnonzero(np.cumsum(counts / float(counts.sum())) >= 1.0 - rate)
    return int(enough[0] + 1 if len(enough) else 0) * float(edges[1] - edges[0])
