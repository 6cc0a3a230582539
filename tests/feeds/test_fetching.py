"""What a run hands over: arrays with one element, and what arithmetic makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluidjax.feeds.fetching import to_numpy

LOSS = to_numpy(np.array([1.5], "float32"))
COUNT = to_numpy(np.array([3]))
CELL = to_numpy(np.array([[2.5]]))


def accumulated() -> Any:
    total = 0.0
    for _ in range(3):
        total += LOSS
    return total / 3


def in_place() -> Any:
    made = LOSS.copy()
    made += LOSS
    made /= 2
    made *= np.float64(2)
    return made


ONE: dict[str, tuple[Callable[[], Any], float]] = {
    "accumulated": (accumulated, 1.5),
    "in place": (in_place, 3),
    "sum": (lambda: sum([LOSS, LOSS]), 3),
    "of operators": (lambda: -(2 ** (LOSS - 0.5) * 3 // 2) % 7, 4),
    "of a plain array": (lambda: np.ones(1) + LOSS, 2.5),
    "np.round": (lambda: np.round(LOSS * 1.23, 1), 1.8),
    "round": (lambda: (LOSS * 1.23).round(1), 1.8),
    "ufuncs": (lambda: np.maximum(np.sqrt(np.square(LOSS)), 1), 1.5),
    "slices": (lambda: (LOSS * 2)[0:1], 3),
    "rows": (lambda: (CELL * 2)[0], 5),
    "where": (lambda: np.where(LOSS > 1, LOSS * 2, 0), 3),
    "clip": (lambda: np.clip(LOSS, 0, 1), 1),
    "mean": (lambda: (CELL + 1).mean(axis=0), 3.5),
    "np.mean": (lambda: np.mean(CELL, axis=0), 2.5),
    "reshaped": (lambda: (LOSS * 2).reshape(1, 1).astype("float64"), 3),
    "joined": (lambda: np.concatenate([LOSS]), 1.5),
    "part": (lambda: np.split(LOSS * 2, 1)[0], 3),
    "quotient": (lambda: divmod(LOSS * 3, 2)[1], 0.5),
    "product": (lambda: CELL @ CELL, 6.25),
}


@pytest.mark.parametrize("case", ONE)
def test_arithmetic_of_one_element_converts_to_a_number(case: str) -> None:
    """NumPy 2.4 refuses arrays with dimensions, and those before it warn, which fails a test."""
    make, want = ONE[case]
    got = make()
    assert got.size == 1 and got.ndim
    assert (
        float(got) == pytest.approx(want)
        and int(got) == int(want)
        and complex(got).real == pytest.approx(want)
    )
    assert "%.3f" % got == f"{want:.3f}" and "%d" % got == f"{int(want)}"  # noqa: UP031
    assert math.exp(got) == pytest.approx(math.exp(want))
    numbers = np.zeros((2, 2))
    numbers[0, 1] = got
    assert numbers[0, 1] == pytest.approx(want)


def test_integers_stay_whole() -> None:
    numbers = np.zeros(2, "int64")
    numbers[1] = COUNT + 1
    assert numbers.tolist() == [0, 4] and int(COUNT * 2) == 6 and (COUNT + 1).dtype == COUNT.dtype


@pytest.mark.parametrize(
    "make",
    [lambda: LOSS * np.ones(3), lambda: np.stack([LOSS, LOSS]), lambda: np.ones((2, 1)) - CELL],
)
def test_several_elements_are_a_plain_array(make: Callable[[], Any]) -> None:
    assert type(make()) is np.ndarray
    with pytest.raises(TypeError):
        float(make())
