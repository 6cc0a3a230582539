"""polygon_box_transform: corners of polygons from shifts."""

from __future__ import annotations

import jax.numpy as jnp

from ...errors import ShapeError
from ..infer import Spec
from ..registry import Array, op
from ..traits import row_wise


def _spec(Input: Spec) -> Spec:
    if Input.ndim != 4 or (Input.shape[1] % 2 and Input.shape[1] > 0):
        raise ShapeError(
            "op 'polygon_box_transform' takes Input [N, an even number, H, W], not"
            f" {list(Input.shape)}"
        )
    return Input


@op(outs="Output", infer=_spec, rows=row_wise("Input", lod=None))
def polygon_box_transform(Input: Array):
    """Output = 4 * (the column in even channels, the row in odd ones) - Input, for Input [N, 2 *
    corners, H, W].
    """
    _, channels, high, wide = Input.shape
    column, row = jnp.arange(wide, dtype=Input.dtype), jnp.arange(high, dtype=Input.dtype)[:, None]
    return 4 * jnp.where((jnp.arange(channels) % 2 == 0)[:, None, None], column, row) - Input
