"""Sequences of different lengths.

In the graph they are concatenated rows, as in Fluid, with an int64 array of lengths. In the graph's
inputs and outputs, and for ops along a sequence, they are padded: [sequences, longest, ...].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Size, Value
from ..rules import Op, rule
from ..values import Lacking
from .windows import patches


def lengths_of(x: Value) -> Value:
    """The number of rows of each sequence. Raises Lacking for anything but sequences."""
    if not x.lengths:
        raise Lacking(f"'{x.name}' has no lengths of sequences", "declare it with lod_level=1")
    return x.lengths[-1]


def longest(g: Graph, lengths: Value) -> Value:
    """[1]: the length of the longest sequence, at least 1."""
    key = ("longest", lengths.name)
    if key not in g.cache:
        g.cache[key] = g.reduce("Max", g.concat([lengths, g.ints(1)], 0), [0], True)
    found: Value = g.cache[key]
    return found


def grid(g: Graph, lengths: Value, starts: Value | None = None) -> tuple[Value, Value]:
    """[sequences, longest]: the row at each position, 0 behind the end; and whether there is a
    row.
    """
    key = ("grid", lengths.name, None if starts is None else starts.name)
    if key not in g.cache:
        if starts is None:
            starts = g.like("CumSum", lengths, g.constant(0, np.int64), exclusive=1)
        places = g.unsqueeze(g.count(longest(g, lengths)), [0])
        within = g.binary("Less", places, g.unsqueeze(lengths, [1]), "bool")
        rows = g.plus(g.unsqueeze(starts, [1]), places)
        g.cache[key] = g.where(within, rows, g.constant(0, np.int64)), within
    found: tuple[Value, Value] = g.cache[key]
    return found


def padded(g: Graph, x: Value, fill: Value | float | None = 0.0) -> Value:
    """x as [sequences, longest, ...]; fill: the value behind the end (None: any)."""
    rows, within = grid(g, lengths_of(x))
    made = g.gather(x, rows)
    if fill is None:
        return made
    nothing = fill if isinstance(fill, Value) else g.number(fill, x)
    mask = g.unsqueeze(within, range(2, made.rank)) if made.rank > 2 else within
    shape = made.shape
    made = g.where(mask, made, nothing)
    return Value(made.name, made.dtype, shape)


def flat(g: Graph, x: Value, lengths: Value) -> Value:
    """The rows of a value that `padded` made."""
    _, within = grid(g, lengths)
    return _rows(g, x, within)


def _rows(g: Graph, x: Value, within: Value) -> Value:
    sizes = x.sizes[2:]
    if -1 in sizes:
        tail: list[Size] = [g.size(x, a) for a in range(2, x.rank)]
        every = g.reshape(x, [g.multiplied([g.size(x, 0), g.size(x, 1)]), *tail])
    else:
        every = g.reshape(x, [-1, *sizes])
    return g.add("Compress", every, g.reshape(within, [-1]), shape=(-1, *sizes), axis=0)


def rows_of(g: Graph, x: Value, lengths: Value) -> Value:
    """The rows of an array [sequences, positions, ...]; each sequence has its length."""
    places = g.unsqueeze(g.count(g.size(x, 1)), [0])
    within = g.binary("Less", places, g.unsqueeze(lengths, [1]), "bool")
    return _rows(g, x, within)


def shown(g: Graph, x: Value) -> list[Value]:
    """Sequences as outputs of the graph: padded rows, and the lengths of each level."""
    zero = g.constant(False) if x.dtype == "bool" else g.number(0, x)
    # one more row, which positions behind the end read, even if there are no rows
    more = g.filled(0, x.dtype, [1, *(g.size(x, a) for a in range(1, x.rank))])
    return [padded(g, g.concat([x, more], 0).ragged(x.lengths), zero), *x.lengths]


def numbered(g: Graph, lengths: Value) -> Value:
    """[rows]: the number of each row's sequence."""
    key = ("numbered", lengths.name)
    if key not in g.cache:
        _, within = grid(g, lengths)
        numbers = g.unsqueeze(g.count(g.size(lengths, 0)), [1])
        every = g.add("Expand", numbers, g.shape(within), shape=(-1, -1))
        g.cache[key] = _rows(g, every, within)
    found: Value = g.cache[key]
    return found


