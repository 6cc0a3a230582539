"""What a control op is: an op that holds blocks, or does what no function of arrays does. One value
says all of it.

    control_op("when", ins="Cond", outs="Out*", attrs={"sub_block": Attr("sub_block", "BLOCK")},
    doc="...", runs=Runs.STEP,
               write_grad=..., control=ControlOp(lower=..., divergence=decided_by("Cond")))

The code that runs, differentiates, rewrites or distributes a program asks this value and knows no
op type by name. It calls the op's functions with the protocols below, so that a control op imports
nothing above this level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc

Env = dict[str, Any]


class Call(Protocol):
    """One run of a control op within a trace: the op, its program, and the values by name, in which
    it leaves its own.
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
        """Whether Python runs the op between compiled segments (partition/cuts.py): then all values
        are there.
        """

    def read(self, name: str) -> Any:
        """A value. Raises EnforceNotMet if nothing has given it one."""

    def exact(self, name: str, value: Any) -> Any:
        """The array of a value. Raises MixesRows where it has padded rows, UnsupportedError where
        it is sparse.
        """

    def refuse(self, bad: Any, sentence: str, value: Any = 0) -> None:
        """Object if `bad`, a boolean scalar, holds when the step runs: "op 'type' (line) " and the
        sentence (ops/checking.py).
        """

    def run_block(self, idx: int, env: Env, iteration: Any = None) -> None:
        """Run the ops of a block in `env`. iteration: its number in a loop, so that each iteration
        samples other random numbers.
        """


class Ranks(Protocol):
    """Which names hold other values on one rank than on another, before the op; its function says
    it for after the op.
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
        """What differs after the ops of a block that all ranks run, or none; `differs` stays as it
        is.
        """

    def alone(self) -> None:
        """Each rank goes its own way: what the op writes differs if anything that it reads does, or
        if it is random.
        """


def decided_by(*slots: str) -> Callable[[Ranks], None]:
    """A divergence: the blocks run or not as these input slots say, so with the same inputs all
    ranks run the same ops.
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
    """What the declaration of a control op says besides slots, attributes, gradient and traits.

    lower: runs the op within a trace; None for an op that no step runs (trait `runs` says who
    does). An op of the host (``Runs.HOST``) that has it is run where a program goes op by op, and
    passed over by a compiled step. carried: the names whose value before the op may be what is left
    after it, so that they need one; by default what its blocks write outside, since they may not
    run. An output that the op also reads, though no input slot names it, is one too. divergence:
    which names differ between ranks after it; by default each rank is taken to run it alone. frees:
    an input slot whose variables are to be forgotten, so naming them there is no use of them.
    may_raise: running it may raise, so a step with it gives its state away only when it has ended.
    outside: input slots that name what no block declares.

    How its gradient is written is said by `write_grad`, as of any op (definition.py). A gradient op
    that holds blocks is a control op of its own, declared beside this one.
    """

    lower: Callable[[Call], None] | None = None
    carried: Callable[[ProgramDesc, OpDesc], Iterable[str]] = walk.written_outside
    divergence: Callable[[Ranks], None] | None = None
    frees: str | None = None
    may_raise: bool = False
    outside: tuple[str, ...] = ()
