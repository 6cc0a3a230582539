"""viterbi_decode: the best path through scores of tags and transitions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from . import loops
from .greatest import first_greatest
from .infer import Spec
from .registry import Array, op
from .traits import mixes


def _spec(Input: Spec, Transition: Spec, Length: Spec, **_: Any) -> tuple[Spec, Spec]:
    if Input.ndim != 3 or Transition.ndim != 2 or Transition.shape[0] != Transition.shape[1]:
        raise ShapeError(
            "viterbi_decode takes Input [N, T, tags] and Transition [tags, tags], not"
            f" {list(Input.shape)} and {list(Transition.shape)}"
        )
    return Spec((Input.shape[0],), Input.dtype), Spec(Input.shape[:2], "int64")


@op(outs="Scores Path", infer=_spec, rows=mixes())
def viterbi_decode(
    Input: Array, Transition: Array, Length: Array, *, include_bos_eos_tag: bool = True
):
    """Path [N, T] (int64) = the tags of the greatest sum of Input [N, T, tags] and Transition
    [tags, tags]; Scores [N] = that sum.

    Transition[i, j]: from tag i to j. Length [N]: the number of steps; beyond them Path is 0.
    include_bos_eos_tag: the last row scores the first tag, the last but one the final tag. Paddle's
    Path has as many columns as the longest Length; here it has T.
    """
    Input, Transition, count = jnp.asarray(Input), jnp.asarray(Transition), Input.shape[1]
    length = jnp.asarray(Length).reshape(-1)
    score = Input[:, 0] + Transition[-1] if include_bos_eos_tag else Input[:, 0]
    ending = Transition[-2] if include_bos_eos_tag else jnp.zeros((), Input.dtype)
    score = jnp.where((length == 1)[:, None], score + ending, score)

    def forward(state: Any, at: Any) -> Any:
        ways = state[:, :, None] + Transition
        best, origin = ways.max(1) + Input[:, at], first_greatest(ways, 1)
        best = jnp.where((length == at + 1)[:, None], best + ending, best)
        lives = (at < length)[:, None]
        return jnp.where(lives, best, state), jnp.where(
            lives, origin, jnp.arange(state.shape[1], dtype=np.int32)
        )

    score, origins = loops.scan(forward, score, jnp.arange(1, count))
    last = first_greatest(score, 1)

    def backward(tag: Any, origin: Any) -> Any:
        before = jnp.take_along_axis(origin, tag[:, None], 1)[:, 0]
        return before, tag

    first, tags = loops.scan(backward, last, origins, reverse=True)
    path = jnp.concatenate([first[:, None], jnp.moveaxis(tags, 0, 1)], 1)
    path = jnp.where(jnp.arange(count) < length[:, None], path, 0)
    return score.max(1), path.astype(np.int64)
