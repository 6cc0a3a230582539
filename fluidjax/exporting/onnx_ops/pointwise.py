"""Functions of each element, of one array or of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...ops.math import LEAST_NORM
from ..graph import Graph
from ..rules import RULES, Op, rule
from ..values import Lacking, Value

# op type -> the equivalent ONNX op, and its attributes from the op's
ONE: dict[str, tuple[str, dict[str, str]]] = {
    "relu": ("Relu", {}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "exp": ("Exp", {}),
    "log": ("Log", {}),
    "sqrt": ("Sqrt", {}),
    "abs": ("Abs", {}),
    "floor": ("Floor", {}),
    "ceil": ("Ceil", {}),
    "sin": ("Sin", {}),
    "cos": ("Cos", {}),
    "tan": ("Tan", {}),
    "asin": ("Asin", {}),
    "acos": ("Acos", {}),
    "atan": ("Atan", {}),
    "sinh": ("Sinh", {}),
    "cosh": ("Cosh", {}),
    "erf": ("Erf", {}),
    "reciprocal": ("Reciprocal", {}),
    "sign": ("Sign", {}),
    "softsign": ("Softsign", {}),
    "logical_not": ("Not", {}),
    "selu": ("Selu", {"alpha": "alpha", "gamma": "scale"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "assign": ("", {}),
    "rnn_memory_helper": ("", {}),
    "share_data": ("", {}),
}


def _one(kind: str, attrs: dict[str, str]) -> Callable[[Graph, Op], Value]:
    def made(g: Graph, op: Op) -> Value:
        x = op["X"]
        if not kind:
            return x
        return g.like(kind, x, **{onnx: float(op.attr(ours)) for onnx, ours in attrs.items()})

    return made


for _type, (_kind, _attrs) in ONE.items():
    RULES[_type] = _one(_kind, _attrs)


def _ragged(rows: Value, x: Value) -> Value:
    return rows.ragged(x.lengths)


# op type -> its function of X
COMPOSED: dict[str, Callable[[Graph, Op, Value], Value]] = {
    "square": lambda g, op, x: g.times(x, x),
    "rsqrt": lambda g, op, x: g.like("Reciprocal", g.like("Sqrt", x)),
    "relu6": lambda g, op, x: clip(g, x, 0.0, op.attr("threshold")),
    "brelu": lambda g, op, x: clip(g, x, op.attr("t_min"), op.attr("t_max")),
    "logsigmoid": lambda g, op, x: g.like("Neg", g.like("Softplus", g.like("Neg", x))),
    "swish": lambda g, op, x: g.times(x, g.like("Sigmoid", g.times(x, op.attr("beta")))),
    "silu": lambda g, op, x: g.times(x, g.like("Sigmoid", x)),
    "mish": lambda g, op, x: g.times(x, g.like("Tanh", g.like("Softplus", x))),
    "tanh_shrink": lambda g, op, x: g.minus(x, g.like("Tanh", x)),
    "log1p": lambda g, op, x: g.like("Log", g.plus(x, 1.0)),
    "log2": lambda g, op, x: g.times(g.like("Log", x), 1 / math.log(2)),
    "log10": lambda g, op, x: g.times(g.like("Log", x), 1 / math.log(10)),
    "stanh": lambda g, op, x: g.times(
        g.like("Tanh", g.times(x, op.attr("scale_a"))), op.attr("scale_b")
    ),
    "soft_relu": lambda g, op, x: g.like(
        "Log",
        g.plus(g.like("Exp", clip(g, x, -op.attr("threshold"), op.attr("threshold"))), 1.0),
    ),
    "hard_swish": lambda g, op, x: g.over(
        g.times(x, clip(g, g.plus(x, op.attr("offset")), 0.0, op.attr("threshold"))),
        op.attr("scale"),
    ),
    "thresholded_relu": lambda g, op, x: g.where(
        within(g, x, op.attr("threshold")), g.number(op.attr("value") or 0, x), x
    ),
    "hard_shrink": lambda g, op, x: g.where(
        within(g, g.like("Abs", x), op.attr("threshold")), g.number(0, x), x
    ),
    "softshrink": lambda g, op, x: g.where(
        within(g, g.like("Abs", x), op.attr("lambda")),
        g.number(0, x),
        g.minus(x, g.times(g.like("Sign", x), op.attr("lambda"))),
    ),
    "increment": lambda g, op, x: g.plus(x, op.attr("step")),
    "label_smooth": lambda g, op, x: smoothed(g, op, x),
}


def clip(g: Graph, x: Value, low: float, high: float) -> Value:
    return g.like("Clip", x, g.number(low, x), g.number(high, x))


def over(g: Graph, x: Value, bound: float) -> Value:
    return g.binary("Greater", x, g.number(bound, x), "bool")


def within(g: Graph, x: Value, bound: float) -> Value:
    """Whether x is at most a bound; also true for nan, which is kept."""
    return g.binary("LessOrEqual", x, g.number(bound, x), "bool")


def smoothed(g: Graph, op: Op, x: Value) -> Value:
    share = float(op.attr("epsilon"))
    prior = op.get("PriorDist")
    if prior is not None:
        return g.plus(g.times(x, 1 - share), g.times(prior, share))
    if x.sizes[-1] < 0:
        raise Lacking("the number of classes is open")
    return g.plus(g.times(x, 1 - share), share / x.sizes[-1])


def _composed(build: Callable[[Graph, Op, Value], Value]) -> Callable[[Graph, Op], Value]:
    return lambda g, op: _ragged(build(g, op, op["X"]), op["X"])


for _type, _build in COMPOSED.items():
    RULES[_type] = _composed(_build)


@rule("leaky_relu")
def leaky_relu(g: Graph, op: Op) -> Value:
    x, alpha = op["X"], float(op.attr("alpha"))
    if alpha <= 1:
        return g.like("LeakyRelu", x, alpha=alpha)
    return g.binary("Max", x, g.times(x, alpha)).ragged(x.lengths)


@rule("elu")
def elu(g: Graph, op: Op) -> Value:
    if op.attr("alpha") < 0:
        raise Lacking("its alpha is negative")
    return g.like("Elu", op["X"], alpha=float(op.attr("alpha")))


@rule("softplus")
def softplus(g: Graph, op: Op) -> Value:
    x, beta, bound = op["X"], op.attr("beta") or 1.0, op.attr("threshold")
    if (beta, bound) in ((1.0, 20.0), (1.0, None)):
        return g.like("Softplus", x)
    scaled = g.times(x, beta)
    soft = g.over(g.like("Softplus", scaled), beta)
    return g.where(over(g, scaled, bound), x, soft).ragged(x.lengths)


@rule("round")
def rounded(g: Graph, op: Op) -> Value:
    if op.attr("decimals"):
        raise Lacking("it rounds to decimals", "scale, round and scale back")
    return g.like("Round", op["X"])


@rule("gelu")
def gelu(g: Graph, op: Op) -> Value:
    x = op["X"]
    if op.attr("approximate"):
        cubed = g.times(g.times(g.times(x, x), x), 0.044715)
        inner = g.like("Tanh", g.times(g.plus(x, cubed), math.sqrt(2 / math.pi)))
    else:
        inner = g.like("Erf", g.times(x, math.sqrt(0.5)))
    return g.times(g.times(x, g.plus(inner, 1.0)), 0.5).ragged(x.lengths)


@rule("prelu")
def prelu(g: Graph, op: Op) -> Value:
    x, alpha, mode = op["X"], op["Alpha"], op.attr("mode")
    if mode != "all" and op.attr("data_format") == "NHWC":
        raise Lacking("its channels are last")
    if mode == "all":
        alpha = g.reshape(alpha, [1] * x.rank)
    elif mode == "channel":
        alpha = g.reshape(alpha, [-1, *[1] * (x.rank - 2)])
    else:
        alpha = g.reshape(alpha, [1, *x.sizes[1:]])
    return g.like("PRelu", x, alpha)


@rule("pow")
def power(g: Graph, op: Op) -> Value:
    x = op["X"]
    factor = op.get("FactorTensor") or g.number(op.attr("factor"), x)
    return g.like("Pow", x, factor)


@rule("clip")
def clipped(g: Graph, op: Op) -> Value:
    x = op["X"]
    low, high = (
        g.reshape(v, []) if v is not None else g.number(op.attr(name), x)
        for v, name in ((op.get("Min"), "min"), (op.get("Max"), "max"))
    )
    return g.like("Clip", x, low, high)


@rule("clip_by_norm")
def clip_by_norm(g: Graph, op: Op) -> Value:
    x, most = op["X"], float(op.attr("max_norm"))
    norm = g.add("Sqrt", g.reduce("SumSquare", x, None, False), shape=())
    scale = g.where(over(g, norm, most), g.over(g.number(most, x), norm), g.number(1, x))
    return g.times(x, scale)


@rule("scale")
def scale(g: Graph, op: Op) -> Value:
    op.refuse("BiasTensor")
    x, bias = op["X"], float(op.attr("bias"))
    factor = op.get("ScaleTensor") or float(op.attr("scale"))
    made = x
    if bias and not op.attr("bias_after_scale"):
        made = g.plus(made, bias)
    if factor != 1.0:
        made = g.times(made, factor)
    if bias and op.attr("bias_after_scale"):
        made = g.plus(made, bias)
    return _ragged(made, x)


@rule("cast")
def cast(g: Graph, op: Op) -> Value:
    from ...base.dtypes import name_of

    target = str(name_of(op.attr("out_dtype")))
    return g.cast(op["X"], target)


@rule("dropout")
def dropout(g: Graph, op: Op) -> dict[str, Any]:
    x = op["X"]
    if not op.attr("is_test"):
        if op.attr("dropout_prob"):
            raise Lacking(
                "it drops at random", "export what predicts: clone(for_test=True), or the"
                " inference pass"
            )  # fmt: skip
        return {"Out": x}
    if op.attr("dropout_implementation") == "upscale_in_train" or not op.attr("dropout_prob"):
        return {"Out": x}
    return {"Out": g.times(x, 1 - float(op.attr("dropout_prob"))).ragged(x.lengths)}


@rule("isfinite_v2", "isnan_v2", "isinf_v2")
def finite_each(g: Graph, op: Op) -> Value:
    x = op["X"]
    nan = g.add("IsNaN", x, dtype="bool", shape=x.shape)
    if op.type == "isnan_v2":
        return nan
    infinite = g.add("IsInf", x, dtype="bool", shape=x.shape)
    if op.type == "isinf_v2":
        return infinite
    return g.like("Not", g.binary("Or", nan, infinite))


@rule("isfinite", "isnan", "isinf")
def finite_all(g: Graph, op: Op) -> Value:
    x = op["X"]
    nan = g.add("IsNaN", x, dtype="bool", shape=x.shape)
    infinite = g.add("IsInf", x, dtype="bool", shape=x.shape)
    bad = {"isnan": nan, "isinf": infinite}.get(op.type) or g.binary("Or", nan, infinite)
    count = g.reduce("Max", g.cast(bad, "int32"), None, False)
    found = g.cast(g.reshape(count, [1]), "bool")
    return g.like("Not", found) if op.type == "isfinite" else found


# two arrays


def aligned(g: Graph, x: Value, y: Value, axis: int) -> tuple[Value, Value]:
    """x and y such that NumPy's broadcasting is Fluid's: y along x's axes from `axis` on."""
    if x.rank < y.rank:
        x, y = aligned(g, y, x, axis)
        return y, x
    if x.rank == y.rank or y.rank == 0:
        return x, y
    axis = x.rank - y.rank if axis == -1 else axis
    behind = x.rank - axis - y.rank
    if behind < 0:  # Fluid lets y's last sizes of 1 exceed x's axes
        y = g.squeeze(y, range(y.rank + behind, y.rank))
    elif behind:
        y = g.unsqueeze(y, range(y.rank, y.rank + behind))
    return x, y


ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow"}  # fmt: skip
COMPARISONS = {"less_than": "Less", "greater_than": "Greater", "less_equal": "LessOrEqual",
               "greater_equal": "GreaterOrEqual"}  # fmt: skip
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def _pair(kind: str, dtype: str | None) -> Callable[[Graph, Op], Value]:
    def made(g: Graph, op: Op) -> Value:
        x, y = aligned(g, op["X"], op["Y"], -1 if op.attr("axis") is None else op.attr("axis"))
        return g.binary(kind, x, y, dtype).ragged(op["X"].lengths or op["Y"].lengths)

    return made


