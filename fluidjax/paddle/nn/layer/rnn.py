"""Recurrent layers of Paddle 2: cells, layers that run a cell over time, and stacks on the op
``rnn``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from .... import initializer, layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers import rnn_cells
from ....layers._build import one_of, require
from ....param_attr import ParamAttr
from ...math import matmul
from .. import functional as F
from .base import Layer
from .container import LayerList

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class RNNCellBase(Layer):
    """A step of a recurrent layer: forward(inputs [N, D], states) returns (outputs, new states).

    A subclass defines forward, and state_shape (sizes without the batch, or nested tuples of such)
    for the initial states.
    """

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States filled with init_value, for the number of samples in dimension batch_dim_idx of
        batch_ref (or of its first variable).
        """
        ref = rnn_cells.flatten(batch_ref)[0]
        return self._states(
            self.state_shape if shape is None else shape,
            ref,
            dtype or ref.dtype,
            init_value,
            batch_dim_idx,
        )

    def _states(self, shape: Any, ref: Variable, dtype: Any, value: float, at: int) -> Any:
        if all(isinstance(n, int) for n in shape):
            sizes = list(shape) if shape and shape[0] == -1 else [-1, *shape]
            return layers.fill_constant_batch_size_like(ref, sizes, dtype, value, input_dim_idx=at)
        return type(shape)(self._states(part, ref, dtype, value, at) for part in shape)

    @property
    def state_shape(self) -> Any:
        """The sizes of the states without the batch."""
        raise NotImplementedError(
            f"{type(self).__name__} has no state_shape; give the first states, or define it"
        )


