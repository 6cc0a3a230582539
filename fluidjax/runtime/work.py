"""About how long a step takes, and XLA to compile it, told from its program before anything runs: for decisions, which no figure has to
be exact for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..ir import walk
from ..ir.desc import OpDesc, VarDesc
from ..lod_tensor import LoDTensor
from ..lower.step import Step
from .dear import DEAR

FLOPS_A_SECOND = 30e9  # of convolutions and products, on a core or two
OP_SECONDS = 30e-6  # an op besides its products
COMPILE_SECONDS = 0.03  # about what XLA takes for an op
LEAST_BATCH = 8  # samples that a step surely has where its time matters
SLOW_ELEMENT = 4e-9  # seconds that a loop without vectors takes longer for an element that it writes
SLOW_TAP = 20e-9  # and a pool for each cell of a window
# Of these a library's loops are the faster ones, in nets of dense convolutions. Optimised steps of 32x32 images, batch 64 (ResNets 128 and
# 32), CPU ms on one core of an AMD EPYC, XLA's loops and the library's (jax 0.10.2, 2026-11-26): ResNet-32 1,012 and 755, ResNet-18 721 and
# 677, a ResNet of bottlenecks 334 and 320, a DenseNet 363 and 325. Otherwise: a net of leaky_relu 216 and 287, transformer of 4 layers 572
# and 752, inceptions 190 and 242, depthwise convolutions 708 and 1,254.
SUITED = ("batch_norm", "relu", "elementwise_add", "sum", "concat")
SUITED_SHARE = 0.75
RECURRENT = {"gru": ("Weight",), "lstm": ("Weight",), "lstmp": ("Weight", "ProjWeight"), "cudnn_lstm": ("W",)}  # and their weights


def compiling_seconds(step: Step) -> float:
    """What XLA takes for the optimised executable of a step."""
    return COMPILE_SECONDS * len(ops_within(step)) + dear_seconds(step)


def dear_seconds(step: Step) -> float:
    """What it takes for those ops that are long to compile by themselves, gradients included."""
    return sum(DEAR.get(op.type, 0) for op in ops_within(step))


def ops_within(step: Step) -> list[OpDesc]:
    """The ops of a step, and those of the blocks that they run."""
    blocks = walk.nested(step.desc, [i for op in step.ops for i in op.blocks])
    return [*step.ops, *(op for i in blocks for op in step.desc.blocks[i].ops)]


def seconds(step: Step, batch: int) -> float:
    """Of one step with so many samples; of sequences, rows."""
    return products_seconds(step, batch) + recurrent(step) * batch / FLOPS_A_SECOND + len(step.ops) * OP_SECONDS


def recurrent(step: Step) -> float:
    """Floating-point operations of the products within recurrences for one row of their sequences, gradients included."""
    vars = step.desc.blocks[0].vars
    weights = [(op, slot) for op in step.ops for slot in RECURRENT.get(op.type, ())]
    forward = sum(2 * math.prod(_shape(op.input(slot), vars)) for op, slot in weights)
    return forward * (3 if any(f"{kind}_grad" == op.type for op in step.ops for kind in RECURRENT) else 1)


def products_seconds(step: Step, batch: int) -> float:
    """Of its convolutions and matrix products."""
    return products(step) * batch / FLOPS_A_SECOND


def products(step: Step) -> float:
    """Floating-point operations of the convolutions and matrix products for one sample, gradients included."""
    vars = step.desc.blocks[0].vars
    forward = sum(flops(op, vars) for op in step.ops)
    return forward * (3 if any(op.type.endswith("_grad") for op in step.ops) else 1)


def slow_loops_seconds(step: Step, batch: int) -> float:
    """By how much a step takes longer whose loops over elements are compiled without vectors; convolutions and products have none."""
    vars = step.desc.blocks[0].vars
    return sum(_slow_loop(op, vars, batch) for op in step.ops)


def suits_library(step: Step, batch: int) -> bool:
    """Whether a library runs even an optimised step's loops over elements faster: most of them are of kinds for which that was measured."""
    vars = step.desc.blocks[0].vars
    if any(op.type.startswith(("conv2d", "depthwise")) and _is_depthwise(op, vars) for op in step.ops):  # made of such loops itself
        return False
    suit = (op for op in step.ops if op.type.removesuffix("_grad") in SUITED)
    return sum(_slow_loop(op, vars, batch) for op in suit) > SUITED_SHARE * slow_loops_seconds(step, batch)


def _is_depthwise(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    weight = _shape(op.input("Filter"), vars)
    return op.attrs.get("groups", 1) > 1 and weight[1:2] == (1,)


def _slow_loop(op: OpDesc, vars: Mapping[str, VarDesc], batch: int) -> float:
    if flops(op, vars) or op.type.startswith(("conv", "mul_grad", "matmul_grad", "reshape")):
        return 0
    found = (vars.get(name) for names in op.outputs.values() for name in names)
    elements = sum(math.prod(batch if d < 0 else d for d in v.shape or ()) for v in found if v is not None and v.kind == "LOD_TENSOR")
    if not op.type.startswith("pool"):
        return elements * SLOW_ELEMENT
    whole = op.attrs.get("global_pooling") or op.attrs.get("adaptive")
    grad = op.type.endswith("_grad")
    window = 1 if whole else math.prod(op.attrs["ksize"]) / (math.prod(op.attrs["strides"]) if grad else 1)
    return elements * window * (SLOW_TAP if grad else SLOW_ELEMENT)


def batch_of(feed: Any) -> int:
    """How many samples are fed: the first dimension of the largest of them."""
    feeds = feed if isinstance(feed, tuple) else (feed,)
    return sum(max((shape[0] for v in one.values() if (shape := _fed_shape(v))), default=1) for one in feeds)


def _fed_shape(value: Any) -> tuple[int, ...]:
    """Of an array, or of the rows of a LoDTensor."""
    return value.array().shape if isinstance(value, LoDTensor) else getattr(value, "shape", ())


def flops(op: OpDesc, vars: Mapping[str, VarDesc]) -> float:
    """Floating-point operations of a convolution or matrix product for one sample; 0 for any other op."""
    if op.type.startswith(("conv2d", "conv3d", "depthwise_conv2d")) and not op.type.endswith("_grad"):
        moved = "Input" if "transpose" in op.type else "Output"
        weight, positions = _shape(op.input("Filter"), vars), _shape(op.input(moved) or op.output(moved), vars)
        return 2 * math.prod(weight[1:]) * math.prod(positions)
    if op.type in ("mul", "matmul", "matmul_v2"):
        return 2 * math.prod(_shape(op.output("Out"), vars)) * _inner(op, vars)
    return 0


def _inner(op: OpDesc, vars: Mapping[str, VarDesc]) -> int:
    """The length of the sums of a product."""
    if op.type == "mul":
        weight = _shape(op.input("Y"), vars)
        return math.prod(weight[: op.attrs.get("y_num_col_dims", 1)])
    x = _shape(op.input("X"), vars) or (1,)
    turned = op.attrs.get("transpose_X", op.attrs.get("trans_x", False))
    return (x[-2] if turned and len(x) > 1 else x[-1]) // max(1, op.attrs.get("head_number", 1))


def _shape(names: Any, vars: Mapping[str, VarDesc]) -> tuple[int, ...]:
    """The declared shape with 1 for what is unknown."""
    var = vars.get(names[0]) if names else None
    return tuple(abs(d) for d in var.shape or ()) if var is not None else ()
