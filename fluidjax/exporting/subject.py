"""The subject of an export: a program that predicts, its inputs and outputs, and the values that it
reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FluidTypeError, FluidValueError, near
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir import edit
from ..ir.desc import ProgramDesc, VarDesc
from ..ir.dims import symbols
from ..passes.inference import in_test_mode
from ..saved.files import read_file
from ..saved.model import feeds_and_fetches, load_values, locate, read_program, with_feed_and_fetch
from ..state.scope import Scope, global_scope, scope_guard
from ..tracing.traced import Traced
from ..transpiler.apply import ScopeParams

Shapes = Mapping[str, Sequence[int | str]]


@dataclass(frozen=True, eq=False)
class Subject:
    """desc: the program in test mode, pruned. params: values by name."""

    desc: ProgramDesc
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    params: Mapping[str, Any]

    def var(self, name: str) -> VarDesc:
        return self.desc.blocks[0].vars[name]


def subject_of(
    model: Program | Traced | str | Path,
    feeds: Sequence[str] | None,
    fetches: Sequence[str | Variable] | None,
    scope: Scope | None,
) -> Subject:
    """The subject for a program, a traced function or a folder of a saved model.

    Raises FluidTypeError for anything else, FluidValueError for unknown names.
    """
    wanted = None if fetches is None else [f if isinstance(f, str) else f.name for f in fetches]
    if isinstance(model, Traced):
        return _pruned(
            model.main.desc,
            list(model.feeds) if feeds is None else list(feeds),
            list(model.fetches) if wanted is None else wanted,
            model.state,
        )
    if isinstance(model, Program):
        desc = model.desc
        params: Mapping[str, Any] = ScopeParams(global_scope() if scope is None else scope)
    elif isinstance(model, str | os.PathLike):
        desc, params = _loaded(Path(model))
    else:
        raise FluidTypeError(
            f"export takes a Program, what fluid.trace returns, or a folder, not"
            f" {type(model).__name__}"
        )
    own_feeds, own_fetches = feeds_and_fetches(desc)
    found = own_fetches if wanted is None else wanted
    if not found:
        raise FluidValueError(
            "the program has no fetch ops; name what it gives: fetches=[variables or names]"
        )
    given = list(feeds) if feeds is not None else own_feeds or None
    return _pruned(desc, given, found, params)


def checked_sizes(subject: Subject, shapes: Shapes) -> dict[str, list[int | str]]:
    """For each input a number or a text for every axis, "" for an open size without a name.

    Raises FluidTypeError and FluidValueError for invalid sizes, and for sizes that contradict the
    program.
    """
    if not isinstance(shapes, Mapping):
        raise FluidTypeError(f"shapes is a mapping by input, not {type(shapes).__name__}")
    for name in shapes:
        if name not in subject.feeds:
            raise FluidValueError(
                f"shapes names {name!r}, which is not fed{near(name, subject.feeds)}"
            )
    found: dict[str, list[int | str]] = {}
    for name in subject.feeds:
        var = subject.var(name)
        declared = list(var.shape or ())
        names = var.dims or ("",) * len(declared)
        given = shapes.get(name)
        wish: Sequence[int | str] = declared if given is None else given
        if not isinstance(wish, list | tuple):
            raise FluidTypeError(f"shapes gives {name!r} {wish!r}; give a size for each axis")
        if len(wish) != len(declared):
            raise FluidValueError(
                f"shapes gives {name!r} {len(wish)} sizes; it has {len(declared)}: {declared}"
            )
        for own, new in zip(declared, wish, strict=True):
            if isinstance(new, str) and not symbols(new):
                raise FluidValueError(
                    f"shapes gives {name!r} the size {new!r}, a text without a name"
                )
            if not isinstance(new, str) and (
                isinstance(new, bool) or not isinstance(new, int) or new < -1
            ):
                raise FluidValueError(
                    f"shapes gives {name!r} the size {new!r}; a size is a number, or a text that names it"
                )
            if isinstance(new, int) and 0 <= own != new:
                raise FluidValueError(
                    f"shapes gives {name!r} the sizes {list(wish)}; the program declares {declared}"
                )
        found[name] = [n if n != -1 else text for n, text in zip(wish, names, strict=True)]
    return found


def _loaded(path: Path) -> tuple[ProgramDesc, Mapping[str, Any]]:
    if path.is_file():
        file, beside = path, path.with_suffix(".pdiparams")
        values = beside.name if path.suffix == ".pdmodel" and beside.is_file() else None
    else:
        file, values = locate(path)
    program, _, _ = read_program(read_file(file), str(file))
    scope = Scope()
    with scope_guard(scope):
        load_values(program, str(file.parent), values)
    return program.desc, ScopeParams(scope)


def _pruned(
    desc: ProgramDesc, feeds: list[str] | None, fetches: list[str], params: Mapping[str, Any]
) -> Subject:
    known = desc.blocks[0].vars
    if not fetches:
        raise FluidValueError(
            "there is nothing to export: all results are new state; name what it gives:"
            " fetches=[variables or names]"
        )
    if feeds is not None and len(set(feeds)) < len(feeds):
        raise FluidValueError(f"feeds names an input twice: {feeds}")
    for name in [*(feeds or ()), *fetches]:
        if name not in known:
            raise FluidValueError(f"the program has no variable {name!r}{near(name, known)}")
    desc = edit.for_test(desc)
    bare = edit.replace_ops(
        desc, 0, (op for op in desc.blocks[0].ops if op.type not in ("feed", "fetch"))
    )
    if feeds is None:
        used = _needed(bare, fetches, ())
        feeds = [n for n, v in used.blocks[0].vars.items() if v.is_data]
    used = _needed(bare, fetches, feeds)
    feeds = [f for f in feeds if f in used.blocks[0].vars]
    found = with_feed_and_fetch(edit.map_ops(used, in_test_mode), feeds, fetches)
    return Subject(found, tuple(feeds), tuple(fetches), params)


def _needed(desc: ProgramDesc, fetches: Sequence[str], feeds: Sequence[str]) -> ProgramDesc:
    """The part of the program that the final values of the fetches need."""
    part = edit.run_only(desc, fetches, (), feeds)
    return edit.drop_dead_vars(part, fetches, keep_persistable=False, keep_data=False)
