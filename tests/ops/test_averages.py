"""Ops that average lie no further from float64 than those of Paddle 1.8.5
(tests/tools/record_averages.py recorded theirs).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from fluidjax.xla_cpu.options import ORDINARY, known

from .averages import RATIOS, SHAPES, error, samples
from .running import Run
from .together import compiled as quick

THEIRS: dict[str, dict[str, float]] = json.loads(
    (Path(__file__).parents[1] / "data" / "averages_1.8.5.json").read_text()
)
KINDS = list(samples(SHAPES[0], 0))
OPTIONS = {"a step's": ORDINARY, "XLA's": {}}  # XLA decides how sums are taken
CASES = list(itertools.product(KINDS, SHAPES, OPTIONS))
LAST_DIGITS = 2 * float(np.finfo(np.float32).eps)  # within them it is chance who is nearer


def named(results: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, np.ndarray]:
    outputs, gradients = results
    found = {**outputs, **{f"{slot}@GRAD": value for slot, value in gradients.items()}}
    return {k: np.asarray(v) for k, v in found.items() if v is not None}


@cache
def compiled(kind: str, shape: tuple[int, ...], options: str | None) -> Any:
    """The op and its gradient, in float32 with these options; in float64, where they are None, as
    is quick.
    """
    run = Run(samples(shape, 0)[kind], options is None)
    if options is None:
        return quick(run.execute, run.inputs)
    return jax.jit(run.execute, compiler_options=known(OPTIONS[options]))


def errors(kind: str, shape: tuple[int, ...], ratio: int, options: str) -> dict[str, float]:
    sample = samples(shape, ratio)[kind]
    with jax.enable_x64(True):
        got, exact = (
            named(compiled(kind, shape, o)(Run(sample, o is None).inputs)) for o in (options, None)
        )
    return {
        k: error(got[k], exact[k], k)
        for k in (*sample.outputs, *(f"{s}@GRAD" for s in sample.grad))
    }


def check(kind: str, shape: tuple[int, ...], options: str) -> None:
    for ratio in RATIOS:
        theirs = THEIRS[f"{kind} {'x'.join(map(str, shape))} {ratio}"]
        for key, mine in errors(kind, shape, ratio, options).items():
            assert mine <= max(1.5 * theirs[key], LAST_DIGITS), (
                f"{kind}'s {key} at mean / deviation = {ratio}"
            )


@pytest.mark.first(6)
@pytest.mark.optimized
@pytest.mark.parametrize(
    ("kind", "shape", "options"),
    CASES,
    ids=lambda v: "x".join(map(str, v)) if isinstance(v, tuple) else v,
)
def test_no_further_from_float64_than_paddle(
    kind: str, shape: tuple[int, ...], options: str
) -> None:
    check(kind, shape, options)


@pytest.mark.slow
def test_nor_with_shorter_vectors() -> None:
    """Other sums are taken, and other products contracted, where the processor has no AVX512."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}
    code = f"from {__name__} import *; [check(*case) for case in CASES]"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
