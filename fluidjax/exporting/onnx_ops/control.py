"""Blocks and arrays of tensors: Scan, Loop, If, and ONNX's sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.dtypes import numpy_dtype
from ...ir import walk
from ..graph import Graph, Value
from ..rules import Op, rule
from ..values import Lacking


def own(g: Graph, values: Sequence[Value]) -> list[Value]:
    """Values as outputs of a block: each computed by the block, without duplicates."""
    made = {n for node in g.nodes for n in node.outputs}
    found: list[Value] = []
    for v in values:
        if v.name not in made or any(v.name == f.name for f in found):
            v = g.add("Identity", v, shape=v.shape)
        found.append(v)
    return found


def scalar(g: Graph, v: Value) -> Value:
    return g.reshape(v, [])


@rule("recurrent")
def recurrent(g: Graph, op: Op) -> dict[str, list[Value]]:
    """A Scan over the first axis of its inputs."""
    (idx,) = op.desc.blocks
    desc, exporter = op.desc, op.exporter.within(op.desc.blocks[0])
    if walk.written_outside(op.exporter.desc, desc):
        raise Lacking("its block writes variables around it")
    inner = exporter.graph
    states = list(zip(op.attr("ex_states") or (), op.attr("states") or (), op.all("initial_states"), strict=True))  # fmt: skip
    rows = list(zip(desc.input("inputs"), op.all("inputs"), strict=True))
    before = []
    for name, _, first in states:
        before.append(exporter.local(name, first.dtype, first.sizes))
    steps = [exporter.local(n, v.dtype, v.sizes[1:]) for n, v in rows]
    exporter.run(op.exporter.desc.blocks[idx].ops)
    outs = [exporter.values[n] for n in desc.output("outputs")]
    after = [exporter.values[end] for _, end, _ in states]
    inner.inputs = [*before, *steps]
    inner.outputs = own(inner, [*after, *outs])
    back = int(bool(op.attr("reverse")))
    made = g.many(
        "Scan",
        [*(first for *_, first in states), *(v for _, v in rows)],
        [(v.dtype, v.shape) for v in before] + [(v.dtype, None if v.shape is None else (-1, *v.shape)) for v in outs],
        body=inner,
        num_scan_inputs=len(rows),
        scan_input_directions=[back] * len(rows),
        scan_output_directions=[back] * len(outs),
    )  # fmt: skip
    return {"outputs": list(made[len(states) :])}


@rule("while")
def loop(g: Graph, op: Op) -> dict[str, list[Value]]:
    """A Loop that carries the outer variables that its block writes."""
    (idx,), (condition,) = op.desc.blocks, op.desc.input("Condition")
    outer = op.exporter
    names = [n for n in walk.written_outside(outer.desc, op.desc) if n != condition]
    first = [outer.values[n] if n in outer.values else _initial_value(g, op, n) for n in names]
    exporter = outer.within(idx)
    inner = exporter.graph
    count = Value(g.names.new(f"{g.base}/iteration"), "int64", ())
    goes = Value(g.names.new(f"{g.base}/goes"), "bool", ())
    carried = [
        exporter.local(n, v.dtype, _carried_shape(op, n, v), v.many, v.lengths)
        for n, v in zip(names, first, strict=True)
    ]
    exporter.values[condition] = Value(goes.name, "bool", ())
    exporter.run(outer.desc.blocks[idx].ops)
    after = [exporter.values[n] for n in names]
    if any(len(v.lengths) != len(b.lengths) for v, b in zip(after, carried, strict=True)):
        raise Lacking("lengths of sequences change from one iteration to the next")
    still = scalar(inner, exporter.values[condition])
    inner.inputs = [count, goes, *carried]
    inner.outputs = own(inner, [still, *after])
    made = g.many(
        "Loop",
        [None, scalar(g, outer.values[condition]), *first],
        [(v.dtype, v.shape) for v in carried],
        body=inner,
    )
    for name, value, before in zip(names, made, carried, strict=True):
        outer.named(name, Value(value.name, value.dtype, value.shape, many=before.many))
    outer.values[condition] = g.constant([False])
    return {}


def _initial_value(g: Graph, op: Op, name: str) -> Value:
    """The initial value of a variable that only the block writes."""
    var = op.found(name)
    if var is None or var.dtype is None:
        raise Lacking(f"'{name}' has no declared type")
    dtype = str(numpy_dtype(var.dtype))
    if var.kind == "LOD_TENSOR_ARRAY":
        return empty(g, dtype)
    return g.filled(0, dtype, [max(n, 0) for n in var.shape or ()])


def _carried_shape(op: Op, name: str, first: Value) -> tuple[int, ...] | None:
    """The shape of a carried value: sizes that the program leaves open may change."""
    var = op.found(name)
    if first.shape is None or var is None or var.shape is None:
        return None
    if len(first.shape) != len(var.shape):
        return (-1,) * len(first.shape)
    return tuple(n if n == m else -1 for n, m in zip(first.shape, var.shape, strict=True))


@rule("conditional_block")
def conditional(g: Graph, op: Op) -> dict[str, list[Value]]:
    """An If whose other branch returns the old values."""
    (idx,) = op.desc.blocks
    outer = op.exporter
    names = list(walk.written_outside(outer.desc, op.desc))
    condition = op["Cond"]
    if not op.attr("is_scalar_condition"):
        raise Lacking("it asks whether its condition has elements")
    taken, left = outer.within(idx), outer.within(idx)
    taken.run(outer.desc.blocks[idx].ops)
    here = [taken.values[n] for n in names]
    there = [
        outer.values[n] if n in outer.values else _initial_value(left.graph, op, n) for n in names
    ]
    taken.graph.outputs, left.graph.outputs = own(taken.graph, here), own(left.graph, there)
    made = g.many(
        "If",
        [scalar(g, condition)],
        [(v.dtype, v.shape if v.shape == w.shape else None) for v, w in zip(here, there, strict=True)],
        then_branch=taken.graph,
        else_branch=left.graph,
    )  # fmt: skip
    for name, value, v in zip(names, made, here, strict=True):
        outer.named(name, Value(value.name, value.dtype, value.shape, many=v.many))
    return {}


# arrays of tensors


def empty(g: Graph, dtype: str) -> Value:
    made = g.add("SequenceEmpty", dtype=dtype, element=dtype)
    return Value(made.name, dtype, None, many=True)


@rule("write_to_array")
def write(g: Graph, op: Op) -> Value:
    """Write behind the last entry, or in place of an existing one."""
    x, at = op["X"], op["I"]
    (name,) = op.desc.output("Out")
    before = op.exporter_values.get(name)
    if x.lengths:
        raise Lacking("an array of sequences has no form")
    if before is None:
        made = g.add("SequenceInsert", empty(g, x.dtype), x, dtype=x.dtype)
        return Value(made.name, x.dtype, None, many=True)
    index = scalar(g, g.cast(at, "int64"))
    size = g.add("SequenceLength", before, dtype="int64", shape=())
    there, behind = g.inner(), g.inner()
    less = there.add("SequenceErase", before, index, dtype=x.dtype)
    put = there.add("SequenceInsert", less, x, index, dtype=x.dtype)
    last = behind.add("SequenceInsert", before, x, dtype=x.dtype)
    there.outputs, behind.outputs = ([Value(v.name, x.dtype, None, many=True)] for v in (put, last))
    within = g.binary("Less", index, size, "bool")
    (made,) = g.many("If", [within], [(x.dtype, None)], then_branch=there, else_branch=behind)
    return Value(made.name, x.dtype, None, many=True)


@rule("read_from_array")
def read(g: Graph, op: Op) -> Value:
    x, at = op["X"], op["I"]
    var = op.declared("Out")
    shape = None if var is None else var.shape
    return g.add("SequenceAt", x, scalar(g, g.cast(at, "int64")), shape=shape)


@rule("lod_array_length")
def array_length(g: Graph, op: Op) -> Value:
    return g.reshape(g.add("SequenceLength", op["X"], dtype="int64", shape=()), [1])


@rule("tensor_array_to_tensor")
def to_tensor(g: Graph, op: Op) -> dict[str, Value]:
    x, axis, new = op["X"], int(op.attr("axis")), int(bool(op.attr("use_stack")))
    if any(n in op.read_later for n in op.desc.output("OutIndex")):
        raise Lacking("the sizes of its parts are read")
    var = op.declared("Out")
    shape = None if var is None else var.shape
    return {"Out": g.add("ConcatFromSequence", x, shape=shape, axis=axis, new_axis=new)}


@rule("is_empty")
def is_empty(g: Graph, op: Op) -> Value:
    size = g.reshape(g.add("Size", op["X"], dtype="int64", shape=()), [1])
    return g.binary("Equal", size, g.constant(np.int64(0)), "bool")
