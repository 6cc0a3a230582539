"""Inference models: a pruned program with feed and fetch ops, and the values of its persistable
variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import layers
from ..base.dtypes import is_float, numpy_dtype
from ..base.loc import warn
from ..errors import FluidTypeError, FluidValueError, MissingFileError, ParseError, near
from ..graph.program import Program, program_guard
from ..graph.variable import Variable
from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc, slots
from ..ops.registry import traits
from ..passes.inference import in_test_mode
from .arrays import read_arrays
from .files import Pieces, read_file, write_files
from .values import Difference, as_program, collect, descs, filename, is_persistable, store
from .vars import files_of

MODEL = "__model__"


def save_inference_model(
    dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Variable], executor: Any,
    main_program: Program | None = None, model_filename: str | None = None, params_filename: str | None = None,
    export_for_deployment: bool = True, program_only: bool = False,
) -> list[str]:  # fmt: skip
    """Prune a program to the ops that compute `target_vars` from `feeded_var_names`, and save it
    with its persistable values.

    dirname: a folder, created if missing. model_filename: default "__model__". params_filename:
    None writes a file for each variable, else all go into this file. export_for_deployment: False
    saves the whole program instead, as MODEL.main_program. program_only: no values. Returns the
    names of the saved targets: each target goes through a `scale` of 1, as in Fluid. main_program
    itself does not change (Fluid appends the scales to it).

    Raises FluidValueError for names that are not strings, targets that are not Variables, a feed
    that the targets do not need; EnforceNotMet for missing values. A save that fails does not
    change older files.
    """
    program = as_program(main_program)
    feeds = (
        [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names or [])
    )
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars or [])
    if not all(isinstance(n, str) for n in feeds):
        raise FluidValueError("'feed_var_names' should be a list of str.")
    if not targets or not all(isinstance(v, Variable) for v in targets):
        raise FluidValueError("'target_vars' should be a list of Variable.")
    name = MODEL if model_filename is None else filename(model_filename)
    if export_for_deployment:
        exported, outputs = deployed(program, feeds, targets)
    else:
        exported, outputs, name = program, [t.name for t in targets], name + ".main_program"
    data = exported.serialize_to_string()
    files: dict[str, Pieces] = {name: lambda: [data]}
    if program_only:
        warn(
            "save_inference_model specified the param `program_only` to True, It will not save"
            " params of Program."
        )
    else:
        wanted = descs(exported, filter(is_persistable, exported.list_vars()))
        arrays = collect(sorted(wanted))
        files |= files_of(arrays, params_filename) if arrays else {}
    write_files(os.path.normpath(dirname), files)
    return outputs


def deployed(
    program: Program, feeds: Sequence[str], targets: Sequence[Variable]
) -> tuple[Program, list[str]]:
    """The pruned program with feed and fetch ops, and the names of its outputs."""
    if any(op.type == "auc" for op in program.global_block().ops):
        warn("the states of op 'auc' are saved as they are: a served model counts on from them")
    clone = program.clone()
    block = clone.global_block()
    with program_guard(clone):
        scaled = [
            layers.scale(block._var_recursive(t.name), 1.0, name=f"save_infer_model/scale_{i}")
            for i, t in enumerate(targets)
        ]
    outputs = [v.name for v in scaled]
    return clone.copy_with(normalized(clone.desc, feeds, outputs)), outputs


def normalized(
    desc: ProgramDesc, feeds: Sequence[str], fetches: Sequence[str], prune: bool = True
) -> ProgramDesc:
    """`desc` in test mode, with feed and fetch ops for exactly these names. prune: drop the ops
    that the fetches do not need.

    Raises FluidValueError for a feed that the fetches do not need.
    """
    desc = edit.replace_ops(
        desc, 0, (op for op in desc.blocks[0].ops if op.type not in ("feed", "fetch"))
    )
    desc = edit.map_ops(edit.prune(desc, fetches, feeds) if prune else desc, in_test_mode)
    known = desc.blocks[0].vars
    for feed in feeds:
        if feed not in known:
            hint = near(feed, [n for n, v in known.items() if v.is_data])
            raise FluidValueError(f"the targets do not need feed {feed!r}{hint}; leave it out")
    return with_feed_and_fetch(desc, feeds, fetches)


def with_feed_and_fetch(
    desc: ProgramDesc, feeds: Sequence[str], fetches: Sequence[str]
) -> ProgramDesc:
    """`desc` with a feed op for every feed at the front (the last feed first, as Fluid writes them)
    and a fetch op for every fetch.
    """
    uid = edit.max_uid(desc)
    ops = list(desc.blocks[0].ops)
    front = [
        OpDesc(
            uid + 1 + i,
            "feed",
            slots({"X": "feed"}),
            slots({"Out": n}),
            FrozenMap(col=i, op_role=0),
        )
        for i, n in enumerate(feeds)
    ]
    back = [
        OpDesc(
            uid + 1 + len(feeds) + i,
            "fetch",
            slots({"X": n}),
            slots({"Out": "fetch"}),
            FrozenMap(col=i, op_role=0),
        )
        for i, n in enumerate(fetches)
    ]
    holders = [VarDesc("feed", kind="FEED_MINIBATCH", persistable=True)] if feeds else []
    holders += [VarDesc("fetch", kind="FETCH_LIST", persistable=True)] if fetches else []
    return edit.add_vars(edit.replace_ops(desc, 0, [*front[::-1], *ops, *back]), 0, holders)


def feeds_and_fetches(desc: ProgramDesc) -> tuple[list[str], list[str]]:
    """The outputs of a saved program's feed ops and the inputs of its fetch ops, by their `col`.
    Raises ParseError for gaps.
    """
    found: dict[str, dict[int, str]] = {"feed": {}, "fetch": {}}
    for op in desc.blocks[0].ops:
        if op.type in found:
            names = op.output("Out") if op.type == "feed" else op.input("X")
            col = op.attrs.get("col", 0)
            if len(names) != 1 or not isinstance(col, int) or col in found[op.type]:
                raise ParseError(
                    f"op '{op.type}' number {col!r} of the program names {len(names)} variables, or"
                    " is there twice"
                )
            found[op.type][col] = names[0]
    for kind, by_col in found.items():
        if sorted(by_col) != list(range(len(by_col))):
            raise ParseError(
                f"the program's {kind} ops are numbered {sorted(by_col)[:20]}; they should count"
                " from 0"
            )
        for name in by_col.values():
            if name not in desc.blocks[0].vars:
                raise ParseError(f"a {kind} op names {name!r}, which the program does not declare")
    return ([found[kind][i] for i in range(len(found[kind]))] for kind in ("feed", "fetch"))  # type: ignore[return-value]


def load_inference_model(
    dirname: str | None, executor: Any, model_filename: str | bytes | None = None, params_filename: str | bytes | None = None,
    pserver_endpoints: Any = None, partial: bool = False, trainable: bool = False,
) -> list[Any]:  # fmt: skip
    """Load a program that was saved for inference, and its values into the global scope: [program,
    feed names, fetch variables].

    dirname: the folder; None if model_filename and params_filename are the bytes themselves.
    model_filename: default "__model__" or, if there is no such file, the only .pdmodel file.
    params_filename: None for one file for each variable, or for the .pdiparams file that belongs to
    a .pdmodel. partial: leave out values that are missing or do not fit, with a warning that lists
    them. trainable: make Parameters of the stored float values, except running statistics, so that
    an optimizer trains them (a saved program does not mark its Parameters, and Fluid makes none).

    A model with unknown op types can be loaded and printed; a run raises an error that names all of
    them. Raises FluidValueError for missing files, ParseError for damaged files, LoadError for
    values that do not fit; then the scope does not change.
    """
    if pserver_endpoints:
        raise FluidValueError(
            "a distributed lookup table cannot be loaded for inference: pserver_endpoints must be"
            " None"
        )
    if dirname is None:
        if not isinstance(model_filename, bytes) or params_filename is None:
            raise FluidValueError(
                "The path of params cannot be None when the directory path is None."
            )
        program, feeds, targets = read_program(model_filename, "the given bytes")
        _warn(load_values(program, None, params_filename, partial))
        return _result(program, feeds, targets, trainable)
    if isinstance(model_filename, bytes) or isinstance(params_filename, bytes):
        raise FluidTypeError(
            "with a dirname, model_filename and params_filename are names of files, not bytes"
        )
    folder = Path(os.path.normpath(dirname))
    path, beside = locate(folder, model_filename)
    program, feeds, targets = read_program(read_file(path), str(path))
    _warn(
        load_values(
            program,
            str(folder),
            params_filename if params_filename is not None else beside,
            partial,
        )
    )
    return _result(program, feeds, targets, trainable)


def _warn(difference: Difference) -> None:
    if difference:
        warn(f"load_inference_model(partial=True) left out what does not fit:\n{difference}")


def _result(
    program: Program, feeds: list[str], targets: list[Variable], trainable: bool
) -> list[Any]:
    if trainable:
        program.set_desc(with_parameters(program.desc))
        targets = [program.global_block().var(t.name) for t in targets]
    return [program, feeds, targets]


def with_parameters(desc: ProgramDesc) -> ProgramDesc:
    """`desc` with Parameters for the float persistables of block 0 that its ops read and that are
    not running statistics.
    """
    ops = desc.blocks[0].ops
    statistics = {
        n
        for op in ops
        if (kept := traits(op.type).unchanged)
        for slot in kept.outs.values()
        for n in op.input(slot)
    }
    written = {n for op in ops for n in op.writes}
    read = {n for op in ops for n in op.reads} - statistics - written
    vars = desc.blocks[0].vars
    chosen = [
        v
        for n, v in vars.items()
        if n in read and v.persistable and v.kind == "LOD_TENSOR" and is_float(v.dtype)
    ]
    return edit.add_vars(
        desc, 0, [replace(v, is_parameter=True, stop_gradient=False) for v in chosen]
    )


def locate(folder: Path, model_filename: str | None = None) -> tuple[Path, str | None]:
    """The program's file in a folder, and the name of the file with all values in that folder
    (None: one file for each value).

    Raises FluidValueError, which lists the folder's files, if no file or several could be the
    program.
    """
    if not folder.is_dir():
        raise MissingFileError(f"There is no directory named {str(folder)!r}")
    if model_filename is not None:
        return folder / filename(model_filename), None
    if (folder / MODEL).is_file():
        return folder / MODEL, None
    models = sorted(folder.glob("*.pdmodel"))
    if len(models) != 1:
        there = ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"
        raise FluidValueError(
            f"no {MODEL} and {len(models)} .pdmodel files in {str(folder)!r}, which holds {there};"
            " name model_filename (--model-file in a shell)"
        )
    values = models[0].with_suffix(".pdiparams")
    return models[0], values.name if values.is_file() else None


def read_program(data: bytes, source: str) -> tuple[Program, list[str], list[Variable]]:
    """A saved program, its feeds and its fetches. Raises ParseError, which names the source."""
    try:
        program = Program.parse_from_string(data)
        feeds, fetches = feeds_and_fetches(program.desc)
    except ParseError as error:
        raise ParseError(f"{source}: {error}") from None
    data_vars = [replace(program.desc.blocks[0].vars[n], is_data=True) for n in feeds]
    program.set_desc(edit.add_vars(program.desc, 0, data_vars))
    return program, feeds, [program.global_block().var(n) for n in fetches]


def _restored(
    program: Program, wanted: Mapping[str, VarDesc], found: dict[str, Any]
) -> dict[str, Any]:
    """The values as floats: integers that WeightQuantization left are multiplied by the scales in
    the attributes of their ops.
    """
    for op in (
        op for block in program.blocks for op in block.ops if op.has_attr("quantize_weight_bits")
    ):
        for attr in op.attr_names:
            name = attr.removesuffix("_quant_scale")
            value = found.get(name) if name != attr else None
            if value is None or value.dtype.kind != "i" or not is_float(wanted[name].dtype):
                continue
            scale = np.asarray(op.attr(attr))
            # scales of each filter, or of each column of a mul
            if op.attr("quantization_type") == "post_weight_channel_wise_abs_max":
                scale = scale.reshape(
                    (1,) * (value.ndim - 1) + (-1,)
                    if op.type == "mul"
                    else (-1,) + (1,) * (value.ndim - 1)
                )
            found[name] = (value * scale).astype(numpy_dtype(wanted[name].dtype or "float32"))
    return found


def load_values(
    program: Program, dirname: str | None, params: str | bytes | None, partial: bool = False
) -> Difference:
    """Load a saved program's persistable values into the global scope: see load_inference_model."""
    wanted = descs(program, filter(is_persistable, program.list_vars()))
    found = _restored(program, wanted, read_arrays(wanted, dirname, params)) if wanted else {}
    source = (
        "what is given as bytes"
        if dirname is None
        else repr(str(Path(dirname, params) if isinstance(params, str) else dirname))
    )
    return store(wanted, found, source, partial)