class _Cell(RNNCellBase):
    """The base of cells: two weights and two biases, uniform in +-1/sqrt(hidden_size); gates: rows
    per unit.
    """

    gates = 1

    def __init__(self, input_size: int, hidden_size: int, attrs: Sequence[Any]) -> None:
        super().__init__()
        require(
            hidden_size > 0, f"{type(self).__name__}'s hidden_size is above 0, not {hidden_size}"
        )
        self.input_size, self.hidden_size = input_size, hidden_size
        wide, bound = self.gates * hidden_size, 1.0 / math.sqrt(hidden_size)
        shapes = ([wide, input_size], [wide, hidden_size], [wide], [wide])
        for name, shape, attr in zip(PARTS, shapes, attrs, strict=True):
            setattr(self, name, self._made(shape, attr, bound))

    def _made(self, shape: list[int], attr: Any, bound: float) -> Any:
        bias = len(shape) == 1
        if attr is not False:
            return self.create_parameter(
                shape, attr, is_bias=bias, default_initializer=initializer.Uniform(-bound, bound)
            )
        fixed = self.create_parameter(
            shape,
            ParamAttr(trainable=False),
            None,
            bias,
            initializer.Constant(0.0 if bias else 1.0),
        )
        fixed.stop_gradient = True  # exists because op rnn reads it
        return fixed

    def inputs_part(self, x: Variable) -> Variable:
        """x @ weight_ih^T + bias_ih."""
        return layers.elementwise_add(matmul(x, self.weight_ih, transpose_y=True), self.bias_ih)

    def states_part(self, h: Variable) -> Variable:
        """h @ weight_hh^T + bias_hh."""
        return layers.elementwise_add(matmul(h, self.weight_hh, transpose_y=True), self.bias_hh)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh): (h', h') from x [N, input_size] and h [N,
    hidden_size]. activation: tanh or relu.
    """

    def __init__(
        self, input_size: int, hidden_size: int, activation: str = "tanh", weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        one_of(activation, "activation", "SimpleRNNCell", ("tanh", "relu"))
        super().__init__(
            input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )
        self.activation = activation

    def forward(
        self, inputs: Variable, states: Variable | None = None
    ) -> tuple[Variable, Variable]:
        h = self.get_initial_states(inputs) if states is None else states
        new = getattr(F, self.activation)(self.inputs_part(inputs) + self.states_part(h))
        return new, new

    def extra_repr(self) -> str:
        return super().extra_repr() + (
            "" if self.activation == "tanh" else f", activation={self.activation}"
        )


class LSTMCell(_Cell):
    """c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'); i, f, g, o are the parts of
    W_ih x + b_ih + W_hh h + b_hh.

    (h', (h', c')) from x [N, input_size] and (h, c), each [N, hidden_size].
    """

    gates = 4

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None,
        bias_hh_attr: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )

    def forward(
        self, inputs: Variable, states: Any = None
    ) -> tuple[Variable, tuple[Variable, Variable]]:
        h, c = self.get_initial_states(inputs) if states is None else states
        i, f, g, o = layers.split(self.inputs_part(inputs) + self.states_part(h), 4, -1)
        cell = layers.sigmoid(f) * c + layers.sigmoid(i) * layers.tanh(g)
        new = layers.sigmoid(o) * layers.tanh(cell)
        return new, (new, cell)

    @property
    def state_shape(self) -> Any:
        return ((self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell):
    """h' = z h + (1 - z) c; r, z = sigmoid of the sums of the first two parts of W_ih x + b_ih and
    W_hh h + b_hh, c = tanh(x's third part + r h's third part).

    (h', h') from x [N, input_size] and h [N, hidden_size].
    """

    gates = 3

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None,
        bias_hh_attr: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )

    def forward(
        self, inputs: Variable, states: Variable | None = None
    ) -> tuple[Variable, Variable]:
        h = self.get_initial_states(inputs) if states is None else states
        (xr, xz, xc), (hr, hz, hc) = (
            layers.split(self.inputs_part(inputs), 3, -1),
            layers.split(self.states_part(h), 3, -1),
        )
        r, z = layers.sigmoid(xr + hr), layers.sigmoid(xz + hz)
        c = layers.tanh(xc + r * hc)
        new = (h - c) * z + c
        return new, new


class _Called(rnn_cells.RNNCell):
    """A layer as a cell of fluid.layers.rnn."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self.layer(inputs, states, **kwargs)


class RNN(Layer):
    """A cell over time: (outputs [N, T, H], the last states) of inputs [N, T, D]; time_major: [T,
    N, ...]; is_reverse: from the end.

    forward takes the first states (default the cell's), and the lengths [N] of sequences, beyond
    which states do not change.
    """

    def __init__(self, cell: Layer, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    def forward(
        self,
        inputs: Any,
        initial_states: Any = None,
        sequence_length: Variable | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        if initial_states is None:
            initial_states = self.cell.get_initial_states(
                inputs, batch_dim_idx=1 if self.time_major else 0
            )
        return layers.rnn(
            _Called(self.cell),
            inputs,
            initial_states,
            sequence_length,
            self.time_major,
            self.is_reverse,
            **kwargs,
        )


class BiRNN(Layer):
    """Two cells over time, one from each end: (outputs side by side [N, T, 2 H], (last states
    forwards, backwards)).
    """

    def __init__(self, cell_fw: Layer, cell_bw: Layer, time_major: bool = False) -> None:
        super().__init__()
        sizes = [getattr(cell, "input_size", None) for cell in (cell_fw, cell_bw)]
        require(
            None in sizes or sizes[0] == sizes[1],
            f"BiRNN's cells take one input, but have input_size {sizes[0]} and {sizes[1]}",
        )
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self,
        inputs: Any,
        initial_states: Any = None,
        sequence_length: Variable | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        states = (None, None) if initial_states is None else initial_states
        require(len(states) == 2, f"BiRNN's initial_states are a pair, not {len(states)}")
        ends = ((self.cell_fw, False), (self.cell_bw, True))
        made = [
            RNN(cell, reverse, self.time_major)(inputs, state, sequence_length, **kwargs)
            for (cell, reverse), state in zip(ends, states, strict=True)
        ]
        outputs = rnn_cells.map_structure(
            lambda a, b: layers.concat([a, b], -1), made[0][0], made[1][0]
        )
        return outputs, (made[0][1], made[1][1])


class _Stack(LayerList):
    """num_layers layers of cells, forwards or in both directions, on one op ``rnn``.

    Every layer and direction has weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (_l1, ...,
    _l0_reverse). forward gives (outputs, the last states [layers * directions, N, H]); it takes the
    first states and the lengths [N] of sequences, beyond which outputs are 0 and states do not
    change. dropout applies between layers, in training.
    """

    cell: Any = _Cell

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int, direction: str, time_major: bool, dropout: float,
        attrs: Sequence[Any], options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__()
        kind = type(self).__name__
        one_of(direction, "direction", kind, ("forward", "bidirect", "bidirectional"))
        require(num_layers > 0, f"{kind} has at least one layer, not {num_layers}")
        self.mode, self.input_size, self.hidden_size, self.dropout = (
            mode,
            input_size,
            hidden_size,
            dropout,
        )
        self.num_layers, self.num_directions, self.time_major = (
            num_layers,
            1 if direction == "forward" else 2,
            time_major,
        )
        for layer in range(num_layers):
            size = input_size if layer == 0 else hidden_size * self.num_directions
            cells = [self.cell(size, hidden_size, **options, **dict(zip(_ATTRS, map(copy, attrs), strict=True)))
                     for _ in range(self.num_directions)]  # fmt: skip
            self.append(
                RNN(cells[0], False, time_major)
                if len(cells) == 1
                else BiRNN(cells[0], cells[1], time_major)
            )
        for at, cell in enumerate(self._cells()):
            layer, back = divmod(at, self.num_directions)
            for part in PARTS:
                self.add_parameter(
                    f"{part}_l{layer}{'_reverse' if back else ''}", getattr(cell, part)
                )

    def _cells(self) -> list[Any]:
        """The cells of all layers and directions."""
        return [cell for layer in self for cell in layer.children()]

    def flatten_parameters(self) -> None:
        """Does nothing: XLA lays out the weights."""

    def forward(
        self, inputs: Variable, initial_states: Any = None, sequence_length: Variable | None = None
    ) -> tuple[Variable, Any]:
        x = inputs if self.time_major else layers.transpose(inputs, [1, 0, 2])
        many = 2 if self.mode == "LSTM" else 1
        if initial_states is None:
            sizes = [self.num_layers * self.num_directions, -1, self.hidden_size]
            states = [
                layers.fill_constant_batch_size_like(x, sizes, x.dtype, 0.0, 1, 1)
                for _ in range(many)
            ]
        else:
            states = (
                [initial_states] if isinstance(initial_states, Variable) else list(initial_states)
            )
        out, last = self._run(x, states, sequence_length)
        out = out if self.time_major else layers.transpose(out, [1, 0, 2])
        return out, tuple(last) if many > 1 else last[0]

    def _run(
        self, x: Variable, states: list[Variable], lengths: Variable | None
    ) -> tuple[Variable, list[Variable]]:
        """Append the op: the outputs [T, N, ...] and the last states."""
        cells = self._cells()
        weights = [
            getattr(c, part) for parts in (PARTS[:2], PARTS[2:]) for c in cells for part in parts
        ]
        helper = LayerHelper(self._full_name, name=self._full_name)
        out, kept, reserve = (
            helper.create_variable_for_type_inference(kind) for kind in (x.dtype, "uint8", x.dtype)
        )
        last = [helper.create_variable_for_type_inference(x.dtype) for _ in states]
        inputs: dict[str, Any] = {"Input": x, "PreState": states, "WeightList": weights}
        inputs |= {} if lengths is None else {"SequenceLength": lengths}
        helper.append_op(
            type="rnn", inputs=inputs, outputs={"Out": out, "DropoutState": kept, "State": last, "Reserve": reserve},
            attrs={
                "dropout_prob": float(self.dropout), "is_bidirec": self.num_directions == 2, "input_size": self.input_size,
                "hidden_size": self.hidden_size, "num_layers": self.num_layers, "mode": self.mode, "is_test": not self.training,
            },
        )  # fmt: skip
        return out, last

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}" + (
            f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        )
        return (
            text
            + (", time_major=True" if self.time_major else "")
            + (f", dropout={self.dropout}" if self.dropout else "")
        )


_ATTRS = tuple(f"{part}_attr" for part in PARTS)


class SimpleRNN(_Stack):
    """Layers of SimpleRNNCell: (outputs [N, T, H * directions], h) of inputs [N, T, input_size];
    time_major: [T, N, ...].
    """

    cell = SimpleRNNCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward", time_major: bool = False,
        dropout: float = 0.0, activation: str = "tanh", weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        one_of(activation, "activation", "SimpleRNN", ("tanh", "relu"))
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        mode = f"RNN_{activation.upper()}"
        super().__init__(
            mode,
            input_size,
            hidden_size,
            num_layers,
            direction,
            time_major,
            dropout,
            attrs,
            {"activation": activation},
        )


class LSTM(_Stack):
    """Layers of LSTMCell: (outputs [N, T, H * directions], (h, c)) of inputs [N, T, input_size];
    time_major: [T, N, ...].
    """

    cell = LSTMCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward", time_major: bool = False,
        dropout: float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, direction, time_major, dropout, attrs, {}
        )


class GRU(_Stack):
    """Layers of GRUCell: (outputs [N, T, H * directions], h) of inputs [N, T, input_size];
    time_major: [T, N, ...].
    """

    cell = GRUCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward", time_major: bool = False,
        dropout: float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, direction, time_major, dropout, attrs, {}
        )


__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "BiRNN",
    "GRUCell",
    "LSTMCell",
    "RNNCellBase",
    "SimpleRNN",
    "SimpleRNNCell",
]
