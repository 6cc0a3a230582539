"""Jobs that Slurm, Open MPI and Kubernetes start: by their variables, and for real where they are
installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fluidjax.dist.jobs import wire
from fluidjax.dist.jobs.env import Endpoint, JobEnv, read_env
from fluidjax.dist.jobs.schedulers import first_host, placed
from fluidjax.errors import FluidValueError
from tests import forked
from tests.dist import schedulers

ROOT = Path(__file__).parents[2]
# as srun of 22.05, mpirun of 4.1.4 and an indexed job say it
SLURM = {
    "SLURM_JOB_ID": "71",
    "SLURM_STEP_ID": "0",
    "SLURM_NTASKS": "6",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}
MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1363542016.0;tcp://10.0.0.9,172.17.0.1:44223;tcp6://[fd00::2]:44733",
    "PMIX_NAMESPACE": "1363542017",
}
PODS = {"JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2", "PADDLE_TRAINERS_NUM": "4"}
SECRET = {"FLUIDJAX_JOB_SECRET": "known to all of them"}


def job(env: dict[str, str]) -> JobEnv:
    found = read_env(env)
    assert found is not None
    return found


def test_slurm() -> None:
    env = job(SLURM | SECRET)
    assert (env.rank, env.count, env.role, env.secret) == (3, 4, "TRAINER", "known to all of them")
    assert env.hub is not None and env.hub.host == "gpu07" and 61440 <= env.hub.port < 65536
    assert env.several_machines and not env.hosts_hub
    assert job(SLURM | {"SLURM_PROCID": "0"}).hosts_hub
    assert job(SLURM | {"SLURM_PROCID": "0"}).hub == env.hub  # the same in every process
    assert job(SLURM | {"SLURM_STEP_ID": "1"}).hub != env.hub
    assert job(SLURM | {"PADDLE_PORT": "7000"}).hub == Endpoint("gpu07", 7000)
    here = job(SLURM | {"SLURM_STEP_NODELIST": "gpu07", "SLURM_STEP_TASKS_PER_NODE": "4"})
    assert here.hub is not None and here.hub.loopback and not here.several_machines
    batch = {k: v for k, v in SLURM.items() if k != "SLURM_STEP_NODELIST"}
    assert read_env(batch) is None  # the script of sbatch itself, which srun did not start


@pytest.mark.parametrize(
    "nodes, first",
    [
        ("node001", "node001"),
        ("node001,other", "node001"),
        ("node[001-015],other", "node001"),
        ("node[7,010-012]", "node7"),
        ("rack[2-3]-gpu,x", "rack2-gpu"),
        ("a-b[9]", "a-b9"),
    ],
)
def test_the_first_of_slurms_nodes(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


def test_open_mpi() -> None:
    env = job(MPI | SECRET)
    assert (env.rank, env.count) == (1, 4)
    assert env.hub is not None and env.hub.host == "10.0.0.9"
    six = MPI | {"OMPI_MCA_orte_hnp_uri": "1314521088.0;tcp6://[fe80::1,2620:1::2]:43370"}
    assert job(six).hub == Endpoint("fe80::1", job(six).hub.port)  # type: ignore[union-attr]
    here = job(MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert here.hub is not None and here.hub.loopback
    # within an allocation of Slurm's, whose variables every process sees as well
    assert job(SLURM | MPI | SECRET).rank == 1
    later = {k: v for k, v in MPI.items() if k != "OMPI_MCA_orte_hnp_uri"}  # Open MPI 5
    with pytest.raises(FluidValueError, match="Open MPI does not say on which host trainer 0 runs"):
        read_env(later)
    assert job(later | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}).hub is not None


def test_kubernetes(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "127.0.0.1\tlocalhost\n10.1.2.3\ttrain-2.pods.lab.svc.cluster.local\ttrain-2\n"
    )
    place = placed(PODS, hosts)
    assert place is not None and (place.rank, place.count) == (2, None)
    assert place.first == "train-0.pods.lab.svc.cluster.local" and not place.jax_knows
    hosts.write_text("10.1.2.3\ttrain-2\n")
    assert placed(PODS, hosts).first == ""  # type: ignore[union-attr]
    with pytest.raises(
        FluidValueError, match=r"trainer 2: Kubernetes .* or give the pods a subdom"
    ):
        read_env(PODS)
    with pytest.raises(FluidValueError, match=r"does not say how many .* PADDLE_TRAINERS_NUM"):
        read_env({k: v for k, v in PODS.items() if k != "PADDLE_TRAINERS_NUM"})
    listed = {"PADDLE_TRAINER_ENDPOINTS": "a:1,b:1,c:1", "JOB_COMPLETION_INDEX": "2"}
    assert job(listed).rank == 2 and job(listed).hub == Endpoint("a", 1)
    assert job(PODS | {"PADDLE_TRAINERS_NUM": "1", "JOB_COMPLETION_INDEX": "0"}).count == 1


def test_paddles_variables_come_first() -> None:
    both = SLURM | {"PADDLE_TRAINER_ENDPOINTS": "a:1,b:1", "PADDLE_TRAINER_ID": "0"}
    assert (job(both).rank, job(both).count, job(both).hub) == (0, 2, Endpoint("a", 1))
    under_launch = SLURM | {
        "FLUIDJAX_HUB": "127.0.0.1:9",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ID": "1",
    }
    assert job(under_launch).placed is None and job(under_launch).count == 2
    with pytest.raises(FluidValueError, match="NUM is 5, but Slurm started 4 processes"):
        read_env(SLURM | {"PADDLE_TRAINERS_NUM": "5"})
    with pytest.raises(FluidValueError, match="SLURM_PROCID is 'three', which is not a number"):
        read_env(SLURM | {"SLURM_PROCID": "three"})


def test_a_secret_in_a_file(tmp_path: Path) -> None:
    """As Kubernetes mounts one."""
    path = tmp_path / "secret"
    path.write_text("known to all of them\n")
    assert job(SLURM | {"FLUIDJAX_JOB_SECRET_FILE": str(path)}).secret == "known to all of them"
    path.write_text("short")
    with pytest.raises(FluidValueError, match="SECRET_FILE names has 5 characters"):
        read_env(SLURM | {"FLUIDJAX_JOB_SECRET_FILE": str(path)})
    with pytest.raises(FluidValueError, match="cannot be read: No such file"):
        read_env(SLURM | {"FLUIDJAX_JOB_SECRET_FILE": str(tmp_path / "none")})


def test_each_process_of_a_machine_has_a_gpu_of_its_own(tmp_path: Path) -> None:
    def devices(env: dict[str, str]) -> list[int] | None:
        place = placed(env, tmp_path / "hosts")
        assert place is not None
        return place.devices(env)

    assert devices(SLURM) == [1] and devices(MPI) == [1] and devices(PODS) is None
    alone = SLURM | {"SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURM_LOCALID": "0"}
    assert devices(alone) is None  # it has the whole machine
    assert devices(SLURM | {"CUDA_VISIBLE_DEVICES": "0,1"}) == [1]
    assert devices(SLURM | {"CUDA_VISIBLE_DEVICES": "1"}) is None  # the scheduler has chosen


SCRIPT = """
import os
import jax
import fluidjax as fluid
job = fluid.dist.init_from_env()
said = [os.environ[f"PADDLE_{name}"] for name in ("TRAINER_ID", "TRAINERS_NUM", "CURRENT_ENDPOINT")]
listed = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
assert job.watched and listed.index(said[2]) == job.rank
told = [job.rank, job.count, jax.process_count(), *said[:2], len({*listed})]
os.write(1, (" ".join(map(str, told)) + "\\n").encode())  # mpirun cuts what comes in pieces
"""
EXPECTED = ["0 2 2 0 2 2", "1 2 2 1 2 2"]

INDEXED = """
import jax
import fluidjax as fluid
print(fluid.dist.init_from_env().rank, jax.process_count())
"""


def test_an_indexed_job() -> None:
    """Its processes have an index, and addresses from the manifest."""
    port = wire.free_port()
    common = {"PADDLE_TRAINER_ENDPOINTS": f"127.0.0.1:{port},127.0.0.1:6170"}
    running = [
        forked.Popen(
            [sys.executable, "-c", INDEXED],
            cwd=ROOT,
            env=schedulers.environment(JOB_COMPLETION_INDEX=str(k), **common),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for k in (0, 1)
    ]
    ended = [p.communicate(timeout=120) for p in running]
    assert [p.returncode for p in running] == [0, 0], ended
    assert [out.split() for out, _ in ended] == [["0", "2"], ["1", "2"]]


def lines(text: str) -> list[str]:
    return sorted(line for line in text.splitlines() if not line.startswith("[Gloo]"))


def test_mpirun() -> None:
    done = schedulers.mpirun(2, "-c", SCRIPT)
    assert (done.returncode, lines(done.stdout)) == (0, EXPECTED), done.stderr


def test_srun_of_a_slurm_of_one_node(tmp_path: Path) -> None:
    with schedulers.slurm(tmp_path) as env:
        done = subprocess.run(
            ["srun", "-n", "2", "--overcommit", sys.executable, "-c", SCRIPT],
            env=env, cwd=ROOT, text=True, capture_output=True, timeout=240,
        )  # fmt: skip
    assert (done.returncode, lines(done.stdout)) == (0, EXPECTED), done.stderr
