"""Shapes that a program computes: they stay known while it is traced, or are refused with a reason."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import ShapeError, UnsupportedError
from fluidjax.ops.concrete import known, refuse_huge
from fluidjax.ops.registry import lookup


def run(op: str, inputs: dict[str, Any], **attrs: Any) -> Any:
    return lookup(op)(inputs, attrs)["Out"]


def test_arithmetic_on_shapes_decides_a_shape() -> None:
    """reshape(x, [shape(x)[0], -1]) as Fluid writes it, traced with x unknown."""

    def step(x: jax.Array) -> jax.Array:
        dims = run("shape", {"Input": x})
        batch = run("slice", {"Input": dims}, axes=(0,), starts=(0,), ends=(1,))
        wide = run("cast", {"X": batch}, in_dtype=2, out_dtype=3)
        rest = run("fill_constant", {}, shape=(1,), dtype=3, str_value="-1")
        both = run("concat", {"X": [wide, rest]}, axis=0)
        assert isinstance(both, np.ndarray)
        return run("reshape", {"X": x, "Shape": both})

    with jax.enable_x64(True):
        assert jax.jit(step)(np.zeros((2, 3, 4), "float32")).shape == (2, 12)


def test_a_fed_shape_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="input Shape of op 'reshape' decides a shape"):
        jax.jit(lambda x, s: run("reshape", {"X": x, "Shape": s}))(
            np.zeros((2, 3)), np.array([3, 2])
        )


def test_large_results_are_not_folded() -> None:
    """A constant whose shape is computed must not become a literal in the program."""

    def step(x: jax.Array) -> jax.Array:
        filled = run("fill_constant", {"ShapeTensor": run("shape", {"Input": x})}, value=1.0)
        assert not isinstance(filled, np.ndarray)
        return filled

    assert jax.jit(step)(np.zeros((50, 40), "float32")).shape == (50, 40)


@pytest.mark.parametrize("at", [0, 2, 3, -1])
def test_one_element_at_a_computed_place(at: int) -> None:
    """x[i] with i known only when the step runs."""
    x = np.arange(12, dtype="float32").reshape(4, 3)

    def pick(i: jax.Array) -> jax.Array:
        inputs = {"Input": x, "StartsTensorList": [i], "EndsTensorList": [i + 1]}
        return run(
            "slice",
            inputs,
            axes=(0,),
            starts=(-1,),
            ends=(-1,),
            infer_flags=(-1,),
            decrease_axis=(0,),
        )

    np.testing.assert_array_equal(jax.jit(pick)(np.array([at], "int32")), x[at])


def test_a_range_at_a_computed_place_is_refused() -> None:
    x = np.zeros((4, 3), "float32")
    with pytest.raises(UnsupportedError, match="cannot cut axis 0"):
        jax.jit(
            lambda i: run(
                "slice", {"Input": x, "StartsTensor": i}, axes=(0,), starts=(0,), ends=(3,)
            )
        )(np.array([1]))


def test_a_box_at_a_computed_place() -> None:
    x = np.arange(20, dtype="float32").reshape(4, 5)
    crop = jax.jit(lambda at: run("crop", {"X": x, "Offsets": at}, shape=(2, 3)))
    np.testing.assert_array_equal(crop(np.array([1, 2], "int32")), x[1:3, 2:5])


def test_lengths_of_a_fed_mask_need_maxlen() -> None:
    with pytest.raises(UnsupportedError, match="input X of op 'sequence_mask' decides a shape"):
        jax.jit(lambda x: lookup("sequence_mask")({"X": x}, {"out_dtype": 3})["Y"])(
            np.array([1, 2])
        )


class Told:
    """A device that keeps count of its memory."""

    def __init__(self, stats):
        self.stats = stats

    def memory_stats(self):
        return self.stats

    def __str__(self):
        return "cuda:0"


@pytest.mark.parametrize(
    ("stats", "whose"),
    [
        ({"bytes_limit": 8 * 2**30, "bytes_in_use": 6 * 2**30}, "device cuda:0 has 2.1 GB free"),
        ({"bytes_limit": 2**30, "bytes_in_use": 2**31}, "device cuda:0 has 0.0 GB free"),
        (None, "this machine has 1.0 GB free"),
        ({"num_allocs": 3}, "this machine has 1.0 GB free"),
    ],
)
def test_room_is_asked_of_the_device(monkeypatch, stats, whose):
    """Where a device keeps count, and of this machine where it does not (the CPU's is None)."""
    monkeypatch.setattr("fluidjax.ops.concrete.jax.local_devices", lambda: [Told(stats)])
    monkeypatch.setattr("fluidjax.ops.concrete._memory", lambda: 10**9)
    with pytest.raises(ShapeError, match=whose):
        refuse_huge("fill_constant", [2**30], "float32")
    refuse_huge("fill_constant", [2**20], "float32")


def test_what_is_traced_is_told_from_what_is_known_without_asking_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NumPy would learn it from JAX's error, whose text takes longer the more traces lie around:
    most of the time of nested branches.
    """

    def step(x: jax.Array) -> jax.Array:
        with monkeypatch.context() as patch:
            patch.setattr(np, "asarray", lambda *_: pytest.fail("NumPy was asked"))
            assert known(x) is None
        return x

    jax.jit(step)(np.zeros(2))
    jax.eval_shape(jax.vmap(jax.grad(lambda x: step(x) * 1.0)), np.zeros(2))
    for value in (np.zeros(2), jax.numpy.zeros(2), 0.0):
        np.testing.assert_array_equal(known(value), np.zeros(np.shape(value)))
