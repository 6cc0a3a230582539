"""Arrays made from numbers in the program, sometimes with the shape of another array."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import name_of
from ..graph import Graph, Size, Value
from ..rules import Op, rule
from ..values import Lacking
from .shaping import numbers


def _value(op: Op) -> Any:
    text = str(op.attr("str_value") or "")
    if not text:
        return op.attr("value")
    return int(text) if "int" in _named(op) and text.lstrip("-").isdigit() else float(text)


def _named(op: Op) -> str:
    return str(name_of(op.attr("dtype")))


@rule("fill_constant")
def fill_constant(g: Graph, op: Op) -> Value:
    sizes = numbers(g, op, "ShapeTensor", "ShapeTensorList", "shape")
    given, dtype = op.get("ValueTensor"), _named(op)
    if given is not None:
        return g.expand(g.cast(g.reshape(given, [1]), dtype), sizes)
    return g.filled(_value(op), dtype, sizes)


@rule("fill_constant_batch_size_like")
def fill_batch(g: Graph, op: Op) -> Value:
    x = op["Input"]
    sizes: list[Size] = list(op.attr("shape"))
    place = int(op.attr("input_dim_idx"))
    rows: Size = g.size(x, place)
    if x.lengths and place == 0:
        rows = g.size(x.lengths[0], 0)  # for sequences, their number
    sizes[int(op.attr("output_dim_idx"))] = rows
    return g.filled(_value(op), _named(op), sizes)


@rule("fill_zeros_like", "fill_any_like", "fill_zeros_like2")
def fill_like(g: Graph, op: Op) -> Value:
    x = op["X"]
    wanted = op.attr("dtype")
    dtype = x.dtype if wanted in (None, -1) or op.type == "fill_zeros_like" else str(name_of(wanted))  # fmt: skip
    value = op.attr("value") if op.type == "fill_any_like" else 0
    return g.filled(value, dtype, [g.size(x, a) for a in range(x.rank)]).ragged(x.lengths)


@rule("uniform_random", "gaussian_random", "truncated_gaussian_random",
      "uniform_random_batch_size_like", "gaussian_random_batch_size_like")  # fmt: skip
def drawn(g: Graph, op: Op) -> Value:
    raise Lacking("it draws at random, and other runtimes draw other numbers", "feed what it draws")


@rule("range")
def numbers_in_order(g: Graph, op: Op) -> Value:
    start, end, step = (g.reshape(op[s], []) for s in ("Start", "End", "Step"))
    declared = op.declared("Out")
    shape = (-1,) if declared is None or declared.shape is None else declared.shape
    return g.add("Range", start, end, step, shape=shape)


@rule("linspace")
def linspace(g: Graph, op: Op) -> Value:
    raise Lacking("its numbers are given while it runs", "make them constants")


@rule("meshgrid")
def meshgrid(g: Graph, op: Op) -> dict[str, Any]:
    parts = op.all("X")
    sizes = [g.size(p, 0) for p in parts]
    return {
        "Out": [
            g.expand(g.unsqueeze(p, [a for a in range(len(parts)) if a != i]), sizes)
            for i, p in enumerate(parts)
        ]
    }


@rule("sequence_mask")
def sequence_mask(g: Graph, op: Op) -> dict[str, Value]:
    x, given = op["X"], op.get("MaxLenTensor")
    fixed = int(op.attr("maxlen") or -1)
    if given is not None and given.const is not None:
        fixed = int(given.const.item())
    most: Size = fixed
    if fixed < 0:
        longest = g.reduce("Max", x, None, False) if given is None else given
        most = g.reshape(g.cast(longest, "int64"), [1])
    within = g.binary("Less", g.count(most), g.unsqueeze(g.cast(x, "int64"), [x.rank]), "bool")
    return {"Y": g.cast(within, str(name_of(op.attr("out_dtype"))))}
