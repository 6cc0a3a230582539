"""Recurrences with the projection of their inputs: fusion_gru, fusion_lstm,
fused_embedding_fc_lstm, attention_lstm.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..errors import ShapeError
from . import loops
from .bounds import size_of
from .infer import Spec
from .ragged import Ragged, copied, mask, pack, sequences_of, view
from .registry import Array, op
from .rnn import activation_of, batched, first_state, gru, lstm
from .traits import Bounds, knows_rows


def _ordered(x: Ragged, state: Array | None, width: int) -> Any:
    """The first states with the longest sequence first, as in Paddle's batches; 0 if none is given."""
    if state is None:
        return jnp.zeros((x.sequences, width), x.dtype)
    return state[jnp.argsort(-x.lengths, stable=True)]


def _gru_specs(
    X: Spec, H0: Spec | None, WeightX: Spec, WeightH: Spec, Bias: Spec | None, **_: Any
) -> tuple[Spec, ...]:
    width, rows = WeightH.shape[0], X.shape[0]
    if (
        WeightH.shape != (width, 3 * width)
        or WeightX.shape[1] != 3 * width
        or WeightX.shape[0] not in (-1, X.shape[-1])
    ):
        raise ShapeError(
            "op 'fusion_gru' takes X [rows, M], WeightX [M, 3 * D] and WeightH [D, 3 * D], not"
            f" {list(X.shape)}, {list(WeightX.shape)} and {list(WeightH.shape)}"
        )
    wide, state = Spec((rows, 3 * width), X.dtype), Spec((rows, width), X.dtype)
    return Spec((-1, width), X.dtype), wide, wide, state, state


@op(
    outs="ReorderedH0~ XX~ BatchedInput~ BatchedOut~ Hidden",
    infer=_gru_specs,
    rows=knows_rows(Hidden="X"),
)
def fusion_gru(
    X: Ragged, H0: Array | None, WeightX: Array, WeightH: Array, Bias: Array | None, *, activation: str = "tanh",
    gate_activation: str = "sigmoid", is_reverse: bool = False, use_seq: bool = True, origin_mode: bool = False,
):  # fmt: skip
    """Hidden = gru(X @ WeightX + Bias, H0, WeightH); see there. As in 1.8.5, origin_mode is
    ignored.

    use_seq selects an implementation in Paddle; ignored here.
    """
    x = sequences_of("fusion_gru", "X", X, 1)
    inner = x.with_rows(x.rows @ WeightX + (0 if Bias is None else Bias.reshape(1, -1)))
    gates = {"activation": activation, "gate_activation": gate_activation}
    *_, states, hidden = gru(inner, H0, WeightH, None, is_reverse=is_reverse, **gates)
    first = _ordered(x, H0, WeightH.shape[0])
    return (
        first,
        x.with_rows(inner.rows, bare=True),
        batched(x, inner.rows, is_reverse),
        states,
        hidden,
    )


def _lstm_specs(rows: int, dtype: str, WeightH: Spec) -> tuple[Spec, ...]:
    width = WeightH.shape[0]
    state, wide, first = (
        Spec((rows, width), dtype),
        Spec((rows, 4 * width), dtype),
        Spec((-1, width), dtype),
    )
    return state, state, wide, wide, state, state, first, first


def _fusion_lstm_specs(X: Spec, WeightX: Spec, WeightH: Spec, **_: Any) -> tuple[Spec, ...]:
    width = WeightH.shape[0]
    if (
        WeightH.shape != (width, 4 * width)
        or WeightX.shape[1] != 4 * width
        or WeightX.shape[0] not in (-1, X.shape[-1])
    ):
        raise ShapeError(
            "op 'fusion_lstm' takes X [rows, M], WeightX [M, 4 * D] and WeightH [D, 4 * D], not"
            f" {list(X.shape)}, {list(WeightX.shape)} and {list(WeightH.shape)}"
        )
    return *_lstm_specs(X.shape[0], X.dtype, WeightH), Spec((2, width), X.dtype)


