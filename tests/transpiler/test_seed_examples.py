"""The examples of Fluid's own documents (0.14 and 1.5), as they stand there, in every role."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.transpiler import distribute_transpiler

NETWORK = """
x = fluid.layers.data(name='x', shape=[13], dtype='float32')
y = fluid.layers.data(name='y', shape=[1], dtype='float32')
y_predict = fluid.layers.fc(input=x, size=1, act=None)

cost = fluid.layers.square_error_cost(input=y_predict, label=y)
avg_loss = fluid.layers.mean(cost)

sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.001)
sgd_optimizer.minimize(avg_loss)
"""

PSERVER_1_5 = """
pserver_endpoints = "192.168.0.1:6174,192.168.0.2:6174"
trainer_endpoints = "192.168.0.1:6174,192.168.0.2:6174"
current_endpoint = "192.168.0.1:6174"
trainer_id = 0
trainers = 4
t = fluid.DistributeTranspiler()
t.transpile(
     trainer_id, pservers=pserver_endpoints, trainers=trainers)
if role == "PSERVER":
     pserver_program = t.get_pserver_program(current_endpoint)
     pserver_startup_program = t.get_startup_program(current_endpoint,
                                                    pserver_program)
elif role == "TRAINER":
     trainer_program = t.get_trainer_program()
"""

NCCL2_1_5 = """
trainer_num = 2
trainer_id = 0
config = fluid.DistributeTranspilerConfig()
config.mode = "nccl2"
trainer_endpoints = "192.168.0.1:6174,192.168.0.2:6174"
t = fluid.DistributeTranspiler(config=config)
t.transpile(trainer_id=trainer_id, trainers=trainer_endpoints, current_endpoint="192.168.0.1:6174")
"""

PSERVERS_1_5 = """
pserver_endpoints = "192.168.0.1:6174,192.168.0.2:6174"
current_endpoint = "192.168.0.1:6174"
trainer_id = 0
trainers = 4
t = fluid.DistributeTranspiler()
t.transpile(
     trainer_id, pservers=pserver_endpoints, trainers=trainers)
pserver_program, pserver_startup_program = t.get_pserver_programs(current_endpoint)
"""

ASYNC_1_5 = """
t = fluid.DistributeTranspiler()
t.transpile(
    trainer_id=0,
    pservers="127.0.0.1:7000,127.0.0.1:7001",
    trainers=2,
    sync_mode=False,
    current_endpoint="127.0.0.1:7000")
"""

PSERVER_0_14 = """
port = os.getenv("PADDLE_PSERVER_PORT", "6174")
pserver_ips = os.getenv("PADDLE_PSERVER_IPS", "")
eplist = []
for ip in pserver_ips.split(","):
     eplist.append(':'.join([ip, port]))
pserver_endpoints = ",".join(eplist)
trainers = int(os.getenv("PADDLE_TRAINERS"))
current_endpoint = os.getenv("PADDLE_CURRENT_IP", "") + ":" + port
trainer_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
role = os.getenv("PADDLE_TRAINING_ROLE")

t = distribute_transpiler.DistributeTranspiler()
t.transpile(
     trainer_id, pservers=pserver_endpoints, trainers=trainers)
if role == "PSERVER":
     pserver_program = t.get_pserver_program(current_endpoint)
     pserver_startup_program = t.get_startup_program(current_endpoint,
                                                     pserver_program)
elif role == "TRAINER":
     trainer_program = t.get_trainer_program()
