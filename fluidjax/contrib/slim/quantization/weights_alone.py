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
from .tables import CONVOLUTIONS, inputs_of, outputs_of, skipped


def round_weights(
    graph: IrGraph, scope: Any, place: Any, kinds: Collection[str], bits: int
) -> None:
    """Round the weights of ops of these types in the scope, and restore the ops' outputs.

    A convolution has a scale for each filter, a product one for each column of a matrix Y that is
    not transposed, other ops one for the whole weight. Ops marked skip_quant do not change. Raises
    FluidValueError for a weight that other ops read too.
    """
    scales: dict[str, np.ndarray] = {}
    insert = Inserter(graph, scope, place)
    ops = graph.all_op_nodes()
    rounded = [op for op in ops if op.name() in kinds and not skipped(op, [])]
    for op in rounded:
        names = [n for n in inputs_of(op, op.name()) if node_named(op.inputs, n).persistable()]
        if len(names) != 1:
            continue
        (name,) = names
        readers = [o for o in ops if name in o.input_arg_names()]
        if any(o.node not in [r.node for r in rounded] for o in readers):
            raise FluidValueError(
                f"weight {name!r} of an op {op.name()} is read by ops of other types too, or by one"
                " that is skipped; list these types in weight_only_op_type as well, and skip all or"
                " none"
            )
        axes = [_channels(o, name) for o in readers]
        axis = None if None in axes else axes[[o.node for o in readers].index(op.node)]
        if name not in scales:
            weight = read(scope, name)
            first = op.name() in CONVOLUTIONS
            over = tuple(range(1, weight.ndim)) if first else None if axis is None else 0
            by = np.abs(weight).max(axis=over, keepdims=True)
            scales[name] = by.reshape(-1)
            write(scope, place, name, quantised(weight, by, bits))
        (out,) = (node_named(op.outputs, n) for n in outputs_of(op, op.name()))
        wish = unique_name.generate("channel_scale")
        scale = kept(graph, scope, place, wish, out, scales[name])
        if axis is not None:
            restored = insert.restore_channels(out, [scale], [bits], quant_axis=axis)
        else:
            restored = insert.restore(out, scale, bits)
        for reader in ops:
            if reader.node is not op.node and out.name() in reader.input_arg_names():
                graph.update_input_link(out, restored, reader)
    graph.resolve_hazard()


def _channels(op: Any, name: str) -> int | None:
    """The axis of an op's output along which channels of its weight lie; None where none does."""
    if op.name() in CONVOLUTIONS:
        return 1
    options = [
        n for n in ("trans_x", "trans_y", "transpose_X", "transpose_Y") if op.op().has_attr(n)
    ]
    transposed = any(op.op().attr(n) for n in options)
    rank = len(node_named(op.inputs, name).shape())
    out = len(node_named(op.outputs, outputs_of(op, op.name())[0]).shape())
    return out - 1 if op.input("Y") == [name] and rank == 2 and not transposed else None
