"""Every op and its gradient on the GPU, as the CPU computes them: in float32, and those of mixed
precision in bfloat16.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from fluidjax.contrib.mixed_precision.fp16_lists import gray_list, white_list
from fluidjax.ops.ragged import rows_of
from tests.ops import together
from tests.ops.leads import foremost, leads, op_and_dtypes
from tests.ops.running import Batch, Run, shown
from tests.ops.sample import Sample
from tests.ops.samples import all_samples

from .card import CPU, GPU, REHEARSAL, apart
from .conftest import REHEARSED

SAMPLES = {f"{family}-{sample.op}-{index}": sample for family, index, sample in all_samples()}
LEADS = leads(SAMPLES, op_and_dtypes)
NAMES = foremost(sorted(SAMPLES), LEADS)
# as a share of the largest value: sums in another order, functions of other libraries
TOLERANCE = 1e-4
SIZE = together.SIZE


def _all_float32(sample: Sample) -> bool:
    arrays = [np.asarray(a) for slot in sample.inputs for _, a in sample.variables(slot)]
    return (
        any(a.dtype == np.float32 for a in arrays)
        and not any(a.dtype in (np.float64, np.float16) for a in arrays)
        and not sample.lod
    )


HALF = [n for n in NAMES if SAMPLES[n].op in white_list | gray_list and _all_float32(SAMPLES[n])]
if (
    os.environ.get("SAMPLES") != "all"
):  # what another device changes, it changes for an op as such: one sample of a kind shows it
    NAMES, HALF = [n for n in NAMES if n in LEADS], [n for n in HALF if n in LEADS]
if REHEARSAL:
    NAMES, HALF = NAMES[::REHEARSED], HALF[::REHEARSED]
PLACES = {n: i for i, n in enumerate(NAMES)}
HALVES = {n: i for i, n in enumerate(HALF)}


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The GPU's compiler is not told to try little: options of the CPU's might mean something else
    to it.
    """
    if not REHEARSAL:
        monkeypatch.setattr(together, "QUICK", {})
    yield


def halved(sample: Sample) -> Sample:
    """The sample with its float32 inputs in bfloat16; of normalisations only what is normalised, as
    mixed precision has it.
    """
    made, only = copy.copy(sample), {"batch_norm": ("X",)}.get(sample.op)

    def half(slot: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [half(slot, v) for v in value]
        value = np.asarray(value)
        return (
            value.astype(ml_dtypes.bfloat16)
            if value.dtype == np.float32 and (only is None or slot in only)
            else value
        )

    made.inputs, made.grad = {slot: half(slot, v) for slot, v in sample.inputs.items()}, []
    return made


@lru_cache(maxsize=6)
def _batch(number: int, half: bool, device: Any) -> Batch:
    names = (HALF if half else NAMES)[number * SIZE : (number + 1) * SIZE]
    batch = Batch([halved(SAMPLES[n]) if half else SAMPLES[n] for n in names])
    with jax.default_device(device):
        batch.results  # noqa: B018
    return batch


def _run(name: str, device: Any, half: bool = False) -> Run:
    number, index = divmod((HALVES if half else PLACES)[name], SIZE)
    return _batch(number, half, device).runs[index]


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _far(got: Any, want: Any) -> float:
    """Of the variables of a slot, where some may be without a value."""
    pairs = list(zip(_each(got), _each(want), strict=True))
    assert all((g is None) == (w is None) for g, w in pairs)
    return max((apart(g, w) for g, w in pairs if w is not None), default=0.0)


def _fails_alike(name: str, half: bool = False) -> bool:
    """Whether the CPU cannot run a sample so; then neither can the GPU."""
    try:
        _run(name, CPU, half).result  # noqa: B018
    except Exception:
        with pytest.raises(Exception):  # noqa: B017
            _run(name, GPU, half).result  # noqa: B018
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_an_op_and_its_gradient(name: str, record_property: Any) -> None:
    if _fails_alike(name):
        return
    sample, got, want = SAMPLES[name], _run(name, GPU), _run(name, CPU)
    far = {
        slot: _far(shown(got.outputs[slot]), shown(want.outputs[slot])) for slot in sample.outputs
    }
    far |= {
        f"{slot}@GRAD": _far(rows_of(got.gradients[slot]), rows_of(want.gradients[slot]))
        for slot in sample.grad
    }
    if max(far.values()) > TOLERANCE / 10:
        record_property("far", max(far.values()))
    wide = max(TOLERANCE, sample.tol or 0, sample.grad_tol or 0)
    assert max(far.values()) <= wide, far


@pytest.mark.parametrize("name", HALF)
def test_in_bfloat16(name: str) -> None:
    """The GPU's error, against float32, is that of the CPU's bfloat16."""
    if _fails_alike(name, half=True) or SAMPLES[name].op in (
        "uniform_random_batch_size_like",
        "top_k",
    ):
        return
    got, want, exact = _run(name, GPU, True).outputs, _run(name, CPU, True).outputs, None
    with jax.default_device(CPU):
        exact = Batch([SAMPLES[name]]).runs[0].outputs if SAMPLES[name].op in white_list else want
    for slot in SAMPLES[name].outputs:
        for g, w, e in zip(_each(got[slot]), _each(want[slot]), _each(exact[slot]), strict=True):
            if w is None or np.asarray(w).dtype.kind in "biu":
                continue
            g, w, e = (np.asarray(v).astype(np.float64) for v in (g, w, e))
            size = max(np.linalg.norm(e), 1e-6)
            assert np.linalg.norm(g - e) <= 1.5 * np.linalg.norm(w - e) + 1e-2 * size, slot
