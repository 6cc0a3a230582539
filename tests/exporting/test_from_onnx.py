"""ONNX files as programs: those that were exported come back and compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import ParseError
from fluidjax.exporting import ExportError

from .beside import as_fed, run, session
from .test_models import DATA, FETCHED, OCR

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


def ours(path: Path, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    scope = fluid.Scope()
    program, feeds, fetches = fluid.load_onnx(path, scope)
    assert set(feeds) == set(feed)
    found: list[np.ndarray] = fluid.Executor().run(program, feed=feed, fetch_list=fetches, scope=scope)  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", OCR)
def test_ocr_models_come_back(name: str, tmp_path: Path) -> None:
    if not (FETCHED / OCR[name] / "inference.pdiparams").is_file():
        pytest.skip("make models fetches them")
    with np.load(DATA / f"ocr_{name}.npz") as archive:
        x, want = (archive[n] for n in archive.files[:2])
    path = tmp_path / "m.onnx"
    fluid.export(FETCHED / OCR[name], path, shapes={"x": x.shape})
    (got,) = ours(path, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def many(x: Any) -> Any:
    """An op of each kind that comes back."""
    h = layers.conv2d(x, 6, 3, padding=1, groups=3, act="leaky_relu")
    h = layers.batch_norm(layers.conv2d_transpose(h, 6, filter_size=2, stride=2), is_test=True)
    h = layers.pool2d(layers.swish(h), 2, "avg", 2)
    h = h * layers.hard_sigmoid(layers.pool2d(h, global_pooling=True, pool_type="avg"))
    h = layers.elu(layers.relu6(h)) - layers.gelu(h) + layers.sqrt(layers.abs(h))
    a, b = layers.split(layers.transpose(h, [0, 2, 3, 1]), 2, 3)
    h = layers.slice(layers.concat([a, b, a], 3), [1, 3], [1, 0], [7, 8])
    h = layers.layer_norm(layers.reduce_mean(h, [1], keep_dim=True), begin_norm_axis=2)
    h = layers.unsqueeze(layers.squeeze(h, [1]), [1])
    return layers.softmax(layers.fc(layers.reshape(h, [-1, 64]), 5))


def test_every_kind(tmp_path: Path) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 8, 8])
        out = many(x)
    fluid.Executor().run(startup, scope=scope)
    path = tmp_path / "m.onnx"
    fluid.export(main, path, fetches=[out], scope=scope)
    for batch in (1, 7):
        given = np.random.RandomState(batch).standard_normal((batch, 3, 8, 8)).astype("float32")
        (want,) = run(path, {"x": given}).values()
        (got,) = ours(path, {"x": given})
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_file_from_elsewhere(tmp_path: Path) -> None:
    """Gemm, Constant nodes, shapes that follow from constants, as exporters of torch write them."""
    helper, to = onnx.helper, onnx.numpy_helper.from_array
    rng = np.random.RandomState(0)
    w, b = rng.standard_normal((5, 12)).astype("float32"), rng.standard_normal(5).astype("float32")
    nodes = [
        helper.make_node("Constant", [], ["rows"], value=to(np.array([-1]), "v")),
        helper.make_node("Constant", [], ["columns"], value=to(np.array([12]), "v")),
        helper.make_node("Concat", ["rows", "columns"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], ["h"], transB=1),
        helper.make_node("Clip", ["h", "", "most"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, ["n", 3, 4])],
        [helper.make_tensor_value_info("y", kind, ["n", 5])],
        [to(w, "w"), to(b, "b"), to(np.float32(1.5), "most")],
    )  # fmt: skip
    path = tmp_path / "t.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))  # fmt: skip
    x = rng.standard_normal((2, 3, 4)).astype("float32")
    (got,) = ours(path, {"x": x})
    np.testing.assert_allclose(got, np.minimum(x.reshape(2, 12) @ w.T + b, 1.5), rtol=1e-5)


def test_sequences_come_back(tmp_path: Path) -> None:
    """LAC: computed sizes, rows chosen by their lengths, gru both ways, a CRF's two Scans."""
    path = tmp_path / "lac.onnx"
    fluid.export(DATA / "lac_seg" / "model", path)
    scope = fluid.Scope()
    program, feeds, fetches = fluid.load_onnx(path, scope)
    with np.load(DATA / "lac_batches.npz") as batches:
        ids, lengths = batches["0/ids"], batches["0/lengths"].tolist()
    fed = as_fed({"words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())}, feeds)
    found = fluid.Executor().run(program, feed=fed, fetch_list=fetches, scope=scope)
    for got, want in zip(found, session(path).run(None, fed), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_has_no_op_is_named_at_once(tmp_path: Path) -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Hardmax", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("ReverseSequence", ["b", "n"], ["y"]),
        helper.make_node("Unsqueeze", ["y", "axes"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, ["n", 3])],
        [helper.make_tensor_value_info("z", kind, None)],
        [onnx.numpy_helper.from_array(np.array([v]), n) for n, v in (("n", 3), ("axes", -1))],
    )  # fmt: skip
    path, scope = tmp_path / "n.onnx", fluid.Scope()
    path.write_bytes(helper.make_model(graph, ir_version=8).SerializeToString())
    with pytest.raises(ExportError) as error:
        fluid.load_onnx(path, scope)
    assert {"Hardmax", "ReverseSequence"} == {lack.what for lack in error.value.report.lacks}
    assert not scope.local_var_names()


def test_spoiled_files(tmp_path: Path) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = layers.fc(fluid.data("x", [None, 3]), 400)
    fluid.Executor().run(startup, scope=scope)
    path = tmp_path / "m.onnx"
    fluid.export(main, path, fetches=[out], scope=scope, external_data=True)
    with pytest.raises(ParseError, match="in another file"):
        fluid.load_onnx(path)
    fluid.export(main, path, fetches=[out], scope=scope)
    whole = path.read_bytes()
    rng = np.random.RandomState(0)
    for _ in range(150):
        spoiled = bytearray(whole[: rng.randint(1, len(whole))] if rng.rand() < 0.3 else whole)
        for _ in range(rng.randint(1, 6)):
            spoiled[rng.randint(len(spoiled))] = rng.randint(256)
        path.write_bytes(spoiled)
        try:
            fluid.load_onnx(path, fluid.Scope())
        except fluid.FluidError:
            continue
    path.write_bytes(b"")
    with pytest.raises(ParseError, match="not an ONNX"):
        fluid.load_onnx(path)
