"""DistributeTranspiler's decisions as one frozen value, so that runtimes need not analyse programs.

A trainer's and a pserver's Program carry it as ``program.info.pserver_plan``, a transpiler as
``transpiler.plan``:

    plan.endpoints           ('127.0.0.1:6174', '127.0.0.1:6175')
    plan.params[1].blocks    fc_w.block0 on 6175 (rows 0..499), fc_w.block1 on 6174 (rows 500..999)
    plan.main, plan.startup  the programs as they were before transpile
    plan.trainer(1)          (main, startup) of trainer 1, as frozen descs
    plan.pserver(endpoint)   (main, startup) of that pserver
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import FluidValueError, UnknownEndpointError, near
from ..ir.desc import ProgramDesc
from ..look.shown import Shown

if TYPE_CHECKING:
    from ..look.picture import Picture

MODES = ("sync", "async", "half_async", "geo")
Descs = tuple[ProgramDesc, ProgramDesc]


@dataclass(frozen=True)
class ParamBlock:
    """A run of whole rows of one parameter (elements, for a vector) that one pserver owns.

    name: the block's name on its pserver (``fc_w.block0``; the parameter's own name if it has one
    block). grad: the name of the merged gradient there (``fc_w@GRAD.block0``; trainers send it
    under this name, with ``.trainer_T`` appended in sync mode with several trainers). offset: its
    first element in the flattened parameter.
    """

    name: str
    grad: str
    endpoint: str
    index: int
    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.shape)

    @property
    def rows(self) -> slice:
        """Its range on dimension 0 of the parameter."""
        first = self.offset // math.prod(self.shape[1:])
        return slice(first, first + self.shape[0])


@dataclass(frozen=True)
class PlannedParam:
    """A parameter that the pservers update, with its blocks.

    grad: the variable of `plan.main` whose value is sent, after clipping (``fc_w@GRAD``,
    ``clip_1.tmp_0``). sparse: that gradient is SELECTED_ROWS. remote: the table is never received;
    its rows are looked up on the pservers.
    """

    name: str
    grad: str
    shape: tuple[int, ...]
    dtype: str
    blocks: tuple[ParamBlock, ...]
    sparse: bool = False
    remote: bool = False


@dataclass(frozen=True)
class PlannedTable:
    """A table of ``is_distributed`` lookups: row r is row ``r // len(endpoints)`` of pserver ``r %
    len(endpoints)``.

    rows: the number of rows on a pserver, ceil(height / pservers). grad: its gradient in
    `plan.main`. learning_rate: the rate variable of its plain sgd, whatever the optimizer of the
    other parameters.
    """

    name: str
    grad: str
    shape: tuple[int, int]
    dtype: str
    rows: int
    learning_rate: str


@dataclass(frozen=True)
class PserverPlan(Shown):
    """The owners in a parameter-server job, and the original programs.

    mode: ``sync``, ``async``, ``half_async`` or ``geo``. trainers: their number; trainer_id: the
    trainer of this plan (plans of the trainers of a job differ in nothing else). push_every: the
    number of batches between exchanges of deltas in geo mode. compensated: late gradients are
    corrected (enable_dc_asgd). main, startup: the original programs. build: makes the programs of a
    role, see `trainer` and `pserver`.
    """

    endpoints: tuple[str, ...]
    trainers: int
    trainer_id: int
    mode: str
    params: tuple[PlannedParam, ...]
    main: ProgramDesc
    startup: ProgramDesc
    tables: tuple[PlannedTable, ...] = ()
    push_every: int = 1
    compensated: bool = False
    build: Callable[[int | str], Descs] | None = field(default=None, compare=False, repr=False)

    def trainer(self, trainer_id: int) -> Descs:
        """Main and startup program of a trainer, as frozen descs. Raises FluidValueError for an id
        out of range.
        """
        if not 0 <= trainer_id < self.trainers:
            raise FluidValueError(
                f"trainer_id is {trainer_id}, but the job has {self.trainers} trainers, 0 to"
                f" {self.trainers - 1}"
            )
        return self._made(trainer_id)

    def pserver(self, endpoint: str) -> Descs:
        """Main and startup program of a pserver, as frozen descs. Raises UnknownEndpointError for
        one that the job does not have.
        """
        self.index(endpoint)
        return self._made(endpoint)

    def _made(self, role: int | str) -> Descs:
        if self.build is None:
            raise FluidValueError(
                "this plan was made without programs; take the one of DistributeTranspiler"
            )
        return self.build(role)

    def index(self, endpoint: str) -> int:
        """The number of a pserver. Raises UnknownEndpointError, with near matches, for one that the
        job does not have.
        """
        if endpoint not in self.endpoints:
            there = ", ".join(self.endpoints)
            raise UnknownEndpointError(
                f"there is no pserver {endpoint!r}{near(str(endpoint), self.endpoints)}; the job"
                f" has {there}"
            )
        return self.endpoints.index(endpoint)

    def owned(self, endpoint: str) -> tuple[ParamBlock, ...]:
        """The blocks that a pserver owns, in the order of `params`. Raises UnknownEndpointError for
        one that the job does not have.
        """
        self.index(endpoint)
        return tuple(b for p in self.params for b in p.blocks if b.endpoint == endpoint)

    def __repr__(self) -> str:
        owned = ", ".join(
            f"{count} on {ep}" for ep in self.endpoints if (count := len(self.owned(ep)))
        )
        return f"<PserverPlan: {self.mode}, {self.trainers} trainers, blocks: {owned or 'none'}>"

    def picture(self) -> Picture:
        """A picture of the blocks' owners: a bar for each parameter, cut at the boundaries of
        pservers. Notebooks show it for the plan.
        """
        from ..look.owners import Held, Part, owners

        held = [
            Held(
                p.name,
                p.shape,
                p.dtype,
                tuple(Part(self.index(b.endpoint), b.offset, b.size, b.name) for b in p.blocks),
            )
            for p in self.params
        ]
        for t in self.tables:  # row r is on pserver r % pservers: no contiguous parts
            held.append(Held(t.name, t.shape, t.dtype, spread=True))
        return owners(f"{self.mode} job of {self.trainers} trainers", self.endpoints, held)

    def _repr_html_(self) -> str:
        return self.picture().fragment()
