"""The part of a program that runs before a reader of it has no more batches."""

from __future__ import annotations

from ..graph.program import Program
from ..ir.edit import replace_ops
from ..lower.step import Step


def before_reading(program: Program, names: tuple[str, ...]) -> Program | None:
    """The part of a program before the op that gives the variables `names` their values; None if it
    does not count.
    """
    desc, block = program.desc, program.desc.blocks[0].ops
    at = next(
        (i for i, op in enumerate(block) if op.type == "read" and (*op.writes,) == names), None
    )
    if at is None:  # a loader of data variables reads behind the counters, which are first
        at = next((i for i, op in enumerate(block) if op.type != "increment"), 0)
    ops = [op for op in block[:at] if not op.type.startswith("create_")]
    before = Program.from_desc(replace_ops(desc, 0, ops))
    step = Step(before.desc)
    return before if step.writes and not step.feeds else None
