"""Cells of recurrent networks, and rnn(), which runs one over time by a StaticRNN."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from .. import unique_name
from ..base.loc import located
from ..errors import FluidValueError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import FLOATS, INTS, dtype_in, typed, variable
from .activation import sigmoid, tanh
from .elementwise import elementwise_add, elementwise_mul
from .index import sequence_mask, shape
from .manip import split, transpose
from .nn_dense import matmul
from .static_rnn import StaticRNN
from .tensor import concat, fill_constant, fill_constant_batch_size_like, reverse
from .utils import assert_same_structure, flatten, map_structure, pack_sequence_as


class RNNCell:
    """One step of a recurrent network: ``call(inputs, states) -> (outputs, new states)``.

    A subclass defines call, and state_shape (and state_dtype) for get_initial_states. States are a
    variable or nested lists, tuples and dicts of variables.
    """

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The outputs of a step, and the states after it."""
        raise NotImplementedError("RNNCell must implent the call function.")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self.call(inputs, states, **kwargs)

    @located
    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = "float32",
        init_value: float = 0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States filled with init_value, for the number of samples in dimension batch_dim_idx of
        batch_ref.

        shape: a state's shape without the batch, or a structure of shapes; default state_shape.
        dtype: default float32; None takes state_dtype.
        """
        ref = flatten(batch_ref)[0]
        variable(ref, "batch_ref", "RNNCell", (*FLOATS, *INTS))
        shapes = self.state_shape if shape is None else shape
        kinds = self._dtypes() if dtype is None else dtype_in(dtype, "dtype", "RNNCell", FLOATS)
        leaves = _shapes(shapes)
        dtypes = flatten(kinds)
        dtypes = dtypes * len(leaves) if len(dtypes) == 1 else dtypes
        made = [
            fill_constant_batch_size_like(
                ref,
                size if size[0] == -1 else [-1, *size],
                kind,
                init_value,
                input_dim_idx=batch_dim_idx,
            )
            for size, kind in zip(leaves, dtypes, strict=True)
        ]
        return _packed(shapes, iter(made))

    def _dtypes(self) -> Any:
        try:
            return self.state_dtype
        except NotImplementedError:
            return "float32"

    @property
    def state_shape(self) -> Any:
        """The shapes of the states, without the batch."""
        raise NotImplementedError("Please add implementaion for `state_shape` in the used cell.")

    @property
    def state_dtype(self) -> Any:
        """The dtypes of the states."""
        raise NotImplementedError("Please add implementaion for `state_dtype` in the used cell.")


def _parts(shapes: Any) -> list[Any] | None:
    """The parts of a structure of shapes; None for one shape."""
    if isinstance(shapes, Mapping):
        return [shapes[k] for k in sorted(shapes)]
    return None if all(isinstance(n, int) for n in shapes) else list(shapes)


def _shapes(shapes: Any) -> list[list[int]]:
    """The shapes in a structure of them."""
    parts = _parts(shapes)
    return [list(shapes)] if parts is None else [leaf for part in parts for leaf in _shapes(part)]


def _packed(shapes: Any, leaves: Any) -> Any:
    """A structure of shapes with the shapes replaced by variables."""
    parts = _parts(shapes)
    if parts is None:
        return next(leaves)
    made = [_packed(part, leaves) for part in parts]
    return (
        dict(zip(sorted(shapes), made, strict=True))
        if isinstance(shapes, Mapping)
        else type(shapes)(made)
    )


class _Unit:
    """The base of the cells' computations: parameters made at the first call, with the input's
    width.
    """

    def __init__(
        self, kind: str, name: str, hidden_size: int, param_attr: Any, bias_attr: Any, dtype: Any
    ) -> None:
        full = unique_name.generate(f"{name}/{kind}")
        self.helper = LayerHelper(full, name=full)
        self.size, self.dtype = hidden_size, dtype
        self.param_attr, self.bias_attr = param_attr, bias_attr
        self.made: list[Any] | None = None

    def parameters(self, width: int, columns: Mapping[str, int]) -> list[Any]:
        """Weights [width, n] and biases [n], for each n of `columns`; its keys are appended to
        names from the user.
        """
        if self.made is None:
            weights = [
                self.helper.create_parameter(
                    _suffixed(self.param_attr, end), [width, n], self.dtype
                )
                for end, n in columns.items()
            ]
            biases = [
                self.helper.create_parameter(
                    _suffixed(self.bias_attr, end), [n], self.dtype, is_bias=True
                )
                for end, n in columns.items()
            ]
            if any(b is None for b in biases):
                raise FluidValueError(
                    f"{self.helper.name} has a bias; bias_attr is a ParamAttr or None, not False"
                )
            self.made = [*weights, *biases]
        return self.made


def _suffixed(attr: Any, end: str) -> Any:
    """The attribute with `end` appended to the user's name, if any."""
    if not (end and isinstance(attr, ParamAttr) and attr.name is not None):
        return attr
    own = copy.deepcopy(attr)
    own.name = f"{attr.name}{end}"
    return own


