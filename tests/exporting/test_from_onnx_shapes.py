"""Nodes of ONNX on shapes, places and recurrences as programs, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.exporting import ExportError

from .beside import session

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.RandomState(0)
X = RNG.standard_normal((3, 4, 5)).astype("float32")


def written(path: Path, kind: str, inputs: dict[str, Any], fed: set[str], outputs: int, **attrs: Any) -> list[str]:  # fmt: skip
    """A file of one node. fed: inputs that are not constants, of open sizes."""
    helper, numpy = onnx.helper, onnx.numpy_helper
    outs = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(kind, list(inputs), outs, **attrs)

    def described(name: str) -> Any:
        dtype = helper.np_dtype_to_tensor_dtype(inputs[name].dtype)
        sizes: list[Any] = [f"{name}{i}" for i in range(inputs[name].ndim)]
        if kind in ("GatherND", "ScatterND"):  # which says how many axes are indexed
            sizes[-1] = inputs[name].shape[-1]
        return helper.make_tensor_value_info(name, dtype, sizes)

    graph = helper.make_graph(
        [node], "one", [described(n) for n in inputs if n in fed],
        [helper.make_empty_tensor_value_info(n) for n in outs],
        [numpy.from_array(v, n) for n, v in inputs.items() if n and n not in fed],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())
    return outs


def compared(path: Path, feed: dict[str, np.ndarray]) -> None:
    scope = fluid.Scope()
    program, feeds, fetches = fluid.load_onnx(path, scope)
    assert set(feeds) == set(feed)
    found = fluid.Executor().run(program, feed=feed, fetch_list=fetches, scope=scope)
    for got, want in zip(found, session(path).run(None, feed), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


LONG = np.int64
CASES: dict[str, tuple[str, dict[str, Any], set[str], int, dict[str, Any]]] = {
    "sizes": ("Shape", {"x": X}, {"x"}, 1, {}),
    "some sizes": ("Shape", {"x": X}, {"x"}, 1, {"start": -2, "end": -1}),
    "filled": ("ConstantOfShape", {"s": np.array([2, 3])}, {"s"}, 1,
               {"value": onnx.helper.make_tensor("v", onnx.TensorProto.INT64, [1], [7])}),
    "chosen": ("Where", {"c": X[:, :1] > 0, "x": X, "y": X[:1] * 2}, {"c", "x", "y"}, 1, {}),
    "expanded both ways": ("Expand", {"x": X[:, :1], "s": np.array([1, 4, 1])}, {"x", "s"}, 1, {}),
    "tiled": ("Tile", {"x": X, "n": np.array([2, 1, 3])}, {"x"}, 1, {}),
    "compressed": ("Compress", {"x": X, "c": np.array([True, False, True])}, {"x", "c"}, 1, {"axis": 1}),
    "compressed flat": ("Compress", {"x": X, "c": X.ravel()[:40] > 0}, {"x", "c"}, 1, {}),
    "best": ("TopK", {"x": X, "k": np.array([2])}, {"x"}, 2, {"axis": 1}),
    "least": ("TopK", {"x": X, "k": np.array([3])}, {"x"}, 2, {"largest": 0}),
    "greatest": ("ArgMax", {"x": X}, {"x"}, 1, {"axis": -1, "keepdims": 0}),
    "sums": ("CumSum", {"x": X, "a": np.array(1)}, {"x"}, 1, {"exclusive": 1, "reverse": 1}),
    "padded": ("Pad", {"x": X, "p": np.array([0, 1, 2, 3, 0, 0]), "v": np.float32(2)}, {"x"}, 1, {}),
    "modulo": ("Mod", {"x": np.array([7, -7, 5]), "y": np.array([3, 3, -3])}, {"x", "y"}, 1, {}),
    "contracted": ("Einsum", {"x": X, "y": X[0]}, {"x", "y"}, 1, {"equation": "bij,ij->b"}),
    "normalised": ("InstanceNormalization", {"x": X, "s": X[0, :, 0], "b": X[1, :, 0]}, {"x"}, 1, {}),
    "places of several axes": ("Gather", {"x": X, "i": np.array([[3, 0], [1, 1]])}, {"x", "i"}, 1, {"axis": 1}),
    "the last": ("Gather", {"x": X, "i": np.array(-1)}, {"x"}, 1, {"axis": 2}),
    "along": ("GatherElements", {"x": X, "i": RNG.randint(0, 4, (3, 2, 5))}, {"x", "i"}, 1, {"axis": 1}),
    "tuples of places": ("GatherND", {"x": X, "i": np.array([[0, 3], [2, 1]])}, {"x", "i"}, 1, {}),
    "put along": ("ScatterElements", {"x": X, "i": np.array([[[3, 0, -3, -1, 0]]]), "v": X[:1, :1] * 3},
                  {"x", "i", "v"}, 1, {"axis": 1}),
    "added along": ("ScatterElements", {"x": X, "i": RNG.randint(-4, 4, (3, 2, 5)), "v": X[:, :2] * 3},
                    {"x", "i", "v"}, 1, {"axis": 1, "reduction": "add"}),
    "multiplied along": ("ScatterElements", {"x": X, "i": RNG.randint(0, 3, (3, 4, 5)), "v": X + 2},
                         {"x", "i", "v"}, 1, {"reduction": "mul"}),
    "put": ("ScatterND", {"x": X, "i": np.array([[2], [0]]), "v": X[:2] * 3}, {"x", "i", "v"}, 1, {}),
    "put at tuples": ("ScatterND", {"x": X, "i": np.array([[[0, 3], [2, -1]]]), "v": X[:1, :2]}, {"x", "i", "v"}, 1, {}),
    "added at tuples": ("ScatterND", {"x": X, "i": np.array([[0, 3, 1], [2, 1, 0], [0, 3, 1]]), "v": X[0, 0, :3]},
                        {"x", "i", "v"}, 1, {"reduction": "add"}),
    "reshaped": ("Reshape", {"x": X, "s": np.array([0, -1, 2, 2])}, {"x", "s"}, 1, {}),
    "cut": ("Slice", {"x": X, "b": np.array([1, -3]), "e": np.array([3, 9]), "a": np.array([0, 2])},
            {"x", "b", "e"}, 1, {}),
    "an image of sizes": ("Resize", {"x": X[None], "roi": X[:0, 0, 0], "": None, "s": np.array([1, 3, 6, 9])},
                          {"x"}, 1, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    "equal": ("Equal", {"x": np.array([1, 2, 3]), "y": np.array([3, 2, 1])}, {"x", "y"}, 1, {}),
}  # fmt: skip


@pytest.mark.first(10)
@pytest.mark.parametrize("case", CASES)
def test_as_onnxruntime_computes_it(case: str, tmp_path: Path) -> None:
    kind, inputs, fed, outputs, attrs = CASES[case]
    written(tmp_path / "one.onnx", kind, inputs, fed, outputs, **attrs)
    compared(tmp_path / "one.onnx", {n: inputs[n] for n in fed})


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("kind", ["GRU", "GRU, reset late", "LSTM", "LSTM with peepholes"])
def test_recurrences_of_lengths(kind: str, direction: str, tmp_path: Path) -> None:
    """Rows behind the end of a sequence are zeros, and its last state is the one at its end."""
    gates, size = (3, 4) if kind.startswith("GRU") else (4, 4)
    inputs = {
        "x": RNG.standard_normal((6, 3, 5)).astype("float32"),
        "w": RNG.standard_normal((1, gates * size, 5)).astype("float32"),
        "r": RNG.standard_normal((1, gates * size, size)).astype("float32"),
        "b": RNG.standard_normal((1, 2 * gates * size)).astype("float32"),
        "lengths": np.array([4, 6, 1], np.int32),
        "h": RNG.standard_normal((1, 3, size)).astype("float32"),
    }
    fed, attrs = {"x", "lengths", "h"}, {"hidden_size": size, "direction": direction}
    if kind.startswith("LSTM"):
        inputs["c"], fed = RNG.standard_normal((1, 3, size)).astype("float32"), fed | {"c"}
    if "peepholes" in kind:
        inputs["p"] = RNG.standard_normal((1, 3 * size)).astype("float32")
    if "late" in kind:
        attrs["linear_before_reset"] = 1
    written(tmp_path / "r.onnx", kind[:4].strip(" ,"), inputs, fed, 1 + gates - 2, **attrs)
    compared(tmp_path / "r.onnx", {n: inputs[n] for n in fed})


@pytest.mark.parametrize(
    ("kind", "inputs", "attrs", "said"),
    [
        ("Gather", {"x": X, "i": np.array([0, -1])}, {}, "count from the end"),
        ("Pad", {"x": X, "p": np.array([0, 1, 0, 0, 1, 0])}, {"mode": "reflect"}, "reflect"),
        ("GatherND", {"x": X, "i": np.zeros((3, 1), LONG)}, {"batch_dims": 1}, "batch"),
        ("Mod", {"x": X, "y": X[0]}, {"fmod": 1}, "sign"),
    ],
)
def test_what_has_no_op_is_said(kind: str, inputs: Any, attrs: Any, said: str, tmp_path: Path) -> None:  # fmt: skip
    written(tmp_path / "one.onnx", kind, inputs, {"x"}, 1, **attrs)
    with pytest.raises(ExportError, match=said):
        fluid.load_onnx(tmp_path / "one.onnx", fluid.Scope())


@pytest.mark.parametrize("most", [4, 9])
def test_a_value_of_each_iteration(most: int, tmp_path: Path) -> None:
    """Of a loop that counts, and of one that ends itself; two values, of which one is carried too."""
    path = tmp_path / "loop.onnx"
    path.write_bytes(
        onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        looped (float[3] x) => (float[3] last, float[k, 3] every, int64[k] turns) {{
            most = Constant <value = int64 {{{most}}}> ()
            true = Constant <value = bool {{1}}> ()
            last, every, turns = Loop (most, true, x) <body = turn
                (int64 i, bool goes, float[3] before) => (bool still, float[3] after, float[3] kept, int64 turn) {{
                    two = Constant <value = float {{2.0}}> ()
                    bound = Constant <value = float {{50.0}}> ()
                    after = Mul (before, two)
                    sum = ReduceSum (after)
                    still = Less (sum, bound)
                    kept = Add (after, before)
                    turn = Identity (i)
                }}>
        }}""").SerializeToString()
    )
    compared(path, {"x": np.array([1, 0.5, 0.25], "float32")})
