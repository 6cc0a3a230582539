"""Rows that the data choose go through large weights block by block: the numbers are those of all
rows at once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower.step import Step
from fluidjax.xla_cpu import row_blocks

X = np.random.RandomState(3).randn(11, 8).astype("float32")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(row_blocks, "BLOCK", 3)
    monkeypatch.setattr(row_blocks, "LEAST", 1)
    with (
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
    ):
        yield


def chosen() -> Any:
    """The rows of x [11, 8] where mask holds."""
    return layers.gather(
        fluid.data("x", [11, 8], "float32"), layers.where(fluid.data("mask", [11], "bool"))
    )


def images(rows: Any) -> list[Any]:
    """Convolutions over rows as images; what is needed of it afterwards, of which one sums over all
    rows.
    """
    image = layers.reshape(layers.fc(rows, 8, act="relu"), [-1, 2, 2, 2])
    conv = layers.batch_norm(
        layers.conv2d(image, 4, 3, padding=1, bias_attr=False), is_test=True, act="relu"
    )
    flat = layers.reshape(layers.pool2d(layers.elementwise_add(conv, conv), 2, "avg"), [-1, 4])
    return [layers.softmax(layers.fc(flat, 3)), conv, layers.reduce_sum(flat)]


def values(step: Step, state: Any, feed: Any) -> Any:
    """What a step fetches."""
    return step(state, feed)[1]


def regions() -> list[Any]:
    """Pools over regions of two images, as many of each as is fed, and a product."""
    rois = layers.sequence_unpad(
        fluid.data("cells", [2, 6, 4], "float32"), fluid.data("lengths", [2], "int64")
    )
    pooled = layers.roi_align(fluid.data("image", [2, 2, 4, 4], "float32"), rois, 2, 2)
    return [rois, layers.fc(pooled, 3), layers.reduce_sum(pooled)]


IMAGE = np.random.RandomState(4).rand(2, 2, 4, 4).astype("float32")
CELLS = (np.random.RandomState(5).rand(2, 6, 4) * [1, 1, 4, 4]).astype("float32")
NETS = {
    "rows": (
        lambda: images(chosen()),
        [{"x": X, "mask": np.arange(11) < n} for n in (0, 1, 3, 7, 11)],
    ),
    "regions": (
        regions,
        [
            {"image": IMAGE, "cells": CELLS, "lengths": np.array(n, "int64")}
            for n in ((6, 1), (0, 5), (2, 0), (0, 0))
        ],
    ),
}


@pytest.mark.parametrize("net", NETS)
def test_as_all_rows_at_once(net: str) -> None:
    """One loop, up to the sum over all rows, gives what ops give that take all rows, padding and
    all.
    """
    build, feeds = NETS[net]
    outs = build()
    fluid.Executor().run(fluid.default_startup_program())
    desc, names = fluid.default_main_program().desc, tuple(v.name for v in outs)
    state = {
        n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in Step(desc, names).reads
    }
    steps = [Step(desc, names, in_blocks=b) for b in (False, True)]
    with jax.enable_x64(True):
        traced = [jax.jit(partial(values, step, state)).trace(feeds[0]) for step in steps]
        assert [str(t.jaxpr).count("while[") for t in traced] == [0, 1]
        whole, blocks = (t.lower().compile() for t in traced)
    for feed in feeds:
        with jax.enable_x64(True):
            want, got = whole(feed), blocks(feed)
        for one, other in zip(got[:2], want[:2], strict=True):
            many = int(other.count)
            assert int(one.count) == many
            np.testing.assert_allclose(one.rows[:many], other.rows[:many], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[2], want[2], rtol=1e-5, atol=1e-6)


def test_not_where_it_is_differentiated_or_light(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = layers.reduce_sum(layers.fc(chosen(), 2, param_attr="w"))
    copy = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe, feed = fluid.Executor(), {"x": X, "mask": np.arange(11) < 5}
    exe.run(fluid.default_startup_program())
    before = np.array(fluid.global_scope().find_var("w").get_tensor())
    exe.run(feed=feed, fetch_list=[loss])
    after = np.array(fluid.global_scope().find_var("w").get_tensor())
    np.testing.assert_allclose(after, before - 0.5 * X[:5].sum(0)[:, None], rtol=1e-5, atol=1e-6)
    step = Step(copy.desc, (loss.name,), in_blocks=True)
    state = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in step.reads}
    loops = lambda: str(jax.make_jaxpr(partial(values, step, state))(feed)).count("while[")  # noqa: E731
    assert loops() == 1
    monkeypatch.setattr(row_blocks, "LEAST", 1 << 24)
    assert loops() == 0


def test_draws_are_for_all_rows_at_once() -> None:
    """Each block would draw the same numbers; a dropout that is a test's draws none."""
    rows = layers.dropout(layers.fc(chosen(), 8), 0.5)
    desc = fluid.default_main_program().desc
    for program, count in ((desc, 2), (fluid.default_main_program().clone(for_test=True).desc, 3)):
        step = Step(program, (rows.name,), in_blocks=True)
        assert isinstance(step.schedule, row_blocks.RowBlocks)
        assert (
            sum(
                step.ops[at].type in ("mul", "elementwise_add", "dropout")
                for at in step.schedule.starts
            )
            == count
        )
