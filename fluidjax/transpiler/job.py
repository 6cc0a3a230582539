"""A transpiled parameter-server job: its plan, and the programs of its roles, made from frozen
descs on demand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dist.pserver_plan import Descs, PserverPlan
from ..graph.program import Program
from ..ir import verify
from ..ir.desc import ProgramDesc
from ..ops.registry import lookup
from . import geo
from .layout import Layout, analyse
from .pserver import serve
from .request import Request
from .startup import initialise, take_values, without_states
from .trainer import send_gradients, without_updates


@dataclass(frozen=True)
class Mode:
    """The functions that make the programs of one kind of job from a layout.

    sending: a trainer's programs after transpile. finished: the same after get_trainer_program.
    serving: a pserver's programs.
    """

    sending: Callable[[Layout, int], Descs]
    finished: Callable[[Layout, ProgramDesc, ProgramDesc], Descs]
    serving: Callable[[Layout, str], Descs]


def _serving(layout: Layout, endpoint: str) -> Descs:
    main, parts = serve(layout, endpoint)
    return main, initialise(layout, main, parts, endpoint)


PSERVER = Mode(
    lambda layout, t: (send_gradients(layout, t), take_values(layout, t)),
    lambda layout, main, startup: (without_updates(main, layout), without_states(startup, layout)),
    _serving,
)
GEO = Mode(geo.send_deltas, lambda layout, main, startup: (main, startup), geo.serve_deltas)


class TranspiledJob:
    """The result of a transpile. `original`: the main and startup programs before it."""

    def __init__(self, layout: Layout, original: Descs) -> None:
        self.layout, self.original = layout, original
        self.mode = GEO if layout.request.geo else PSERVER
        self._made: dict[int | str, Descs] = {}
        request = layout.request
        self.plan = PserverPlan(
            request.endpoints, request.trainers, request.trainer_id, request.mode, layout.params, *original,
            () if layout.table is None else (layout.table,), request.push_every, request.dc_asgd, self.descs,
        )  # fmt: skip

    def descs(self, role: int | str) -> Descs:
        """The verified main and startup programs of a trainer (its number) or a pserver (its
        endpoint).
        """
        if role not in self._made:
            if isinstance(role, int):
                made = self.mode.finished(self.layout, *self.mode.sending(self.layout, role))
            else:
                made = self.mode.serving(self.layout, role)
            for desc in made:
                verify.verify(desc, lookup)
            self._made[role] = made
        return self._made[role]

    def pserver(self, endpoint: str) -> tuple[Program, Program]:
        """New handles on a pserver's programs."""
        main, startup = map(Program.from_desc, self.plan.pserver(endpoint))
        for program in (main, startup):
            program.update_info(pserver_plan=self.plan)
        return main, startup

    def begin(self, main: Program, startup: Program) -> None:
        """Rewrite the user's programs as transpile does."""
        new_main, new_startup = self.mode.sending(self.layout, self.layout.request.trainer_id)
        main.set_desc(new_main)
        startup.set_desc(new_startup)
        for program in (main, startup):
            program.update_info(pserver_plan=self.plan)

    def finish(self, main: Program, startup: Program) -> None:
        """Rewrite them as get_trainer_program does; a second call changes nothing."""
        new_main, new_startup = self.mode.finished(self.layout, main.desc, startup.desc)
        if new_main != main.desc:
            main.set_desc(new_main)
        if new_startup != startup.desc:
            startup.set_desc(new_startup)

    def with_startup(self, startup: Program) -> TranspiledJob:
        """The same job, initialised by another program."""
        original = (self.original[0], startup.desc)
        return TranspiledJob(analyse(self.layout.request, *original), original)

    def summary(self) -> str:
        """A line for every block: its pserver, name, shape and position in the parameter."""
        lines = [
            f"{b.endpoint} {b.name} {list(b.shape)} of {p.name}{list(p.shape)} at {b.offset}"
            for p in self.plan.params
            for b in p.blocks
        ]
        return "\n".join(lines)


def transpile_job(request: Request, main: Program, startup: Program) -> TranspiledJob:
    """Transpile the programs in place. Raises the errors of layout.analyse; the programs do not
    change then.
    """
    original = (main.desc, startup.desc)
    job = TranspiledJob(analyse(request, *original), original)
    job.begin(main, startup)
    return job
