"""What scripts of Paddle 0.1x take from fluid.layers: blocks over places, and sequences by rank;
they run and train.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidTypeError, FluidValueError
from tests.nets import fresh

CPU = fluid.CPUPlace()


def trained(net: Any, feed: dict[str, Any]) -> list[float]:
    """The losses of three steps."""
    with fresh(5) as (main, startup):
        loss = net()
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(CPU), fluid.Scope()
    exe.run(startup, scope=scope)
    return [
        np.asarray(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0]).item()
        for _ in range(3)
    ]


def test_a_block_over_places_is_the_block_itself() -> None:
    def cost(x: Any, y: Any) -> Any:
        return layers.mean(
            layers.square_error_cost(layers.fc(x, 1, param_attr=fluid.ParamAttr("w")), y)
        )

    def data() -> tuple[Any, Any]:
        return layers.data("x", [3]), layers.data("y", [1])

    def over_places() -> Any:
        x, y = data()
        both = layers.ParallelDo(layers.get_places(2, "CPU"))
        with both.do():
            both.write_output(cost(both.read_input(x), both.read_input(y)))
        return layers.mean(both())

    rng = np.random.default_rng(1)
    feed = {n: rng.uniform(-1, 1, (4, k)).astype("float32") for n, k in (("x", 3), ("y", 1))}
    found = trained(over_places, feed)
    np.testing.assert_allclose(found, trained(lambda: layers.mean(cost(*data())), feed), rtol=1e-6)
    assert found[2] < found[0]
    assert (
        len(layers.device.get_places(2, "CPU")) == 2
        and layers.control_flow.ParallelDo is layers.ParallelDo
    )


def test_blocks_over_places_are_used_as_they_are_meant() -> None:
    with fresh():
        x, both = layers.data("x", [3]), layers.ParallelDo(layers.get_places())
        for wrong in (lambda: both.read_input(x), lambda: both.write_output(x), both):
            with pytest.raises(FluidValueError, match="ParallelDo"):
                wrong()
        with both.do():
            with pytest.raises(FluidTypeError, match="read_input's var is a Variable"):
                both.read_input(3)
            both.write_output(both.read_input(x))
            both.write_output(x)
        assert both() == [x, x]
        with pytest.raises(FluidValueError, match="one block"), both.do():
            pass
    with pytest.raises(FluidValueError, match="1 or more, not 0"):
        layers.get_places(0)
    with pytest.raises(FluidValueError, match="not 'TPU'"):
        layers.get_places(1, "TPU")


def test_sequences_by_rank_and_rows_by_a_mask() -> None:
    """There and back again: rows of sequences time by time, those of a memory, and rows by a mask."""

    def net() -> Any:
        q = layers.data("q", [2], lod_level=1)
        h = layers.fc(q, 2, param_attr=fluid.ParamAttr("w"), bias_attr=False)
        table = layers.lod_rank_table(h)
        array = layers.lod_tensor_to_array(h, table)
        again = layers.array_to_lod_tensor(array, table)
        # of the two longer sequences
        last = layers.shrink_memory(layers.array_read(array, number(0)), number(1), table)
        ordered = layers.reorder_lod_tensor_by_rank(h, table)
        mask = layers.less_than(
            layers.reduce_sum(again, 1, keep_dim=True), layers.fill_constant([1], "float32", 0.2)
        )
        true, false = layers.split_lod_tensor(
            layers.sequence_pool(ordered, "sum"), layers.slice(mask, [0], [0], [3])
        )
        merged = layers.merge_lod_tensor(
            layers.scale(true, 2.0), false, q, layers.slice(mask, [0], [0], [3])
        )
        most = layers.cast(layers.max_sequence_len(table), "float32")
        return (
            layers.reduce_sum(layers.square(again))
            + layers.reduce_sum(last) * most
            + layers.reduce_sum(layers.square(merged))
        )

    def number(value: int) -> Any:
        return layers.fill_constant([1], "int64", value)

    rows = np.random.default_rng(2).uniform(-1, 1, (6, 2)).astype("float32")
    losses = trained(net, {"q": fluid.create_lod_tensor(rows, [[2, 1, 3]], CPU)})
    w = parameter()
    h = rows @ w
    at, order = [0, 2, 3], [2, 0, 1]
    sums = [h[at[k] : at[k] + n].sum(0) for k, n in zip(order, (3, 2, 1), strict=True)]
    scaled = [2 * s if h[i].sum() < 0.2 else s for i, s in enumerate(sums)]
    want = (h**2).sum() + (h[3] + h[0]).sum() * 3 + (np.array(scaled) ** 2).sum()
    np.testing.assert_allclose(losses[0], want, rtol=1e-5)
    assert losses[2] != losses[0]


def parameter() -> np.ndarray:
    """What the startup program gives w [2, 2]."""
    with fresh(5) as (_, startup):
        layers.create_parameter([2, 2], "float32", attr=fluid.ParamAttr("w"))
    scope = fluid.Scope()
    fluid.Executor(CPU).run(startup, scope=scope)
    return np.array(scope.get("w"))
