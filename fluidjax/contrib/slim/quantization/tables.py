"""The quantised op types, their data slots, and the names of ops and variables that quantise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....errors import FluidTypeError, FluidValueError, near
from ....graph.ir_graph import IrGraph, node_named

# the last is Paddle 2's
WITH_WEIGHTS = ("conv2d", "depthwise_conv2d", "mul", "matmul", "matmul_v2")
CONVOLUTIONS = ("conv2d", "depthwise_conv2d")
WITHOUT_WEIGHTS = (
    "pool2d", "elementwise_add", "concat", "softmax", "argmax", "transpose", "equal", "gather", "greater_equal", "greater_than",
    "less_equal", "less_than", "mean", "not_equal", "reshape", "reshape2", "bilinear_interp", "nearest_interp",
    "trilinear_interp", "slice", "squeeze", "elementwise_sub", "mul", "matmul", "relu", "relu6", "leaky_relu", "tanh", "swish",
    "matmul_v2",
)  # fmt: skip
OUT_SCALES = (
    "conv2d", "depthwise_conv2d", "mul", "matmul", "relu", "leaky_relu", "relu6", "sigmoid", "tanh", "prelu", "swish", "softmax",
    "batch_norm", "elementwise_add", "pool2d", "reshape2", "transpose2", "concat", "elementwise_mul", "scale",
)  # fmt: skip
QUANTISE = (
    "fake_quantize_abs_max", "fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max",
    "fake_channel_wise_quantize_abs_max",
)  # fmt: skip
RESTORE = ("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs")
_PAIRS = (
    "matmul matmul_v2 mul elementwise_add elementwise_sub elementwise_mul equal greater_equal"
    " greater_than less_equal less_than not_equal"
)
_DATA = {  # input slots and the output slot of ops other than X -> Out
    **dict.fromkeys(_PAIRS.split(), (("X", "Y"), "Out")),
    **dict.fromkeys(CONVOLUTIONS, (("Input", "Filter"), "Output")),
    "slice": (("Input",), "Out"),
    "batch_norm": (("X",), "Y"),
}
# values of attribute quantization_type
WITH_WEIGHT, WITHOUT_WEIGHT = "qat_with_weight", "qat_without_weight"
_ENDS = (".quantized.dequantized", ".quantized", ".dequantized", ".scale")


def inputs_of(op: Any, kind: str) -> list[str]:
    """The names of the data, including parameters, of an op of type `kind` (an IrOpNode or an
    Operator).
    """
    return [n for slot in _DATA.get(kind, (("X",), ""))[0] for n in op.input(slot)]


def outputs_of(op: Any, kind: str) -> list[str]:
    """The names of its outputs."""
    return list(op.output(_DATA.get(kind, ((), "Out"))[1]))


def original(name: str) -> str:
    """The original variable of a quantised one."""
    return next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), name)


def all_data(graph: IrGraph, op: Any) -> bool:
    """Whether none of an op's inputs is persistable, as parameters are."""
    return not any(node_named(op.inputs, name).persistable() for name in inputs_of(op, op.name()))


def skipped(op: Any, pattern: str | list[str]) -> bool:
    """Whether an op is in a name scope with (one of) the pattern(s), or marked."""
    if op.op().has_attr("skip_quant") and op.op().attr("skip_quant"):
        return True
    scope = op.op().attr("op_namescope") if op.op().has_attr("op_namescope") else ""
    return any(p in scope for p in ([pattern] if isinstance(pattern, str) else pattern))


def noted(op: Any, kind: str) -> bool:
    """Whether a pass has set the op's attribute quantization_type to this value."""
    return op.op().has_attr("quantization_type") and op.op().attr("quantization_type") == kind


def checked_graph(graph: Any, what: str) -> IrGraph:
    """Raises FluidTypeError for other than an IrGraph."""
    if not isinstance(graph, IrGraph):
        raise FluidTypeError(
            f"{what}.apply takes an IrGraph, IrGraph(core.Graph(program.desc)), not"
            f" {type(graph).__name__}"
        )
    return graph


def checked_types(kinds: Iterable[str], known: Iterable[str]) -> list[str]:
    """Raises FluidValueError for a type of op that cannot be quantised."""
    known, listed = tuple(known), [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in listed:
        if kind not in known:
            raise FluidValueError(
                f"quantizable_op_type: {kind!r} is not quantised{near(kind, known)};"
                f" {', '.join(known)} are"
            )
    return listed


def checked_choice(what: str, value: Any, known: Iterable[Any]) -> Any:
    """Raises FluidValueError for any other value."""
    known = tuple(known)
    if value not in known:
        raise FluidValueError(f"{what} is one of {', '.join(map(repr, known))}, not {value!r}")
    return value
