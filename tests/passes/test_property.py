"""run(pass(p)) == run(p) for every registered pass, on random programs, for every kept variable and
the state.

Gradient ops run by their literal meaning, op by op. A new pass joins by being registered; one that
is meant for programs that predict, or that rounds differently, is named below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import passes
from fluidjax.errors import FluidError
from fluidjax.ir import walk
from fluidjax.ir.desc import OpDesc, ProgramDesc
from fluidjax.lower.step import Step
from fluidjax.passes import PASSES, memory_optimize, release_memory
from tests import remembered
from tests.examples import examples
from tests.random_programs import Net, build, recipes

from ..op_by_op import OpByOp

PREDICTION = {"is_test", "inference", "fuse_batch_norm", "fuse_conv_affine"}
# these compute in another order
FOLDING = {"fold_constants", "fuse_batch_norm", "fuse_conv_affine"}
UPDATES_NOTHING = {"prune", "inference"}
VARIANTS: dict[str, tuple[str, ...]] = {
    "fuse_batch_norm": ("fuse_batch_norm(probe=False)",),
    "fuse_conv_affine": ("fuse_conv_affine(probe=False)",),
    "recompute": ("recompute", "recompute(heavy=False)"),
    "memory_optimize": (
        "memory_optimize",
        "memory_optimize(level=1)",
        "memory_optimize(level=1, skip_grads=True)",
        "memory_optimize(strategy='first_fit')",
        "memory_optimize(strategy='first_fit', level=1)",
    ),
    "release_memory": (
        "release_memory",
        "release_memory(unread=False)",
        "memory_optimize,release_memory",
        "release_memory,memory_optimize",
    ),
}  # fmt: skip
PROGRAMS = 100  # for every pass in a run, over all its variants
PART = 50  # of a single test, so that none takes long


def pass_of(text: str) -> str:
    """The first pass of a pipeline's text."""
    return text.partition("(")[0].partition(",")[0]


def texts(turn: int) -> list[str]:
    """Every pass, in its variant number `turn` (they take turns)."""
    variants = [VARIANTS.get(name, (name,)) for name in sorted(PASSES)]
    return [each[turn % len(each)] for each in variants]


def program_of(net: Net, text: str, picks: list[int]) -> tuple[ProgramDesc, list[str]]:
    """The program that a pass is for, and the names to keep: the loss and those that `picks`
    chooses.
    """
    program = net.main.clone(for_test=True) if pass_of(text) in PREDICTION else net.main
    block = program.desc.blocks[0]
    written = list(
        dict.fromkeys(n for op in block.ops for n in op.writes if not block.vars[n].persistable)
    )
    return program.desc, list(
        dict.fromkeys([net.loss.name, *(written[i % len(written)] for i in picks)])
    )


def outcome(step: Step, state: dict[str, Any], feed: dict[str, Any]) -> dict[str, np.ndarray]:
    """What a step gives: its fetches, and the persistable variables."""
    after, fetched = step(state, feed, jax.random.key(3))
    return {
        **{n: np.asarray(v) for n, v in after.items()},
        **dict(zip(step.fetches, map(np.asarray, fetched), strict=True)),
    }


def reaches_over(op: OpDesc) -> int:
    """How many results of an op lie where one of its inputs or another result is."""
    writes = list(op.writes)
    return sum(n in op.reads for n in writes) + len(writes) - len(set(writes))


class Cases:
    """A random program as the passes get it, with the names to keep, and what it gives without any
    pass.
    """

    def __init__(self, recipe: list[tuple[Any, ...]], picks: list[int]) -> None:
        self.net, self.picks = build(recipe), picks
        with jax.enable_x64(True):
            self.state = fluid.init_fn(self.net.startup)(jax.random.key(0))
        self._wanted: dict[bool, dict[str, np.ndarray]] = {}

    def wanted(self, text: str, desc: ProgramDesc, keep: list[str]) -> dict[str, np.ndarray]:
        """What the program gives that the pass is for."""
        predicts = pass_of(text) in PREDICTION
        if predicts not in self._wanted:
            self._wanted[predicts] = outcome(
                Step(desc, tuple(keep), literal=True), self.state, self.net.feed
            )
        return self._wanted[predicts]

    def check(self, text: str, form: bool = True) -> None:
        """Run the program before and after a pass; raises AssertionError where they differ.

        form: also look for what no value shows here: a second run that changes more, ops that write
        over what they read.
        """
        state, feed = self.state, self.net.feed
        desc, keep = program_of(self.net, text, self.picks)
        result = passes.run(text, desc, state, keep)
        kind = OpByOp if "release_memory" in text else Step
        want = self.wanted(text, desc, keep)
        try:
            got = outcome(
                kind(result.desc, tuple(keep), literal=True), {**state, **result.params}, feed
            )
        except FluidError as exc:
            raise AssertionError(f"{text} broke the program: {exc}") from exc
        compare(
            text, want, {n: got[n] for n in (keep if pass_of(text) in UPDATES_NOTHING else want)}
        )
        if form:
            check_form(
                text,
                desc,
                passes.run(text, result.desc, {**state, **result.params}, keep),
                result.desc,
            )


