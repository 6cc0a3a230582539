"""``python kernels.py SIDE CASES``: CPU ms of single convolutions and products on one thread, as
JSON, after a line with the version.

SIDE: torch or onnxruntime. CASES: JSON, for each case the shapes of the input and of the weights,
stride, padding and groups; two axes: a matrix product. Weights are constants, as they are in a
model that was loaded.
"""

import json
import sys

import numpy as np
from clock import milliseconds


def torch_runs(cases):
    import torch

    torch.set_num_threads(1)
    print("torch " + torch.__version__)

    def run(x_shape, w_shape, stride, pad, groups):
        x, w = torch.randn(x_shape), torch.randn(w_shape)
        if len(x_shape) == 2:
            return lambda: torch.mm(x, w)
        return lambda: torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)

    with torch.inference_mode():
        return [milliseconds(run(*case)) for case in cases]


def onnxruntime_runs(cases):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    print("onnxruntime " + onnxruntime.__version__)

    def run(x_shape, w_shape, stride, pad, groups):
        kind, attrs = "MatMul", {}
        if len(x_shape) > 2:
            kind, attrs = "Conv", {"strides": [stride] * 2, "pads": [pad] * 4, "group": groups}
        weights = numpy_helper.from_array(np.random.standard_normal(w_shape).astype("float32"), "w")
        x, y = (
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("x", x_shape), ("y", None))
        )
        graph = helper.make_graph(
            [helper.make_node(kind, ["x", "w"], ["y"], **attrs)], "one", [x], [y], [weights]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        fed = {"x": np.random.standard_normal(x_shape).astype("float32")}
        return lambda: session.run(None, fed)

    return [milliseconds(run(*case)) for case in cases]


RUNS = {"torch": torch_runs, "onnxruntime": onnxruntime_runs}
print(json.dumps(RUNS[sys.argv[1]](json.loads(sys.argv[2]))))
