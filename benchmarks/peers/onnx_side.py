"""onnxruntime on one thread, on a net that fluid_side.py described."""

import json
import os

import numpy as np


def load(side):
    import onnxruntime

    return "onnxruntime " + onnxruntime.__version__


def assembled(described):
    """The ONNX model of what onnx_peer.describe gives: its bytes."""
    from onnx import TensorProto, helper, numpy_helper

    graph = json.loads(str(described["graph"]))
    nodes = [
        helper.make_node(kind, inputs, [out], **attrs)
        for kind, inputs, out, attrs in graph["nodes"]
    ]
    weights = [numpy_helper.from_array(described["weight " + n], n) for n in graph["weights"]]
    x = helper.make_tensor_value_info(graph["feed"], TensorProto.FLOAT, ["n"] + graph["shape"])
    y = helper.make_tensor_value_info(graph["fetch"], TensorProto.FLOAT, None)
    opset = helper.make_opsetid("", graph.get("opset", 13))
    model = helper.make_model(
        helper.make_graph(nodes, "network", [x], [y], weights), opset_imports=[opset]
    )
    model.ir_version = 8
    return model.SerializeToString()


def make(case):
    import onnxruntime

    with np.load(os.environ["PEER_MODEL"]) as file:
        described = {n: file[n] for n in file.files}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        assembled(described), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    x = described[name]
    # the net has its channels last
    if x.shape[1:] != tuple(json.loads(str(described["graph"]))["shape"]):
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))

    def steps(count):
        for _ in range(count):
            (found,) = session.run(None, {name: x})
        return float(np.abs(found).mean())

    return steps
