"""A cost model: estimates from the program, before anything runs, how many elements the loops of a
step process.

CPU seconds of a training step with the library and without: ResNet-18 (batch 32) 0.88 and 1.13,
ResNet-32 (batch 128) 0.97 and 1.43.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.products import declared, flops

LEAST_BATCH = 8  # fewer samples do not use the library
TAP = 5.0  # elements that each cell of a window counts as in the gradient of a pool
LONG = 75e6  # elements of a step's loops: fewer do not use the library
# The library's loops are faster for these op types in nets of dense convolutions. They are slower
# for leaky_relu, in transformers and in inceptions.
SUITED = ("batch_norm", "relu", "elementwise_add", "sum", "concat")
SUITED_SHARE = 0.75
# With more elements for each op, faster loops are worth kernels that take longer to compile: an MLP
# has 84,000, a deep net of thin layers 2,500.
PAYING = 60e3


def loops_are_long(desc: ProgramDesc, ops: Sequence[OpDesc], batch: int) -> bool:
    """Whether the library runs a step's loops over elements faster: the loops are long, and most of
    them belong to ops of SUITED.
    """
    vars = desc.blocks[0].vars
    # a depthwise convolution is made of such loops itself
    if any(op.type.startswith(("conv2d", "depthwise")) and _is_depthwise(op, vars) for op in ops):
        return False
    elements = sum(_elements(op, vars, batch) for op in ops)
    suited = sum(
        _elements(op, vars, batch) for op in ops if op.type.removesuffix("_grad") in SUITED
    )
    return batch >= LEAST_BATCH and elements >= LONG and suited > SUITED_SHARE * elements


def is_of_products(desc: ProgramDesc, ops: Sequence[OpDesc], batch: int) -> bool:
    """Whether a step is made of matrix products and large loops over elements: without
    convolutions, sequences and loops over steps.
    """
    vars = desc.blocks[0].vars
    fed_rows = any(v.lod_level for v in vars.values())
    if fed_rows or any("conv" in op.type or op.attrs.get("sub_block") is not None for op in ops):
        return False
    elements = sum(_elements(op, vars, batch) for op in ops)
    return any(flops(op, vars) for op in ops) and elements >= PAYING * len(ops)


def _is_depthwise(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    weight = declared(op.input("Filter"), vars)
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
