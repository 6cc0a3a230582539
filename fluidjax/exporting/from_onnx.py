"""Imports an ONNX file as a program if its ops have counterparts here; ops without one are all
reported at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import enum_of, name_of
from ..errors import FluidError, ParseError
from ..graph.program import Program, program_guard
from ..saved.files import read_file
from ..saved.values import put
from ..unique_name import guard
from .onnx_file import onnx
from .report import ExportError, ExportReport, gathered

NODES = 200_000  # a file with more is refused
# the limit for outputs of ops on small constants, which are computed during the import
FOLDED = frozenset(
    "Concat Gather Unsqueeze Squeeze Slice Cast Add Sub Mul Div Identity Transpose Reshape Shape Neg Less"
    " LessOrEqual Greater GreaterOrEqual Equal Not Where Max Min".split()
)


NO_OP = "there is no op for it"


class Node:
    """An ONNX node: names, and attributes as Python values."""

    def __init__(self, proto: Any, helper: Any) -> None:
        self.kind, self.inputs, self.outputs = proto.op_type, list(proto.input), list(proto.output)
        self.attrs = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def has(self, i: int) -> bool:
        return i < len(self.inputs) and bool(self.inputs[i])

    def text(self, name: str, otherwise: str) -> str:
        value = self.attrs.get(name, otherwise)
        return value.decode() if isinstance(value, bytes) else str(value)


class Lacks(Exception):
    """Raised for a node without a counterpart here."""


class Importer:
    """The program while it is built. constants: arrays by name, including those of ops on
    constants.
    """

    def __init__(self, package: Any, where: Path) -> None:
        self.package, self.where = package, where
        self.program = Program()
        self.constants: dict[str, np.ndarray] = {}
        self.values: dict[str, np.ndarray] = {}  # constants that ops read, which become persistable
        self.called: dict[str, str] = {}  # variables that stand for ONNX's names
        self.lacks: list[tuple[str, str, str, str]] = []
        self.missing: set[str] = set()  # outputs of nodes without an op

    @property
    def block(self) -> Any:
        """The current block."""
        return self.program.current_block()

    def var(self, name: str) -> Any:
        """The variable of a name, of this block or one around it. Raises KeyError."""
        found = self.block._find_var_recursive(self.read(name))
        if found is None:
            raise KeyError(name)
        return found

    def graph(self, graph: Any) -> None:
        """Append the ops of a graph whose inputs exist. Nodes without an op are recorded in
        `lacks`.
        """
        for tensor in graph.initializer:
            self.constants[tensor.name] = _array(self.package, tensor, self.where)
        for proto in graph.node:
            node = Node(proto, self.package.helper)
            if proto.op_type == "Constant" and "value" in node.attrs:
                self.constants[proto.output[0]] = _array(
                    self.package, node.attrs["value"], self.where
                )
                continue
            if _folded(self, self.package, proto, node):
                continue
            known = node.kind in RULES and proto.domain in ("", "ai.onnx")
            try:
                if not known:
                    raise Lacks(NO_OP)
                if self.missing.isdisjoint(node.inputs):
                    RULES[node.kind](self, node)
                    continue
                self.lacks += [(k, NO_OP, "", "") for k in _unknown(proto)]
            except Lacks as lack:
                self.lacks.append((node.kind, str(lack), "", ""))
            except (FluidError, LookupError, ValueError, TypeError, ArithmeticError) as error:
                self.lacks.append((node.kind, f"it is not understood: {error}", "", ""))
            self.missing.update(n for n in node.outputs if n)

    def known(self, node: Node, i: int, what: str) -> np.ndarray:
        """A constant input. Raises Lacks if it is computed."""
        if not node.has(i) or node.inputs[i] not in self.constants:
            raise Lacks(f"its {what} is computed while it runs")
        return self.constants[node.inputs[i]]

    def numbers(self, node: Node, i: int, attr: str) -> list[int] | None:
        """Integers that are an input in later opsets and an attribute in earlier ones."""
        if node.has(i):
            return [int(n) for n in self.known(node, i, attr).reshape(-1)]
        return None if attr not in node.attrs else [int(n) for n in node.attrs[attr]]

    def read(self, name: str) -> str:
        """A variable's name; a constant becomes a persistable one."""
        name = self.called.get(name, name)
        if name in self.constants and name not in self.values:
            array = self.constants[name]
            self.values[name] = array
            self.program.global_block().create_var(
                name=name, shape=array.shape, dtype=str(array.dtype), persistable=True, stop_gradient=True
            )  # fmt: skip
        return name

    def held(self, array: np.ndarray, wish: str) -> str:
        """A constant of our own."""
        name = self.new(wish)
        self.constants[name] = array
        return self.read(name)

    def new(self, wish: str) -> str:
        """A name that is not in use."""
        while wish in self.constants or self.block._find_var_recursive(wish) is not None:
            wish += "_"
        return wish

    def rank(self, name: str) -> int:
        return len(self.var(name).shape)

    def op(self, kind: str, ins: Mapping[str, Any], outs: Mapping[str, Any], **attrs: Any) -> str:
        """Append an op; its first output."""
        for name in _flat(outs):
            if self.block._find_var_recursive(name) is None:
                self.block.create_var(name=name)
        inputs = {s: [self.read(n) for n in _flat({s: v})] for s, v in ins.items()}
        self.block.append_op(type=kind, inputs=inputs, outputs={s: _flat({s: v}) for s, v in outs.items()}, attrs=attrs)  # fmt: skip
        return _flat(outs)[0]


