"""Integer weights with float data, for ops whose data cannot be rounded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from .... import unique_name
from ....errors import FluidValueError
from ....graph.ir_graph import IrGraph, node_named
from .freeze import quantised
from .held import kept, read, write
from .insert import Inserter
from .tables import CONVOLUTIONS, inputs_of, outputs_of


def round_weights(
    graph: IrGraph, scope: Any, place: Any, kinds: Collection[str], bits: int
) -> None:
    """Round the weights of ops of these types in the scope, and restore the ops' outputs.

    A convolution has a scale for each filter, other ops one for the whole weight. Raises
    FluidValueError for a weight that an op of another kind reads too.
    """
    scales: dict[str, np.ndarray] = {}
    insert = Inserter(graph, scope, place)
    ops = graph.all_op_nodes()
    for op in (op for op in ops if op.name() in kinds):
        names = [n for n in inputs_of(op, op.name()) if node_named(op.inputs, n).persistable()]
        if len(names) != 1:
            continue
        (name,) = names
        if any(name in o.input_arg_names() and o.name() not in kinds for o in ops):
            raise FluidValueError(
                f"weight {name!r} of an op {op.name()} is read by ops of other types too; list"
                " these in weight_only_op_type as well"
            )
        channels = op.name() in CONVOLUTIONS
        if name not in scales:
            weight = read(scope, name)
            axes = tuple(range(1, weight.ndim)) if channels else None
            scales[name] = np.abs(weight).max(axis=axes)
            by = scales[name].reshape(-1, *[1] * (weight.ndim - 1)) if channels else scales[name]
            write(scope, place, name, quantised(weight, by, bits))
        (out,) = (node_named(op.outputs, n) for n in outputs_of(op, op.name()))
        wish = unique_name.generate("channel_scale")
        scale = kept(graph, scope, place, wish, out, scales[name].reshape(-1))
        if channels:
            restored = insert.restore_channels(out, [scale], [bits], quant_axis=1)
        else:
            restored = insert.restore(out, scale, bits)
        for reader in ops:
            if reader.node is not op.node and out.name() in reader.input_arg_names():
                graph.update_input_link(out, restored, reader)
    graph.resolve_hazard()
