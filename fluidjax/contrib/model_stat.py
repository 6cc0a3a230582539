"""fluid.contrib.model_stat.summary: a table of a network's layers, with their parameters and
operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..errors import FluidTypeError
from ..graph.operator import Operator
from ..graph.program import Program

_HEAD = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")
_ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky_relu", "prelu")
_COUNTED = "conv2d, depthwise_conv2d, pool2d, mul (of fc), batch_norm, " + ", ".join(_ACTIVATIONS)


class _Counts(NamedTuple):
    """The figures of one op: shapes without the batch, parameters, floating-point operations."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    params: float
    flops: float


def summary(main_prog: Program) -> None:
    """Print a row for each convolution, pooling, fc, batch_norm and activation: shapes, parameters,
    operations; then totals.

    Counted as in 1.8.5: a multiplication and an addition are two operations in convolutions and one
    in an fc, whose bias is one parameter; an activation also counts the batch, so the count is
    negative if that is -1. Raises FluidTypeError unless given a Program.
    """
    if not isinstance(main_prog, Program):
        raise FluidTypeError(f"summary takes a Program, not {type(main_prog).__name__}")
    found = [
        (op.type, counts)
        for block in main_prog.blocks
        for op in block.ops
        if (counts := _counts(op)) is not None
    ]
    rows = [
        (i, kind, c.before, c.after, int(c.params), int(c.flops))
        for i, (kind, c) in enumerate(found)
    ]
    params, flops = sum(row[4] for row in rows), sum(row[5] for row in rows)
    print(_table([tuple(map(str, row)) for row in rows]))
    print(f"Total PARAMs: {params}({params / 10**6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 10**9:.2f}G)")
    print(f"Counted are {_COUNTED}; other ops are not.")


def _counts(op: Operator) -> _Counts | None:
    """The figures of an op; None for one that is not counted."""
    if op.type in ("conv2d", "depthwise_conv2d"):
        before, after = _shape(op, op.input("Input")), _shape(op, op.output("Output"))
        c_out, c_in, height, width = _shape(op, op.input("Filter"))
        kernel = height * width * (c_in / op.attr("groups")) + bool(op.input("Bias"))
        return _Counts(before[1:], after[1:], c_out * kernel, 2 * prod(after[2:]) * c_out * kernel)
    if op.type == "pool2d":
        before, after = _shape(op, op.input("X")), _shape(op, op.output("Out"))
        return _Counts(before[1:], after[1:], 0, prod(after[1:]) * prod(op.attr("ksize")[:2]))
    if op.type == "mul" and "fc" in op.output("Out")[0]:
        inner, outer = _shape(op, op.input("Y"))
        return _Counts(
            _shape(op, op.input("X"))[1:],
            _shape(op, op.output("Out"))[1:],
            inner * outer + 1,
            inner * outer,
        )
    if op.type in _ACTIVATIONS:
        before, after = _shape(op, op.input("X")), _shape(op, op.output("Out"))
        return _Counts(before[1:], after[1:], int(op.type == "prelu"), prod(before))
    if op.type == "batch_norm":
        before, after = _shape(op, op.input("X")), _shape(op, op.output("Y"))
        return _Counts(before[1:], after[1:], before[1] * 2, prod(before[1:]) * 2)
    return None


def _shape(op: Operator, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(op.block._var_recursive(names[0]).shape)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    head, *lines = (
        "|" + "|".join(f" {cell:>{w}} " for cell, w in zip(row, widths, strict=True)) + "|"
        for row in (_HEAD, *rows)
    )
    return "\n".join([rule, head, rule, *lines, rule])


__all__ = ["summary"]
