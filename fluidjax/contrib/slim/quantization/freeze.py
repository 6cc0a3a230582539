"""QuantizationFreezePass: integer weights, restored to floats only after the op that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import unique_name
from ....errors import FluidValueError, UnsupportedError
from ....graph.core_graph import Node
from ....graph.ir_graph import IrGraph, node_named
from ....graph.ir_nodes import IrOpNode, IrVarNode
from ....ops.quantize import steps
from .held import checked_scope, kept, read, write
from .insert import Inserter
from .tables import (
    CONVOLUTIONS,
    QUANTISE,
    RESTORE,
    WITH_WEIGHT,
    checked_choice,
    checked_graph,
    noted,
    original,
)
from .transform import WEIGHTS


class QuantizationFreezePass:
    """Convert the test graph of QuantizationTransformPass for inference: x -> x.quantized -> conv2d
    -> restored.

    Weights in the scope become integers in float dtype, and the ops that quantised them are
    removed. The op after a convolution or a mul restores by the scales of the data and of the
    weights: channel_wise_abs_max has one for each filter of a convolution. weight_bits,
    activation_bits, weight_quantize_type: those of the transform pass. Weights that are all zero
    stay zero (1.8.5 divides them by zero).

    Raises FluidValueError without a scope and a place, for any other graph, and for weights that
    the scope lacks.
    """

    def __init__(
        self,
        scope: Any,
        place: Any,
        weight_bits: int = 8,
        activation_bits: int = 8,
        weight_quantize_type: str = "abs_max",
        quantizable_op_type: Sequence[str] | None = None,
    ) -> None:
        checked_scope(scope, place, "QuantizationFreezePass")
        self._scope, self._place = scope, place
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._weights = checked_choice("weight_quantize_type", weight_quantize_type, WEIGHTS)

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph and the weights in the scope. Raises FluidTypeError for other than an
        IrGraph.
        """
        checked_graph(graph, "QuantizationFreezePass")
        self._came: dict[Node, IrVarNode] = {}  # the output of a removed op: its input
        # weights: a number, or an array with one per channel; data: the scale's node
        self._scales: dict[str, Any] = {}
        parameters = {n.name() for n in graph.all_persistable_nodes()}
        for op in graph.all_op_nodes():
            if op.name() in QUANTISE:
                self._settle(graph, op, parameters)
        for op in graph.all_op_nodes():
            if op.name() in RESTORE:
                self._remove(graph, op)
        after: dict[Node, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if noted(op, WITH_WEIGHT):
                out = self._output(graph, op)
                after[out.node] = self._restore_after(graph, op, out, parameters)
        for op in ops:
            for var in op.inputs:
                if var.node in after:
                    graph.update_input_link(var, after[var.node], op)
        remove_unused(graph)
        graph.resolve_hazard()
        return graph

    def _settle(self, graph: IrGraph, op: IrOpNode, parameters: set[str]) -> None:
        """Record the scale of an op that quantises; if its input is a weight, quantise it here and
        remove the op.
        """
        read_from, scale = op.input("X")[0], op.output("OutScale")[0]
        # the input of a function, by its output
        name = graph.out_node_mapping_table.get(read_from, read_from)
        if name != read_from and name in parameters:
            raise UnsupportedError(
                f"{name!r} goes through a weight_preprocess_func before it is quantised, and so"
                " would the integers that replace it; save the test program with its"
                " functions, or freeze one without"
            )
        if name not in parameters:
            self._scales[name] = node_named(op.outputs, scale)
            return
        weight = read(self._scope, name)
        if self._weights == "channel_wise_abs_max" and weight.ndim == 4:
            self._scales[name] = np.abs(weight).max(axis=(1, 2, 3))
            by = self._scales[name].reshape(-1, 1, 1, 1)
        else:
            kept_scale = self._weights not in ("abs_max", "channel_wise_abs_max")
            self._scales[name] = by = (
                read(self._scope, scale)[0] if kept_scale else np.abs(weight).max()
            )
        self._remove(graph, op)
        write(self._scope, self._place, name, quantised(weight, by, self._weight_bits))

    def _remove(self, graph: IrGraph, op: IrOpNode) -> None:
        """Remove an op from X to Out; readers of Out read X."""
        out = node_named(op.outputs, op.output("Out")[0])
        x = node_named(op.inputs, op.input("X")[0])
        self._came[out.node] = self._came.get(x.node, x)
        graph.safe_remove_nodes(op)

    def _output(self, graph: IrGraph, op: IrOpNode) -> IrVarNode:
        names = op.output_arg_names()
        if len(names) != 1:
            raise FluidValueError(
                f"op {op.name()} has {len(names)} outputs ({', '.join(names)}); what is restored"
                " after it is one"
            )
        return node_named(op.outputs, names[0])

    def _restore_after(
        self, graph: IrGraph, op: IrOpNode, out: IrVarNode, parameters: set[str]
    ) -> IrVarNode:
        """Make an op read quantised inputs, and restore its output; returns the restored variable."""
        weight, data, max_range = None, None, 1.0
        for var in op.inputs:
            if var.name() not in op.input_arg_names():
                continue
            name = original(var.name())
            if name not in self._scales:
                raise FluidValueError(
                    f"op {op.name()} reads {name!r}, which nothing quantises; apply"
                    " QuantizationTransformPass first"
                )
            if var.node in self._came:
                graph.update_input_link(var, self._came[var.node], op)
            if name in parameters:
                weight = self._scales[name]
                max_range *= over(steps(self._weight_bits), weight) if np.ndim(weight) == 0 else 1.0
            else:
                data = self._scales[name]
                max_range *= steps(self._activation_bits)
        if data is None:
            raise FluidValueError(
                f"op {op.name()} reads only weights, so it cannot be dequantised after it"
            )
        insert = Inserter(graph, self._scope, self._place)
        if self._weights == "channel_wise_abs_max" and op.name() in CONVOLUTIONS:
            if op.op().has_attr("data_format") and op.op().attr("data_format") == "NHWC":
                raise FluidValueError(
                    f"op {op.name()} has the data_format NHWC, and scales of channels are restored"
                    " along axis 1 alone; take weight_quantize_type='abs_max'"
                )
            held = kept(
                graph,
                self._scope,
                self._place,
                unique_name.generate("channel_scale"),
                out,
                np.asarray(weight),
            )
            return insert.restore_channels(
                out, [held, data], [self._weight_bits, self._activation_bits]
            )
        return insert.scaled(out, data, max_range)


def over(count: int, scale: Any) -> float:
    """count / scale in float64, which may be infinite."""
    return count / float(scale) if scale else float("inf")


def quantised(x: np.ndarray, scale: Any, bits: int) -> np.ndarray:
    """round(x / scale * steps); zeros where the scale is zero. scale broadcasts."""
    safe = np.where(np.asarray(scale) == 0, np.ones_like(scale), scale)
    return np.round(x / safe * np.asarray(steps(bits), x.dtype)).astype(x.dtype)


def remove_unused(graph: IrGraph) -> None:
    """Remove nodes of variables that no op reads or writes."""
    used = {n.node for op in graph.all_op_nodes() for n in (*op.inputs, *op.outputs)}
    graph.safe_remove_nodes([n for n in graph.all_var_nodes() if n.node not in used])