def chosen(g: Graph, x: Value, lengths: Value, starts: Value) -> Value:
    """Sequences of x's rows that begin at `starts` and have these lengths."""
    rows, within = grid(g, lengths, starts)
    return g.gather(x, _rows(g, rows, within)).ragged([lengths])


def starts_of(g: Graph, lengths: Value) -> Value:
    return g.like("CumSum", lengths, g.constant(0, np.int64), exclusive=1)


@rule("sequence_pool")
def pool(g: Graph, op: Op) -> dict[str, Value]:
    x, kind = op["X"], str(op.attr("pooltype"))
    lengths = lengths_of(x)
    wide = (-1, *[1] * (x.rank - 1))
    if kind in ("FIRST", "LAST"):
        starts = starts_of(g, lengths)
        at = starts if kind == "FIRST" else g.minus(g.plus(starts, lengths), 1)
        rows = g.binary(
            "Min",
            g.binary("Max", at, g.constant(0, np.int64)),
            g.minus(g.vector([g.size(x, 0)]), 1),
        )
        made = g.gather(x, rows)
    elif kind == "MAX":
        made = g.reduce("Max", padded(g, x, _least(x)), [1], False)
    else:
        made = g.reduce("Sum", padded(g, x), [1], False)
        if kind != "SUM":
            count = g.cast(g.binary("Max", lengths, g.constant(1, np.int64)), x.dtype)
            count = g.reshape(count, wide)
            made = g.over(made, g.like("Sqrt", count) if kind == "SQRT" else count)
    there = g.reshape(g.binary("Greater", lengths, g.constant(0, np.int64), "bool"), wide)
    shape = made.shape
    made = g.where(there, made, g.number(op.attr("pad_value"), x))
    return {"Out": Value(made.name, made.dtype, shape, lengths=x.lengths[:-1])}


def _least(x: Value) -> float:
    return -np.inf if x.is_float else float(np.iinfo(x.dtype).min)


@rule("sequence_softmax")
def softmax(g: Graph, op: Op) -> Value:
    x = op["X"]
    made = g.like("Softmax", padded(g, x, -np.inf), axis=1)
    return flat(g, made, lengths_of(x)).ragged(x.lengths)


@rule("sequence_expand")
def expand(g: Graph, op: Op) -> Value:
    x, y = op["X"], op["Y"]
    lengths_of(y)
    level = int(op.attr("ref_level"))
    times = y.lengths[level]
    source = numbered(g, times)
    if not x.lengths:
        return g.gather(x, source)
    own = lengths_of(x)
    return chosen(g, x, g.gather(own, source), g.gather(starts_of(g, own), source))


@rule("sequence_expand_as")
def expand_as(g: Graph, op: Op) -> Value:
    x, y = op["X"], op["Y"]
    return g.gather(x, numbered(g, lengths_of(y))).ragged(y.lengths)


@rule("sequence_concat")
def concat(g: Graph, op: Op) -> Value:
    parts = op.all("X")
    for p in parts:
        lengths_of(p)
    rows = g.concat([padded(g, p, None) for p in parts], 1)
    within = g.concat([grid(g, lengths_of(p))[1] for p in parts], 1)
    total = lengths_of(parts[0])
    for p in parts[1:]:
        total = g.plus(total, lengths_of(p))
    return _rows(g, rows, within).ragged([total])


