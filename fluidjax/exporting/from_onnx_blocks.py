"""ONNX's If, Loop and Scan as blocks, and its quantised values as fake-quantised ones.

A scalar of ONNX is [1] here, as a condition and a counter are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import name_of
from ..layers.branches import cond
from ..layers.compare import less_than
from ..layers.control_flow import increment
from ..layers.elementwise import logical_and
from ..layers.loops import array_write, create_array, tensor_array_to_tensor, while_loop
from ..layers.manip import slice as cut
from ..layers.manip import squeeze
from ..layers.static_rnn import StaticRNN
from ..layers.tensor import assign, fill_constant, reverse
from .from_onnx import Importer, Lacks, Node, rule


def _one(m: Importer, name: str) -> Any:
    """A variable of one element with the shape [1]."""
    var = m.var(name)
    if tuple(var.shape) == (1,):
        return var
    made = m.new(f"{name}.one")
    m.op("reshape2", {"X": name}, {"Out": made, "XShape": f"{made}.shape"}, shape=[1])
    return m.var(made)


def _copy(m: Importer, name: str, wish: str) -> Any:
    """A new variable with this value."""
    made = m.new(wish)
    m.op("assign", {"X": name}, {"Out": made})
    return m.var(made)


def _inside(m: Importer, graph: Any, given: Sequence[Any] = ()) -> list[Any]:
    """The outputs of a graph whose ops are appended to the current block. given: the values of its
    inputs.
    """
    before, lacking = m.called, len(m.lacks)
    names = [v.name for v in graph.input]
    if len(names) != len(given):
        raise Lacks(f"its graph has {len(names)} inputs for {len(given)} values")
    m.called = before | {n: v.name for n, v in zip(names, given, strict=True)}
    try:
        m.graph(graph)
        if len(m.lacks) > lacking:
            raise Lacks("of what is within it, some has no op")
        return [m.var(v.name) for v in graph.output]
    finally:
        m.called = before


def _named(m: Importer, node: Node, values: Sequence[Any]) -> None:
    """The outputs of a node, with their names in the file."""
    for name, value in zip(node.outputs, values, strict=False):
        if name:
            m.op("assign", {"X": value.name}, {"Out": name})


@rule("If")
def branches(m: Importer, n: Node) -> None:
    made = cond(
        _one(m, n.inputs[0]),
        lambda: _inside(m, n.attrs["then_branch"]),
        lambda: _inside(m, n.attrs["else_branch"]),
    )
    _named(m, n, made if isinstance(made, list | tuple) else [made])


def _declared(m: Importer, value: Any) -> tuple[str, bool]:
    """The dtype of a graph's output, and whether it is a scalar."""
    kind = value.type.tensor_type
    if not kind.elem_type or not kind.HasField("shape"):
        raise Lacks(f"the file does not say of which type and shape {value.name!r} is")
    dtype = name_of(str(m.package.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    return dtype, not kind.shape.dim


@rule("Loop")
def loop(m: Importer, n: Node) -> None:
    body, carried = n.attrs["body"], n.inputs[2:]
    if len(n.outputs) > len(body.output) - 1:
        raise Lacks(f"it has {len(n.outputs)} outputs for {len(body.output)} of its graph")
    out = n.outputs[0] if n.outputs[0] else "loop"
    first = [_copy(m, name, f"{out}.{i}") for i, name in enumerate(carried)]
    count = fill_constant([1], "int64", 0)
    most = _one(m, n.inputs[0]) if n.has(0) else fill_constant([1], "int64", 2**62)
    asked = assign(_one(m, n.inputs[1])) if n.has(1) else fill_constant([1], "bool", True)

    def goes(count: Any, asked: Any, *values: Any) -> Any:
        return logical_and(asked, less_than(count, most))

    def step(count: Any, asked: Any, *values: Any) -> list[Any]:
        still, *after = _inside(m, body, [count, asked, *values])
        for array, value in zip(kept, after[len(carried) :], strict=True):
            array_write(value, count, array)
        after = after[: len(carried)]
        # an output may be an unchanged input, which the loop writes
        after = [assign(v) for v in after]
        return [increment(assign(count)), assign(_one(m, still.name)), *after]

    # one value for each iteration
    types = [_declared(m, v) for v in body.output[1 + len(carried) :]]
    kept = [create_array(dtype) for dtype, _ in types]
    made = while_loop(goes, step, [count, asked, *first])
    every = [
        tensor_array_to_tensor(array, axis=0, use_stack=not scalar)[0]  # a scalar has an axis here
        for array, (_, scalar) in zip(kept, types, strict=True)
    ]
    _named(m, n, [*made[2:], *every])


@rule("Scan")
def scan(m: Importer, n: Node) -> None:
    body, rows = n.attrs["body"], int(n.attrs["num_scan_inputs"])
    states = len(n.inputs) - rows
    if any(a for kind in ("scan_input_axes", "scan_output_axes") for a in n.attrs.get(kind, ())):
        raise Lacks("it goes along another axis than the first")
    ins = [int(d) for d in n.attrs.get("scan_input_directions", [0] * rows)]
    outs = [int(d) for d in n.attrs.get("scan_output_directions", [0] * (len(n.outputs) - states))]
    given = [
        reverse(m.var(name), [0]) if back else m.var(name)
        for name, back in zip(n.inputs[states:], ins, strict=True)
    ]
    first = [m.var(name) for name in n.inputs[:states]]
    rnn = StaticRNN()
    with rnn.step():
        steps = [rnn.step_input(v) for v in given]
        before = [rnn.memory(init=v) for v in first]
        found = [assign(v) for v in _inside(m, body, [*before, *steps])]
        for memory, value in zip(before, found[:states], strict=True):
            rnn.update_memory(memory, value)
        for value in found:
            rnn.step_output(value)
    every = rnn()
    every = every if isinstance(every, list | tuple) else [every]
    last = [squeeze(cut(v, [0], [-1], [2**31 - 1]), [0]) for v in every[:states]]
    in_order = [
        reverse(v, [0]) if back else v for v, back in zip(every[states:], outs, strict=True)
    ]
    _named(m, n, [*last, *in_order])


def _scale(m: Importer, n: Node) -> tuple[str, int]:
    """The largest value of a scale, in our form, and the axis that has several scales."""
    if n.has(2) and np.any(m.known(n, 2, "zero point")):
        raise Lacks("its zero is not at 0")
    if n.has(2) and m.constants[n.inputs[2]].dtype != np.int8:
        raise Lacks("it is not of int8")
    if n.attrs.get("block_size"):
        raise Lacks("its scales are of blocks")
    step = m.known(n, 1, "scale")
    axis = int(n.attrs.get("axis", 1)) % m.rank(n.inputs[0]) if step.size > 1 else -1
    return m.held(step.reshape(-1) * np.float32(127), f"{n.outputs[0]}.scale"), axis


def _quantising(m: Importer, n: Node, kind: str) -> None:
    if not n.has(2):
        raise Lacks("it is of uint8, with no zero")
    scale, axis = _scale(m, n)
    zero = m.held(np.zeros(1, np.int32), f"{n.outputs[0]}.zero")
    ins = {"X": n.inputs[0], "Scale": scale, "ZeroPoint": zero}
    m.op(kind, ins, {"Y": n.outputs[0]}, quant_axis=axis, bit_length=8, round_type=0, is_test=True)


@rule("QuantizeLinear")
def quantize(m: Importer, n: Node) -> None:
    _quantising(m, n, "quantize_linear")


@rule("DequantizeLinear")
def dequantize(m: Importer, n: Node) -> None:
    _quantising(m, n, "dequantize_linear")
