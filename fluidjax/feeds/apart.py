"""Decides whether the rows of a prediction's batch are independent. If they are, requests of
several callers may run as one batch, and a batch may run row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from ..errors import FluidError
from ..ir.desc import OpDesc
from ..lower.env import Env
from ..lower.step import Step
from ..ops.ragged import Ragged
from .bucketing import BATCH, batched

ROWS, SIZE = 11, 13  # a size that programs do not have by themselves


class _Mixed(Exception):
    """An op mixes rows."""


def mixes_rows(step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]) -> str:
    """The reason why row i of some output depends on more than row i of the inputs; "" if no output
    does.

    feed: for each input an array (or its type); its first dimension does not matter. The step is
    traced on types with a padded batch: rows are independent if every op that reads padded values
    gives padded values, by the rules of ops/rows.py. A program that needs the number of rows,
    samples random numbers or passes rows to a block counts as one that mixes them.
    """
    if step.random:
        return "it samples random numbers"
    for name, var in step.feeds.items():
        if var.lod_level or not var.shape or var.shape[0] >= 0:
            return f"input {name!r} has no open batch"
    rows = {n: np.zeros((ROWS, *v.shape[1:]), v.dtype) for n, v in feed.items()}
    padded: dict[str, Any] = dict.fromkeys(rows, BATCH)
    matters = {*step.fetches, *step.writes, *(n for op in step.ops for n in op.reads)}

    def run(state: Mapping[str, Any], feed: Mapping[str, Any]) -> Any:
        before = dict(state)

        def watch(op: OpDesc, env: Env) -> None:
            reads = [n for n in op.reads if n in padded]
            if reads and op.blocks:
                raise _Mixed(f"op '{op.type}' reads {reads[0]!r} in a block")
            for name in op.writes:
                value, same = env.get(name), env.get(name) is before.get(name)
                before[name] = value
                if isinstance(value, Ragged):
                    padded[name] = value.key
                elif reads and not same and name in matters:  # batch_norm may return its input
                    raise _Mixed(f"op '{op.type}' mixes the rows of {reads[0]!r}")
                else:
                    padded.pop(name, None)

        return step(state, feed, None, watch)[1]

    try:
        with jax.enable_x64(True):
            jax.eval_shape(run, state, batched(rows, [*rows], SIZE))
    except _Mixed as why:
        return str(why)
    except FluidError as why:
        return f"it takes no padded batch: {why}"
    alone = [n for n in step.fetches if padded.get(n) != BATCH]
    return f"output {alone[0]!r} has no row for each of the batch" if alone else ""


def samples_of(
    step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The arrays of a feed if they are one batch of two samples or more, else None."""
    fed = list(feed.values())
    padded = [_is_padded(v) for v in fed]
    if not fed or set(feed) != {*step.feeds} or any(padded) != all(padded):
        return None
    rows = {n: v.rows if all(padded) else v for n, v in feed.items()}
    if any(not isinstance(v, jax.Array) for v in (*rows.values(), *state.values())):
        return None
    batches = {v.shape[:1] for v in rows.values()}
    return rows if len(batches) == 1 and min(batches) >= (2,) else None


def each_alone(
    step: Step,
    state: Mapping[str, Any],
    feed: Mapping[str, Any],
    rows: Mapping[str, Any],
    run: Callable[[Any], tuple[Any, list[Any], Any]],
) -> list[Any] | None:
    """The fetches of a prediction on such a feed, computed sample by sample; None if rows are not
    independent, or if an op can detect errors in values. run(feed) -> (state, fetches, objection).
    """
    kinds = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), (state, rows))
    if mixes_rows(step, *kinds):
        return None
    words = []

    def one(sample: Mapping[str, Any]) -> list[Any]:
        _, values, word = run({n: v[None] for n, v in sample.items()})
        words.append(word)
        return [v[0] for v in values]

    found: list[Any] = jax.lax.map(one, dict(rows))
    if any(word is not None for word in words):
        return None
    first = next(iter(feed.values()))
    return [first.with_rows(v) for v in found] if _is_padded(first) else found


def _is_padded(value: Any) -> bool:
    return isinstance(value, Ragged) and value.key == BATCH
