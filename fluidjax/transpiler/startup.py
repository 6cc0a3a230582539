"""Startup programs of a parameter-server job.

A trainer's startup program initialises parameters and then receives the pservers' values instead. A
pserver's startup program initialises the blocks that it owns: each block by itself if its
initialiser allows it (constants, random numbers), else the whole variable, from which the block is
cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..errors import FluidValueError
from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.registry import having, traits
from .layout import Layout
from .making import Maker, renamed, with_attrs
from .trainer import joined

_VALUES = ("fp32_values", "int32_values", "int64_values", "bool_values")


@dataclass(frozen=True)
class Part:
    """A variable of a pserver: its `name` there; its rows in the original (None: all); the number
    of its block.

    whole: its shape if it is all of the original. alternate: rows r, r + n, ... of a distributed
    table.
    """

    name: str
    shape: tuple[int, ...] | None
    rows: slice | None = None
    number: int = 0
    alternate: bool = False


def take_values(layout: Layout, trainer_id: int) -> ProgramDesc:
    """The trainer's startup program after transpile: receives and concats follow the
    initialisers.
    """
    startup, request = layout.startup, layout.request
    make = Maker(layout.stride, startup.blocks[0].vars)
    taken = [p for p in layout.params if not p.remote]
    receives = [
        make.op(
            "recv",
            {},
            {"Out": [b.name for b in p.blocks]},
            edit.RPC,
            epmap=[b.endpoint for b in p.blocks],
            trainer_id=trainer_id,
        )
        for p in taken
    ]
    token = make.control()
    barrier = make.op(
        "fetch_barrier",
        {},
        {"Out": token.name},
        edit.RPC,
        endpoints=request.endpoints,
        trainer_id=trainer_id,
    )
    ops = [*startup.blocks[0].ops, *receives, barrier, *joined(taken, make, edit.FORWARD)]
    vars = [VarDesc(b.name, b.shape, p.dtype) for p in taken if len(p.blocks) > 1 for b in p.blocks]
    own = [
        replace(layout.main.blocks[0].vars[p.name])
        for p in taken
        if p.name not in startup.blocks[0].vars
    ]
    return edit.add_vars(edit.replace_ops(startup, 0, ops), 0, [*own, *vars, token])


def without_states(startup: ProgramDesc, layout: Layout) -> ProgramDesc:
    """`startup` without variables that only updates read; tables that trainers do not hold get a
    fake_init.

    Raises FluidValueError for such a table unless it has exactly one initialiser.
    """
    gone = layout.dropped
    ops = [op for op in startup.blocks[0].ops if gone.isdisjoint(op.writes)]
    vars = FrozenMap({n: v for n, v in startup.blocks[0].vars.items() if n not in gone})
    make = Maker(1 + edit.max_uid(startup))
    tables = [p.name for p in reversed(layout.params) if p.remote]
    for table in [*tables, *([layout.table.name] if layout.table else [])]:
        inits = [op for op in ops if table in op.writes]
        if len(inits) == 1 and inits[0].type == "fake_init":
            continue
        if len(inits) != 1:
            raise FluidValueError(
                f"table init op num should be 1, now is {len(inits)} (of {table!r})"
            )
        ops = [op for op in ops if op is not inits[0]]
        ops.append(
            make.op(
                "fake_init",
                {},
                {"Out": table},
                shape=inits[0].attrs.get("shape") or vars[table].shape,
            )
        )
    return edit.replace_block(startup, 0, replace(startup.blocks[0], ops=tuple(ops), vars=vars))


def initialise(
    layout: Layout, main: ProgramDesc, parts: Mapping[str, tuple[Part, ...]], endpoint: str
) -> ProgramDesc:
    """A pserver's startup program. `main`: its main program; `parts`: original variable -> the
    parts that the pserver has.
    """
    startup = layout.startup
    ops = _needed(layout, parts)
    first = layout.stride * (len(layout.request.endpoints) + 1)
    init = _Initialiser(
        layout, parts, Maker(first), _whole(ops, parts), layout.request.endpoints.index(endpoint)
    )
    copied = [new for op in ops for new in init.copies(op)]
    copied += init.cuts()
    if layout.request.dc_asgd:
        copied += init.backups(main.blocks[0].vars)
    vars = {v.name: replace(v, persistable=True) for v in main.blocks[0].vars.values()}
    for op in copied:
        for name in (*op.reads, *op.writes):
            if name not in vars:
                vars[name] = init.var(name, startup.blocks[0].vars)
    block = replace(startup.blocks[0], ops=tuple(copied), vars=FrozenMap(vars))
    return ProgramDesc((block,), startup.seed)


def _needed(layout: Layout, names: Iterable[str]) -> list[OpDesc]:
    """The startup ops that these variables' values depend on, in order. Its time depends only on
    those ops.
    """
    ops, writers = layout.startup.blocks[0].ops, layout.initialisers
    until: dict[str, int] = {}  # for each name, writers before this position are kept
    kept: set[int] = set()
    work = [(name, len(ops)) for name in names]
    while work:
        name, end = work.pop()
        if until.get(name, -1) >= end:
            continue
        until[name] = end
        mine = [at for at in writers.get(name, ()) if at < end]
        kept.update(mine)
        work += [(read, at) for at in mine for read in ops[at].reads]
    return [ops[at] for at in sorted(kept)]


def _whole(ops: Iterable[OpDesc], parts: Mapping[str, tuple[Part, ...]]) -> set[str]:
    """The cut variables whose parts cannot be initialised separately: their initialiser is not a
    fill, or not the only one.
    """
    makers: dict[str, list[OpDesc]] = {}
    read: set[str] = set()
    for op in ops:
        read.update(op.reads)
        for name in op.writes:
            makers.setdefault(name, []).append(op)
    cut = {n for n in makers if any(p.rows is not None or p.alternate for p in parts.get(n, ()))}
    return {n for n in cut if len(makers[n]) > 1 or n in read or not _in_parts(makers[n][0])}


def _in_parts(op: OpDesc) -> bool:
    """Whether an initialiser can make a part of its variable: it fills, or lists its values."""
    return traits(op.type).fills or op.type == "assign_value"


class _Initialiser:
    """Copies initialisers for the parts that one pserver has."""

    def __init__(
        self,
        layout: Layout,
        parts: Mapping[str, tuple[Part, ...]],
        make: Maker,
        whole: set[str],
        index: int,
    ) -> None:
        self.layout, self.parts, self.make, self.whole, self.index = (
            layout,
            parts,
            make,
            whole,
            index,
        )
        self.full = {name: f"{name}@WHOLE" for name in whole}

    def copies(self, op: OpDesc) -> list[OpDesc]:
        """The copies of an original startup op in this program."""
        names = [n for n in op.writes if n in self.parts and n not in self.whole]
        if len(names) == 1 and _in_parts(op) and not self.whole.intersection(op.writes):
            return [self.part(op, names[0], part) for part in self.parts[names[0]]]
        more = [
            self.make.op("assign", {"X": name}, {"Out": part.name})
            for name in names
            for part in self.parts[name]
            if part.name != name
        ]
        return [renamed(op, self.full), *more]

    def part(self, op: OpDesc, name: str, part: Part) -> OpDesc:
        """An initialiser for one part. Each has another uid (and seed), so that no two generate the
        same numbers.
        """
        copy = renamed(op, {name: part.name}, op.uid + part.number * self.layout.stride)
        if part.rows is None and not part.alternate:
            return copy
        if op.type == "assign_value":
            return self.values(copy, part)
        if op.attrs.get("seed"):
            copy = with_attrs(copy, seed=op.attrs["seed"] + part.number)
        return with_attrs(copy, shape=part.shape)

    def values(self, op: OpDesc, part: Part) -> OpDesc:
        """An assign_value of the rows of a part; rows of a distributed table that do not exist are
        0.
        """
        shape, row = part.shape or (), math.prod((part.shape or ())[1:])
        held = {}
        for attr in (a for a in _VALUES if op.attrs.get(a)):
            flat = op.attrs[attr]
            rows = [flat[i : i + row] for i in range(0, len(flat), row)]
            mine = (
                rows[self.index :: len(self.layout.request.endpoints)]
                if part.rows is None
                else rows[part.rows]
            )
            mine += [(type(flat[0])(0),) * row] * (shape[0] - len(mine))
            held[attr] = [v for values in mine for v in values]
        return with_attrs(op, shape=shape, **held)

    def cuts(self) -> list[OpDesc]:
        """The blocks, cut from whole variables."""
        return [self.cut(name, part) for name in sorted(self.whole) for part in self.parts[name]]

    def cut(self, name: str, part: Part) -> OpDesc:
        if part.alternate:
            fills = ", ".join(having(lambda t: t.fills))
            raise FluidValueError(
                f"the distributed table {name!r} needs one initialiser of {fills} or"
                " NumpyArrayInitializer"
            )
        if part.rows is None:
            return self.make.op("assign", {"X": self.full[name]}, {"Out": part.name})
        first, end = [part.rows.start], [part.rows.stop]
        return self.make.op(
            "slice",
            {"Input": self.full[name]},
            {"Out": part.name},
            axes=[0],
            starts=first,
            ends=end,
        )

    def backups(self, vars: Mapping[str, VarDesc]) -> list[OpDesc]:
        """Initialise each trainer's copy of each parameter block to the block."""
        owned = [b.name for p in self.layout.params for b in p.blocks]
        trainers = range(self.layout.request.trainers)
        pairs = [(name, f"{name}.trainer_{i}_bak") for name in owned for i in trainers]
        return [
            self.make.op("assign", {"X": name}, {"Out": bak}) for name, bak in pairs if bak in vars
        ]

    def var(self, name: str, original: Mapping[str, VarDesc]) -> VarDesc:
        """The variable of a name that the main program does not have."""
        source = name.removesuffix("@WHOLE")
        return replace(original[source], name=name, persistable=False, is_parameter=False)
