"""Data parallel over several processes: real jobs on the CPU, against one process with as many
devices, and against one device.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from tests.dist import trainers

pytestmark = pytest.mark.slow
SCRIPT = str(Path(trainers.__file__))
ROOT = Path(SCRIPT).parents[2]


@pytest.fixture
def job(tmp_path, capfd, monkeypatch, forked):
    """Run cases in a job: exit code, stderr, {case: [what each trainer found]}."""
    monkeypatch.chdir(ROOT)

    def run(nproc, devices, *cases):
        code = cli.main(
            [
                "launch",
                "--nproc",
                str(nproc),
                "--devices-per-proc",
                str(devices),
                SCRIPT,
                str(tmp_path),
                *cases,
            ]
        )
        found = {
            c: [dict(np.load(p)) for r in range(nproc) if (p := tmp_path / f"{c}-{r}.npz").exists()]
            for c in cases
        }
        return code, capfd.readouterr().err, found

    return run


@cache
def alone(kind, places):
    return trainers.alone(kind, places)


def parameters(found):
    return {n: v for n, v in found.items() if n not in ("loss", "seen") and "begun" not in n}


def close(found, expected):
    for name, value in parameters(expected).items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def alike(found):
    """Every trainer has bitwise the same parameters."""
    for other in found[1:]:
        for name, value in parameters(found[0]).items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)


def trained(found):
    return {
        n: v
        for n, v in parameters(found).items()
        if "batch_norm" not in n or (".w_1" not in n and ".w_2" not in n)
    }


def as_in_one_process(found, net=trainers.ragged):
    """Sentences of other lengths and numbers on every device: each trainer's losses, rows and LoDs,
    and the parameters.
    """
    one = net(range(4))
    seen = {n for n in one if n.startswith("seen")}
    for name in seen:
        np.testing.assert_allclose(
            np.concatenate([f[name] for f in found]), one[name], rtol=2e-4, atol=1e-5, err_msg=name
        )
    alike([{n: v for n, v in f.items() if n not in seen} for f in found])
    close(found[-1], {n: v for n, v in one.items() if n not in seen})


def test_two_trainers_with_two_devices_each_are_four_devices(job):
    code, err, found = job(2, 2, "plain", "bn", "sync_bn", "reduce", "blocks", "ragged")
    assert code == 0, err
    as_in_one_process(found.pop("ragged"))
    for kind, both in found.items():
        four = alone(kind, 4)
        close(both[0], four)
        alike([trained(one) for one in both])  # of moving averages every rank has its own
        # each trainer fetches its devices' part
        losses = np.concatenate([one["loss"] for one in both], axis=1)
        np.testing.assert_allclose(losses, four["loss"], rtol=2e-5)
        np.testing.assert_allclose(
            np.concatenate([one["seen"] for one in both]), four["seen"], rtol=2e-4, atol=2e-5
        )
    for kind in ("plain", "sync_bn", "reduce", "blocks"):
        close(found[kind][1], alone(kind, 1))


@pytest.mark.thorough
def test_paragraphs_of_sentences(job):
    """A DynamicRNN in a DynamicRNN, over LoDs of two levels with other numbers on both on every
    device.
    """
    code, err, found = job(2, 2, "nested")
    assert code == 0, err
    as_in_one_process(found["nested"], trainers.nested)


def test_four_trainers(job):
    code, err, found = job(4, 1, "plain")
    assert code == 0, err
    alike(found["plain"])
    close(found["plain"][3], alone("plain", 1))


def test_trainers_draw_their_own_masks_and_stay_alike(job, tmp_path):
    code, err, found = job(2, 2, "drawn", "stored", "mistakes")
    assert code == 0, err
    one, two = found["drawn"]
    # each drew its own parameters; trainer 0's count
    assert not np.array_equal(one["begun"], two["begun"])
    alike([one, two])
    np.testing.assert_array_equal(one["begun local"], two["begun local"])
    alike(found["stored"])
    np.testing.assert_array_equal(found["stored"][1]["w"], 1)
    masks = [tuple(map(tuple, half == 0)) for t in (one, two) for half in np.split(t["seen"], 2)]
    assert len(set(masks)) == 4
    w = [(tmp_path / f"saved {r}" / "w").read_bytes() for r in (0, 1)]
    assert w[0] == w[1] and one["w"].tobytes() in w[0]
    for rank, wrong in enumerate(found["mistakes"]):
        assert (
            str(wrong["number"])
            == "the program is for 3 trainers, but the job has 2; num_trainers is the job's number"
        )
        assert str(wrong["id"]).startswith(
            f"trainer_id is {1 - rank}, but this process is trainer {rank} of the job"
        )
        assert str(wrong["program"]).startswith(
            "trainer 0 and trainer 1 run different programs; the first difference: trainer 0 has"
        )
        assert "batch_norm" in str(wrong["program"])
        assert (
            str(wrong["feed"])
            == "trainer 0 and trainer 1 feed batches of different sizes; the first difference: "
            "trainer 0 has `feed 'x': float32[4, 6]`, trainer 1 has `feed 'x': float32[8, 6]`"
        )


@pytest.mark.parametrize(
    "example",
    [0, 1, pytest.param(2, marks=pytest.mark.thorough)],
    ids=["nccl2", "fleet", "pservers"],
)
def test_the_examples_of_the_documentation(example, tmp_path, capfd, monkeypatch):
    """docs/data-parallel-processes.md: the nccl2 example; docs/fluid-fleet.md: a fleet, and one with
    parameter servers.
    """
    pages = (ROOT / f"docs/{name}.md" for name in ("data-parallel-processes", "fluid-fleet"))
    text = "".join(page.read_text() for page in pages)
    examples = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 3
    code = examples[example]
    path = tmp_path / "train.py"
    path.write_text(code)
    monkeypatch.chdir(ROOT)
    servers = ["--pservers", "2"] if example == 2 else []
    assert cli.main(["launch", "--nproc", "2", *servers, str(path)]) == 0
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == ["[trainer 0] (1,) True", "[trainer 1] (1,) True"]


@pytest.mark.parametrize(("case", "step"), [("late", 3), ("lone", 2)])
def test_what_one_trainer_alone_does_ends_the_job_with_a_sentence(job, case, step):
    """A smaller batch; a value stored in the scope."""
    code, err, _ = job(2, 1, case)
    assert code != 0
    assert (
        f"trainer 1 has new sizes in its feed, a new program or new state before step {step}, but"
        " trainer 0 has begun that" in err
    )


def test_programs_of_collective_mode_run_as_they_are(job):
    code, err, found = job(2, 1, "grad_allreduce", "local_sgd")
    assert code == 0, err
    for mode, both in found.items():
        alike(both)
        made, exe = trainers.net(mode), fluid.Executor(fluid.CPUPlace())
        first = {n.removeprefix("begun "): v for n, v in both[0].items() if n.startswith("begun")}
        assert first and all(np.array_equal(both[1]["begun " + n], v) for n, v in first.items())
        scopes = [fluid.Scope() for _ in range(2)]
        for scope in scopes:
            exe.run(made[1], scope=scope)
            for name, value in first.items():
                scope.var(name).set(value)
        if mode == "grad_allreduce":
            alone_ = trainers.train(made[0], made, scopes[0], trainers.batches(lengths=True))
            close(both[0], {n: v for n, v in alone_.items() if "velocity" not in n})
            continue
        for step in range(trainers.STEPS):
            for part, scope in enumerate(scopes):
                exe.run(made[0], trainers.batches(part, 2)[step], scope=scope)
            for name in first:
                mean = (scopes[0].get(name) + scopes[1].get(name)) / 2
                for scope in scopes:
                    scope.var(name).set(mean)
        close(both[0], {n: scopes[0].get(n) for n in first})


def test_a_job_of_one_process_is_told_how_to_start(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "1")
    made = trainers.net("plain")
    with pytest.raises(
        ValueError,
        match=(
            "for 2 trainers, but this process runs by itself; start it by python -m fluidjax launch"
        ),
    ):
        fluid.ParallelExecutor(False, made[2].name, made[0], num_trainers=2, trainer_id=1)
    with pytest.raises(ValueError, match="trainer_id is 0 to num_trainers - 1, not 2 of 2"):
        fluid.ParallelExecutor(False, made[2].name, made[0], num_trainers=2, trainer_id=2)
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, trainers.strategy("plain", num_trainers=4)
    )
    with pytest.raises(ValueError, match="for 4 trainers"):
        fluid.Executor(fluid.CPUPlace()).run(compiled, trainers.batches()[0])
    made[0].update_info(trainers_endpoints=("a:1", "b:1"))
    other = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, trainers.strategy("plain", num_trainers=3)
    )
    with pytest.raises(
        ValueError, match="num_trainers is 3, but the program was transpiled for 2 trainers"
    ):
        fluid.Executor(fluid.CPUPlace()).run(other, trainers.batches()[0])
