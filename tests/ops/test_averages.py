"""Ops that average lie no further from float64 than those of Paddle 1.8.5 (tests/tools/record_averages.py recorded theirs)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from .averages import RATIOS, SHAPES, error, samples
from .running import Run
from .together import compiled as quick

THEIRS: dict[str, dict[str, float]] = json.loads((Path(__file__).parents[1] / "data" / "averages_1.8.5.json").read_text())
KINDS = list(samples(SHAPES[0], 0))
LAST_DIGITS = 2 * float(np.finfo(np.float32).eps)  # within them it is chance who is nearer


def named(results: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, np.ndarray]:
    outputs, gradients = results
    found = {**outputs, **{f"{slot}@GRAD": value for slot, value in gradients.items()}}
    return {k: np.asarray(v) for k, v in found.items() if v is not None}


@cache
def compiled(kind: str, shape: tuple[int, ...], wide: bool) -> Any:
    """The op and its gradient, with XLA trying as hard as in use, since it decides how sums are taken; in float64 as is quick."""
    run = Run(samples(shape, 0)[kind], wide)
    return quick(run.execute, run.inputs) if wide else jax.jit(run.execute)


def errors(kind: str, shape: tuple[int, ...], ratio: int) -> dict[str, float]:
    sample = samples(shape, ratio)[kind]
    with jax.enable_x64(True):
        got, exact = (named(compiled(kind, shape, wide)(Run(sample, wide).inputs)) for wide in (False, True))
    return {k: error(got[k], exact[k], k) for k in (*sample.outputs, *(f"{s}@GRAD" for s in sample.grad))}


@pytest.mark.first(6)
@pytest.mark.optimized
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("kind", KINDS)
def test_no_further_from_float64_than_paddle(kind: str, shape: tuple[int, ...]) -> None:
    for ratio in RATIOS:
        theirs = THEIRS[f"{kind} {'x'.join(map(str, shape))} {ratio}"]
        for key, mine in errors(kind, shape, ratio).items():
            assert mine <= max(1.5 * theirs[key], LAST_DIGITS), f"{kind}'s {key} at mean / deviation = {ratio}"
