"""How ops treat the rows of ragged values: every claim of the trait `rows` on every sample, and
whose LoD an output takes.

Padded is what a step would be given: the rows that the rule names with more rows behind them, some
of them NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import MixesRows
from fluidjax.lower.rows import treat
from fluidjax.ops.ragged import Ragged
from fluidjax.ops.registry import REGISTRY, OpDef
from fluidjax.ops.traits import Reduction, RowWise

from .leads import foremost, leads
from .recorded import recorded
from .redundant import redundant
from .running import NOT_TRACEABLE, Gradient, Run, cotangents, tree
from .samples import all_samples
from .together import SIZE, Together, attempt, given

SHARING: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "lod_sharing_1.8.5.json").read_text()
)
PLACES = {
    f"{family}-{sample.op}-{index}": (family, index) for family, index, sample in all_samples()
}
CASES = {
    f"{family}-{sample.op}-{index}": sample
    for family, index, sample in all_samples()
    if not sample.lod
}
REDUNDANT = redundant()
KNOWING = {kind for kind, d in REGISTRY.items() if any(s.ragged for s in d.inputs)}
CLAIMING = {kind for kind, d in REGISTRY.items() if isinstance(d.traits.rows, RowWise | Reduction)}
LEADS = leads(CASES, lambda sample: sample.op)
CLAIMS = foremost(
    sorted((n for n, s in CASES.items() if s.op in CLAIMING), key=lambda n: n in REDUNDANT), LEADS
)
EXTRA = 5
MET: dict[str, bool] = {}


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def ragged(value: Any, padded: bool = True) -> Any:
    """One sequence over all rows and, if padded, rows of NaN and of noise behind it."""
    if isinstance(value, list):
        return [ragged(v, padded) for v in value]
    if value is None:
        return None
    extra = (
        [
            nans((3, *value.shape[1:]), value.dtype),
            noise((EXTRA - 3, *value.shape[1:]), value.dtype),
        ]
        if padded
        else []
    )
    offsets = (np.array([0, len(value)], np.int32),)
    return Ragged(
        np.concatenate([value, *extra]), offsets, (len(value) + EXTRA * padded,), "only", padded
    )


def nans(shape: Any, dtype: Any) -> Any:
    return np.full(shape, np.nan if dtype.kind == "f" else 1, dtype)


def noise(shape: Any, dtype: Any) -> Any:
    rng = np.random.default_rng(3)
    return (rng.normal(0, 1e3, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)).astype(
        dtype
    )


def through(definition: OpDef, inputs: dict[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
    """The op as the step runs it."""
    key = jax.random.key(7) if definition.random else None
    treated = treat(definition, inputs, definition.arguments(attrs))
    return treated.shown(
        treated.results if treated.results is not None else definition(treated.inputs, attrs, key)
    )


def over_of(definition: OpDef, inputs: dict[str, Any]) -> tuple[str, ...]:
    """The slots to make ragged: those that the rule names; what is beside the first only where it
    has as many rows.
    """
    rule = (
        definition.traits.rows if isinstance(definition.traits.rows, RowWise) else RowWise(("X",))
    )
    slots = [s for s in rule.over if inputs.get(s) is not None]
    first = np.shape(inputs[slots[0]])[:1] if rule.beside else ()
    return tuple(s for s in slots if s not in rule.beside or np.shape(inputs[s])[:1] == first)


def count_of(inputs: dict[str, Any], over: tuple[str, ...]) -> int | None:
    """The number of rows that these slots have in common, or None."""
    sizes = {np.shape(v)[:1] for slot in over for v in listed(inputs.get(slot)) if v is not None}
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else None


def padded_inputs(run: Run) -> tuple[dict[str, Any], int | None]:
    over = over_of(run.definition, run.inputs)
    count = count_of(run.inputs, over)
    return {
        s: ragged(v) if s in over and count is not None else v for s, v in run.inputs.items()
    }, count


def meets(name: str) -> bool:
    """Whether the sample's attributes and shapes meet the claim, so that the op takes padded rows."""
    if name not in MET:
        run = Run(CASES[name])
        padded, count = padded_inputs(run)
        try:
            MET[name] = count is not None and traced(run, padded) is not None
        except MixesRows:
            MET[name] = False
    return MET[name]


