"""fluid.contrib.memory_usage: the total size of a program's values."""

from __future__ import annotations

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidTypeError, FluidValueError
from ..graph.program import Program
from ..graph.variable import Variable

_UNITS = ("B", "KB", "MB")


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """1.05 and 1.1 times the bytes of all that the ops of block 0 write, each name once, and their
    unit: B, KB or MB.

    A dimension of -n counts as n * batch_size. Liveness and the compiler are not considered;
    fluid.memory predicts what a step really needs. Raises FluidTypeError unless given a Program,
    FluidValueError for a batch_size below 1 and for a variable with several open dimensions.
    """
    if not isinstance(program, Program):
        raise FluidTypeError(f"memory_usage takes a Program, not {type(program).__name__}")
    if batch_size <= 0:
        raise FluidValueError(f"memory_usage: batch_size is from 1 on, not {batch_size}")
    block = program.global_block()
    written = dict.fromkeys(n for op in block.ops for n in op.output_arg_names if n != "@EMPTY@")
    tensors = [var for var in map(block.var, written) if var.desc.kind == "LOD_TENSOR"]
    total: float = sum(_bytes(var, batch_size) for var in tensors)
    unit = 0
    while unit < len(_UNITS) - 1 and total > 1024:
        total, unit = total / 1024, unit + 1
    return total * 1.05, total * 1.1, _UNITS[unit]


def _bytes(var: Variable, batch_size: int) -> int:
    if sum(n < 0 for n in var.shape) > 1:
        raise FluidValueError(
            f"memory_usage: variable {var.name!r} of shape {tuple(var.shape)} has more than one"
            " open dimension"
        )
    size = numpy_dtype(name_of(var.dtype)).itemsize
    for n in var.shape:
        size *= -n * batch_size if n < 0 else n
    return size


__all__ = ["memory_usage"]
