"""Ragged values on a mesh: outside of a step each leaf holds the values of all ranks one after
another; inside, each rank has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ..ops.ragged import Ragged


def entered(feed: Mapping[str, Any]) -> dict[str, Any]:
    """A rank's feeds inside the step; their numbers of sequences arrive as arrays of one
    element.
    """
    return {
        n: replace(v, alive=v.alive[0]) if isinstance(v, Ragged) and v.alive is not None else v
        for n, v in feed.items()
    }


def left(fetched: Sequence[Any]) -> list[Any]:
    """A rank's fetches as they leave the step, with a first dimension on every leaf."""
    return [
        replace(v, alive=v.alive[None]) if isinstance(v, Ragged) and v.alive is not None else v
        for v in fetched
    ]


def of_each(value: Ragged) -> list[Ragged]:
    """The values of this process's ranks, given the fetches of all ranks."""
    leaves, form = jax.tree.flatten(value)
    shards = [
        sorted(leaf.addressable_shards, key=lambda s: s.index[0].start or 0) for leaf in leaves
    ]
    parts = [
        jax.tree.unflatten(form, [np.asarray(s.data) for s in part])
        for part in zip(*shards, strict=True)
    ]
    return [replace(p, alive=p.alive[0]) if p.alive is not None else p for p in parts]
