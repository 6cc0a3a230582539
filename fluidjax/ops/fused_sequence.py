"""Ops that replace several others on sequences: pooling, windows, expansion and embeddings, each
with its neighbours.

1.8.5's inference passes write them. The recurrent ones are in fused_rnn.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .bounds import table_height
from .embed import NO_PADDING
from .index import narrow, put, take
from .infer import Spec
from .ragged import Ragged, rows_of, sequences_of
from .registry import Array, Int64, SelectedRows, grad_of, op
from .sequence import sequence_pool
from .sequence_conv import sequence_conv
from .traits import Attrs, Bounds, SparseGradient, knows_rows

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x, "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "tanh": jnp.tanh,
}  # fmt: skip


def _conv_specs(
    X: Spec, Filter: Spec, Bias: Spec, *, contextLength: int, **_: Any
) -> tuple[Spec, Spec]:
    if (
        len(X.shape) != 2
        or len(Filter.shape) != 2
        or (X.shape[1] >= 0 and Filter.shape[0] != contextLength * X.shape[1])
    ):
        raise ShapeError(
            f"op 'fusion_seqconv_eltadd_relu' takes X [rows, D] and Filter [{contextLength} * D,"
            f" M], not {list(X.shape)} and {list(Filter.shape)}"
        )
    return Spec((X.shape[0], Filter.shape[1]), X.dtype), Spec(
        (X.shape[0], Filter.shape[0]), X.dtype
    )


@op(outs="Out ColMat~", infer=_conv_specs, rows=knows_rows(Out="X", by_offsets=True), heavy=True)
def fusion_seqconv_eltadd_relu(
    X: Ragged,
    Filter: Array,
    Bias: Array,
    *,
    contextLength: int,
    contextStart: int = 0,
    contextStride: int = 1,
):
    """Out = relu(sequence_conv(X, Filter) + Bias); ColMat: the windows that Filter is applied to."""
    x = sequences_of("fusion_seqconv_eltadd_relu", "X", X, 1)
    attrs = {
        "contextLength": contextLength,
        "contextStart": contextStart,
        "contextStride": contextStride,
    }
    windows = sequence_conv(x, None, jnp.eye(Filter.shape[0], dtype=x.dtype), **attrs)
    out = jax.nn.relu(windows.rows @ Filter + Bias.reshape(1, -1))
    return x.with_rows(out), x.with_rows(windows.rows, bare=True)


def _expanded_specs(
    X: tuple[Spec, ...], FCWeight: Spec, FCBias: Spec | None, *, fc_activation: str
) -> tuple[Spec, Spec]:
    if fc_activation not in ACTIVATIONS:
        raise EnforceNotMet(
            f"op 'fusion_seqexpand_concat_fc' knows no fc_activation {fc_activation!r}; it knows"
            f" {', '.join(ACTIVATIONS)}"
        )
    widths = [s.shape[1] for s in X]
    if len(X) < 2 or (min(widths) >= 0 and sum(widths) != FCWeight.shape[0]):
        raise ShapeError(
            "op 'fusion_seqexpand_concat_fc' takes two X or more and an FCWeight with a row for"
            f" each of their columns, not {widths} columns and {list(FCWeight.shape)}"
        )
    return Spec((X[0].shape[0], FCWeight.shape[1]), X[0].dtype), Spec(
        (-1, FCWeight.shape[1]), X[0].dtype
    )


@op(outs="Out FCOut~", infer=_expanded_specs, rows=knows_rows(Out="X"))
def fusion_seqexpand_concat_fc(
    X: list[Ragged], FCWeight: Array, FCBias: Array | None, *, fc_activation: str = "identity"
):
    """Out = fc_activation([row of X[0], row n of X[1], ...] @ FCWeight + FCBias), for each row of
    sequence n of X[0].

    X[0] [rows, D] with one LoD level, others [N, Di]. FCOut [N, M]: the contribution of the others
    and the bias.
    """
    x = sequences_of("fusion_seqexpand_concat_fc", "X[0]", X[0], 1)
    width = x.rows.shape[1]
    beside = jnp.concatenate([rows_of(v) for v in X[1:]], 1)
    if beside.shape[0] != x.sequences:
        raise EnforceNotMet(
            f"op 'fusion_seqexpand_concat_fc' takes a row for each of the {x.sequences} sequences"
            f" of X[0], but the others have {beside.shape[0]}"
        )
    part = beside @ FCWeight[width:] + (0 if FCBias is None else FCBias.reshape(1, -1))
    out = x.rows @ FCWeight[:width] + part[jnp.minimum(x.sequence(), max(x.sequences - 1, 0))]
    return x.with_rows(ACTIVATIONS[fc_activation](out)), part


def _concat_spec(op_type: str, X: tuple[Spec, ...], pooltype: str, axis: int) -> Spec:
    if pooltype not in ("SUM", "AVERAGE", "SQRT"):
        raise EnforceNotMet(
            f"op '{op_type}' knows the pooltypes SUM, AVERAGE and SQRT, not {pooltype!r}"
        )
    if axis != 1:
        raise EnforceNotMet(f"op '{op_type}' joins along axis 1, not {axis}")
    widths = [s.shape[1] for s in X]
    return Spec((-1, sum(widths) if min(widths) >= 0 else -1), X[0].dtype)


def _pooled_spec(X: tuple[Spec, ...], *, pooltype: str, axis: int) -> Spec:
    return _concat_spec("fusion_seqpool_concat", X, pooltype, axis)


def _one_level(levels: Mapping[str, int], attrs: Attrs) -> dict[str, int]:
    return {"Out": 1}


def _side_by_side(parts: list[Any]) -> Ragged:
    """Rows joined along axis 1; each row is a sequence."""
    rows = jnp.concatenate(parts, 1)
    n = rows.shape[0]
    return Ragged(rows, (jnp.arange(n + 1, dtype=jnp.int32),), (min(n, 1),), ("rows alone", n))


@op(outs="Out", infer=_pooled_spec, rows=knows_rows(_one_level, by_offsets=True))
def fusion_seqpool_concat(X: list[Ragged], *, pooltype: str = "SUM", axis: int = 1):
    """Out [N, ...] = the pooled sequences of every X, side by side; pooltype SUM, AVERAGE or SQRT."""
    return _side_by_side([rows_of(sequence_pool(x, pooltype=pooltype)[0]) for x in X])


def _cvm_spec(X: tuple[Spec, ...], CVM: Spec, *, pooltype: str, use_cvm: bool, axis: int) -> Spec:
    if not use_cvm:
        raise EnforceNotMet(
            "op 'fusion_seqpool_cvm_concat' takes a use_cvm of True, as in Paddle 1.8.5"
        )
    return _concat_spec("fusion_seqpool_cvm_concat", X, pooltype, axis)


@op(outs="Out", infer=_cvm_spec, rows=knows_rows(_one_level))
def fusion_seqpool_cvm_concat(
    X: list[Ragged], CVM: Array, *, pooltype: str = "SUM", use_cvm: bool = True, axis: int = 1
):
    """Out [N, ...] = the pooled sequences of every X, side by side, with s = log(show + 1),
    log(click + 1) - s as first two columns.

    Show and click are the first two columns of the pooled sequences.
    """
    found = []
    for x in X:
        rows = rows_of(sequence_pool(x, pooltype=pooltype)[0])
        show, click = jnp.log(rows[:, :1] + 1), jnp.log(rows[:, 1:2] + 1)
        found.append(jnp.concatenate([show, click - show, rows[:, 2:]], 1))
    return _side_by_side(found)


def _bag_spec(W: Spec, Ids: Spec, *, combiner: str, **_: Any) -> Spec:
    if combiner != "sum":
        raise EnforceNotMet(
            f"op 'fused_embedding_seq_pool' knows the combiner sum, not {combiner!r}"
        )
    if Ids.shape[-1:] not in ((1,), (-1,)):
        raise ShapeError(
            f"op 'fused_embedding_seq_pool' takes Ids [rows, 1], not {list(Ids.shape)}"
        )
    return Spec((-1, W.shape[1]), W.dtype)


@op(
    outs="Out",
    infer=_bag_spec,
    rows=knows_rows(by_offsets=True),
    sparse=SparseGradient(by="is_sparse", table="W"),
    bounds=Bounds("Ids", "ids", table_height),
)
def fused_embedding_seq_pool(
    W: Array,
    Ids: Ragged,
    *,
    combiner: str = "sum",
    is_sparse: bool = False,
    grad_inplace: bool = False,
    padding_idx: Int64 = -1,
):
    """Out[n] = the sum of W[id] over the rows of sequence n; nothing for padding_idx (-1: none).
    Ids [rows, 1], Out [N, D].
    """
    ids = sequences_of("fused_embedding_seq_pool", "Ids", Ids, 1)
    index = ids.rows.reshape(-1)
    rows = take(W, narrow(index, W.shape[:1])[:, None])
    if padding_idx != NO_PADDING:
        rows = jnp.where((index == padding_idx)[:, None], np.zeros((), W.dtype), rows)
    return jax.ops.segment_sum(rows, ids.sequence(), ids.sequences)


@grad_of("fused_embedding_seq_pool", "W Ids", nograd="Ids")
def fused_embedding_seq_pool_grad(
    W: Array, Ids: Ragged, d_Out: Array, *, is_sparse: bool, padding_idx: Int64
):
    """d_W[id] += Out@GRAD of its sequence; with is_sparse, as sparse rows."""
    ids = sequences_of("fused_embedding_seq_pool", "Ids", Ids, 1)
    index = ids.rows.reshape(-1)
    values = jnp.take(
        rows_of(d_Out), jnp.minimum(ids.sequence(), max(ids.sequences - 1, 0)), axis=0
    )
    true = ids.kept() & (True if padding_idx == NO_PADDING else index != padding_idx)
    values = jnp.where(true[:, None], values, 0)
    rows = narrow(index, (W.shape[0] + 1,))
    if is_sparse:
        return SelectedRows(rows, values, W.shape[0])
    return put(jnp.zeros(W.shape, values.dtype), rows[:, None], values, add=True)
