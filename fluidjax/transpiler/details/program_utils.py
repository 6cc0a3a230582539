"""Programs as text, and ops found by their inputs or outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from ...base.absent import reporter
from ...graph.block import Block
from ...graph.operator import Operator
from ...graph.program import Program, as_program
from ...graph.variable import Variable


def _write(text: str, fout: TextIO | None) -> None:
    print(text) if fout is None else fout.write(f"{text}\n")


def program_to_code(
    prog: Program, fout: TextIO | None = None, skip_op_callstack: bool = True
) -> None:
    """Print a program, or write it to an open file, in the form of str(program), which parses;
    1.8.5 has another form.

    skip_op_callstack: False also shows the call stacks of a program that Paddle saved. Raises
    FluidTypeError for anything but a program.
    """
    _write(as_program(prog).to_string(with_details=not skip_op_callstack), fout)


def block_to_code(
    block: Block,
    block_idx: int,
    fout: TextIO | None = None,
    indent: int = 0,
    skip_op_callstack: bool = True,
) -> None:
    """Print a block, or write it to an open file. block_idx, indent: ignored, because the text has
    both.
    """
    _write(block.to_string(with_details=not skip_op_callstack), fout)


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """An op as text. skip_op_callstack: of no meaning, since a line has none."""
    return op.to_string()


def variable_to_code(var: Variable) -> str:
    """A variable as text."""
    return var.to_string()


def delete_ops(block: Block, ops: Iterable[Operator]) -> None:
    """Take these ops out of a block."""
    for op in list(ops):
        block._remove_op(op.idx)


def find_op_by_input_arg(block: Block, arg_name: str) -> int:
    """The position of the first op of a block that reads a variable of this name; -1 if there is
    none.
    """
    return next((i for i, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block: Block, arg_name: str, reverse: bool = False) -> int:
    """The position of the first op of a block (with `reverse` the last) that writes a variable of
    this name; -1 if there is none.
    """
    found: list[int] = [i for i, op in enumerate(block.ops) if arg_name in op.output_arg_names]
    return (found[-1] if reverse else found[0]) if found else -1


__all__ = [
    "block_to_code", "delete_ops", "find_op_by_input_arg", "find_op_by_output_arg", "op_to_code", "program_to_code",
    "variable_to_code",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: Any = reporter(
        "fluid.transpiler.details.program_utils", __all__, {"get_indent_space": "is not there"}
    )
