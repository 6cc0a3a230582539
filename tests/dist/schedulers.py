"""Schedulers that are installed here: mpirun, and a Slurm of one node that lives in a folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluidjax.dist.jobs.children import free_ports

ROOT = Path(__file__).parents[2]
SLURM = """
ClusterName=one
SlurmctldHost={host}
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
RequeueExit=75
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/control.pid
SlurmdPidFile={folder}/node.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def environment(**more: str) -> dict[str, str]:
    """Of a process that no job surrounds, on the CPU, with this package."""
    ours = ("PADDLE", "FLUIDJAX", "SLURM", "OMPI", "PMIX")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return clean | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **more}


def mpirun(count: int, *words: str) -> subprocess.CompletedProcess[str]:
    """``mpirun -n COUNT python WORDS``. Skips the test where there is none."""
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "--oversubscribe", "-n", str(count), sys.executable, *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment() | allowed, text=True, capture_output=True, timeout=240
    )


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which srun and sbatch reach a Slurm of this machine alone. Skips the test
    where there is none.
    """
    needed = ("slurmctld", "slurmd", "srun", "sbatch")
    if missing := [name for name in needed if shutil.which(name, path=PATH) is None]:
        pytest.skip(f"Slurm is not installed: {', '.join(missing)}")
    control, node = free_ports(2)
    conf = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    conf.write_text(
        SLURM.format(
            host=host,
            control=control,
            node=node,
            user=getpass.getuser(),
            folder=folder,
            cpus=os.cpu_count(),
        )
    )
    for name in ("state", "spool"):
        (folder / name).mkdir()
    env = environment(SLURM_CONF=str(conf), PATH=PATH)
    running = []
    try:
        for name in ("slurmctld", "slurmd"):
            with (folder / f"{name}.log").open("w") as log:
                running.append(subprocess.Popen([name, "-D"], env=env, stdout=log, stderr=log))
        limit = time.monotonic() + 30
        while (
            "idle"
            not in subprocess.run(
                ["sinfo", "-h", "-o", "%T"], env=env, text=True, capture_output=True
            ).stdout
        ):
            if time.monotonic() > limit or any(p.poll() is not None for p in running):
                logs = "\n".join(p.read_text()[-1500:] for p in folder.glob("*.log"))
                pytest.skip(f"Slurm is installed but does not come up here:\n{logs}")
            time.sleep(0.1)
        yield env
    finally:
        for process in running:
            process.terminate()
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