def traced(run: Run, inputs: dict[str, Any]) -> Any:
    """Types of the outputs."""
    with jax.enable_x64(True):
        try:
            over = {
                s: v for s, v in inputs.items() if any(isinstance(x, Ragged) for x in listed(v))
            }
            return jax.eval_shape(
                lambda given: through(run.definition, {**inputs, **given}, run.attrs),
                over or inputs,
            )
        except NOT_TRACEABLE as error:
            if isinstance(error, MixesRows):
                raise
            return through(run.definition, inputs, run.attrs)


def marked(names: Iterable[str]) -> Any:
    return pytest.mark.parametrize(
        "name",
        [pytest.param(n, marks=pytest.mark.thorough) if n in REDUNDANT else n for n in names],
    )


@marked(CLAIMS)
def test_padding_changes_no_true_row(name: str) -> None:
    found = both_ways(CLAIMS.index(name) // SIZE)
    if not MET[name]:
        # with these attributes the op mixes rows; test_claims_are_used sees to it that others do
        # not
        return
    run, (want, got) = Run(CASES[name]), given(found[name])
    want, rtol = (
        (paddles(name), 1e-5 if run.sample.tol is None else run.sample.tol)
        if want is None
        else (want, 2e-6)
    )
    for slot in run.sample.outputs:
        for one, expected in zip(listed(got[slot]), listed(want[slot]), strict=True):
            check(one, expected, padded_inputs(run)[1], slot, rtol)


def paddles(name: str) -> dict[str, Any]:
    """What Paddle answered to the sample, without padding."""
    return recorded(*PLACES[name], CASES[name])


@lru_cache(maxsize=2)
def both_ways(part: int) -> dict[str, Any]:
    """Results without padding (None: they are recorded) and with it, of the samples of this part
    that meet their claims.
    """
    names = [
        n
        for n in CLAIMS[part * SIZE : (part + 1) * SIZE]
        if padded_inputs(Run(CASES[n]))[1] is not None
    ]
    with jax.enable_x64(True):
        calls = [compared(Run(CASES[n])) for n in names]
        found = dict(zip(names, Together(calls)([args for _, args in calls]), strict=True))
    MET.update(
        {
            n: not isinstance(found.get(n), MixesRows | None)
            for n in CLAIMS[part * SIZE : (part + 1) * SIZE]
        }
    )
    return found


def compared(run: Run) -> tuple[Any, tuple[Any, ...]]:
    """A function of what is ragged that runs an op with padding, without it too where no recording
    says that, and its arguments.
    """
    padded, _ = padded_inputs(run)
    # other inputs are constants: they may decide a shape
    over = over_of(run.definition, run.inputs)

    def both(
        plain: dict[str, Any], ragged: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        key = jax.random.key(7) if run.definition.random else None
        wanted = (
            None if run.sample.paddle else run.definition({**run.inputs, **plain}, run.attrs, key)
        )
        return wanted, through(run.definition, {**run.inputs, **ragged}, run.attrs)

    return jax.jit(both), tuple({s: inputs[s] for s in over} for inputs in (run.inputs, padded))


def check(got: Any, want: Any, count: int | None, slot: str, rtol: float) -> None:
    """Equal true rows; what has no rows is equal as a whole."""
    if isinstance(got, Ragged):
        each = len(want) // count if got.key[:1] == ("folded",) else 1  # rows for one of X
        assert got.padded and got.rows.shape == (each * (count + EXTRA), *np.shape(want)[1:]), slot
        assert int(got.count) == each * count, slot
        got = np.asarray(got.rows)[: each * count]  # NumPy's: JAX would compile a slice of each
    assert np.shape(got) == np.shape(want) and got.dtype == want.dtype, slot
    np.testing.assert_allclose(
        np.asarray(got), np.asarray(want), rtol=rtol, atol=max(1e-6, rtol / 10), err_msg=slot
    )


# -- gradients: zero where what flows in is zero, and sums over rows as if there were no padding ---

# One sample of each op type that claims something, meets its claim, and has a gradient op of its
# own.
DIFFERENTIATED = {
    CASES[n].op: n
    for n in reversed(CLAIMS)
    if CASES[n].grad and REGISTRY[CASES[n].op].grad is not None and not CASES[n].inplace
}


def with_copies(value: Any, zero: bool = False) -> Any:
    """One sequence over all rows and behind it copies of the last, or zeros."""
    if value is None or isinstance(value, list):
        return None if value is None else [with_copies(v, zero) for v in value]
    extra = (
        jnp.zeros((EXTRA, *value.shape[1:]), value.dtype)
        if zero
        else jnp.repeat(value[-1:], EXTRA, 0)
    )
    offsets = (np.array([0, len(value)], np.int32),)
    return Ragged(jnp.concatenate([value, extra]), offsets, (len(value) + EXTRA,), "only", True)


def padded_gradients(run: Run, given: dict[str, Any]) -> dict[str, Any]:
    """input slot -> its gradient, where the op and its gradient op are given padded rows as a step
    gives them.
    """
    definition = run.definition
    over, gradient = over_of(definition, run.inputs), REGISTRY[definition.grad.type]
    inputs = {s: with_copies(v) if s in over else v for s, v in given.items()}
    outputs = through(definition, inputs, run.attrs)
    plain = definition(given, run.attrs, jax.random.key(7) if definition.random else None)
    flows = cotangents(run.sample, tree(jnp.asarray, plain))
    ins = {}
    for slot, origin in definition.grad.taken({**definition.defaults, **run.attrs}).items():
        name, mark, _ = origin.partition("@GRAD")
        value = inputs.get(origin, outputs.get(origin))
        if mark:
            value = flows.get(name)
            value = (
                with_copies(value, zero=True)
                if any(isinstance(v, Ragged) for v in listed(outputs[name]))
                else value
            )
        if value is not None:
            ins[slot] = value
    treated = treat(gradient, ins, gradient.arguments(run.attrs))
    counts = {s: len(listed(run.inputs.get(o))) for s, o in definition.grad.gives.items()}
    found = (
        treated.results
        if treated.results is not None
        else gradient(treated.inputs, run.attrs, wanted=counts)
    )
    found = treated.shown(found)
    return {origin: found[slot] for slot, origin in definition.grad.gives.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(DIFFERENTIATED))
def test_gradients_leave_padding_out(kind: str) -> None:
    if not meets(DIFFERENTIATED[kind]):
        return
    run = Run(CASES[DIFFERENTIATED[kind]])
    want, got = given(both_gradients(sorted(DIFFERENTIATED).index(kind) // SIZE)[kind])
    if want is None:
        answer = paddles(DIFFERENTIATED[kind])
        want = {slot: answer[f"{slot}@GRAD"] for slot in run.sample.grad}
    rtol = run.sample.grad_tol or 2e-5
    for slot in run.sample.grad:
        for one, expected in zip(listed(got[slot]), listed(want[slot]), strict=True):
            if isinstance(one, Ragged):
                rows = np.asarray(one.rows)
                assert not rows[len(expected) :].any(), slot
                one = rows[: len(expected)]
            np.testing.assert_allclose(
                np.asarray(one),
                np.asarray(expected),
                rtol=rtol,
                atol=max(1e-6, rtol / 20),
                err_msg=slot,
            )


@lru_cache(maxsize=2)
def both_gradients(part: int) -> dict[str, Any]:
    """Gradients without padding (None: they are recorded) and with it, of the op types of this part
    that meet their claims.
    """
    kinds = [
        k
        for k in sorted(DIFFERENTIATED)[part * SIZE : (part + 1) * SIZE]
        if attempt(lambda k=k: meets(DIFFERENTIATED[k])) is True
    ]
    with jax.enable_x64(True):
        calls = [differentiated(Run(CASES[DIFFERENTIATED[k]])) for k in kinds]
        return dict(zip(kinds, Together(calls)([args for _, args in calls]), strict=True))


def differentiated(run: Run) -> tuple[Any, tuple[Any, ...]]:
    """A function of the inputs to differentiate that runs an op's gradient as `compared` runs the
    op, and its argument.
    """
    floats = {
        s: v
        for s, v in run.inputs.items()
        if all(np.asarray(x).dtype.kind == "f" for x in listed(v))
    }

    def both(floats: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        inputs = {**run.inputs, **floats}
        key = jax.random.key(7) if run.definition.random else None
        plain = (
            None
            if run.sample.paddle
            else Gradient(run, inputs, run.definition(inputs, run.attrs, key)).by_slot()
        )
        return plain, padded_gradients(run, inputs)

    return jax.jit(both), (floats,)


def test_claims_are_used() -> None:
    """Of every op type that claims something, a sample meets the claim."""
    unmet = [
        op for op in sorted(CLAIMING) if not any(meets(n) for n in CLAIMS if CASES[n].op == op)
    ]
    assert not unmet


@pytest.mark.parametrize("kind", ["shape", "sequence_mask", "mean_grad", "gather_grad", "adam"])
def test_what_is_not_listed_mixes(kind: str) -> None:
    x = ragged(np.ones((3, 2), "float32"))
    slot = REGISTRY[kind].inputs[0].name
    with pytest.raises(MixesRows, match=f"op '{kind}' mixes the rows of its ragged input {slot}"):
        treat(REGISTRY[kind], {slot: x}, REGISTRY[kind].defaults)


RECORDED = {
    n: f"{s.op} {s.digest()}"
    for n, s in CASES.items()
    if f"{s.op} {s.digest()}" in SHARING and s.op not in KNOWING
}
# (op, input slot): where 1.8.5 passes on a LoD from an input that is not a batch, or to an output that
# is none
OTHER: dict[tuple[str, str], str] = {
    ("gather_nd", "X"): "the rows of Out are those of Index; here they happen to be as many",
    ("unsqueeze", "X"): "not where the axes are in tensors",
    ("unsqueeze2", "X"): "likewise",
    ("expand", "X"): "not where the times are in tensors",
    **{
        (f"{kind}_interp", "X"): "only where OutSize is given"
        for kind in ("nearest", "bilinear", "trilinear", "bicubic")
    },
    **{
        (kind, slot): "statistics of channels"
        for kind in ("batch_norm", "inplace_abn")
        for slot in ("Mean", "Variance")
    },
    **{
        ("adadelta", slot): "a parameter"
        for slot in ("Param", "AvgSquaredGrad", "AvgSquaredUpdate")
    },
    **{("rmsprop", slot): "a parameter" for slot in ("Param", "MeanSquare", "Moment", "MeanGrad")},
    **{("average_accumulates", f"in_sum_{i}"): "a parameter" for i in (1, 2, 3)},
}


def test_most_samples_are_recorded() -> None:
    assert len(RECORDED) > 900


@marked(RECORDED)
def test_lod_goes_where_paddle_has_it_go(name: str) -> None:
    """With a LoD on one input alone: the same outputs have it. A LoD that does not fit an output's
    rows is not kept.
    """
    run = Run(CASES[name])
    outputs = paddles(name)
    for slot, want in SHARING[RECORDED[name]].items():
        if (run.sample.op, slot) not in OTHER:
            assert shared(run, slot) == fitting(run, outputs, slot, want), slot


def shared(run: Run, slot: str) -> list[str]:
    value = run.inputs[slot]
    many = isinstance(value, list)
    first = ragged(value[0] if many else value, padded=False)
    out = traced(run, {**run.inputs, slot: [first, *value[1:]] if many else first})
    found = []
    for s, count in run.sample.outputs.items():
        for i, v in enumerate(listed(out[s])):
            if isinstance(v, Ragged) and not v.bare:
                found.append(s if count is None else f"{s}#{i}")
    return found


def fitting(run: Run, outputs: dict[str, Any], slot: str, wanted: list[str]) -> list[str]:
    """Those of Paddle's outputs with a LoD that have as many rows as the input."""
    value = run.inputs[slot]
    count = len(value[0] if isinstance(value, list) else value)
    kept = []
    for out in (w.rstrip("!") for w in wanted):
        name, _, number = out.partition("#")
        if np.shape(listed(outputs[name])[int(number or 0)])[:1] == (count,):
            kept.append(out)
    return kept
