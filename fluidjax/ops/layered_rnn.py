"""Recurrences in layers over plain batches [T, N, D]: rnn of Paddle 2, and cudnn_lstm with its
weights in one vector.

Layer l runs over the outputs of the layer below, in one direction or in both; the outputs of both
directions are concatenated. All layers and directions have a first and a last state each, in the
order layer 0 forwards, layer 0 backwards, layer 1 forwards, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from . import loops
from .checking import VALUE
from .infer import Spec
from .random import keep_mask
from .registry import Array, op
from .traits import FREE, mixes

State = tuple[Any, ...]
# of the input [G * H, D], of the state [G * H, H], and the bias of each [G * H]
Weights = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Cell:
    """One kind of recurrence. gates: the rows of a weight divided by the width. states: the number
    of arrays of a state.

    step: (state, the input's part [N, gates * H], the state's weight, its bias) -> the next state,
    whose first array is the output.
    """

    gates: int
    states: int
    step: Callable[[State, Any, Any, Any], State]


def _simple(act: Callable[[Any], Any], state: State, given: Any, weight: Any, bias: Any) -> State:
    return (act(given + state[0] @ weight.T + bias),)


def _lstm(state: State, given: Any, weight: Any, bias: Any) -> State:
    h, c = state
    i, f, g, o = jnp.split(given + h @ weight.T + bias, 4, 1)
    cell = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def _gru(state: State, given: Any, weight: Any, bias: Any) -> State:
    (h,) = state
    (r_x, u_x, c_x), (r_h, u_h, c_h) = jnp.split(given, 3, 1), jnp.split(h @ weight.T + bias, 3, 1)
    r, u = jax.nn.sigmoid(r_x + r_h), jax.nn.sigmoid(u_x + u_h)
    c = jnp.tanh(c_x + r * c_h)
    return (u * h + (1 - u) * c,)


CELLS: Mapping[str, Cell] = {
    "LSTM": Cell(4, 2, _lstm), "GRU": Cell(3, 1, _gru), "RNN_TANH": Cell(1, 1, partial(_simple, jnp.tanh)),
    "RNN_RELU": Cell(1, 1, partial(_simple, jax.nn.relu)),
}  # fmt: skip


def _direction(cell: Cell, x: Any, first: State, weights: Weights, there: Any) -> tuple[Any, State]:
    """Forwards: the outputs [T, N, H] and the last state. there: [T, N] which cells of x are true;
    states do not change at the others.
    """
    w_x, w_h, b_x, b_h = weights

    def step(state: State, given: Any) -> tuple[State, Any]:
        rows, alive = given
        new = cell.step(state, rows, w_h, b_h)
        if alive is not None:
            new = tuple(jnp.where(alive[:, None], a, b) for a, b in zip(new, state, strict=True))
        return new, new[0]

    last, out = loops.scan(step, first, (x @ w_x.T + b_x, there))
    return (out if there is None else jnp.where(there[..., None], out, 0)), last


def _both(
    cell: Cell, x: Any, first: State, weights: Sequence[Weights], there: Any
) -> tuple[Any, State]:
    """Both directions of _direction in one loop, with half the code. first: arrays [2, N, H]; so
    are the last states.
    """
    w_h, b_h = (jnp.stack([w[at] for w in weights]) for at in (1, 3))
    parts = [x @ w_x.T + b_x for w_x, _, b_x, _ in weights]

    def step(state: State, given: Any) -> tuple[State, Any]:
        rows, alive = given
        new = jax.vmap(cell.step)(state, rows, w_h, b_h)
        if alive is not None:
            new = tuple(jnp.where(alive[..., None], a, b) for a, b in zip(new, state, strict=True))
        return new, new[0]

    alive = None if there is None else _both_ways(there, there)
    last, out = loops.scan(step, first, (_both_ways(*parts), alive))
    out = jnp.concatenate([out[:, 0], out[::-1, 1]], -1)
    return (out if there is None else jnp.where(there[..., None], out, 0)), last


def _both_ways(there: Any, back: Any) -> Any:
    """[T, 2, ...]: the forward value, and the backward one in reverse order of steps."""
    return jnp.stack([there, back[::-1]], 1)


def _layers(
    cell: Cell,
    x: Any,
    first: Sequence[Any],
    weights: Sequence[Weights],
    directions: int,
    there: Any,
    drop: float,
    kept: Any,
) -> tuple[Any, list[Any]]:
    """The outputs of the last layer, and the last states stacked.

    first: arrays [layers * directions, N, H]; kept: the dropout masks between layers [layers - 1,
    T, N, directions * H], or None.
    """
    last = []
    for begin in range(0, len(weights), directions):
        if begin and kept is not None:
            x = jnp.where(
                kept[begin // directions - 1],
                x / np.asarray(1 - drop if drop < 1 else 1, x.dtype),
                0,
            )
        if directions == 2:
            x, state = _both(
                cell,
                x,
                tuple(s[begin : begin + 2] for s in first),
                weights[begin : begin + 2],
                there,
            )
            last += list(zip(*state, strict=True))
            continue
        x, state = _direction(cell, x, tuple(s[begin] for s in first), weights[begin], there)
        last.append(state)
    return x, [jnp.stack(states) for states in zip(*last, strict=True)]


def _masks(key: jax.Array, x: Any, layers: int, width: int, drop: float, is_test: bool) -> Any:
    """The dropout masks between layers, bool [layers - 1, T, N, width]; None without dropout."""
    if is_test or drop <= 0 or layers < 2:
        return None
    return keep_mask(key, (layers - 1, *x.shape[:2], width), drop)


# -- Paddle 2's op ---------------------------------------------------------------------------------


def _rnn_specs(
    Input: Spec,
    PreState: Sequence[Spec],
    WeightList: Sequence[Spec],
    SequenceLength: Spec | None,
    *,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
    **_: Any,
) -> tuple[Any, ...]:
    cell, directions = _cell(mode), 1 + is_bidirec
    _fitting(
        "rnn", Input.shape, [s.shape for s in PreState], cell, num_layers * directions, hidden_size
    )
    if len(WeightList) != 4 * num_layers * directions:
        raise ShapeError(
            f"op 'rnn' takes {4 * num_layers * directions} weights for {num_layers} layers in"
            f" {directions} directions, not {len(WeightList)}"
        )
    for (name, shape), weight in zip(
        _shapes(cell, Input.shape[2], hidden_size, num_layers, directions), WeightList, strict=True
    ):
        if any(a >= 0 and b >= 0 and a != b for a, b in zip(shape, weight.shape, strict=True)):
            raise ShapeError(
                f"op 'rnn' takes {name} of the shape {list(shape)}, not {list(weight.shape)}"
            )
    steps, batch = Input.shape[:2]
    states = tuple(Spec((s.shape[0], batch, hidden_size), s.dtype) for s in PreState)
    kept = Spec((num_layers - 1, steps, batch, directions * hidden_size), "uint8")
    return (
        Spec((steps, batch, directions * hidden_size), Input.dtype),
        kept,
        states,
        Spec((0,), Input.dtype),
    )


def _shapes(
    cell: Cell, size: int, width: int, layers: int, directions: int
) -> list[tuple[str, tuple[int, ...]]]:
    """The name of each weight in messages, and its shape: first all matrices, then all biases."""
    wide = cell.gates * width
    places = [
        (layer, way) for layer in range(layers) for way in ("forwards", "backwards")[:directions]
    ]
    matrices = [
        (f"the weight of the {of} in layer {layer} {way}", (wide, width if of == "state" else directions * width if layer else size))
        for layer, way in places for of in ("input", "state")
    ]  # fmt: skip
    biases = [
        (f"the bias of the {of} in layer {layer} {way}", (wide,))
        for layer, way in places
        for of in ("input", "state")
    ]
    return [*matrices, *biases]


def _cell(mode: str) -> Cell:
    if mode not in CELLS:
        raise EnforceNotMet(f"op 'rnn' knows the modes {', '.join(CELLS)}, not {mode!r}")
    return CELLS[mode]


def _fitting(
    kind: str, x: Sequence[int], states: Sequence[Sequence[int]], cell: Cell, many: int, width: int
) -> None:
    """Raises ShapeError unless the input has three dimensions and every first state is [many, N,
    width].
    """
    if len(x) != 3:
        raise ShapeError(f"op '{kind}' takes an input [T, N, D], not {list(x)}")
    if len(states) != cell.states:
        raise ShapeError(f"op '{kind}' takes {cell.states} first states here, not {len(states)}")
    for state in states:
        if len(state) != 3 or any(
            a >= 0 and b >= 0 and a != b for a, b in zip(state, (many, x[1], width), strict=True)
        ):
            raise ShapeError(
                f"op '{kind}' takes first states [{many}, {x[1] if x[1] >= 0 else 'N'}, {width}],"
                f" not {list(state)}"
            )


def _too_long(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Any:
    length = inputs.get("SequenceLength")
    if length is not None and length.size:
        most = inputs["Input"].shape[0]
        yield (
            length.max() > most,
            f"takes sequences of up to {most} steps, but SequenceLength has {VALUE}",
            length.max(),
        )
        yield (
            length.min() < 0,
            f"takes no negative length, but SequenceLength has {VALUE}",
            length.min(),
        )


@op(
    outs="Out DropoutState? State* Reserve~", grad="Input PreState WeightList SequenceLength DropoutState Reserve Out",
    nograd="SequenceLength", infer=_rnn_specs, rows=mixes(), bounds=FREE, refuses=_too_long,
)  # fmt: skip
def rnn(
    Input: Array, PreState: list[Array], WeightList: list[Array], SequenceLength: Array | None, *, dropout_prob: float = 0.0,
    is_bidirec: bool = False, input_size: int = 10, hidden_size: int = 100, num_layers: int = 1, mode: str = "RNN_TANH",
    seed: int = 0, is_test: bool = False, key: jax.Array,
):  # fmt: skip
    """Out [T, N, H * directions] = the last layer's h[t], with p = x[t] @ Wx^T + bx and q = h[t -
    1] @ Wh^T + bh; State: the last states.

    LSTM: i, f, g, o = the parts of p + q, c[t] = sigmoid(f) * c[t - 1] + sigmoid(i) * tanh(g), h[t]
    = sigmoid(o) * tanh(c[t]). GRU: r, u = sigmoid(p + q) of the first two parts, h[t] = u * h[t -
    1] + (1 - u) * tanh(p3 + r * q3). RNN_TANH, RNN_RELU: h[t] = act(p + q). Input [T, N, D].
    PreState, State: h, of an LSTM also c, each [layers * directions, N, H]. WeightList: Wx [G * H,
    D or H * directions] and Wh [G * H, H] of every layer and direction, then bx and bh [G * H] of
    each. SequenceLength [N]: beyond it Out is 0 and states do not change; the backward direction
    begins at its end. Unless is_test, a share dropout_prob of the values between layers is dropped
    and the rest divided by 1 - dropout_prob; DropoutState: the mask. Reserve is Paddle's own, empty
    here.
    """
    cell, count = _cell(mode), num_layers * (1 + is_bidirec)
    wide = (1 + is_bidirec) * hidden_size
    matrices, biases = WeightList[: 2 * count], WeightList[2 * count :]
    weights = [(*matrices[i : i + 2], *biases[i : i + 2]) for i in range(0, 2 * count, 2)]
    there = None if SequenceLength is None else jnp.arange(Input.shape[0])[:, None] < SequenceLength
    kept = _masks(key, Input, num_layers, wide, dropout_prob, is_test)
    out, last = _layers(cell, Input, PreState, weights, 1 + is_bidirec, there, dropout_prob, kept)
    shown = (
        jnp.ones((num_layers - 1, *Input.shape[:2], wide), np.uint8)
        if kept is None
        else kept.astype(np.uint8)
    )
    return out, shown, last, jnp.zeros((0,), Input.dtype)


# -- cuDNN's LSTM ----------------------------------------------------------------------------------


def flat_size(size: int, width: int, layers: int, directions: int) -> int:
    """The number of elements of the flat weight of a cudnn_lstm."""
    return sum(
        int(np.prod(shape)) for _, shape in _shapes(CELLS["LSTM"], size, width, layers, directions)
    )


def _cut(flat: Any, size: int, width: int, layers: int, directions: int) -> list[Weights]:
    """The weights of each layer and direction in cuDNN's order: first all matrices, each [4 * H,
    ...], then all biases.
    """
    parts, at = [], 0
    for _, shape in _shapes(CELLS["LSTM"], size, width, layers, directions):
        parts.append(flat[at : at + int(np.prod(shape))].reshape(shape))
        at += int(np.prod(shape))
    count = layers * directions
    return [
        (*parts[2 * i : 2 * i + 2], *parts[2 * (count + i) : 2 * (count + i) + 2])
        for i in range(count)
    ]


def _flat_specs(
    Input: Spec,
    InitH: Spec,
    InitC: Spec,
    W: Spec,
    Cache: Spec | None,
    *,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    **_: Any,
) -> tuple[Spec, Spec, Spec]:
    directions = 1 + is_bidirec
    _fitting(
        "cudnn_lstm",
        Input.shape,
        [_three(s.shape) for s in (InitH, InitC)],
        CELLS["LSTM"],
        num_layers * directions,
        hidden_size,
    )
    size = Input.shape[2]
    needed = flat_size(size, hidden_size, num_layers, directions) if size >= 0 else -1
    if size >= 0 and -1 not in W.shape and np.prod(W.shape) != needed:
        raise ShapeError(f"op 'cudnn_lstm' takes a W of {needed} numbers here, not {list(W.shape)}")
    state = Spec((num_layers * directions, Input.shape[1], hidden_size), Input.dtype)
    return Spec((*Input.shape[:2], directions * hidden_size), Input.dtype), state, state


def _three(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of first states; those of one layer may be [N, H]."""
    return (1, *shape) if len(shape) == 2 else tuple(shape)


