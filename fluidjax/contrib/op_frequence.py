"""fluid.contrib.op_freq_statistic: how often ops occur in a program, and how often one feeds
another.
"""

from __future__ import annotations

from collections import Counter

from ..errors import FluidTypeError
from ..graph.program import Program


def op_freq_statistic(program: Program) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """(op type, count) and ("type->type", count) of block 0, the most frequent first, equal counts
    in order of occurrence.

    Ops that write only parameters do not count, and parameters do not connect two ops. Pairs are in
    the order of the reading ops' types. Raises FluidTypeError unless given a Program.
    """
    if not isinstance(program, Program):
        raise FluidTypeError(f"op_freq_statistic takes a Program, not {type(program).__name__}")
    block = program.global_block()
    parameters = {p.name for p in block.all_parameters()}
    single = Counter(op.type for op in block.ops if not parameters.issuperset(op.output_arg_names))
    maker: dict[str, str] = {}
    makers: dict[str, list[str]] = {}
    for op in block.ops:
        for name in op.input_arg_names:
            if name not in parameters and name in maker:
                makers.setdefault(op.type, []).append(maker[name])
        maker.update(dict.fromkeys(op.output_arg_names, op.type))
    pairs = Counter(f"{before}->{after}" for after, found in makers.items() for before in found)
    return single.most_common(), pairs.most_common()


__all__ = ["op_freq_statistic"]
