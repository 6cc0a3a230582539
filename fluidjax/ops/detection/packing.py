"""Rows of several images, a number of each that depends on data: from an array per image to packed
rows with a LoD.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..ragged import Ragged, bounded


def packed(counts: Any, *cells: Any) -> list[Ragged]:
    """The first counts[n] rows of cells[n], for each n, image after image. cells: arrays [N, most,
    ...]; all get the same LoD.

    Copies of the last true row fill the padding.
    """
    images, most = cells[0].shape[:2]
    offsets = jnp.concatenate([jnp.zeros(1, np.int32), jnp.cumsum(counts, dtype=np.int32)])
    at = jnp.minimum(jnp.arange(images * most, dtype=np.int32), jnp.maximum(offsets[-1] - 1, 0))
    image = jnp.clip(segments_at(offsets, at), 0, max(images - 1, 0))
    place = jnp.clip(at - offsets[image], 0, max(most - 1, 0))
    first, *others = (
        jnp.take(c.reshape(images * most, *c.shape[2:]), image * most + place, axis=0, mode="clip")
        for c in cells
    )
    rows = bounded(first, offsets, most)
    return [rows, *map(rows.with_rows, others)]


def segments_at(offsets: Any, places: Any) -> Any:
    """The sequence that holds each of `places`."""
    return jnp.searchsorted(offsets[1:], places, side="right", method="scan_unrolled")


def firsts(mask: Any, most: int) -> tuple[Any, Any]:
    """The positions of the first `most` true elements of mask [A], followed by any others; and the
    number of true ones.
    """
    return jnp.nonzero(mask, size=most, fill_value=0)[0].astype(np.int32), jnp.minimum(
        mask.sum(), most
    ).astype(np.int32)
