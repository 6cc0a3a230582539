"""Fleets: roles as Paddle 1.8.5's, and the programs that minimize makes for a job."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.contrib import mixed_precision
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.incubate.fleet.base import role_maker
from fluidjax.incubate.fleet.collective import Collective, DistributedStrategy
from fluidjax.incubate.fleet.parameter_server.distribute_transpiler import (
    DistributedTranspiler,
    StrategyFactory,
)

from ..nets import fresh
from ..tools.record_mixed_precision import line
from ..tools.role_cases import CASES, KEYS, told

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "roles_1.8.5.json").read_text())
X, Y = np.array([[1, 2, 3], [0, 1, -1]], "float32"), np.array([[1], [2]], "float32")


@pytest.mark.parametrize("name", sorted(CASES))
def test_roles(name):
    """1.8.5 forgets that a worker of a collective job is one, so that none is the first and nobody
    saves.
    """
    got, want = told(role_maker, name), RECORDED[name]
    if name in ("workers", "workers, first"):
        assert want[:2] == [False, False] and got[:2] == [True, name == "workers, first"]
        got, want = got[2:], want[2:]
    assert got == want


@pytest.fixture
def nowhere(monkeypatch):
    """No job in the environment."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def test_a_missing_variable_is_named(nowhere, monkeypatch):
    with pytest.raises(FluidValueError, match="PADDLE_TRAINER_ENDPOINTS is not set"):
        role_maker.PaddleCloudRoleMaker(is_collective=True).worker_num()
    monkeypatch.setenv("PADDLE_PSERVERS_IP_PORT_LIST", "a:1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "two")
    with pytest.raises(
        FluidValueError, match="PADDLE_TRAINERS_NUM is a whole number from 0 on, not 'two'"
    ):
        role_maker.PaddleCloudRoleMaker().generate_role()
    with pytest.raises(UnsupportedError, match="MPI's roles"):
        Collective().init()
    with pytest.raises(FluidTypeError, match=r"takes a role maker such as"):
        Collective().init("worker")
    with pytest.raises(FluidValueError, match=r"call fleet.init\(role_maker\) first"):
        Collective().worker_num()


def worker(index, count, of=Collective):
    fleet = of()
    fleet.init(
        role_maker.UserDefinedCollectiveRoleMaker(
            index, [f"127.0.0.1:{6170 + i}" for i in range(count)]
        )
    )
    return fleet


def test_files_are_split(nowhere):
    files = list("abcdefg")
    parts = [worker(i, 3).split_files(files) for i in range(3)]
    assert parts == [["a", "b", "c"], ["d", "e"], ["f", "g"]]
    assert (
        worker(2, 3).split_files(["a"]) == []
        and worker(1, 3).worker_endpoints(to_string=True).count(",") == 2
    )
    with pytest.raises(FluidTypeError, match="takes a list of files"):
        worker(0, 1).split_files("abc")


def test_one_worker_trains_as_without_a_fleet(nowhere, tmp_path, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "1")
    found = []
    for fleet in (None, worker(0, 1)):
        with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
            startup.random_seed = 3
            loss, optimizer = line(fluid), fluid.optimizer.SGD(0.1)
            (optimizer if fleet is None else fleet.distributed_optimizer(optimizer)).minimize(loss)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup if fleet is None else fleet.startup_program)
            for _ in range(2):
                (value,) = exe.run(
                    main if fleet is None else fleet.main_program, {"x": X, "y": Y}, [loss]
                )
            found.append((value, fluid.global_scope().get("fc_0.w_0")))
            if fleet is not None:
                fleet.save_persistables(exe, str(tmp_path / "all"))
                fluid.io.load_vars(
                    exe,
                    str(tmp_path / "all"),
                    fluid.default_main_program(),
                    vars=[main.global_block().var("fc_0.w_0")],
                )
                fleet.save_inference_model(
                    exe, str(tmp_path / "model"), ["x"], [main.global_block().var("fc_0.tmp_1")]
                )
                assert (tmp_path / "model" / "__model__").is_file()
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def minimized(**options):
    with fresh() as (main, startup):
        strategy = DistributedStrategy()
        for name, value in options.items():
            setattr(strategy, name, value)
        fleet = worker(1, 2)
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(line(fluid))
        return fleet, main, startup


def test_programs_are_the_transpilers(nowhere):
    """Those of DistributeTranspiler's modes; of mixed precision, decorate's."""
    for options, mode, collective in (
        ({}, "nccl2", None), ({"use_local_sgd": True}, "collective", "local_sgd"),
        ({"mode": "collective", "collective_mode": "grad_allreduce"}, "collective", "grad_allreduce"), ({"use_amp": True}, "nccl2", None),
    ):  # fmt: skip
        fleet, main, startup = minimized(**options)
        with fresh() as (plain, start):
            loss = line(fluid)
            optimizer = fluid.optimizer.SGD(0.1)
            (mixed_precision.decorate(optimizer) if "use_amp" in options else optimizer).minimize(
                loss
            )
            config = fluid.DistributeTranspilerConfig()
            config.mode, config.collective_mode = mode, collective
            ends = "127.0.0.1:6170,127.0.0.1:6171"
            transpiler = fluid.DistributeTranspiler(config)
            transpiler.transpile(
                1, plain, trainers=ends, startup_program=start, current_endpoint=ends.split(",")[1]
            )
        assert main.desc == plain.desc and startup.desc == start.desc, options
        assert fleet.startup_program is startup
        assert (fleet.main_program is main) == (mode == "collective")


