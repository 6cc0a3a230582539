"""What is not random about random ops; tests/ops/test_random.py tests the rest."""

import numpy as np

from ..sample import Sample, f32, positive


def i64(*values):
    return np.array(values, "int64")


NEXT = 2.0000002  # the float32 after 2
DRAWS = "draws random numbers"


def drawn(op, attrs, outputs=("Out",), grad=None, **inputs):
    return Sample(op, inputs, attrs, list(outputs), grad=grad, paddle=False, note=DRAWS)


def dropouts():
    for how in ("downgrade_in_infer", "upscale_in_train"):
        yield Sample(
            "dropout",
            {"X": f32(3, 4)},
            {"is_test": True, "dropout_prob": 0.3, "dropout_implementation": how},
            ["Out"],
        )
        for prob in (0.0, 1.0):
            yield Sample(
                "dropout",
                {"X": f32(3, 4)},
                {"dropout_prob": prob, "dropout_implementation": how},
                ["Out", "Mask"],
                grad=["X"],
            )
        yield drawn(
            "dropout",
            {"dropout_prob": 0.4, "dropout_implementation": how},
            ["Out", "Mask"],
            X=f32(3, 4),
        )


def sure():
    """drawn from intervals or distributions that leave one answer"""
    for op in ("gaussian_random", "truncated_gaussian_random"):
        yield Sample(op, {}, {"shape": [2, 3], "mean": 1.5, "std": 0.0}, ["Out"])
    yield Sample(
        "gaussian_random",
        {"ShapeTensor": np.array([2, 3], "int32")},
        {"mean": 1.5, "std": 0.0},
        ["Out"],
        skip={"unknown": "the length of ShapeTensor is the output's rank"},
    )
    yield Sample(
        "gaussian_random", {}, {"shape": [2], "mean": 1.5, "std": 0.0, "dtype": 6}, ["Out"]
    )
    yield Sample(
        "gaussian_random_batch_size_like",
        {"Input": f32(3, 2)},
        {"shape": [-1, 4], "mean": 0.5, "std": 0.0},
        ["Out"],
    )
    yield Sample(
        "gaussian_random_batch_size_like",
        {"Input": f32(3, 2)},
        {"shape": [4, -1], "mean": 0.5, "std": 0.0, "input_dim_idx": 0, "output_dim_idx": 1},
        ["Out"],
    )
    yield Sample(
        "uniform_random",
        {},
        {"shape": [3, 4], "min": 2.0, "max": NEXT, "diag_num": 3, "diag_step": 4, "diag_val": 7.0},
        ["Out"],
    )
    yield Sample(
        "uniform_random",
        {"ShapeTensorList": [np.array([2], "int32"), np.array([2], "int32")]},
        {"shape": [-1, -1], "min": 2.0, "max": NEXT},
        ["Out"],
    )
    yield Sample(
        "uniform_random_batch_size_like",
        {"Input": f32(3, 2)},
        {"shape": [-1, 4], "min": 2.0, "max": NEXT},
        ["Out"],
    )


def certain():
    """one integer to draw, one row to move"""
    yield Sample("randint", {}, {"shape": [2, 3], "low": 4, "high": 5}, ["Out"])
    yield Sample("randint", {}, {"shape": [2], "low": -4, "high": -3, "dtype": 2}, ["Out"])
    yield Sample("randperm", {}, {"n": 1}, ["Out"])
    yield Sample(
        "sampling_id", {"X": np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], "float32")}, {}, ["Out"]
    )
    yield Sample("seed", {}, {"seed": 5}, ["Out"])
    yield Sample("random_crop", {"X": f32(2, 3, 4), "Seed": i64(3)}, {"shape": [3, 4]}, ["Out"])
    yield Sample(
        "shuffle_batch", {"X": f32(1, 3), "Seed": i64(3)}, {}, ["Out", "ShuffleIdx"], grad=["X"]
    )


def others():
    yield drawn("gaussian_random", {"shape": [2, 3]})
    yield drawn("truncated_gaussian_random", {"shape": [2, 3]})
    yield drawn("uniform_random", {"shape": [2, 3], "diag_num": 2, "diag_step": 3})
    yield drawn("randint", {"shape": [2, 3], "low": 0, "high": 9})
    yield drawn("randperm", {"n": 5, "dtype": 2})
    yield drawn("sampling_id", {}, X=positive(3, 4))
    yield drawn("seed", {})
    yield drawn("random_crop", {"shape": [2, 2]}, X=f32(2, 3, 4), Seed=i64(3))
    yield drawn(
        "shuffle_batch", {}, ["Out", "ShuffleIdx", "SeedOut"], ["X"], X=f32(2, 3, 4), Seed=i64(3)
    )


SAMPLES = [*dropouts(), *sure(), *certain(), *others()]
