"""Feeds of several steps as one scan takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FeedError, UnsupportedError
from ..lod_tensor import LoDTensor
from ..ops.fixed import Fixed, shown


def stacked_feeds(check: Callable[[Any], dict[str, Any]], feeds: Any) -> tuple[dict[str, Any], int]:
    """The feeds of several steps, checked, with a leading dimension of steps, and how many these are.

    feeds: a dict for each step, or one dict of arrays that have that dimension. Raises FeedError for feeds that are none or of
    different shapes, UnsupportedError for those that a scan cannot take, and what `check` raises.
    """
    if isinstance(feeds, Mapping):
        counts = {np.shape(v)[0] if np.ndim(v) else 0 for v in feeds.values()}
        if len(counts) != 1:
            raise FeedError("run_steps with one dict needs arrays with the same leading dimension: the number of steps")
        count = counts.pop()
        feeds = [{n: v[i] for n, v in feeds.items()} for i in range(count)]
    feeds = list(feeds or ())
    if not feeds:
        raise FeedError("run_steps needs at least one feed")
    checked = [check(f) for f in feeds]
    ragged = [n for f in checked for n, v in f.items() if isinstance(v, LoDTensor)]
    if ragged:
        raise UnsupportedError(f"run_steps takes arrays of equal shapes, but {ragged[0]!r} is fed with a LoD; call run for each step")
    first = {n: v.shape for n, v in checked[0].items()}
    for i, f in enumerate(checked):
        if {n: v.shape for n, v in f.items()} != first:
            raise FeedError(f"run_steps needs feeds of equal shapes; feed 0 has {first}, feed {i} {({n: v.shape for n, v in f.items()})}")
    return {n: _stacked(n, checked) for n in first}, len(feeds)


def _stacked(name: str, feeds: Sequence[Mapping[str, Any]]) -> Any:
    """One feed of all steps; of one that decides sizes the one value."""
    if not isinstance(feeds[0][name], Fixed):
        return np.stack([np.asarray(f[name]) for f in feeds])
    other = next((f[name] for f in feeds if f[name] != feeds[0][name]), None)
    if other is not None:
        raise UnsupportedError(
            f"run_steps takes one value of {name!r}, since it decides sizes, but is fed {shown(feeds[0][name].array)} and "
            f"{shown(other.array)}; call run for each step"
        )
    return feeds[0][name]