def test_what_is_refused(nowhere):
    for options, error, sentence in (
        ({"forward_recompute": True}, FluidValueError, "forward_recompute needs"),
        ({"use_dist_fc": True}, UnsupportedError, "splits a layer"),
        (
            {"collective_mode": "local_sgd"},
            FluidValueError,
            "belongs to mode 'collective', not to 'nccl2'",
        ),
    ):
        with pytest.raises(error, match=sentence):
            minimized(**options)
    with pytest.raises(AttributeError, match="has no option 'use_lokal_sgd'"):
        minimized(use_lokal_sgd=True)
    with pytest.raises(FluidTypeError, match="takes a DistributedStrategy, not BuildStrategy"):
        worker(0, 1).distributed_optimizer(fluid.optimizer.SGD(0.1), fluid.BuildStrategy())
    with pytest.raises(FluidTypeError, match="nothing was minimized yet"):
        worker(0, 1).save_persistables(fluid.Executor(fluid.CPUPlace()), "x")
    with pytest.raises(FluidValueError, match="mixed precision already"), fresh():
        strategy = DistributedStrategy()
        strategy.use_amp = True
        loss = line(fluid)
        worker(0, 1).distributed_optimizer(
            mixed_precision.decorate(fluid.optimizer.SGD(0.1)), strategy
        ).minimize(loss)


def of_servers(role, strategy):
    """The fleet of one process in a job of two workers and two servers, after minimize; its
    programs before that.
    """
    fleet = DistributedTranspiler()
    fleet.init(role)
    with fresh() as (main, startup):
        loss = line(fluid)
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    return fleet, main, startup


SERVERS = ["127.0.0.1:6170", "127.0.0.2:6170"]


@pytest.mark.parametrize("mode", ["sync", "half_async", "async", "geo"])
def test_fleets_with_servers_have_the_transpilers_programs(mode):
    """Whose modes they are; a DistributeTranspilerConfig of the mode makes the same."""
    strategy = getattr(StrategyFactory, f"create_{mode}_strategy")()
    config = strategy.get_program_config()
    assert (
        not config.sync_mode
        and config.runtime_split_send_recv
        and config.geo_sgd_mode == (mode == "geo")
    )
    assert config.completely_not_async == (mode == "sync") and config.half_async == (
        mode in ("sync", "half_async")
    )
    alike = fluid.DistributeTranspilerConfig()
    alike.sync_mode = mode == "sync"
    alike.runtime_split_send_recv, alike.half_async, alike.geo_sgd_mode = (
        mode != "sync",
        mode == "half_async",
        mode == "geo",
    )
    worker, _, startup = of_servers(
        role_maker.UserDefinedRoleMaker(1, role_maker.Role.WORKER, 2, SERVERS), strategy
    )
    server, _, _ = of_servers(
        role_maker.UserDefinedRoleMaker(1, role_maker.Role.SERVER, 2, SERVERS), alike
    )
    with fresh() as (plain, start):
        fluid.optimizer.SGD(0.1).minimize(line(fluid))
        t = (fluid.transpiler.GeoSgdTranspiler if mode == "geo" else fluid.DistributeTranspiler)(
            config
        )
        t.transpile(1, plain, ",".join(SERVERS), 2, sync_mode=False, startup_program=start)
        assert worker.main_program.desc == t.get_trainer_program().desc
        assert worker.startup_program is startup and startup.desc == start.desc
        programs = t.get_pserver_programs(SERVERS[1])
    assert (server.main_program.desc, server.startup_program.desc) == tuple(
        p.desc for p in programs
    )


def test_what_fleets_with_servers_refuse():
    fleet = DistributedTranspiler()
    with pytest.raises(FluidValueError, match="no role yet"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
    with pytest.raises(FluidValueError, match="a job of only workers"):
        fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, SERVERS))
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.SERVER, 2, SERVERS))
    for call in (fleet.init_server, fleet.run_server, fleet.init_worker):
        with pytest.raises(FluidValueError, match="no programs yet"):
            call()
    with pytest.raises(FluidTypeError, match="takes a strategy of StrategyFactory"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), DistributedStrategy())
    strategy = StrategyFactory.create_geo_strategy(7)
    assert strategy.get_program_config().geo_sgd_need_push_nums == 7
    strategy.set_program_config({"min_block_size": 9000})
    assert strategy.get_program_config().min_block_size == 9000
    with pytest.raises(FluidValueError, match="program_config has no 'min_blok_size'"):
        strategy.set_program_config({"min_blok_size": 1})
    with pytest.raises(
        FluidValueError, match=r"trainer_runtime_config has no 'rpc_deadlin'.*rpc_deadline"
    ):
        strategy.set_trainer_runtime_config({"rpc_deadlin": 1})
    with pytest.raises(UnsupportedError, match="does not dump"):
        strategy.set_debug_opt({"dump_fields": ["x"]})