for _name, _kind in ARITHMETIC.items():
    RULES[f"elementwise_{_name}"] = _pair(_kind, None)
for _name, _kind in (COMPARISONS | LOGIC).items():
    RULES[_name] = _pair(_kind, "bool")


@rule("elementwise_max", "elementwise_min")
def extreme(g: Graph, op: Op) -> Value:
    """Y if either is nan, as in Fluid."""
    x, y = aligned(g, op["X"], op["Y"], op.attr("axis"))
    kind = "Max" if op.type == "elementwise_max" else "Min"
    return g.binary(kind, x, y).ragged(op["X"].lengths)


@rule("equal", "not_equal")
def equal(g: Graph, op: Op) -> Value:
    """For floats, whether they differ by less than 1e-8, as in Fluid."""
    x, y = aligned(g, op["X"], op["Y"], op.attr("axis"))
    if x.is_float:
        made = g.like("Less", g.like("Abs", g.minus(x, y)), g.number(1e-8, x))
        made = Value(made.name, "bool", made.shape)
    else:
        made = g.binary("Equal", x, y, "bool")
    made = made if op.type == "equal" else g.like("Not", made)
    return made.ragged(op["X"].lengths)


@rule("elementwise_mod")
def modulo(g: Graph, op: Op) -> Value:
    x, y = aligned(g, op["X"], op["Y"], op.attr("axis"))
    left = g.add("Mod", x, y, shape=g.binary("Mod", x, y).shape, fmod=1)
    if not x.is_float:
        return left
    return g.add("Mod", g.plus(y, left), y, shape=left.shape, fmod=1)


