"""A model that Paddle saved, with its channels first, as an ONNX model for feeds of one shape
(onnx_peer.py has the form).

Only the op types that the OCR models consist of. What is computed from shapes alone becomes a
constant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from fluidjax.lower.step import Step

from .fusing import Predictor
from .onnx_peer import conv, norm

Node = tuple[str, list[str], str, dict[str, Any]]


class _Graph:
    """The nodes, and the weights that they read. shapes: of every value that an op computes."""

    def __init__(
        self, weights: dict[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.nodes: list[Node] = []
        self.weights, self.shapes = weights, shapes

    def add(self, kind: str, inputs: Sequence[str], out: str, **attrs: Any) -> str:
        self.nodes.append((kind, list(inputs), out, attrs))
        return out

    def constant(self, name: str, value: Any) -> str:
        self.weights[name] = np.asarray(value)
        return name

    def like(self, name: str, rank: int, axis: int) -> str:
        """A weight as it is added to a value of `rank` axes from `axis` on: Fluid's broadcasting."""
        value = self.weights.get(name)
        if value is None or axis < 0 or value.ndim in (0, rank):
            return name
        return self.constant(
            f"{name} along {axis} of {rank}",
            value.reshape(*value.shape, *(1,) * (rank - axis - value.ndim)),
        )


def _out(op: Any, slot: str = "Out") -> str:
    found: str = op.output(slot)[0]
    return found


def _convolution(g: _Graph, op: Any) -> None:
    kind, inputs, attrs = conv(op)
    g.add(kind, inputs, _out(op, "Output"), **attrs)


def _transposed(g: _Graph, op: Any) -> None:
    _, inputs, attrs = conv(op)
    g.add("ConvTranspose", inputs, _out(op, "Output"), **attrs)


def _batch_norm(g: _Graph, op: Any) -> None:
    kind, inputs, attrs = norm(op)
    g.add(kind, inputs, _out(op, "Y"), **attrs)


def _binary(kind: str) -> Callable[[_Graph, Any], None]:
    def made(g: _Graph, op: Any) -> None:
        rank = len(g.shapes[_out(op)])
        g.add(kind, [op.input("X")[0], g.like(op.input("Y")[0], rank, op.attr("axis"))], _out(op))

    return made


def _unary(kind: str, **attrs: Any) -> Callable[[_Graph, Any], None]:
    return lambda g, op: g.add(kind, op.input("X"), _out(op), **attrs) and None


def _gate(kind: str, **attrs: Any) -> Callable[[_Graph, Any], None]:
    """x times a gate of x."""

    def made(g: _Graph, op: Any) -> None:
        g.add(
            "Mul",
            [op.input("X")[0], g.add(kind, op.input("X"), _out(op) + " gate", **attrs)],
            _out(op),
        )

    return made


def _hard_sigmoid(g: _Graph, op: Any) -> None:
    g.add("HardSigmoid", op.input("X"), _out(op), alpha=op.attr("slope"), beta=op.attr("offset"))


def _pool(g: _Graph, op: Any) -> None:
    whole = op.attr("global_pooling") or (op.attr("adaptive") and list(op.attr("ksize")) == [1, 1])
    kind = "MaxPool" if op.attr("pooling_type") == "max" else "AveragePool"
    if whole:
        g.add("Global" + kind, op.input("X"), _out(op))
        return
    if op.attr("adaptive") or op.attr("ceil_mode"):
        raise NotImplementedError(
            "adaptive pooling to more than one cell is not exported, nor is ceil_mode"
        )
    pads = [*op.attr("paddings"), *op.attr("paddings")]
    g.add(
        kind,
        op.input("X"),
        _out(op),
        kernel_shape=op.attr("ksize"),
        strides=op.attr("strides"),
        pads=pads,
    )


def _nearest(g: _Graph, op: Any) -> None:
    scales = g.constant(_out(op) + " scales", np.array([1, 1, *op.attr("scale")], np.float32))
    rule = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    g.add("Resize", [op.input("X")[0], "", scales], _out(op), **rule)


def _reshaped(g: _Graph, op: Any) -> None:
    shape = g.constant(_out(op) + " shape", np.array(g.shapes[_out(op)], np.int64))
    g.add("Reshape", [op.input("X")[0], shape], _out(op))


