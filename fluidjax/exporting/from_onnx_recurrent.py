"""ONNX's GRU and LSTM as a StaticRNN over sequences of different lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..layers.static_rnn import StaticRNN
from ..layers.tensor import reverse
from .from_onnx import UNARY, Importer, Lacks, Node, rule


@rule("GRU", "LSTM")
def recurrent(m: Importer, n: Node) -> None:
    gates, states = (3, 1) if n.kind == "GRU" else (4, 2)
    direction, y = n.text("direction", "forward"), next(name for name in n.outputs if name)
    if direction == "bidirectional" or n.attrs.get("layout") or "clip" in n.attrs:
        raise Lacks("it goes both ways, has its batch first, or clips")
    if n.attrs.get("input_forget"):
        raise Lacks("its forget gate is its input gate")
    named = n.attrs.get("activations") or [b"Sigmoid", b"Tanh", b"Tanh"]
    acts = [UNARY.get(a.decode(), "") for a in named]
    if not all(acts):
        raise Lacks("its activations have constants")
    w, r = m.known(n, 1, "weight")[0], m.known(n, 2, "weight")[0]
    size = r.shape[1]
    bias = m.known(n, 3, "bias")[0] if n.has(3) else np.zeros(2 * gates * size, w.dtype)
    x, back, step = m.var(n.inputs[0]), direction == "reverse", _Ops(m, y)
    there = _step_mask(step, n) if n.has(4) else None
    first = [_initial_state(step, n, 5 + i, size) for i in range(states)]
    peep = m.known(n, 7, "peephole")[0] if n.has(7) else None
    fed = [x] if there is None else [x, m.var(there)]
    fed = [reverse(v, [0]) for v in fed] if back else fed
    rnn = StaticRNN()
    with rnn.step():
        given, *masks = [rnn.step_input(v).name for v in fed]
        before = [rnn.memory(init=m.var(name)) for name in first]
        old = [v.name for v in before]
        parts = [
            step.plus(step.times_matrix(given, w[i * size :][:size]), step.held(bias[i * size :][:size]))
            for i in range(gates)
        ]  # fmt: skip
        weights = [r[i * size :][:size] for i in range(gates)]
        biases = [step.held(bias[(gates + i) * size :][:size]) for i in range(gates)]
        if n.kind == "GRU":
            late = bool(n.attrs.get("linear_before_reset"))
            found = [_gru(step, parts, weights, biases, old[0], acts, late)]
        else:
            peeps = None if peep is None else [step.held(p) for p in np.split(peep, 3)]
            found = _lstm(step, parts, weights, biases, (old[0], old[1]), acts, peeps)
        kept = found
        for mask in masks:
            kept = [step.op("where", Condition=mask, X=a, Y=b) for a, b in zip(found, old, strict=True)]  # fmt: skip
        for memory, value in zip(before, kept, strict=True):
            rnn.update_memory(memory, m.var(value))
        shown = found[0]
        for mask in masks:
            shown = step.op("where", Condition=mask, X=shown, Y=step.scaled(shown, 0.0))
        for value in (shown, *kept):
            rnn.step_output(m.var(value))
    every, *each = rnn()
    if _has_output(n, 0):
        rows = reverse(every, [0]) if back else every
        _unsqueeze(m, rows.name, n.outputs[0], 1)
    for i, value in enumerate(each):
        if _has_output(n, 1 + i):
            ends = {"axes": [0], "starts": [-1], "ends": [2**31 - 1]}
            m.op("slice", {"Input": value.name}, {"Out": n.outputs[1 + i]}, **ends)


def _has_output(n: Node, i: int) -> bool:
    return i < len(n.outputs) and bool(n.outputs[i])


class _Ops:
    """Appends ops with new names."""

    def __init__(self, m: Importer, wish: str) -> None:
        self.m, self.wish = m, wish

    def op(self, kind: str, out: str = "Out", attrs: dict[str, Any] | None = None, **ins: str) -> str:  # fmt: skip
        return self.m.op(kind, ins, {out: self.m.new(f"{self.wish}.{kind}")}, **(attrs or {}))

    def held(self, array: np.ndarray) -> str:
        return self.m.held(np.ascontiguousarray(array), f"{self.wish}.constant")

    def plus(self, x: str, y: str) -> str:
        return self.op("elementwise_add", X=x, Y=y)

    def times(self, x: str, y: str) -> str:
        return self.op("elementwise_mul", X=x, Y=y)

    def scaled(self, x: str, by: float, bias: float = 0.0) -> str:
        return self.op("scale", X=x, attrs={"scale": by, "bias": bias})

    def times_matrix(self, x: str, weight: np.ndarray) -> str:
        return self.op("matmul_v2", X=x, Y=self.held(weight.T))


def _unsqueeze(m: Importer, name: str, out: str, axis: int) -> None:
    m.op("unsqueeze2", {"X": name}, {"Out": out, "XShape": m.new(f"{out}.shape")}, axes=[axis])


def _sizes(s: _Ops, x: str, first: int) -> str:
    sizes = s.op("shape", Input=x)
    return s.op("slice", Input=sizes, attrs={"axes": [0], "starts": [first], "ends": [first + 1]})


def _step_mask(s: _Ops, n: Node) -> str:
    """[time, sequences, 1]: whether a step is within the sequence."""
    x = n.inputs[0]
    ones = s.op("fill_constant", ShapeTensor=_sizes(s, x, 0), attrs={"value": 1.0, "dtype": 2, "shape": []})  # fmt: skip
    number = s.op("cumsum", X=ones, attrs={"axis": 0, "exclusive": True})
    times = s.m.new(f"{s.wish}.times")
    s.m.op("reshape2", {"X": number}, {"Out": times, "XShape": f"{times}.shape"}, shape=[-1, 1, 1])
    lengths = s.m.new(f"{s.wish}.lengths")
    shape = {"Out": lengths, "XShape": f"{lengths}.shape"}
    s.m.op("reshape2", {"X": n.inputs[4]}, shape, shape=[1, -1, 1])
    return s.op("less_than", X=times, Y=lengths)


def _initial_state(s: _Ops, n: Node, i: int, size: int) -> str:
    """[sequences, size]: a state before the first step."""
    if n.has(i):
        out = s.m.new(f"{s.wish}.first")
        shape = {"Out": out, "XShape": f"{out}.shape"}
        return s.m.op("squeeze2", {"X": n.inputs[i]}, shape, axes=[0])
    sizes = s.m.new(f"{s.wish}.sizes")
    parts = [_sizes(s, n.inputs[0], 1), s.held(np.array([size], np.int32))]
    s.m.op("concat", {"X": parts}, {"Out": sizes}, axis=0)
    return s.op("fill_constant", ShapeTensor=sizes, attrs={"value": 0.0, "dtype": 5, "shape": []})


def _gru(
    s: _Ops, given: list[str], weights: list[np.ndarray], biases: list[str], h: str, acts: list[str], late: bool
) -> str:  # fmt: skip
    """update * h + (1 - update) * candidate"""

    def hidden(i: int, x: str) -> str:
        return s.plus(s.times_matrix(x, weights[i]), biases[i])

    update, reset = (s.op(acts[0], X=s.plus(given[i], hidden(i, h))) for i in (0, 1))
    inner = s.times(reset, hidden(2, h)) if late else hidden(2, s.times(reset, h))
    candidate = s.op(acts[1], X=s.plus(given[2], inner))
    return s.plus(s.times(update, h), s.times(s.scaled(update, -1.0, 1.0), candidate))


def _lstm(
    s: _Ops, given: list[str], weights: list[np.ndarray], biases: list[str], before: tuple[str, str], acts: list[str],
    peeps: list[str] | None,
) -> list[str]:  # fmt: skip
    """[h, c]: c = forget * c + input * candidate, h = output * act(c). Gates: input, output,
    forget, candidate.
    """
    h, c = before

    def gate(i: int, cell: str) -> str:
        made = s.plus(given[i], s.plus(s.times_matrix(h, weights[i]), biases[i]))
        if peeps is not None and i < 3:
            made = s.plus(made, s.times(cell, peeps[i]))
        return s.op(acts[0] if i < 3 else acts[1], X=made)

    cell = s.plus(s.times(gate(2, c), c), s.times(gate(0, c), gate(3, c)))
    return [s.times(gate(1, cell), s.op(acts[2], X=cell)), cell]
