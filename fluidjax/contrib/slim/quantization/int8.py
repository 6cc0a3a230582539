"""ConvertToInt8Pass and TransformForMobilePass: conversions of a frozen graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType
from ....graph.ir_graph import IrGraph
from ....graph.ir_nodes import IrVarNode
from .freeze import remove_unused
from .held import checked_scope, read, write
from .tables import QUANTISE, RESTORE, WITH_WEIGHT, checked_graph, noted


class ConvertToInt8Pass:
    """Convert the weights of a frozen graph to int8, in new variables (``conv2d_0.w_0.int8``), a
    quarter of the file size.

    Raises FluidValueError without a scope and a place, and for weights that the scope lacks.
    """

    def __init__(
        self, scope: Any, place: Any, quantizable_op_type: Sequence[str] | None = None
    ) -> None:
        checked_scope(scope, place, "ConvertToInt8Pass")
        self._scope, self._place = scope, place

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph. Raises FluidTypeError unless given an IrGraph."""
        checked_graph(graph, "ConvertToInt8Pass")
        parameters = {n.name() for n in graph.all_persistable_nodes()}
        made: dict[str, IrVarNode] = {}
        for op in graph.all_op_nodes():
            for var in op.inputs if noted(op, WITH_WEIGHT) else ():
                name = var.name()
                if name in parameters:
                    if name not in made:
                        made[name] = self._int8(graph, var)
                    graph.update_input_link(var, made[name], op)
        remove_unused(graph)
        graph.resolve_hazard()
        return graph

    def _int8(self, graph: IrGraph, var: IrVarNode) -> IrVarNode:
        name = f"{var.name()}.int8"
        write(self._scope, self._place, name, read(self._scope, var.name()).astype(np.int8))
        return graph.create_persistable_node(name, var.type(), var.shape(), VarType.INT8)


class TransformForMobilePass:
    """Rename ops that quantise to ``quantize``, and those that restore to ``dequantize``, as in
    Paddle Lite's predecessor.

    Such a program is only for saving: no step runs these ops.
    """

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph. Raises FluidTypeError unless given an IrGraph."""
        checked_graph(graph, "TransformForMobilePass")
        for op in graph.all_op_nodes():
            kind = (
                "quantize"
                if op.name() in QUANTISE
                else "dequantize"
                if op.name() in RESTORE
                else None
            )
            if kind:
                op.set_type(kind)
                new = graph.create_op_node_from_desc(op.op())
                for var in op.inputs:
                    graph.link_to(var, new)
                for var in op.outputs:
                    graph.link_to(new, var)
                graph.safe_remove_nodes(op)
        graph.resolve_hazard()
        return graph
