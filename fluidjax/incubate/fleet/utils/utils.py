"""Programs in files: binary, or as protobuf's text, and reports of their contents."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.absent import reporter
from ....debugger import draw_block_graphviz
from ....devices.place import CPUPlace
from ....errors import FluidTypeError, FluidValueError, ParseError, UnsupportedError
from ....executor import Executor
from ....graph.block import Block
from ....graph.program import Program
from ....lod_tensor import create_lod_tensor
from ....saved.files import read_file, write_files
from ....saved.model import load_inference_model
from ....saved.values import is_persistable
from ....state.scope import Scope, scope_guard

_logger = logging.getLogger(__name__)
_HOLDERS = ("FEED_MINIBATCH", "FETCH_LIST")
persistable_vars_out_fn, all_vars_out_fn, ops_out_fn = (
    "vars_persistable.log",
    "vars_all.log",
    "ops.log",
)


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """The program in a file. is_text: as protobuf's text. Raises ParseError for a file without a
    program, OSError.
    """
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
        raise ParseError(
            f"{model_filename!r} holds no program as protobuf's text: {error}"
        ) from None
    return Program.parse_from_string(message.SerializeToString())


def save_program(
    program: Program, model_filename: str = "__model__", is_text: bool = False
) -> None:
    """Write a program into a file, all or nothing. is_text: as protobuf's text. Raises
    FluidTypeError for anything but a program.
    """
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
    """Write a program beside its file in the other form, with .bin or .pbtxt added to the name;
    returns that name.
    """
    program, name = (
        load_program(os.path.join(prog_dir, prog_fn), is_text),
        prog_fn + (".bin" if is_text else ".pbtxt"),
    )
    save_program(program, os.path.join(prog_dir, name), not is_text)
    return name


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Whether the persistable variables of a pruned program have the shapes and dtypes of the
    original program.

    Differences are logged, and so are variables that the original lacks, which do not count as
    differences.
    """
    there, fits = train_prog.global_block().vars, True
    for var in (v for v in pruned_prog.list_vars() if is_persistable(v)):
        other = there.get(var.name)
        if other is None:
            _logger.error(
                "the pruned program has a variable %r, which is none of the other's", var.name
            )
        elif tuple(var.shape) != tuple(other.shape) or var.dtype != other.dtype:
            _logger.error(
                "variable %r has shape %s and %s in the pruned program, %s and %s in the other",
                var.name, list(var.shape), var.dtype.name, list(other.shape), other.dtype.name,
            )  # fmt: skip
            fits = False
    return fits


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> None:
    """Write a block as a graph in DOT, and draw it if graphviz is installed."""
    draw_block_graphviz(block, path=os.path.join(output_dir, filename + ".dot"))


def parse_program(program: Program, output_dir: str) -> None:
    """Write the contents of a program into vars_persistable.log, vars_all.log and ops.log of a
    folder, one variable or op on each line.
    """
    every = list(program.list_vars())
    kept = [{**_description(v), "type": _enum(v.desc.kind)} for v in every if is_persistable(v)]
    others = [
        {"name": v.name, "type": _enum(v.desc.kind)} if v.desc.kind in _HOLDERS else _description(v)
        for v in every
    ]
    ops = [
        {
            "type": op.type,
            "input_arg_names": str(op.input_arg_names),
            "output_arg_names": str(op.output_arg_names),
        }
        for op in program.global_block().ops
    ]
    rows: dict[str, tuple[str, list[dict[str, Any]]]] = {
        persistable_vars_out_fn: ("persistable vars:", kept), all_vars_out_fn: ("all vars:", others), ops_out_fn: ("ops:", ops),
    }  # fmt: skip
    write_files(
        output_dir,
        {
            n: _written(["\n".join([head, *map(str, part), ""]).encode()])
            for n, (head, part) in rows.items()
        },
    )


def _written(pieces: list[bytes]) -> Any:
    return lambda: pieces


def _description(var: Any) -> dict[str, Any]:
    return {
        "name": var.name,
        "shape": str(tuple(var.shape)),
        "lod_level": int(var.lod_level),
        "dtype": _enum(var.dtype.name),
    }


def _enum(name: str) -> str:
    return f"VarType.{name}"