class GRUCell(RNNCell):
    """A gated recurrent unit: h' = u * h + (1 - u) * c.

    r, u = gate_activation([x, h] @ Wg + bg), c = activation([x, r * h] @ Wc + bc). gate_activation,
    activation: layers, default sigmoid and tanh. States: h [N, hidden_size].
    """

    def __init__(
        self, hidden_size: int, param_attr: Any = None, bias_attr: Any = None, gate_activation: Any = None, activation: Any = None,
        dtype: Any = "float32", name: str = "GRUCell",
    ) -> None:  # fmt: skip
        typed(hidden_size, "hidden_size", int, "GRUCell")
        typed(name, "name", str, "GRUCell")
        dtype_in(dtype, "dtype", "GRUCell", FLOATS)
        self.hidden_size = hidden_size
        self._unit = _Unit("BasicGRUUnit", name, hidden_size, param_attr, bias_attr, dtype)
        self._gate, self._activation = gate_activation or sigmoid, activation or tanh

    def call(self, inputs: Any, states: Any) -> tuple[Variable, Variable]:  # type: ignore[override]
        """(h', h') from inputs [N, D] and h."""
        variable(inputs, "inputs", "GRUCell", FLOATS)
        variable(states, "states", "GRUCell", FLOATS)
        size = self.hidden_size
        weights = self._unit.parameters(
            inputs.shape[-1] + size, {"_gate": 2 * size, "_candidate": size}
        )
        gate_weight, candidate_weight, gate_bias, candidate_bias = weights
        gates = elementwise_add(matmul(concat([inputs, states], 1), gate_weight), gate_bias)
        r, u = split(self._gate(gates), num_or_sections=2, dim=1)
        reset = r * states
        candidate = elementwise_add(
            matmul(concat([inputs, reset], 1), candidate_weight), candidate_bias
        )
        c = self._activation(candidate)
        new = u * states + (1 - u) * c
        return new, new

    @property
    def state_shape(self) -> list[int]:
        return [self.hidden_size]


class LSTMCell(RNNCell):
    """A long short-term memory: c' = c * sigmoid(f + forget_bias) + sigmoid(i) * tanh(j), h' =
    tanh(c') * sigmoid(o).

    i, j, f, o are the parts of [x, h] @ W + b. As in 1.8.5, gate_activation and activation are
    ignored. States: [h, c], each [N, hidden_size].
    """

    def __init__(
        self, hidden_size: int, param_attr: Any = None, bias_attr: Any = None, gate_activation: Any = None, activation: Any = None,
        forget_bias: float = 1.0, dtype: Any = "float32", name: str = "LSTMCell",
    ) -> None:  # fmt: skip
        typed(hidden_size, "hidden_size", int, "LSTMCell")
        typed(name, "name", str, "LSTMCell")
        dtype_in(dtype, "dtype", "LSTMCell", FLOATS)
        self.hidden_size = hidden_size
        self._unit = _Unit("BasicLSTMUnit", name, hidden_size, param_attr, bias_attr, dtype)
        self._forget = fill_constant([1], dtype=dtype, value=forget_bias)
        self._forget.stop_gradient = False

    def call(self, inputs: Any, states: Any) -> tuple[Variable, list[Variable]]:  # type: ignore[override]
        """(h', [h', c']) from inputs [N, D] and [h, c]."""
        variable(inputs, "inputs", "LSTMCell", FLOATS)
        typed(states, "states", list, "LSTMCell")
        hidden, cell = (variable(v, "state", "LSTMCell", FLOATS) for v in states)
        weight, bias = self._unit.parameters(
            inputs.shape[-1] + self.hidden_size, {"": 4 * self.hidden_size}
        )
        gates = elementwise_add(matmul(concat([inputs, hidden], 1), weight), bias)
        i, j, f, o = split(gates, num_or_sections=4, dim=-1)
        kept = elementwise_mul(cell, sigmoid(elementwise_add(f, self._forget)))
        new_cell = elementwise_add(kept, elementwise_mul(sigmoid(i), tanh(j)))
        new_hidden = tanh(new_cell) * sigmoid(o)
        return new_hidden, [new_hidden, new_cell]

    @property
    def state_shape(self) -> list[list[int]]:
        return [[self.hidden_size], [self.hidden_size]]


