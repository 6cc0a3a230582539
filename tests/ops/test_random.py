"""Random ops: distributions, independence, and what must not be left to chance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import MixesRows, ShapeError
from fluidjax.ops.ragged import Ragged
from fluidjax.ops.random import keep_mask
from fluidjax.ops.registry import lookup

N = 200_000
SIGMAS = 5.0  # a test by chance fails once in two million keys, and the keys are fixed


def draw(
    op: str, seed: int = 3, inputs: dict[str, Any] | None = None, slot: str = "Out", **attrs: Any
) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(lookup(op)(inputs or {}, attrs, jax.random.key(seed))[slot])


def near(got: float, want: float, deviation: float, n: int = N) -> None:
    assert abs(got - want) <= SIGMAS * deviation / np.sqrt(n), (got, want)


def test_gaussian() -> None:
    x = draw("gaussian_random", shape=(N,), mean=2.0, std=3.0)
    assert x.dtype == np.float32
    near(x.mean(), 2.0, 3.0)
    near(((x - 2.0) ** 2).mean(), 9.0, 9.0 * np.sqrt(2))
    near((np.abs(x - 2.0) < 3.0).mean(), 0.682689, 0.4654)


def test_truncated_gaussian_stays_within_two_deviations() -> None:
    x = draw("truncated_gaussian_random", shape=(N,), mean=-1.0, std=0.5)
    assert np.abs(x + 1.0).max() <= 1.0 + 1e-6
    near(x.mean(), -1.0, 0.5)
    near(x.std(), 0.5 * 0.879626, 0.5)  # the deviation of a normal that is cut at 2


@pytest.mark.parametrize("dtype, name", [(5, "float32"), (6, "float64")])
def test_uniform(dtype: int, name: str) -> None:
    x = draw("uniform_random", shape=(N,), min=-2.0, max=3.0, dtype=dtype)
    assert x.dtype == name
    assert x.min() >= -2.0 and x.max() < 3.0
    near(x.mean(), 0.5, 5 / np.sqrt(12))
    counts = np.histogram(x, 10, (-2, 3))[0]
    # chi square, 9 degrees of freedom: p < 1e-4
    assert ((counts - N / 10) ** 2 / (N / 10)).sum() < 35


def test_uniform_writes_its_diagonal() -> None:
    x = draw("uniform_random", shape=(4, 4), diag_num=4, diag_step=4, diag_val=9.0)
    assert (np.diag(x) == 9.0).all() and (x[~np.eye(4, dtype=bool)] < 1.0).all()
    with pytest.raises(ShapeError, match="diagonal"):
        draw("uniform_random", shape=(3, 4), diag_num=4, diag_step=4)


def test_rows_that_show_no_lod_are_counted_where_none_of_them_is_padding() -> None:
    like = Ragged(
        np.zeros((5, 2), "float32"), (np.array([0, 2, 5], "int32"),), (3,), "a", bare=True
    )
    run = lookup("fill_constant_batch_size_like").fn
    assert run(like, shape=[-1, 3], dtype=5, value=2.0).shape == (5, 3)
    with pytest.raises(MixesRows, match="the number of rows"):
        run(replace(like, padded=True), shape=[-1, 3], dtype=5, value=2.0)


def test_batch_size_like_takes_the_dim() -> None:
    like = {"Input": np.zeros((7, 3), "float32")}
    x = draw(
        "uniform_random_batch_size_like",
        inputs=like,
        shape=(2, -1),
        input_dim_idx=0,
        output_dim_idx=1,
    )
    assert x.shape == (2, 7)
    assert draw("gaussian_random_batch_size_like", inputs=like, shape=(-1, 5)).shape == (7, 5)


def test_randint_covers_its_range_evenly() -> None:
    x = draw("randint", shape=(N,), low=-3, high=4)
    assert x.dtype == np.int64
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert ((counts - N / 7) ** 2 / (N / 7)).sum() < 30


def test_randperm_is_a_permutation() -> None:
    x = draw("randperm", n=1000)
    assert x.dtype == np.int64 and sorted(x.tolist()) == list(range(1000))
    assert draw("randperm", n=1000, seed=4).tolist() != x.tolist()


@pytest.mark.parametrize("prob", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_dropout_drops_its_share(prob: float) -> None:
    x = {"X": np.ones((N,), "float32")}
    mask = draw("dropout", inputs=x, slot="Mask", dropout_prob=prob)
    out = draw("dropout", inputs=x, dropout_prob=prob, dropout_implementation="upscale_in_train")
    assert mask.dtype == np.uint8 and ((out != 0) == (mask == 1)).all()
    near(mask.mean(), 1 - prob, np.sqrt(prob * (1 - prob)))
    np.testing.assert_allclose(out[mask == 1], 1 / (1 - prob) if prob < 1 else 0, rtol=1e-6)


def test_dropout_is_independent_between_neighbours() -> None:
    """Four elements share one draw of 64 bits: none may tell of another."""
    with jax.enable_x64(True):
        keep = np.asarray(keep_mask(jax.random.key(5), (N,), 0.3)).astype(float) - 0.7
    for lag in (1, 2, 3, 4, 5, 8):
        near((keep[:-lag] * keep[lag:]).mean(), 0.0, 0.21)


def test_dropout_of_other_shapes_and_of_nothing() -> None:
    for shape in ((), (1,), (3, 5), (0, 4), (7,)):
        assert draw("dropout", inputs={"X": np.ones(shape, "float32")}).shape == shape


def test_dropout_gradient_uses_the_mask_alone() -> None:
    mask, up = np.array([1, 0, 1], "uint8"), np.array([1.0, 2.0, -3.0], "float32")
    grad = lookup("dropout_grad")
    inputs = {"Mask": mask, "Out@GRAD": up}
    down = grad(inputs, {"dropout_prob": 0.25})["X@GRAD"]
    scaled = grad(inputs, {"dropout_prob": 0.25, "dropout_implementation": "upscale_in_train"})[
        "X@GRAD"
    ]
    nothing = grad(
        {"Mask": mask * 0, "Out@GRAD": up},
        {"dropout_prob": 1.0, "dropout_implementation": "upscale_in_train"},
    )
    np.testing.assert_array_equal(down, up * mask)
    np.testing.assert_allclose(scaled, up * mask / 0.75)
    np.testing.assert_array_equal(nothing["X@GRAD"], np.zeros(3))


def test_dropout_of_infinity_leaves_no_nan() -> None:
    x = np.full((100,), np.inf, "float32")
    out = draw("dropout", inputs={"X": x}, dropout_implementation="upscale_in_train")
    assert set(out.tolist()) == {0.0, np.inf}


def test_sampling_id_follows_the_probabilities() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3], "float32")
    ids = draw("sampling_id", inputs={"X": np.broadcast_to(p, (N, 4))})
    assert ids.dtype == np.int64
    for k, share in enumerate(p):
        near((ids == k).mean(), float(share), np.sqrt(share * (1 - share)))


def test_shuffle_batch_keeps_rows_together() -> None:
    x = np.arange(24, dtype="float32").reshape(4, 2, 3)
    inputs = {"X": x, "Seed": np.array([1], "int64")}
    out, order = (
        draw("shuffle_batch", inputs=inputs),
        draw("shuffle_batch", inputs=inputs, slot="ShuffleIdx"),
    )
    np.testing.assert_array_equal(out.reshape(8, 3), x.reshape(8, 3)[order])
    assert sorted(order.tolist()) == list(range(8))


def test_random_crop_draws_each_box_anew() -> None:
    x = np.arange(6 * 8, dtype="float32").reshape(6, 8) % 8
    first = draw(
        "random_crop", inputs={"X": np.tile(x, (50, 1)), "Seed": np.array([1], "int64")}, shape=(3,)
    )
    assert first.shape == (300, 3)
    np.testing.assert_array_equal(np.diff(first), 1.0)
    assert set(first[:, 0]) == set(range(6))
    with pytest.raises(ShapeError, match="does not fit"):
        draw("random_crop", inputs={"X": x, "Seed": np.array([1], "int64")}, shape=(9,))


def test_seed_gives_its_number_or_draws_one() -> None:
    assert draw("seed", **{"seed": 1}) != 0
    with jax.enable_x64(True):
        op, keys = lookup("seed"), [jax.random.key(i) for i in (1, 2)]
        assert np.asarray(op({}, {"seed": 11}, keys[0])["Out"]).tolist() == [11]
        drawn = [int(op({}, {}, key)["Out"][0]) for key in keys]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    "op, attrs",
    [("gaussian_random", {"shape": (8,)}), ("randint", {"shape": (8,), "low": 0, "high": 99})],
)
def test_the_key_alone_decides(op: str, attrs: dict[str, Any]) -> None:
    assert (
        draw(op, 1, **attrs).tolist()
        == draw(op, 1, **attrs).tolist()
        != draw(op, 2, **attrs).tolist()
    )
