"""One pserver of a job in this process: its program, its scope, and its handling of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, FeedError, FluidValueError, near
from ...feeds.bucketing import bucket
from ...graph.program import Program
from ...ir.desc import OpDesc, ProgramDesc, VarDesc
from ...ir.edit import add_vars
from ...ops.registry import GRAD
from ...state.scope import Scope
from .segments import HELD, Segment, cut

SYNC, ASYNC, HALF_ASYNC, GEO = range(4)  # listen_and_serv's distributed_mode
# the variable with the trainer whose gradient a block applies (enable_dc_asgd)
TRAINER_ID = "@TRAINER_ID@"
MODES = {SYNC: "sync", ASYNC: "async", HALF_ASYNC: "half async", GEO: "geo"}


class LocalServer:
    """A pserver. `program` and `scope` may be inspected at any time.

    endpoint: its name in the job. index: its position among the pservers. program: from
    get_pserver_program. startup_program: from get_startup_program.
    """

    def __init__(
        self, endpoint: str, index: int, program: Program, startup_program: Program, seed: int
    ) -> None:
        self.endpoint, self.index = endpoint, index
        self.program, self.startup_program = program, startup_program
        self.scope = Scope()
        self.rounds = 0
        self._seed = seed
        self._desc = program.desc
        self._listen = _listen(endpoint, self._desc)
        attrs = self._listen.attrs
        self.mode = int(attrs.get("distributed_mode", SYNC))
        self.trainers = int(attrs.get("Fanin", 1))
        self._blocks = tuple(ref.idx for ref in attrs.get("optimize_blocks", ()))
        self._rates = int(attrs.get("lr_decay_block_id", -1))
        self._block_of = dict(_numbered(attrs, "grad_to_block_id"))
        prefetched = _numbered(attrs, "prefetch_var_name_to_block_id")
        self._tables = {
            name: self._desc.blocks[idx].ops[0].input("W")[0] for name, idx in prefetched
        }
        self._pieces: dict[Any, Segment | None] = {}
        self._arrived: set[str] = set()
        self._names = self._declared()

    def _declared(self) -> set[str]:
        """Every name that a trainer may send here or request."""
        declared = {n for block in self._desc.blocks for n in block.vars}
        return declared | {
            n for i in self._blocks for op in self._desc.blocks[i].ops for n in op.reads
        }

    def __repr__(self) -> str:
        return (
            f"LocalServer({self.endpoint}, {MODES.get(self.mode, self.mode)}, {len(self._block_of)}"
            " blocks)"
        )

    # -- what the job asks of it -------------------------------------------------------------------

    def start(self) -> None:
        """Run the startup program: parameters and optimizer state get their first values."""
        desc = self.startup_program.desc
        known = self._desc.blocks[0].vars
        kept = dict.fromkeys(
            n
            for op in desc.blocks[0].ops
            for n in op.writes
            if n in known and known[n].kind in HELD
        )
        for part in cut(desc, tuple(kept)):
            if isinstance(part, OpDesc):
                raise FluidValueError(
                    f"the startup program of pserver {self.endpoint} has an op '{part.type}', which"
                    " belongs to trainers"
                )
            self._store(part({}, desc.seed or self._seed, 0))

    def receive(self, name: str, value: Any, trainer: int) -> None:
        """Receive a trainer's value. In async modes a block runs as soon as all its inputs have
        arrived.

        Raises FluidValueError for a name that the pserver's program does not have.
        """
        if self.mode != SYNC and self._counts(name):
            self.scope.var(name).value = self.value(name) + value
            self._update_rates()
            return
        self._check(name, trainer, "sends")
        self.scope.var(name).value = value
        self._arrived.add(name)
        if self.mode != SYNC:
            self._apply(name, trainer)

    def put(self, name: str, value: Any) -> None:
        """Store a parameter block, also as the version that trainers have seen."""
        for seen in (name, *(self._seen(name, i) for i in range(self.trainers))):
            if seen == name or self.scope.find_var(seen) is not None:
                self.scope.var(seen).value = value

    def value(self, name: str) -> Any:
        """The value of a parameter block. Raises EnforceNotMet before start()."""
        found = self._value(name)
        if found is None:
            raise EnforceNotMet(
                f"pserver {self.endpoint} has no value for {name!r} yet; call start() first"
            )
        return found

    def get(self, name: str, trainer: int) -> Any:
        """The same for a trainer; in a job with enable_dc_asgd the pserver remembers the version
        that the trainer saw.
        """
        self._check(name, trainer, "asks for")
        value = self.value(name)
        seen = self.scope.find_var(self._seen(name, trainer))
        if seen is not None:
            seen.value = value
        return value

    def lookup(self, name: str, rows: np.ndarray, trainer: int) -> np.ndarray:
        """These rows of a table. name: the table, or the name of the row numbers in a trainer's
        prefetch.

        Raises FeedError for a row that the table does not have.
        """
        table = self._tables.get(name, name)
        value = self.get(table, trainer)
        if rows.size and int(rows.max()) >= value.shape[0]:
            raise FeedError(
                f"trainer {trainer} looks up row {rows.max()} of {table!r} at {self.endpoint},"
                f" which has {value.shape[0]} rows"
            )
        padded = np.zeros(bucket(rows.size), np.int64)  # few sizes, because each is compiled
        padded[: rows.size] = rows
        with jax.enable_x64(True):
            return np.asarray(jnp.take(jnp.asarray(value), padded, axis=0))[: rows.size]

    def optimize(self) -> None:
        """One synchronous round: run every optimize block on the received gradients.

        Raises EnforceNotMet for a gradient that no trainer sent since the last round.
        """
        segment = self._segment(self._blocks)
        vars = self._desc.blocks[0].vars
        for name in segment.takes if segment is not None else ():
            if not (name in vars and vars[name].persistable) and name not in self._arrived:
                sent = (
                    f"; it got {', '.join(sorted(self._arrived))}"
                    if self._arrived
                    else "; it got nothing"
                )
                raise EnforceNotMet(
                    f"pserver {self.endpoint} needs {name!r} for its round, which no trainer"
                    f" sent{sent}"
                )
        self._arrived.clear()
        self._run(segment)
        self.rounds += 1

    # -- inside ------------------------------------------------------------------------------------

    def _check(self, name: str, trainer: int, does: str) -> None:
        if name not in self._names:
            raise FluidValueError(
                f"trainer {trainer} {does} {name!r} at pserver {self.endpoint}, whose program has"
                f" no such variable{near(name, self._names)}"
            )

    def _apply(self, name: str, trainer: int) -> None:
        """Run the block of the last arrival, if that completes its inputs."""
        idx = self._block_of.get(name)
        if idx is None:
            idx = next(
                (
                    i
                    for i in self._blocks
                    if any(name in op.reads for op in self._desc.blocks[i].ops)
                ),
                None,
            )
        segment = None if idx is None else self._segment((idx,))
        if segment is None:
            raise FluidValueError(
                f"trainer {trainer} sends {name!r} to pserver {self.endpoint}, which has no"
                f" optimize block for it{near(name, self._block_of)}"
            )
        self.scope.var(TRAINER_ID).value = np.array([trainer], np.int64)
        awaited = set(self._listen.input("X")).intersection(segment.takes)
        if not awaited <= self._arrived:
            return
        self._arrived -= {*awaited, name}
        if self._rates >= 0 and any(self._value(n) is None for n in segment.takes):
            self._update_rates()  # no trainer's counter has arrived yet
        self._run(segment)
        self.rounds += 1

    @staticmethod
    def _seen(name: str, trainer: int) -> str:
        """The variable with the version of a block that a trainer last received (enable_dc_asgd)."""
        return f"{name}.trainer_{trainer}_bak"

    def _counts(self, name: str) -> bool:
        """Whether this is a trainer's count of batches, on which the learning rate depends."""
        return (
            self._rates >= 0
            and name not in self._block_of
            and any(name in op.reads for op in self._desc.blocks[self._rates].ops)
        )

    def _update_rates(self) -> None:
        self._run(self._segment((self._rates,)))

    def _segment(self, blocks: tuple[int, ...]) -> Segment | None:
        """The ops of these blocks, one block after another, compiled together; None if they do
        nothing.
        """
        if blocks not in self._pieces:
            ops = [op for i in blocks for op in self._desc.blocks[i].ops]
            written = dict.fromkeys(n for op in ops for n in op.writes)
            vars = self._desc.blocks[0].vars
            elsewhere = {
                n
                for i in self._blocks
                if i not in blocks
                for op in self._desc.blocks[i].ops
                for n in op.reads
            }
            results = [
                n
                for n in written
                if n in elsewhere or (n in vars and vars[n].persistable and _is_state(vars[n]))
            ]
            self._pieces[blocks] = (
                Segment(_with_vars_of(self._desc, blocks), ops, results) if results else None
            )
        return self._pieces[blocks]

    def _run(self, segment: Segment | None) -> None:
        if segment is None:
            return
        values = {n: v for n in segment.takes if (v := self._value(n)) is not None}
        self._store(segment(values, self._desc.seed or self._seed, self.rounds))

    def _value(self, name: str) -> Any:
        var = self.scope.find_var(name)
        return None if var is None else var.value

    def _store(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.scope.var(name).value = value


def _numbered(attrs: Mapping[str, Any], name: str) -> list[tuple[str, int]]:
    """An attribute of texts "name:block", parsed."""
    return [
        (key, int(idx)) for key, _, idx in (text.rpartition(":") for text in attrs.get(name, ()))
    ]


def _is_state(var: VarDesc) -> bool:
    """Whether a variable keeps a value: handles do not, nor merged sparse gradients, which nothing
    reads after their round.
    """
    return var.kind in HELD and not (var.kind == "SELECTED_ROWS" and GRAD in var.name)


def _with_vars_of(desc: ProgramDesc, blocks: tuple[int, ...]) -> ProgramDesc:
    """The program with the variables of these blocks in block 0 too."""
    first = desc.blocks[0].vars
    return add_vars(
        desc, 0, [v for i in blocks for v in desc.blocks[i].vars.values() if v.name not in first]
    )


def _listen(endpoint: str, desc: ProgramDesc) -> OpDesc:
    """The op listen_and_serv. Raises FluidValueError if this is not a pserver's program."""
    found = [op for op in desc.blocks[0].ops if op.type == "listen_and_serv"]
    if len(found) != 1:
        raise FluidValueError(
            f"the program of pserver {endpoint} has {len(found)} ops 'listen_and_serv' instead of"
            " one; get_pserver_program(endpoint) makes such a program"
        )
    if found[0].attrs.get("endpoint") != endpoint:
        raise FluidValueError(
            f"the program given for pserver {endpoint} is the one of"
            f" {found[0].attrs.get('endpoint')!r}"
        )
    if int(found[0].attrs.get("distributed_mode", SYNC)) not in MODES:
        raise FluidValueError(
            f"pserver {endpoint}: distributed_mode is 0 to 3, not"
            f" {found[0].attrs['distributed_mode']}"
        )
    return found[0]
