"""Predictors on saved models: outputs and what they say of themselves as Paddle 1.8.5's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import (
    EnforceNotMet,
    FeedError,
    FluidTypeError,
    FluidValueError,
    UnsupportedError,
)
from fluidjax.paddle import inference

DATA = Path(__file__).parents[1] / "data"
RECORDED = np.load(DATA / "predictor_1.8.5.npz")
TOLD = json.loads(str(RECORDED["told"]))
core = fluid.core


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    for name in ("model", "params"):
        (folder / name).write_bytes(RECORDED[name].tobytes())
    return str(folder / "model"), str(folder / "params")


@pytest.fixture(scope="module")
def predictor(files):
    return core.create_paddle_predictor(core.AnalysisConfig(*files))


def same(outs):
    for k, out in enumerate(outs):
        np.testing.assert_allclose(out, RECORDED[f"out{k}"], rtol=1e-5, atol=1e-6)
    assert len(outs) == 2


def test_run(predictor):
    outs = predictor.run([core.PaddleTensor(RECORDED["x"]), core.PaddleTensor(RECORDED["i"])])
    same([t.as_ndarray() for t in outs])
    assert [[t.name, t.shape, str(t.dtype), t.lod, t.data.length()] for t in outs] == TOLD[
        "results"
    ]
    assert (
        outs[0].data.float_data()
        == outs[0].as_ndarray().ravel().tolist()
        == outs[0].data.tolist("float32")
    )
    assert (
        predictor.get_input_names() == TOLD["inputs"]
        and predictor.get_output_names() == TOLD["outputs"]
    )
    assert predictor.get_input_tensor_shape() == TOLD["shapes"]
    for wrong in ([core.PaddleTensor(RECORDED["x"])], []):
        with pytest.raises(FeedError, match="takes 2 inputs, 'x', 'i', not"):
            predictor.run(wrong)
    with pytest.raises(FluidTypeError, match="PaddleTensors, not on ndarray"):
        predictor.run([RECORDED["x"]])


def test_by_name_from_bytes_and_built_by_hand(files):
    config = core.AnalysisConfig()
    prog, params = (Path(f).read_bytes() for f in files)
    config.set_model_buffer(prog + b"rest", len(prog), params, len(params))
    config.switch_specify_input_names(True)
    assert config.model_from_memory() and config.specify_input_name()
    predictor = core.create_paddle_predictor(config)
    x, i = core.PaddleTensor(), core.PaddleTensor(RECORDED["i"], name="i")
    x.name, x.shape, x.data, x.dtype = (
        "x",
        [2, 3],
        core.PaddleBuf(RECORDED["x"].ravel().tolist()),
        core.PaddleDType.FLOAT32,
    )
    same([t.as_ndarray() for t in predictor.run([i, x])])
    with pytest.raises(FeedError, match="not 2: 'i', ''"):
        predictor.run([i, core.PaddleTensor(RECORDED["x"])])
    x.shape = [3, 3]
    with pytest.raises(FluidValueError, match="has 36 bytes, but its data 24"):
        x.as_ndarray()


def test_tensors_that_stay(predictor):
    with pytest.raises(FluidValueError, match="'x' has no value yet; copy_from_cpu"):
        predictor.clone().zero_copy_run()
    other = predictor.clone()
    x, i = (other.get_input_tensor(n) for n in other.get_input_names())
    x.reshape([2, 3])
    assert x.shape() == [2, 3]
    x.copy_from_cpu(RECORDED["x"])
    i.copy_from_cpu(RECORDED["i"])
    assert other.zero_copy_run() is True
    outs = [other.get_output_tensor(n) for n in other.get_output_names()]
    same([t.copy_to_cpu() for t in outs])
    assert (
        outs[0].shape() == [2, 2]
        and outs[0].type() == core.PaddleDType.FLOAT32
        and outs[0].lod() == []
    )
    x.copy_from_cpu(RECORDED["x"][:1])
    i.copy_from_cpu(RECORDED["i"][:1])
    other.zero_copy_run()
    np.testing.assert_allclose(outs[1].copy_to_cpu(), RECORDED["out1"][:1], rtol=1e-5, atol=1e-6)
    with pytest.raises(FluidTypeError, match="output of the predictor"):
        outs[0].copy_from_cpu(RECORDED["x"])
    with pytest.raises(EnforceNotMet, match="no input 'X'"):
        other.get_input_tensor("X")
    with pytest.raises(FluidTypeError, match="not an array of float64"):
        x.copy_from_cpu(np.zeros((1, 3)))


def test_ragged_words_through_paddle_inference(tmp_path):
    """LAC's model: the tags of 1.8.5, with the LoD; saved again, the same."""
    config = inference.Config(str(DATA / "models/lac_seg/model"))
    predictor = inference.create_predictor(config)
    ref = np.load(DATA / "models/lac_ref.npz")
    offsets = [[0, *np.cumsum(ref["lod"]).tolist()]]
    words = predictor.get_input_handle(predictor.get_input_names()[0])
    words.copy_from_cpu(ref["ids"])
    words.set_lod(offsets)
    assert predictor.run() is True
    tags = predictor.get_output_handle(predictor.get_output_names()[0])
    assert (tags.copy_to_cpu() == ref["out"]).all() and tags.lod() == offsets
    tensor = core.PaddleTensor(ref["ids"])
    tensor.lod = offsets
    (out,) = predictor.run([tensor])
    assert (out.as_ndarray() == ref["out"]).all() and out.lod == offsets
    predictor.SaveOptimModel(str(tmp_path / "again"))
    pool = inference.PredictorPool(inference.Config(str(tmp_path / "again")), 2)
    assert (
        pool.retrive(0).get_input_names()
        == pool.retrieve(1).get_input_names()
        == predictor.get_input_names()
    )
    written = fluid.Program.parse_from_string(predictor.get_serialized_program())
    assert written.desc.blocks[0].ops == predictor.program().desc.blocks[0].ops