@rule("sequence_pad")
def pad(g: Graph, op: Op) -> dict[str, Value]:
    x, fill, most = op["X"], op["PadValue"], int(op.attr("padded_length"))
    if fill.sizes in ((1,), ()):
        fill = g.reshape(fill, [])
    made = padded(g, x, fill)
    if most >= 0:
        size = g.size(made, 1)
        missing = g.minus(g.ints(most), size) if isinstance(size, Value) else g.ints(most - size)
        sizes = [g.size(made, a) for a in range(made.rank)]
        more = g.expand(
            g.reshape(fill, [1] * made.rank) if not fill.rank else fill,
            [sizes[0], missing, *sizes[2:]],
        )
        made = g.concat([made, more], 1)
        made = Value(made.name, made.dtype, (made.sizes[0], most, *made.sizes[2:]))
    return {"Out": made, "Length": lengths_of(x)}


@rule("sequence_unpad")
def unpad(g: Graph, op: Op) -> Value:
    x, length = op["X"], op["Length"]
    lengths = g.reshape(g.cast(length, "int64"), [-1])
    x = x if x.rank > 2 else g.unsqueeze(x, [2])
    return rows_of(g, x, lengths).ragged([lengths])


@rule("sequence_reshape")
def reshape(g: Graph, op: Op) -> Value:
    x, width = op["X"], int(op.attr("new_dim"))
    lengths = lengths_of(x)
    made = g.reshape(x, [-1, width])
    return made.ragged([g.over(g.times(lengths, x.sizes[1]), width)])


@rule("sequence_reverse")
def reverse(g: Graph, op: Op) -> Value:
    x = op["X"]
    lengths = lengths_of(x)
    starts = starts_of(g, lengths)
    last = g.minus(g.plus(g.times(starts, 2.0), lengths), 1)
    rows, within = grid(g, lengths)
    return g.gather(x, _rows(g, g.minus(g.unsqueeze(last, [1]), rows), within)).ragged(x.lengths)


@rule("sequence_conv")
def conv(g: Graph, op: Op) -> Value:
    x, start, size = op["X"], int(op.attr("contextStart")), int(op.attr("contextLength"))
    if op.attr("paddingTrainable"):
        raise Lacking("its padding is trained")
    wide = padded(g, x)
    before, behind = max(-start, 0), max(start + size - 1, 0)
    pads = g.ints(0, before, 0, 0, behind, 0)
    wide = g.add("Pad", wide, pads, g.number(0, x), shape=(-1, -1, x.sizes[1]), mode="constant")
    most = longest(g, lengths_of(x))
    parts = [
        g.slice(wide, 1, g.ints(before + start + i), g.plus(most, before + start + i))
        for i in range(size)
    ]
    rows = flat(g, g.concat(parts, 2), lengths_of(x))
    return g.matmul(rows, op["Filter"]).ragged(x.lengths)


@rule("lod_reset")
def reset(g: Graph, op: Op) -> Value:
    x, y = op["X"], op.get("Y")
    if y is not None and y.lengths:
        return x.ragged(y.lengths)
    if y is not None:
        whole = g.reshape(g.cast(y, "int64"), [-1])
        lengths = g.minus(g.slice(whole, 0, 1, 2**62), g.slice(whole, 0, 0, -1))
    else:
        lengths = g.constant(np.diff(op.attr("target_lod")), np.int64)
    return x.ragged([*x.lengths, lengths] if op.attr("append") else [lengths])


@rule("im2sequence")
def im2sequence(g: Graph, op: Op) -> Value:
    x = op["X"]
    op.refuse("Y")
    cells = patches(g, x, op.attr("kernels"), op.attr("strides"), list(op.attr("paddings")), [1, 1])
    _, c, k, h, w = cells.sizes
    cells = g.transpose(g.reshape(cells, [-1, c * k, h * w]), [0, 2, 1])
    images = g.size(x, 0)
    lengths = g.filled(h * w, "int64", [images])
    return g.reshape(cells, [-1, c * k]).ragged([lengths])


# recurrent networks

_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "identity": "Affine"}


