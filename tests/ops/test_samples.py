"""Every op sample against Paddle's answers, against numeric derivatives, and against its own shape
rule.

The gradient ops run as they are written in a program: at the variables that they name, and nothing
else.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.base.dtypes import name_of
from fluidjax.errors import FluidError
from fluidjax.feeds.bucketing import StepTensor
from fluidjax.ir.desc import FrozenMap
from fluidjax.ops.infer import Spec, infer
from fluidjax.ops.ragged import Ragged, rows_of
from fluidjax.ops.registry import lookup

from . import numeric
from .extremes import FAMILIES
from .extremes.judge import answered
from .extremes.written import repeated
from .leads import foremost, leads, op_and_dtypes
from .recorded import recorded
from .redundant import redundant
from .running import Batch, Run, shown, tree
from .sample import Sample
from .samples import all_samples
from .spectra import as_ordered
from .together import SIZE

CASES = {
    f"{family}-{sample.op}-{index}": (family, index, sample)
    for family, index, sample in all_samples()
}
LEADS = leads({n: sample for n, (_, _, sample) in CASES.items()}, op_and_dtypes)
REDUNDANT = redundant()
RTOL, ATOL = 1e-5, 1e-6
NUMERIC_RTOL = 1e-5
UNDECLARED = {("pyramid_hash", "DropPos")}  # outputs of which 1.8.5 declares no shape


@cache
def places(wide: bool) -> dict[str, int]:
    """Where a sample stands among those that are compiled together: all of them, and those whose
    gradients are differentiated.

    Those stand last which only a thorough run asks for.
    """
    names = foremost(sorted(DIFFERENTIABLE if wide else CASES, key=lambda n: n in REDUNDANT), LEADS)
    return {n: i for i, n in enumerate(foremost(names, FIRST) if wide else names)}


# batch_of has tests come batch by batch; ten thousands of arrays would slow down whatever counts
# arrays
@lru_cache(maxsize=4)
def batch(number: int, wide: bool) -> Batch:
    names = list(places(wide))[number * SIZE : (number + 1) * SIZE]
    return Batch([CASES[n][2] for n in names], wide)


def batch_of(item: pytest.Item) -> int:
    """Where conftest.py puts a test: by the batch of its sample; first those that have none."""
    name = getattr(item, "callspec", None) and item.callspec.params.get("name")
    return 1 + places(wide=False)[name] // SIZE if name else 0


def run_of(name: str, wide: bool = False) -> Run:
    number, index = divmod(places(wide)[name], SIZE)
    return batch(number, wide).runs[index]


def differentiable(sample: Sample) -> bool:
    return bool(sample.grad) and "numeric" not in sample.skip


DIFFERENTIABLE = [n for n, (_, _, sample) in CASES.items() if differentiable(sample)]


def in_float64() -> set[tuple[str, str]]:
    """(op, input slot) of the gradients that are compared with Paddle's in float64, at extremes,
    each time.
    """
    cases = [
        case
        for family in FAMILIES
        for case in answered(family).values()
        if case.name not in repeated(family)
    ]
    return {
        (c.op, slot)
        for c in cases
        for slot in c.grad
        if np.asarray(c.variables(slot)[0][1]).dtype == np.float64
    }


def first_of_their_kind() -> set[str]:
    """Of samples whose gradients Paddle has recorded in float32 alone, the first of each op and
    slots; of others all.
    """
    found: dict[Any, str] = {}
    wide = in_float64()
    for name in DIFFERENTIABLE:
        sample = CASES[name][2]
        if not sample.paddle:
            found[name] = name
        elif not {(sample.op, slot) for slot in sample.grad} <= wide:
            found.setdefault((sample.op, *sample.grad), name)
    return set(found.values())


FIRST = first_of_their_kind()


def marked(names: Iterable[str], thorough: Container[str]) -> Any:
    """Parametrise over names of samples, of which some run only where it is asked for."""
    return pytest.mark.parametrize(
        "name", [pytest.param(n, marks=pytest.mark.thorough) if n in thorough else n for n in names]
    )


def pick(condition: Any) -> Any:
    """Parametrise over the samples that meet a condition."""
    return marked((n for n, (_, _, sample) in CASES.items() if condition(sample)), REDUNDANT)


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def compare(got: Any, want: Any, tol: float | None, what: str) -> None:
    """Equal shapes, dtypes and values; a repeatable slot is compared variable by variable."""
    got, want = listed(got), listed(want)
    assert len(got) == len(want), f"{what}: {len(got)} variables, Paddle has {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        label = what if len(got) == 1 else f"{what}#{i}"
        assert g is not None, f"{label} was not computed"
        g = np.asarray(g)
        assert (g.shape, name_of(g.dtype)) == (w.shape, name_of(w.dtype)), label
        rtol, atol = (RTOL, ATOL) if tol is None else (tol, tol)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, err_msg=label)


def compare_lod(got: Any, want: list[Any], slot: str) -> None:
    """Equal offsets. The outputs that exist for gradient ops have none here, but an order of
    batches in Paddle.
    """
    if slot.startswith("Batch"):
        return
    offsets = StepTensor(got).offsets if isinstance(got, Ragged) and not got.bare else ()
    assert [list(level) for level in offsets] == [level.tolist() for level in want]


@pick(lambda s: s.paddle)
def test_outputs_equal_paddle(name: str) -> None:
    family, index, sample = CASES[name]
    answer, outputs = recorded(family, index, sample), run_of(name).outputs
    for slot in sample.outputs:
        compare(
            as_ordered(sample.op, slot, answer[slot], shown(outputs[slot])),
            answer[slot],
            sample.tol,
            slot,
        )
        for i, value in enumerate(listed(outputs[slot])):
            key = f"{slot}#{i}@LOD" if isinstance(outputs[slot], list) else f"{slot}@LOD"
            compare_lod(value, [answer[k] for k in sorted(answer) if k.startswith(key)], slot)


@pick(lambda s: s.paddle and s.grad)
def test_gradients_equal_paddle(name: str) -> None:
    family, index, sample = CASES[name]
    answer, grads = recorded(family, index, sample), run_of(name).gradients
    for slot in sample.grad:
        compare(rows_of(grads[slot]), answer[slot + "@GRAD"], sample.grad_tol, slot + "@GRAD")


@pytest.mark.slow
@marked(DIFFERENTIABLE, set(DIFFERENTIABLE) - FIRST)
def test_gradients_are_derivatives(name: str) -> None:
    run = run_of(name, wide=True)
    for seed in (1, 2):
        direction = numeric.directions(run, seed)
        found, size = numeric.analytic(run.gradients, direction)
        assert numeric.numeric(run, seed) == pytest.approx(
            found, abs=NUMERIC_RTOL * max(size, 1e-2)
        )


# Without a rule of its own an op's function is what is traced, for its shapes as for its execution:
# one sample of it shows that.
RULED = {s.op for _, _, s in CASES.values() if lookup(s.op).infer is not None}
FIRST_OF_OP = {s.op: n for n, (_, _, s) in reversed(CASES.items())}


@marked(
    CASES,
    REDUNDANT
    | {n for n, (_, _, s) in CASES.items() if s.op not in RULED and FIRST_OF_OP[s.op] != n},
)
def test_shape_rule_equals_execution(name: str) -> None:
    run = run_of(name)
    check_specs(run, specs_of(run.inputs), exact=run.definition.infer is None)


@pick(lambda s: "unknown" not in s.skip)
def test_shape_rule_with_open_dimension(name: str) -> None:
    """The first dimension of the batch may be unknown: then nothing that is inferred contradicts
    the execution.
    """
    run = run_of(name)
    errors = []
    for opened in open_first(run):
        try:
            check_specs(run, opened, exact=False)
            return
        except FluidError as error:
            errors.append(str(error))
    assert not errors, "\n".join(
        [*errors, "if it cannot be open, give the sample skip={'unknown': why}"]
    )


def spec(array: Any) -> Spec:
    array = rows_of(array)
    return Spec(tuple(np.shape(array)), name_of(array.dtype))


def specs_of(inputs: dict[str, Any]) -> dict[str, Any]:
    return {s: tuple(v) if isinstance(v, list) else v for s, v in tree(spec, plain(inputs)).items()}


def plain(inputs: dict[str, Any]) -> dict[str, Any]:
    return {s: rows_of(v) for s, v in inputs.items()}


def open_first(run: Run) -> list[dict[str, Any]]:
    """Input specs with dimension 0 unknown: of all inputs that share the first input's, then of the
    first alone.
    """
    inputs = plain(run.inputs)
    slots = [s.name for s in run.definition.inputs if inputs.get(s.name) is not None]
    if not slots or not listed(inputs[slots[0]]) or not np.ndim(listed(inputs[slots[0]])[0]):
        return []
    batch = np.shape(listed(inputs[slots[0]])[0])[0]

    def opened(array: Any) -> Spec:
        plain = spec(array)
        return Spec((-1, *plain.shape[1:]), plain.dtype) if plain.shape[:1] == (batch,) else plain

    closed, together = specs_of(inputs), tree(opened, inputs)
    together = {s: tuple(v) if isinstance(v, list) else v for s, v in together.items()}
    return [together, {**closed, slots[0]: together[slots[0]]}]


def check_specs(run: Run, inputs: dict[str, Any], exact: bool) -> None:
    """What infer says of these inputs equals what was executed, except for -1 if not `exact`."""
    found = infer(run.definition, FrozenMap(inputs), FrozenMap(run.attrs))
    for slot in (s.name for s in run.definition.outputs):
        value = run.outputs[slot]
        if value is None or (run.sample.op, slot) in UNDECLARED:
            continue
        assert found[slot] is not None, f"{slot} has no shape"
        got, want = listed(found[slot]), [spec(v) for v in listed(value)]
        assert [g.dtype for g in got] == [w.dtype for w in want], slot
        for g, w in zip(got, want, strict=True):
            open_dims = tuple(
                n if n >= 0 or exact else m for n, m in zip(g.shape, w.shape, strict=True)
            )
            assert open_dims == w.shape, f"{slot}: {g.shape}"


def test_samples_have_distinct_names() -> None:
    assert len(CASES) == len(all_samples())
    assert all(isinstance(sample, Sample) for _, _, sample in CASES.values())
