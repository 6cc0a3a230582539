"""fsp: products of the channels of two feature maps, the flow between layers that distillation
compares.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..errors import ShapeError
from .registry import Array, op
from .traits import row_wise


@op(outs="Out", grad="X Y", rows=row_wise("X", "Y"))
def fsp(X: Array, Y: Array):
    """Out[n] = X[n] Y[n]^T / (H * W): [N, C, D] from X [N, C, H, W] and Y [N, D, H, W]."""
    if X.ndim != 4 or Y.ndim != 4 or (X.shape[0], *X.shape[2:]) != (Y.shape[0], *Y.shape[2:]):
        raise ShapeError(
            f"op 'fsp' takes X [N, C, H, W] and Y [N, D, H, W], not {list(X.shape)} and"
            f" {list(Y.shape)}"
        )
    return jnp.einsum("nchw,ndhw->ncd", X, Y, precision="highest") / (X.shape[2] * X.shape[3])
