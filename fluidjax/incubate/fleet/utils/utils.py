"""Programs in files: binary, or as protobuf's text, and what is in them."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from ....base.absent import reporter
from ....debugger import draw_block_graphviz
from ....errors import FluidTypeError, ParseError
from ....graph.block import Block
from ....graph.program import Program
from ....saved.files import read_file, write_files
from ....saved.values import is_persistable

_logger = logging.getLogger(__name__)
_HOLDERS = ("FEED_MINIBATCH", "FETCH_LIST")
persistable_vars_out_fn, all_vars_out_fn, ops_out_fn = "vars_persistable.log", "vars_all.log", "ops.log"


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """The program in a file. is_text: as protobuf's text. Raises ParseError for a file that holds none, OSError."""
    return load_program_text(model_filename) if is_text else load_program_binary(model_filename)


def load_program_binary(model_filename: str) -> Program:
    """load_program of a binary file."""
    return Program.parse_from_string(read_file(model_filename))


def load_program_text(model_filename: str) -> Program:
    """load_program of protobuf's text."""
    from google.protobuf import text_format

    from ....proto import framework_pb2

    try:
        message = text_format.Parse(read_file(model_filename).decode(), framework_pb2.ProgramDesc())
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise ParseError(f"{model_filename!r} holds no program as protobuf's text: {error}") from None
    return Program.parse_from_string(message.SerializeToString())


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Write a program into a file, all or nothing. is_text: as protobuf's text. Raises FluidTypeError for what is no program."""
    if not isinstance(program, Program):
        raise FluidTypeError(f"save_program takes a Program, not {type(program).__name__}")
    data = program.serialize_to_string()
    if is_text:
        from google.protobuf import text_format

        from ....proto import framework_pb2

        message = framework_pb2.ProgramDesc()
        message.ParseFromString(data)
        data = text_format.MessageToString(message).encode()
    folder, name = os.path.split(model_filename)
    write_files(folder or ".", {name: lambda: [data]})


def program_type_trans(prog_dir: str, prog_fn: str, is_text: bool) -> str:
    """Write a program beside its file in the other form, the name with .bin or .pbtxt behind it; that name."""
    program, name = load_program(os.path.join(prog_dir, prog_fn), is_text), prog_fn + (".bin" if is_text else ".pbtxt")
    save_program(program, os.path.join(prog_dir, name), not is_text)
    return name


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Whether the persistable variables of a pruned program have the shapes and dtypes of the program that it comes of.

    What does not fit, and variables that are not in the other, which count as fitting, are logged.
    """
    there, fits = train_prog.global_block().vars, True
    for var in (v for v in pruned_prog.list_vars() if is_persistable(v)):
        other = there.get(var.name)
        if other is None:
            _logger.error("the pruned program has a variable %r, which is none of the other's", var.name)
        elif tuple(var.shape) != tuple(other.shape) or var.dtype != other.dtype:
            _logger.error(
                "variable %r has shape %s and %s in the pruned program, %s and %s in the other",
                var.name, list(var.shape), var.dtype.name, list(other.shape), other.dtype.name,
            )  # fmt: skip
            fits = False
    return fits


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> None:
    """Write a block as a graph in DOT, and draw it beside where graphviz is installed."""
    draw_block_graphviz(block, path=os.path.join(output_dir, filename + ".dot"))


def parse_program(program: Program, output_dir: str) -> None:
    """Write what a program has into vars_persistable.log, vars_all.log and ops.log of a folder, a variable or op a line."""
    every = list(program.list_vars())
    kept = [{**_told(v), "type": v.desc.kind} for v in every if is_persistable(v)]
    others = [{"name": v.name, "type": v.desc.kind} if v.desc.kind in _HOLDERS else _told(v) for v in every]
    ops = [
        {"type": op.type, "input_arg_names": str(op.input_arg_names), "output_arg_names": str(op.output_arg_names)}
        for op in program.global_block().ops
    ]
    rows: dict[str, tuple[str, list[dict[str, Any]]]] = {
        persistable_vars_out_fn: ("persistable vars:", kept), all_vars_out_fn: ("all vars:", others), ops_out_fn: ("ops:", ops),
    }  # fmt: skip
    write_files(output_dir, {n: _written(["\n".join([head, *map(str, part), ""]).encode()]) for n, (head, part) in rows.items()})


def _written(pieces: list[bytes]) -> Any:
    return lambda: pieces


def _told(var: Any) -> dict[str, Any]:
    return {"name": var.name, "shape": str(tuple(var.shape)), "lod_level": int(var.lod_level), "dtype": var.dtype.name}


__all__ = [
    "check_pruned_program_vars", "graphviz", "load_program", "parse_program", "program_type_trans", "save_program",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.utils.utils", __all__)
