"""One step of a recurrence on plain rows: gru_unit, lstm_unit. The recurrences along sequences are
in rnn.py.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..errors import EnforceNotMet, ShapeError
from .broadcast import same_rows
from .infer import Spec
from .registry import Array, grad_of, op
from .traits import row_wise

ACTIVATIONS = (lambda x: x, jax.nn.sigmoid, jnp.tanh, jax.nn.relu)  # by Paddle's numbers


def _activation(number: int) -> Any:
    if not 0 <= number < len(ACTIVATIONS):
        raise EnforceNotMet(
            "op 'gru_unit' knows the activations 0 identity, 1 sigmoid, 2 tanh, 3 relu, not"
            f" {number}"
        )
    return ACTIVATIONS[number]


def _gru_unit_specs(
    Input: Spec, HiddenPrev: Spec, Weight: Spec, Bias: Spec | None, **_: Any
) -> tuple[Spec, ...]:
    width = HiddenPrev.shape[-1]
    fits = (
        len(Weight.shape) == 2
        and Weight.shape[0] in (-1, width)
        and Weight.shape[1] in (-1, 3 * width)
    )
    if width >= 0 and not (fits and Input.shape[-1] in (-1, 3 * width)):
        raise ShapeError(
            "op 'gru_unit' takes Input [N, 3 * D], HiddenPrev [N, D] and Weight [D, 3 * D], not"
            f" {list(Input.shape)}, {list(HiddenPrev.shape)} and {list(Weight.shape)}"
        )
    rows = Input.shape[0] if Input.shape[0] >= 0 else HiddenPrev.shape[0]
    state = Spec((rows, width), Input.dtype)
    return Spec((rows, 3 * width), Input.dtype), state, state


@op(
    outs="Gate~ ResetHiddenPrev~ Hidden",
    grad="Input HiddenPrev Weight Bias Gate ResetHiddenPrev",
    grad_outs="Hidden",
    infer=_gru_unit_specs,
    rows=row_wise("Input", "HiddenPrev", lod=None),
)
def gru_unit(
    Input: Array,
    HiddenPrev: Array,
    Weight: Array,
    Bias: Array | None,
    *,
    activation: int = 2,
    gate_activation: int = 1,
    origin_mode: bool = False,
):
    """Hidden = (1 - u) * h + u * c; with origin_mode u * h + (1 - u) * c, where h = HiddenPrev.

    u, r = gate_activation(x[:2D] + h @ Wg), c = activation(x[2D:] + (r * h) @ Wc), x = Input +
    Bias. Input [N, 3D], h [N, D], Bias [1, 3D]; Weight [D, 3D] holds, as flat memory, Wg [D, 2D]
    followed by Wc [D, D]. Gate = [u, r, c], ResetHiddenPrev = r * h. Activations by number: 0
    identity, 1 sigmoid, 2 tanh, 3 relu.
    """
    same_rows("gru_unit", Input=Input, HiddenPrev=HiddenPrev)
    h, width = HiddenPrev, HiddenPrev.shape[-1]
    flat = Weight.reshape(-1)
    gates, candidate = (
        flat[: 2 * width * width].reshape(width, 2 * width),
        flat[2 * width * width :].reshape(width, width),
    )
    x = Input if Bias is None else Input + Bias.reshape(1, -1)
    u, r = jnp.split(_activation(gate_activation)(x[:, : 2 * width] + h @ gates), 2, 1)
    reset = r * h
    c = _activation(activation)(x[:, 2 * width :] + reset @ candidate)
    hidden = c + u * (h - c) if origin_mode else h + u * (c - h)
    return jnp.concatenate([u, r, c], 1), reset, hidden


def _lstm_unit_specs(X: Spec, C_prev: Spec, **_: Any) -> tuple[Spec, Spec]:
    width = C_prev.shape[-1]
    if width >= 0 and X.shape[-1] not in (-1, 4 * width):
        raise ShapeError(
            f"op 'lstm_unit' takes X [N, 4 * D] and C_prev [N, D], not {list(X.shape)} and"
            f" {list(C_prev.shape)}"
        )
    return C_prev, C_prev


@op(outs="C H", grad="X C_prev C", infer=_lstm_unit_specs, rows=row_wise("X", "C_prev", lod=None))
def lstm_unit(X: Array, C_prev: Array, *, forget_bias: float = 0.0):
    """C = sigmoid(f + forget_bias) * C_prev + sigmoid(i) * tanh(g), H = sigmoid(o) * tanh(C); X [N,
    4D] = i, f, o, g.
    """
    same_rows("lstm_unit", X=X, C_prev=C_prev)
    i, f, o, g = jnp.split(X, 4, 1)
    cell = jax.nn.sigmoid(f + forget_bias) * C_prev + jax.nn.sigmoid(i) * jnp.tanh(g)
    return cell, jax.nn.sigmoid(o) * jnp.tanh(cell)


@op(outs="Out", rows=row_wise("X"))
def rnn_memory_helper(X: Array, *, dtype: int = 5):
    """Out = X: the value that a step of a recurrent block passes on."""
    return X


@grad_of("rnn_memory_helper", "X Out", fed_by_steps=True)
def rnn_memory_helper_grad(X: Array, Out: Array, d_Out: Array):
    """X@GRAD = Out@GRAD; 0 if no step passes one back."""
    return jnp.zeros_like(X) if d_Out is None else d_Out