@located
def rnn(
    cell: RNNCell,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Run a cell over time: (outputs, final states), with the cell's structures.

    inputs: a variable [N, T, ...] (time_major: [T, N, ...]) or a structure of them; outputs
    likewise. initial_states: default the result of the cell's get_initial_states. sequence_length
    [N]: beyond it states do not change. is_reverse: from the last step. kwargs are passed to the
    cell. Raises FluidTypeError, FluidValueError for arguments that do not fit.
    """
    for i, x in enumerate(flatten(inputs)):
        variable(x, f"inputs[{i}]", "rnn", FLOATS)
    typed(sequence_length, "sequence_length", (Variable, type(None)), "rnn")
    if initial_states is None:
        initial_states = cell.get_initial_states(
            batch_ref=inputs, batch_dim_idx=1 if time_major else 0
        )
    for state in flatten(initial_states):
        variable(state, "initial_states", "rnn", FLOATS).stop_gradient = False
    if not time_major:
        inputs = map_structure(_swapped, inputs)
    mask = (
        None
        if sequence_length is None
        else _mask(flatten(inputs)[0], sequence_length, flatten(initial_states)[0].dtype)
    )
    if is_reverse:
        inputs = map_structure(partial(reverse, axis=[0]), inputs)
        mask = None if mask is None else reverse(mask, axis=[0])
    outputs, states, made = _loop(cell, inputs, initial_states, mask, kwargs)
    count = len(flatten(outputs))
    final_outputs = pack_sequence_as(outputs, made[:count])
    final_states = pack_sequence_as(states, [v[-1] for v in made[count:]])
    if is_reverse:
        final_outputs = map_structure(partial(reverse, axis=[0]), final_outputs)
    if not time_major:
        final_outputs = map_structure(_swapped, final_outputs)
    return final_outputs, final_states


def _loop(
    cell: RNNCell, inputs: Any, initial_states: Any, mask: Any, kwargs: Mapping[str, Any]
) -> tuple[Any, Any, Sequence[Any]]:
    """Build the StaticRNN: the structures of one step's outputs and states, and the variables of
    all steps, outputs first.
    """
    loop = StaticRNN()
    with loop.step():
        rows = map_structure(loop.step_input, inputs)
        states = map_structure(loop.memory, initial_states)
        outputs, new = cell.call(rows, map_structure(lambda v: v, states), **kwargs)
        assert_same_structure(states, new)
        if mask is not None:
            alive = loop.step_input(mask)
            new = map_structure(lambda old, fresh: _kept(old, fresh, alive), states, new)
        map_structure(loop.update_memory, states, new)
        for each in (*flatten(outputs), *flatten(new)):
            loop.step_output(each)
    return outputs, new, loop()


def _kept(old: Variable, new: Variable, alive: Variable) -> Variable:
    """The new state of unfinished sequences, the old one of others."""
    return elementwise_mul(new, alive, axis=0) - elementwise_mul(old, alive - 1, axis=0)


def _mask(x: Variable, lengths: Variable, dtype: Any) -> Variable:
    """[T, N]: 1 where a sequence has a step."""
    return transpose(sequence_mask(lengths, maxlen=shape(x)[0], dtype=dtype), [1, 0])


def _swapped(x: Variable) -> Variable:
    """[T, N, ...] from [N, T, ...], and back."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


__all__ = ["GRUCell", "LSTMCell", "RNNCell", "rnn"]
