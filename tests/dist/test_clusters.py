"""The scripts of docs/clusters.md, each run as it stands where its scheduler is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fluidjax import cli
from fluidjax.dist.jobs import wire
from fluidjax.dist.jobs.env import read_env
from tests.dist import schedulers
from tests.documents import DOCS

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "clusters.md").read_text()
DONE = re.compile(r"trainer \d of \d: \d\.\d{6}\b")


def block(heading: str, language: str) -> str:
    """The code below a heading; "" for what is above the first."""
    part = re.split(r"^## ", PAGE, flags=re.M)
    below = part[0] if not heading else next(p for p in part if p.startswith(heading))
    found = re.search(rf"```{language}\n(.*?)```", below, re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: None) -> Path:
    """Where train.py lies, and a `python` that is this one."""
    (tmp_path / "train.py").write_text(block("", "py"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, command: list[str], **env: str) -> list[str]:
    """What the trainers say in the end."""
    path = f"{Path(sys.executable).parent}:{folder / 'bin'}:{env.pop('PATH', os.environ['PATH'])}"
    done = subprocess.run(
        command, cwd=folder, env=schedulers.environment(**env, PATH=path), text=True, capture_output=True, timeout=200
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return sorted(DONE.findall(done.stdout))


def launched(folder: Path, count: int, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The same under the launcher."""
    os.chdir(folder)
    capfd.readouterr()
    assert cli.main(["launch", "--nproc", str(count), "train.py"]) == 0
    found = sorted(DONE.findall(capfd.readouterr().out))
    assert len(found) == count
    return found


@pytest.fixture
def elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another folder with train.py, for a job that goes on from nothing."""
    other = tmp_path_factory.mktemp("other")
    (other / "train.py").write_text(block("", "py"))
    return other


@pytest.mark.slow
def test_by_hand(folder: Path, elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = block("By hand", "bash").replace("6170", str(wire.free_port()))
    assert run(folder, ["bash", "-c", script]) == launched(elsewhere, 2, capfd)


@pytest.mark.slow
def test_slurm(folder: Path) -> None:
    (folder / "job.sh").write_text(block("Slurm", "bash"))
    with schedulers.slurm(folder) as env:
        submit = ["sbatch", "--overcommit", "--output=out.txt", "job.sh"]
        run(folder, submit, SLURM_CONF=env["SLURM_CONF"], PATH=env["PATH"])
        while subprocess.check_output(["squeue", "-h"], env=env):
            time.sleep(0.2)
    text = (folder / "out.txt").read_text()
    assert len(DONE.findall(text)) == 2, text


@pytest.mark.slow
def test_eight_processes_under_mpirun_equal_eight_under_launch(
    folder: Path, elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    schedulers.mpirun(1, "-c", "")
    script = block("Open MPI", "bash").replace("-n 2", "--oversubscribe -n 8")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert run(folder, ["bash", "-c", script], **root) == launched(elsewhere, 8, capfd)


@pytest.mark.slow
def test_ray(folder: Path, elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """20 steps of two actors equal those of launch. What Ray keeps of a user goes to the folder."""
    pytest.importorskip("ray", reason="the package ray is not installed")
    for place in (folder, elsewhere):
        (place / "train.py").write_text(
            block("", "py").replace("auto.steps < 100", "auto.steps < 20")
        )
    quick = block("Ray", "py").replace("ray.init()", "ray.init(include_dashboard=False)")
    (folder / "job.py").write_text(quick)
    found = run(folder, [sys.executable, "job.py"], RAY_DEDUP_LOGS="0", HOME=str(folder))
    assert found == launched(elsewhere, 2, capfd)


def test_kubernetes() -> None:
    """What the manifest gives a pod is what the process needs (test_schedulers.py goes on)."""
    manifest = block("Kubernetes", "yaml")
    given = dict(re.findall(r"name: ([A-Z_]+), value: (\S+?)}", manifest))
    env = {name: value.strip('"') for name, value in given.items()}
    assert env["PADDLE_TRAINERS_NUM"] == re.search(r"completions: (\d+)", manifest)[1]  # type: ignore[index]
    assert "completionMode: Indexed" in manifest and "subdomain: pods" in manifest
    secret = env.pop("FLUIDJAX_JOB_SECRET_FILE")
    assert secret.startswith(re.search(r"name: job, mountPath: (\S+?)}", manifest)[1])  # type: ignore[index]
    listed = {"PADDLE_TRAINER_ENDPOINTS": "train-0.pods:6174,train-1.pods:6174"}
    job = read_env(env | listed | {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"})
    assert job is not None and (job.rank, job.count) == (1, 2)
