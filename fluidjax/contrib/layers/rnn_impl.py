"""Recurrent networks of basic cells: one step of a GRU or an LSTM, and layers of them, in one
direction or both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ...base.loc import located
from ...graph.variable import Variable
from ...layers.elementwise import elementwise_mul
from ...layers.index import sequence_mask, shape
from ...layers.manip import reshape, transpose
from ...layers.nn_dense import dropout
from ...layers.rnn_cells import GRUCell, LSTMCell
from ...layers.static_rnn import StaticRNN
from ...layers.tensor import concat, reverse


class BasicGRUUnit:
    """One step of a GRU, ``unit(input, hidden)``: the next hidden state; see GRUCell. Its
    parameters are made at the first call.
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Any = None,
        activation: Any = None,
        dtype: Any = "float32",
    ) -> None:
        self._cell = GRUCell(
            hidden_size, param_attr, bias_attr, gate_activation, activation, dtype, name_scope
        )

    def __call__(self, input: Variable, pre_hidden: Variable) -> Variable:
        return self._cell.call(input, pre_hidden)[0]


class BasicLSTMUnit:
    """One step of an LSTM, ``unit(input, hidden, cell)``: the next hidden and cell; see LSTMCell."""

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Any = None,
        activation: Any = None,
        forget_bias: float = 1.0,
        dtype: Any = "float32",
    ) -> None:
        self._cell = LSTMCell(
            hidden_size,
            param_attr,
            bias_attr,
            gate_activation,
            activation,
            forget_bias,
            dtype,
            name_scope,
        )

    def __call__(
        self, input: Variable, pre_hidden: Variable, pre_cell: Variable
    ) -> tuple[Variable, Variable]:
        _, states = self._cell.call(input, [pre_hidden, pre_cell])
        return states[0], states[1]


def _numbered(attr: Any, end: str) -> Any:
    """The attribute with `end` appended to the user's name, if any."""
    if attr is None or getattr(attr, "name", None) is None:
        return attr
    own = copy.deepcopy(attr)
    own.name += end
    return own


class _Layers:
    """The base of both networks. step(unit, x, states): the next states of one layer, the output
    first.
    """

    def __init__(
        self, sizes: tuple[int, int], states: Sequence[Any], step: Callable[..., Sequence[Variable]], drop: dict[str, Any] | None,
        refs: dict[str, Any],
    ) -> None:  # fmt: skip
        (self.count, self.size), self.step, self.drop, self.refs = sizes, step, drop, refs
        self.states = states

    def run(
        self, input: Variable, units: Sequence[Any], mask: Any, direction: int
    ) -> tuple[Variable, list[Variable]]:
        """The outputs of the last layer [T, N, size], and for each state its last values [layers,
        N, size].
        """
        rnn, count = StaticRNN(), len(self.states)
        with rnn.step():
            x = rnn.step_input(input)
            alive = rnn.step_input(mask) if mask is not None else None
            for i, unit in enumerate(units):
                before = [self._memory(rnn, input, state, i, direction) for state in self.states]
                after = list(self.step(unit, x, before))
                if alive is not None:
                    after = [_kept(new, old, alive) for new, old in zip(after, before, strict=True)]
                for old, new in zip(before, after, strict=True):
                    rnn.update_memory(old, new)
                for new in after:
                    rnn.step_output(new)
                x = after[0]
                x = x if self.drop is None else dropout(x, **self.drop)
            rnn.step_output(x)
        found = rnn()
        last = [[found[i * count + k][-1] for k in range(count)] for i in range(self.count)]
        return found[-1], [self._layered([row[k] for row in last]) for k in range(count)]

    def _memory(
        self, rnn: StaticRNN, input: Variable, state: Any, layer: int, direction: int
    ) -> Variable:
        if state is not None:
            return rnn.memory(init=state[layer, direction])
        return rnn.memory(batch_ref=input, shape=[-1, self.size], **self.refs)

    def _layered(self, parts: list[Variable]) -> Variable:
        return reshape(concat(parts, axis=0), shape=[self.count, -1, self.size])


def _kept(new: Variable, old: Variable, alive: Variable) -> Variable:
    """The new state of unfinished sequences, the old one of others."""
    return elementwise_mul(new, alive, axis=0) - elementwise_mul(old, alive - 1, axis=0)


