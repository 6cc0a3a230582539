"""Predictions of large images, some samples at a time: what one sample needs stays in a cache, what
eight need does not.

A step that only predicts and goes through its samples row by row gives the same for each of them,
however many it is given. So where a batch's largest value is larger than caches are, the step is
run in a loop over blocks of as many samples as there are cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import FluidError, MixesRows
from ..ir.desc import OpDesc
from ..ops.channels import ChannelsLast
from ..ops.concrete import known
from ..ops.enclosed import enclosed
from ..ops.ragged import Ragged
from ..ops.registry import traits
from .checks import Objections
from .env import Env
from .step import Step

LARGE = 1 << 24  # bytes of the largest value of a batch from which on the loop pays
WORTH = 1 << 20  # and of one sample, so that a block is work enough for the cores
MOST = 8  # times what is fed a large value may be; smaller feeds are not looked at
KEY = "samples"


def at_once(step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]) -> int:
    """How many samples the step should take at a time; 0 where it should take all of them, or may
    mix them.
    """
    counts = {v.shape[0] if isinstance(v, jax.Array) and v.ndim > 2 else 0 for v in feed.values()}
    open_sizes = all(v.shape is not None and v.shape[0] < 0 for v in step.feeds.values())
    if (
        not step.filters_turned
        or step.random
        or step.sizes.all
        or not open_sizes
        or len(counts) != 1
        or feed.keys() != step.feeds.keys()
    ):
        return 0
    (count,) = counts
    if count < 2 or MOST * sum(v.size * v.dtype.itemsize for v in feed.values()) < LARGE:
        return 0
    one = largest_value(step, state, feed)
    if one < WORTH or one * count < LARGE:
        return 0
    some = max(n for n in range(1, min(cores(), count) + 1) if count % n == 0)
    return some if some < count else 0


def largest_value(step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]) -> int:
    """Bytes of the largest value that the step computes for a sample; 0 where it is not known to go
    through samples row by row.

    It is run on types of two samples that are said to be rows of sequences. Of these ops mix none,
    or give something else than rows, such as a mean over them: which nothing may read then.
    """
    largest, alone = 0, False
    rows, mixed = set(feed), set[str]()

    def watch(op: OpDesc, env: Env) -> None:
        nonlocal largest
        if not mixed.isdisjoint(op.reads) or op.blocks or traits(op.type).runs.acts:
            raise MixesRows("reads what was computed of all samples, or does more than to compute")
        if not rows.isdisjoint(op.reads):
            own = {n for n in op.writes if n in env and _of_samples(env[n])}
            rows.update(own)
            mixed.update(set(op.writes) - own)
        sizes = (
            leaf.size * leaf.dtype.itemsize
            for n in op.writes
            if n in env
            for leaf in jax.tree.leaves(env[n])
        )
        largest = max(largest, *sizes, 0)

    def run(state: Any, samples: Any, offsets: Any) -> None:
        nonlocal alone
        given = {n: Ragged(v, (offsets,), (1,), KEY, padded=True) for n, v in samples.items()}
        _, values, word = step.run(state, given, None, Objections(), watch)
        alone = (
            known(word) is not None
            and all(map(_of_samples, values))
            and mixed.isdisjoint(step.fetches)
        )

    types = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), dict(state))
    samples = {n: jax.ShapeDtypeStruct((2, *v.shape[1:]), v.dtype) for n, v in feed.items()}
    try:
        jax.eval_shape(run, types, samples, jax.ShapeDtypeStruct((3,), jnp.int32))
    except (FluidError, TypeError, ValueError):  # some op mixes rows, or takes none
        return 0
    return largest // 2 if alone else 0


def _of_samples(value: Any) -> bool:
    """Whether it is rows, one of each of the two samples."""
    value = value.held if isinstance(value, ChannelsLast) else value
    return isinstance(value, Ragged) and value.key == KEY and value.capacity == 2


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mapped(
    run: Callable[[Mapping[str, Any]], list[Any]], feed: Mapping[str, Any], some: int
) -> list[Any]:
    """What `run` gives of all samples, `some` at a time."""

    def block(part: Mapping[str, Any]) -> list[Any]:
        with enclosed():
            return run(part)

    found = lax.map(block, {n: v.reshape(-1, some, *v.shape[1:]) for n, v in feed.items()})
    return [v.reshape(-1, *v.shape[2:]) for v in found]