@rule("elementwise_floordiv")
def floor_divided(g: Graph, op: Op) -> Value:
    x, y = aligned(g, op["X"], op["Y"], op.attr("axis"))
    return g.binary("Div", x, y)


@rule("minus")
def minus(g: Graph, op: Op) -> Value:
    return g.minus(op["X"], op["Y"])


@rule("sum")
def total(g: Graph, op: Op) -> Value:
    parts = op.all("X")
    made = parts[0]
    for part in parts[1:]:
        made = g.plus(made, part)
    return made.ragged(parts[0].lengths)


@rule("where")
def where(g: Graph, op: Op) -> Value:
    return g.where(op["Condition"], op["X"], op["Y"])


@rule("cos_sim")
def cos_sim(g: Graph, op: Op) -> dict[str, Value]:
    x, y = op["X"], op["Y"]

    def norm(v: Value) -> Value:
        found = g.like("Sqrt", g.reduce("Sum", g.times(v, v), range(1, v.rank), False))
        return g.binary("Max", found, g.number(LEAST_NORM, v))

    x_norm, y_norm = (g.unsqueeze(norm(v), [1]) for v in (x, y))
    product = g.unsqueeze(g.reduce("Sum", g.times(x, y), range(1, x.rank), False), [1])
    out = g.over(product, g.times(x_norm, y_norm)).ragged(x.lengths)
    return {"Out": out, "XNorm": x_norm, "YNorm": y_norm}


@rule("square_error_cost")
def squared_error(g: Graph, op: Op) -> Value:
    gap = g.minus(op["X"], op["Y"])
    return g.times(gap, gap).ragged(op["X"].lengths)


@rule("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy(g: Graph, op: Op) -> Value:
    op.refuse("pos_weight")
    x, label, ignore = op["X"], op["Label"], op.attr("ignore_index")
    size = g.like("Log", g.plus(g.like("Exp", g.like("Neg", g.like("Abs", x))), 1.0))
    loss = g.plus(g.minus(g.like("Relu", x), g.times(x, label)), size)
    ignored = g.binary("Equal", label, g.number(ignore, label), "bool")
    loss = g.where(ignored, g.number(0, x), loss)
    if op.attr("normalize"):
        apart = g.like("Abs", g.minus(label, float(ignore)))
        counted = g.cast(over(g, apart, 1e-6), x.dtype)
        count = g.reduce("Sum", counted, None, False)
        loss = g.over(loss, g.binary("Max", count, g.number(1, x)))
    return loss.ragged(x.lengths)
