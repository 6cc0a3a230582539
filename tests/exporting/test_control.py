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
from .test_from_onnx import ours

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


def counted(x: Any) -> Any:
    """A loop without an array."""
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 6))
    state = layers.scale(x, 1.0)
    going = layers.less_than(i, n)
    loop = layers.While(going)
    with loop.block():
        layers.assign(layers.tanh(state) * 1.5, state)
        layers.increment(i, in_place=True)
        layers.less_than(i, n, cond=going)
    return [state, i]


def backwards(x: Any) -> Any:
    """A running sum from the last row on."""
    turned, rnn = layers.reverse(x, [0]), layers.StaticRNN()
    with rnn.step():
        row = rnn.step_input(turned)
        before = rnn.memory(shape=[-1, 3], batch_ref=row, init_value=0.5)
        after = layers.elementwise_add(layers.scale(before, 0.5), row)
        rnn.update_memory(before, after)
        rnn.step_output(after)
    return [layers.reverse(rnn(), [0])]


CASES: list[tuple[Callable[[Any], Any], tuple[int, ...], str]] = [
    (doubled, (4,), "Loop"),
    (overwritten, (4,), "If"),
    (branched, (4,), "If"),
    (recurrent, (5, 2, 3), "Scan"),
    (counted, (4,), "Loop"),
    (backwards, (5, 2, 3), "Scan"),
]
RETURNING = (branched, recurrent, counted, backwards)  # the others have arrays of tensors


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


@pytest.mark.parametrize(("build", "shape"), [c[:2] for c in CASES if c[0] in RETURNING])
def test_blocks_come_back(build: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        outs = build(fluid.data("x", shape))
    path = tmp_path / "c.onnx"
    fluid.export(main, path, feeds=["x"], fetches=outs)
    for seed in range(2):
        given = np.random.RandomState(seed).uniform(0.1, 1, shape) * (1 + 2 * seed)
        feed = {"x": given.astype("float32")}
        for got, want in zip(ours(path, feed), run(path, feed).values(), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def written(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> None:  # fmt: skip
    made = onnx.helper.make_graph(
        nodes, "g", inputs, outputs, [onnx.numpy_helper.from_array(v, n) for n, v in constants.items()]
    )  # fmt: skip
    model = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))


def info(name: str, shape: list[Any] | None, kind: int = 1) -> Any:
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def test_a_loop_from_elsewhere(tmp_path: Path) -> None:
    """Iterations counted by the loop, ended by its own condition; what it carries is one of the
    file's inputs, which stays as it was.
    """
    node = onnx.helper.make_node
    body = onnx.helper.make_graph(
        [
            node("Mul", ["v", "two"], ["v_out"]),
            node("ReduceSum", ["v_out"], ["total"], keepdims=1),
            node("Reshape", ["total", "flat"], ["sum"]),
            node("Less", ["sum", "bound"], ["still"]),
        ],
        "body",
        [info("i", [], 7), info("go", [], 9), info("v", [3])],
        [info("still", [1], 9), info("v_out", [3])],
    )
    path = tmp_path / "l.onnx"
    constants = {
        "most": np.int64(20), "yes": np.array(True), "two": np.float32([2]), "bound": np.float32([50]),
        "flat": np.int64([1]),
    }  # fmt: skip
    nodes = [node("Loop", ["most", "yes", "x"], ["last"], body=body), node("Add", ["last", "x"], ["y"])]  # fmt: skip
    written(path, nodes, [info("x", [3])], [info("y", [3])], constants)
    for x in (np.float32([1, 2, 3]), np.float32([0, 0, 0])):
        (got,), (want,) = ours(path, {"x": x}), run(path, {"x": x}).values()
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_scan_from_elsewhere(tmp_path: Path) -> None:
    """From the last row to the first; the state at the end is asked for."""
    node = onnx.helper.make_node
    body = onnx.helper.make_graph(
        [node("Add", ["s", "row"], ["s_out"]), node("Mul", ["s_out", "s"], ["out"])],
        "body", [info("s", [2]), info("row", [2])], [info("s_out", [2]), info("out", [2])],
    )  # fmt: skip
    path = tmp_path / "s.onnx"
    back = {"scan_input_directions": [1], "scan_output_directions": [1]}
    nodes = [node("Scan", ["first", "x"], ["last", "every"], body=body, num_scan_inputs=1, **back)]
    written(
        path, nodes, [info("x", [4, 2])], [info("last", [2]), info("every", [4, 2])],
        {"first": np.float32([0.5, 1])},
    )  # fmt: skip
    x = np.random.RandomState(0).standard_normal((4, 2)).astype("float32")
    for got, want in zip(ours(path, {"x": x}), run(path, {"x": x}).values(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_blocks_lack_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "d.onnx"
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        outs = doubled(fluid.data("x", [4]))
    fluid.export(main, path, feeds=["x"], fetches=outs)
    with pytest.raises(fluid.ExportError) as error:
        fluid.load_onnx(path, fluid.Scope())
    lacks = {lack.what for lack in error.value.report.lacks}
    assert {"SequenceEmpty", "SequenceInsert", "SequenceAt"} <= lacks


def test_a_block_is_not_blamed_for_what_stands_before_it(tmp_path: Path) -> None:
    node, path = onnx.helper.make_node, tmp_path / "f.onnx"
    then, other = (
        onnx.helper.make_graph([node(kind, ["x", "x"], [kind])], kind, [], [info(kind, [2, 2])])
        for kind in ("Add", "Mul")
    )
    nodes = [
        node("Det", ["x"], ["d"]),
        node("If", ["yes"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = [info("x", [2, 2]), info("yes", [1], 9)]
    written(path, nodes, inputs, [info("d", []), info("y", [2, 2])], {})
    with pytest.raises(fluid.ExportError) as error:
        fluid.load_onnx(path, fluid.Scope())
    assert [lack.what for lack in error.value.report.lacks] == ["Det"]
