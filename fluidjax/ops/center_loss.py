"""center_loss: how far features lie from the centre of their class, and where the centres move."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import size_of
from .registry import Array, grad_of, op
from .traits import Bounds, mixes


@op(
    outs="CentersOut SampleCenterDiff Loss", inplace={"CentersOut": "Centers"}, rows=mixes(),
    bounds=Bounds("Label", "label", size_of("Centers", 0)),
)
def center_loss(X: Array, Label: Array, Centers: Array, CenterUpdateRate: Array, *, cluster_num: int, need_update: bool):
    """Loss[i] = 0.5 sum(d[i]^2) with d = SampleCenterDiff = X - Centers[Label].

    Loss [N, 1], X [N, D], Label [N, 1], Centers [cluster_num, D]. CentersOut = Centers, where need_update each moved by
    CenterUpdateRate * (the sum of its samples' d) / (1 + their number).
    """
    if X.ndim != 2 or Centers.shape != (cluster_num, X.shape[1]) or Label.size != X.shape[0]:
        raise ShapeError(
            f"op 'center_loss' takes X [N, D], Label [N, 1] and Centers [{cluster_num}, D], not {list(X.shape)}, {list(Label.shape)} and "
            f"{list(Centers.shape)}"
        )
    label = Label.reshape(-1)
    diff = X - jnp.take(Centers, label, axis=0, mode="clip")
    loss = 0.5 * jnp.sum(diff * diff, 1, keepdims=True)
    if not need_update:
        return Centers, diff, loss
    count = jnp.ones(cluster_num, X.dtype).at[label].add(np.ones((), X.dtype))
    moved = jnp.zeros_like(Centers).at[label].add(diff) / count[:, None]
    return Centers + CenterUpdateRate.reshape(()) * moved, diff, loss


@grad_of("center_loss", "X SampleCenterDiff", nograd="Label Centers CenterUpdateRate", grad_outs="Loss")
def center_loss_grad(X: Array, SampleCenterDiff: Array, d_Loss: Array):
    """X@GRAD = Loss@GRAD * SampleCenterDiff."""
    return d_Loss.reshape(-1, 1) * SampleCenterDiff
