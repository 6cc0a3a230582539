"""paddle.masked_select beside NumPy: some elements, none, all; with the gradient of what was
chosen.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidValueError

X = np.arange(6, dtype="float32").reshape(2, 3) - 2


def test_values_and_gradients() -> None:
    """Of no element the mean of squares is that of an empty batch, so the sum is asked for; its
    gradient is zero everywhere.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, mask = (
            paddle.static.data("x", [2, 3], "float32"),
            paddle.static.data("mask", [2, 3], "bool"),
        )
        x.stop_gradient = False
        chosen = paddle.masked_select(x, mask)
        (grad,) = fluid.gradients(fluid.layers.reduce_sum(fluid.layers.square(chosen)), [x])
        exe = fluid.Executor(fluid.CPUPlace())
        for keep in (X > 0, X > 9, X == X, X == 3):
            got, slope = exe.run(feed={"x": X, "mask": keep}, fetch_list=[chosen, grad])
            np.testing.assert_array_equal(got, X[keep])
            np.testing.assert_array_equal(slope, np.where(keep, 2 * X, 0))
            (alone,) = exe.run(feed={"x": X, "mask": keep}, fetch_list=[chosen])
            np.testing.assert_array_equal(alone, X[keep])
            assert alone.dtype == np.float32


def test_a_mask_of_another_shape() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, mask = (
            paddle.static.data("x", [2, 3], "float32"),
            paddle.static.data("mask", [2], "bool"),
        )
        with pytest.raises(
            FluidValueError, match=r"a mask of x.s shape \[2, 3\], not of shape \[2\]"
        ):
            paddle.masked_select(x, mask)
