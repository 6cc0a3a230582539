"""Jobs described by a cluster (SLURM, Open MPI, Kubernetes, ...): JAX detects the ranks, then the
processes meet.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...devices.place import cpu_devices
from . import wire
from .env import TRAINER, Endpoint, JobEnv
from .handshake import machine
from .hub import Hub
from .secret import new_secret

LOOPBACK = "127.0.0.1"
ROOM = 512  # bytes of the message with the hub's address


def detected(timeout: float) -> bool:
    """Join jax.distributed if JAX detects a cluster around this process. Raises the errors of
    jax.distributed.initialize.
    """
    try:
        jax.distributed.initialize(initialization_timeout=int(max(timeout, 10)))
    except ValueError as error:  # nothing was detected
        if "should be defined" in str(error) or "must be defined" in str(error):
            return False
        raise
    return True


def meet(timeout: float) -> tuple[JobEnv, Hub | None]:
    """Agree on a hub, which trainer 0 opens on a free port; returns the job in the form of an
    environment's description.
    """
    cpu_devices()  # CPU_NUM counts only before JAX's first use, which is now
    rank, count = jax.process_index(), jax.process_count()
    hub, said = None, {}
    near = one_machine()
    if rank == 0:
        secret = new_secret()
        host = LOOPBACK if near else wire.own_address()
        try:
            hub = Hub(Endpoint(host, 0), count, timeout, secret)
        except OSError:  # the others cannot reach it, and report that
            hub = Hub(Endpoint(LOOPBACK, 0), count, timeout, secret)
        hub.start()
        said = {"host": host, "port": hub.address.port, "secret": secret}
    heard = from_first(said)
    where = Endpoint(heard["host"], heard["port"])
    return JobEnv(TRAINER, rank, count, (where,), hub=where, secret=heard["secret"]), hub


def one_machine() -> bool:
    """Whether all trainers run on one machine: a collective."""
    return (
        how_many(from_first({"machine": machine()})["machine"] == machine()) == jax.process_count()
    )


def from_first(said: dict[str, Any]) -> dict[str, Any]:
    """Broadcast trainer 0's message to every trainer: a collective over one device of each."""
    row = np.zeros((1, ROOM), np.int32)
    if jax.process_index() == 0:
        text = json.dumps(said).encode()
        row[0, : len(text)] = np.frombuffer(text, np.uint8)
    heard: dict[str, Any] = json.loads(_sum(row).astype(np.uint8).tobytes().rstrip(b"\0"))
    return heard


def how_many(yes: bool) -> int:
    """The number of trainers with a true value, in every trainer: a collective."""
    return int(_sum(np.full((1, 1), yes, np.int32))[0])


def _sum(row: np.ndarray) -> np.ndarray:
    """The sum of the trainers' rows."""
    first = {d.process_index: d for d in reversed(jax.devices())}
    mesh = Mesh(np.array([first[i] for i in sorted(first)]), ("trainer",))
    rows = jax.make_array_from_process_local_data(
        NamedSharding(mesh, PartitionSpec("trainer")), row
    )
    added = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, PartitionSpec()))(rows)
    return np.asarray(added.addressable_data(0))


__all__ = ["detected", "from_first", "how_many", "meet"]
