"""Ops that count rows or average over them count the true ones: padded equals exact, whatever
stands behind the true rows.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidjax.errors import MixesRows
from fluidjax.lower.rows import treat
from fluidjax.ops.ragged import Ragged, rows_of
from fluidjax.ops.registry import REGISTRY

from .running import Run, cotangents, tree
from .samples import all_samples
from .test_rows import EXTRA, listed, ragged, with_copies

KINDS = (
    "accuracy auc batch_norm center_loss data_norm inplace_abn instance_norm kldiv_loss mean_iou"
    " positive_negative_pair precision_recall sync_batch_norm"
).split()
FAMILIES = ["metric", "norm", "norm_sync", "distance", "image", "later"]
EVERY = [(f"{f}-{s.op}-{i}", s) for f, i, s in all_samples(FAMILIES) if s.op in KINDS]
SAMPLES = dict(pair for kind in KINDS for pair in [p for p in EVERY if p[1].op == kind][:2])


def over(kind: str) -> set[str]:
    """The slots with a row for each sample."""
    return {s.name for s in REGISTRY[kind].inputs if s.ragged}


def behind(value: Any, found: Any, slot: str) -> None:
    """Equal true rows."""
    if isinstance(found, Ragged):
        assert found.padded and found.rows.shape[0] > len(value) == int(found.count), slot
        found = found.rows[: len(value)]
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(value), rtol=5e-6, atol=1e-6, err_msg=slot
    )


def both(
    run: Run, plain: dict[str, Any], inputs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    definition = run.definition
    treated = treat(definition, inputs, definition.arguments(run.attrs))
    return definition(plain, run.attrs), treated.shown(definition(treated.inputs, run.attrs))


def gradients(run: Run, plain: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Without padding and with it, as a step has them."""
    slots, definition = over(run.sample.op), run.definition
    inputs = {s: with_copies(v) if s in slots else v for s, v in plain.items()}
    exact, padded = both(run, plain, inputs)
    gradient, flows = (
        REGISTRY[definition.grad.type],
        cotangents(run.sample, tree(jnp.asarray, exact)),
    )
    taken = definition.grad.taken({**definition.defaults, **run.attrs})

    def grads(inputs: dict[str, Any], outputs: dict[str, Any], ragged_flow: bool) -> dict[str, Any]:
        def flow(name: str) -> Any:
            value = flows.get(name)
            if value is None or not ragged_flow or not isinstance(outputs[name], Ragged):
                return value
            return outputs[name].with_rows(
                np.concatenate([value, np.zeros((EXTRA, *value.shape[1:]), value.dtype)])
            )

        values = {
            s: flow(o.removesuffix("@GRAD")) if "@GRAD" in o else inputs.get(o, outputs.get(o))
            for s, o in taken.items()
        }
        values = {s: v for s, v in values.items() if v is not None}
        treated = treat(gradient, values, gradient.arguments(run.attrs))
        return treated.shown(gradient(treated.inputs, run.attrs))

    return grads(plain, exact, False), grads(inputs, padded, True)


@pytest.mark.first(3)
@pytest.mark.parametrize("name", SAMPLES)
def test_padded_is_exact(name: str) -> None:
    run = Run(SAMPLES[name])
    slots, plain = over(run.sample.op), run.inputs
    inputs = {
        s: ragged(np.asarray(v)) if s in slots and v is not None else v for s, v in plain.items()
    }
    with jax.enable_x64(True):
        outputs, grads = jax.jit(
            lambda *given: (
                both(run, *given),
                gradients(run, given[0]) if run.sample.grad else None,
            )
        )(plain, inputs)
    for slot, value in outputs[0].items():
        for one, other in zip(listed(value), listed(outputs[1][slot]), strict=True):
            if one is not None:
                behind(one, other, slot)
    for slot in run.sample.grad:
        want, got = (values[slot + "@GRAD"] for values in grads)
        behind(rows_of(want), got, slot)
        if isinstance(got, Ragged):
            assert not np.asarray(got.rows[-EXTRA:]).any(), slot


def test_one_true_row_passes_through_a_batch_norm_as_it_is() -> None:
    """As a single value of each channel does without padding; how many there are is data here."""
    run = Run(
        next(s for _, s in EVERY if s.op == "batch_norm" and s.inputs["X"].ndim == 2 and s.grad)
    )
    inputs = {**run.inputs, "X": ragged(np.asarray(run.inputs["X"])[:1])}
    with jax.enable_x64(True):
        found = run.definition(inputs, run.attrs)
        np.testing.assert_array_equal(found["Y"].rows[0], run.inputs["X"][0])
        np.testing.assert_array_equal(found["MeanOut"], run.inputs["Mean"])


def test_rows_of_another_batch_are_refused() -> None:
    x = ragged(np.ones((3, 1), "int64"))
    with pytest.raises(
        MixesRows,
        match=r"op 'accuracy' takes Out, Indices, Label row by row, and Label has other rows",
    ):
        REGISTRY["accuracy"]({"Out": x, "Indices": x, "Label": np.ones((8, 1), "int64")}, {})
