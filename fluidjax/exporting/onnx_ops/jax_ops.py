"""JAX's own ops (``jax.*``), from traced functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from ..graph import Graph, Size, Value
from ..open_sizes import shape_of, size, sizes, taken_whole
from ..rules import RULES, Op, rule
from ..values import Lacking
from .control import own, scalar

ONE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log",
    "logistic": "Sigmoid", "neg": "Neg", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan",
    "tanh": "Tanh",
}  # fmt: skip
SAME = ("stop_gradient", "copy", "sharding_constraint")
TWO = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "max": "Max",
    "min": "Min",
    "pow": "Pow",
}
COMPARED = {
    "eq": "Equal",
    "lt": "Less",
    "gt": "Greater",
    "le": "LessOrEqual",
    "ge": "GreaterOrEqual",
}
LOGIC = {"and": "And", "or": "Or", "xor": "Xor"}
REDUCED = {"reduce_sum": "Sum", "reduce_max": "Max", "reduce_min": "Min", "reduce_prod": "Prod"}


def _pair(g: Graph, op: Op) -> tuple[Value, Value]:
    """The two operands, one of which may be a literal."""
    if op.has("X") and op.has("Y"):
        return op["X"], op["Y"]
    if op.has("X"):
        return op["X"], g.number(op.attr("y"), op["X"])
    return g.number(op.attr("x"), op["Y"]), op["Y"]


def _unary(kind: str) -> Callable[[Graph, Op], Value]:
    return lambda g, op: g.like(kind, op["X"])


def _binary(kind: str, dtype: str | None) -> Callable[[Graph, Op], Value]:
    return lambda g, op: g.binary(kind, *_pair(g, op), dtype)


for _name, _kind in ONE.items():
    RULES[f"jax.{_name}"] = _unary(_kind)
for _name, _kind in TWO.items():
    RULES[f"jax.{_name}"] = _binary(_kind, None)
for _name, _kind in COMPARED.items():
    RULES[f"jax.{_name}"] = _binary(_kind, "bool")
for _name in SAME:
    RULES[f"jax.{_name}"] = lambda g, op: op["X"]

COMPOSED: dict[str, Callable[[Graph, Value], Value]] = {
    "square": lambda g, x: g.times(x, x),
    "one_minus_square": lambda g, x: g.times(g.plus(x, 1.0), g.minus(g.number(1, x), x)),
    "log2": lambda g, x: g.times(g.like("Log", x), 1 / math.log(2)),
    "rsqrt": lambda g, x: g.like("Reciprocal", g.like("Sqrt", x)),
    "erfc": lambda g, x: g.minus(g.number(1, x), g.like("Erf", x)),
    "log1p": lambda g, x: g.like("Log", g.plus(x, 1.0)),
    "expm1": lambda g, x: g.minus(g.like("Exp", x), 1.0),
    "exp2": lambda g, x: g.like("Exp", g.times(x, math.log(2))),
}


def _composed(build: Callable[[Graph, Value], Value]) -> Callable[[Graph, Op], Value]:
    return lambda g, op: build(g, op["X"])


for _name, _build in COMPOSED.items():
    RULES[f"jax.{_name}"] = _composed(_build)


@rule("jax.ne")
def not_equal(g: Graph, op: Op) -> Value:
    return g.like("Not", g.binary("Equal", *_pair(g, op), "bool"))


@rule(*(f"jax.{n}" for n in LOGIC))
def logic(g: Graph, op: Op) -> Value:
    x, y = _pair(g, op)
    if x.dtype != "bool":
        if g.opset < 18:
            raise Lacking("bits of integers need opset 18", "opset=18")
        return g.binary(f"Bitwise{LOGIC[op.type[4:]]}", x, y)
    return g.binary(LOGIC[op.type[4:]], x, y)


@rule("jax.not")
def negated(g: Graph, op: Op) -> Value:
    if op["X"].dtype != "bool" and g.opset < 18:
        raise Lacking("bits of integers need opset 18", "opset=18")
    return g.like("Not" if op["X"].dtype == "bool" else "BitwiseNot", op["X"])


@rule("jax.rem")
def remainder(g: Graph, op: Op) -> Value:
    x, y = _pair(g, op)
    return g.add("Mod", x, y, shape=g.binary("Mod", x, y).shape, fmod=1)


@rule("jax.integer_pow")
def integer_power(g: Graph, op: Op) -> Value:
    x, y = op["X"], int(op.attr("y"))
    if y == 2:
        return g.times(x, x)
    if y == 3:
        return g.times(g.times(x, x), x)
    return g.like("Pow", x, g.number(y, x))


@rule("jax.round")
def rounded(g: Graph, op: Op) -> Value:
    x = op["X"]
    if op.attr("to_even"):
        return g.like("Round", x)
    size = g.like("Abs", x)
    whole = g.like("Floor", size)
    is_over = g.binary("GreaterOrEqual", g.minus(size, whole), g.number(0.5, x), "bool")
    return g.times(g.like("Sign", x), g.plus(whole, g.cast(is_over, x.dtype)))


@rule("jax.is_finite")
def is_finite(g: Graph, op: Op) -> Value:
    x = op["X"]
    nan = g.add("IsNaN", x, dtype="bool", shape=x.shape)
    return g.like("Not", g.binary("Or", nan, g.add("IsInf", x, dtype="bool", shape=x.shape)))


@rule("jax.clamp")
def clamp(g: Graph, op: Op) -> Value:
    x = op["X"]
    low, high = (
        op.get(slot) or g.number(op.attr(name), x)
        for slot, name in (("Min", "min"), ("Max", "max"))
    )
    return g.binary("Min", g.binary("Max", x, low), high)


@rule("jax.select_n")
def select(g: Graph, op: Op) -> Value:
    which, cases = op["Which"], op.all("Cases")
    if which.dtype == "bool":
        return g.where(which, cases[1], cases[0])
    made = cases[-1]
    for i, case in reversed(list(enumerate(cases[:-1]))):
        made = g.where(g.binary("Equal", which, g.number(i, which), "bool"), case, made)
    return made


@rule("jax.convert_element_type")
def convert(g: Graph, op: Op) -> Value:
    return g.cast(op["X"], str(op.attr("new_dtype")))


@rule("jax.full")
def full(g: Graph, op: Op) -> Value:
    dtype, shape = str(op.attr("dtype")), sizes(g, op.attr("shape"))
    if op.has("Value"):
        return g.expand(g.cast(op["Value"], dtype), shape)
    return g.filled(op.attr("value"), dtype, shape)


@rule("jax.iota")
def iota(g: Graph, op: Op) -> Value:
    shape, axis = sizes(g, op.attr("shape")), int(op.attr("dimension"))
    row = g.cast(g.count(shape[axis]), str(op.attr("dtype")))
    row = g.unsqueeze(row, [a for a in range(len(shape)) if a != axis])
    return g.expand(row, [1 if a == axis else n for a, n in enumerate(shape)])


@rule("jax.dim_as_value")
def dim_as_value(g: Graph, op: Op) -> Value:
    found = size(g, op.attr("dim"))
    value = g.constant(found, "int64") if isinstance(found, int) else g.reshape(found, [])
    return g.cast(value, str(op.attr("dtype")))


# shapes


@rule("jax.reshape")
def reshape(g: Graph, op: Op) -> Value:
    if op.attr("dimensions"):
        raise Lacking("it reads its elements in another order")
    return g.reshape(op["X"], sizes(g, op.attr("new_sizes")))


@rule("jax.transpose")
def transpose(g: Graph, op: Op) -> Value:
    return g.transpose(op["X"], op.attr("permutation"))


@rule("jax.squeeze")
def squeeze(g: Graph, op: Op) -> Value:
    return g.squeeze(op["X"], op.attr("dimensions"))


@rule("jax.expand_dims")
def expand_dims(g: Graph, op: Op) -> Value:
    return g.unsqueeze(op["X"], op.attr("dimensions"))


@rule("jax.broadcast_in_dim")
def broadcast_in_dim(g: Graph, op: Op) -> Value:
    x, shape = op["X"], sizes(g, op.attr("shape"))
    axes = list(op.attr("broadcast_dimensions"))
    wide = g.unsqueeze(x, [a for a in range(len(shape)) if a not in axes])
    # an axis with several entries, or an open one, has its final size already
    more = [n if m == 1 else 1 for n, m in zip(shape, wide.sizes, strict=True)]
    if all(n == 1 for n in more):
        return wide
    made = g.expand(wide, more)
    return Value(made.name, made.dtype, shape_of(shape))


@rule("jax.concatenate")
def concatenate(g: Graph, op: Op) -> Value:
    return g.concat(op.all("X"), int(op.attr("dimension")))


@rule("jax.optimization_barrier")
def barrier(g: Graph, op: Op) -> dict[str, Any]:
    return {"Out": op.all("X")}


@rule("jax.split")
def split(g: Graph, op: Op) -> dict[str, Any]:
    return {"Out": g.split(op["X"], int(op.attr("axis")), sizes(g, op.attr("sizes")))}


@rule("jax.slice")
def sliced(g: Graph, op: Op) -> Value:
    x = op["X"]
    starts, ends = op.attr("start_indices"), op.attr("limit_indices")
    steps, all_of = op.attr("strides") or [1] * x.rank, taken_whole(op, "X", ends)
    for axis, (a, b, s) in enumerate(zip(starts, ends, steps, strict=True)):
        if (str(a), all_of[axis], s) != ("0", True, 1):
            x = g.slice(x, axis, size(g, a), size(g, b), int(s))
    return x


@rule("jax.rev")
def reverse(g: Graph, op: Op) -> Value:
    x = op["X"]
    for axis in op.attr("dimensions"):
        x = g.slice(x, axis, -1, -(2**62), -1)
        x = Value(x.name, x.dtype, op["X"].shape)
    return x


@rule("jax.pad")
def pad(g: Graph, op: Op) -> Value:
    x, low, high = op["X"], sizes(g, op.attr("low")), sizes(g, op.attr("high"))
    if any(op.attr("interior")):
        raise Lacking("it pads between elements")
    value = op.get("Value")
    value = g.number(op.attr("value"), x) if value is None else g.reshape(value, [])
    shape = tuple(
        n + a + b if n >= 0 and isinstance(a, int) and isinstance(b, int) else -1
        for n, a, b in zip(x.sizes, low, high, strict=True)
    )
    return g.add("Pad", x, g.vector([*low, *high]), value, shape=shape, mode="constant")


def _starts(g: Graph, op: Op, x: Value, part: Sequence[Size]) -> Value:
    """The start of a part of x, shifted so that the part is within x."""
    at = g.concat([g.reshape(g.cast(s, "int64"), [1]) for s in op.all("Starts")], 0)
    return _within(g, at, x, part)


def _within(g: Graph, at: Value, x: Value, part: Sequence[Size]) -> Value:
    if all(isinstance(n, int) and n >= 0 for n in (*x.sizes, *part)):
        most = g.ints(*(n - m for n, m in zip(x.sizes, part, strict=True)))  # type: ignore[operator]
    else:
        most = g.minus(g.vector([g.size(x, a) for a in range(x.rank)]), g.vector(part))
    return g.binary("Min", g.binary("Max", at, g.ints(0)), most)


def _part(g: Graph, x: Value, at: Value, part: Sequence[Size]) -> Value:
    ends, axes = g.plus(at, g.vector(part)), g.ints(*range(x.rank))
    return g.add("Slice", x, at, ends, axes, shape=shape_of(part))


@rule("jax.dynamic_slice")
def dynamic_slice(g: Graph, op: Op) -> Value:
    x, part = op["X"], sizes(g, op.attr("slice_sizes"))
    return _part(g, x, _starts(g, op, x, part), part)


@rule("jax.dynamic_update_slice")
def dynamic_update_slice(g: Graph, op: Op) -> Value:
    x, part = op["X"], op["Update"]
    var = op.found(op.desc.input("Update")[0])
    texts = var.dims if var is not None and var.dims else ("",) * part.rank
    wanted = [text or n for n, text in zip(part.sizes, texts, strict=True)]
    # axes that are written whole go last, and their sizes may be open
    whole = [a for a, same in enumerate(taken_whole(op, "X", wanted)) if same]
    order = [*(a for a in range(x.rank) if a not in whole), *whole]
    axes = order[: x.rank - len(whole)]
    if not axes:
        return g.like("Identity", part)
    if min(part.sizes[a] for a in axes) < 0:
        raise Lacking("what it writes has an open size", "fix that size")
    counts = [np.arange(part.sizes[a]) for a in axes]
    places = np.stack(np.meshgrid(*counts, indexing="ij"), -1)
    sizes = [g.size(part, a) for a in range(part.rank)]
    start = g.gather(_starts(g, op, x, sizes), g.ints(*axes))
    at, moved = g.plus(g.constant(places, np.int64), start), g.transpose(x, order)
    found = g.like("ScatterND", moved, at, g.transpose(part, order))
    return g.transpose(found, [order.index(a) for a in range(x.rank)])


@rule("jax.stack")
def stack(g: Graph, op: Op) -> Value:
    axis = int(op.attr("axis"))
    return g.concat([g.unsqueeze(v, [axis]) for v in op.all("X")], axis)


@rule("jax.unstack")
def unstack(g: Graph, op: Op) -> dict[str, Any]:
    x, axis = op["X"], int(op.attr("axis"))
    return {"Out": [g.squeeze(p, [axis]) for p in g.split(x, axis, [1] * x.sizes[axis])]}


# products, reductions, windows


@rule("jax.dot_general")
def dot_general(g: Graph, op: Op) -> Value:
    """MatMul if possible, else Einsum, which can express every contraction."""
    x, y = op["Lhs"], op["Rhs"]
    contract = list(op.attr("lhs_contract")), list(op.attr("rhs_contract"))
    batch = list(op.attr("lhs_batch")), list(op.attr("rhs_batch"))
    if not batch[0] and contract == ([x.rank - 1], [0]) and y.rank == 2 and x.rank >= 2:
        return g.matmul(x, y)
    count = len(batch[0])
    lead = list(range(count))
    if batch == (lead, lead) and x.rank == y.rank == count + 2 and count:
        if contract == ([count + 1], [count]):
            return g.matmul(x, y)
        if contract == ([count + 1], [count + 1]):
            return g.matmul(x, g.transpose(y, [*lead, count + 1, count]))
    letters = iter(ascii_letters)
    left = [next(letters) for _ in range(x.rank)]
    right = [next(letters) for _ in range(y.rank)]
    for mine, other in ((contract[0], contract[1]), (batch[0], batch[1])):
        for a, b in zip(mine, other, strict=True):
            right[b] = left[a]
    rest = [left[a] for a in range(x.rank) if a not in contract[0] and a not in batch[0]]
    rest += [right[a] for a in range(y.rank) if a not in contract[1] and a not in batch[1]]
    out = [left[a] for a in batch[0]] + rest
    known = dict(zip([*left, *right], [*x.sizes, *y.sizes], strict=True))
    equation = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return g.add("Einsum", x, y, equation=equation, shape=tuple(known[c] for c in out))


@rule(*(f"jax.{n}" for n in REDUCED))
def reduce(g: Graph, op: Op) -> Value:
    axes = list(op.attr("axes"))
    return g.reduce(REDUCED[op.type[4:]], op["X"], axes, False) if axes else op["X"]


@rule("jax.reduce_and", "jax.reduce_or")
def reduce_truth(g: Graph, op: Op) -> Value:
    if op["X"].dtype != "bool":
        raise Lacking("bits of integers are reduced")
    kind = "Min" if op.type == "jax.reduce_and" else "Max"
    return g.cast(g.reduce(kind, g.cast(op["X"], "int32"), list(op.attr("axes")), False), "bool")


@rule("jax.argmax", "jax.argmin")
def arg(g: Graph, op: Op) -> Value:
    x, axis = op["X"], int(op.attr("axis"))
    shape = tuple(n for a, n in enumerate(x.sizes) if a != axis)
    kind = "ArgMax" if op.type == "jax.argmax" else "ArgMin"
    made = g.add(kind, x, dtype="int64", shape=shape, axis=axis, keepdims=0)
    return g.cast(made, str(op.attr("index_dtype")))


@rule("jax.cumsum")
def cumsum(g: Graph, op: Op) -> Value:
    axis = g.constant(int(op.attr("axis")), np.int64)
    return g.like("CumSum", op["X"], axis, reverse=int(bool(op.attr("reverse"))))


@rule("jax.sort")
def sort(g: Graph, op: Op) -> dict[str, Any]:
    parts, axis = op.all("X"), int(op.attr("dimension"))
    if int(op.attr("num_keys") or 1) != 1:
        raise Lacking("it sorts by several keys")
    x = parts[0]
    outs = [(x.dtype, x.shape), ("int64", x.shape)]
    first, order = g.many("TopK", [x, g.vector([g.size(x, axis)])], outs, axis=axis, largest=0)
    rest = [g.add("GatherElements", p, order, shape=p.shape, axis=axis) for p in parts[1:]]
    return {"Out": [first, *rest]}


@rule("jax.top_k")
def top_k(g: Graph, op: Op) -> dict[str, Value]:
    x, k, axis = op["X"], int(op.attr("k")), int(op.attr("axis")) % op["X"].rank
    shape = tuple(k if a == axis else n for a, n in enumerate(x.sizes))
    out, index = g.many("TopK", [x, g.ints(k)], [(x.dtype, shape), ("int64", shape)], axis=axis)
    return {"Out": out, "Indices": g.cast(index, "int32")}


@rule("jax.conv_general_dilated")
def conv(g: Graph, op: Op) -> Value:
    x, w = op["Lhs"], op["Rhs"]
    taken, _, given = str(op.attr("spec")).partition("->")
    lhs, rhs = taken.split(",")
    spatial = [c for c in lhs if c not in "NC"]
    if int(op.attr("batch_group_count")) != 1:
        raise Lacking("it counts groups of the batch, as gradients do")
    pads = _numbers(op, "padding")
    x = g.transpose(x, [lhs.index(c) for c in ("N", "C", *spatial)])
    w = g.transpose(w, [rhs.index(c) for c in ("O", "I", *spatial)])
    if min(w.sizes, default=0) < 0:
        raise Lacking("its filter has an open size", "fix that size")
    strides = [int(n) for n in op.attr("window_strides")]
    dilations = [int(n) for n in op.attr("rhs_dilation") or ()] or [1] * len(spatial)
    order = ["N", "C", *spatial]
    apart = [int(n) for n in op.attr("lhs_dilation") or ()]
    if any(n != 1 for n in apart):
        made = _transposed(g, op, x, w, apart, dilations, pads)
        return g.transpose(made, [order.index(c) for c in given])
    if min(pads, default=0) < 0:
        raise Lacking("its padding is negative")
    windows = [
        -1 if n < 0 else (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, d, a, b in zip(
            x.sizes[2:], w.sizes[2:], strides, dilations, pads[::2], pads[1::2], strict=True
        )
    ]
    made = g.add(
        "Conv", x, w, shape=(x.sizes[0], w.sizes[0], *windows), strides=strides, dilations=dilations,
        group=int(op.attr("feature_group_count")), kernel_shape=list(w.sizes[2:]), pads=[*pads[::2], *pads[1::2]],
    )  # fmt: skip
    return g.transpose(made, [order.index(c) for c in given])


def _numbers(op: Op, name: str) -> list[int]:
    """An attribute of sizes. Raises Lacking if one is open."""
    found = list(op.attr(name))
    if any(isinstance(n, str) and not n.lstrip("-").isdigit() for n in found):
        raise Lacking(f"its {name} depends on a size that is open", "fix that size")
    return [int(n) for n in found]


def _transposed(
    g: Graph, op: Op, x: Value, w: Value, apart: list[int], dilations: list[int], pads: list[int]
) -> Value:
    """A convolution of a dilated input as a transposed convolution with the flipped filter."""
    strides = [int(n) for n in op.attr("window_strides")]
    if any(s != 1 for s in strides) or int(op.attr("feature_group_count")) != 1:
        raise Lacking("it is dilated on the left with strides or groups, as gradients are")
    reach = [d * (k - 1) for d, k in zip(dilations, w.sizes[2:], strict=True)]
    before = [r - p for r, p in zip(reach, pads[::2], strict=True)]
    behind = [r - p for r, p in zip(reach, pads[1::2], strict=True)]
    if min(before) < 0 or any(-b >= a for a, b in zip(apart, behind, strict=True)):
        raise Lacking("its padding is wider than its filter")
    flat = w.const
    if flat is None:
        for axis in range(2, w.rank):
            shape = w.shape
            w = g.slice(w, axis, -1, -(2**62), -1)
            w = Value(w.name, w.dtype, shape)
    else:
        w = g.constant(np.flip(flat, tuple(range(2, w.rank))))
    w = g.transpose(w, [1, 0, *range(2, w.rank)])
    more = [max(-b, 0) for b in behind]
    ends = [max(b, 0) for b in behind]
    whole = [
        -1 if n < 0 else (n - 1) * s + r + 1 - b - e + m
        for n, s, r, b, e, m in zip(x.sizes[2:], apart, reach, before, ends, more, strict=True)
    ]
    return g.add(
        "ConvTranspose", x, w, shape=(x.sizes[0], w.sizes[1], *whole), strides=apart, dilations=dilations,
        kernel_shape=list(w.sizes[2:]), pads=[*before, *ends], output_padding=more,
    )  # fmt: skip


@rule("jax.tile")
def tile(g: Graph, op: Op) -> Value:
    x, reps = op["X"], sizes(g, op.attr("reps"))
    shape = tuple(
        n * r if n >= 0 and isinstance(r, int) else -1 for n, r in zip(x.sizes, reps, strict=True)
    )
    return g.add("Tile", x, g.vector(reps), shape=shape)


@rule("jax.reduce_window_max", "jax.reduce_window_sum")
def reduce_window(g: Graph, op: Op) -> Value:
    x = op["X"]
    window, strides = _numbers(op, "window_dimensions"), list(op.attr("window_strides"))
    pads = _numbers(op, "padding")
    before, behind = pads[::2], pads[1::2]
    for name in ("base_dilation", "window_dilation"):
        if any(n != 1 for n in op.attr(name) or ()):
            raise Lacking("its windows or its elements are dilated")
    moved = [a for a in range(x.rank) if window[a] > 1 or strides[a] > 1 or before[a] or behind[a]]
    if not moved:
        return x
    if not x.is_float or any(max(before[a], behind[a]) >= window[a] for a in moved):
        raise Lacking("its elements are whole numbers, or its padding is as wide as its windows")
    rest = [a for a in range(x.rank) if a not in moved]
    transposed = g.transpose(x, [*rest, *moved])
    lead = [g.size(x, a) for a in rest]
    flat = transposed
    if len(rest) != 2:
        each = [g.size(flat, a) for a in range(len(rest), x.rank)]
        flat = g.reshape(flat, [g.multiplied(lead), 1, *each])
    counts = [
        -1 if x.sizes[a] < 0 else (x.sizes[a] + before[a] + behind[a] - window[a]) // strides[a] + 1
        for a in moved
    ]
    is_max = op.type == "jax.reduce_window_max"
    attrs: dict[str, Any] = {} if is_max else {"count_include_pad": 1}
    made = g.add(
        "MaxPool" if is_max else "AveragePool", flat, shape=(*flat.sizes[:2], *counts),
        kernel_shape=[window[a] for a in moved], strides=[strides[a] for a in moved],
        pads=[*(before[a] for a in moved), *(behind[a] for a in moved)], **attrs,
    )  # fmt: skip
    if not is_max:
        made = g.times(made, float(np.prod([window[a] for a in moved])))
    if len(rest) != 2:
        made = g.reshape(made, [*lead, *(g.size(made, 2 + i) for i in range(len(moved)))])
    order = [*rest, *moved]
    return g.transpose(made, [order.index(a) for a in range(x.rank)])


@rule("jax.gather")
def gather(g: Graph, op: Op) -> Value:
    """The gather of indexing by arrays: whole slices except on the indexed axes."""
    x, index = op["X"], g.cast(op["Indices"], "int64")
    offsets, gone = list(op.attr("offset_dims")), list(op.attr("collapsed_slice_dims"))
    axes, parts = list(op.attr("start_index_map")), list(op.attr("slice_sizes"))
    all_of, one = taken_whole(op, "X", parts), [str(n) == "1" for n in parts]
    along, clipped = (
        list(op.attr("operand_batching_dims") or ()),
        "clip" in str(op.attr("mode")).lower(),
    )
    # an axis that is taken whole begins at 0; one with a single entry is restored below
    found = [i for i, a in enumerate(axes) if not (clipped and all_of[a] and not one[a])]
    if len(found) < len(axes):
        index = g.gather(index, g.ints(*found), -1)
        axes = [axes[i] for i in found]
    stays = [a for a in axes if one[a] and a not in gone and a not in along]
    left = [a for a in range(x.rank) if a not in gone and a not in along]
    back = [offsets[left.index(a)] for a in stays]
    offsets, gone = [n for n in offsets if n not in back], sorted([*gone, *stays])
    whole = all((one if a in gone or a in along else all_of)[a] for a in range(x.rank))
    if not axes or sorted(axes) != sorted(gone) or not whole or (along and back):
        if op["Indices"].rank == 1 and "fill" not in str(op.attr("mode")).lower():
            return _one_part(g, op)
        raise Lacking("it takes parts of slices", "index whole rows")
    there, fill = None, op.attr("fill")
    if clipped or fill is not None:
        most = g.minus(g.vector([g.size(x, a) for a in axes]), 1)
        given, index = index, g.binary("Min", g.binary("Max", index, g.ints(0)), most)
        if not clipped:
            same = g.cast(g.binary("Equal", given, index, "bool"), "int32")
            there = g.cast(g.reduce("Min", same, [-1], keep=False), "bool")
    if along:
        (axis,) = axes
        batch = list(op.attr("start_indices_batching_dims"))
        if (
            along != batch
            or sorted([*along, axis]) != list(range(x.rank))
            or index.rank != x.rank + 1
        ):
            raise Lacking("it counts slices by other axes")
        index = g.squeeze(index, [-1])
        made = g.add("GatherElements", x, index, shape=index.shape, axis=axis)
        return made if there is None else g.where(there, made, g.number(fill, x))
    batch_rank = index.rank - 1
    rest = [a for a in range(x.rank) if a not in axes]
    if len(axes) == 1:
        (axis,) = axes
        made = g.gather(x, g.squeeze(index, [-1]), axis)
        have = [("x", a) for a in range(axis)] + [("i", b) for b in range(batch_rank)]
        have += [("x", a) for a in range(axis + 1, x.rank)]
    else:
        transposed = g.transpose(x, [*axes, *rest])
        shape = (*index.sizes[:-1], *(x.sizes[a] for a in rest))
        made = g.add("GatherND", transposed, index, shape=shape)
        have = [("i", b) for b in range(batch_rank)] + [("x", a) for a in rest]
    slices, places = iter(rest), iter(range(batch_rank))
    wanted = [
        ("x", next(slices)) if i in offsets else ("i", next(places))
        for i in range(len(have) + len(back))
        if i not in back
    ]
    made = g.unsqueeze(g.transpose(made, [have.index(w) for w in wanted]), back)
    if there is None:
        return made
    there = g.unsqueeze(there, [i for i in range(made.rank) if i in offsets or i in back])
    return g.where(there, made, g.number(fill, x))


def _one_part(g: Graph, op: Op) -> Value:
    """A gather of one slice of its input."""
    x, index = op["X"], g.cast(op["Indices"], "int64")
    part, axes = sizes(g, op.attr("slice_sizes")), list(op.attr("start_index_map"))
    each = [
        g.slice(index, 0, i := axes.index(a), i + 1) if a in axes else g.ints(0)
        for a in range(x.rank)
    ]
    at = _within(g, g.concat(each, 0), x, part)
    return g.squeeze(_part(g, x, at, part), op.attr("collapsed_slice_dims"))


# blocks, which are functions of their own


@rule("jax.call", "jax.checkpoint", "jax.custom_call")
def call(g: Graph, op: Op) -> dict[str, list[Value]]:
    (idx, *_) = (op.attr("sub_block").idx,)
    return {"Out": op.exporter.inlined(g, idx, op.attr("args"), op.all("Args"), op.attr("results"))}


@rule("jax.cond")
def cond(g: Graph, op: Op) -> dict[str, list[Value]]:
    """An If, or nested Ifs."""
    blocks, operands = list(op.attr("sub_blocks")), op.all("Operands")
    args, results = list(op.attr("args")), list(op.attr("results"))
    count, each = len(operands), len(results) // len(blocks)
    index = scalar(g, op["Index"])

    def side(graph: Graph, i: int) -> None:
        names = args[i * count : (i + 1) * count], results[i * each : (i + 1) * each]
        made = op.exporter.inlined(graph, blocks[i].idx, names[0], operands, names[1])
        graph.outputs = own(graph, made)

    def chosen(graph: Graph, first: int) -> list[Value]:
        taken, left = graph.inner(), graph.inner()
        side(taken, first)
        if first + 2 == len(blocks):
            side(left, first + 1)
        else:
            left.outputs = own(left, chosen(left, first + 1))
        if index.dtype == "bool":
            here = graph.like("Not", index)
        else:
            bound = graph.number(first, index)
            here = graph.add("LessOrEqual", index, bound, dtype="bool", shape=())
        outs = [(v.dtype, v.shape) for v in taken.outputs]
        return graph.many("If", [here], outs, then_branch=taken, else_branch=left)

    if len(blocks) == 1:
        return {"Out": op.exporter.inlined(g, blocks[0].idx, args, operands, results)}
    return {"Out": chosen(g, 0)}


@rule("jax.scan")
def scan(g: Graph, op: Op) -> dict[str, list[Value]]:
    fixed, init, rows = (op.all(slot) for slot in ("Consts", "Init", "Xs"))
    args, results = list(op.attr("args")), list(op.attr("results"))
    inner, exporter = _block(g, op)
    carried = [
        exporter.local(n, v.dtype, v.shape) for n, v in zip(args[len(fixed) :], init, strict=False)
    ]
    names = args[len(fixed) + len(init) :]
    steps = [exporter.local(n, v.dtype, v.sizes[1:]) for n, v in zip(names, rows, strict=True)]
    given = [*fixed, *carried, *steps]
    made = own(inner, op.exporter.inlined(inner, op.attr("sub_block").idx, args, given, results))
    count, length = len(init), op.attr("length")
    types = [(v.dtype, v.shape) for v in made[:count]]
    if length == 0:  # onnxruntime's Scan takes no empty rows
        none = [g.filled(0, v.dtype, (0, *v.sizes)) for v in made[count:]]
        return {"Carry": init, "Ys": none}
    if rows:
        inner.inputs, inner.outputs = [*carried, *steps], made
        back = int(bool(op.attr("reverse")))
        outs = types + [(v.dtype, (rows[0].sizes[0], *v.sizes)) for v in made[count:]]
        found = g.many(
            "Scan", [*init, *rows], outs, body=inner, num_scan_inputs=len(rows),
            scan_input_directions=[back] * len(rows), scan_output_directions=[back] * (len(made) - count),
        )  # fmt: skip
    else:
        if op.attr("reverse") and made[count:]:
            raise Lacking("it has no rows to go through backwards")
        number = Value(g.names.new(f"{g.base}/iteration"), "int64", ())
        goes = Value(g.names.new(f"{g.base}/goes"), "bool", ())
        inner.inputs = [number, goes, *carried]
        inner.outputs = [inner.add("Identity", goes, shape=()), *made]
        turns = size(g, length)
        outs = types + [(v.dtype, (*shape_of([turns]), *v.sizes)) for v in made[count:]]
        limit = g.reshape(g.vector([turns]), [])
        found = g.many("Loop", [limit, g.constant(True), *init], outs, body=inner)
    return {"Carry": list(found[:count]), "Ys": list(found[count:])}


def _block(g: Graph, op: Op) -> tuple[Graph, Any]:
    exporter = op.exporter.within(op.exporter.block)
    return exporter.graph, exporter


@rule("jax.while")
def loop(g: Graph, op: Op) -> dict[str, list[Value]]:
    conditions, bodies, init = (op.all(s) for s in ("CondConsts", "BodyConsts", "Init"))

    def holds(graph: Graph, state: Sequence[Value]) -> Value:
        names = op.attr("cond_args"), op.attr("cond_results")
        idx = op.attr("cond_block").idx
        return op.exporter.inlined(graph, idx, names[0], [*conditions, *state], names[1])[0]

    def any_of(graph: Graph, flags: Value) -> Value:
        if not flags.rank:
            return scalar(graph, flags)
        numbers = graph.cast(flags, "int32")
        return graph.cast(graph.reduce("Max", numbers, None, keep=False), "bool")

    first = any_of(g, holds(g, init))
    inner, exporter = _block(g, op)
    names = list(op.attr("body_args"))[len(bodies) :]
    carried = [exporter.local(n, v.dtype, v.shape) for n, v in zip(names, init, strict=True)]
    idx = op.attr("body_block").idx
    made = op.exporter.inlined(
        inner, idx, op.attr("body_args"), [*bodies, *carried], op.attr("body_results")
    )
    going = holds(inner, carried)
    if going.rank:  # under jax.vmap: samples that have ended keep their values
        made = [
            inner.where(inner.unsqueeze(going, range(going.rank, old.rank)), new, old)
            for new, old in zip(made, carried, strict=True)
        ]
    still = any_of(inner, holds(inner, made))
    number = Value(g.names.new(f"{g.base}/iteration"), "int64", ())
    goes = Value(g.names.new(f"{g.base}/goes"), "bool", ())
    inner.inputs, inner.outputs = [number, goes, *carried], own(inner, [still, *made])
    found = g.many("Loop", [None, first, *init], [(v.dtype, v.shape) for v in carried], body=inner)
    return {"Out": list(found)}
