"""AddQuantDequantPass: ops without weights read their inputs rounded to integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ....graph.ir_graph import IrGraph, node_named
from ....graph.ir_nodes import IrVarNode
from .held import checked_scope
from .insert import Inserter, like
from .tables import (
    WITH_WEIGHT,
    WITHOUT_WEIGHT,
    WITHOUT_WEIGHTS,
    all_data,
    checked_graph,
    checked_types,
    inputs_of,
    noted,
    skipped,
)


class AddQuantDequantPass:
    """Insert x -> x.quant_dequant, by the moving average of its scale, before each op of these
    types; gradient ops read the same.

    Ops with a parameter input, ops that QuantizationTransformPass rewrote and ops in a name scope
    of `skip_pattern` do not change. is_full_quantized: all supported types. quant_bits: of an
    integer with its sign.

    Raises FluidValueError without a scope and a place, and for an unsupported type of op.
    """

    _supported_quantizable_op_type: ClassVar = list(WITHOUT_WEIGHTS)
    _activation_type: ClassVar = ["relu", "relu6", "leaky_relu", "tanh", "swish"]

    def __init__(
        self,
        scope: Any = None,
        place: Any = None,
        moving_rate: float = 0.9,
        quant_bits: int = 8,
        skip_pattern: str | list[str] = ["skip_quant"],  # noqa: B006
        quantizable_op_type: Sequence[str] = ["elementwise_add", "pool2d"],
        is_full_quantized: bool = False,
    ) -> None:
        checked_scope(scope, place, "AddQuantDequantPass")
        self._scope, self._place = scope, place
        self._moving_rate, self._bits, self._skip_pattern = moving_rate, quant_bits, skip_pattern
        self._kinds = (
            list(WITHOUT_WEIGHTS)
            if is_full_quantized
            else checked_types(quantizable_op_type, WITHOUT_WEIGHTS)
        )

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph, forward and backward. Raises FluidTypeError unless given an IrGraph."""
        checked_graph(graph, "AddQuantDequantPass")
        insert = Inserter(graph, self._scope, self._place, moving_rate=self._moving_rate)
        rounded: dict[str, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if (
                op.name() not in self._kinds
                or skipped(op, self._skip_pattern)
                or noted(op, WITH_WEIGHT)
                or not all_data(graph, op)
            ):
                continue
            op.set_attr("quantization_type", WITHOUT_WEIGHT)
            op.set_attr("activation_bits", self._bits)
            for name in inputs_of(op, op.name()):
                var = node_named(op.inputs, name)
                if name not in rounded:
                    rounded[name] = self._rounded(insert, var)
                graph.update_input_link(var, rounded[name], op)
        for op in ops:
            if op.name().removesuffix("_grad") in self._kinds and op.name().endswith("_grad"):
                for name in op.input_arg_names():
                    if name in rounded:
                        graph.update_input_link(node_named(op.inputs, name), rounded[name], op)
        graph.resolve_hazard()
        return graph

    def _rounded(self, insert: Inserter, var: IrVarNode) -> IrVarNode:
        out = like(insert.graph, f"{var.name()}.quant_dequant", var)
        kind = "fake_quantize_dequantize_moving_average_abs_max"
        insert.moving(kind, var, out, f"{out.name()}.scale", "quant_dequant.", self._bits)
        return out
