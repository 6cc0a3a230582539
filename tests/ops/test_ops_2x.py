"""Ops of Paddle 2 and 3: what no recording shows (draws, ops of the GPU alone), and what is
refused.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from fluidjax.errors import FluidError
from fluidjax.ops.registry import lookup

from .samples import linear_2x


def run(
    kind: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, key: int = 0
) -> dict[str, Any]:
    definition = lookup(kind)
    with jax.enable_x64(True):
        return definition(inputs, {**definition.defaults, **(attrs or {})}, jax.random.key(key))


def test_batch_fc_multiplies_slot_by_slot() -> None:
    x, w, bias = next(s for s in linear_2x.SAMPLES if s.op == "batch_fc").inputs.values()
    found = run("batch_fc", {"Input": x, "W": w, "Bias": bias})["Out"]
    np.testing.assert_allclose(
        found, np.stack([a @ b + c for a, b, c in zip(x, w, bias, strict=True)]), rtol=1e-5
    )


def test_multinomial_draws_different_indices_that_have_weight() -> None:
    weights = np.array([[0, 1, 5, 0, 1], [1, 1, 0, 1, 0]], "float32")
    drawn = np.asarray(run("multinomial", {"X": weights}, {"num_samples": 3})["Out"])
    assert drawn.dtype == np.int64 and [sorted(row) for row in drawn] == [[1, 2, 4], [0, 1, 3]]
    again = np.asarray(
        run("multinomial", {"X": weights}, {"num_samples": 8, "replacement": True})["Out"]
    )
    assert again.shape == (2, 8) and (np.take_along_axis(weights, again, 1) > 0).all()


X = np.ones((2, 3), "float32")
I2 = np.zeros((2, 3), "int32")
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("expand_v2", {"X": X}, {"shape": (2, 4)}, "dimensions in front and other sizes for 1"),
    ("tile", {"X": X}, {"repeat_times": (-1,)}, "no less than 0 times"),
    ("pad3d", {"X": X}, {"paddings": (1,) * 6}, "takes five dimensions, six paddings"),
    (
        "pad3d",
        {"X": np.ones((1, 1, 2, 2, 2), "float32")},
        {"paddings": (2,) * 6, "mode": "reflect"},
        "margins below the sides",
    ),
    ("top_k_v2", {"X": X}, {"k": 4}, "k from 1 to the size of axis -1"),
    ("kthvalue", {"X": X}, {"k": 0}, "k from 1 to the size of axis -1"),
    ("bitwise_and", {"X": X, "Y": I2}, {}, "takes integers or booleans, not float32"),
    (
        "put_along_axis",
        {"Input": X, "Index": I2, "Value": X},
        {"Axis": 0, "Reduce": "median"},
        "put_along_axis reduces by assign",
    ),
    ("determinant", {"Input": X}, {}, "takes square matrices"),
    ("multinomial", {"X": X}, {"num_samples": 4}, "samples 1 to 3 different indices"),
    ("searchsorted", {"SortedSequence": X, "Values": X[:1]}, {}, "takes equal leading dimensions"),
    (
        "pixel_unshuffle",
        {"X": np.ones((1, 1, 3, 4), "float32")},
        {"downscale_factor": 2},
        "do not divide by 2",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attrs", "message"), REFUSED)
def test_refused(kind: str, inputs: dict[str, Any], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(FluidError, match=message):
        run(kind, inputs, attrs)
