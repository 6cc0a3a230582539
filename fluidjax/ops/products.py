"""An estimate of a step's work in convolutions and matrix products, from its program: good enough
for decisions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.desc import OpDesc, ProgramDesc, VarDesc

FLOPS_A_SECOND = 30e9  # operations of convolutions and products, on one or two CPU cores
LEAST_BATCH = 8  # least number of samples of a step whose time matters


def products(desc: ProgramDesc, ops: Sequence[OpDesc]) -> float:
    """Floating-point operations of the convolutions and matrix products for one sample, gradients
    included.
    """
    vars = desc.blocks[0].vars
    forward = sum(flops(op, vars) for op in ops)
    return forward * (3 if any(op.type.endswith("_grad") for op in ops) else 1)


def flops(op: OpDesc, vars: Mapping[str, VarDesc]) -> float:
    """Floating-point operations of a convolution or matrix product for one sample; 0 for any other
    op.
    """
    if op.type.startswith(("conv2d", "conv3d", "depthwise_conv2d")) and not op.type.endswith(
        "_grad"
    ):
        moved = "Input" if "transpose" in op.type else "Output"
        weight, positions = (
            declared(op.input("Filter"), vars),
            declared(op.input(moved) or op.output(moved), vars),
        )
        return 2 * math.prod(weight[1:]) * math.prod(positions)
    if op.type in ("mul", "matmul", "matmul_v2"):
        return 2 * math.prod(declared(op.output("Out"), vars)) * _inner(op, vars)
    return 0


def flops_of_jaxs(op: OpDesc, vars: Mapping[str, VarDesc]) -> float:
    """The same for JAX's convolutions and products."""
    if op.type == "jax.dot_general":
        lhs = declared(op.input("Lhs"), vars)
        inner = math.prod(lhs[a] for a in op.attrs.get("lhs_contract", ()))
        return 2 * math.prod(declared(op.output("Out"), vars)) * inner
    if op.type == "jax.conv_general_dilated":
        kernel = dict(zip(op.attrs["spec"].split("->")[0].split(",")[1], declared(op.input("Rhs"), vars), strict=False))  # fmt: skip
        each = math.prod(n for axis, n in kernel.items() if axis != "O")
        return 2 * math.prod(declared(op.output("Out"), vars)) * each
    return 0


def _inner(op: OpDesc, vars: Mapping[str, VarDesc]) -> int:
    """The length of the sums of a product."""
    if op.type == "mul":
        weight = declared(op.input("Y"), vars)
        return math.prod(weight[: op.attrs.get("y_num_col_dims", 1)])
    x = declared(op.input("X"), vars) or (1,)
    transposed = op.attrs.get("transpose_X", op.attrs.get("trans_x", False))
    return (x[-2] if transposed and len(x) > 1 else x[-1]) // max(1, op.attrs.get("head_number", 1))


def declared(names: Any, vars: Mapping[str, VarDesc]) -> tuple[int, ...]:
    """The declared shape, with 1 for unknown sizes."""
    var = vars.get(names[0]) if names else None
    return tuple(abs(d) for d in var.shape or ()) if var is not None else ()