def check_saved_vars_try_dump(
    dump_dir: str, dump_prog_fn: str, is_text_dump_program: bool, feed_config: Any, fetch_config: Any, batch_size: int = 1,
    save_filename: str | None = None,
) -> list[Any]:  # fmt: skip
    """Run a saved model once; returns the values of its targets, or of those in
    fetch_config.fetch_vars_names.

    feed_config: feeded_vars_names, feeded_vars_dims (a number or a tuple each), feeded_vars_types,
    and feeded_vars_filelist: a file of numbers for each, of which every line holds batches,
    batch_size rows of that size; a rest is left out. Without files, random numbers between 0 and 1
    are fed. save_filename: the file that holds all parameters. Raises the errors of loading and
    running, FluidValueError for sizes that do not fit the program and for files that hold no
    numbers.
    """
    if is_text_dump_program:
        dump_prog_fn = program_type_trans(dump_dir, dump_prog_fn, True)
    exe = Executor(CPUPlace())
    with scope_guard(Scope()):
        program, names, targets = load_inference_model(dump_dir, exe, dump_prog_fn, save_filename)
        tables = {op.type for op in program.global_block().ops if op.type == "lookup_table"}
        if tables:
            _logger.warning(
                "the program has the op 'lookup_table': is it the one that was pruned for"
                " inference?"
            )
        if feed_config.feeded_vars_names is not None:
            names = list(feed_config.feeded_vars_names)
        if fetch_config.fetch_vars_names is not None:
            targets = [program.global_block().var(n) for n in fetch_config.fetch_vars_names]
        fed = _fed(program, names, feed_config, batch_size)
        results = exe.run(
            program, fed, targets, return_numpy=all(v.lod_level == 0 for v in targets)
        )
    for var, value in zip(targets, results, strict=True):
        _logger.info("%s: %s", var.name, value)
    return results


def _fed(program: Program, names: Sequence[str], config: Any, batch_size: int) -> dict[str, Any]:
    """The values of the feeds, from files or random."""
    dims, dtypes, files = (
        config.feeded_vars_dims,
        config.feeded_vars_types,
        config.feeded_vars_filelist,
    )
    if not len(names) == len(dims) == len(dtypes) == len(files or names):
        there = f"{len(dims)} sizes, {len(dtypes)} dtypes and {len(files or ())} files"
        raise FluidValueError(f"there are {len(names)} variables to feed, but {there}")
    found: dict[str, Any] = {}
    for at, (name, given, dtype) in enumerate(zip(names, dims, dtypes, strict=True)):
        shape, var = (
            tuple(given) if isinstance(given, list | tuple) else (given,),
            program.global_block().var(name),
        )
        if shape != tuple(var.shape[1:]):
            raise FluidValueError(
                f"a row of {name!r} has the shape {tuple(var.shape[1:])} in the program, {shape} in"
                " feeded_vars_dims"
            )
        rows = (
            _numbers(files[at], shape, batch_size)
            if files
            else np.random.random((batch_size, *shape))
        )
        found[name] = rows.astype(dtype)
        if var.lod_level:
            if var.lod_level > 1:
                raise UnsupportedError(
                    f"{name!r} is fed sequences of sequences, which are not made up; run the model"
                    " with data of yours"
                )
            found[name] = create_lod_tensor(found[name], [[1] * len(rows)], CPUPlace())
    return found


def _numbers(path: str, shape: tuple[int, ...], batch_size: int) -> np.ndarray:
    """The rows in a file: as many whole batches of each line as it holds."""
    size, found = math.prod(shape) * batch_size, []
    for number, line in enumerate(read_file(path).decode("utf-8", "replace").splitlines(), 1):
        try:
            values = [float(word) for word in line.split()]
        except ValueError as error:
            raise FluidValueError(
                f"{path!r}, line {number}: numbers with blanks between them are expected ({error})"
            ) from None
        found += values[: len(values) // size * size]
    return np.array(found).reshape(-1, *shape)


__all__ = [
    "check_pruned_program_vars", "check_saved_vars_try_dump", "graphviz", "load_program", "parse_program", "program_type_trans",
    "save_program",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.utils.utils", __all__)
