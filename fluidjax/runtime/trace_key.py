"""What a trace of a step depends on, as a text: two processes in which it is equal would trace the
same (docs/compile-cache.md).

Whatever decides about a trace has to stand here, or the step has no key, and is traced. So a key is
made of all of the program, all flags and settings of JAX, the types of all arguments, and the
contents of this package's own files; ops that other packages registered, and calls of Python,
cannot be looked into.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..base.flags import DEFAULTS, flag
from ..ir.desc import BlockRef, Long, OpDesc, ProgramDesc
from ..lower.step import Step
from ..ops.enclosed import surroundings
from ..ops.fixed import Fixed
from ..ops.ragged import Ragged
from ..ops.registry import lookup
from .compiled import Compiled
from .kind import Kind
from .placement import OneDevice
from .work import ops_within

FEWEST = 40  # ops of a step: with fewer it is traced as soon as read
PACKAGE = Path(__file__).parents[1]
# in the names of settings that no trace depends on
WITHOUT_MEANING = ("compilation_cache", "persistent_cache")
# ops that call what the script registered
OF_THIS_PROCESS = frozenset({"optax_init", "optax_update"})
BESIDE = ("numpy", "ml_dtypes")  # packages that compute constants
_SIMPLE = frozenset({type(None), bool, int, float, str, bytes, BlockRef, Long})
_imported = time.time()


class NoKey(Exception):
    """Something decides about the trace that cannot be told in words."""


def trace_key(compiled: Compiled, kind: Kind, args: Sequence[Any]) -> str | None:
    """The key of a call that `may_be_kept` for such arguments (or their types), a hexadecimal
    number; None if it has none after all.
    """
    try:
        return hashlib.sha256("\n".join(_words(compiled, kind, args)).encode()).hexdigest()
    except (NoKey, UnicodeEncodeError):
        return None


def may_be_kept(compiled: Compiled, kind: Kind) -> bool:
    """Whether all that the trace of a call depends on can be told, and tracing takes long enough
    for it to be kept.
    """
    plain = type(compiled.where) is OneDevice and compiled.tuning.keeps and jax.process_count() == 1
    apart = (
        compiled.sharded
        or compiled.made
        or compiled.own
        or compiled.may_raise
        or compiled.cutting is not None
    )
    apart = apart or compiled.memory_optimized  # which keeps to what was told of it, to the byte
    large = (
        plain
        and not apart
        and kind in (Kind.ONE, Kind.MANY)
        and len(ops_within(compiled.step)) >= FEWEST
    )
    return large and _ours(compiled.step)


def _ours(step: Step) -> bool:
    """Whether every op is this package's own, and none calls what the script made."""
    kinds = {op.type for op in ops_within(step)}
    definitions = [lookup(kind) for kind in kinds]
    definitions += [lookup(d.forward) for d in definitions if d.forward is not None]
    functions = [f for d in definitions for f in (d.fn, d.infer, d.control.lower) if f is not None]
    return kinds.isdisjoint(OF_THIS_PROCESS) and all(map(_own, functions))


def _own(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return (getattr(function, "__module__", None) or "").split(".")[0] == PACKAGE.name


def _words(compiled: Compiled, kind: Kind, args: Sequence[Any]) -> Iterator[str]:
    step = compiled.step
    yield from process_words()
    yield repr([(name, flag(name)) for name in DEFAULTS if "compilation_cache" not in name])
    yield repr(
        sorted(
            (n, repr(v))
            for n, v in jax.config.values.items()
            if not any(w in n for w in WITHOUT_MEANING)
        )
    )
    yield f"{compiled.where.device.platform} {compiled.where.device.device_kind} {surroundings()}"
    yield plain([getattr(step, f.name) for f in fields(step) if f.name != "desc"])
    yield plain([kind.value, compiled.options])
    yield plain([(n, v.shape, str(v.dtype)) for n, v in compiled.shapes.items()])
    yield repr((compiled.written, compiled.layouts))
    yield plain(list(compiled.objections.told.items()))
    yield from map(_argument, args)
    yield from program_words(step.desc)


@functools.cache
def process_words() -> tuple[str, ...]:
    """What is the same for all keys of a process. Raises NoKey where this package's files are not
    those that it runs.
    """
    found = files_digest(PACKAGE, _imported)
    if found is None:
        raise NoKey
    beside = [version(name) for name in BESIDE]
    return "fluidjax", found, repr(beside), repr(os.environ.get("XLA_FLAGS"))


def files_digest(package: Path, since: float) -> str | None:
    """Of the contents of a package's files; None if one was changed after `since`, when the process
    imported it, or cannot be read.
    """
    made, paths, root = hashlib.sha256(), [], len(str(package)) + 1
    for at, folders, names in os.walk(package):
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths += [os.path.join(at, name) for name in names]
    try:
        for path in sorted(paths):
            with open(path, "rb") as file:
                facts = os.fstat(file.fileno())
                if max(facts.st_mtime, facts.st_ctime) > since:
                    return None
                content = file.read()
            made.update(f"{path[root:]} {len(content)}\n".encode())
            made.update(content)
    except OSError:
        return None
    return made.hexdigest() if paths else None


def program_words(desc: ProgramDesc) -> Iterator[str]:
    """All of a program but where its ops come from in the user's script."""
    yield f"seed {desc.seed}"
    for block in desc.blocks:
        yield f"block {block.parent} {block.forward}"
        yield "\n".join(map(repr, block.vars.values()))
        yield "\n".join(map(_op, block.ops))


def _op(op: OpDesc) -> str:
    attrs = {
        n: v if type(v) in _SIMPLE else plain(v) for n, v in op.attrs.items() if n != "op_callstack"
    }
    return f"{op.uid} {op.type} {op.inputs!r} {op.outputs!r} {attrs!r}"


def _argument(value: Any) -> str:
    """The type of an argument: of a list or dict of values, of one, of a number."""
    if isinstance(value, Mapping):
        return repr([(n, _argument(value[n])) for n in sorted(value)])
    if isinstance(value, list):
        return repr(list(map(_argument, value)))
    if isinstance(value, Fixed):
        return repr(value.form)
    if isinstance(value, Ragged):
        meta = plain(
            [
                value.longest,
                value.key,
                value.padded,
                value.bare,
                value.most,
                value.each,
                value.nothing,
            ]
        )
        return (
            f"ragged {meta} {[_argument(v) for v in (value.rows, *value.offsets)]}"
            f" {value.alive is None or _argument(value.alive)}"
        )
    if type(value) in (int, float):
        return type(value).__name__
    if isinstance(value, np.ndarray | jax.Array | jax.ShapeDtypeStruct):
        return f"{value.dtype} {value.shape} {getattr(value, 'weak_type', False)}"
    raise NoKey


def plain(value: Any) -> str:
    """Numbers, texts and collections of them, as a text. Raises NoKey for anything else, whose text
    may not say all of it.
    """
    if isinstance(value, list | tuple):
        return f"({','.join(map(plain, value))})"
    if isinstance(value, frozenset | set):
        return f"{{{','.join(sorted(map(plain, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{plain(k)}:{plain(v)}' for k, v in value.items())}}}"
    if type(value) in _SIMPLE:
        return repr(value)
    raise NoKey
