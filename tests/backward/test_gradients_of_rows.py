"""fluid.gradients of outputs that have a LoD, and plain arrays beside padded rows: what 1.8.5 gave
stands beside each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

Net = Callable[[], tuple[dict[str, Any], list[Any]]]
ROWS = np.arange(20, dtype="float32").reshape(5, 4)


def tensor(data: Any, *lod: list[int]) -> fluid.LoDTensor:
    return fluid.create_lod_tensor(np.asarray(data), list(lod), fluid.CPUPlace())


def given(name: str, width: int, lod_level: int = 0, dtype: str = "float32") -> Any:
    x = fluid.data(name, [-1, width], dtype, lod_level)
    x.stop_gradient = False
    return x


def expand() -> tuple[dict[str, Any], list[Any]]:
    x = given("x", 1, 1)
    out = fluid.layers.sequence_expand(x, given("y", 1, 1), ref_level=0)
    ones = np.ones((5, 1), np.float32)
    return {"x": tensor(ones[:4] * 2, [2, 2]), "y": tensor(ones, [2, 3])}, fluid.gradients(out, x)


def some_rows() -> tuple[dict[str, Any], list[Any]]:
    x = given("x", 1, 1)
    out = fluid.layers.sequence_slice(
        x, given("offset", 1, dtype="int64"), given("length", 1, dtype="int64")
    )
    feed = {
        "x": tensor(ROWS[:, :1], [3, 2]),
        "offset": np.array([[0], [1]]),
        "length": np.array([[2], [1]]),
    }
    return feed, fluid.gradients(out, x)


def scattered() -> tuple[dict[str, Any], list[Any]]:
    x, updates = fluid.data("x", [2, 4], "float32"), given("u", 1, 1)
    x.stop_gradient = False
    out = fluid.layers.sequence_scatter(x, given("i", 1, 1, "int64"), updates)
    feed = {"x": ROWS[:2], "u": tensor(ROWS[:3, :1], [2, 1]), "i": tensor([[0], [1], [2]], [2, 1])}
    return feed, fluid.gradients(out, [x, updates])


def shown_and_clicked() -> tuple[dict[str, Any], list[Any]]:
    x = given("x", 4, 1)
    out = fluid.layers.continuous_value_model(x, given("cvm", 2), True)
    flow = fluid.data("flow", [-1, 4], "float32")
    return {
        "x": tensor(ROWS, [3, 2]),
        "cvm": np.ones((2, 2), np.float32),
        "flow": ROWS,
    }, fluid.gradients(out, x, flow)


def pooled() -> tuple[dict[str, Any], list[Any]]:
    x, rois = fluid.data("x", [-1, 1, 4, 4], "float32"), given("rois", 4, 1)
    x.stop_gradient = False
    trans, flow = (
        fluid.data("trans", [-1, 2, 2, 2], "float32"),
        fluid.data("flow", [-1, 1, 2, 2], "float32"),
    )
    out = fluid.layers.deformable_roi_pooling(
        x, rois, trans, False, 1.0, [1, 1], 2, 2, [2, 2], 1, 0.1, False
    )
    boxes = tensor(np.float32([[0, 0, 2, 2], [0, 0, 3, 3], [1, 1, 2, 2]]), [2, 1])
    ones = np.ones((3, 2, 2, 2), np.float32)
    return {
        "x": np.ones((2, 1, 4, 4), np.float32),
        "rois": boxes,
        "trans": 0 * ones,
        "flow": ones[:, :1],
    }, fluid.gradients(out, x, flow)


FIRST = [[2, 1.5, 0.5, 0], [1.5, 1.25, 0.25, 0], [0.5, 0.25, 0.25, 0], [0, 0, 0, 0]]
SECOND = [[0.25, 0.5, 0.25, 0], [0.5, 1, 0.5, 0], [0.25, 0.5, 0.25, 0], [0, 0, 0, 0]]
CASES: list[tuple[Net, list[Any]]] = [
    (expand, [[[2], [2], [3], [3]]]),
    (some_rows, [[[1], [1], [0], [0], [1]]]),
    (scattered, [np.ones((2, 4)), np.ones((3, 1))]),
    (shown_and_clicked, [np.concatenate([np.ones((5, 2)), ROWS[:, 2:]], 1)]),
    (pooled, [[[FIRST], [SECOND]]]),
]


@pytest.mark.parametrize(("net", "expected"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_as_paddle(net: Net, expected: list[Any]) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        feed, fetched = net()
    found = fluid.Executor().run(main, feed=feed, fetch_list=fetched, return_numpy=False)
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(value), right, rtol=1e-6)


def test_the_gradient_of_moved_rows_has_their_lod() -> None:
    """Whatever becomes of the rows; ops that want sequences read such gradients."""
    layers, main = fluid.layers, fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = given("x", 4, 1)
        padded, lengths = layers.sequence_pad(x, layers.fill_constant([1], "float32", 0.0))
        moved = [
            layers.transpose(x, [1, 0]), layers.reshape(x, [2, -1]), layers.unsqueeze(x, [0]), layers.flatten(x, 0),
            layers.transpose(layers.transpose(x, [1, 0]), [1, 0]),
            layers.transpose(layers.sequence_unpad(padded, lengths), [1, 0]),
        ]  # fmt: skip
        fetched = [g for out in moved for g in fluid.gradients(out, x)]
    for grad in fluid.Executor().run(
        main, feed={"x": tensor(ROWS, [3, 2])}, fetch_list=fetched, return_numpy=False
    ):
        assert grad.recursive_sequence_lengths() == [[3, 2]] and np.array_equal(
            np.asarray(grad), np.ones((5, 4))
        )


def test_a_wrong_gradient_is_told_in_the_sizes_that_were_fed() -> None:
    """Rows are padded to 8 at first; the sentence is about the 5 that there are. Other feeds are
    padded as ever.
    """
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, scale = given("x", 1, 1), given("scale", 1)
        out = fluid.layers.elementwise_mul(fluid.layers.sequence_softmax(x), scale)
    exe = fluid.Executor()
    for wrong in range(2):
        with pytest.raises(
            fluid.FluidError,
            match=r"X\[5, 1\] and Y\[4, 1\] do not broadcast along axis -1: 5 is not 4",
        ) as error:
            exe.run(
                main,
                feed={"x": tensor(ROWS[:, :1], [3, 2]), "scale": ROWS[:4, :1]},
                fetch_list=[out],
                return_numpy=False,
            )
        assert "[8" not in str(error.value), wrong
    for count in (5, 6, 7):
        feed = {
            "x": tensor(np.ones((count, 1), np.float32), [3, count - 3]),
            "scale": np.ones((1, 1), np.float32),
        }
        exe.run(main, feed=feed, fetch_list=[out], return_numpy=False)
    assert len(exe.compilations(main)) == 1