def check_form(text: str, desc: ProgramDesc, again: Any, changed: ProgramDesc) -> None:
    assert not again.changed or "first_fit" in text, f"{text} is not idempotent:\n{again.diff()}"
    if text.startswith("memory_optimize") and "release" not in text:
        for old, new in zip(desc.blocks[0].ops, changed.blocks[0].ops, strict=True):
            assert reaches_over(old) == reaches_over(new), f"{new} writes over what it needs"


def compare(text: str, want: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> None:
    for name, value in got.items():
        assert value.dtype == want[name].dtype and value.shape == want[name].shape, (
            f"{text} changed the shape of {name}"
        )
        if pass_of(text) in FOLDING:
            scale = np.abs(want[name]).max(initial=0, where=np.isfinite(want[name]))
            np.testing.assert_allclose(
                value, want[name], rtol=1e-5, atol=1e-5 * scale, err_msg=f"{text}: {name}"
            )
        else:
            assert value.tobytes() == want[name].tobytes(), (
                f"{text} changed {name}: {want[name]} became {value}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PROGRAMS // PART))
@examples(PART)
@given(recipes(), st.lists(st.integers(0, 500), max_size=3), st.integers(0, 19))
def test_nothing_kept_changes(
    part: int, recipe: list[tuple[Any, ...]], picks: list[int], turn: int
) -> None:
    with remembered.ops():
        cases = Cases(recipe, picks)
        for text in texts(turn):
            cases.check(text)


@examples(25)
@given(recipes(), st.sampled_from(VARIANTS["memory_optimize"]))
def test_shared_pullbacks_survive_memory_optimize(recipe: list[tuple[Any, ...]], text: str) -> None:
    """Not literal: gradient ops are paired with their forward ops by versioned names, which
    renaming must not mislead.
    """
    net = build(recipe)
    with jax.enable_x64(True):
        state = fluid.init_fn(net.startup)(jax.random.key(0))
    result = passes.run(text, net.main.desc, keep=[net.loss.name])
    before, after = (Step(d, (net.loss.name,)) for d in (net.main.desc, result.desc))
    assert {u: [g.uid for g in gs] for u, gs in before.pairs.items()} == {
        u: [g.uid for g in gs] for u, gs in after.pairs.items()
    }
    compare(text, outcome(before, state, net.feed), outcome(after, state, net.feed))


# -- passes broken on purpose are caught -----------------------------------------------------------


def caught(text: str, form: bool = True) -> str:
    """What the property test says about a pass, on a fixed set of programs."""

    @settings(
        derandomize=True, max_examples=50, phases=[Phase.generate], report_multiple_bugs=False
    )
    @given(recipes(), st.lists(st.integers(0, 500), max_size=3))
    def run(recipe: list[tuple[Any, ...]], picks: list[int]) -> None:
        Cases(recipe, picks).check(text, form)

    with pytest.raises(AssertionError) as found:
        run()
    return str(found.value)


@pytest.mark.parametrize("text", ["memory_optimize", "memory_optimize(level=1)"])
@pytest.mark.parametrize("early", [1, 2])
def test_lives_that_end_early_are_caught(
    monkeypatch: pytest.MonkeyPatch, text: str, early: int
) -> None:
    """One op early, an op writes over its own input; two ops early, results differ."""
    real = memory_optimize.lives
    short = lambda desc: [replace(x, last=max(x.first, x.last - early)) for x in real(desc)]  # noqa: E731
    monkeypatch.setattr(memory_optimize, "lives", short)
    said = caught(text, form=early == 1)
    assert (
        "writes over what it needs" in said if early == 1 else "changed" in said or "broke" in said
    )


def test_a_deletion_one_op_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = walk.liveness

    def early(*args: Any) -> walk.Liveness:
        live = real(*args)
        return walk.Liveness(live.entry, live.born, [*live.dies[1:], frozenset()], live.dead)

    monkeypatch.setattr(release_memory.walk, "liveness", early)
    assert "which nothing has computed" in caught("release_memory")