def _through(
    input: Variable,
    units: list[list[Any]],
    layers: _Layers,
    mask: Variable | None,
    batch_first: bool,
) -> tuple[Variable, ...]:
    """The outputs of one direction, or of both side by side, and the last states."""
    out, last = layers.run(input, units[0], mask, 0)
    if len(units) == 2:
        back = reverse(input, axis=[0])
        back_mask = None if mask is None else reverse(mask, axis=[0])
        back_out, back_last = layers.run(back, units[1], back_mask, 1)
        out = concat([out, reverse(back_out, axis=[0])], axis=2)
        shape_of_both = [layers.count * 2, -1, layers.size]
        last = [
            reshape(concat([a, b], axis=1), shape=shape_of_both)
            for a, b in zip(last, back_last, strict=True)
        ]
    return transpose(out, [1, 0, 2]) if batch_first else out, *last


@located
def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Any = None,
    activation: Any = None,
    dtype: Any = "float32",
    name: str = "basic_gru",
) -> tuple[Variable, ...]:
    """Layers of GRUs: the outputs of the last [N, T, size], and the last states [layers, N, size];
    both directions side by side.

    input [N, T, D] (batch_first=False: [T, N, D]); init_hidden [layers * directions, N, size], 0 if
    None. sequence_length [N]: beyond it states do not change. dropout_prob: between layers, and for
    the outputs.
    """

    def unit(scope: str, end: str, i: int) -> BasicGRUUnit:
        attrs = _numbered(param_attr, f"_{end}_w_{i}"), _numbered(bias_attr, f"_{end}_b_{i}")
        return BasicGRUUnit(
            f"{name}{scope}_layers_{i}", hidden_size, *attrs, gate_activation, activation, dtype
        )

    ways = [("", "fw"), ("_reverse", "bw")][: 1 + bidirectional]
    units = [[unit(scope, end, i) for i in range(num_layers)] for scope, end in ways]
    x = transpose(input, [1, 0, 2]) if batch_first else input
    drop = {"dropout_prob": dropout_prob} if dropout_prob else None

    def step(unit: BasicGRUUnit, x: Variable, states: list[Variable]) -> tuple[Variable]:
        return (unit(x, states[0]),)

    layers = _Layers((num_layers, hidden_size), [None], step, drop, {"ref_batch_dim_idx": 1})
    return _from(x, units, layers, [init_hidden], sequence_length, batch_first)


def _from(
    input: Variable,
    units: list[list[Any]],
    layers: _Layers,
    first: list[Any],
    sequence_length: Variable | None,
    batch_first: bool,
) -> tuple[Variable, ...]:
    """Like _through, from states [layers * directions, N, size]."""
    mask = None
    if sequence_length is not None:
        mask = transpose(
            sequence_mask(sequence_length, maxlen=shape(input)[0], dtype="float32"), [1, 0]
        )
    size = [layers.count, len(units), -1, layers.size]
    layers.states = [None if v is None else reshape(v, shape=size) for v in first]
    return _through(input, units, layers, mask, batch_first)


@located
def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Any = None,
    activation: Any = None,
    forget_bias: float = 1.0,
    dtype: Any = "float32",
    name: str = "basic_lstm",
) -> tuple[Variable, ...]:
    """Layers of LSTMs: the outputs of the last [N, T, size], the last hidden states and cells
    [layers, N, size]; arguments as in basic_gru.

    As in 1.8.5, a backward layer whose bias_attr has no name takes param_attr in its place.
    """

    def unit(scope: str, end: str, i: int) -> BasicLSTMUnit:
        bias = _numbered(bias_attr, f"_{end}_b_{i}")
        if end == "bw" and (bias_attr is None or bias_attr.name is None):
            bias = param_attr
        attrs = _numbered(param_attr, f"_{end}_w_{i}"), bias
        return BasicLSTMUnit(
            f"{name}{scope}_layers_{i}",
            hidden_size,
            *attrs,
            gate_activation,
            activation,
            forget_bias,
            dtype,
        )

    ways = [("", "fw"), ("_reverse", "bw")][: 1 + bidirectional]
    units = [[unit(scope, end, i) for i in range(num_layers)] for scope, end in ways]
    x = transpose(input, [1, 0, 2]) if batch_first else input
    drop = (
        {"dropout_prob": dropout_prob, "dropout_implementation": "upscale_in_train"}
        if dropout_prob
        else None
    )

    def step(unit: BasicLSTMUnit, x: Variable, states: list[Variable]) -> tuple[Variable, Variable]:
        return unit(x, *states)

    layers = _Layers((num_layers, hidden_size), [None, None], step, drop, {})
    first = [init_hidden, init_cell] if init_hidden is not None else [None, None]
    return _from(x, units, layers, first, sequence_length, batch_first)


__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]
