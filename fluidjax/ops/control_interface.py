"""Control ops: ops that hold blocks or cannot be a function of arrays. One value declares all about
such an op.

    control_op("when", ins="Cond", outs="Out*", attrs={"sub_block": Attr("sub_block", "BLOCK")},
    doc="...", runs=Runs.STEP,
               write_grad=..., control=ControlOp(lower=..., divergence=decided_by("Cond")))

The code that runs, differentiates, rewrites or distributes a program uses this value and names no
op type. It passes the protocols below to the op's functions, so that a control op imports nothing
above this level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc

Env = dict[str, Any]


class Call(Protocol):
    """One run of a control op within a trace: the op, its program, and the values by name, to which
    it adds its results.
    """

    @property
    def op(self) -> OpDesc: ...
    @property
    def desc(self) -> ProgramDesc: ...
    @property
    def env(self) -> Env: ...
    @property
    def in_loop(self) -> bool:
        """Whether a loop runs the op, so that its counters are known only when the step runs."""

    @property
    def hosted(self) -> bool:
        """Whether Python runs the op between compiled segments (partition/cuts.py), so that all
        values are known.
        """

    def read(self, name: str) -> Any:
        """A value. Raises EnforceNotMet if nothing has given it one."""

    def exact(self, name: str, value: Any) -> Any:
        """The array of a value. Raises MixesRows if it has padded rows, UnsupportedError if it is
        sparse.
        """

    def refuse(self, bad: Any, sentence: str, value: Any = 0) -> None:
        """Raise an error if `bad`, a boolean scalar, is true when the step runs: "op 'type' (line)
        " and the sentence (ops/checking.py).
        """

    def run_block(self, idx: int, env: Env, iteration: Any = None) -> None:
        """Run the ops of a block in `env`. iteration: its number in a loop, so that each iteration
        samples other random numbers.
        """


class Ranks(Protocol):
    """The names whose values differ between ranks before the op; its function gives those after the
    op.
    """

    @property
    def op(self) -> OpDesc: ...
    @property
    def desc(self) -> ProgramDesc: ...
    @property
    def differs(self) -> dict[str, bool]: ...

    def any(self, names: Iterable[str]) -> bool:
        """Whether one of these differs."""

    def through(self, idx: int) -> Mapping[str, bool]:
        """The names that differ after the ops of a block that all ranks run, or none runs;
        `differs` is not changed.
        """

    def alone(self) -> None:
        """Each rank runs the op alone: its outputs differ if an input differs, or if it is random."""


def decided_by(*slots: str) -> Callable[[Ranks], None]:
    """A divergence: these input slots decide whether the blocks run, so with equal inputs all ranks
    run the same ops.
    """

    def follow(ranks: Ranks) -> None:
        op = ranks.op
        if ranks.any(n for slot in slots for n in op.input(slot)):
            ranks.alone()
            return
        inside = [ranks.through(idx) for idx in op.blocks]
        for name in walk.writes_with_subblocks(ranks.desc, op):
            ranks.differs[name] = any(found.get(name, False) for found in (ranks.differs, *inside))

    return follow


@dataclass(frozen=True, slots=True)
class ControlOp:
    """The declaration of a control op, besides slots, attributes, gradient and traits.

    lower: runs the op within a trace; None for an op that no step runs (trait `runs` names what
    does). A host op (``Runs.HOST``) with `lower` runs if a program runs op by op; a compiled step
    skips it. carried: the names whose old value may remain after the op, so that they need one; by
    default the outer variables that its blocks write, since the blocks may not run, and an output
    that the op also reads although no input slot names it. divergence: the names that differ
    between ranks after it; by default each rank runs it alone. frees: an input slot whose variables
    are freed, which is not a use of them. may_raise: it may raise when it runs, so a step with it
    donates no state before it has ended. outside: input slots whose names no block declares.

    `write_grad` writes its gradient, as for any op (definition.py). A gradient op that holds blocks
    is a separate control op, declared beside this one.
    """

    lower: Callable[[Call], None] | None = None
    carried: Callable[[ProgramDesc, OpDesc], Iterable[str]] = walk.written_outside
    divergence: Callable[[Ranks], None] | None = None
    frees: str | None = None
    may_raise: bool = False
    outside: tuple[str, ...] = ()
