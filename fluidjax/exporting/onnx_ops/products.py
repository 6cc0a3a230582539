"""Products of matrices, and normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Size
from ..rules import Op, rule
from ..values import Lacking, Value


def flat(g: Graph, x: Value, columns: int) -> Value:
    """x as a matrix whose rows are its first axes."""
    if x.rank == 2 and columns == 1:
        return x
    before, behind = x.sizes[:columns], x.sizes[columns:]
    if -1 not in behind:
        return g.reshape(x, [-1 if -1 in before else int(np.prod(before)), int(np.prod(behind))])
    return g.add("Flatten", x, shape=(-1 if -1 in before else int(np.prod(before)), -1), axis=columns)  # fmt: skip


@rule("mul")
def mul(g: Graph, op: Op) -> Value:
    x = op["X"]
    y = g.whole(op["Y"], x.dtype)
    rows, columns = int(op.attr("x_num_col_dims")), int(op.attr("y_num_col_dims"))
    if y.rank == 2 and columns == 1 and x.rank == rows + 1:
        return g.matmul(x, y).ragged(x.lengths)  # rows of more axes are as many matrices
    made = g.matmul(flat(g, x, rows), flat(g, y, columns))
    sizes: list[Size] = [g.size(x, a) for a in range(rows)]
    sizes += [g.size(y, a) for a in range(columns, y.rank)]
    return g.reshape(made, sizes).ragged(x.lengths)


@rule("matmul", "matmul_v2")
def matmul(g: Graph, op: Op) -> Value:
    x = op["X"]
    y = g.whole(op["Y"], x.dtype)
    transposes = ("transpose_X", "transpose_Y") if op.type == "matmul" else ("trans_x", "trans_y")
    tx, ty = (bool(op.attr(n)) for n in transposes)
    if (op.attr("head_number") or 1) > 1 or op.attr("fused_reshape_Out") or op.attr("fused_transpose_Out"):  # fmt: skip
        raise Lacking("it multiplies by heads, or is fused with other ops")
    gone = []
    if op.type == "matmul":  # a vector is a row, or a column if it is transposed
        if x.rank == 1:
            gone += [] if tx else [-2]
            x, tx = g.unsqueeze(x, [1] if tx else [0]), False
        if y.rank == 1:
            gone += [] if ty else [-1]
            y, ty = g.unsqueeze(y, [0] if ty else [1]), False
        if min(x.rank, y.rank) > 2 and x.rank != y.rank:
            raise Lacking("its operands count their matrices by other axes")
    x = swapped(g, x) if tx and x.rank > 1 else x
    y = swapped(g, y) if ty and y.rank > 1 else y
    made = g.matmul(x, y)
    if min(x.rank, y.rank) < 2:
        lead = (*x.sizes[:-2], *y.sizes[:-2])
        tail = (*(x.sizes[-2:-1] if x.rank > 1 else ()), *(y.sizes[-1:] if y.rank > 1 else ()))
        made = Value(made.name, made.dtype, (*lead, *tail))
    alpha = 1.0 if op.attr("alpha") is None else float(op.attr("alpha"))
    if alpha != 1.0:
        made = g.times(made, alpha)
    made = g.squeeze(made, [a % made.rank for a in gone])
    declared = op.declared("Out")
    if made.shape == () and declared is not None and declared.shape == (1,):
        made = g.reshape(made, [1])
    return made.ragged(x.lengths)


def swapped(g: Graph, x: Value) -> Value:
    """x with its last two axes in the other order."""
    return g.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


@rule("bmm")
def bmm(g: Graph, op: Op) -> Value:
    return g.matmul(op["X"], op["Y"])


@rule("dot")
def dot(g: Graph, op: Op) -> Value:
    return g.reduce("Sum", g.times(op["X"], op["Y"]), [-1], True)


@rule("bilinear_tensor_product")
def bilinear(g: Graph, op: Op) -> Value:
    made = g.add("Einsum", op["X"], op["Weight"], op["Y"], equation="bm,imn,bn->bi",
                 shape=(op["X"].sizes[0], op["Weight"].sizes[0]))  # fmt: skip
    bias = op.get("Bias")
    return (made if bias is None else g.plus(made, bias)).ragged(op["X"].lengths)


@rule("fc")
def fc(g: Graph, op: Op) -> Value:
    x, w, columns = op["Input"], op["W"], int(op.attr("in_num_col_dims"))
    if op.attr("padding_weights"):
        raise Lacking("its weights are padded")
    made = g.matmul(x if x.rank == columns + 1 else flat(g, x, columns), w)
    bias = op.get("Bias")
    made = made if bias is None else g.plus(made, g.reshape(bias, [-1]))
    made = g.like("Relu", made) if op.attr("activation_type") == "relu" else made
    return g.reshape(made, [*(g.size(x, a) for a in range(columns)), w.sizes[1]]).ragged(x.lengths)


# normalisation


def _per_channel(g: Graph, v: Value, rank: int) -> Value:
    return g.reshape(v, [-1, *[1] * (rank - 2)]) if rank > 2 else v


def channels_last(op: Op, name: str) -> bool:
    return str(op.attr(name)) in ("NHWC", "NDHWC", "NLC")


@rule("batch_norm", "sync_batch_norm")
def batch_norm(g: Graph, op: Op) -> dict[str, Value]:
    x = op["X"]
    if not (op.attr("is_test") or op.attr("use_global_stats")) or op.attr("trainable_statistics"):
        raise Lacking(
            "it computes statistics of the batch",
            "export what predicts: clone(for_test=True), or the inference pass",
        )
    if channels_last(op, "data_layout") and x.rank > 2:
        order = [0, x.rank - 1, *range(1, x.rank - 1)]
        back = [0, *range(2, x.rank), 1]
        return {"Y": g.transpose(_normalised(g, op, g.transpose(x, order)), back)}
    return {"Y": _normalised(g, op, x).ragged(x.lengths)}


def _normalised(g: Graph, op: Op, x: Value) -> Value:
    given = [op[s] for s in ("Scale", "Bias", "Mean", "Variance")]
    return g.like("BatchNormalization", x, *given, epsilon=float(op.attr("epsilon")))


@rule("affine_channel")
def affine_channel(g: Graph, op: Op) -> Value:
    x, scale, bias = op["X"], op["Scale"], op["Bias"]
    if not channels_last(op, "data_layout"):
        scale, bias = (_per_channel(g, v, x.rank) for v in (scale, bias))
    return g.plus(g.times(x, scale), bias)


@rule("instance_norm")
def instance_norm(g: Graph, op: Op) -> dict[str, Value]:
    x = op["X"]
    scale, bias = (
        op.get(slot) or g.constant(np.full(x.sizes[1], fill, x.dtype))
        for slot, fill in (("Scale", 1.0), ("Bias", 0.0))
    )
    return {"Y": g.like("InstanceNormalization", x, scale, bias, epsilon=float(op.attr("epsilon")))}


@rule("layer_norm")
def layer_norm(g: Graph, op: Op) -> dict[str, Value]:
    x, begin = op["X"], int(op.attr("begin_norm_axis"))
    inner = x.sizes[begin:]
    if -1 in inner:
        raise Lacking("a size that it normalises over is open")
    scale, bias = (
        g.reshape(v, inner) if (v := op.get(slot)) is not None else None
        for slot in ("Scale", "Bias")
    )
    if scale is None:
        scale = g.constant(np.ones(inner, x.dtype))
    inputs = [x, scale] if bias is None else [x, scale, bias]
    epsilon = float(op.attr("epsilon"))
    made = g.add("LayerNormalization", *inputs, shape=x.shape, axis=begin, epsilon=epsilon)
    return {"Y": made.ragged(x.lengths)}


@rule("group_norm")
def group_norm(g: Graph, op: Op) -> dict[str, Value]:
    x, groups, last = op["X"], int(op.attr("groups")), channels_last(op, "data_layout")
    if last:
        x = g.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])
    c = x.sizes[1]
    sizes = [g.size(x, a) for a in range(x.rank)]
    apart = g.reshape(x, [sizes[0], groups, -1])
    ones, zeros = (g.constant(np.full(groups, v, x.dtype)) for v in (1.0, 0.0))
    made = g.like("InstanceNormalization", apart, ones, zeros, epsilon=float(op.attr("epsilon")))
    made = g.reshape(made, sizes)
    for slot, kind in (("Scale", "Mul"), ("Bias", "Add")):
        given = op.get(slot)
        if given is not None:
            made = g.binary(kind, made, g.reshape(given, [c, *[1] * (x.rank - 2)]))
    return {"Y": g.transpose(made, [0, *range(2, x.rank), 1]) if last else made}


@rule("norm")
def norm(g: Graph, op: Op) -> dict[str, Value]:
    x, axis = op["X"], int(op.attr("axis"))
    squares = g.reduce("Sum", g.times(x, x), [axis], True)
    size = g.like("Sqrt", g.plus(squares, float(op.attr("epsilon"))))
    return {"Out": g.over(x, size), "Norm": size}


@rule("p_norm")
def p_norm(g: Graph, op: Op) -> Value:
    x, order = op["X"], float(op.attr("porder"))
    axes = None if op.attr("asvector") else [int(op.attr("axis"))]
    keep = bool(op.attr("keepdim"))
    size = g.like("Abs", x)
    if order == float("inf"):
        return g.reduce("Max", size, axes, keep)
    if order == float("-inf"):
        return g.reduce("Min", size, axes, keep)
    if order == 0:
        there = g.like("Not", g.binary("Equal", x, g.number(0, x), "bool"))
        return g.reduce("Sum", g.cast(there, x.dtype), axes, keep)
    total = g.reduce("Sum", g.like("Pow", size, g.number(order, x)), axes, keep)
    return g.like("Pow", total, g.number(1 / order, x))


@rule("lrn")
def lrn(g: Graph, op: Op) -> dict[str, Value]:
    x, n = op["X"], int(op.attr("n"))
    if channels_last(op, "data_format") or (n % 2 == 0 and x.sizes[1] < 0):
        raise Lacking("its channels are last")
    before = (n - 1) // 2
    squares = g.times(x, x)
    c = x.sizes[1]
    from .shaping import padded

    wide = padded(g, squares, [0, before, 0, 0], [0, n - 1 - before, 0, 0], "constant", 0.0)
    around = g.slice(wide, 1, 0, c)
    for i in range(1, n):
        around = g.plus(around, g.slice(wide, 1, i, i + c))
    mid = g.plus(g.times(around, float(op.attr("alpha"))), float(op.attr("k")))
    return {"Out": g.times(x, g.like("Pow", mid, g.number(-float(op.attr("beta")), x))), "MidOut": mid}  # fmt: skip


# reductions and softmax

REDUCTIONS = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "prod": "Prod"}


@rule(*(f"reduce_{n}" for n in REDUCTIONS), "reduce_all", "reduce_any", "logsumexp")
def reduce(g: Graph, op: Op) -> Value:
    x = op["X"]
    name = op.type.removeprefix("reduce_")
    dims = op.attr("dim") if op.attr("dim") is not None else op.attr("axis")
    dims = list(dims) if isinstance(dims, tuple | list) else [dims]
    axes = None if op.attr("reduce_all") or not dims else [int(a) for a in dims]
    keep = bool(op.attr("keep_dim") if op.attr("keep_dim") is not None else op.attr("keepdim"))
    if name in ("all", "any"):
        found = g.reduce("Min" if name == "all" else "Max", g.cast(x, "int32"), axes, keep)
        made = g.cast(found, "bool")
    elif name == "logsumexp":
        made = g.reduce("LogSumExp", x, axes, keep)
    else:
        made = g.reduce(REDUCTIONS[name], x, axes, keep)
    declared = op.declared("Out")
    if made.shape == () and (declared is None or declared.shape == (1,)):
        made = g.reshape(made, [1])  # Fluid has no array without axes
    lost = axes is None or 0 in [a % max(x.rank, 1) for a in axes]
    return made.ragged(() if lost else x.lengths)


@rule("mean")
def mean(g: Graph, op: Op) -> Value:
    return g.reshape(g.reduce("Mean", op["X"], None, False), [1])


@rule("frobenius_norm")
def frobenius(g: Graph, op: Op) -> Value:
    axes = None if op.attr("reduce_all") else list(op.attr("dim"))
    made = g.reduce("L2", op["X"], axes, bool(op.attr("keep_dim")))
    return g.reshape(made, [1]) if made.shape == () else made


@rule("squared_l2_norm")
def squared_norm(g: Graph, op: Op) -> Value:
    return g.reshape(g.reduce("SumSquare", op["X"], None, False), [1])


@rule("softmax", "log_softmax")
def softmax(g: Graph, op: Op) -> Value:
    kind = "Softmax" if op.type == "softmax" else "LogSoftmax"
    return g.like(kind, op["X"], axis=int(op.attr("axis")))


@rule("cumsum")
def cumsum(g: Graph, op: Op) -> Value:
    x, axis = op["X"], op.attr("axis")
    if op.attr("flatten"):
        x, axis = g.reshape(x, [-1]), 0
    exclusive, reverse = int(bool(op.attr("exclusive"))), int(bool(op.attr("reverse")))
    return g.like("CumSum", x, g.constant(int(axis) % x.rank, np.int64), exclusive=exclusive, reverse=reverse)  # fmt: skip


@rule("softmax_with_cross_entropy")
def softmax_loss(g: Graph, op: Op) -> dict[str, Any]:
    x, label, axis = op["Logits"], op["Label"], int(op.attr("axis")) % op["Logits"].rank
    if op.attr("use_softmax") is False:
        raise Lacking("it takes what softmax made")
    log = g.like("LogSoftmax", x, axis=axis)
    if op.attr("soft_label"):
        loss = g.like("Neg", g.reduce("Sum", g.times(log, label), [axis], True))
    else:
        loss = g.like("Neg", _picked(g, log, label, axis, int(op.attr("ignore_index"))))
    return {"Softmax": g.like("Softmax", x, axis=axis), "Loss": loss.ragged(x.lengths)}


def _picked(g: Graph, x: Value, label: Value, axis: int, ignored: int) -> Value:
    """x at the labels along an axis, which is kept with size 1; 0 for ignored labels."""
    label = label if label.rank == x.rank else g.unsqueeze(label, [axis])
    skip = g.binary("Equal", label, g.number(ignored, label), "bool")
    safe = g.where(skip, g.number(0, label), label)
    found = g.add("GatherElements", x, safe, shape=label.shape, axis=axis)
    return g.where(skip, g.number(0, found), found)


@rule("cross_entropy", "cross_entropy2")
def cross_entropy(g: Graph, op: Op) -> dict[str, Value]:
    x, label = op["X"], op["Label"]
    tiny = g.number(1e-20, x)
    if op.attr("soft_label"):
        log = g.like("Log", g.binary("Max", x, tiny))
        return {
            "Y": g.like("Neg", g.reduce("Sum", g.times(log, label), [-1], True)).ragged(x.lengths)
        }
    if op.type == "cross_entropy2":
        raise Lacking("its other outputs have no form")
    shown = label if label.rank == x.rank else g.unsqueeze(label, [x.rank - 1])
    ignored = int(op.attr("ignore_index"))
    skip = g.binary("Equal", shown, g.number(ignored, label), "bool")
    safe = g.where(skip, g.number(0, label), shown)
    found = g.add("GatherElements", x, safe, shape=shown.shape, axis=x.rank - 1)
    loss = g.like("Neg", g.like("Log", g.binary("Max", found, tiny)))
    loss = g.where(skip, g.number(0, loss), loss)
    return {"Y": loss.ragged(x.lengths)}


@rule("accuracy")
def accuracy(g: Graph, op: Op) -> dict[str, Value]:
    found, label = op["Indices"], op["Label"]
    same = g.cast(g.binary("Equal", found, g.cast(label, found.dtype), "bool"), "int32")
    right = g.reduce("Sum", g.reduce("Max", same, [1], False), [0], True)
    count = g.cast(g.vector([g.size(found, 0)]), "int32")
    share = g.over(g.cast(right, "float32"), g.cast(count, "float32"))
    return {"Accuracy": share, "Correct": right, "Total": count}
