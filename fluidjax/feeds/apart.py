"""Whether the rows of a prediction's batch are independent, so that requests of several callers may
run as one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..errors import FluidError
from ..ir.desc import OpDesc
from ..lower.env import Env
from ..lower.step import Step
from ..ops.ragged import Ragged
from .bucketing import BATCH, batched

ROWS, SIZE = 11, 13  # no size that a program has for another reason


class _Mixed(Exception):
    """An op mixes rows."""


def mixes_rows(step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]) -> str:
    """Why row i of some output does not depend on row i of the inputs alone; "" if it does.

    feed: for each input an array (or its type), of which all dimensions but the first count. The
    step is traced on types with a batch that is padded: rows are independent if every op that reads
    padded values gives padded values, by the rules of ops/rows.py. A program that needs the number
    of rows, samples random numbers or passes rows to a block counts as one that mixes them.
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
                elif reads and not same and name in matters:  # batch_norm gives what it read
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
