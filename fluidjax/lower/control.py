"""The interface through which a control op runs its blocks while it is lowered, and the error for
programs with remote ops, which nothing here runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax

from ..errors import MixesRows, UnsupportedError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.ragged import Ragged
from ..ops.registry import traits
from ..ops.selected import SelectedRows
from ..ops.traits import Runs
from .env import Context, Env, read

RunBlock = Callable[[int, Env, Context], None]


@dataclass(frozen=True)
class ControlCall:
    """One run of a control op (the protocol ``Call`` of ops/control_interface.py)."""

    op: OpDesc
    env: Env
    context: Context
    runner: RunBlock

    @property
    def desc(self) -> ProgramDesc:
        return self.context.desc

    @property
    def in_loop(self) -> bool:
        return self.context.in_loop

    @property
    def hosted(self) -> bool:
        return False

    def read(self, name: str) -> Any:
        return read(self.env, name, self.op)

    def exact(self, name: str, value: Any) -> Any:
        if isinstance(value, SelectedRows):
            raise UnsupportedError(
                f"op '{self.op.type}' takes plain arrays, but {name!r} is sparse (SELECTED_ROWS)"
            )
        if not isinstance(value, Ragged):
            return value
        if value.padded:
            raise MixesRows(
                f"op '{self.op.type}' takes the rows of {name!r} as a whole, so it needs exact"
                " sizes"
            )
        return value.rows

    def refuse(self, bad: Any, sentence: str, value: Any = 0) -> None:
        self.context.object_to(self.op, self.env, [(bad, sentence, value)])

    def run_block(self, idx: int, env: Env, iteration: Any = None) -> None:
        context = self.context.nested()
        if iteration is not None:
            key = None if context.key is None else jax.random.fold_in(context.key, iteration)
            context = replace(context, key=key, in_loop=True)
        self.runner(idx, env, context)


def refuse_remote(desc: ProgramDesc) -> None:
    """Raises UnsupportedError for a program of a parameter-server job, naming its first
    communicating op.
    """
    for idx, op in walk.ops(desc):
        if traits(op.type).runs is Runs.REMOTE:
            raise UnsupportedError(
                f"op '{op.type}' of block {idx} belongs to a parameter-server job, and a program"
                " alone has no partner: run all programs of the job in this process with"
                " fluid.dist.LocalJob.of(transpiler), start the script with `python -m fluidjax"
                " launch`, or run the program as it was before transpile"
            )
