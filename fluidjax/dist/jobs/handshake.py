"""The descriptions of processes before the job starts, and the hub's checks of them. No sockets
here.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import ParseError
from .env import LARGEST, PSERVER, TRAINER, JobEnv


@dataclass(frozen=True)
class Hello:
    """One process of a job.

    host: its name; machine: distinguishes hosts with the same name. jax_port: the port for jax's
    coordinator on trainer 0. The versions must be equal everywhere.
    """

    role: str
    rank: int
    count: int
    host: str
    machine: str
    pid: int
    fluidjax: str
    jax: str
    python: str
    jax_port: int = 0

    @property
    def name(self) -> str:
        """``trainer 1``."""
        return f"{self.role.lower()} {self.rank}"

    @property
    def where(self) -> str:
        """``process 4711 on host a``."""
        return f"process {self.pid} on host {self.host}"

    def as_dict(self) -> dict[str, Any]:
        """A dict for a message."""
        return asdict(self)


def own_hello(env: JobEnv, fluidjax: str, jax: str, jax_port: int) -> Hello:
    """This process's description."""
    python = ".".join(platform.python_version_tuple()[:2])
    return Hello(
        env.role, env.rank, env.count, socket.gethostname(), machine(), os.getpid(), fluidjax, jax, python, jax_port
    )  # fmt: skip


def machine() -> str:
    """An identifier of the host: the kernel's boot id, or the host's name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def read_hello(message: object) -> Hello:
    """A hello from received data. Raises ParseError for anything else."""
    if not isinstance(message, Mapping) or set(message) != {f.name for f in fields(Hello)}:
        raise ParseError("this is not the first message of a process of fluidjax")
    for field in fields(Hello):
        value, number = message[field.name], field.type == "int"
        if number and not (type(value) is int and -LARGEST <= value <= 1 << 32):
            raise ParseError(f"a hello's {field.name} is a number, not {str(value)[:40]!r}")
        if not number and not (
            isinstance(value, str) and len(value) <= 300 and value.isprintable()
        ):
            raise ParseError(f"a hello's {field.name} is a short text, not {str(value)[:40]!r}")
    hello = Hello(**message)
    if hello.role not in (TRAINER, PSERVER):
        raise ParseError(f"a hello's role is TRAINER or PSERVER, not {hello.role[:40]!r}")
    return hello


def contradiction(known: Iterable[Hello], new: Hello, count: int, loopback: bool) -> str | None:
    """The reason why `new` cannot be in one job with the `known` processes, or None if it can.

    count: the number of trainers that the hub expects. loopback: whether only the hub's own host
    can reach its address.
    """
    if new.count != count:
        return (
            f"{new.name} says that the job has {new.count} trainers, but it has {count}; "
            "set PADDLE_TRAINERS_NUM to the same number everywhere"
        )
    if new.role == TRAINER and not 0 <= new.rank < count:
        return (
            f"{new.name} has an id out of range: there are {count} trainers, so PADDLE_TRAINER_ID"
            f" is 0 to {count - 1}"
        )
    for other in known:
        if (other.role, other.rank) == (new.role, new.rank):
            return (
                f"two processes say that they are {new.name}: {other.where} and {new.where}; every"
                " process needs an id of its own"
            )
        for what in ("fluidjax", "jax", "python"):
            mine, theirs = getattr(new, what), getattr(other, what)
            if mine != theirs:
                return (
                    f"{new.name} runs {what} {mine}, but {other.name} runs {what} {theirs}; use the"
                    " same version everywhere"
                )
        if loopback and other.machine != new.machine:
            return (
                f"{new.name} is on host {new.host} and {other.name} on host {other.host}, but the"
                " coordinator's address is a loopback address; give trainer 0 an address that all"
                " hosts can reach"
            )
    return None


def missing(known: Iterable[Hello], count: int) -> list[int]:
    """The ids of the missing trainers."""
    here = {h.rank for h in known if h.role == TRAINER}
    return [rank for rank in range(count) if rank not in here]


def trainers_text(ranks: list[int]) -> str:
    """``trainer 1`` or ``trainers 1, 2 and 5``; more than eight are counted."""
    if len(ranks) == 1:
        return f"trainer {ranks[0]}"
    if len(ranks) > 8:
        return f"{len(ranks)} trainers ({ranks[0]}, {ranks[1]}, ..., {ranks[-1]})"
    return f"trainers {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


__all__ = [
    "Hello",
    "contradiction",
    "machine",
    "missing",
    "own_hello",
    "read_hello",
    "trainers_text",
]