def _activations(names: Sequence[str]) -> dict[str, Any]:
    for name in names:
        if name not in _ACTIVATIONS:
            raise Lacking(f"its activation is {name}")
    found: dict[str, Any] = {"activations": [_ACTIVATIONS[n] for n in names]}
    if "identity" in names:
        found["activation_alpha"] = [1.0] * len(names)
        found["activation_beta"] = [0.0] * len(names)
    return found


def _known(v: Value) -> np.ndarray:
    if v.const is None:
        raise Lacking("its weights are computed while it runs")
    return v.const


def _first(g: Graph, state: Value | None) -> Value | None:
    return None if state is None else g.unsqueeze(state, [0])


@rule("gru")
def gru(g: Graph, op: Op) -> dict[str, Value]:
    """ONNX's update gate is the share of the old state, Fluid's the share of the new one (unless
    origin_mode): for sigmoids, the opposite sign.
    """
    x, weight = op["Input"], _known(op["Weight"])
    gate, act = str(op.attr("gate_activation")), str(op.attr("activation"))
    d, dtype = weight.shape[0], weight.dtype
    if dtype != np.float32:
        raise Lacking(f"runtimes compute it in float32, and it is {dtype}")
    sign_of_update = 1.0 if op.attr("origin_mode") else -1.0
    if sign_of_update < 0 and gate != "sigmoid":
        raise Lacking(f"its gates are {gate}, of which ONNX has not the complement")
    memory = weight.reshape(-1)
    both, candidate = memory[: 2 * d * d].reshape(d, 2 * d), memory[2 * d * d :].reshape(d, d)
    sign = np.repeat(np.array([sign_of_update, 1.0, 1.0], dtype), d)
    r = (np.concatenate([both, candidate], 1) * sign).T[None]
    w = (np.eye(3 * d, dtype=dtype) * sign)[None]
    bias = op.get("Bias")
    b = np.zeros((1, 6 * d), dtype)
    if bias is not None:
        b[0, : 3 * d] = _known(bias).reshape(-1) * sign
    lengths = lengths_of(x)
    steps = g.transpose(padded(g, x), [1, 0, 2])
    inputs = [
        steps,
        g.constant(w.transpose(0, 2, 1)),
        g.constant(r),
        g.constant(b),
        g.cast(lengths, "int32"),
        _first(g, op.get("H0")),
    ]
    out = g.add(
        "GRU", *inputs, shape=(-1, 1, -1, d), hidden_size=d, linear_before_reset=0,
        direction="reverse" if op.attr("is_reverse") else "forward", **_activations([gate, act]),
    )  # fmt: skip
    rows = flat(g, g.transpose(g.squeeze(out, [1]), [1, 0, 2]), lengths)
    return {"Hidden": rows.ragged(x.lengths)}


@rule("lstm")
def lstm(g: Graph, op: Op) -> dict[str, Value]:
    """Fluid's gates are candidate, input, forget, output; ONNX's input, output, forget,
    candidate.
    """
    x, weight, bias = op["Input"], _known(op["Weight"]), _known(op["Bias"]).reshape(-1)
    d, dtype = weight.shape[0], weight.dtype
    order = np.concatenate([np.arange(d) + i * d for i in (1, 3, 2, 0)])
    w = np.eye(4 * d, dtype=dtype)[:, order].T[None]
    r = weight[:, order].T[None]
    b = np.zeros((1, 8 * d), dtype)
    b[0, : 4 * d] = bias[: 4 * d][order]
    peep = None
    if op.attr("use_peepholes"):
        wi, wf, wo = np.split(bias[4 * d :], 3)
        peep = g.constant(np.concatenate([wi, wo, wf])[None])
    names = [
        str(op.attr(n)) for n in ("gate_activation", "candidate_activation", "cell_activation")
    ]
    lengths = lengths_of(x)
    steps = g.transpose(padded(g, x), [1, 0, 2])
    inputs = [steps, g.constant(w), g.constant(r), g.constant(b), g.cast(lengths, "int32"),
              _first(g, op.get("H0")), _first(g, op.get("C0")), peep]  # fmt: skip
    if op.has("H0") != op.has("C0"):
        raise Lacking("it has one first state of two")
    if _is_read(op, "Cell"):
        return _lstm_by_steps(g, op, x, names)
    out = g.add(
        "LSTM", *inputs, shape=(-1, 1, -1, d), hidden_size=d,
        direction="reverse" if op.attr("is_reverse") else "forward", **_activations(names),
    )  # fmt: skip
    rows = flat(g, g.transpose(g.squeeze(out, [1]), [1, 0, 2]), lengths)
    return {"Hidden": rows.ragged(x.lengths)}