_LSTM_OUTS = "Hidden Cell XX~ BatchedInput~ BatchedHidden~ BatchedCell~ ReorderedH0~ ReorderedC0~"


def _lstm(
    x: Ragged,
    inner: Any,
    weight: Array,
    bias: Array,
    H0: Array | None,
    C0: Array | None,
    reverse: bool,
    **attrs: Any,
) -> Any:
    """The outputs of an LSTM whose projected inputs (without bias) are given."""
    width = weight.shape[0]
    hidden, cell, *_ = lstm(x.with_rows(inner), H0, C0, weight, bias, is_reverse=reverse, **attrs)
    ordered = (
        batched(x, inner, reverse),
        batched(x, hidden.rows, reverse),
        batched(x, cell.rows, reverse),
    )
    first = _ordered(x, H0, width), _ordered(x, C0, width)
    return hidden, cell, x.with_rows(inner, bare=True), *ordered, *first


@op(
    outs=f"{_LSTM_OUTS} CheckedCell~",
    infer=_fusion_lstm_specs,
    rows=knows_rows(Hidden="X", Cell="X"),
)
def fusion_lstm(
    X: Ragged, WeightX: Array, WeightH: Array, Bias: Array, H0: Array | None, C0: Array | None, *, use_peepholes: bool = True,
    is_reverse: bool = False, use_seq: bool = True, gate_activation: str = "sigmoid", cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
):  # fmt: skip
    """Hidden, Cell = lstm(X @ WeightX, H0, C0, WeightH, Bias); see there. use_seq selects an
    implementation in Paddle; ignored here.
    """
    x = sequences_of("fusion_lstm", "X", X, 1)
    acts = {
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    found = _lstm(
        x, x.rows @ WeightX, WeightH, Bias, H0, C0, is_reverse, use_peepholes=use_peepholes, **acts
    )
    return *found, jnp.zeros((2, WeightH.shape[0]), x.dtype)


def _embedded_specs(Ids: Spec, Embeddings: Spec, WeightH: Spec, **_: Any) -> tuple[Spec, ...]:
    width = WeightH.shape[0]
    if (
        WeightH.shape != (width, 4 * width)
        or Embeddings.shape[1] != 4 * width
        or Ids.shape[-1] not in (-1, 1)
    ):
        raise ShapeError(
            "op 'fused_embedding_fc_lstm' takes Ids [rows, 1], Embeddings [height, 4 * D] and"
            f" WeightH [D, 4 * D], not {list(Ids.shape)}, {list(Embeddings.shape)} and"
            f" {list(WeightH.shape)}"
        )
    return _lstm_specs(Ids.shape[0], Embeddings.dtype, WeightH)


@op(
    outs=_LSTM_OUTS,
    infer=_embedded_specs,
    rows=knows_rows(Hidden="Ids", Cell="Ids"),
    bounds=Bounds("Ids", "ids", size_of("Embeddings", 0)),
)
def fused_embedding_fc_lstm(
    Ids: Ragged, Embeddings: Array, WeightH: Array, Bias: Array, H0: Array | None, C0: Array | None, *,
    use_peepholes: bool = True, is_reverse: bool = False, use_seq: bool = True, gate_activation: str = "sigmoid",
    cell_activation: str = "tanh", candidate_activation: str = "tanh",
):  # fmt: skip
    """Hidden, Cell = lstm(Embeddings[Ids], H0, C0, WeightH, peepholes of Bias): Embeddings [height,
    4D] have the bias of the gates.
    """
    x = sequences_of("fused_embedding_fc_lstm", "Ids", Ids, 1)
    inner = jnp.take(Embeddings, x.rows.reshape(-1), axis=0, mode="clip")
    bias = Bias.reshape(-1).at[: 4 * WeightH.shape[0]].set(0)
    acts = {
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    return _lstm(
        x.with_rows(inner),
        inner,
        WeightH,
        bias,
        H0,
        C0,
        is_reverse,
        use_peepholes=use_peepholes,
        **acts,
    )


def _attention_specs(X: Spec, C0: Spec, LSTMWeight: Spec, **_: Any) -> tuple[Spec, ...]:
    rows, columns = X.shape
    width = LSTMWeight.shape[1] // 4
    if (
        len(LSTMWeight.shape) != 2
        or LSTMWeight.shape[1] % 4
        or (columns >= 0 and LSTMWeight.shape[0] != columns + width)
    ):
        raise ShapeError(
            "op 'attention_lstm' takes X [rows, M] and LSTMWeight [D + M, 4 * D], not"
            f" {list(X.shape)} and {list(LSTMWeight.shape)}"
        )
    state = Spec((rows, width), X.dtype)
    return (
        state,
        state,
        Spec((rows, 1), X.dtype),
        Spec((-1, 1), X.dtype),
        Spec((1, columns), X.dtype),
        Spec((1, 4 * width), X.dtype),
    )


@op(
    outs="Hidden Cell AttentionedX~ AttentionFCOut~ LSTMX~ LSTMOUT~",
    infer=_attention_specs,
    rows=knows_rows(Hidden="X", Cell="X"),
)
def attention_lstm(
    X: Ragged, C0: Array, H0: Array | None, AttentionWeight: Array, AttentionBias: Array | None, AttentionScalar: Array | None,
    AttentionScalarBias: Array | None, LSTMWeight: Array, LSTMBias: Array, *, gate_activation: str = "sigmoid",
    cell_activation: str = "tanh", candidate_activation: str = "tanh",
):  # fmt: skip
    """Hidden[t] = o * cell_activation(Cell[t]), Cell[t] = f * c + i * candidate_activation(g), with
    c, h = Cell, Hidden[t - 1].

    f, i, o = gate_activation of the first three parts of [h, a] @ LSTMWeight + LSTMBias, g: the
    fourth. a is the sum of the sequence's rows of X, weighted by softmax of relu([x, c] @
    AttentionWeight + AttentionBias), which AttentionScalar multiplies and relu(. +
    AttentionScalarBias) ends, if given. C0, H0 [N, D]: the first states.
    """
    x = sequences_of("attention_lstm", "X", X, 1)
    size, width = x.rows.shape[1], LSTMWeight.shape[1] // 4
    gate, shown, act = (
        activation_of("attention_lstm", n)
        for n in (gate_activation, cell_activation, candidate_activation)
    )
    weight, cells, there = AttentionWeight.reshape(-1), view(x), mask(x)
    scores = x.rows @ weight[:size] + (0 if AttentionBias is None else AttentionBias.reshape(()))
    rows = view(x.with_rows(scores))

    def step(state: Any, alive: Any) -> tuple[Any, Any]:
        h, c = state
        found = jax.nn.relu(rows + (c @ weight[size:])[:, None])
        if AttentionScalar is not None:
            bias = 0 if AttentionScalarBias is None else AttentionScalarBias.reshape(())
            found = jax.nn.relu(found * AttentionScalar.reshape(()) + bias)
        share = jax.nn.softmax(found, axis=1, where=there)
        sums = jnp.einsum("nt,ntm->nm", share, cells)
        gates = h @ LSTMWeight[:width] + sums @ LSTMWeight[width:] + LSTMBias.reshape(1, -1)
        f, i, o, g = jnp.split(gates, 4, 1)
        cell = gate(f) * c + gate(i) * act(g)
        hidden = gate(o) * shown(cell)
        new = tuple(jnp.where(alive[:, None], a, b) for a, b in ((hidden, h), (cell, c)))
        return new, (hidden, cell, found, sums, gates)

    start = (
        first_state("attention_lstm", "H0", H0, x, width),
        first_state("attention_lstm", "C0", C0, x, width),
    )
    _, (hidden, cell, found, sums, gates) = loops.scan(step, start, there.T)
    out = [x.with_rows(copied(x.with_rows(pack(x, jnp.moveaxis(v, 0, 1))))) for v in (hidden, cell)]
    return (
        *out,
        x.with_rows(scores[:, None], bare=True),
        found[-1, -1][:, None],
        sums[-1, -1:],
        gates[-1, -1:],
    )
