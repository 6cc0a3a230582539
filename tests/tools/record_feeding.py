"""Records what Paddle 1.8.5 does with samples, readers, metrics, strategies and the housing table.

    python tests/tools/record_feeding.py    (in an environment with paddlepaddle 1.8.5)

writes tests/data/feeding_1.8.5.json; the inputs stand there too, so that the tests need nothing
from here.
"""

import json
import os
import random
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.dataset import uci_housing

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "feeding_1.8.5.json")

VARS = {
    "x": ([None, 2], "float32"),
    "y": ([None, 1], "int64"),
    "im": ([None, 1, 2, 2], "float32"),
    "b": ([None], "bool"),
    "words": ([None, 1], "int64", 1),
    "rows": ([None, 2], "float32", 1),
    "pages": ([None, 1], "int64", 2),
}
FEEDS = {
    "numbers": (["x", "y"], [[[1, 2], 3], [[4, 5], 6]]),
    "rows": (["x", "y"], [[[[1, 2]], [[3]]], [[[4, 5]], [[6]]]]),
    "whole floats": (["y"], [[[1.0]], [[2.0]]]),
    "flat image": (["im"], [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]),
    "image": (["im"], [[[[[0, 1], [2, 3]]]]]),
    "two rows a sample": (["x"], [[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]]]),
    "bools": (["b"], [[True], [0], [1]]),
    "none": (["x", "y"], []),
    "sequences": (["words", "y"], [[[1, 2, 3], 0], [[4], 1], [[5, 6], 0]]),
    "empty sequence": (["words"], [[[1, 2]], [[]], [[3]]]),
    "sequences of rows": (["rows", "words"], [[[[1, 2], [3, 4]], [7]], [[[5, 6]], [8, 9]]]),
    "columns": (["words"], [[[[1], [2]]], [[[3]]]]),
    "two levels": (["pages"], [[[[1, 2], [3]]], [[[4, 5, 6]]], [[[7], [], [8]]]]),
}


def value(tensor):
    array = np.array(tensor)
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "values": array.ravel().tolist(),
        "lod": tensor.lod(),
    }


def feeds():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made = {n: fluid.data(n, *v) for n, v in VARS.items()}
        result = {}
        for case, (names, samples) in FEEDS.items():
            fed = fluid.DataFeeder([made[n] for n in names], fluid.CPUPlace()).feed(
                [tuple(s) for s in samples]
            )
            result[case] = {
                "names": names,
                "samples": samples,
                "feed": {n: value(t) for n, t in fed.items()},
            }
    return result


def count(n, start=0):
    return lambda: iter(range(start, start + n))


def readers():
    r = paddle.reader
    random.seed(7)
    return {
        "shuffle": list(r.shuffle(count(10), 4)()),
        "map_readers": list(r.map_readers(lambda a, b: a * b, count(4), count(5, 1))()),
        "chain": list(r.chain(count(2), count(2, 5))()),
        "compose": [
            list(t) for t in r.compose(count(2), r.map_readers(lambda a: (a, -a), count(2)))()
        ],
        "compose unaligned": [
            list(t) for t in r.compose(count(2), count(3), check_alignment=False)()
        ],
        "buffered": list(r.buffered(count(5), 2)()),
        "firstn": list(r.firstn(count(5), 3)()),
        "xmap": list(r.xmap_readers(lambda v: v * v, count(8), 3, 4, True)()),
        "batch": list(paddle.batch(count(5), 2)()),
        "batch drop_last": list(paddle.batch(count(5), 2, drop_last=True)()),
    }


def metrics():
    rng = np.random.RandomState(0)
    probability = rng.rand(50, 1).round(3)
    label = rng.randint(0, 2, (50, 1))
    both = np.concatenate([1 - probability, probability], 1)
    precision, recall, auc = (
        fluid.metrics.Precision(),
        fluid.metrics.Recall(),
        fluid.metrics.Auc("auc"),
    )
    for m in (precision, recall):
        m.update(probability, label)
        m.update(probability[:20], label[:20])
    auc.update(both, label)
    accuracy, chunks, edit = (
        fluid.metrics.Accuracy(),
        fluid.metrics.ChunkEvaluator(),
        fluid.metrics.EditDistance("edit"),
    )
    accuracy.update(0.5, 4)
    accuracy.update(np.array([0.75]), 12)
    chunks.update(10, 8, 6)
    chunks.update(np.array([2]), np.array([4]), np.array([1]))
    edit.update(np.array([[1.0], [0.0], [3.0]]), 3)
    return {
        "probability": probability.ravel().tolist(),
        "label": label.ravel().tolist(),
        "precision": precision.eval(),
        "recall": recall.eval(),
        "auc": auc.eval(),
        "accuracy": float(accuracy.eval()[0]),
        "chunks": [float(np.ravel(v)[0]) for v in chunks.eval()],
        "edit": [float(v) for v in edit.eval()],
        "config": precision.get_config(),
    }


def strategies():
    result = {}
    for kind in (fluid.BuildStrategy, fluid.ExecutionStrategy):
        options = {}
        for name in sorted(
            n for n in dir(kind()) if not n.startswith("__") and not callable(getattr(kind(), n))
        ):
            default = getattr(kind(), name)
            plain = sorted(default) if isinstance(default, set) else default
            plain = plain if isinstance(plain, (bool, int, str, list, type(None))) else str(plain)
            wrong = []
            for value in ("a", 1.5, None, ["a"], [3], 1, True):
                try:
                    setattr(kind(), name, value)
                except Exception:
                    wrong.append(value)
            options[name] = {"default": plain, "refused": wrong}
        result[kind.__name__] = options
    return result


def housing():
    table = np.random.RandomState(1).rand(20, 14).round(4)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "housing.data")
        with open(path, "w") as f:
            f.write("\n".join(" ".join(str(v) for v in row) for row in table))
        uci_housing.feature_range = lambda *_: None
        uci_housing.load_data(path)
    return {
        "table": table.tolist(),
        "train": uci_housing.UCI_TRAIN_DATA.tolist(),
        "test": uci_housing.UCI_TEST_DATA.tolist(),
    }


class Exporter:
    """No array, but has one: as a DataFrame or a tensor of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None):
        return self.array if dtype is None else self.array.astype(dtype)


FORMS = {
    "array": lambda a: a,
    "exporter": Exporter,
    "list": lambda a: a.tolist(),
    "list of arrays": list,
}
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]


def fed():
    """{form: {declared dtype: the dtypes of what is fed that Executor.run takes}}."""
    exe, result = fluid.Executor(fluid.CPUPlace()), {}
    for form, make in FORMS.items():
        result[form] = {}
        for declared in ("float32", "float64", "int32", "int64"):
            with fluid.program_guard(fluid.Program(), fluid.Program()):
                out = fluid.layers.assign(fluid.data("x", [None, 2], declared))
                taken = result[form][declared] = []
                for dtype in DTYPES:
                    try:
                        got = exe.run(
                            feed={"x": make(np.array([[0, 1], [1, 0]], dtype))}, fetch_list=[out]
                        )[0]
                    except (TypeError, ValueError, RuntimeError):
                        continue
                    assert str(got.dtype) == declared and got.tolist() == [[0, 1], [1, 0]]
                    taken.append(dtype)
    return result


if __name__ == "__main__":
    recorded = {
        "fed": fed(),
        "feeds": feeds(),
        "readers": readers(),
        "metrics": metrics(),
        "strategies": strategies(),
        "housing": housing(),
    }
    with open(OUT, "w") as f:
        json.dump(recorded, f, indent=None, separators=(",", ":"), sort_keys=True)
        f.write("\n")