def _lstm_by_steps(g: Graph, op: Op, x: Value, names: Sequence[str]) -> dict[str, Value]:
    """As a Scan, which also returns the cells of each step."""
    weight, bias = op["Weight"], op["Bias"]
    d = weight.sizes[0]
    lengths = lengths_of(x)
    steps = g.transpose(padded(g, x), [1, 0, 2])
    alive = g.unsqueeze(g.transpose(grid(g, lengths)[1], [1, 0]), [2])
    flat_bias = g.reshape(bias, [1, bias.sizes[-1]])
    peep = bool(op.attr("use_peepholes"))
    wi, wf, wo = (
        g.slice(flat_bias, 1, (4 + i) * d, (5 + i) * d) if peep else None for i in range(3)
    )
    first = g.slice(flat_bias, 1, 0, 4 * d)
    inner = g.inner()
    state = [Value(g.names.new(f"{g.base}/{n}"), x.dtype, (-1, d)) for n in ("hidden", "cell")]
    step = Value(g.names.new(f"{g.base}/step"), x.dtype, (-1, 4 * d))
    there = Value(g.names.new(f"{g.base}/alive"), "bool", (-1, 1))
    gate, act, shown_by = (_ACTIVATIONS[n] if n != "identity" else "Identity" for n in names)
    hidden, cell = state
    own = inner.plus(inner.plus(step, first), inner.matmul(hidden, weight))
    a, i, f, o = inner.split(own, 1, [d] * 4)
    if wi is not None and wf is not None:
        i, f = inner.plus(i, inner.times(cell, wi)), inner.plus(f, inner.times(cell, wf))
    new = inner.plus(
        inner.times(inner.like(act, a), inner.like(gate, i)), inner.times(inner.like(gate, f), cell)
    )
    if wo is not None:
        o = inner.plus(o, inner.times(new, wo))
    out = inner.times(inner.like(gate, o), inner.like(shown_by, new))
    kept = [inner.where(there, n, s) for n, s in ((out, hidden), (new, cell))]
    outputs = [inner.like("Identity", v) for v in kept]
    inner.inputs, inner.outputs = [*state, step, there], [*kept, *outputs]
    zeros = g.filled(0, x.dtype, [g.size(lengths, 0), d])
    given = [op.get("H0") or zeros, op.get("C0") or zeros]
    back = int(bool(op.attr("is_reverse")))
    outs = g.many(
        "Scan", [*given, steps, alive], [(x.dtype, (-1, d))] * 2 + [(x.dtype, (-1, -1, d))] * 2,
        body=inner, num_scan_inputs=2, scan_input_directions=[back] * 2, scan_output_directions=[back] * 2,
    )  # fmt: skip
    rows = [flat(g, g.transpose(v, [1, 0, 2]), lengths).ragged(x.lengths) for v in outs[2:]]
    return {"Hidden": rows[0], "Cell": rows[1]}


def _is_read(op: Op, slot: str) -> bool:
    return any(n in op.read_later for n in op.desc.output(slot))


def _numbered_activation(g: Graph, number: int, x: Value) -> Value:
    kind = {0: "", 1: "Sigmoid", 2: "Tanh", 3: "Relu"}[int(number)]
    return g.like(kind, x) if kind else x


