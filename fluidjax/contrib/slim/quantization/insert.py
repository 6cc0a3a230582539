"""Insertion of ops that quantise and restore into a graph, with their variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .... import unique_name
from ....base.dtypes import VarType
from ....graph.ir_graph import IrGraph
from ....graph.ir_nodes import IrOpNode, IrVarNode
from ....ops.quantize import steps
from .held import checked_scope, kept, write

FIRST_SCALE = 0.001  # before the first step


def op_of(
    graph: IrGraph,
    kind: str,
    attrs: Mapping[str, Any],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> IrOpNode:
    """An op of the forward part, with its links."""
    op = graph.create_op_node(kind, {**attrs, "op_role": 0}, inputs, outputs)
    for node in _all(inputs):
        graph.link_to(node, op)
    for node in _all(outputs):
        graph.link_to(op, node)
    return op


def _all(slots: Mapping[str, Any]) -> list[IrVarNode]:
    return [n for nodes in slots.values() for n in (nodes if isinstance(nodes, list) else [nodes])]


def like(graph: IrGraph, name: str, var: IrVarNode, shape: Any = None) -> IrVarNode:
    """A node of a new variable with another's kind, dtype and (by default) shape."""
    return graph.create_var_node(
        name, var.type(), var.shape() if shape is None else shape, var.dtype()
    )


@dataclass
class Inserter:
    """Inserts ops into one graph, with a scope and a place for their state, and the options of the
    ops. quantise and restore: by name.
    """

    graph: IrGraph
    scope: Any
    place: Any
    window_size: int = 10000
    moving_rate: float = 0.9
    step: IrVarNode | None = field(default=None)

    def quantise(
        self, kind: str, var: IrVarNode, name: str, bits: int
    ) -> tuple[IrVarNode, IrVarNode]:
        """(the quantised variable, its scale) by a method: abs_max, channel_wise_abs_max,
        range_abs_max, moving_average_abs_max.
        """
        out = like(self.graph, f"{name}.quantized", var)
        if kind in ("abs_max", "channel_wise_abs_max"):
            whole = kind == "abs_max"
            scale = like(self.graph, f"{name}.scale", var, [1] if whole else var.shape()[:1])
            op = "fake_quantize_abs_max" if whole else "fake_channel_wise_quantize_abs_max"
            op_of(self.graph, op, {"bit_length": bits}, {"X": var}, {"Out": out, "OutScale": scale})
            return out, scale
        if kind == "range_abs_max":
            return out, self._range(var, out, f"{name}.scale", bits)
        return out, self.moving(
            "fake_quantize_moving_average_abs_max", var, out, f"{name}.scale", "", bits
        )

    def _range(self, var: IrVarNode, out: IrVarNode, scale: str, bits: int) -> IrVarNode:
        before, after = self._scale(scale, var)
        inputs, outputs, test = (
            {"X": var, "InScale": before},
            {"Out": out, "OutScale": after},
            self.graph.is_test(),
        )
        if not test:
            assert self.step is not None
            inputs["Iter"] = self.step
            outputs["OutScales"] = self._kept(
                unique_name.generate("scales"), var, np.zeros(self.window_size)
            )
        attrs = {"window_size": self.window_size, "bit_length": bits, "is_test": test}
        op_of(self.graph, "fake_quantize_range_abs_max", attrs, inputs, outputs)
        return after

    def moving(
        self, kind: str, var: IrVarNode, out: IrVarNode, scale: str, prefix: str, bits: int
    ) -> IrVarNode:
        """An op whose scale is a moving average; returns the scale. prefix: for the names of the
        average's state.
        """
        before, after = self._scale(scale, var)
        inputs, outputs = {"X": var, "InScale": before}, {"Out": out, "OutScale": after}
        self.average(var, inputs, outputs, f"{prefix}state", f"{prefix}accum")
        op_of(
            self.graph,
            kind,
            {"bit_length": bits, "moving_rate": self.moving_rate, "is_test": self.graph.is_test()},
            inputs,
            outputs,
        )
        return after

    def average(
        self,
        var: IrVarNode,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        state: str,
        accum: str,
    ) -> None:
        """Slots of a moving average; a test graph has none."""
        if self.graph.is_test():
            return
        for slot, name in (("State", state), ("Accum", accum)):
            inputs[f"In{slot}"] = self._kept(unique_name.generate(name), var, np.ones(1))
            outputs[f"Out{slot}"] = self.graph.create_var_node_from_desc(inputs[f"In{slot}"].var())

    def restore(self, var: IrVarNode, scale: IrVarNode, bits: int) -> IrVarNode:
        """A quantised variable, restored to floats."""
        return self.scaled(var, scale, float(steps(bits)))

    def scaled(self, var: IrVarNode, scale: IrVarNode, max_range: float) -> IrVarNode:
        """var * scale / max_range"""
        out = like(self.graph, f"{var.name()}.dequantized", var)
        op_of(
            self.graph,
            "fake_dequantize_max_abs",
            {"max_range": max_range},
            {"X": var, "Scale": scale},
            {"Out": out},
        )
        return out

    def restore_channels(
        self, var: IrVarNode, scales: list[IrVarNode], bits: list[int], **axis: int
    ) -> IrVarNode:
        """The same with a scale per channel, and then one for all. quant_axis: that of the
        channels, if there are no other scales.
        """
        out = like(self.graph, f"{var.name()}.dequantized", var)
        op_of(
            self.graph,
            "fake_channel_wise_dequantize_max_abs",
            {"quant_bits": bits, **axis},
            {"X": var, "Scales": scales},
            {"Out": out},
        )
        return out

    def count_steps(self) -> None:
        """Find the counter of steps, or insert one."""
        name = "@STEP_COUNTER@"
        for node in self.graph.all_var_nodes():
            if node.name() == name:
                self.step = node
        if self.step is None:
            before = self.graph.create_persistable_node(
                name, VarType.LOD_TENSOR, [1], VarType.INT64
            )
            self._put(name, np.zeros(1, "int64"))
            self.step = self.graph.create_var_node_from_desc(before.var())
            op_of(self.graph, "increment", {"step": 1.0}, {"X": before}, {"Out": self.step})

    def _scale(self, name: str, var: IrVarNode) -> tuple[IrVarNode, IrVarNode]:
        before = self._kept(name, var, np.array([FIRST_SCALE]))
        return before, self.graph.create_var_node_from_desc(before.var())

    def _kept(self, name: str, var: IrVarNode, value: np.ndarray) -> IrVarNode:
        return kept(self.graph, self.scope, self.place, name, var, value)

    def _put(self, name: str, value: np.ndarray) -> None:
        checked_scope(self.scope, self.place, "range_abs_max")
        write(self.scope, self.place, name, value)
