"""Non-maximum suppression: boxes are visited by descending score, and a box is kept if it overlaps
no kept one too much.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import loops
from ..greatest import first_greatest

Overlaps = Callable[[Any, Any], Any]  # (a box, boxes [K, ...]) -> [K]


def best(scores: Any, threshold: float, most: int) -> tuple[Any, Any]:
    """The positions of the largest scores above a threshold in [..., M], the first of equal ones
    first, and which exist.

    Scores are compared as float32, as in 1.8.5. most: their number, -1 for all.
    """
    count = scores.shape[-1] if most < 0 else min(most, scores.shape[-1])
    keys = scores.astype(jnp.float32)
    keys = jnp.where(keys == 0, np.float32(0), keys)  # zeros of both signs are equal
    keys = jnp.where(
        scores > np.asarray(threshold, np.float32).astype(scores.dtype), keys, -jnp.inf
    )
    _, places = lax.top_k(keys, count)
    there = jnp.arange(count, dtype=jnp.int32) < (keys > -jnp.inf).sum(
        -1, keepdims=True, dtype=jnp.int32
    )
    return places, there


def suppressed(
    boxes: Any, there: Any, overlaps: Overlaps, threshold: float, eta: float, most: int
) -> tuple[Any, Any]:
    """The positions of the kept boxes, in order, [most], and their number. boxes [K, ...] by
    descending scores, there [K].

    A box is kept if it overlaps no kept one by more than the threshold (or by nan); each kept one
    multiplies a threshold above 0.5 by an eta below 1. The loop has one iteration per kept box.
    """
    size = there.shape[0]
    at = jnp.arange(size, dtype=jnp.int32)
    limit = jnp.asarray(threshold, boxes.dtype)

    def going(state: tuple[Any, ...]) -> Any:
        count, _, left, _, _ = state
        return (count < most) & left.any()

    def keep(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, kept, left, worst, limit = state
        now = first_greatest(left)
        kept = kept.at[count].set(now)
        here = overlaps(boxes[now], boxes)
        if eta >= 1:
            return count + 1, kept, left & (at > now) & (here <= limit), worst, limit
        worst = jnp.maximum(worst, jnp.where(jnp.isnan(here), jnp.inf, here))
        limit = jnp.where(limit > 0.5, limit * np.asarray(eta, boxes.dtype), limit)
        return count + 1, kept, there & (at > now) & (worst <= limit), worst, limit

    start = (
        jnp.zeros((), jnp.int32),
        jnp.zeros((most,), jnp.int32),
        there,
        jnp.full((size,), -jnp.inf, boxes.dtype),
        limit,
    )
    if not size or not most:
        return start[1], start[0]
    count, kept, *_ = loops.while_loop(going, keep, start)
    return kept, count


def each(
    boxes: Any, there: Any, overlaps: Overlaps, threshold: float, eta: float, most: int
) -> tuple[Any, Any]:
    """A batched suppressed(): boxes [lanes, K, ...], there [lanes, K]; places [lanes, most] and
    counts [lanes].
    """
    run = partial(
        suppressed,
        overlaps=overlaps,
        threshold=float(np.float32(threshold)),
        eta=float(np.float32(eta)),
        most=most,
    )
    return jax.vmap(run)(boxes, there)
