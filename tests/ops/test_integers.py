"""Integers as C has them: powers, floats that become integers, division by 0. Expected values are
what Paddle 1.8.5 gives on x86.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet

from ..nets import fresh

LEAST = {"int32": -(2**31), "int64": -(2**63)}


def computed(make: Any, *values: np.ndarray) -> np.ndarray:
    with fresh() as (main, _):
        data = [
            layers.data(f"x{k}", list(v.shape), dtype=str(v.dtype), append_batch_size=False)
            for k, v in enumerate(values)
        ]
        out = make(*data)
    return fluid.Executor().run(
        main, feed={f"x{k}": v for k, v in enumerate(values)}, fetch_list=[out]
    )[0]


@pytest.mark.parametrize("dtype", LEAST)
def test_powers_are_rounded_toward_zero(dtype: str) -> None:
    least = LEAST[dtype]
    x = np.array([3, 2, -1, 1, -1, -2, 0, 0, 2, 2, -2, -2, 10, -3, 5, 1, -1], dtype)
    y = np.array([-2, -1, -3, -5, -2, -3, 0, -1, 64, 100, 31, -31, 3, 3, 0, 100, 101], dtype)
    want = [0, 0, -1, 1, 1, 0, 1, least, least, least, -(2**31), 0, 1000, -27, 1, 1, -1]
    np.testing.assert_array_equal(computed(layers.elementwise_pow, x, y), want)
    np.testing.assert_array_equal(computed(lambda x: x**-1, x[:7]), [0, 0, -1, 1, -1, 0, least])
    np.testing.assert_array_equal(
        computed(lambda y: 2**y, y[:10]), [0, 0, 0, 0, 0, 0, 1, 0, least, least]
    )
    np.testing.assert_array_equal(
        computed(lambda x: layers.pow(x, -1.0), x[:6]), [0, 0, -1, 1, -1, 0]
    )


def test_great_powers_have_a_float64s_digits() -> None:
    x = np.array([7, 3, 3037000499, 2, -2, 2], "int64")
    y = np.array([20, 39, 2, 62, 63, 63], "int64")
    want = [
        79792266297612000,
        4052555153018976256,
        int(float(3037000499**2)),
        2**62,
        -(2**63),
        -(2**63),
    ]
    np.testing.assert_array_equal(computed(layers.elementwise_pow, x, y), want)


FLOATS = [
    0.9,
    -0.9,
    127.5,
    128.0,
    -129.0,
    300.0,
    -1.0,
    -300.0,
    65536.5,
    2.0**31,
    5e9,
    -5e9,
    1e19,
    np.inf,
    -np.inf,
    np.nan,
]
WHOLE = [0, 0, 127, 128, -129, 300, -1, -300, 65536]
CAST = {
    "int32": [*WHOLE, *[LEAST["int32"]] * 7],
    "int64": [*WHOLE, 2**31, 5 * 10**9, -5 * 10**9, *[LEAST["int64"]] * 4],
    "int8": [0, 0, 127, -128, 127, 44, -1, -44, 0, *[0] * 7],
    "uint8": [0, 0, 127, 128, 127, 44, 255, 212, 0, *[0] * 7],
}


@pytest.mark.parametrize("dtype", CAST)
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_floats_become_integers_as_in_c(given: str, dtype: str) -> None:
    np.testing.assert_array_equal(
        computed(lambda x: layers.cast(x, dtype), np.array(FLOATS, given)), CAST[dtype]
    )


@pytest.mark.parametrize(
    "divide", [layers.elementwise_div, layers.elementwise_floordiv, layers.elementwise_mod]
)
def test_division_by_zero_is_told(divide: Any) -> None:
    """1.8.5 raises for elementwise_div; the process ends by the others."""
    x, y = np.array([7, -7], "int64"), np.array([2, -2], "int64")
    assert computed(divide, x, y).dtype == np.int64
    with pytest.raises(
        EnforceNotMet,
        match=r"op 'elementwise_\w+' \(.*test_integers.py:\d+\) divides integers by 0",
    ):
        computed(divide, x, np.array([1, 0], "int64"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floats_are_no_operands_of_floordiv(dtype: str) -> None:
    """1.8.5 has no kernel for them, and later Paddles round them in different directions."""
    x = np.array([0.5, -2.5], dtype)
    for divide in (lambda x: x // 2, lambda x: layers.elementwise_floordiv(x, x)):
        with pytest.raises(EnforceNotMet, match=f"divides integers, not {dtype}"):
            computed(divide, x)


def test_floats_are_divided_by_zero() -> None:
    x = np.array([1, -1, 0], "float32")
    np.testing.assert_array_equal(computed(lambda x: x / 0.0, x), [np.inf, -np.inf, np.nan])


def test_padding_is_no_divisor() -> None:
    """Rows of a LoD are padded with zeros for the step."""
    with fresh() as (main, _):
        x = layers.data("x", [1], dtype="int64", lod_level=1)
        out = layers.elementwise_div(x, x)
    rows = fluid.create_lod_tensor(np.array([[3], [4], [5]]), [[1, 2]], fluid.CPUPlace())
    (got,) = fluid.Executor().run(main, feed={"x": rows}, fetch_list=[out], return_numpy=False)
    np.testing.assert_array_equal(np.array(got).ravel()[:3], [1, 1, 1])