"""


def run(*texts: str, **names: Any) -> dict[str, Any]:
    """The names that the examples leave behind, run in new default programs."""
    space = {"fluid": fluid, "os": os, "distribute_transpiler": distribute_transpiler, **names}
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        for text in texts:
            exec(textwrap.dedent(text), space)
        space["main"], space["startup"] = (
            fluid.default_main_program(),
            fluid.default_startup_program(),
        )
    return space


def kinds(program: fluid.Program) -> set[str]:
    return {op.type for op in program.global_block().ops}


@pytest.mark.parametrize("role", ["TRAINER", "PSERVER"])
def test_the_1_5_document(role: str) -> None:
    """Pserver mode, and then nccl2 mode on the same default programs, as the document has it."""
    space = run(NETWORK, PSERVER_1_5, NCCL2_1_5, role=role)
    if role == "PSERVER":
        assert "listen_and_serv" in kinds(space["pserver_program"])
        # fc_0.b_0 and the learning rate
        assert kinds(space["pserver_startup_program"]) == {"fill_constant"}
    else:
        assert space["trainer_program"] is space["main"] and {"send", "recv"} <= kinds(
            space["main"]
        )
    assert "gen_nccl_id" in kinds(space["startup"])


def test_the_1_5_examples_of_methods() -> None:
    space = run(NETWORK, PSERVERS_1_5)
    assert "listen_and_serv" in kinds(space["pserver_program"])
    space = run(NETWORK, ASYNC_1_5)
    assert space["t"].plan.mode == "async" and space["t"].plan.endpoints == (
        "127.0.0.1:7000",
        "127.0.0.1:7001",
    )


@pytest.mark.parametrize("role", ["TRAINER", "PSERVER"])
def test_the_0_14_document(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {
        "PSERVER_IPS": "10.0.0.1,10.0.0.2",
        "TRAINERS": "2",
        "CURRENT_IP": "10.0.0.2",
        "TRAINER_ID": "1",
        "TRAINING_ROLE": role,
    }
    for name, value in env.items():
        monkeypatch.setenv(f"PADDLE_{name}", value)
    monkeypatch.setenv("FLUIDJAX_HUB", "127.0.0.1:1")  # as under our launcher: nothing waits
    space = run(NETWORK, PSERVER_0_14)
    if role == "PSERVER":
        assert [op.attr("endpoint") for op in space["pserver_program"].global_block().ops] == [
            "10.0.0.2:6174"
        ]
    else:
        assert {"send", "recv"} <= kinds(space["trainer_program"])


HEAD = """
import os
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.transpiler import distribute_transpiler
fluid.default_startup_program().random_seed = 1  # where the sum of the weights begins decides whose loss can fall
"""
TRAINS = """
exe = fluid.Executor(fluid.CPUPlace())
if role == "PSERVER":
    exe.run(pserver_startup_program)
    exe.run(pserver_program)
    print("ended")
else:
    exe.run(fluid.default_startup_program())
    feed = {"x": np.full((4, 13), 1 + trainer_id, "float32"), "y": np.ones((4, 1), "float32")}
    losses = [float(exe.run(trainer_program, feed=feed, fetch_list=[avg_loss])[0]) for _ in range(5)]
    print("learns" if losses[-1] < losses[0] else losses, np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()).sum())
"""
IS_MADE = """
role = os.environ["PADDLE_TRAINING_ROLE"]
{pserver}
program = pserver_program if role == "PSERVER" else trainer_program
print("made", program.global_block().ops[-1].type)
"""


def launched(script: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What the processes of a 2x2 job print, in the order of their names."""
    path = tmp_path / "script.py"
    path.write_text(script)
    code = cli.main(["launch", "--nproc", "2", "--pservers", "2", str(path)])
    out, err = capfd.readouterr()
    assert code == 0, err
    return sorted(out.splitlines())


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_the_0_14_document_trains_under_launch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = launched(HEAD + NETWORK + PSERVER_0_14 + TRAINS, tmp_path, capfd)
    assert lines[:2] == ["[pserver 0] ended", "[pserver 1] ended"]
    first, second = (line.partition("learns ")[2] for line in lines[2:])
    assert first == second != ""


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_the_1_5_document_runs_under_launch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It fixes addresses and trainer 0 of 4, so it makes its programs; a job of 2 would not train
    them.
    """
    lines = launched(HEAD + NETWORK + IS_MADE.replace("{pserver}", PSERVER_1_5), tmp_path, capfd)
    kinds = [line.partition("] made ")[2] for line in lines]
    assert kinds == ["listen_and_serv", "listen_and_serv", "fetch_barrier", "fetch_barrier"]


def test_dispatchers_of_the_1_5_document() -> None:
    pserver_endpoints = ["127.0.0.1:6007", "127.0.0.1:6008"]
    names = ["var1", "var2", "var3", "var4", "var5"]
    assert fluid.transpiler.RoundRobin(pserver_endpoints).dispatch(names) == [
        pserver_endpoints[i % 2] for i in range(5)
    ]
    assert set(fluid.transpiler.HashName(pserver_endpoints).dispatch(names)) <= set(
        pserver_endpoints
    )


def test_fluids_module_names() -> None:
    from fluidjax.transpiler.distribute_transpiler import (
        DistributeTranspiler,
        DistributeTranspilerConfig,
        slice_variable,
    )
    from fluidjax.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
    from fluidjax.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin

    here = (
        DistributeTranspiler,
        DistributeTranspilerConfig,
        slice_variable,
        GeoSgdTranspiler,
        HashName,
        PSDispatcher,
        RoundRobin,
    )
    assert all(getattr(fluid.transpiler, each.__name__) is each for each in here)
