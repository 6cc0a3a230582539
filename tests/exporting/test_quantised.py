"""Quantised models in onnxruntime beside our own run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.contrib.slim.quantization import PostTrainingQuantization, WeightQuantization

from .beside import run
from .test_from_onnx import ours as back

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A small net of convolutions and products, in a folder."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):  # fmt: skip
        x = fluid.data("x", [None, 4, 8, 8])
        h = layers.conv2d(x, 32, 3, act="relu")
        h = layers.conv2d(h, 32, 3, groups=32, act="relu", use_cudnn=False)  # depthwise_conv2d
        out = layers.fc(h, 64, act="softmax")
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "float"), ["x"], [out], exe, main)
    return tmp_path / "float"


def samples(seed: int) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal((4, 4, 8, 8)).astype("float32")


def ours(folder: Path, x: np.ndarray) -> np.ndarray:
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(str(folder), exe)
        found: np.ndarray = exe.run(program, feed={feeds[0]: x}, fetch_list=targets)[0]
    return found


def kinds(path: Path) -> set[str]:
    return {n.op_type for n in onnx.load(str(path)).graph.node}


@pytest.mark.parametrize("channels", [False, True])
def test_after_training(saved: Path, channels: bool, tmp_path: Path) -> None:
    with fluid.scope_guard(fluid.Scope()):
        made = PostTrainingQuantization(
            fluid.Executor(), model_dir=str(saved), sample_generator=lambda: ((x,) for x in samples(0)),
            batch_size=2, algo="abs_max", quantizable_op_type=["conv2d", "depthwise_conv2d", "mul"],
            weight_quantize_type="channel_wise_abs_max" if channels else "abs_max",
        )  # fmt: skip
        made.quantize()
        made.save_quantized_model(str(tmp_path / "int8"))
    path, plain = tmp_path / "q.onnx", tmp_path / "f.onnx"
    small = fluid.export(tmp_path / "int8", path)
    large = fluid.export(saved, plain)
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds(path)
    assert large.size > 3 * small.size
    x = samples(1)
    (got,) = run(path, {"x": x}).values()
    np.testing.assert_allclose(got, ours(tmp_path / "int8", x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(back(path, {"x": x})[0], got, rtol=1e-4, atol=1e-5)
    (exact,) = run(plain, {"x": x}).values()
    np.testing.assert_allclose(got, exact, atol=0.02)


def test_data_in_floats_beside_weights_of_whole_numbers(saved: Path, tmp_path: Path) -> None:
    """As small, and as exact as weights of 8 bits are."""

    def quantised(kinds: list[str], alone: list[str], where: Path) -> Any:
        with fluid.scope_guard(fluid.Scope()):
            made = PostTrainingQuantization(
                fluid.Executor(), model_dir=str(saved), sample_generator=lambda: ((x,) for x in samples(0)),
                batch_size=2, algo="abs_max", quantizable_op_type=kinds, weight_only_op_type=alone,
            )  # fmt: skip
            made.quantize()
            made.save_quantized_model(str(where))
        return fluid.export(where, where.with_suffix(".onnx"))

    x = samples(1)
    every = quantised(["conv2d", "depthwise_conv2d", "mul"], [], tmp_path / "every")
    for kinds, alone, rounded in (
        (["conv2d", "mul"], ["depthwise_conv2d"], 2),
        ([], ["conv2d", "depthwise_conv2d", "mul"], 0),
    ):
        where = tmp_path / f"some{len(alone)}"
        report, path = quantised(kinds, alone, where), where.with_suffix(".onnx")
        assert report.size < 1.1 * every.size
        assert [n.op_type for n in onnx.load(str(path)).graph.node].count(
            "QuantizeLinear"
        ) == rounded
        (got,) = run(path, {"x": x}).values()
        np.testing.assert_allclose(got, ours(where, x), rtol=1e-4, atol=1e-5)
    with fluid.scope_guard(fluid.Scope()):  # the last beside weights that NumPy rounds
        exe = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(str(saved), exe)
        for op in program.global_block().ops:
            slot = {"conv2d": "Filter", "depthwise_conv2d": "Filter", "mul": "Y"}.get(op.type)
            if slot is None:
                continue
            held = fluid.global_scope().find_var(op.input(slot)[0]).get_tensor()
            w = np.array(held)
            axes = (1, 2, 3) if slot == "Filter" else 0  # a scale for each filter or column
            top = np.abs(w).max(axis=axes, keepdims=True)
            held.set(np.round(w / top * 127) * top / 127, exe.place)
        (want,) = exe.run(program, feed={feeds[0]: x}, fetch_list=targets)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_ops_that_are_skipped(saved: Path, tmp_path: Path) -> None:
    """They stay in floats, their weights as well, however others are quantised."""
    with fluid.scope_guard(fluid.Scope()):
        program, _, _ = fluid.io.load_inference_model(str(saved), fluid.Executor())
        ops = program.global_block().ops
        held = [op.input("Filter")[0] for op in ops if op.type.endswith("conv2d")]
        before = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in held}
    for kinds, alone in (
        (["conv2d", "mul"], ["depthwise_conv2d"]),
        (["conv2d", "depthwise_conv2d", "mul"], []),
    ):
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            made = PostTrainingQuantization(
                fluid.Executor(), model_dir=str(saved), sample_generator=lambda: ((x,) for x in samples(0)),
                batch_size=2, algo="abs_max", quantizable_op_type=kinds, weight_only_op_type=alone,
                skip_tensor_list=[held[1]],
            )  # fmt: skip
            made.quantize()
        whole, left = (np.array(scope.find_var(n).get_tensor()) for n in held)
        np.testing.assert_array_equal(whole, np.round(whole))
        np.testing.assert_array_equal(left, before[held[1]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"skip_tensor_list": "conv2d_0.w_0"}, "a list of names"),
        ({"skip_tensor_list": ["conv2d_0.w_0"], "algo": "min_max"}, "min_max"),
        ({"weight_only_op_type": ["conv2d"]}, "name it once"),
        ({"weight_only_op_type": ["relu"]}, "'relu' is not quantised"),
        ({"weight_only_op_type": ["matmul"], "algo": "min_max"}, "min_max"),
    ],
)
def test_mistakes_of_weights_alone(saved: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(fluid.FluidError, match=said):
        PostTrainingQuantization(
            fluid.Executor(), model_dir=str(saved), sample_generator=lambda: iter(()), **given
        )


def test_weights_alone(saved: Path, tmp_path: Path) -> None:
    quantised = WeightQuantization(str(saved))
    quantised.quantize_weight_to_int(str(tmp_path / "w"), quantizable_op_type=["conv2d", "mul"])
    folder = next(p.parent for p in (tmp_path / "w").rglob("__model__"))
    path = tmp_path / "w.onnx"
    fluid.export(folder, path)
    x = samples(1)
    (got,) = run(path, {"x": x}).values()
    np.testing.assert_allclose(got, ours(folder, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["fake_quantize_abs_max", "fake_quantize_dequantize_abs_max"])
def test_the_whole_range(op: str, tmp_path: Path) -> None:
    """Also at the ends, and at halves."""
    main = fluid.Program()
    x = np.array([-127, -126.5, -63.5, -0.5, 0, 0.5, 1.5, 2.5, 100.49, 127], np.float32)
    block = main.global_block()
    block.create_var(name="x", shape=x.shape, dtype="float32", is_data=True)
    for name in ("out", "scale"):
        block.create_var(name=name)
    attrs: dict[str, Any] = {"bit_length": 8}
    block.append_op(type=op, inputs={"X": ["x"]}, outputs={"Out": ["out"], "OutScale": ["scale"]}, attrs=attrs)  # fmt: skip
    path = tmp_path / "o.onnx"
    fluid.export(main, path, fetches=["out", "scale"])
    want = fluid.Executor().run(main, feed={"x": x}, fetch_list=["out", "scale"])
    for got, value in zip(run(path, {"x": x}).values(), want, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-6)
