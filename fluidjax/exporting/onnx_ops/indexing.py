"""Elements selected by position or by order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Value
from ..rules import Op, rule
from ..values import Lacking


@rule("lookup_table", "lookup_table_v2", "embedding")
def lookup(g: Graph, op: Op) -> Value:
    table, ids = op["W"], op["Ids"]
    lengths = ids.lengths
    if op.type == "lookup_table":
        ids = g.squeeze(ids, [-1])
    padding = int(op.attr("padding_idx"))
    if padding != -1:
        padding = padding if padding >= 0 else table.sizes[0] + padding
        if table.const is not None and ids.const is None:
            # the padding row is zero in a table of its own
            rows = table.const.copy()
            rows[padding] = 0
            if np.array_equal(rows, table.const):
                return g.gather(table, ids).ragged(lengths)
        found = g.gather(table, ids)
        nothing = g.unsqueeze(g.binary("Equal", ids, g.number(padding, ids), "bool"), [ids.rank])
        return g.where(nothing, g.number(0, table), found).ragged(lengths)
    return g.gather(table, ids).ragged(lengths)


@rule("gather")
def gather(g: Graph, op: Op) -> Value:
    x, index, axis = op["X"], op["Index"], int(op.attr("axis") or 0)
    given = op.get("Axis")
    if given is not None:
        if given.const is None:
            op.refuse("Axis")
        axis = int(given.const.item())  # type: ignore[union-attr]
    if index.rank > 1:
        index = g.reshape(index, [-1])
    return g.gather(x, index, axis)


@rule("gather_nd")
def gather_nd(g: Graph, op: Op) -> Value:
    x, index = op["X"], op["Index"]
    shape = (*index.sizes[:-1], *x.sizes[index.sizes[-1] :])
    return g.add("GatherND", x, g.cast(index, "int64"), shape=shape)


@rule("index_select")
def index_select(g: Graph, op: Op) -> Value:
    return g.gather(op["X"], op["Index"], int(op.attr("dim")))


@rule("index_sample")
def index_sample(g: Graph, op: Op) -> Value:
    return g.add("GatherElements", op["X"], op["Index"], shape=op["Index"].shape, axis=1)


@rule("take_along_axis")
def take_along_axis(g: Graph, op: Op) -> dict[str, Value]:
    x, index = op["Input"], op["Index"]
    return {
        "Result": g.add("GatherElements", x, index, shape=index.shape, axis=int(op.attr("Axis")))
    }


@rule("scatter")
def scatter(g: Graph, op: Op) -> Value:
    x, ids, updates = op["X"], op["Ids"], op["Updates"]
    at = g.reshape(g.cast(ids, "int64"), [-1, 1])
    if op.attr("overwrite"):
        return g.like("ScatterND", x, at, updates)
    # named rows begin at zero
    zeros = g.times(updates, 0.0)
    emptied = g.like("ScatterND", x, at, zeros)
    return g.add("ScatterND", emptied, at, updates, shape=x.shape, reduction="add")


@rule("scatter_nd_add")
def scatter_nd_add(g: Graph, op: Op) -> Value:
    x = op["X"]
    index = g.cast(op["Index"], "int64")
    return g.add("ScatterND", x, index, op["Updates"], shape=x.shape, reduction="add")


@rule("top_k", "top_k_v2")
def top_k(g: Graph, op: Op) -> dict[str, Value]:
    x, given = op["X"], op.get("K")
    axis = -1 if op.attr("axis") is None else int(op.attr("axis"))
    if given is not None and given.const is None:
        count, size = g.cast(g.reshape(given, [1]), "int64"), -1
    else:
        size = int(op.attr("k") if given is None else given.const.item())  # type: ignore[union-attr]
        count = g.ints(size)
    shape = tuple(size if a == axis % x.rank else n for a, n in enumerate(x.sizes))
    largest = 1 if op.attr("largest") is None else int(op.attr("largest"))
    out, index = g.many(
        "TopK", [x, count], [(x.dtype, shape), ("int64", shape)], axis=axis, largest=largest
    )
    return {"Out": out.ragged(x.lengths), "Indices": index.ragged(x.lengths)}


@rule("argsort")
def argsort(g: Graph, op: Op) -> dict[str, Value]:
    x, axis = op["X"], int(op.attr("axis")) % op["X"].rank
    whole = g.size(x, axis)
    count = g.vector([whole])
    out, index = g.many(
        "TopK", [x, count], [(x.dtype, x.shape), ("int64", x.shape)], axis=axis,
        largest=int(bool(op.attr("descending"))),
    )  # fmt: skip
    return {"Out": out, "Indices": index}


@rule("arg_max", "arg_min")
def arg(g: Graph, op: Op) -> Value:
    from ...base.dtypes import name_of

    x, axis, keep = op["X"], int(op.attr("axis")), bool(op.attr("keepdims"))
    if op.attr("flatten"):
        if keep:
            raise Lacking("it flattens, and keeps the axes")
        x, axis = g.reshape(x, [-1]), 0
    at = axis % x.rank
    shape = tuple(1 if a == at else n for a, n in enumerate(x.sizes) if keep or a != at)
    kind = "ArgMax" if op.type == "arg_max" else "ArgMin"
    made = g.add(kind, x, dtype="int64", shape=shape, axis=axis, keepdims=int(keep))
    declared = op.declared("Out")
    if made.shape == () and declared is not None and declared.shape == (1,):
        made = g.reshape(made, [1])
    wanted = op.attr("dtype")
    return made if wanted in (None, -1) else g.cast(made, str(name_of(wanted)))


@rule("one_hot", "one_hot_v2")
def one_hot(g: Graph, op: Op) -> Value:
    from ...base.dtypes import name_of

    ids, given = op["X"], op.get("depth_tensor")
    lengths = ids.lengths
    if op.type == "one_hot":
        ids = g.squeeze(ids, [-1])
    if given is not None and given.const is None:
        depth, size = g.cast(g.reshape(given, [1]), "int64"), -1
    else:
        size = int(op.attr("depth") if given is None else given.const.item())  # type: ignore[union-attr]
        depth = g.ints(size)
    places = g.count(depth if size < 0 else size)
    same = g.binary("Equal", g.unsqueeze(g.cast(ids, "int64"), [ids.rank]), places, "bool")
    dtype = str(name_of(op.attr("dtype")))
    made = g.cast(same, dtype)
    return Value(made.name, dtype, (*ids.sizes, size)).ragged(lengths)


@rule("where_index")
def where_index(g: Graph, op: Op) -> Value:
    x = op["Condition"]
    there = x if x.dtype == "bool" else g.cast(x, "bool")
    found = g.add("NonZero", there, dtype="int64", shape=(x.rank, -1))
    return g.transpose(found, [1, 0])


@rule("masked_select")
def masked_select(g: Graph, op: Op) -> dict[str, Value]:
    x, mask = g.reshape(op["X"], [-1]), g.reshape(op["Mask"], [-1])
    return {"Y": g.add("Compress", x, mask, shape=(-1,), axis=0)}


@rule("multiplex")
def multiplex(g: Graph, op: Op) -> Value:
    parts, ids = op.all("X"), op["Ids"]
    stacked = g.concat([g.unsqueeze(p, [1]) for p in parts], 1)
    at = g.cast(g.reshape(ids, [-1, 1]), "int64")
    return g.add("GatherND", stacked, at, shape=parts[0].shape, batch_dims=1)


@rule("tril_triu")
def triangle(g: Graph, op: Op) -> Value:
    x = op["X"]
    return g.like(
        "Trilu", x, g.constant(int(op.attr("diagonal")), np.int64), upper=int(not op.attr("lower"))
    )


@rule("diag")
def diagonal(g: Graph, op: Op) -> dict[str, Any] | Value:
    x = op["Diagonal"]
    n = x.sizes[0]
    if n < 0:
        raise Lacking("the size of its diagonal is open")
    return g.where(g.constant(np.eye(n, dtype=bool)), g.unsqueeze(x, [1]), g.number(0, x))


@rule("unique")
def unique(g: Graph, op: Op) -> dict[str, Value]:
    if op.attr("is_sorted"):
        raise Lacking("it is 2.x's unique")
    x = op["X"]
    wide = [(x.dtype, (-1,)), ("int64", (-1,)), ("int64", (-1,))]
    out, _, inverse = g.many("Unique", [x], wide, sorted=0)
    return {"Out": out, "Index": g.cast(inverse, "int32" if op.attr("dtype") == 2 else "int64")}


@rule("gather_tree")
def gather_tree(g: Graph, op: Op) -> Value:
    """The beams' paths, from the last step back: a Scan over the steps."""
    ids, parents = op["Ids"], op["Parents"]
    beams = ids.sizes[1:]
    inner = g.inner()
    at = Value(g.names.new(f"{g.base}/beam"), "int64", beams)
    each = [Value(g.names.new(f"{g.base}/{n}"), ids.dtype, beams) for n in ("ids", "parents")]
    found = inner.add("GatherElements", each[0], at, shape=beams, axis=1)
    before = inner.add("GatherElements", inner.cast(each[1], "int64"), at, shape=beams, axis=1)
    inner.inputs, inner.outputs = [at, *each], [before, found]
    places = g.count(g.size(ids, 2))
    start = g.add("Expand", places, g.vector([g.size(ids, 1), g.size(ids, 2)]), shape=beams)
    _, paths = g.many(
        "Scan", [start, ids, parents], [("int64", beams), (ids.dtype, ids.shape)], body=inner,
        num_scan_inputs=2, scan_input_directions=[1, 1], scan_output_directions=[1],
    )  # fmt: skip
    return paths
