"""In what the ops here differ from Paddle 1.8.5 at a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import fluidjax.ops  # noqa: F401
from fluidjax.base.dtypes import name_of
from fluidjax.errors import FluidError

from ..leads import foremost, leads
from ..running import Batch, Run, shown
from ..spectra import as_ordered
from ..together import SIZE
from . import cases_of
from .case import Extreme
from .recorded import Answer, recorded
from .written import repeated

RTOL = {"float32": 2e-5, "float64": 1e-11}


@dataclass(frozen=True)
class Difference:
    """One element (or, where `at` is None, all of an output, or the whole case) in which Paddle and
    this differ.
    """

    case: str
    key: str
    at: int | None
    inputs: tuple[tuple[str, Any], ...]
    paddle: tuple[Any, ...]
    here: Any


@cache
def answered(family: str) -> dict[str, Extreme]:
    """The cases of a family by name, but those that Paddle refuses."""
    return {case.name: case for case in cases_of(family) if not recorded(family, case).refused}


@cache
def leads_of(family: str) -> frozenset[str]:
    """The first case of each op that computes element by element: there a compiler's approximations
    show.
    """
    return leads(
        {name: case for name, case in answered(family).items() if case.pointwise},
        lambda case: case.op,
    )


@cache
def runs(family: str) -> dict[str, Run]:
    """The cases of a family by name, some two dozen programs compiled together."""
    cases, alike = answered(family), dict[str, list[str]]()
    for name in foremost(sorted(cases, key=lambda n: n in repeated(family)), leads_of(family)):
        alike.setdefault(cases[name].program(), []).append(name)
    groups = list(alike.values())
    batches = [
        [name for group in groups[i : i + SIZE] for name in group]
        for i in range(0, len(groups), SIZE)
    ]
    found = {
        n: run
        for names in batches
        for n, run in zip(names, Batch([cases[n] for n in names]).runs, strict=True)
    }
    return {name: found[name] for name in cases}


def results(run: Run) -> dict[str, Any]:
    """{key: array} of outputs and gradients."""
    case = run.sample
    outputs, gradients = run.result
    wanted = {slot: outputs[slot] for slot in case.outputs}
    return {
        k: np.asarray(v)
        for k, v in [*flat(wanted), *flat({f"{s}@GRAD": gradients[s] for s in case.grad})]
    }


def flat(slots: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys that recordings have, and their arrays."""
    for slot, value in slots.items():
        if isinstance(value, list | tuple):
            yield from ((f"{slot}#{i}", shown(v)) for i, v in enumerate(value))
        else:
            yield slot, shown(value)


@cache
def differences(family: str, name: str) -> list[Difference]:
    """All of a case, in the order of the recording."""
    run = runs(family)[name]
    case, answer = run.sample, recorded(family, run.sample)
    try:
        got = results(run)
    except FluidError as error:
        return [Difference(case.name, "", None, (), ("runs",), type(error).__name__)]
    return [
        d
        for key, want in answer.values.items()
        if "@LOD" not in key
        for d in compare(case, answer, key, want, got[key])
    ]


def compare(
    case: Extreme, answer: Answer, key: str, want: np.ndarray, got: np.ndarray
) -> Iterator[Difference]:
    """The elements of one output that differ."""
    spec = [(name_of(a.dtype), list(a.shape)) for a in (want, got)]
    if spec[0] != spec[1]:
        yield Difference(case.name, key, None, (), (described(*spec[0]),), described(*spec[1]))
        return
    got = as_ordered(case.op, key, want, got)
    gradient = key.partition("#")[0].endswith("@GRAD")
    want, got = (unsigned(a.reshape(-1)) if gradient else a.reshape(-1) for a in (want, got))
    positions, values = answer.scalar.get(key, (np.zeros(0, int), want[:0]))
    values = unsigned(values) if gradient else values
    scalar = dict(zip(np.asarray(positions).tolist(), values, strict=True))
    with np.errstate(all="ignore"):
        wrong = ~(
            equal(want, got, case.rtol) | underflows(case, want, got) | rounds(case, want, got)
        )
    for i in np.flatnonzero(wrong).tolist():
        either = (want[i], scalar[i]) if i in scalar else (want[i],)
        with np.errstate(all="ignore"):
            fits = any(equal(np.array([w]), got[i : i + 1], case.rtol)[0] for w in either[1:])
        if not fits:
            yield Difference(case.name, key, i, inputs_at(case, i), either, got[i])


def described(dtype: str, shape: list[int]) -> str:
    return f"{dtype}{shape}"


def equal(want: np.ndarray, got: np.ndarray, rtol: float | None) -> np.ndarray:
    """Elementwise: the same special value (nan, infinity, zero of one sign), or ordinary numbers
    within rounding.
    """
    if want.dtype.kind == "c":
        return alike(want, got, rtol)
    if want.dtype.kind != "f":
        return want == got
    rtol = RTOL[str(want.dtype)] if rtol is None else rtol
    special = (want == 0) | (got == 0) | ~np.isfinite(want) | ~np.isfinite(got)
    same = (want == got) & (np.signbit(want) == np.signbit(got)) | np.isnan(want) & np.isnan(got)
    return np.where(
        special, same, np.abs(want - got) <= rtol * np.maximum(np.abs(want), np.abs(got))
    )


def alike(want: np.ndarray, got: np.ndarray, rtol: float | None) -> np.ndarray:
    """Of complex numbers: undefined in both, each part the same special value, or less apart than
    rounding of the whole number.
    """
    parts = equal(want.real, got.real, rtol) & equal(want.imag, got.imag, rtol)
    rtol = RTOL[str(want.real.dtype)] if rtol is None else rtol
    finite = np.isfinite(want) & np.isfinite(got)
    close = finite & (np.abs(want - got) <= rtol * np.maximum(np.abs(want), np.abs(got)))
    return parts | close | np.isnan(want) & np.isnan(got)


def unsigned(gradient: np.ndarray) -> np.ndarray:
    """The gradient with positive zeros: the sign of a zero says nothing there."""
    return np.where(gradient == 0, np.zeros((), gradient.dtype), gradient)


def subnormal(array: np.ndarray) -> np.ndarray:
    """Where a number is subnormal, or so small that its half or quarter is."""
    if array.dtype.kind != "f":
        return np.zeros(array.shape, bool)
    return (np.abs(array) < 4 * np.finfo(array.dtype).tiny) & (array != 0)


def underflows(case: Extreme, want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Where subnormals are concerned, which XLA takes for zero: among the inputs, or as Paddle's
    answer.
    """
    lost = subnormal(want) & ((got == 0) | subnormal(got))
    if case.pointwise:
        for array in case.inputs.values():
            lost |= subnormal(np.asarray(array).reshape(-1))
    return lost


def rounds(case: Extreme, want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Where both are as good as the same beside the largest of all, in a case of which a library's
    rounding decides more.
    """
    rtol = RTOL[str(want.real.dtype)] if case.rtol is None and case.singular else case.rtol
    return (
        np.abs(want - got) <= rtol * np.abs(want).max()
        if case.singular
        else np.zeros(want.shape, bool)
    )


def inputs_at(case: Extreme, i: int) -> tuple[tuple[str, Any], ...]:
    """The inputs of a pointwise case at an element, its upstream gradient too where that is not 1."""
    if not case.pointwise:
        return ()
    found = [(slot, np.asarray(value).reshape(-1)[i]) for slot, value in case.inputs.items()]
    return (*found, *((f"{s}@GRAD", c[i]) for s, c in case.cotangents.items() if c[i] != 1))
