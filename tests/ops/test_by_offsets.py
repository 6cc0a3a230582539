"""Ops that go by offsets alone compute the same, forward and gradient, whatever bound of the
longest sequence is known.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from fluidjax.ops.ragged import Ragged
from fluidjax.ops.registry import REGISTRY
from fluidjax.ops.traits import Sequences

from .running import Run, ragged, tree
from .samples import all_samples

SAYS = {
    kind
    for kind, d in REGISTRY.items()
    if isinstance(d.traits.rows, Sequences) and d.traits.rows.by_offsets
}
# their samples have no LoD; their modules read no such bound
DENSE = {"accuracy", "auc", "batch_norm"}
SAMPLES = {sample.op: sample for _, _, sample in reversed([*all_samples()]) if sample.lod}


def computed(run: Run, more: int) -> str:
    """What a step computes of padded inputs whose bounds are so much larger."""

    def wider(value: Any) -> Any:
        if isinstance(value, list):
            return [wider(v) for v in value]
        return (
            replace(value, longest=tuple(n + more for n in value.longest))
            if isinstance(value, Ragged)
            else value
        )

    given = ragged(run.sample, tree(np.asarray, run.sample.inputs), exact=False)
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(run.execute)({slot: wider(value) for slot, value in given.items()})
    return re.sub(r"0x[0-9a-f]+|at \S+", "", str(traced))


@pytest.mark.once
@pytest.mark.parametrize("kind", sorted(SAYS - DENSE))
def test_the_bound_of_the_longest_makes_no_difference(kind: str) -> None:
    run = Run(SAMPLES[kind])
    assert computed(run, 0) == computed(run, 3)


def test_the_comparison_sees_an_op_that_looks() -> None:
    run = Run(SAMPLES["lstm"])
    assert computed(run, 0) != computed(run, 3)
