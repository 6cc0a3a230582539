"""Which shapes may be fed: recorded from 1.8.5, where only fluid.data's variables are checked (need_check_feed)."""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FeedError
from fluidjax.ir.text import parse, to_text

from .nets import fresh


def fed(declare: str, shape: list[int], value: tuple[int, ...], layer: str = "scale", **more: bool) -> tuple[int, ...]:
    module = fluid.layers if declare == "layers.data" else fluid
    with fresh() as (main, _):
        x = module.data("x", shape, **more)
        weight = fluid.layers.fill_constant([256, 4], "float32", 1.0)
        out = fluid.layers.scale(x, 2.0) if layer == "scale" else fluid.layers.matmul(x, weight)
    return fluid.Executor().run(main, feed={"x": np.ones(value, "float32")}, fetch_list=[out])[0].shape


def test_a_variable_of_layers_data_takes_other_sizes() -> None:
    assert fed("layers.data", [256], (3, 5)) == (3, 5)
    assert fed("layers.data", [2, 256], (3, 256), append_batch_size=False) == (3, 256)


def test_a_variable_of_fluid_data_does_not() -> None:
    with pytest.raises(FeedError, match=r"feed 'x' has shape \[3, 5\], but the program declares \[-1, 256\] \(-1: any size\)"):
        fed("fluid.data", [-1, 256], (3, 5))


def test_other_numbers_of_dimensions_are_refused() -> None:
    """1.8.5 runs what its ops make of them; here a missing batch dimension is told."""
    with pytest.raises(FeedError, match="is the batch dimension missing"):
        fed("layers.data", [256], (256,))


def test_an_op_that_needs_what_is_declared_says_so() -> None:
    with pytest.raises(FeedError, match=r"feed 'x' has shape \[3, 5\], but the program declares \[-1, 256\], and an op needs .*matmul"):
        fed("layers.data", [256], (3, 5), "matmul")


@pytest.mark.parametrize("shape", [[-2, 3], [3, -5]])
def test_negative_dimensions_are_kept_and_unknown(shape: list[int]) -> None:
    with fresh() as (main, _):
        x = fluid.layers.data("x", shape)
        out = fluid.layers.concat([x, fluid.layers.relu(x)], axis=0)
        assert list(x.shape) == shape
    assert parse(to_text(main.desc)) == main.desc
    fluid.Program.parse_from_string(main.serialize_to_string())  # which reads every negative dimension as -1
    got = fluid.Executor().run(main, feed={"x": np.ones((4, 3), "float32")}, fetch_list=[out])[0]
    assert got.shape == (8, 3)
