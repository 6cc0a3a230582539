"""Stacks the feeds of several steps for one scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ..errors import FeedError, UnsupportedError
from ..lod_tensor import LoDTensor
from ..ops.fixed import Fixed, shown
from ..ops.ragged import Ragged
from ..ops.tensor_array import is_array

Check = Callable[[Any], Any]


def stacked_feeds(
    feeds: Any, check: Check, pack: Check
) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """The checked feeds of several steps with a leading dimension of steps, the number of steps,
    and the first feed as it was fed.

    feeds: a dict for each step, or one dict of arrays that have a leading dimension of steps.
    check: checks the feed of one step. pack: converts it to the form that the step takes.
    LoDTensors are padded up to the largest of their buckets. Raises FeedError if there are no feeds
    or their shapes differ, UnsupportedError for feeds that a scan cannot take, and the errors of
    `check`.
    """
    if isinstance(feeds, Mapping):
        counts = {np.shape(v)[0] if np.ndim(v) else 0 for v in feeds.values()}
        if len(counts) != 1:
            raise FeedError(
                "run_steps with one dict needs arrays with the same leading dimension: the number"
                " of steps"
            )
        count = counts.pop()
        feeds = [{n: v[i] for n, v in feeds.items()} for i in range(count)]
    feeds = list(feeds or ())
    if not feeds:
        raise FeedError("run_steps needs at least one feed")
    checked = [check(f) for f in feeds]
    first = _shapes(checked[0])
    for i, f in enumerate(checked):
        if _shapes(f) != first:
            raise FeedError(
                f"run_steps needs feeds of equal shapes; feed 0 has {first}, feed {i} {_shapes(f)}"
            )
    packed = [pack(f) for f in checked] if _ragged(checked[0]) else checked
    return {n: _stacked(n, packed) for n in first}, len(feeds), checked[0]


def _ragged(feed: Mapping[str, Any]) -> bool:
    return any(isinstance(v, LoDTensor) for v in feed.values())


def _shapes(feed: Mapping[str, Any]) -> dict[str, Any]:
    return {n: "a LoD" if isinstance(v, LoDTensor) else v.shape for n, v in feed.items()}


def _widened(name: str, values: Sequence[Any]) -> Ragged:
    """The ragged feeds of several steps, padded to the largest buckets of their rows and longest
    sequences.
    """
    sequences = {tuple(level.shape[0] - 1 for level in v.offsets) for v in values}
    if len(sequences) > 1 or len({(v.key, v.padded) for v in values}) > 1:
        counts = " and ".join(map(str, sorted(s[-1] for s in sequences)))
        raise UnsupportedError(
            "run_steps takes batches with equal numbers of sequences, and equal levels that are not"
            f" padded, but {name!r} is fed {counts}; call run for each step"
        )
    most = max(v.capacity for v in values)
    if not values[0].padded and {v.form for v in values} != {values[0].form}:
        raise UnsupportedError(
            f"run_steps takes equal LoDs of {name!r}, since an op needs exact sizes; call run for"
            " each step"
        )
    longest = tuple(max(v.longest[i] for v in values) for i in range(len(values[0].longest)))
    rows = np.stack(
        [np.concatenate([v.rows, np.repeat(v.rows[-1:], most - v.capacity, 0)]) for v in values]
    )
    offsets = tuple(np.stack([v.offsets[i] for v in values]) for i in range(len(longest)))
    return replace(values[0], rows=rows, offsets=offsets, longest=longest)


def each_step(value: Any, count: int) -> Any:
    """The values of one fetch in all steps: stacked, or a list for ragged values and tensor
    arrays.
    """
    apart = isinstance(value, Ragged) or is_array(value)
    return [jax.tree.map(lambda a, k=k: a[k], value) for k in range(count)] if apart else value


def _stacked(name: str, feeds: Sequence[Mapping[str, Any]]) -> Any:
    """The values of one feed in all steps, stacked; the one value of a feed that decides sizes."""
    if isinstance(feeds[0][name], Ragged):
        return _widened(name, [f[name] for f in feeds])
    if not isinstance(feeds[0][name], Fixed):
        return np.stack([np.asarray(f[name]) for f in feeds])
    other = next((f[name] for f in feeds if f[name] != feeds[0][name]), None)
    if other is not None:
        raise UnsupportedError(
            f"run_steps takes one value of {name!r}, which decides sizes, but is fed "
            f"{shown(feeds[0][name].array)} and {shown(other.array)}; call run for each step"
        )
    return feeds[0][name]
