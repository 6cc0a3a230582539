"""OutScaleForTrainingPass and OutScaleForInferencePass: the scales of ops' outputs, for engines
that need them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import FluidValueError
from ....graph.ir_graph import IrGraph, node_named
from .held import kept, read
from .insert import Inserter, op_of
from .tables import OUT_SCALES, checked_graph, outputs_of


def scale_name(name: str) -> str:
    """The name of the variable's scale."""
    return f"{name}@scale"


class OutScaleForTrainingPass:
    """Insert moving_average_abs_max_scale, which stores the output's scale in ``NAME@scale``, after
    each supported op.

    In a test graph the op has no OutScale (1.8.5 names it without writing it), so that tests do not
    change the scale. scope, place: for the first values. moving_rate: the weight of the past.
    """

    def __init__(self, scope: Any = None, place: Any = None, moving_rate: float = 0.9) -> None:
        self._scope, self._place, self._moving_rate = scope, place, moving_rate

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph. Raises FluidTypeError unless given an IrGraph, FluidValueError without
        a scope and a place.
        """
        checked_graph(graph, "OutScaleForTrainingPass")
        insert = Inserter(graph, self._scope, self._place, moving_rate=self._moving_rate)
        for op in [op for op in graph.all_op_nodes() if op.name() in OUT_SCALES]:
            for name in outputs_of(op, op.name()):
                var = node_named(op.outputs, name)
                out = graph.create_var_node_from_desc(var.var())
                scale = kept(graph, self._scope, self._place, scale_name(name), var, np.ones(1))
                inputs, outputs = (
                    {"X": var},
                    {"Out": out} if graph.is_test() else {"Out": out, "OutScale": scale},
                )
                insert.average(var, inputs, outputs, "scale_state@", "scale_accum@")
                attrs = {"moving_rate": self._moving_rate, "is_test": graph.is_test()}
                op_of(graph, "moving_average_abs_max_scale", attrs, inputs, outputs)
        graph.resolve_hazard()
        return graph


class OutScaleForInferencePass:
    """Write the scales from training to the ops' attribute ``out_threshold``. scope: the scope with
    the scales.
    """

    def __init__(self, scope: Any = None) -> None:
        self._scope = scope

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rewrite the graph. Raises FluidTypeError unless given an IrGraph, FluidValueError for
        missing scales.
        """
        checked_graph(graph, "OutScaleForInferencePass")
        if self._scope is None:
            raise FluidValueError(
                "OutScaleForInferencePass reads scales from a scope; give it one:"
                " OutScaleForInferencePass(scope)"
            )
        for op in graph.all_op_nodes():
            if op.name() in OUT_SCALES:
                (name,) = outputs_of(op, op.name())
                op.set_attr("out_threshold", float(read(self._scope, scale_name(name))[0]))
        graph.resolve_hazard()
        return graph
