"""Ops on values held with their channels last: samples of every op that follows, and their
gradients, in both layouts.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.ops import channels
from fluidjax.ops.channels import ChannelsLast, last, plain
from fluidjax.ops.registry import REGISTRY, OpDef
from fluidjax.ops.traits import Reduction

from .running import Run
from .sample import Sample
from .samples import all_samples
from .together import SIZE, Together, given

MOST = 2  # samples of one op; resizing has dozens


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def over(definition: OpDef) -> tuple[str, ...]:
    """The input slots that an op which follows may be given channels last in."""
    return getattr(definition.traits.channels, "over", None) or getattr(
        definition.traits.rows, "over", ("X",)
    )


def images(sample: Sample) -> list[str]:
    """Of those slots the ones that hold arrays of 3 or more axes."""
    return [
        s
        for s in over(REGISTRY[sample.op])
        if s in sample.inputs and all(np.ndim(v) > 2 for v in listed(sample.inputs[s]))
    ]


def followed(sample: Sample) -> bool:
    d = REGISTRY[sample.op]
    return (
        not sample.lod
        and d.forward is None
        and not d.traits.ranks.together
        and channels.follows(d)
        and bool(images(sample))
    )


def chosen() -> dict[str, Sample]:
    """A few samples of each op, from first to last."""
    by_op: dict[str, list[tuple[str, Sample]]] = defaultdict(list)
    for family, index, sample in all_samples():
        if followed(sample):
            by_op[sample.op].append((f"{family}-{sample.op}-{index}", sample))
    return {n: s for found in by_op.values() for n, s in found[:: -(-len(found) // MOST)]}


CASES = chosen()


def in_both(run: Run, floats: dict[str, Any], rest: dict[str, Any]) -> Any:
    """Outputs and gradients of the op as the program has its inputs, and of it on what is held; and
    which outputs are held so.
    """
    inputs = {**rest, **floats}
    want = run.execute(inputs)
    hold = lambda v: [last(a) for a in v] if isinstance(v, list) else last(v)  # noqa: E731
    found = run.execute({s: hold(v) if s in images(run.sample) else v for s, v in inputs.items()})
    marks = {
        s: any(isinstance(a, ChannelsLast) for a in listed(v))
        for s, v in {**found[0], **found[1]}.items()
    }
    return want, tuple({s: plain(v) for s, v in values.items()} for values in found), marks


def both_of(name: str) -> tuple[Any, dict[str, Any], dict[str, bool]]:
    """A sample of `in_both` as a jitted function of its images, those, and where it says at tracing
    what is held.
    """
    run, marks = Run(CASES[name], wide=True), {}
    floats = {
        s: run.inputs[s]
        for s in images(run.sample)
        if all(np.asarray(a).dtype.kind == "f" for a in listed(run.inputs[s]))
    }
    rest = {s: v for s, v in run.inputs.items() if s not in floats}

    def both(given: dict[str, Any]) -> Any:
        *values, found = in_both(run, given, rest)
        marks.update(found)
        return values

    return jax.jit(both), floats, marks


@cache
def results() -> dict[str, Any]:
    """Of each sample what `in_both` gives, in float64, so that another order of sums does not show."""
    found: dict[str, Any] = {}
    names = list(CASES)
    with jax.enable_x64(True):
        for begin in range(0, len(names), SIZE):
            some = {n: both_of(n) for n in names[begin : begin + SIZE]}
            values = Together([(fn, (floats,)) for fn, floats, _ in some.values()])(
                [(floats,) for _, floats, _ in some.values()]
            )
            found |= {
                n: (v, marks) for (n, (_, _, marks)), v in zip(some.items(), values, strict=True)
            }
    return found


@pytest.mark.first(15)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_program(name: str) -> None:
    want, found = given(results()[name][0])
    for wanted, got in zip(want, found, strict=True):
        assert wanted.keys() == got.keys()
        for slot in wanted:
            for w, g in zip(listed(wanted[slot]), listed(got[slot]), strict=True):
                assert (w is None) == (g is None), slot
                if w is not None:
                    assert (w.shape, w.dtype) == (g.shape, g.dtype), slot
                    np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9, err_msg=slot)


def test_what_follows_is_held_so() -> None:
    """An op that silently needed channels first would pass every other test: of each op some
    sample's outputs are held.
    """
    held = {CASES[n].op for n, (_, marks) in results().items() if marks and any(marks.values())}
    # may leave nothing of an image
    reductions = {s.op for s in CASES.values() if isinstance(REGISTRY[s.op].traits.rows, Reduction)}
    assert {s.op for s in CASES.values()} - held <= reductions