@rule("gru_unit")
def gru_unit(g: Graph, op: Op) -> dict[str, Value]:
    x, h, weight, bias = op["Input"], op["HiddenPrev"], op["Weight"], op.get("Bias")
    d = weight.sizes[0]
    memory = g.reshape(weight, [-1])
    if weight.const is not None:
        both = g.constant(weight.const.reshape(-1)[: 2 * d * d].reshape(d, 2 * d))
        candidate = g.constant(weight.const.reshape(-1)[2 * d * d :].reshape(d, d))
    else:
        both = g.reshape(g.slice(memory, 0, 0, 2 * d * d), [d, 2 * d])
        candidate = g.reshape(g.slice(memory, 0, 2 * d * d, 3 * d * d), [d, d])
    if bias is not None:
        x = g.plus(x, g.reshape(bias, [1, 3 * d]))
    own = g.plus(g.slice(x, 1, 0, 2 * d), g.matmul(h, both))
    gates = _numbered_activation(g, op.attr("gate_activation"), own)
    u, r = g.split(gates, 1, [d, d])
    reset = g.times(r, h)
    inner = g.plus(g.slice(x, 1, 2 * d, 3 * d), g.matmul(reset, candidate))
    c = _numbered_activation(g, op.attr("activation"), inner)
    stays, comes = (h, c) if not op.attr("origin_mode") else (c, h)
    hidden = g.plus(stays, g.times(u, g.minus(comes, stays)))
    gate = g.concat([u, r, c], 1)
    lengths = op["Input"].lengths
    return {
        "Hidden": hidden.ragged(lengths),
        "Gate": gate.ragged(lengths),
        "ResetHiddenPrev": reset.ragged(lengths),
    }


@rule("lstm_unit")
def lstm_unit(g: Graph, op: Op) -> dict[str, Value]:
    x, before = op["X"], op["C_prev"]
    d = before.sizes[1]
    i, f, o, c = g.split(x, 1, [d] * 4)
    forget = float(op.attr("forget_bias"))
    f = g.plus(f, forget) if forget else f
    cell = g.plus(
        g.times(g.like("Sigmoid", f), before), g.times(g.like("Sigmoid", i), g.like("Tanh", c))
    )
    hidden = g.times(g.like("Sigmoid", o), g.like("Tanh", cell))
    return {"C": cell.ragged(x.lengths), "H": hidden.ragged(x.lengths)}


# ops on a sequence's labels


