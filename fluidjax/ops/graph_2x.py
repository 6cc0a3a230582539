"""Rows of tensors as nodes of graphs and as segments, in Paddle 2 and 3; and fold, which adds up
the windows of unfold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, FluidValueError, ShapeError
from .bounds import size_of
from .checking import Objection
from .concrete import concrete, integers, known
from .extremes import by_equality
from .infer import Spec
from .outside import outside, several, within
from .registry import Array, Ints, Longs, op
from .traits import FREE, Bounds, mixes, sizes_from


@jax.custom_jvp
def _felt(x: Any) -> Any:
    """Zeros, through which the gradient flows as through x."""
    return jnp.zeros_like(x)


_felt.defjvps(lambda tangent, zeros, x: tangent)


def _reduced(kind: str, messages: Any, at: Any, size: int, how: str) -> Any:
    """messages [N, ...] reduced by sum, mean, max or min into the rows `at` of [size, ...]; 0 in
    rows without messages.
    """
    how = how.lower()
    zeros = jnp.zeros((size, *messages.shape[1:]), messages.dtype)
    if how == "sum":
        return zeros.at[at].add(messages)
    count = jnp.zeros(size, np.int32).at[at].add(1)
    wide = count.reshape(-1, *[1] * (messages.ndim - 1))
    if how == "mean":
        return zeros.at[at].add(messages) / jnp.maximum(wide, 1).astype(messages.dtype)
    if how not in ("max", "min"):
        raise FluidValueError(f"{kind} reduces rows by sum, mean, max or min, not {how!r}")
    floats = jnp.issubdtype(messages.dtype, jnp.floating)
    worst = -np.inf if floats else np.iinfo(messages.dtype).min
    start = jnp.full(
        zeros.shape,
        worst if how == "max" else (np.inf if floats else np.iinfo(messages.dtype).max),
        messages.dtype,
    )

    def found(messages: Any) -> tuple[Any, Any]:
        best = start.at[at].max(messages) if how == "max" else start.at[at].min(messages)
        return best, messages == best[at]

    best, equal = by_equality(found, jax.lax.stop_gradient(messages))
    # equal extremes all get the gradient
    return jnp.where(wide > 0, best, 0) + zeros.at[at].add(jnp.where(equal, _felt(messages), 0))


def _segment_spec(X: Spec, SegmentIds: Spec, *, pooltype: str) -> tuple[Spec, Spec]:
    return Spec((-1, *X.shape[1:]), X.dtype), Spec((-1, 1), X.dtype)


@op(
    outs="Out SummedIds~",
    grad="X SegmentIds",
    nograd="SegmentIds",
    infer=_segment_spec,
    rows=mixes(),
    sizes=sizes_from("SegmentIds"),
)
def segment_pool(X: Array, SegmentIds: Array, *, pooltype: str = "SUM"):
    """Out [n, ...] = the rows of X with equal SegmentIds (ascending), reduced by `pooltype` (SUM,
    MEAN, MAX, MIN).

    n is the last of SegmentIds + 1; an empty segment gives 0. SummedIds [n, 1]: the sizes of the
    segments, for MEAN.
    """
    ids = concrete(SegmentIds, "segment_pool", "SegmentIds")
    if ids.size and (ids[0] < 0 or (np.diff(ids) < 0).any()):
        raise EnforceNotMet("op 'segment_pool' takes SegmentIds that ascend from 0 or more")
    size = int(ids[-1]) + 1 if ids.size else 0
    count = (
        np.bincount(ids, minlength=size).reshape(-1, 1).astype(X.dtype)
        if pooltype == "MEAN"
        else np.zeros((0, 1), X.dtype)
    )
    return _reduced("segment_pool", X, ids, size, pooltype), count


def _out_size(kind: str, tensor: Any, out_size: Sequence[int], nodes: int) -> int:
    size = integers(kind, "Out_size", tensor, None, out_size)
    return size[0] if size and size[0] > 0 else nodes


def _ends(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
    """Edges that end beyond Out."""
    given = inputs.get("Out_size")
    if given is None or known(given) is not None:
        size = _out_size("graph_send_recv", given, attrs["out_size"], inputs["X"].shape[0])
        yield from outside("node", inputs["Dst_index"], 0, size)


_NODES: dict[str, Any] = dict(rows=mixes(), sizes=sizes_from("Out_size"))


def _sent_spec(
    X: Spec,
    Src_index: Spec,
    Dst_index: Spec,
    Out_size: Spec | None,
    *,
    reduce_op: str,
    out_size: Longs,
) -> tuple[Spec, Spec]:
    n = -1 if Out_size is not None else _out_size("graph_send_recv", None, out_size, X.shape[0])
    return Spec((n, *X.shape[1:]), X.dtype), Spec((-1,), "int32")


@op(
    outs="Out Dst_count~",
    grad="X Src_index Dst_index Out_size",
    nograd="Src_index Dst_index Out_size",
    infer=_sent_spec,
    bounds=Bounds("Src_index", "node", size_of("X", 0)),
    refuses=_ends,
    **_NODES,
)
def graph_send_recv(
    X: Array,
    Src_index: Array,
    Dst_index: Array,
    Out_size: Array | None,
    *,
    reduce_op: str = "SUM",
    out_size: Longs = (0,),
):
    """Out[d] = the rows X[s] of all edges (s, d), reduced by reduce_op (SUM, MEAN, MAX, MIN); 0
    without edges.

    Out has out_size rows, or as many as X. Dst_count: the number of edges that end at each row, for
    MEAN.
    """
    size = _out_size("graph_send_recv", Out_size, out_size, X.shape[0])
    count = jnp.zeros(size, np.int32).at[Dst_index].add(1)
    return _reduced("graph_send_recv", X[Src_index], Dst_index, size, reduce_op), count


_MESSAGES: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": jnp.add,
    "MUL": jnp.multiply,
    "SUB": jnp.subtract,
    "DIV": jnp.divide,
}


def _message(kind: str, x: Any, y: Any, message_op: str) -> Any:
    if message_op not in _MESSAGES:
        raise FluidValueError(
            f"{kind} makes messages by {', '.join(_MESSAGES)}, not {message_op!r}"
        )
    return _MESSAGES[message_op](x, y)


def _mixed_spec(
    X: Spec,
    Y: Spec,
    Src_index: Spec,
    Dst_index: Spec,
    Out_size: Spec | None,
    *,
    message_op: str,
    reduce_op: str,
    out_size: Longs,
) -> tuple[Spec, Spec]:
    n = -1 if Out_size is not None else _out_size("graph_send_ue_recv", None, out_size, X.shape[0])
    y = Y.shape[1:] + (1,) * (len(X.shape) - len(Y.shape))
    try:
        wide = tuple(
            -1 if -1 in (a, b) else np.broadcast_shapes((a,), (b,))[0]
            for a, b in zip(X.shape[1:], y, strict=True)
        )
    except ValueError:
        raise ShapeError(
            f"graph_send_ue_recv takes Y [edges, ...] that fits X {list(X.shape)}, not"
            f" {list(Y.shape)}"
        ) from None
    return Spec((n, *wide), X.dtype), Spec((-1,), "int32")


@op(
    outs="Out Dst_count~",
    grad="X Y Src_index Dst_index Out_size",
    nograd="Src_index Dst_index Out_size",
    infer=_mixed_spec,
    bounds=Bounds("Src_index", "node", size_of("X", 0)),
    refuses=_ends,
    **_NODES,
)
def graph_send_ue_recv(
    X: Array, Y: Array, Src_index: Array, Dst_index: Array, Out_size: Array | None, *, message_op: str = "ADD", reduce_op: str = "SUM",
    out_size: Longs = (0,),
):  # fmt: skip
    """Out[d] = the messages X[s] + Y[e] (message_op ADD or MUL) of all edges e from s to d, reduced
    as in graph_send_recv.
    """
    size = _out_size("graph_send_ue_recv", Out_size, out_size, X.shape[0])
    y = Y.reshape(Y.shape + (1,) * (X.ndim - Y.ndim))
    count = jnp.zeros(size, np.int32).at[Dst_index].add(1)
    return (
        _reduced(
            "graph_send_ue_recv",
            _message("graph_send_ue_recv", X[Src_index], y, message_op),
            Dst_index,
            size,
            reduce_op,
        ),
        count,
    )


_BETWEEN = several(
    within("src_index", "node", lambda inputs, attrs: inputs["x"].shape[0]),
    within("dst_index", "node", lambda inputs, attrs: inputs["y"].shape[0]),
)


@op(
    outs="out",
    grad="x y src_index dst_index",
    nograd="src_index dst_index",
    rows=mixes(),
    bounds=FREE,
    refuses=_BETWEEN,
)
def graph_send_uv(
    x: Array, y: Array, src_index: Array, dst_index: Array, *, message_op: str = "ADD"
):
    """out[e] = x[s] + y[d] (message_op ADD or MUL) of each edge e from s to d."""
    return _message("graph_send_uv", x[src_index], y[dst_index], message_op)


@op(outs="Y", grad="X", rows=mixes())
def fold(
    X: Array,
    *,
    output_sizes: Ints,
    kernel_sizes: Ints,
    strides: Ints = (1, 1),
    paddings: Ints = (0, 0),
    dilations: Ints = (1, 1),
):
    """Y [N, C, H, W] = the windows X [N, C kh kw, L] of an image, added up at the positions of
    `unfold`.
    """
    (high, wide), (kh, kw) = output_sizes, kernel_sizes
    n, cells, count = X.shape
    if cells % (kh * kw):
        raise ShapeError(f"fold takes X [N, C * {kh} * {kw}, L], not {list(X.shape)}")
    top, left, bottom, right = (*paddings, *paddings)[:4] if len(paddings) == 2 else paddings
    rows = (high + top + bottom - dilations[0] * (kh - 1) - 1) // strides[0] + 1
    columns = (wide + left + right - dilations[1] * (kw - 1) - 1) // strides[1] + 1
    if count != rows * columns:
        raise ShapeError(
            f"fold: an image {list(output_sizes)} has {rows * columns} windows, but X"
            f" {list(X.shape)} {count}"
        )
    y = np.arange(kh)[:, None] * dilations[0] + np.arange(rows) * strides[0]
    x = np.arange(kw)[:, None] * dilations[1] + np.arange(columns) * strides[1]
    whole = jnp.zeros((n, cells // (kh * kw), high + top + bottom, wide + left + right), X.dtype)
    parts = X.reshape(n, -1, kh, kw, rows, columns)
    whole = whole.at[:, :, y[:, None, :, None], x[None, :, None, :]].add(parts)
    return jax.lax.slice(whole, (0, 0, top, left), (*whole.shape[:2], top + high, left + wide))
