"""A classification network of ours as an ONNX model, so that onnxruntime can be timed on the same
weights.

Only the handful of op types that ResNet-50 and MobileNet-v1 consist of. The networks are
channels-last; the ONNX model is channels-first throughout, which is what onnxruntime is fastest
with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import fluidjax as fluid

from .peers.onnx_side import assembled


def _pads(op: Any) -> list[int]:
    p = list(op.attr("paddings"))
    return [p[0], p[1], p[0], p[1]] if len(p) == 2 else [p[0], p[2], p[1], p[3]]


def conv(op: Any) -> tuple[str, list[str], dict[str, Any]]:
    attrs = {
        "strides": op.attr("strides"),
        "pads": _pads(op),
        "dilations": op.attr("dilations"),
        "group": op.attr("groups"),
    }
    return "Conv", [op.input("Input")[0], op.input("Filter")[0]], attrs


def norm(op: Any) -> tuple[str, list[str], dict[str, Any]]:
    names = [op.input(slot)[0] for slot in ("X", "Scale", "Bias", "Mean", "Variance")]
    return "BatchNormalization", names, {"epsilon": float(op.attr("epsilon"))}


def _pool(op: Any) -> tuple[str, list[str], dict[str, Any]]:
    if op.attr("pooling_type") != "max" or op.attr("ceil_mode"):
        raise NotImplementedError("only max pooling without ceil_mode is exported")
    return (
        "MaxPool",
        op.input("X"),
        {"kernel_shape": op.attr("ksize"), "strides": op.attr("strides"), "pads": _pads(op)},
    )


def _mean(op: Any) -> tuple[str, list[str], dict[str, Any]]:
    if list(op.attr("dim")) != [1, 2]:
        raise NotImplementedError("only the mean over an image is exported")
    return "ReduceMean", op.input("X"), {"axes": [2, 3], "keepdims": int(op.attr("keep_dim"))}


def _add(op: Any) -> tuple[str, list[str], dict[str, Any]]:
    return "Add", [op.input("X")[0], op.input("Y")[0]], {}


EXPORT: Mapping[str, Callable[[Any], tuple[str, list[str], dict[str, Any]]]] = {
    "conv2d": conv,
    "depthwise_conv2d": conv,
    "batch_norm": norm,
    "pool2d": _pool,
    "reduce_mean": _mean,
    "elementwise_add": _add,
    "relu": lambda op: ("Relu", op.input("X"), {}),
    "mul": lambda op: ("MatMul", [op.input("X")[0], op.input("Y")[0]], {}),
}
RESULT = {"conv2d": "Output", "depthwise_conv2d": "Output", "batch_norm": "Y"}


def describe(
    program: fluid.Program, scope: fluid.Scope, feed: str, fetch: str
) -> dict[str, np.ndarray]:
    """The model as arrays, of which peers/onnx_side.py makes an ONNX model: "graph" is JSON, the
    others its weights.

    Raises NotImplementedError for an op type that is not in EXPORT.
    """
    nodes, used = [], set()
    for op in program.global_block().ops:
        if op.type not in EXPORT:
            raise NotImplementedError(f"op '{op.type}' is not exported")
        kind, inputs, attrs = EXPORT[op.type](op)
        nodes.append((kind, inputs, op.output(RESULT.get(op.type, "Out"))[0], attrs))
        used.update(inputs)
    weights = {
        v.name: np.asarray(scope.get(v.name))
        for v in program.list_vars()
        if v.persistable and v.name in used
    }
    side = program.global_block().var(feed).shape[1]
    graph = {
        "nodes": nodes,
        "weights": list(weights),
        "feed": feed,
        "fetch": fetch,
        "shape": [3, side, side],
    }
    return {"graph": np.array(json.dumps(graph)), **{f"weight {n}": v for n, v in weights.items()}}


def export(program: fluid.Program, scope: fluid.Scope, feed: str, fetch: str) -> bytes:
    """The model's bytes; raises as describe does."""
    return assembled(describe(program, scope, feed, fetch))