@rule("crf_decoding")
def crf_decoding(g: Graph, op: Op) -> Value:
    """The best path of tags: a Scan forward for the scores, and one back along the best."""
    x, moves = op["Emission"], op["Transition"]
    op.refuse("Label", "Length")
    tags = moves.sizes[1]
    lengths = lengths_of(x)
    start = g.slice(moves, 0, 0, 1)
    stop = g.slice(moves, 0, 1, 2)
    between = g.unsqueeze(g.slice(moves, 0, 2, tags + 2), [0])  # [1, from, to]
    steps = g.transpose(padded(g, x), [1, 0, 2])  # [T, B, tags]
    _, within = grid(g, lengths)
    alive = g.unsqueeze(g.transpose(within, [1, 0]), [2])  # [T, B, 1]
    places = g.reshape(g.count(longest(g, lengths)), [-1, 1, 1])
    begins = g.binary("Equal", places, g.constant(0, np.int64), "bool")  # [T, 1, 1]
    inner = g.inner()
    shape = (-1, tags)
    score = Value(g.names.new(f"{g.base}/score"), x.dtype, shape)
    each = [
        Value(g.names.new(f"{g.base}/step"), x.dtype, shape),
        Value(g.names.new(f"{g.base}/alive"), "bool", (-1, 1)),
        Value(g.names.new(f"{g.base}/begins"), "bool", (1, 1)),
    ]
    ways = inner.plus(inner.unsqueeze(score, [2]), between)  # [B, from, to]
    best = inner.reduce("Max", ways, [1], False)
    came = inner.add("ArgMax", ways, dtype="int64", shape=shape, axis=1, keepdims=0)
    after = inner.plus(inner.where(each[2], start, best), each[0])
    new = inner.where(each[1], after, score)
    stays = inner.constant(np.arange(tags, dtype=np.int64)[None])
    back = inner.where(each[1], came, stays)
    inner.inputs, inner.outputs = [score, *each], [new, back]
    zeros = g.filled(0, x.dtype, [g.size(lengths, 0), tags])
    last, backs = g.many(
        "Scan", [zeros, steps, alive, begins], [(x.dtype, shape), ("int64", (-1, -1, tags))],
        body=inner, num_scan_inputs=3,
    )  # fmt: skip
    end = g.add("ArgMax", g.plus(last, stop), dtype="int64", shape=(-1, 1), axis=1, keepdims=1)
    second = g.inner()
    at = Value(g.names.new(f"{g.base}/tag"), "int64", (-1, 1))
    way = Value(g.names.new(f"{g.base}/back"), "int64", shape)
    tag = second.add("Identity", at, shape=(-1, 1))
    before = second.add("GatherElements", way, at, shape=(-1, 1), axis=1)
    second.inputs, second.outputs = [at, way], [before, tag]
    _, path = g.many(
        "Scan", [end, backs], [("int64", (-1, 1)), ("int64", (-1, -1, 1))], body=second,
        num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1],
    )  # fmt: skip
    return flat(g, g.transpose(path, [1, 0, 2]), lengths).ragged(x.lengths)


@rule("ctc_align")
def ctc_align(g: Graph, op: Op) -> dict[str, Value]:
    x = op["Input"]
    op.refuse("InputLength")
    lengths, blank = lengths_of(x), int(op.attr("blank"))
    ids = g.reshape(x, [-1])
    keep = g.like("Not", g.binary("Equal", ids, g.number(blank, x), "bool"))
    if op.attr("merge_repeated"):
        before = g.concat([g.constant([blank], x.dtype), g.slice(ids, 0, 0, -1)], 0)
        number = numbered(g, lengths)
        earlier = g.concat([g.ints(-1), g.slice(number, 0, 0, -1)], 0)
        same = g.binary(
            "And",
            g.binary("Equal", ids, before, "bool"),
            g.binary("Equal", number, earlier, "bool"),
        )
        keep = g.binary("And", keep, g.like("Not", same))
    out = g.add("Compress", g.reshape(x, [-1, 1]), keep, shape=(-1, 1), axis=0)
    counts = padded(g, g.cast(keep, "int64").ragged([lengths]))
    return {"Output": out.ragged([g.reduce("Sum", counts, [1], False)])}


@rule("box_clip")
def box_clip(g: Graph, op: Op) -> dict[str, Value]:
    x, info = op["Input"], op["ImInfo"]
    lengths = lengths_of(x)
    if len(x.lengths) != 1 or x.rank != 2:
        raise Lacking("its boxes have two levels of lengths, or three axes")
    own = g.gather(info, numbered(g, lengths))
    sizes = g.slice(own, 1, 0, 2)
    scale = g.slice(own, 1, 2, 3)
    most = g.minus(g.like("Round", g.over(sizes, scale)), 1.0)
    h, w = g.slice(most, 1, 0, 1), g.slice(most, 1, 1, 2)
    bounds = g.concat([w, h] * 2, 1)
    boxes = x if x.rank == 2 and x.sizes[1] == 4 else g.reshape(x, [-1, 4])
    if boxes is not x:
        times = x.sizes[1] // 4
        bounds = g.reshape(g.concat([bounds] * times, 1), [-1, 4])
    made = g.binary("Max", g.binary("Min", boxes, bounds), g.number(0, x))
    return {"Output": g.reshape(made, [-1, x.sizes[1]]).ragged(x.lengths)}
