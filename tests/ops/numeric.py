"""Directional derivatives by central differences, in float64."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fluidjax.ops.ragged import like, rows_of

from .running import Batch, Run, cotangents, tree
from .together import attempt, given

STEP = 1e-5


def directions(run: Run, seed: int) -> dict[str, Any]:
    """One random direction in the space of all inputs that the sample differentiates."""
    rng = np.random.default_rng(seed)
    drawn = tree(
        lambda a: rng.uniform(-1, 1, np.shape(a)), {s: run.inputs[s] for s in run.sample.grad}
    )
    return {s: rows_of(v) for s, v in drawn.items()}


def loss(run: Run, outputs: dict[str, Any]) -> float:
    """<cotangents, outputs>."""
    return sum(float(np.vdot(c, o)) for c, o in _pairs(cotangents(run.sample, outputs), outputs))


def numeric(run: Run, seed: int) -> float:
    """The derivative of the loss along the direction of this seed."""
    assert run.batch is not None
    up, down = (
        loss(run, given(_moved_batch(run.batch, seed, step)[run])[0]) for step in (STEP, -STEP)
    )
    return (up - down) / (2 * STEP)


@lru_cache(maxsize=4)
def _moved_batch(batch: Batch, seed: int, step: float) -> dict[Run, Any]:
    """The results of a batch whose runs are moved so far, each in its direction."""

    def moved(run: Run) -> dict[str, Any]:
        inputs = dict(run.inputs)
        for slot, d in directions(run, seed).items():
            x = inputs[slot]
            inputs[slot] = like(x, _moved(rows_of(x), d, step))
        return inputs

    return batch.at({run: attempt(lambda run=run: moved(run)) for run in batch.runs})


def _moved(x: Any, d: Any, step: float) -> Any:
    return (
        [a + step * b for a, b in zip(x, d, strict=True)] if isinstance(x, list) else x + step * d
    )


def analytic(grads: dict[str, Any], direction: dict[str, Any]) -> tuple[float, float]:
    """The same from gradients, and the sum of the sizes of its terms."""
    products = [np.multiply(g, d) for d, g in _pairs(direction, grads)]
    return sum(float(p.sum()) for p in products), sum(float(np.abs(p).sum()) for p in products)


def _pairs(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Arrays of equal place; those of which `a` has none are left out."""
    found = []
    for slot, x in a.items():
        x, y = rows_of(x), rows_of(b[slot])
        for p, q in zip(x, y, strict=True) if isinstance(x, list) else [(x, y)]:
            if p is not None:
                found.append((np.asarray(p), np.asarray(q)))
    return found
