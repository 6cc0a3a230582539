"""The descriptions of a process by Slurm, Open MPI and Kubernetes, from their variables and files.

Paddle's variables come first: `env.py` uses these only for what they leave open. The sources are

    Open MPI    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, OMPI_MCA_orte_hnp_uri (the
                host of mpirun, where rank 0 runs)
    Slurm       SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE,
                SLURM_STEP_NODELIST, SLURM_JOB_ID, SLURM_STEP_ID
    Kubernetes JOB_COMPLETION_INDEX of an indexed job, HOSTNAME (job-3), and /etc/hosts with the
                pod's subdomain; PADDLE_TRAINERS_NUM, since the number of pods is not available
"""

from __future__ import annotations

import re
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import FluidValueError

LOOPBACK = "127.0.0.1"
HOSTS = Path("/etc/hosts")
# jax.distributed's own range: above the ephemeral ports of kernels
_LOWEST, _PORTS = 61440, 4096


@dataclass(frozen=True)
class Placed:
    """A process's place in a job.

    by: the scheduler's name. rank, count: count is None if it is unknown. first: the host of rank
    0: the loopback if all processes are on this machine, "" if it is unknown. port: the port on it
    at which processes of this job may meet. local, beside: the process's number on its machine, and
    the number of the job's processes there. jax_knows: jax.distributed also detects this job.
    """

    by: str
    rank: int
    count: int | None
    first: str
    port: int
    local: int = 0
    beside: int = 1
    jax_knows: bool = False

    def devices(self, env: Mapping[str, str]) -> list[int] | None:
        """The GPU of a process that shares its machine with others of the job; None: all visible
        ones, if the scheduler already assigns one to each.
        """
        seen = env.get("CUDA_VISIBLE_DEVICES", "")
        return [self.local] if self.beside > 1 and not (seen and "," not in seen) else None


def placed(env: Mapping[str, str], hosts: Path = HOSTS) -> Placed | None:
    """This process's place, None if none of the three started it. Raises FluidValueError for a
    variable that is not a valid number.

    In a Slurm allocation, mpirun may have started the process instead of Slurm, so it is checked
    first.
    """
    return _open_mpi(env) or _slurm(env) or _kubernetes(env, hosts)


def _open_mpi(env: Mapping[str, str]) -> Placed | None:
    if not {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"} <= env.keys():
        return None
    uri = env.get("OMPI_MCA_orte_hnp_uri", "")
    count = _number(env, "OMPI_COMM_WORLD_SIZE")
    beside = _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", 1)
    found = re.search(r"tcp://([^,:;]+)|tcp6://\[([^\],]+)", uri)
    first = LOOPBACK if beside == count else (found[1] or found[2]) if found else ""
    return Placed(
        "Open MPI",
        _number(env, "OMPI_COMM_WORLD_RANK"),
        count,
        first,
        _port(uri or env.get("PMIX_NAMESPACE", "")),
        _number(env, "OMPI_COMM_WORLD_LOCAL_RANK", 0),
        beside,
        bool(uri),
    )


def _slurm(env: Mapping[str, str]) -> Placed | None:
    """The place in a step that srun started; the script of sbatch itself has no list of the step's
    nodes.
    """
    nodes = env.get("SLURM_STEP_NODELIST", "")
    if not nodes or "SLURM_PROCID" not in env:
        return None
    total = next((n for n in ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS") if n in env), "")
    per_node = re.match(r"\d+", env.get("SLURM_STEP_TASKS_PER_NODE", ""))
    count = _number(env, total) if total else 1
    several = "," in nodes or "[" in nodes
    return Placed(
        "Slurm",
        _number(env, "SLURM_PROCID"),
        count,
        first_host(nodes) if several else LOOPBACK,
        _port(f"{env.get('SLURM_JOB_ID')}.{env.get('SLURM_STEP_ID')}"),
        _number(env, "SLURM_LOCALID", 0),
        int(per_node[0]) if per_node else 1 if several else count,
        {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_LOCALID"} <= env.keys(),
    )


def first_host(nodes: str) -> str:
    """The first of Slurm's list: ``node[007,010-012],other`` begins with node007."""
    head = re.match(r"([^,\[]*)(?:\[([^,\-\]]*)[^\]]*\]([^,\[]*))?", nodes)
    assert head is not None  # it matches everything
    return "".join(part or "" for part in head.groups())


def _kubernetes(env: Mapping[str, str], hosts: Path) -> Placed | None:
    if "JOB_COMPLETION_INDEX" not in env:
        return None
    rank = _number(env, "JOB_COMPLETION_INDEX")
    pod = env.get("HOSTNAME") or socket.gethostname()
    job, dash, number = pod.partition(".")[0].rpartition("-")
    first = ""
    if dash and number == str(rank) and (domain := _domain(pod.partition(".")[0], hosts)):
        first = f"{job}-0{domain}"
    return Placed("Kubernetes", rank, None, first, 6174)  # a pod has its own ports


def _domain(pod: str, hosts: Path) -> str:
    """``.pods.default.svc.cluster.local``, the suffix of a pod's name with a subdomain."""
    try:
        words = hosts.read_text(errors="replace").split()
    except OSError:
        return ""
    return next((w[len(pod) :] for w in words if w.startswith(f"{pod}.")), "")


def _port(job: str) -> int:
    """A port that is equal in all processes of a job, and probably differs between jobs."""
    return _LOWEST + zlib.crc32(job.encode()) % _PORTS


def _number(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = env.get(name, "" if default is None else str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise FluidValueError(f"{name} is {text!r}, which is not a number")
    return int(text)


__all__ = ["LOOPBACK", "Placed", "first_host", "placed"]
