"""center_loss: the distances of features from the centres of their classes, and the moved centres."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import size_of
from .ragged import Ragged, beside, counted, rows_of
from .registry import Array, grad_of, op
from .traits import Bounds, knows_rows


@op(
    outs="CentersOut SampleCenterDiff Loss",
    inplace={"CentersOut": "Centers"},
    rows=knows_rows(each="", Loss="X"),
    bounds=Bounds("Label", "label", size_of("Centers", 0)),
)
def center_loss(
    X: Array | Ragged, Label: Array | Ragged, Centers: Array, CenterUpdateRate: Array, *, cluster_num: int, need_update: bool,
):  # fmt: skip
    """Loss[i] = 0.5 sum(d[i]^2) with d = SampleCenterDiff = X - Centers[Label].

    Loss [N, 1], X [N, D], Label [N, 1], Centers [cluster_num, D]. CentersOut = Centers, each moved
    by CenterUpdateRate * (the sum of its samples' d) / (1 + their number) if need_update.
    """
    padded = counted("center_loss", X=X, Label=Label)
    x: Any = rows_of(X)
    label: Any = rows_of(Label)
    if x.ndim != 2 or Centers.shape != (cluster_num, x.shape[1]) or label.size != x.shape[0]:
        raise ShapeError(
            f"op 'center_loss' takes X [N, D], Label [N, 1] and Centers [{cluster_num}, D], not"
            f" {list(x.shape)}, {list(label.shape)} and {list(Centers.shape)}"
        )
    label = label.reshape(-1)
    diff = x - jnp.take(Centers, label, axis=0, mode="clip")
    loss: Any = 0.5 * jnp.sum(diff * diff, 1, keepdims=True)
    loss = X.with_rows(loss) if isinstance(X, Ragged) else beside(padded, loss)
    if not need_update:
        return Centers, beside(padded, diff), loss
    true = np.ones((), x.dtype) if padded is None else padded.kept().astype(x.dtype)
    count = jnp.ones(cluster_num, x.dtype).at[label].add(true)
    moved = (
        jnp.zeros_like(Centers)
        .at[label]
        .add(diff if padded is None else jnp.where(true[:, None] > 0, diff, 0))
        / count[:, None]
    )
    return Centers + CenterUpdateRate.reshape(()) * moved, beside(padded, diff), loss


@grad_of(
    "center_loss", "X SampleCenterDiff", nograd="Label Centers CenterUpdateRate", grad_outs="Loss"
)
def center_loss_grad(X: Array, SampleCenterDiff: Array, d_Loss: Array):
    """X@GRAD = Loss@GRAD * SampleCenterDiff."""
    return d_Loss.reshape(-1, 1) * SampleCenterDiff
