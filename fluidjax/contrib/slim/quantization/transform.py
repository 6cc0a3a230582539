"""QuantizationTransformPass: ops that have weights read their inputs quantised and restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ....graph.ir_graph import IrGraph
from ....graph.ir_nodes import IrOpNode, IrVarNode
from .function import Functions
from .insert import Inserter
from .tables import (
    CONVOLUTIONS,
    WITH_WEIGHT,
    WITH_WEIGHTS,
    WITHOUT_WEIGHT,
    all_data,
    checked_choice,
    checked_graph,
    checked_types,
    noted,
    skipped,
)

ACTIVATIONS = ("abs_max", "range_abs_max", "moving_average_abs_max")
WEIGHTS = ("abs_max", "channel_wise_abs_max", "range_abs_max", "moving_average_abs_max")


class QuantizationTransformPass:
    """Insert x -> x.quantized -> x.quantized.dequantized before each op of these types, for its
    data and for its weights.

    Gradient ops read their forward ops' inputs, and their gradients flow to x itself, so rounding
    is ignored there. Ops whose inputs are all data (a mul of two activations), and those in a name
    scope of `skip_pattern`, do not change.

    scope, place: for values of the ops' state. weight_bits, activation_bits: of an integer with its
    sign. activation_quantize_type: the scale of data: abs_max (per step), range_abs_max (the
    greatest of window_size steps), moving_average_abs_max (by moving_rate). weight_quantize_type:
    also channel_wise_abs_max, a scale for each filter of a convolution.

    weight_quantize_func, act_quantize_func: a function of a variable, written with layers, that
    quantises and restores in place of the ops. weight_preprocess_func, act_preprocess_func: a
    function applied before them. Gradients flow through such a function, and the optimizer from
    optimizer_func(), which a training graph needs, trains its own parameters (a clipping bound,
    say); executor makes their first values, in scope. As in 1.8.5, a variable that several ops read
    goes through a *_quantize_func only for the first of them, and the result of a
    weight_preprocess_func is quantised to activation_bits.

    Raises FluidValueError for another type and for missing arguments of a function, FluidTypeError
    for a function that does not return a new variable.
    """

    _supported_quantizable_op_type: ClassVar = list(WITH_WEIGHTS)

    def __init__(
        self,
        scope: Any = None,
        place: Any = None,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
        skip_pattern: str | list[str] = ["skip_quant"],  # noqa: B006
        quantizable_op_type: Sequence[str] = ["conv2d", "depthwise_conv2d", "mul"],
        weight_quantize_func: Any = None,
        act_quantize_func: Any = None,
        weight_preprocess_func: Any = None,
        act_preprocess_func: Any = None,
        optimizer_func: Any = None,
        executor: Any = None,
    ) -> None:
        self._functions = {
            "weight_quantize_func": weight_quantize_func, "act_quantize_func": act_quantize_func,
            "weight_preprocess_func": weight_preprocess_func, "act_preprocess_func": act_preprocess_func,
        }  # fmt: skip
        self._optimizer, self._executor = optimizer_func, executor
        self._scope, self._place = scope, place
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._activations = checked_choice(
            "activation_quantize_type", activation_quantize_type, ACTIVATIONS
        )
        self._weights = checked_choice("weight_quantize_type", weight_quantize_type, WEIGHTS)
        self._window_size, self._moving_rate = window_size, moving_rate
        self._skip_pattern = skip_pattern
        self._kinds = checked_types(quantizable_op_type, WITH_WEIGHTS)

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph, forward and backward. Raises FluidTypeError unless given an IrGraph."""
        checked_graph(graph, "QuantizationTransformPass")
        insert = Inserter(graph, self._scope, self._place, self._window_size, self._moving_rate)
        parameters = {n.name() for n in graph.all_persistable_nodes()}
        if not graph.is_test() and "range_abs_max" in (self._weights, self._activations):
            insert.count_steps()
        ops = [op for op in graph.all_op_nodes() if op.name().removesuffix("_grad") in self._kinds]
        for op in ops:
            if skipped(op, self._skip_pattern):
                op.set_attr("skip_quant", True)
        put = Functions(graph, self._scope, self._executor, self._optimizer)
        restored: dict[str, IrVarNode] = {}
        through: set[str] = set()  # a function in place of the ops
        for op in ops:
            if op.name() in self._kinds and not self._left(graph, op):
                op.set_attr("quantization_type", WITH_WEIGHT)
                for var in op.inputs:
                    name = var.name()
                    # only for ordering, or renamed with another one
                    if name not in op.input_arg_names() or name in through:
                        continue
                    if name not in restored:
                        kind = "weight" if name in parameters else "act"
                        var = self._by(put, f"{kind}_preprocess_func", var, op)
                        if self._functions[f"{kind}_quantize_func"] is not None:
                            self._by(put, f"{kind}_quantize_func", var, op)
                            through.add(name)
                            continue
                        restored[name] = self._restored(insert, op, var, name, name in parameters)
                    graph.update_input_link(var, restored[name], op)
        for op in ops:
            if op.name() not in self._kinds:
                for var in op.inputs:
                    if var.name() in restored and var.name() in op.input_arg_names():
                        graph.update_input_link(var, restored[var.name()], op)
        graph.resolve_hazard()
        return graph

    def _left(self, graph: IrGraph, op: IrOpNode) -> bool:
        """Whether an op does not change."""
        skip = op.op().has_attr("skip_quant") and op.op().attr("skip_quant")
        return (
            skip
            or (op.name() in ("mul", "matmul", "matmul_v2") and all_data(graph, op))
            or noted(op, WITHOUT_WEIGHT)
        )

    def _by(self, put: Functions, what: str, var: IrVarNode, op: IrOpNode) -> IrVarNode:
        """The variable that the op reads instead: the result of the function, if any."""
        function = self._functions[what]
        return var if function is None else put.put(what, function, var, op)

    def _restored(
        self, insert: Inserter, op: IrOpNode, var: IrVarNode, name: str, weight: bool
    ) -> IrVarNode:
        bits = self._weight_bits if weight and var.name() == name else self._activation_bits
        kind = self._weights if weight else self._activations
        if kind == "channel_wise_abs_max" and op.name() not in CONVOLUTIONS:
            kind = "abs_max"
        quantised, scale = insert.quantise(kind, var, name, bits)
        if kind == "channel_wise_abs_max":
            return insert.restore_channels(quantised, [scale], [bits])
        return insert.restore(quantised, scale, bits)
