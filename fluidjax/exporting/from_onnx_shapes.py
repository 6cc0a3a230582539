"""ONNX's nodes on shapes, indices and selections: sizes that are computed while the model runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.dtypes import enum_of, name_of
from .from_onnx import Importer, Lacks, Node, rule


def _cast(m: Importer, name: str, dtype: str, out: str) -> str:
    before = m.var(name).dtype
    return m.op("cast", {"X": name}, {"Out": out}, in_dtype=before, out_dtype=enum_of(dtype))


@rule("Shape")
def shape(m: Importer, n: Node) -> None:
    rank, out = m.rank(n.inputs[0]), n.outputs[0]
    first, last, _ = slice(n.attrs.get("start", 0), n.attrs.get("end", rank)).indices(rank)
    sizes = m.op("shape", {"Input": n.inputs[0]}, {"Out": m.new(f"{out}.sizes")})
    if (first, last) != (0, rank):
        part = m.new(f"{out}.part")
        sizes = m.op(
            "slice", {"Input": sizes}, {"Out": part}, axes=[0], starts=[first], ends=[last]
        )
    _cast(m, sizes, "int64", out)


@rule("ConstantOfShape")
def filled(m: Importer, n: Node) -> None:
    value = np.zeros(1, np.float32)
    if "value" in n.attrs:
        value = m.package.numpy_helper.to_array(n.attrs["value"]).reshape(-1)
    dtype = enum_of(name_of(str(value.dtype)))
    m.op(
        "fill_constant", {"ShapeTensor": n.inputs[0]}, {"Out": n.outputs[0]},
        value=float(value[0]), dtype=dtype, shape=[],
    )  # fmt: skip


@rule("Range")
def counted(m: Importer, n: Node) -> None:
    start, end, step = n.inputs
    m.op("range", {"Start": start, "End": end, "Step": step}, {"Out": n.outputs[0]})


@rule("Where")
def choose(m: Importer, n: Node) -> None:
    condition, x, y = n.inputs
    m.op("where", {"Condition": condition, "X": x, "Y": y}, {"Out": n.outputs[0]})


@rule("Expand")
def expand(m: Importer, n: Node) -> None:
    """Expand by a broadcast on both sides: a size 1 of either side takes the other's size."""
    all_true = m.new(f"{n.outputs[0]}.all")
    m.op(
        "fill_constant", {"ShapeTensor": n.inputs[1]}, {"Out": all_true},
        value=1.0, dtype=enum_of("bool"), shape=[],
    )  # fmt: skip
    x = n.inputs[0]
    m.op("where", {"Condition": all_true, "X": x, "Y": x}, {"Out": n.outputs[0]})


@rule("Tile")
def tile(m: Importer, n: Node) -> None:
    ins, outs = {"X": n.inputs[0]}, {"Out": n.outputs[0]}
    if n.inputs[1] in m.constants:
        m.op("tile", ins, outs, repeat_times=[int(k) for k in m.constants[n.inputs[1]]])
    else:
        m.op("tile", {**ins, "RepeatTimes": n.inputs[1]}, outs)


@rule("Compress")
def compress(m: Importer, n: Node) -> None:
    x, out = n.inputs[0], n.outputs[0]
    if "axis" not in n.attrs:
        flat = m.new(f"{out}.flat")
        m.op("reshape2", {"X": x}, {"Out": flat, "XShape": f"{flat}.shape"}, shape=[-1])
        x = flat
    places, column = m.new(f"{out}.places"), m.new(f"{out}.column")
    m.op("where_index", {"Condition": n.inputs[1]}, {"Out": column})
    m.op("reshape2", {"X": column}, {"Out": places, "XShape": f"{places}.shape"}, shape=[-1])
    axis = int(n.attrs.get("axis", 0)) % m.rank(x)
    m.op("gather", {"X": x, "Index": places}, {"Out": out}, axis=axis)


@rule("GatherND")
def gather_nd(m: Importer, n: Node) -> None:
    if n.attrs.get("batch_dims"):
        raise Lacks("its first axes are a batch")
    m.op("gather_nd", {"X": n.inputs[0], "Index": n.inputs[1]}, {"Out": n.outputs[0]})


@rule("GatherElements")
def gather_along(m: Importer, n: Node) -> None:
    ins = {"Input": n.inputs[0], "Index": n.inputs[1]}
    m.op("take_along_axis", ins, {"Result": n.outputs[0]}, Axis=int(n.attrs.get("axis", 0)))


_REDUCED = {"none": "assign", "add": "add", "mul": "mul", "max": "amax", "min": "amin"}


@rule("ScatterElements")
def scatter_along(m: Importer, n: Node) -> None:
    ins = dict(zip(("Input", "Index", "Value"), n.inputs, strict=True))
    how = _REDUCED[n.text("reduction", "none")]
    m.op("put_along_axis", ins, {"Result": n.outputs[0]}, Axis=int(n.attrs.get("axis", 0)), Reduce=how)  # fmt: skip


