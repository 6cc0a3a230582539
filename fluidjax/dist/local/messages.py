"""The messages between trainers and pservers in one process, and their ops: send, recv and the
barriers.

An op is a generator: it yields messages and receives answers. Its driver decides when to answer, so
a job can be stepped message by message. tables.py has the ops of embedding tables.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import FluidValueError
from ...ir.desc import OpDesc, VarDesc

SEND, GET, LOOKUP, OPTIMIZE = "send", "get", "lookup", "optimize"
SEND_BARRIER, FETCH_BARRIER = "send_barrier", "fetch_barrier"
# a variable that Paddle's geo trainers name at their start, and that does not exist
GEO_START = "param_init"
BARRIERS = frozenset({SEND_BARRIER, FETCH_BARRIER})


@dataclass(frozen=True)
class Message:
    """One message between a trainer and a pserver.

    kind: "send" (a value to a pserver), "get" (a value from one), "lookup" (rows of a table),
    "send_barrier" and "fetch_barrier" (the trainer waits for the others), "optimize" (a pserver
    runs its optimize blocks; trainer is None). name: the variable's name on the pserver. value: the
    sent value; for a lookup the row numbers.
    """

    kind: str
    trainer: int | None
    endpoint: str = ""
    name: str = ""
    value: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        who = f"trainer {self.trainer}"
        if self.kind == OPTIMIZE:
            return f"{self.endpoint} optimizes{f' ({self.name})' if self.name else ''}"
        if self.kind in BARRIERS:
            return f"{who} waits at {self.kind}"
        if self.kind == SEND:
            return f"{who} -> {self.endpoint}: {self.name}"
        return f"{who} <- {self.endpoint}: {self.name}" + (" (rows)" if self.kind == LOOKUP else "")


class Speaker(Protocol):
    """The interface of a trainer for its ops."""

    id: int

    def value(self, name: str, op: OpDesc) -> Any: ...
    def store(self, name: str, value: Any) -> None: ...
    def declared(self, name: str) -> VarDesc | None: ...


Talk = Generator[Message, Any, None]


def send(op: OpDesc, trainer: Speaker) -> Talk:
    """Send every variable of X to its endpoint; in sections, if it has several names there."""
    names, endpoints = op.input("X"), strings(op, "epmap")
    there = strings(op, "send_varnames")
    if not names or names == (GEO_START,):
        return  # a geo trainer sends differences, after its step (trainer.py)
    if there and len(names) != 1:
        raise FluidValueError(f"op 'send' has {len(names)} inputs, but send_varnames is for one")
    if len(names) == 1 and len(there) < 2:  # a trainer's counter is sent to every pserver
        for endpoint in endpoints:
            yield Message(
                SEND, trainer.id, endpoint, (there or names)[0], trainer.value(names[0], op)
            )
    elif not there:
        for name, endpoint in paired(op, names, endpoints):
            yield Message(SEND, trainer.id, endpoint, name, trainer.value(name, op))
    else:
        parts = _sections(trainer.value(names[0], op), op)
        for (name, endpoint), part in zip(paired(op, there, endpoints), parts, strict=True):
            yield Message(SEND, trainer.id, endpoint, name, part)


def recv(op: OpDesc, trainer: Speaker) -> Talk:
    """Receive every variable of Out from its endpoint; one with several names there is
    concatenated.
    """
    names, endpoints = op.output("Out"), strings(op, "epmap")
    there = strings(op, "recv_varnames") or names
    values = []
    for name, endpoint in paired(op, there, endpoints):
        values.append((yield Message(GET, trainer.id, endpoint, name)))
    if len(names) == len(there):
        for name, value in zip(names, values, strict=True):
            trainer.store(name, value)
    elif len(names) == 1:
        trainer.store(names[0], jnp.concatenate(values))
    else:
        raise FluidValueError(
            f"op 'recv' has {len(names)} outputs and {len(there)} recv_varnames; either as many, or"
            " one output"
        )


def barrier(op: OpDesc, trainer: Speaker) -> Talk:
    """Wait for the other trainers."""
    yield Message(op.type, trainer.id)


def strings(op: OpDesc, attr: str) -> tuple[str, ...]:
    return tuple(op.attrs.get(attr) or ())


def paired(op: OpDesc, names: Iterable[str], endpoints: tuple[str, ...]) -> list[tuple[str, str]]:
    names = tuple(names)
    if len(names) != len(endpoints):
        raise FluidValueError(
            f"op '{op.type}' names {len(names)} variables ({', '.join(names)}) but {len(endpoints)}"
            " endpoints"
        )
    return list(zip(names, endpoints, strict=True))


def _sections(value: Any, op: OpDesc) -> list[Any]:
    sizes = [int(n) for n in op.attrs.get("sections") or ()]
    if not isinstance(value, jax.Array | np.ndarray) or sum(sizes) != value.shape[0]:
        raise FluidValueError(
            f"op 'send' has sections {sizes}, which do not add up to the rows of"
            f" {op.input('X')[0]!r}"
        )
    return list(jnp.split(jnp.asarray(value), np.cumsum(sizes)[:-1].tolist()))