@op(
    outs="Out last_h last_c",
    grad="Input InitH InitC W Cache Out",
    nograd="Cache",
    infer=_flat_specs,
    rows=mixes(),
    heavy=True,
)
def cudnn_lstm(
    Input: Array, InitH: Array, InitC: Array, W: Array, Cache: Array | None, *, max_len: int = 20, dropout_prob: float = 0.0,
    is_bidirec: bool = False, input_size: int = 10, hidden_size: int = 100, num_layers: int = 1, is_test: bool = False,
    seed: int = -1, key: jax.Array,
):  # fmt: skip
    """Out [T, N, H * directions], last_h, last_c = rnn with mode LSTM, with weights concatenated in
    the vector W.

    Input [T, N, D]; InitH, InitC, last_h, last_c [layers * directions, N, H]. W: for each layer and
    direction the weights of the input [4H, D or H * directions] and of the state [4H, H], then for
    each the bias of the input [4H] and of the state [4H]; the gates are in the order input, forget,
    candidate, output. Cache and max_len belong to Paddle's GPU kernel and are ignored.
    """
    directions = 1 + is_bidirec
    weights = _cut(W.reshape(-1), Input.shape[2], hidden_size, num_layers, directions)
    kept = _masks(key, Input, num_layers, directions * hidden_size, dropout_prob, is_test)
    first = [s.reshape(_three(s.shape)) for s in (InitH, InitC)]
    out, (h, c) = _layers(
        CELLS["LSTM"], Input, first, weights, directions, None, dropout_prob, kept
    )
    return out, h, c
