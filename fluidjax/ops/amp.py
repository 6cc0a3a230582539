"""Mixed precision (Paddle 2): gradients of a scaled loss are checked and unscaled, and the scale is
adapted to the result.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .registry import Array, op
from .traits import mixes


@op(outs="Out* FoundInfinite", rows=mixes())
def check_finite_and_unscale(X: list[Array], Scale: Array):
    """Out[i] = X[i] / Scale; FoundInfinite [1] (bool) = whether an element of X is nan or infinite.

    Out[i] = X[i] * 0 for the first X that has such an element and for all X after it: these outputs
    must not be used.
    """
    found, out, inverse = jnp.zeros((), bool), [], 1 / Scale.reshape(())
    for x in X:
        found = found | ~jnp.all(jnp.isfinite(x))
        out.append(x * jnp.where(found, 0, inverse).astype(x.dtype))
    return out, found.reshape(1)


@op(outs="Out* LossScaling OutGoodSteps OutBadSteps", rows=mixes())
def update_loss_scaling(
    X: list[Array], FoundInfinite: Array, PrevLossScaling: Array, InGoodSteps: Array, InBadSteps: Array, StopUpdate: Array | None, *,
    incr_every_n_steps: int, decr_every_n_nan_or_inf: int, incr_ratio: float, decr_ratio: float, stop_update: bool = False,
):  # fmt: skip
    """Out = X, but 0 where FoundInfinite; LossScaling grows by incr_ratio after incr_every_n_steps
    good steps in a row.

    After decr_every_n_nan_or_inf bad ones in a row it shrinks by decr_ratio, not below 1. A scale
    that would become infinite stays. stop_update, StopUpdate: scale and counts stay.
    """
    bad = FoundInfinite.reshape(()).astype(bool)
    out = [jnp.where(bad, np.zeros((), x.dtype), x) for x in X]
    scale, good_steps, bad_steps = (
        v.reshape(()) for v in (PrevLossScaling, InGoodSteps, InBadSteps)
    )
    good, wrong = jnp.where(bad, 0, good_steps + 1), jnp.where(bad, bad_steps + 1, 0)
    grows, shrinks = good == incr_every_n_steps, wrong == decr_every_n_nan_or_inf
    more = scale * np.asarray(incr_ratio, scale.dtype)
    less = jnp.maximum(scale * np.asarray(decr_ratio, scale.dtype), 1)
    new = jnp.where(shrinks, less, jnp.where(grows & jnp.isfinite(more), more, scale))
    after: list[Any] = [new, jnp.where(grows, 0, good), jnp.where(shrinks, 0, wrong)]
    stops = jnp.asarray(stop_update) if StopUpdate is None else StopUpdate.reshape(()).astype(bool)
    kept = [
        jnp.where(stops, old, now).astype(old.dtype)
        for old, now in zip((scale, good_steps, bad_steps), after, strict=True)
    ]
    return out, *(v.reshape(1) for v in kept)
