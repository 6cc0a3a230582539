"""How ops treat the rows of ragged values: every claim of ops/rows.py on every sample, and whose LoD an output takes.

Padded is what a step would be given: the rows that the rule names with more rows behind them, some of them NaN.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401  (fills the registry)
from fluidjax.errors import MixesRows
from fluidjax.lower.rows import treat
from fluidjax.ops import rows
from fluidjax.ops.ragged import Ragged, rows_of
from fluidjax.ops.registry import REGISTRY, OpDef

from .running import Run
from .sample import Sample
from .samples import all_samples

SHARING: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parents[1] / "data" / "lod_sharing_1.8.5.json").read_text())
CASES = {f"{family}-{sample.op}-{index}": (family, index, sample) for family, index, sample in all_samples() if not sample.lod}
KNOWING = {kind for kind, d in REGISTRY.items() if any(s.ragged for s in d.inputs)}
EXTRA = 5


@cache
def run_of(name: str) -> Run:
    return Run(CASES[name][2])


def count_of(inputs: dict[str, Any], over: tuple[str, ...]) -> int | None:
    """The number of rows that the slots which span rows have in common, or None."""
    sizes = {np.shape(v)[:1] for slot in over for v in listed(inputs.get(slot)) if v is not None}
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else None


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def ragged(value: Any, filler: Any, padded: bool = True) -> Any:
    """One sequence over all rows; padding from `filler(shape, dtype)` behind it."""
    if isinstance(value, list):
        return [ragged(v, filler, padded) for v in value]
    if value is None:
        return None
    offsets = (np.array([0, len(value)], np.int32),)
    more = filler((EXTRA, *value.shape[1:]), value.dtype) if padded else value[:0]
    return Ragged(np.concatenate([value, more]), offsets, (len(value) + EXTRA * padded,), "only", padded)


def nans(shape: Any, dtype: Any) -> Any:
    return np.full(shape, np.nan if dtype.kind == "f" else 0, dtype)


def noise(shape: Any, dtype: Any) -> Any:
    rng = np.random.default_rng(3)
    return (rng.normal(0, 1e3, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)).astype(dtype)


def through(definition: OpDef, inputs: dict[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
    """The op as the step runs it."""
    key = jax.random.key(7) if definition.random else None
    with jax.enable_x64(True):
        treated = treat(definition, inputs, definition.arguments(attrs))
        return treated.shown(treated.results if treated.results is not None else definition(treated.inputs, attrs, key))


def over_of(definition: OpDef, inputs: dict[str, Any]) -> tuple[str, ...]:
    """The slots to make ragged: those that the rule names; of a pair, Y only where it has as many rows."""
    rule = rows.ROW_WISE.get(definition.type, rows.RowWise(("X",)))
    slots = [s for s in rule.over if inputs.get(s) is not None]
    if rule.beside and np.shape(inputs["Y"])[:1] != np.shape(inputs["X"])[:1]:
        slots = [s for s in slots if s not in rule.beside]
    return tuple(slots)


CLAIMS = [n for n, (_, _, s) in CASES.items() if s.op in rows.ROW_WISE or s.op in rows.MASKED]


@pytest.mark.parametrize("name", CLAIMS)
def test_padding_changes_no_true_row(name: str) -> None:
    run = run_of(name)
    over = over_of(run.definition, run.inputs)
    count = count_of(run.inputs, over)
    if count is None:
        return  # no rows, or not as many in every slot: nothing of which is ragged
    plain = run.definition(run.inputs, run.attrs, jax.random.key(7) if run.definition.random else None)
    for filler in (nans, noise):
        padded = {s: ragged(v, filler) if s in over else v for s, v in run.inputs.items()}
        try:
            found = through(run.definition, padded, run.attrs)
        except MixesRows:
            return  # with these attributes; test_claims_are_used tells how often
        for slot, value in found.items():
            for got, want in zip(listed(value), listed(plain[slot]), strict=True):
                if want is not None and run.sample.outputs.get(slot, "no") != "no":
                    check(got, want, count, slot)
    USED.add(name)


USED: set[str] = set()


def check(got: Any, want: Any, count: int, slot: str) -> None:
    """Equal true rows; what has no rows is equal as it is, and NaN where it was before only."""
    if isinstance(got, Ragged):
        assert got.padded and got.rows.shape == (count + EXTRA, *np.shape(want)[1:]), slot
        got = got.rows[:count]
    assert np.shape(got) == np.shape(want) and got.dtype == want.dtype, slot
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-6, atol=1e-6, err_msg=slot)


def test_claims_are_used() -> None:
    """Of every op type that claims something, a sample meets the claim."""
    for name in CLAIMS:
        if name not in USED:
            test_padding_changes_no_true_row(name)
    claimed = set(rows.ROW_WISE) | set(rows.MASKED)
    assert claimed - {CASES[n][2].op for n in USED} == set()


def test_each_op_has_one_answer() -> None:
    """Row-wise, masked, LoD-aware; whatever is nothing of these mixes rows. Reductions are row-wise over other axes."""
    assert not set(rows.ROW_WISE) & set(rows.MASKED)
    assert not KNOWING & (set(rows.ROW_WISE) | set(rows.MASKED))
    assert set(rows.ROW_WISE) | set(rows.MASKED) | rows.DROPS | set(rows.SHARES) | set(rows.LEADS) <= set(REGISTRY)


@pytest.mark.parametrize("kind", ["batch_norm", "shape", "sequence_mask", "accuracy", "mean_grad", "mul_grad", "adam"])
def test_what_is_not_listed_mixes(kind: str) -> None:
    x = ragged(np.ones((3, 2), "float32"), nans)
    slot = REGISTRY[kind].inputs[0].name
    with pytest.raises(MixesRows, match=f"op '{kind}' mixes the rows of its ragged input {slot}"):
        treat(REGISTRY[kind], {slot: x}, REGISTRY[kind].defaults)


@pytest.mark.parametrize("name", [f"{s.op}-{n}" for n, (f, i, s) in CASES.items() if f"{f}/{i}" in SHARING])
def test_lod_goes_where_paddle_has_it_go(name: str) -> None:
    """With a LoD on one input alone: the same outputs have it. A LoD that does not fit an output's rows is not kept."""
    family, index, sample = CASES[name.partition("-")[2]]
    run = run_of(name.partition("-")[2])
    for slot, want in SHARING[f"{family}/{index}"].items():
        if slot in sample.inputs and (sample.op, slot) not in OTHER:
            assert shared(run, sample, slot) == fitting(run, slot, want), slot


# (op, input slot): 1.8.5 passes a LoD on that means nothing, or from a slot that is not the batch
OTHER: dict[tuple[str, str], str] = {}


def shared(run: Run, sample: Sample, slot: str) -> list[str]:
    value = run.inputs[slot]
    many = isinstance(value, list)
    first = ragged(value[0] if many else value, nans, padded=False)
    out = through(run.definition, {**run.inputs, slot: [first, *value[1:]] if many else first}, run.attrs)
    found = []
    for s, count in sample.outputs.items():
        for i, v in enumerate(listed(out[s])):
            if isinstance(v, Ragged) and not v.bare:
                found.append(s if count is None else f"{s}#{i}")
    return found


def fitting(run: Run, slot: str, outputs: list[str]) -> list[str]:
    """Those of Paddle's outputs with a LoD that have as many rows as the input."""
    value = run.inputs[slot]
    count = len(value[0] if isinstance(value, list) else value)
    kept = []
    for out in outputs:
        name, _, number = out.rstrip("!").partition("#")
        shape = np.shape(listed(rows_of(run.outputs[name]))[int(number or 0)])
        if shape[:1] == (count,):
            kept.append(out.rstrip("!"))
    return kept