def _flat(slots: Mapping[str, Any]) -> list[str]:
    return [n for v in slots.values() for n in (v if isinstance(v, list) else [v])]


Rule = Callable[[Importer, Node], None]
RULES: dict[str, Rule] = {}
UNARY = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Floor": "floor", "Ceil": "ceil", "Sin": "sin", "Cos": "cos", "Erf": "erf", "Reciprocal": "reciprocal",
    "Softsign": "softsign", "Softplus": "softplus", "Not": "logical_not", "Round": "round", "Identity": "assign",
    "Dropout": "assign",
}  # fmt: skip
BINARY = {
    "Add": "elementwise_add", "Sub": "elementwise_sub", "Mul": "elementwise_mul", "Div": "elementwise_div",
    "Max": "elementwise_max", "Min": "elementwise_min", "Pow": "elementwise_pow", "Less": "less_than",
    "Greater": "greater_than", "LessOrEqual": "less_equal", "GreaterOrEqual": "greater_equal", "And": "logical_and",
    "Or": "logical_or", "Xor": "logical_xor", "Equal": "equal", "MatMul": "matmul_v2",
}  # fmt: skip


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    def declare(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return declare


@rule(*UNARY)
def unary(m: Importer, n: Node) -> None:
    m.op(UNARY[n.kind], {"X": n.inputs[0]}, {"Out": n.outputs[0]})


@rule(*BINARY)
def binary(m: Importer, n: Node) -> None:
    if len(n.inputs) != 2:
        raise Lacks(f"it has {len(n.inputs)} inputs")
    m.op(BINARY[n.kind], {"X": n.inputs[0], "Y": n.inputs[1]}, {"Out": n.outputs[0]})


@rule("Neg")
def negative(m: Importer, n: Node) -> None:
    m.op("scale", {"X": n.inputs[0]}, {"Out": n.outputs[0]}, scale=-1.0)


@rule("LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Gelu")
def activation(m: Importer, n: Node) -> None:
    ins, outs = {"X": n.inputs[0]}, {"Out": n.outputs[0]}
    if n.kind == "LeakyRelu":
        m.op("leaky_relu", ins, outs, alpha=float(n.attrs.get("alpha", 0.01)))
    elif n.kind == "Elu":
        m.op("elu", ins, outs, alpha=float(n.attrs.get("alpha", 1.0)))
    elif n.kind == "HardSigmoid":
        slope, offset = float(n.attrs.get("alpha", 0.2)), float(n.attrs.get("beta", 0.5))
        m.op("hard_sigmoid", ins, outs, slope=slope, offset=offset)
    elif n.kind == "HardSwish":
        m.op("hard_swish", ins, outs)
    else:
        m.op("gelu", ins, outs, approximate=n.text("approximate", "none") == "tanh")


@rule("Clip")
def clip(m: Importer, n: Node) -> None:
    low, high = (
        float(m.known(n, i, "bound").reshape(-1)[0]) if n.has(i) else none
        for i, none in ((1, -math.inf), (2, math.inf))
    )
    m.op("clip", {"X": n.inputs[0]}, {"Out": n.outputs[0]}, min=low, max=high)


def _pads(n: Node, rank: int) -> dict[str, Any]:
    auto = n.text("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "VALID"):
        return {"paddings": [0] * rank, "padding_algorithm": auto.partition("_")[0]}
    if auto != "NOTSET":
        raise Lacks(f"its auto_pad is {auto}")
    pads = [int(p) for p in n.attrs.get("pads", [0] * 2 * rank)]
    return {"paddings": [p for i in range(rank) for p in (pads[i], pads[i + rank])]}


def _window(m: Importer, n: Node) -> int:
    rank = m.rank(n.inputs[0]) - 2
    if rank not in (2, 3):
        raise Lacks(f"its input has {rank + 2} axes")
    return rank


@rule("Conv", "ConvTranspose")
def conv(m: Importer, n: Node) -> None:
    rank = _window(m, n)
    kind = ("conv2d", "conv3d")[rank - 2] + ("_transpose" if n.kind == "ConvTranspose" else "")
    if any(n.attrs.get("output_padding", [])) or "output_shape" in n.attrs:
        raise Lacks("its output is padded")
    out = n.outputs[0] if not n.has(2) else f"{n.outputs[0]}.unbiased"
    ones = [1] * rank
    m.op(
        kind, {"Input": n.inputs[0], "Filter": n.inputs[1]}, {"Output": out},
        strides=[int(s) for s in n.attrs.get("strides", ones)],
        dilations=[int(d) for d in n.attrs.get("dilations", ones)], groups=int(n.attrs.get("group", 1)),
        **_pads(n, rank),
    )  # fmt: skip
    if n.has(2):
        m.op("elementwise_add", {"X": out, "Y": n.inputs[2]}, {"Out": n.outputs[0]}, axis=1)


@rule("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
def pool(m: Importer, n: Node) -> None:
    rank = _window(m, n)
    attrs: dict[str, Any] = {"pooling_type": "max" if "Max" in n.kind else "avg"}
    if n.kind.startswith("Global"):
        attrs |= {"global_pooling": True, "ksize": [1] * rank}
    else:
        if any(d != 1 for d in n.attrs.get("dilations", ())) or n.attrs.get("ceil_mode"):
            raise Lacks("its windows are dilated, or their number is rounded up")
        attrs |= {"ksize": [int(k) for k in n.attrs["kernel_shape"]], **_pads(n, rank)}
        attrs["strides"] = [int(s) for s in n.attrs.get("strides", [1] * rank)]
        attrs["exclusive"] = not n.attrs.get("count_include_pad", 0)
    if len(n.outputs) > 1:
        raise Lacks("the places of its maxima are asked for")
    m.op(("pool2d", "pool3d")[rank - 2], {"X": n.inputs[0]}, {"Out": n.outputs[0]}, **attrs)


@rule("BatchNormalization")
def batch_norm(m: Importer, n: Node) -> None:
    if n.attrs.get("training_mode"):
        raise Lacks("it trains")
    x, scale, bias, mean, variance = n.inputs
    y = n.outputs[0]
    outs = {
        "Y": y,
        "MeanOut": mean,
        "VarianceOut": variance,
        "SavedMean": f"{y}.mean",
        "SavedVariance": f"{y}.variance",
    }
    for name in (mean, variance):
        m.read(name)
    ins = {"X": x, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    m.op("batch_norm", ins, outs, is_test=True, epsilon=float(n.attrs.get("epsilon", 1e-5)))


@rule("LayerNormalization")
def layer_norm(m: Importer, n: Node) -> None:
    rank = m.rank(n.inputs[0])
    begin, y = int(n.attrs.get("axis", -1)) % rank, n.outputs[0]
    ins = {"X": n.inputs[0]}
    for slot, i in (("Scale", 1), ("Bias", 2)):
        if n.has(i):
            ins[slot] = m.held(m.known(n, i, slot).reshape(-1), f"{y}.{slot.lower()}")
    outs = {"Y": y, "Mean": f"{y}.mean", "Variance": f"{y}.variance"}
    m.op(
        "layer_norm", ins, outs, begin_norm_axis=begin, epsilon=float(n.attrs.get("epsilon", 1e-5))
    )


@rule("Gemm")
def gemm(m: Importer, n: Node) -> None:
    out = n.outputs[0]
    last = f"{out}.product" if n.has(2) else out
    alpha, beta = float(n.attrs.get("alpha", 1)), float(n.attrs.get("beta", 1))
    if alpha != 1 or (n.has(2) and beta != 1):
        raise Lacks("it scales its parts")
    transposes = {
        "trans_x": bool(n.attrs.get("transA", 0)),
        "trans_y": bool(n.attrs.get("transB", 0)),
    }
    m.op("matmul_v2", {"X": n.inputs[0], "Y": n.inputs[1]}, {"Out": last}, **transposes)
    if n.has(2):
        m.op("elementwise_add", {"X": last, "Y": n.inputs[2]}, {"Out": out})


@rule("Softmax", "LogSoftmax")
def softmax(m: Importer, n: Node) -> None:
    kind = "softmax" if n.kind == "Softmax" else "log_softmax"
    m.op(kind, {"X": n.inputs[0]}, {"Out": n.outputs[0]}, axis=int(n.attrs.get("axis", -1)))


def _shaped(m: Importer, n: Node, kind: str, **attrs: Any) -> None:
    m.op(
        kind, {"X": n.inputs[0]}, {"Out": n.outputs[0], "XShape": f"{n.outputs[0]}.shape"}, **attrs
    )


@rule("Reshape")
def reshape(m: Importer, n: Node) -> None:
    if n.attrs.get("allowzero"):
        raise Lacks("a 0 in its shape is a size")
    if n.inputs[1] in m.constants:
        _shaped(m, n, "reshape2", shape=[int(s) for s in m.constants[n.inputs[1]].reshape(-1)])
        return
    outs = {"Out": n.outputs[0], "XShape": f"{n.outputs[0]}.shape"}
    m.op("reshape2", {"X": n.inputs[0], "Shape": n.inputs[1]}, outs)


@rule("Flatten")
def flatten(m: Importer, n: Node) -> None:
    _shaped(m, n, "flatten2", axis=int(n.attrs.get("axis", 1)) % m.rank(n.inputs[0]))


@rule("Transpose")
def transpose(m: Importer, n: Node) -> None:
    order = n.attrs.get("perm") or range(m.rank(n.inputs[0]))[::-1]
    _shaped(m, n, "transpose2", axis=[int(a) for a in order])


@rule("Squeeze", "Unsqueeze")
def squeeze(m: Importer, n: Node) -> None:
    axes = m.numbers(n, 1, "axes") or []
    if n.kind == "Unsqueeze":
        rank = m.rank(n.inputs[0]) + len(axes)
        axes = sorted(a % rank for a in axes)
    _shaped(m, n, "squeeze2" if n.kind == "Squeeze" else "unsqueeze2", axes=axes)


@rule("Concat")
def concat(m: Importer, n: Node) -> None:
    m.op("concat", {"X": list(n.inputs)}, {"Out": n.outputs[0]}, axis=int(n.attrs["axis"]))


@rule("Split")
def split(m: Importer, n: Node) -> None:
    sections = m.numbers(n, 1, "split") or []
    attrs = {"sections": sections} if sections else {"num": len(n.outputs)}
    m.op(
        "split",
        {"X": n.inputs[0]},
        {"Out": list(n.outputs)},
        axis=int(n.attrs.get("axis", 0)),
        **attrs,
    )


@rule("Slice")
def cut(m: Importer, n: Node) -> None:
    ins, bounds = {"Input": n.inputs[0]}, {}
    most, count = 2**31 - 1, 1
    for i, what in ((1, "starts"), (2, "ends")):
        if n.has(i) and n.inputs[i] not in m.constants:
            ins[f"{what.capitalize()}Tensor"] = n.inputs[i]
            count = m.var(n.inputs[i]).shape[0]
            bounds[what] = [0] * count
        else:
            bounds[what] = [max(min(v, most), -most) for v in m.numbers(n, i, what) or []]
            count = len(bounds[what])
    axes = m.numbers(n, 3, "axes") or list(range(count))
    steps = m.numbers(n, 4, "steps") or []
    outs = {"Out": n.outputs[0]}
    if any(s != 1 for s in steps):
        m.op("strided_slice", ins, outs, axes=axes, strides=steps, **bounds)
    else:
        m.op("slice", ins, outs, axes=axes, **bounds)


@rule("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def reduce(m: Importer, n: Node) -> None:
    axes = m.numbers(n, 1, "axes")
    keep = bool(n.attrs.get("keepdims", 1))
    if not axes and (n.attrs.get("noop_with_empty_axes") or not keep):
        raise Lacks("it leaves no axis, or does nothing")
    kind = "reduce_" + n.kind.removeprefix("Reduce").lower()
    m.op(
        kind,
        {"X": n.inputs[0]},
        {"Out": n.outputs[0]},
        dim=axes or [0],
        keep_dim=keep,
        reduce_all=not axes,
    )


@rule("Cast")
def cast(m: Importer, n: Node) -> None:
    dtype = str(onnx().helper.tensor_dtype_to_np_dtype(int(n.attrs["to"])))
    before = m.var(n.inputs[0]).dtype
    ins, outs = {"X": n.inputs[0]}, {"Out": n.outputs[0]}
    m.op("cast", ins, outs, in_dtype=before, out_dtype=enum_of(dtype))


@rule("Gather")
def gather(m: Importer, n: Node) -> None:
    x, index, out = n.inputs[0], n.inputs[1], n.outputs[0]
    ranks = (m.rank(x), np.ndim(m.constants[index]) if index in m.constants else m.rank(index))
    axis, places = int(n.attrs.get("axis", 0)) % ranks[0], m.constants.get(index)
    if places is not None and not places.ndim:
        start = int(places)
        ends = [start + 1 if start != -1 else 2**31 - 1]
        attrs = {"axes": [axis], "starts": [start], "ends": ends, "decrease_axis": [axis]}
        m.op("slice", {"Input": x}, {"Out": out}, **attrs)
    elif places is not None and places.size and places.min() < 0:
        raise Lacks("its indices count from the end")
    elif axis == 0 and ranks[0] == 2 and ranks[1] > 0:
        m.op("lookup_table_v2", {"W": x, "Ids": index}, {"Out": out})
    elif ranks[1] < 2:
        m.op("gather", {"X": x, "Index": index}, {"Out": out}, axis=axis)
    else:
        flat, rows, sizes = (m.new(f"{out}.{wish}") for wish in ("flat", "rows", "sizes"))
        m.op("reshape2", {"X": index}, {"Out": flat, "XShape": f"{flat}.shape"}, shape=[-1])
        m.op("gather", {"X": x, "Index": flat}, {"Out": rows}, axis=axis)
        whole, inner = m.new(f"{out}.whole"), m.new(f"{out}.inner")
        m.op("shape", {"Input": x}, {"Out": whole})
        m.op("shape", {"Input": index}, {"Out": inner})
        parts = [inner]
        for name, (first, last) in {"before": (0, axis), "after": (axis + 1, ranks[0])}.items():
            if first < last:
                part = m.new(f"{out}.{name}")
                span = {"axes": [0], "starts": [first], "ends": [last]}
                m.op("slice", {"Input": whole}, {"Out": part}, **span)
                parts.insert(0 if name == "before" else len(parts), part)
        m.op("concat", {"X": parts}, {"Out": sizes}, axis=0)
        m.op("reshape2", {"X": rows, "Shape": sizes}, {"Out": out, "XShape": f"{out}.shape"})


@rule("Resize")
def resize(m: Importer, n: Node) -> None:
    if m.rank(n.inputs[0]) != 4 or not (n.has(2) or n.has(3)) or "axes" in n.attrs:
        raise Lacks("it is not an image resized by scales or sizes")
    mode, where = n.text("mode", "nearest"), n.text("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest" and where == "asymmetric" and n.text("nearest_mode", "") == "floor":
        kind, attrs = "nearest_interp_v2", {"interp_method": "nearest", "align_corners": False}
    elif mode == "linear" and where in (
        "half_pixel",
        "pytorch_half_pixel",
        "asymmetric",
        "align_corners",
    ):
        kind = "bilinear_interp_v2"
        attrs = {"interp_method": "bilinear", "align_corners": where == "align_corners"}
        attrs["align_mode"] = int(where == "asymmetric")
    else:
        raise Lacks(f"its mode is {mode}, {where}")
    ins = {"X": n.inputs[0]}
    if n.has(2):
        scales = m.known(n, 2, "scales").reshape(-1)
        if list(scales[:2]) != [1, 1]:
            raise Lacks("it resizes channels")
        attrs["scale"] = [float(s) for s in scales[2:]]
    else:
        last = {"axes": [0], "starts": [2], "ends": [4]}
        ins["OutSize"] = m.op("slice", {"Input": n.inputs[3]}, {"Out": m.new(f"{n.outputs[0]}.size")}, **last)  # fmt: skip
    m.op(kind, ins, {"Out": n.outputs[0]}, **attrs)


def load_onnx(path: str | Path, scope: Any = None) -> tuple[Program, list[str], list[str]]:
    """See :func:`fluidjax.load_onnx`."""
    package, where = onnx(), Path(path)
    model = package.ModelProto()
    try:
        data = read_file(where)
        model.ParseFromString(data)
    except Exception as error:  # protobuf has an exception class of its own
        raise ParseError(f"{str(where)!r} is not an ONNX file: {error}") from None
    graph = model.graph
    if not graph.node or len(graph.node) > NODES:
        raise ParseError(f"{str(where)!r} is not an ONNX model: it has {len(graph.node)} nodes")
    m = Importer(package, where)
    constants = {t.name for t in graph.initializer}
    own = "made"  # the prefix of our own names
    while own.encode() in data:
        own += "_"
    with program_guard(m.program, Program()), guard(own):
        feeds = [_fed(m, package, v, where) for v in graph.input if v.name not in constants]
        m.graph(graph)
    if m.lacks:
        raise ExportError(ExportReport(str(where), "Fluid", lacks=gathered(m.lacks), read=True))
    fetches = [m.read(v.name) for v in graph.output]
    if missing := [n for n in fetches if not m.block.has_var(n)]:
        raise ParseError(f"{str(where)!r}: no node computes its output {missing[0]!r}")
    put(m.values, scope)
    return m.program, feeds, fetches


def _unknown(proto: Any) -> list[str]:
    """The types of nodes without a rule in the graphs of a node."""
    found = [n for a in proto.attribute if a.HasField("g") for n in a.g.node]
    kinds = [n.op_type for n in found if n.op_type not in {*RULES, *FOLDED, "Constant"}]
    return [*kinds, *(k for n in found for k in _unknown(n))]


def _array(package: Any, tensor: Any, where: Path) -> np.ndarray:
    if tensor.data_location == tensor.EXTERNAL:
        raise ParseError(
            f"{str(where)!r} keeps {tensor.name!r} in another file; save it whole first: onnx.save(onnx.load(path), path)"
        )
    try:
        found: np.ndarray = package.numpy_helper.to_array(tensor)
    except Exception as error:  # NumPy may raise any error here
        raise ParseError(f"{str(where)!r}: {tensor.name!r} is damaged: {error}") from None
    return found


def _fed(m: Importer, package: Any, value: Any, where: Path) -> str:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise ParseError(f"{str(where)!r}: input {value.name!r} is not an array of a known rank")
    shape = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
    try:
        dtype = name_of(str(package.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    except (FluidError, KeyError) as error:
        raise ParseError(f"{str(where)!r}: input {value.name!r}: {error}") from None
    m.block.create_var(name=value.name, shape=shape, dtype=dtype, is_data=True, stop_gradient=True)
    return str(value.name)


def _folded(m: Importer, package: Any, proto: Any, node: Node) -> bool:
    """Compute outputs of nodes on constants if they are small, such as shapes and scales."""
    names: Sequence[str] = [n for n in node.inputs if n]
    if (
        node.kind not in FOLDED
        or not names
        or any(n not in m.constants or m.constants[n].size > 4096 for n in names)
    ):
        return False
    try:
        made = package.reference.ReferenceEvaluator(proto).run(
            None, {n: m.constants[n] for n in names}
        )
    except Exception:  # the reference takes no such inputs
        return False
    m.constants.update(zip(node.outputs, (np.asarray(v) for v in made), strict=False))
    return True
