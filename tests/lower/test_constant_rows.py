"""Constants with a LoD, and rows with a LoD given to ops that want padded ones: values of real
1.8.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from ..nets import fresh

L = fluid.layers
HALF = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))


def x() -> Any:
    return fluid.default_main_program().global_block().var("x")


def ids(dtype: str = "int64") -> Any:
    return L.lod_reset(L.assign(np.array([[0], [1], [2]], dtype)), x())


def tags() -> Any:
    return L.lod_reset(L.assign(np.int32([[1], [2], [1]])), x())


def ones(width: int) -> Any:
    return L.lod_reset(L.assign(np.ones((3, width), "float32")), x())


CASES: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "linear_chain_crf": (lambda: L.linear_chain_crf(L.fc(x(), 4, param_attr=HALF), ids(), param_attr=HALF), [1.386, 2.773]),
    "of constants alone": (lambda: L.linear_chain_crf(ones(4), ids(), param_attr=HALF), [1.386, 2.773]),
    "embedding": (lambda: L.sequence_pool(L.embedding(ids(), [5, 2], param_attr=HALF), "sum"), [0.5, 0.5, 1, 1]),
    "chunk_eval": (lambda: L.chunk_eval(ids(), ids(), "IOB", 1)[0], [1]),
    "warpctc": (lambda: L.warpctc(ones(4), tags()), [1.386, 2.773]),
    "sequence_scatter": (lambda: L.sequence_scatter(L.ones([2, 6], "float32"), ids(), ones(1)), [2, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1]),
    "cross_entropy": (lambda: L.cross_entropy(L.softmax(L.fc(x(), 4, param_attr=HALF)), ids()), [1.386] * 3),
    "hsigmoid": (lambda: L.hsigmoid(x(), ids(), 4, param_attr=HALF), [2.627, 1.627, 1.627]),
    "accuracy": (lambda: L.accuracy(L.softmax(L.fc(x(), 4, param_attr=HALF)), ids()), [0.333]),
}  # fmt: skip


@pytest.mark.first(3)
@pytest.mark.parametrize("case", CASES)
def test_constants_with_a_lod(case: str) -> None:
    make, want = CASES[case]
    feed = {"x": fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 2]], fluid.CPUPlace())}
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        fluid.data("x", [None, 2], lod_level=1)
        out = make()
        exe = fluid.Executor()
        exe.run(startup)
        (got,) = exe.run(main, feed=feed, fetch_list=[out], return_numpy=False)
    np.testing.assert_allclose(np.array(got).ravel(), want, atol=1e-3)


@pytest.mark.parametrize("known", [True, False])
def test_sequence_unpad_of_rows_that_have_a_lod(known: bool) -> None:
    """The LoD that they have plays no part: the same as of a plain array, its gradient too."""
    data, lengths = np.arange(60, dtype="float32").reshape(3, 5, 4), np.array([2, 3, 1])
    with fresh() as (main, _):
        padded = fluid.data("padded", [None, 5, 4], lod_level=1)
        padded.stop_gradient = False
        length = L.assign(lengths) if known else fluid.data("length", [None], "int64")
        rows = L.sequence_unpad(padded * 2.0, length)
        pooled = L.sequence_pool(rows, "sum")
        (grad,) = fluid.gradients(L.reduce_sum(pooled * pooled), padded)
    feed = {} if known else {"length": lengths}
    exe = fluid.Executor()
    plain = exe.run(
        main, feed={**feed, "padded": data}, fetch_list=[rows, pooled, grad], return_numpy=False
    )
    for level in ([1, 1, 1], [2, 1], [3]):
        fed = fluid.create_lod_tensor(data, [level], fluid.CPUPlace())
        found = exe.run(
            main, feed={**feed, "padded": fed}, fetch_list=[rows, pooled, grad], return_numpy=False
        )
        assert found[0].lod() == plain[0].lod() == [[0, 2, 5, 6]]
        for got, want in zip(found, plain, strict=True):
            np.testing.assert_array_equal(np.array(got), np.array(want))
    short = fluid.create_lod_tensor(data[:2], [[1, 1]], fluid.CPUPlace())
    bad, told = (
        ({}, "takes a Length for each")
        if known
        else ({"length": lengths[:2] + 3}, "takes lengths from 0 to 5")
    )
    with pytest.raises(fluid.FluidError, match=rf"'sequence_unpad'.* {told}"):
        exe.run(main, feed={**bad, "padded": short}, fetch_list=[pooled])
