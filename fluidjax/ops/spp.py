"""Spatial pyramid pooling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..errors import ShapeError
from .pool import pool2d
from .registry import Array, grad_of, lookup, op
from .traits import row_wise


def _levels(x: Array, pyramid_height: int, pooling_type: str) -> list[dict[str, Any]]:
    """The attributes of each level's pool; level p has 2^p times 2^p windows."""
    if x.ndim != 4:
        raise ShapeError(f"op 'spp' takes X [N, C, H, W], not {list(x.shape)}")
    if pyramid_height < 1 or pooling_type not in ("max", "avg"):
        raise ShapeError(
            "op 'spp' takes a pyramid_height from 1 and pooling_type 'max' or 'avg', not"
            f" {pyramid_height} and {pooling_type!r}"
        )
    found = []
    for bins in (2**p for p in range(pyramid_height)):
        ksize = [-(-n // bins) for n in x.shape[2:]]
        pads = [(k * bins - n + 1) // 2 for k, n in zip(ksize, x.shape[2:], strict=True)]
        found.append(
            {"pooling_type": pooling_type, "ksize": ksize, "strides": ksize, "paddings": pads}
        )
    return found


@op(outs="Out", rows=row_wise("X"))
def spp(X: Array, *, pyramid_height: int, pooling_type: str):
    """Out = pools of X [N, C, H, W] ("max" or "avg") with 1, 4, 16, ... 4^(pyramid_height - 1)
    windows, side by side: [N, C * windows].
    """
    pools = [pool2d(X, **level) for level in _levels(X, pyramid_height, pooling_type)]
    return jnp.concatenate([p.reshape(X.shape[0], -1) for p in pools], 1)


@grad_of("spp", "X Out")
def spp_grad(X: Array, Out: Array, d_Out: Array, *, pyramid_height: int, pooling_type: str):
    """X@GRAD = the sum of the gradients of the levels' pools."""
    total, begin, backward = jnp.zeros_like(X), 0, lookup("pool2d_grad")
    for p, level in enumerate(_levels(X, pyramid_height, pooling_type)):
        bins, width = 2**p, X.shape[1] * 4**p
        part = [
            v[:, begin : begin + width].reshape(X.shape[0], X.shape[1], bins, bins)
            for v in (Out, d_Out)
        ]
        total = total + backward({"X": X, "Out": part[0], "Out@GRAD": part[1]}, level)["X@GRAD"]
        begin += width
    return total
