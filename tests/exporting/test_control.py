"""Blocks in onnxruntime beside our own run: loops, arrays, branches, recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from .beside import run

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


def doubled(x: Any) -> Any:
    """x doubled until its sum is large, each step kept in an array."""
    i, bound = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "float32", 100.0)
    state = layers.elementwise_add(x, layers.fill_constant([1], "float32", 0.0))
    kept = layers.array_write(state, i)
    total = layers.reduce_sum(state, keep_dim=False)
    going = layers.less_than(total, bound)
    loop = layers.While(going)
    with loop.block():
        layers.assign(state * 2.0, state)
        layers.increment(i, in_place=True)
        layers.array_write(state, i, kept)
        layers.less_than(layers.reduce_sum(state), bound, cond=going)
    return [
        state,
        i,
        layers.array_read(kept, layers.fill_constant([1], "int64", 1)),
        layers.array_length(kept),
    ]


def overwritten(x: Any) -> Any:
    """An entry that is there is replaced."""
    zero, one = (layers.fill_constant([1], "int64", n) for n in (0, 1))
    kept = layers.array_write(x, zero)
    layers.array_write(x * 2.0, one, kept)
    layers.array_write(x * 3.0, zero, kept)
    return [layers.array_read(kept, zero), layers.array_read(kept, one), layers.array_length(kept)]


def branched(x: Any) -> Any:
    """Either side of a condition, by what is fed."""
    large = layers.greater_than(layers.reduce_sum(x), layers.fill_constant([1], "float32", 5.0))
    out = layers.fill_constant([1], "float32", 1.0)
    with layers.Switch() as switch, switch.case(large):
        layers.assign(layers.fill_constant([1], "float32", 7.0), out)
    return [out]


def recurrent(x: Any) -> Any:
    """A running sum over the first axis."""
    rnn = layers.StaticRNN()
    with rnn.step():
        row = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 3], batch_ref=row, init_value=1.0)
        after = layers.elementwise_add(layers.scale(before, 0.5), row)
        rnn.update_memory(before, after)
        rnn.step_output(layers.tanh(after))
    return [rnn()]


CASES: list[tuple[Callable[[Any], Any], tuple[int, ...], str]] = [
    (doubled, (4,), "Loop"),
    (overwritten, (4,), "If"),
    (branched, (4,), "If"),
    (recurrent, (5, 2, 3), "Scan"),
]


@pytest.mark.parametrize(
    ("build", "shape", "kind"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
@pytest.mark.parametrize("seed", [0, 1])
def test_as_our_own_run(build: Any, shape: tuple[int, ...], kind: str, seed: int, tmp_path: Path) -> None:  # fmt: skip
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", shape)
        outs = build(x)
    path = tmp_path / "c.onnx"
    fluid.export(main, path, feeds=["x"], fetches=outs)
    assert kind in {n.op_type for n in onnx.load(str(path)).graph.node}
    given = (np.random.RandomState(seed).uniform(0.1, 1, shape) * (1 + 2 * seed)).astype("float32")
    want = fluid.Executor().run(main, feed={"x": given}, fetch_list=outs)
    got = run(path, {"x": given})
    for variable, value in zip(outs, want, strict=True):
        np.testing.assert_allclose(got[variable.name], value, rtol=1e-6, err_msg=variable.name)
        assert got[variable.name].dtype == value.dtype
