"""The documents' new op, carried out to the letter: two files, and everybody knows what the op is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.lower.rows import treat
from fluidjax.ops import activation
from fluidjax.ops.ragged import Ragged
from fluidjax.ops.registry import REGISTRY, lookup
from tests.documents import examples

from .running import Batch
from .sample import Sample
from .test_traits import SAY

OP, SAMPLES = examples("adding-ops.md", "## To add an op")
BEND = 0.25


@pytest.fixture(scope="module", autouse=True)
def declared() -> Iterator[None]:
    """The op, for as long as this module is tested."""
    before = dict(REGISTRY)
    exec(compile(OP, "docs/adding-ops.md", "exec"), {"__name__": "fluidjax.ops.curved"})
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.fixture(scope="module")
def sample() -> Sample:
    names = {"__package__": "tests.ops.samples", "__name__": "tests.ops.samples.curved"}
    exec(compile(SAMPLES, "docs/adding-ops.md", "exec"), names)
    (one,) = names["SAMPLES"]
    return one


def curve(x: np.ndarray) -> np.ndarray:
    return BEND * (np.sqrt(x * x + 1) - 1) + x


def slope(x: np.ndarray) -> np.ndarray:
    return BEND * x / np.sqrt(x * x + 1) + 1


def test_the_op_that_is_shown_before_is_there() -> None:
    shown, *_ = examples("architecture.md", "## Ops")
    assert shown.startswith("@op") and f"\n\n\n{shown}\n" in inspect.getsource(activation)


def test_nothing_is_left_to_decide() -> None:
    assert [
        trait for trait, (undecided, _) in SAY.items() if undecided(lookup("bent_identity"))
    ] == []


def test_sample_gives_value_and_gradient(sample: Sample) -> None:
    (run,) = Batch([sample], wide=True).runs
    x = run.inputs["X"]
    np.testing.assert_allclose(run.outputs["Out"], curve(x), rtol=1e-12)
    np.testing.assert_allclose(
        run.gradients["X"], slope(x) * sample.cotangent("Out", 0, x.shape, x.dtype), rtol=1e-6
    )


def test_padded_rows_stay_where_they_are() -> None:
    definition = lookup("bent_identity")
    x = np.array([[1.0], [2.0], [np.nan]], "float32")
    padded = Ragged(x, (np.array([0, 2], np.int32),), (3,), "key", True)
    treated = treat(definition, {"X": padded}, definition.defaults)
    out = treated.shown(definition(treated.inputs, {"bend": BEND}))["Out"]
    assert isinstance(out, Ragged) and out.padded
    np.testing.assert_allclose(out.rows[:2], curve(x[:2]), rtol=1e-6)


def test_programs_differentiate_it() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [-1, 3], "float32")
        x.stop_gradient = False
        block = main.global_block()
        out = block.create_var(name="out", dtype="float32")
        block.append_op("bent_identity", {"X": x}, {"Out": out}, {"bend": BEND})
        assert out.shape == (-1, 3)
        (grad,) = fluid.gradients(out, x)
    value = np.array([[-2.0, 0.0, 0.5]], "float32")
    _, (got, change) = fluid.step_fn(main, [out, grad])({}, {"x": value})
    np.testing.assert_allclose(got, curve(value), rtol=1e-6)
    np.testing.assert_allclose(change, slope(value), rtol=1e-6)
