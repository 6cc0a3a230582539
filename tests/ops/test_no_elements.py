"""Sizes of 0, while a program is built and while it runs: a decoder's cache begins empty, and so
may a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh


def none(*shape: int, dtype: str = "float32") -> Any:
    return layers.fill_constant(list(shape), dtype, 0)


def attended(query: Any, keys: Any) -> Any:
    return layers.matmul(layers.softmax(layers.matmul(query, keys, transpose_y=True)), keys)


# What is computed, and what it gives: a shape of no elements, or values. Where 1.8.5 runs, its
# shapes and values are these; it ends the process for a softmax or a loss of no classes, for split,
# and for layers of images without any.
CASES: list[tuple[Callable[[], Any], Any]] = [
    (lambda: layers.softmax(none(2, 3, 0)), (2, 3, 0)),
    (lambda: layers.softmax(none(0, 3)), (0, 3)),
    (lambda: layers.log_softmax(none(2, 0)), (2, 0)),
    (lambda: attended(none(2, 1, 4), none(2, 0, 4)), np.zeros((2, 1, 4))),
    (lambda: layers.concat([none(2, 0, 3), layers.fill_constant([2, 1, 3], "float32", 1)], 1), np.ones((2, 1, 3))),
    (lambda: layers.reduce_max(none(2, 0), dim=1), [-np.inf] * 2),
    (lambda: layers.reduce_min(none(2, 0), dim=1), [np.inf] * 2),
    (lambda: layers.reduce_max(none(0, 2), dim=1), (0,)),
    (lambda: layers.reduce_max(none(2, 0, dtype="int64"), dim=1), [-(2**63)] * 2),
    (lambda: layers.reduce_sum(none(2, 0), dim=1), [0, 0]),
    (lambda: layers.reduce_prod(none(2, 0), dim=1), [1, 1]),
    (lambda: layers.cross_entropy(none(0, 3), none(0, 1, dtype="int64")), (0, 1)),
    (lambda: layers.softmax_with_cross_entropy(none(0, 3), none(0, 1, dtype="int64")), (0, 1)),
    (lambda: layers.smooth_l1(none(0, 2), none(0, 2)), (0, 1)),
    (lambda: layers.group_norm(none(0, 4, 2, 2), 2), (0, 4, 2, 2)),
    (lambda: layers.group_norm(none(0, 2, 2, 4), 2, data_layout="NHWC"), (0, 2, 2, 4)),
    (lambda: layers.instance_norm(none(0, 2, 2, 2)), (0, 2, 2, 2)),
    (lambda: layers.layer_norm(none(0, 3)), (0, 3)),
    (lambda: layers.batch_norm(none(0, 2), is_test=True), (0, 2)),
    (lambda: layers.conv2d(none(0, 1, 4, 4), 2, 3), (0, 2, 2, 2)),
    (lambda: layers.pool2d(none(0, 2, 4, 4), 2), (0, 2, 3, 3)),
    (lambda: layers.fc(none(0, 3), 2), (0, 2)),
    (lambda: layers.embedding(none(0, 1, dtype="int64"), [3, 2]), (0, 2)),
    (lambda: layers.argmax(none(0, 2), axis=1), (0,)),
    (lambda: layers.topk(none(0, 3), 2)[0], (0, 2)),
    (lambda: layers.accuracy(none(0, 3), none(0, 1, dtype="int64")), [0]),
    (lambda: layers.cos_sim(none(0, 3), none(0, 3)), (0, 1)),
    (lambda: layers.gather(layers.fill_constant([3, 2], "float32", 1), none(0, dtype="int32")), (0, 2)),
    (lambda: layers.scatter(layers.fill_constant([3, 2], "float32", 1), none(0, dtype="int32"), none(0, 2)), np.ones((3, 2))),
    (lambda: layers.pad(none(0, 3), [1, 1, 0, 0]), np.zeros((2, 3))),
    (lambda: layers.reshape(none(2, 0, 6), [0, 0, 2, 3]), (2, 0, 2, 3)),
    (lambda: layers.resize_nearest(none(0, 1, 2, 2), [4, 4]), (0, 1, 4, 4)),
    (lambda: layers.sequence_mask(none(0, dtype="int64"), 3), (0, 3)),
]  # fmt: skip


def test_no_elements() -> None:
    with fresh() as (main, startup):
        found = [make() for make, _ in CASES]
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for k, (got, (_, want)) in enumerate(
        zip(exe.run(main, fetch_list=found, scope=scope), CASES, strict=True)
    ):
        if isinstance(want, tuple):
            assert got.shape == want, k
        else:
            np.testing.assert_array_equal(got, want, err_msg=str(k))


def test_gradients_of_no_elements() -> None:
    """They are there, and those of parameters are zero."""
    with fresh() as (main, startup):
        x = layers.data("x", [3])
        h = layers.group_norm(layers.reshape(layers.fc(x, 8, param_attr="w"), [-1, 2, 2, 2]), 2)
        logits = layers.fc(h, 4, act="softmax")
        layers.smooth_l1(logits, logits * 2.0)
        loss = layers.reduce_sum(
            layers.softmax_with_cross_entropy(
                logits, layers.cast(layers.reduce_sum(x, 1, keep_dim=True), "int64")
            )
        )
        pairs = dict((p.name, g) for p, g in fluid.backward.append_backward(loss))
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    (slope,) = exe.run(
        main, feed={"x": np.zeros((0, 3), "float32")}, fetch_list=[pairs["w"]], scope=scope
    )
    np.testing.assert_array_equal(slope, np.zeros((3, 8)))
