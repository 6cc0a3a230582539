"""Record a small model saved by Paddle 1.8.5 and what its predictors give:
tests/data/predictor_1.8.5.npz.

    python3.8 tests/tools/record_predictor.py

model, params: the files' bytes; x, i: inputs; out0, out1: outputs; told: what config and predictor
say of themselves, as JSON.
"""

import json
import os
import tempfile

import numpy as np
import paddle.fluid as fluid

core = fluid.core
x, i = fluid.data("x", [None, 3]), fluid.data("i", [None, 1], dtype="int64")
y = fluid.layers.fc(x, 2, act="relu")
z = fluid.layers.fc(fluid.layers.concat([x, fluid.layers.embedding(i, [5, 4])], 1), 2)
exe = fluid.Executor(fluid.CPUPlace())
fluid.default_startup_program().random_seed = 1
exe.run(fluid.default_startup_program())
with tempfile.TemporaryDirectory() as folder:
    fluid.io.save_inference_model(
        folder, ["x", "i"], [y, z], exe, model_filename="model", params_filename="params"
    )
    files = {
        n: np.frombuffer(open(os.path.join(folder, n), "rb").read(), np.uint8)
        for n in ("model", "params")
    }
    config = core.AnalysisConfig(os.path.join(folder, "model"), os.path.join(folder, "params"))
    config.disable_glog_info()
    names = (
        "use_gpu gpu_device_id memory_pool_init_size_mb ir_optim mkldnn_enabled"
        " tensorrt_engine_enabled lite_engine_enabled use_feed_fetch_ops_enabled specify_input_name"
        " model_from_memory glog_info_disabled fraction_of_gpu_memory_for_pool".split()
    )
    told = {n: getattr(config, n)() for n in names}
    p = core.create_paddle_predictor(config)
    X, I = np.linspace(-1, 2, 6).astype("f").reshape(2, 3), np.array([[1], [4]], "int64")  # noqa: E741
    outs = p.run([core.PaddleTensor(X), core.PaddleTensor(I)])
    told.update(
        inputs=p.get_input_names(),
        outputs=p.get_output_names(),
        shapes=p.get_input_tensor_shape(),
        results=[[t.name, t.shape, str(t.dtype), t.lod, t.data.length()] for t in outs],
    )
    told["buffers"] = [core.PaddleBuf(b).length() for b in ([1, 2], [1.0, 2.0], I, X, 8)]
    native = core.NativeConfig()
    told["native"] = [
        native.device,
        native.fraction_of_gpu_memory,
        native.prog_file,
        native.specify_input_name,
        native.use_gpu,
    ]
    told["dtypes"] = {n: int(getattr(core.PaddleDType, n)) for n in ("FLOAT32", "INT64", "INT32")}
    told["precision"] = {
        n: int(getattr(core.AnalysisConfig.Precision, n)) for n in ("Float32", "Int8", "Half")
    }
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "predictor_1.8.5.npz")
np.savez_compressed(
    path,
    x=X,
    i=I,
    out0=outs[0].as_ndarray(),
    out1=outs[1].as_ndarray(),
    told=json.dumps(told),
    **files,
)
