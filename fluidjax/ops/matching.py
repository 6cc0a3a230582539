"""Matrices of different sizes in one ragged value, channel by channel: match_matrix_tensor,
sequence_topk_avg_pooling, var_conv_2d.

Sequence n of such a value holds [channels, h[n], w[n]] flattened, one number per row. Ops work on a
dense view [N, channels, H, W].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .infer import Spec
from .ragged import Ragged, bounded, copied, pack, segments, sequences_of, view
from .registry import Array, Ints, op
from .traits import knows_rows


@dataclass(frozen=True)
class Boxes:
    """Sizes of the matrices: channels, h and w of each [N], and bounds of h and w."""

    channels: int
    h: Any
    w: Any
    most: tuple[int, int]

    @property
    def offsets(self) -> Any:
        ends = jnp.cumsum(self.channels * self.h * self.w, dtype=jnp.int32)
        return jnp.concatenate([jnp.zeros((1,), jnp.int32), ends])

    def inside(self) -> Any:
        """Which cells of the view belong to a matrix, [N, 1, H, W]."""
        rows = jnp.arange(self.most[0], dtype=jnp.int32) < self.h[:, None]
        return (
            rows[:, :, None]
            & (jnp.arange(self.most[1], dtype=jnp.int32) < self.w[:, None])[:, None, :]
        )[:, None]

    def dense(self, x: Ragged) -> Any:
        """[N, channels, H, W], 0 outside of the matrices."""
        high, wide = self.most
        c, y, z = (jnp.arange(n, dtype=jnp.int32) for n in (self.channels, high, wide))
        h, w = self.h[:, None, None, None], self.w[:, None, None, None]
        at = x.offsets[-1][:-1, None, None, None] + (c[:, None, None] * h + y[:, None]) * w + z
        cells = jnp.take(x.rows.reshape(-1), jnp.clip(at, 0, max(x.capacity - 1, 0)), axis=0)
        return jnp.where(self.inside(), cells, np.zeros((), x.dtype))

    def packed(self, cells: Any) -> Ragged:
        """The ragged value of a view [N, channels, H, W]."""
        n, (high, wide) = self.h.shape[0], self.most
        capacity, offsets = n * self.channels * high * wide, self.offsets
        number = jnp.arange(capacity, dtype=jnp.int32)
        row = jnp.minimum(number, jnp.maximum(offsets[-1] - 1, 0))  # padding: copies of the last
        box = jnp.minimum(segments(offsets, capacity)[row], n - 1)
        at = row - offsets[box]
        h, w = jnp.maximum(self.h[box], 1), jnp.maximum(self.w[box], 1)
        rows = cells[box, jnp.minimum(at // (h * w), self.channels - 1), at // w % h, at % w]
        return bounded(rows[:, None], offsets, self.channels * high * wide)


def _boxes(op_type: str, channels: int, rows: Ragged, columns: Ragged) -> Boxes:
    row, column = sequences_of(op_type, "ROW", rows, 1), sequences_of(op_type, "COLUMN", columns, 1)
    if row.sequences != column.sequences:
        raise EnforceNotMet(
            f"op '{op_type}' takes as many sequences in ROW as in COLUMN, not {row.sequences} and"
            f" {column.sequences}"
        )
    return Boxes(channels, row.lengths, column.lengths, (row.longest[0], column.longest[0]))


def _match_specs(X: Spec, Y: Spec, W: Spec, *, dim_t: int) -> tuple[Spec, Spec]:
    if (
        len(W.shape) != 3
        or W.shape[1] != dim_t
        or X.shape[-1] not in (-1, W.shape[0])
        or Y.shape[-1] not in (-1, W.shape[2])
    ):
        raise ShapeError(
            f"op 'match_matrix_tensor' takes X [rows, D], Y [rows, E] and W [D, {dim_t}, E], not"
            f" {list(X.shape)}, {list(Y.shape)} and {list(W.shape)}"
        )
    return Spec((-1, 1), X.dtype), Spec((-1, 1), X.dtype)


@op(outs="Out Tmp", grad="X Y W Tmp", grad_outs="Out", infer=_match_specs, rows=knows_rows(Out="X"))
def match_matrix_tensor(X: Ragged, Y: Ragged, W: Array, *, dim_t: int = 1):
    """Out = X[n] @ W[:, t, :] @ Y[n]^T for each pair n of sequences and each t: [dim_t, rows of
    X[n], rows of Y[n]], flattened.

    X [rows, D], Y [rows, E]: one LoD level. Tmp = X @ W, flattened: [rows * dim_t * E, 1].
    """
    x, y = (
        sequences_of("match_matrix_tensor", "X", X, 1),
        sequences_of("match_matrix_tensor", "Y", Y, 1),
    )
    if x.sequences != y.sequences:
        raise EnforceNotMet(
            f"op 'match_matrix_tensor' takes as many sequences in X as in Y, not {x.sequences} and"
            f" {y.sequences}"
        )
    half = x.rows @ W.reshape(W.shape[0], -1)
    left = view(x.with_rows(half)).reshape(x.sequences, x.longest[0], dim_t, W.shape[2])
    cells = jnp.einsum("nltd,nrd->ntlr", left, view(y))
    return Boxes(dim_t, x.lengths, y.lengths, (x.longest[0], y.longest[0])).packed(cells), _flat(
        x, half
    )


def _flat(x: Ragged, rows: Any) -> Ragged:
    """Every number of the rows of x (one LoD level) as a separate row, without a LoD."""
    k = rows.shape[1]
    return Ragged(
        rows.reshape(-1, 1),
        (x.offsets[0] * k,),
        (x.longest[0] * k,),
        ("flat", k, x.key),
        x.padded,
        bare=True,
    )


def _top_specs(
    X: Spec, ROW: Spec, COLUMN: Spec, *, topks: Any, channel_num: int
) -> tuple[Spec, Spec]:
    if not topks or min(topks) < 1:
        raise EnforceNotMet(
            f"op 'sequence_topk_avg_pooling' takes topks of 1 or more, not {list(topks)}"
        )
    return Spec((ROW.shape[0], channel_num * len(topks)), X.dtype), Spec((-1,), "int32")


@op(
    outs="Out pos~",
    grad="X ROW COLUMN pos",
    nograd="ROW COLUMN",
    infer=_top_specs,
    rows=knows_rows(),
)
def sequence_topk_avg_pooling(
    X: Ragged, ROW: Ragged, COLUMN: Ragged, *, topks: Ints, channel_num: int
):
    """Out[row, c * K + k] = the sum of the topks[k] greatest numbers in the row of channel c,
    divided by topks[k].

    Sequence n of X holds [channel_num, rows of ROW[n], rows of COLUMN[n]]; a row with fewer numbers
    is summed completely. Out has the LoD of ROW. pos: the columns of the greatest numbers in
    descending order, -1 if there are fewer.
    """
    x, row = (
        sequences_of("sequence_topk_avg_pooling", "X", X, 1),
        sequences_of("sequence_topk_avg_pooling", "ROW", ROW, 1),
    )
    boxes = _boxes("sequence_topk_avg_pooling", channel_num, ROW, COLUMN)
    cells, there, most = boxes.dense(x), boxes.inside(), max(topks)
    order = jnp.argsort(jnp.where(there, -cells, np.inf), axis=-1, stable=True)[..., :most]
    short = most - order.shape[-1]
    count = boxes.w[:, None, None, None]
    places = jnp.arange(order.shape[-1], dtype=jnp.int32)
    values = jnp.where(places < count, jnp.take_along_axis(cells, order, -1), 0)
    sums = jnp.pad(jnp.cumsum(values, -1), ((0, 0), (0, 0), (0, 0), (0, short)), mode="edge")
    means = jnp.stack([sums[..., k - 1] / np.asarray(k, x.dtype) for k in topks], -1)
    columns = jnp.pad(
        jnp.where(places < count, order, -1),
        ((0, 0), (0, 0), (0, 0), (0, short)),
        constant_values=-1,
    )
    out, pos = (
        row.with_rows(copied(row.with_rows(pack(row, _by_rows(v))))) for v in (means, columns)
    )
    return out, pos.rows.reshape(-1).astype(np.int32)


def _by_rows(cells: Any) -> Any:
    """[N, H, channels * K] from [N, channels, H, K]."""
    cells = jnp.moveaxis(cells, 1, 2)
    return cells.reshape(*cells.shape[:2], -1)


def _conv_specs(X: Spec, ROW: Spec, COLUMN: Spec, W: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    want = (attrs["OutputChannel"], attrs["InputChannel"] * attrs["KernelH"] * attrs["KernelW"])
    if tuple(W.shape) != want:
        raise ShapeError(f"op 'var_conv_2d' takes a W of shape {list(want)}, not {list(W.shape)}")
    if min(attrs["StrideH"], attrs["StrideW"]) < 1:
        raise EnforceNotMet("op 'var_conv_2d' takes strides of 1 or more")
    return Spec((-1, 1), X.dtype), Spec((-1, 1), X.dtype)


@op(
    outs="Out Col",
    grad="X ROW COLUMN W Out Col",
    nograd="ROW COLUMN",
    grad_outs="Out",
    infer=_conv_specs,
    rows=knows_rows(Out="X", Col="X"),
    heavy=True,
)
def var_conv_2d(
    X: Ragged, ROW: Ragged, COLUMN: Ragged, W: Array, *, InputChannel: int = 1, OutputChannel: int = 1, StrideH: int = 1,
    StrideW: int = 1, KernelH: int = 1, KernelW: int = 1,
):  # fmt: skip
    """Out = a convolution of each zero-padded image with W, so that Out[n] is [OutputChannel,
    ceil(h / StrideH), ceil(w / StrideW)].

    Sequence n of X holds the image [InputChannel, h, w], with h rows in ROW[n] and w in COLUMN[n].
    Col: the windows, [InputChannel * KernelH * KernelW, windows] of each image; W [OutputChannel,
    InputChannel * KernelH * KernelW].
    """
    x = sequences_of("var_conv_2d", "X", X, 1)
    boxes = _boxes("var_conv_2d", InputChannel, ROW, COLUMN)
    steps, kernel = (StrideH, StrideW), (KernelH, KernelW)
    sizes = tuple(-(-n // s) for n, s in zip(boxes.most, steps, strict=True))
    image = jnp.pad(boxes.dense(x), ((0, 0), (0, 0), *((k // 2, k) for k in kernel)))
    windows = [
        image[
            :,
            :,
            i : i + (sizes[0] - 1) * StrideH + 1 : StrideH,
            j : j + (sizes[1] - 1) * StrideW + 1 : StrideW,
        ]
        for i in range(KernelH)
        for j in range(KernelW)
    ]
    cells = jnp.stack(windows, 2).reshape(x.sequences, -1, *sizes)
    h, w = -(-boxes.h // StrideH), -(-boxes.w // StrideW)
    out = Boxes(OutputChannel, h, w, sizes).packed(jnp.einsum("ok,nkyx->noyx", W, cells))
    return out, Boxes(cells.shape[1], h, w, sizes).packed(cells)
