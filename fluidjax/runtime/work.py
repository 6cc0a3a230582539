"""About how much a step computes, from its program before anything runs: for decisions, which no
figure has to be exact for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..ir.desc import OpDesc, VarDesc
from ..lod_tensor import LoDTensor
from ..lower.step import Step

FLOPS_A_SECOND = 30e9  # of convolutions and products, on a core or two
LEAST_BATCH = 8  # samples that a step surely has where its time matters
SHARED_BATCH = 32  # and of a step of several processes, whose feeds differ
TAP = 5.0  # elements that a cell of a window counts for in the gradient of a pool
LONG = 75e6  # elements of a step's loops from which on a library may have them
# Of these a library's loops are the faster ones, in nets of dense convolutions; of leaky_relu,
# transformers and inceptions they are slower.
SUITED = ("batch_norm", "relu", "elementwise_add", "sum", "concat")
SUITED_SHARE = 0.75


def products(step: Step) -> float:
    """Floating-point operations of the convolutions and matrix products for one sample, gradients
    included.
    """
    vars = step.desc.blocks[0].vars
    forward = sum(flops(op, vars) for op in step.ops)
    return forward * (3 if any(op.type.endswith("_grad") for op in step.ops) else 1)


def loops_are_long(step: Step, batch: int) -> bool:
    """Whether a library runs the step's loops over elements faster: they are long, and most are of
    the kinds of SUITED.
    """
    vars = step.desc.blocks[0].vars
    # made of such loops itself
    if any(
        op.type.startswith(("conv2d", "depthwise")) and _is_depthwise(op, vars) for op in step.ops
    ):
        return False
    elements = sum(_elements(op, vars, batch) for op in step.ops)
    suited = sum(
        _elements(op, vars, batch) for op in step.ops if op.type.removesuffix("_grad") in SUITED
    )
    return batch >= LEAST_BATCH and elements >= LONG and suited > SUITED_SHARE * elements


def _is_depthwise(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    weight = _shape(op.input("Filter"), vars)
    return op.attrs.get("groups", 1) > 1 and weight[1:2] == (1,)


def _elements(op: OpDesc, vars: Mapping[str, VarDesc], batch: int) -> float:
    if flops(op, vars) or op.type.startswith(("conv", "mul_grad", "matmul_grad", "reshape")):
        return 0
    found = (vars.get(name) for names in op.outputs.values() for name in names)
    elements = sum(
        math.prod(batch if d < 0 else d for d in v.shape or ())
        for v in found
        if v is not None and v.kind == "LOD_TENSOR"
    )
    if not op.type.startswith("pool"):
        return elements
    whole = op.attrs.get("global_pooling") or op.attrs.get("adaptive")
    grad = op.type.endswith("_grad")
    window = (
        1
        if whole
        else math.prod(op.attrs.get("ksize", ()))
        / (math.prod(op.attrs.get("strides", ())) or 1 if grad else 1)
    )
    return elements * window * (TAP if grad else 1)


def batch_of(feed: Any) -> int:
    """How many samples are fed: the first dimension of the largest of them."""
    feeds = feed if isinstance(feed, tuple) else (feed,)
    return sum(
        max((shape[0] for v in one.values() if (shape := _fed_shape(v))), default=1)
        for one in feeds
    )


def _fed_shape(value: Any) -> tuple[int, ...]:
    """Of an array, or of the rows of a LoDTensor."""
    return value.array().shape if isinstance(value, LoDTensor) else getattr(value, "shape", ())


def flops(op: OpDesc, vars: Mapping[str, VarDesc]) -> float:
    """Floating-point operations of a convolution or matrix product for one sample; 0 for any other
    op.
    """
    if op.type.startswith(("conv2d", "conv3d", "depthwise_conv2d")) and not op.type.endswith(
        "_grad"
    ):
        moved = "Input" if "transpose" in op.type else "Output"
        weight, positions = (
            _shape(op.input("Filter"), vars),
            _shape(op.input(moved) or op.output(moved), vars),
        )
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