def test_configs(files, tmp_path):
    config = core.AnalysisConfig(*files)
    config.disable_glog_info()
    config.pass_builder().delete_pass("fc_fuse_pass")
    for name, value in TOLD.items():
        if hasattr(config, name):
            assert getattr(config, name)() == value, name
    assert (config.prog_file(), config.params_file(), config.model_dir()) == (*files, "")
    config.switch_ir_optim(False)
    config.set_cpu_math_library_num_threads(4)
    assert not config.ir_optim() and config.cpu_math_library_num_threads() == 4
    native = core.NativeConfig()
    assert [
        native.device,
        native.fraction_of_gpu_memory,
        native.prog_file,
        native.specify_input_name,
        native.use_gpu,
    ] == TOLD["native"]
    native.prog_file, native.param_file = files
    same(
        [
            t.as_ndarray()
            for t in core.create_paddle_predictor(native).run(
                [core.PaddleTensor(RECORDED[n]) for n in "xi"]
            )
        ]
    )
    assert {n: int(core.PaddleDType[n]) for n in TOLD["dtypes"]} == TOLD["dtypes"]
    assert {n: int(config.Precision[n]) for n in TOLD["precision"]} == TOLD["precision"]
    assert (config.Int8, config.Half, config.Float32) == (1, 2, 0)
    config.switch_specify_input_names(True)
    older = config.to_native_config()  # as 1.8.5 answers
    assert [
        older.device,
        older.fraction_of_gpu_memory,
        older.specify_input_name,
        older.use_gpu,
    ] == [0, 0.0, True, False]
    assert [older.model_dir, older.prog_file, older.param_file] == ["", *files]
    assert [
        core.PaddleBuf(b).length() for b in ([1, 2], [1.0, 2.0], RECORDED["i"], RECORDED["x"], 8)
    ] == TOLD["buffers"]
    for call in (
        config.enable_quantizer,
        config.enable_profile,
        lambda: config.pass_builder().append_pass("p"),
    ):
        with pytest.raises(UnsupportedError):
            call()
    with pytest.warns(UserWarning, match="no TensorRT"):
        config.enable_tensorrt_engine(max_batch_size=4)
    if not fluid.is_compiled_with_cuda():
        with pytest.warns(UserWarning, match="JAX sees no GPU"):
            config.enable_use_gpu(100, 0)
        assert not config.use_gpu()
    with pytest.raises(FluidTypeError, match="AnalysisConfig or a NativeConfig, not str"):
        core.create_paddle_predictor(files[0])
    with pytest.raises(FluidValueError, match="no directory named"):
        core.create_paddle_predictor(core.AnalysisConfig(str(tmp_path / "none")))
    held = core.AnalysisConfig()
    held.set_model_buffer(b"p", 1, b"v", 1)
    with pytest.raises(FluidValueError, match="this model is in memory"):
        held.to_native_config()
    with pytest.raises(FluidTypeError, match="must be in one folder"):
        core.create_paddle_predictor(core.AnalysisConfig(files[0], str(tmp_path / "params")))
    with pytest.raises(FluidTypeError, match="not an array of bool"):
        core.PaddleTensor(np.array([True]))