@rule("ScatterND")
def scatter_nd(m: Importer, n: Node) -> None:
    """Store values at positions; each column of the indices is the position on one axis."""
    (x, index, value), (out,) = n.inputs, n.outputs
    how = n.text("reduction", "none")
    if how not in ("none", "add"):
        raise Lacks(f"it combines what is there by {how}")
    count = m.var(index).shape[-1]
    if count < 0:
        raise Lacks("how many axes its indices have is open")
    columns = [m.new(f"{out}.axis{i}") for i in range(count)]
    last = m.rank(index) - 1
    for i, column in enumerate(columns):
        span = {"axes": [last], "starts": [i], "ends": [i + 1], "decrease_axis": [last]}
        m.op("slice", {"Input": index}, {"Out": column}, **span)
    ins = {"x": x, "indices": columns, "value": value}
    m.op("index_put", ins, {"out": out}, accumulate=how == "add")


@rule("TopK")
def top_k(m: Importer, n: Node) -> None:
    out, where = (name or m.new("top_k") for name in n.outputs)
    ins: dict[str, Any] = {"X": n.inputs[0]}
    attrs = {"axis": int(n.attrs.get("axis", -1)), "largest": bool(n.attrs.get("largest", 1))}
    if n.inputs[1] in m.constants:
        attrs["k"] = int(m.constants[n.inputs[1]].reshape(-1)[0])
    else:
        ins["K"] = n.inputs[1]
    m.op("top_k_v2", ins, {"Out": out, "Indices": where}, **attrs)


@rule("ArgMax")
def arg_max(m: Importer, n: Node) -> None:
    if n.attrs.get("select_last_index"):
        raise Lacks("it takes the last of several maxima")
    keep = bool(n.attrs.get("keepdims", 1))
    axis, dtype = int(n.attrs.get("axis", 0)), enum_of("int64")
    m.op("arg_max", {"X": n.inputs[0]}, {"Out": n.outputs[0]}, axis=axis, keepdims=keep, dtype=dtype)  # fmt: skip


@rule("CumSum")
def running_sum(m: Importer, n: Node) -> None:
    axis = int(m.known(n, 1, "axis").reshape(-1)[0])
    backwards, exclusive = bool(n.attrs.get("reverse")), bool(n.attrs.get("exclusive"))
    ins, outs = {"X": n.inputs[0]}, {"Out": n.outputs[0]}
    m.op("cumsum", ins, outs, axis=axis, reverse=backwards, exclusive=exclusive)


@rule("Pad")
def pad(m: Importer, n: Node) -> None:
    rank, mode = m.rank(n.inputs[0]), n.text("mode", "constant")
    if mode != "constant":
        raise Lacks(f"its mode is {mode}")
    pads = m.numbers(n, 1, "pads") or [0] * 2 * rank
    axes = m.numbers(n, 3, "axes") or list(range(rank))
    if min(pads, default=0) < 0:
        raise Lacks("it pads by less than nothing")
    value = float(m.known(n, 2, "value").reshape(-1)[0]) if n.has(2) else 0.0
    each = [0] * 2 * rank
    for i, axis in enumerate(axes):
        each[2 * (axis % rank) : 2 * (axis % rank) + 2] = pads[i], pads[i + len(axes)]
    m.op("pad", {"X": n.inputs[0]}, {"Out": n.outputs[0]}, paddings=each, pad_value=value)


@rule("Mod")
def modulo(m: Importer, n: Node) -> None:
    if n.attrs.get("fmod"):
        raise Lacks("its result has the sign of what is divided")
    (x, y), (out,) = n.inputs, n.outputs
    # for integers: ours has the sign of x, ONNX's that of y
    rest = m.op("elementwise_mod", {"X": x, "Y": y}, {"Out": m.new(f"{out}.rest")})
    over = m.op("elementwise_add", {"X": rest, "Y": y}, {"Out": m.new(f"{out}.over")})
    m.op("elementwise_mod", {"X": over, "Y": y}, {"Out": out})


@rule("Einsum")
def einsum(m: Importer, n: Node) -> None:
    m.op("einsum", {"Operands": list(n.inputs)}, {"Out": n.outputs[0]}, equation=n.text("equation", ""))  # fmt: skip


@rule("InstanceNormalization")
def instance_norm(m: Importer, n: Node) -> None:
    x, scale, bias = n.inputs
    y = n.outputs[0]
    outs = {"Y": y, "SavedMean": m.new(f"{y}.mean"), "SavedVariance": m.new(f"{y}.variance")}
    epsilon = float(n.attrs.get("epsilon", 1e-5))
    m.op("instance_norm", {"X": x, "Scale": scale, "Bias": bias}, outs, epsilon=epsilon)
