"""A communicating program, cut into compiled segments between the ops that send, receive and wait.

A segment is a pure function from named values to named values, compiled once. The inputs of a
`send` are results of the segment before it, so that a whole forward and backward pass stays one
segment, and gradient ops share work with their forward ops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from ...base.dtypes import numpy_dtype
from ...devices.placement import owned
from ...errors import EnforceNotMet
from ...ir import edit, walk
from ...ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...lower.step import Step
from ...lower.uncompiled import uncompiled
from ...ops.registry import GRAD, lookup, traits
from ...ops.threefry import KnownKey
from ...ops.traits import Runs
from .tables import HANDLERS

# kinds of variables that have a value
HELD = frozenset({"LOD_TENSOR", "SELECTED_ROWS", "LOD_TENSOR_ARRAY"})


class Segment:
    """Some ops of a program as one compiled function: values by name in, values by name out.

    takes: names that it reads. results: names whose values it returns. blank: tables stored
    elsewhere, of which a gradient op needs only the shape. shared_names: the names in an equal
    segment of another party (trainer 1's ``x@GRAD.trainer_1`` is ``x@GRAD.trainer_0``), so that
    both are compiled once.
    """

    def __init__(
        self,
        desc: ProgramDesc,
        ops: Iterable[OpDesc],
        results: Iterable[str],
        absent: Collection[str] = (),
        blank: Mapping[str, VarDesc] | None = None,
        shared_names: Mapping[str, str] | None = None,
    ) -> None:
        """absent: gradients that nothing computes; ops read them as zero."""
        bare, names = _bare(desc, tuple(ops)), dict(shared_names or {})
        self.results = tuple(results)
        read = tuple(n for n in Step(bare, self.results).uses[0] if n not in absent)
        tables = tuple(v for n, v in (blank or {}).items() if n in read)
        self.takes = tuple(n for n in read if n not in {v.name for v in tables})
        self._shared = {n: names.get(n, n) for n in (*self.takes, *self.results)}
        shared = _plain(
            edit.rename(_with_state(bare, read), names),
            (*self._shared.values(), *(v.name for v in tables)),
        )
        self._compiled = _compiled(shared, tuple(self._shared[n] for n in self.results), tables)

    def __call__(self, values: Mapping[str, Any], seed: int, count: int) -> dict[str, Any]:
        """The results by name. Raises EnforceNotMet for a missing value."""
        for name in self.takes:
            if name not in values:
                raise EnforceNotMet(
                    f"variable {name!r} is not initialised{self._reader(name)}; call start() first"
                )
        with jax.enable_x64(True):
            given = {self._shared[n]: values[n] for n in self.takes}
            return dict(zip(self.results, self._compiled.run(given, seed, count), strict=True))

    def _reader(self, name: str) -> str:
        op = self._compiled.step.uses[0].get(self._shared[name])
        return (
            "" if op is None else f": op '{op.type}' reads it" + (f" ({op.loc})" if op.loc else "")
        )


class _Compiled:
    """A jitted step without feeds; tables stored elsewhere are not part of its state. Initialisers
    run op by op.
    """

    def __init__(self, step: Step, blank: tuple[VarDesc, ...]) -> None:
        self.step, self._blank = step, blank
        self._alone = uncompiled(step)
        self.run = self._eagerly if self._alone is not None else jax.jit(self._call)

    def _eagerly(self, values: Mapping[str, Any], seed: int, count: int) -> list[Any]:
        assert self._alone is not None
        return owned(self._alone.run(KnownKey.of(seed).fold_in(count))[1])

    def _call(self, values: Mapping[str, Any], seed: Any, count: Any) -> list[Any]:
        key = jax.random.fold_in(jax.random.key(seed), count) if self.step.random else None
        blank = {
            v.name: jnp.zeros(v.shape or (), numpy_dtype(v.dtype or "float32")) for v in self._blank
        }
        return self.step({**values, **blank}, {}, key)[1]


@lru_cache(maxsize=256)
def _compiled(desc: ProgramDesc, results: tuple[str, ...], blank: tuple[VarDesc, ...]) -> _Compiled:
    """Equal segments of all trainers and jobs are compiled once."""
    return _Compiled(Step(desc, results), blank)


def _bare(desc: ProgramDesc, ops: tuple[OpDesc, ...]) -> ProgramDesc:
    """The program with these ops in block 0 and nothing persistable.

    Transpiled programs declare persistable variables again in sub-blocks; these are the variables
    of block 0.
    """
    first = desc.blocks[0]
    vars = FrozenMap(
        {n: replace(v, persistable=False, is_data=False) for n, v in first.vars.items()}
    )
    blocks = [BlockDesc(vars, ops)]
    for block in desc.blocks[1:]:
        own = {n: v for n, v in block.vars.items() if not (v.persistable and n in first.vars)}
        blocks.append(replace(block, vars=FrozenMap(own)))
    return edit.drop_dead_blocks(replace(desc, blocks=tuple(blocks)))


def _with_state(desc: ProgramDesc, names: Iterable[str]) -> ProgramDesc:
    """The program that takes these names as state, for any kind of values."""
    first = desc.blocks[0]
    taken = {n: replace(first.vars.get(n, VarDesc(n)), persistable=True) for n in names}
    return replace(
        desc, blocks=(replace(first, vars=FrozenMap({**first.vars, **taken})), *desc.blocks[1:])
    )


def _plain(desc: ProgramDesc, kept: Iterable[str]) -> ProgramDesc:
    """The program without unused variables and uids, which do not affect its values, so that more
    segments are equal.
    """
    desc = edit.drop_dead_vars(desc, kept, keep_persistable=False, keep_data=False)
    return desc if any(lookup(op.type).random for _, op in walk.ops(desc)) else edit.renumber(desc)


Part = Segment | OpDesc


def cut(
    desc: ProgramDesc,
    fetches: Sequence[str] = (),
    given: Iterable[str] = (),
    blank: Collection[str] = (),
    shared_names: Mapping[str, str] | None = None,
) -> tuple[Part, ...]:
    """Block 0 as segments and communicating ops, in order.

    fetches: names that must have a value at the end. given: names that have one at the start.
    blank: names of tables stored elsewhere. shared_names: see Segment.
    """
    groups = _groups(desc)
    needed: set[str] = set(fetches) | {
        n for n, v in desc.blocks[0].vars.items() if v.persistable and v.kind in HELD
    }
    wanted: list[list[str]] = []
    for group in reversed(groups):
        names = dict.fromkeys(n for op in _ops(group) for n in _writes(desc, op))
        wanted.append([] if isinstance(group, OpDesc) else [n for n in names if n in needed])
        # its outputs need no earlier value: a received parameter is not initialised
        for op in reversed(_ops(group)):
            walk.step_back(desc, op, needed)
    have = {*given, *(n for n, v in desc.blocks[0].vars.items() if v.persistable)}
    parts: list[Part] = []
    tables = {n: v for n, v in desc.blocks[0].vars.items() if n in blank}
    for group, results in zip(groups, reversed(wanted), strict=True):
        if isinstance(group, OpDesc):
            parts.append(group)
        elif results or any(traits(op.type).runs.acts for op in group):
            read = {n for op in group for n in _reads(desc, op)}
            parts.append(
                Segment(
                    desc,
                    group,
                    results,
                    {n for n in read if GRAD in n and n not in have},
                    tables,
                    shared_names,
                )
            )
        have.update(n for op in _ops(group) for n in op.writes)
    return tuple(parts)


def _groups(desc: ProgramDesc) -> list[list[OpDesc] | OpDesc]:
    """Runs of computing ops, and single communicating ops. A send waits until the run before it is
    complete.
    """
    groups: list[list[OpDesc] | OpDesc] = []
    run: list[OpDesc] = []
    sends: list[OpDesc] = []

    def close() -> None:
        groups.extend([run[:], *sends] if run else sends)
        run.clear()
        sends.clear()

    for op in desc.blocks[0].ops:
        if traits(op.type).runs is Runs.HOST:
            continue
        sent = {n for s in sends for n in s.reads}
        if op.type == "send":
            sends.append(op)
        elif op.type in HANDLERS:
            close()
            groups.append(op)
        else:
            if sent.intersection(_writes(desc, op)):
                close()
            run.append(op)
    close()
    return groups


def _ops(group: list[OpDesc] | OpDesc) -> Sequence[OpDesc]:
    return (group,) if isinstance(group, OpDesc) else group


def _reads(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    return (
        walk.reads_with_subblocks(desc, op) if op.blocks and op.type not in HANDLERS else op.reads
    )


def _writes(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    return (
        walk.writes_with_subblocks(desc, op) if op.blocks and op.type not in HANDLERS else op.writes
    )
