"""onnxruntime on a net that fluid_side.py exported, with as many threads as PEER_THREADS says."""

import os

import numpy as np


def load(side):
    import onnxruntime

    return "onnxruntime " + onnxruntime.__version__


def make(case):
    import onnxruntime

    folder = os.environ["PEER_MODEL"]
    with np.load(os.path.join(folder, "feed.npz")) as file:
        feed = {n: file[n] for n in file.files}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("PEER_THREADS", "1"))
    options.inter_op_num_threads = 1
    path = os.path.join(folder, "model.onnx")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def steps(count):
        for _ in range(count):
            found = session.run(None, feed)[0]
        return float(np.abs(found).mean())

    return steps