def _layer_norm(g: _Graph, op: Any) -> None:
    inputs = [op.input(slot)[0] for slot in ("X", "Scale", "Bias")]
    g.add(
        "LayerNormalization",
        inputs,
        _out(op, "Y"),
        axis=op.attr("begin_norm_axis"),
        epsilon=op.attr("epsilon"),
    )


def _product(g: _Graph, op: Any) -> None:
    if op.attr("trans_x") or op.attr("trans_y"):
        raise NotImplementedError("a product that transposes is not exported")
    g.add("MatMul", [op.input("X")[0], op.input("Y")[0]], _out(op))


def _slice(g: _Graph, op: Any) -> None:
    parts = {
        n: g.constant(f"{_out(op)} {n}", np.array(op.attr(n), np.int64))
        for n in ("starts", "ends", "axes")
    }
    cut = g.add("Slice", [op.input("Input")[0], *parts.values()], _out(op) + " cut")
    shape = g.constant(_out(op) + " shape", np.array(g.shapes[_out(op)], np.int64))
    g.add("Reshape", [cut, shape], _out(op))


def _scale(g: _Graph, op: Any) -> None:
    if op.attr("bias"):
        raise NotImplementedError("scale with a bias is not exported")
    g.add(
        "Mul",
        [op.input("X")[0], g.constant(_out(op) + " scale", np.float32(op.attr("scale")))],
        _out(op),
    )


EXPORT: Mapping[str, Callable[[_Graph, Any], None]] = {
    "conv2d": _convolution, "depthwise_conv2d": _convolution, "conv2d_transpose": _transposed, "batch_norm": _batch_norm,
    "elementwise_add": _binary("Add"), "elementwise_mul": _binary("Mul"), "relu": _unary("Relu"), "sigmoid": _unary("Sigmoid"),
    "hard_swish": _gate("HardSigmoid", alpha=1 / 6, beta=0.5), "swish": _gate("Sigmoid"), "hard_sigmoid": _hard_sigmoid, "pool2d": _pool,
    "nearest_interp_v2": _nearest, "concat": lambda g, op: g.add("Concat", op.input("X"), _out(op), axis=op.attr("axis")) and None,
    "reshape2": _reshaped, "flatten_contiguous_range": _reshaped, "squeeze2": _reshaped, "layer_norm": _layer_norm, "matmul_v2": _product,
    "transpose2": lambda g, op: g.add("Transpose", op.input("X"), _out(op), perm=op.attr("axis")) and None,
    "softmax": lambda g, op: g.add("Softmax", op.input("X"), _out(op), axis=op.attr("axis")) and None,
    "slice": _slice, "scale": _scale, "dropout": _unary("Identity"), "assign": _unary("Identity"),
}  # fmt: skip
SKIPPED = ("feed", "fetch", "fill_constant", "shape")


def describe(net: Predictor) -> dict[str, np.ndarray]:
    """As onnx_peer.describe, of a saved model. Raises NotImplementedError for what is not exported."""
    ops = [op for op in net.program.global_block().ops if op.type not in SKIPPED]
    ((feed, x),) = net.feed.items()
    names = list(dict.fromkeys(n for op in ops for n in op.output_arg_names))
    step = Step(net.program.desc, tuple(names))
    weights = {n: np.asarray(net.scope.get(n)) for n in step.reads}
    types = {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in weights.items()}
    _, found = jax.eval_shape(
        lambda state, fed: step(state, fed, jax.random.key(0)),
        types,
        {feed: jax.ShapeDtypeStruct(x.shape, x.dtype)},
    )
    graph = _Graph(weights, {n: tuple(v.shape) for n, v in zip(names, found, strict=True)})
    for op in ops:
        if op.type not in EXPORT:
            raise NotImplementedError(f"op '{op.type}' is not exported")
        if op.type == "slice" and not any(
            n in graph.shapes or n == feed for n in op.input("Input")
        ):
            continue  # of a shape
        EXPORT[op.type](graph, op)
    read = {n for _, inputs, _, _ in graph.nodes for n in inputs}
    used = {n: v for n, v in graph.weights.items() if n in read}
    told = {
        "nodes": graph.nodes,
        "weights": list(used),
        "feed": feed,
        "fetch": net.fetch[0],
        "shape": list(x.shape[1:]),
        "opset": 17,
    }
    return {"graph": np.array(json.dumps(told)), **{f"weight {n}": v for n, v in used.items()}}
