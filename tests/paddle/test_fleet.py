"""paddle.distributed.fleet in one process: strategies against programs composed by hand; defaults
and merged gradients of Paddle 3.3.1.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import paddle
from fluidjax.contrib import mixed_precision
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.paddle import distributed
from fluidjax.paddle.distributed import fleet
from tests.nets import fresh
from tests.tools import record_fleet
from tests.tools.role_cases import KEYS

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "fleet_3.3.1.json").read_text())
ENDS = ["127.0.0.1:6170", "127.0.0.1:6171"]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No job in the environment."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def strategy_of(**fields):
    made = fleet.DistributedStrategy()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def net():
    """The loss of a small net, and what a checkpoint may stand at."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    h = fluid.layers.fc(x, 4, act="tanh")
    return fluid.layers.mean(fluid.layers.square(fluid.layers.fc(h, 1) - y)), h


def by_fleet(optimizer, workers=1, **fields):
    """main, startup after fleet's minimize; checkpoints=True stands for the net's."""
    made = fleet.Fleet()
    made.init(
        fleet.UserDefinedRoleMaker(
            is_collective=True, current_id=0, worker_endpoints=ENDS[:workers]
        )
    )
    with fresh() as (main, startup):
        loss, h = net()
        if fields.get("recompute"):
            fields["recompute_configs"] = {"checkpoints": [h]}
        made.distributed_optimizer(optimizer(), strategy_of(**fields)).minimize(loss)
    return main, startup


def by_hand(around):
    with fresh() as (main, startup):
        loss, h = net()
        around(h).minimize(loss)
    return main, startup


def momentum():
    return fluid.optimizer.Momentum(0.1, 0.9)


def adam():
    return paddle.optimizer.Adam(paddle.optimizer.lr.StepDecay(0.1, 2), beta1=0.8)


def lamb(decay=0.01, **options):
    return paddle.optimizer.Lamb(0.1, decay, beta1=0.8, epsilon=1e-8, **options)


def again(inner, h):
    made = fluid.optimizer.RecomputeOptimizer(inner)
    made._set_checkpoints([h])
    return made


LISTS = mixed_precision.AutoMixedPrecisionLists({"matmul_v2", "scale"}, {"mul"})
COMPOSED = {
    "nothing": (momentum, {}, lambda h: momentum()),
    "for several workers alone": (momentum, {"localsgd": True, "fuse_all_reduce_ops": False}, lambda h: momentum()),
    "lars": (
        momentum, {"lars": True, "lars_configs": {"lars_coeff": 0.01}}, lambda h: fluid.optimizer.LarsMomentum(0.1, 0.9, 0.01),
    ),
    "lamb": (adam, {"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02}}, lambda h: lamb(0.02)),
    "fluid's lamb": (
        lambda: fluid.optimizer.Adam(0.1), {"lamb": True}, lambda h: fluid.optimizer.Lamb(0.1, epsilon=1e-8),
    ),
    "amp": (
        momentum, {"amp": True, "amp_configs": {"custom_white_list": ["scale"], "custom_black_list": ["mul"], "init_loss_scaling": 8}},
        lambda h: mixed_precision.decorate(momentum(), LISTS, 8),
    ),
    "amp, recompute, lamb": (
        adam, {"amp": True, "recompute": True, "lamb": True},
        lambda h: mixed_precision.decorate(again(lamb(), h), mixed_precision.AutoMixedPrecisionLists({"matmul_v2"})),
    ),
    "merged": (
        momentum, {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 3, "avg": False}, "amp": True, "recompute": True},
        lambda h: fluid.optimizer.GradientMergeOptimizer(
            mixed_precision.decorate(again(momentum(), h), mixed_precision.AutoMixedPrecisionLists({"matmul_v2"})), 3, False),
    ),
    "merged once": (momentum, {"gradient_merge": True}, lambda h: momentum()),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_a_strategy_makes_the_program_composed_by_hand(name):
    optimizer, fields, around = COMPOSED[name]
    (main, startup), (plain, start) = by_fleet(optimizer, **fields), by_hand(around)
    assert main.desc == plain.desc and startup.desc == start.desc
    assert len(main.info.schedules) == (optimizer is adam)


def test_parameters_that_do_not_decay():
    main, _ = by_fleet(
        momentum, lars=True, lars_configs={"exclude_from_weight_decay": ["b_0"], "epsilon": 1e-4}
    )
    updates = {
        op.input("Param")[0]: op for op in main.global_block().ops if op.type == "lars_momentum"
    }
    assert {n: op.attr("lars_weight_decay") > 0 for n, op in updates.items()} == {
        n: n.endswith("w_0") for n in updates
    }
    assert all(op.attr("epsilon") == pytest.approx(1e-4) for op in updates.values())
    main, _ = by_fleet(adam, lamb=True, lamb_configs={"exclude_from_weight_decay": ["b_0"]})
    decays = {
        op.input("Param")[0]: op.attr("weight_decay")
        for op in main.global_block().ops
        if op.type == "lamb"
    }
    assert {n: d > 0 for n, d in decays.items()} == {n: n.endswith("w_0") for n in decays}


def test_several_workers_have_the_transpilers_program():
    main, startup = by_fleet(momentum, workers=2)
    with fresh() as (plain, start):
        momentum().minimize(net()[0])
        config = fluid.DistributeTranspilerConfig()
        config.mode, config.collective_mode = "collective", "grad_allreduce"
        fluid.DistributeTranspiler(config).transpile(
            0, plain, trainers=",".join(ENDS), startup_program=start, current_endpoint=ENDS[0]
        )
    assert main.desc == plain.desc and startup.desc == start.desc


def test_servers_have_the_transpilers_programs():
    for fields, mode in (
        ({"a_sync": False}, "sync"), ({}, "async"), ({"a_sync_configs": {"k_steps": 5}}, "geo"),
    ):  # fmt: skip
        made = fleet.Fleet()
        made.init(
            fleet.UserDefinedRoleMaker(
                current_id=1, role=fleet.Role.WORKER, worker_num=2, server_endpoints=ENDS
            )
        )
        with fresh() as (main, startup):
            made.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy_of(**fields)).minimize(
                net()[0]
            )
            made.init_worker()
        first = fluid.incubate.fleet.parameter_server.distribute_transpiler
        other = first.DistributedTranspiler()
        other.init(fluid.incubate.fleet.base.role_maker.UserDefinedRoleMaker(1, 1, 2, ENDS))
        with fresh() as (plain, start):
            how = getattr(first.StrategyFactory, f"create_{mode}_strategy")(
                *([5] if mode == "geo" else [])
            )
            other.distributed_optimizer(fluid.optimizer.SGD(0.1), how).minimize(net()[0])
        assert main.desc == other.main_program.desc == plain.desc and startup.desc == start.desc, (
            mode
        )
        assert (made.server_num(), made.worker_num(), made.is_worker(), made.is_first_worker()) == (
            2,
            2,
            True,
            False,
        )


def test_a_script_by_itself_trains_and_saves(tmp_path):
    fleet.init(is_collective=True)
    assert (
        fleet.worker_num(),
        fleet.worker_index(),
        fleet.is_first_worker(),
        fleet.server_num(),
    ) == (1, 0, True, 0)
    assert fleet.util.all_gather(3) == [3] and fleet.util.all_reduce([1, 2]).tolist() == [1, 2]
    fleet.barrier_worker()
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        loss, h = net()
        startup.random_seed = 3
        fleet.distributed_optimizer(
            momentum(), strategy_of(amp=True, amp_configs={"init_loss_scaling": 8})
        ).minimize(loss)
        fleet.amp_init(fluid.CPUPlace())
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        x, y = record_fleet.data()[0]
        found = [
            exe.run(main, {"x": x, "y": y}, [loss, fleet.get_loss_scaling()]) for _ in range(4)
        ]
        assert found[3][0] < found[0][0] and found[0][1] == 8
        fleet.save_persistables(exe, str(tmp_path / "all"))
        assert (tmp_path / "all" / "fc_0.w_0_velocity_0").is_file()
        fleet.save_inference_model(exe, str(tmp_path / "model"), ["x"], [h])
        assert (tmp_path / "model" / "__model__").is_file()


def test_collective_ops_of_one_process():
    with fresh() as (main, _):
        x = fluid.data("x", [2])
        given = fluid.layers.assign(x)
        distributed.all_reduce(given)
        distributed.broadcast(given, 0)
        distributed.reduce(given, 0, distributed.ReduceOp.MAX)
        gathered = []
        distributed.all_gather(gathered, given)
        out = fluid.layers.assign(x)
        distributed.scatter(out, [x * 2.0])
        distributed.barrier()
        for call, error, sentence in (
            (
                lambda: distributed.all_reduce([1]),
                FluidTypeError,
                "tensor is a variable of a static program",
            ),
            (
                lambda: distributed.all_reduce(x, 9),
                FluidValueError,
                "op is ReduceOp.SUM, MAX, MIN or PROD, not 9",
            ),
            (
                lambda: distributed.broadcast(x, 1),
                FluidValueError,
                "src is a trainer's number, 0 to 0, not 1",
            ),
            (
                lambda: distributed.all_gather([x], x),
                FluidValueError,
                "tensor_list is an empty list",
            ),
            (
                lambda: distributed.scatter(x, [x, x]),
                FluidValueError,
                "a tensor for each of the 1 trainers, not 2",
            ),
            (lambda: distributed.barrier([0, 1]), UnsupportedError, "over all trainers of the job"),
            (lambda: distributed.spawn(net), UnsupportedError, "fluidjax launch --nproc N SCRIPT"),
        ):
            with pytest.raises(error, match=sentence):
                call()
    found = fluid.Executor(fluid.CPUPlace()).run(
        main, {"x": np.array([3, 4], "f4")}, [given, gathered[0], out]
    )
    assert [v.tolist() for v in found] == [[3, 4], [3, 4], [6, 8]]
    distributed.init_parallel_env()
    assert not distributed.is_initialized() and distributed.ParallelEnv().nranks == 1


def test_the_environment_is_read(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("FLAGS_selected_gpus", "3,4")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", ",".join(ENDS))
    monkeypatch.setenv("PADDLE_CURRENT_ENDPOINT", ENDS[1])
    env = distributed.ParallelEnv()
    assert (env.rank, env.local_rank, env.world_size, env.device_id, env.dev_id) == (1, 1, 2, 3, 3)
    assert env.trainer_endpoints == ENDS and env.current_endpoint == ENDS[1] and env.nrings == 1
    role = fleet.PaddleCloudRoleMaker(is_collective=True)
    assert (
        role._worker_num(),
        role._worker_index(),
        role._is_first_worker(),
        role._is_non_distributed(),
    ) == (2, 1, False, False)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "many")
    with pytest.raises(
        FluidValueError, match="PADDLE_TRAINERS_NUM is a whole number from 0 on, not 'many'"
    ):
        distributed.get_world_size()
    monkeypatch.setenv("PADDLE_TRAINER_ID", "7")
    with pytest.raises(FluidValueError, match="PADDLE_TRAINER_ID is 7, but"):
        fleet.Fleet().init(is_collective=True)


def built(**options):
    made = fluid.BuildStrategy()
    for name, value in options.items():
        setattr(made, name, type(getattr(made, name))(value))
    return made


REFUSED = {
    "pipeline": UnsupportedError, "tensor_parallel": UnsupportedError, "dgc": UnsupportedError, "auto": UnsupportedError,
    "elastic": UnsupportedError, "asp": UnsupportedError, "qat": UnsupportedError,
    "semi_auto": UnsupportedError, "adam_d2sum": UnsupportedError,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_fields_that_are_refused(name):
    with pytest.raises(REFUSED[name], match=f"DistributedStrategy.{name}: "):
        by_fleet(momentum, **{name: True})


@pytest.mark.parametrize(
    ("optimizer", "workers", "fields", "error", "sentence"),
    [
        (momentum, 2, {"localsgd": True, "gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}}, UnsupportedError,
         "DistributedStrategy.gradient_merge and DistributedStrategy.localsgd do not go together"),
        (momentum, 1, {"lars": True, "lamb": True}, UnsupportedError, "lars and DistributedStrategy.lamb do not go together"),
        (adam, 1, {"lars": True}, FluidTypeError, "DistributedStrategy.lars is for Momentum, not for Adam"),
        (momentum, 1, {"lamb": True}, FluidTypeError, "DistributedStrategy.lamb is for Adam, not for MomentumOptimizer"),
        (adam, 2, {"localsgd": True}, FluidTypeError, "DistributedStrategy.localsgd is for SGD or Momentum, not for Adam"),
        (momentum, 2, {"localsgd": True, "adaptive_localsgd": True}, UnsupportedError, "localsgd do not go together"),
        (momentum, 2, {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"begin_step": 0}}, FluidValueError, "numbers from 1 on"),
        (momentum, 2, {"localsgd": True, "localsgd_configs": {"k_steps": 0}}, FluidValueError, "numbers from 1 on"),
        (momentum, 1, {"amp": True, "amp_configs": {"use_pure_fp16": True}}, UnsupportedError, r"amp_configs\['use_pure_fp16'\]"),
        (momentum, 1, {"hybrid_configs": {"mp_degree": 2}}, UnsupportedError, r"hybrid_configs\['mp_degree'\] is 1"),
        (momentum, 1, {"sharding": True, "sharding_configs": {"optimize_offload": True}}, UnsupportedError, "optimize_offload"),
        (momentum, 1, {"gradient_scale_configs": {"scale_strategy": "sum"}}, UnsupportedError, r"\['scale_strategy'\] is 'avg', not 'sum'"),
        (momentum, 1, {"build_strategy": built(gradient_scale_strategy=1)}, UnsupportedError, "gradients are averaged"),
        (momentum, 1, {"build_strategy": built(reduce_strategy=1)}, UnsupportedError, r"set DistributedStrategy\.sharding$"),
        (momentum, 1, {"trainer_desc_configs": {"dump_fields": ["x"]}}, UnsupportedError, "dump_fields'.: fields and parameters"),
        (momentum, 1, {"amp_configs": {"init_loss_scalin": 1}}, FluidValueError, "has no 'init_loss_scalin'.*init_loss_scaling"),
        (momentum, 1, {"amp_configs": {"init_loss_scaling": "high"}}, FluidTypeError, "is a value such as 32768.0, not 'high'"),
        (momentum, 1, {"amp_configs": 3}, FluidTypeError, "amp_configs is a dict, not 3"),
        (momentum, 1, {"amp": 1}, FluidTypeError, "amp is True or False, not 1"),
        (momentum, 1, {"nccl_comm_num": "2"}, FluidTypeError, "nccl_comm_num is a number"),
        (momentum, 1, {"build_strategy": 1}, FluidTypeError, "build_strategy is a BuildStrategy"),
        (momentum, 1, {"lambs": True}, AttributeError, "has no field 'lambs'.*lamb"),
    ],
)  # fmt: skip
def test_what_does_not_go_is_told(optimizer, workers, fields, error, sentence):
    with pytest.raises(error, match=sentence):
        by_fleet(optimizer, workers, **fields)


def test_what_comes_too_early_or_is_no_such_thing():
    made = fleet.Fleet()
    with fresh():
        loss, _ = net()
        for call, error, sentence in (
            (made.worker_num, FluidValueError, "fleet has no role yet"),
            (
                lambda: made.init("worker"),
                FluidTypeError,
                "takes a role maker of paddle.distributed.fleet",
            ),
            (
                lambda: made.init(strategy=3),
                FluidTypeError,
                "strategy is a paddle.distributed.fleet.DistributedStrategy",
            ),
            (lambda: made.init(is_collective=True), None, ""),
            (lambda: made.minimize(loss), FluidValueError, "call fleet.distributed_optimizer"),
            (lambda: made.distributed_optimizer(None), FluidTypeError, "takes an optimizer"),
            (
                lambda: made.distributed_optimizer(momentum()).minimize(3),
                FluidTypeError,
                "takes the loss as a Variable",
            ),
            (made.init_server, FluidValueError, "has no servers in this job"),
            (
                made.get_loss_scaling,
                FluidValueError,
                "nothing was minimized with DistributedStrategy.amp",
            ),
            (lambda: made.save_persistables(1, "x"), FluidTypeError, "saves with an Executor"),
            (
                lambda: made.save_persistables(fluid.Executor(fluid.CPUPlace()), "x"),
                FluidValueError,
                "nothing was minimized yet",
            ),
            (lambda: made.distributed_model(1), UnsupportedError, "belongs to dynamic mode"),
            (
                lambda: fleet.UserDefinedRoleMaker(worker_nums=2),
                FluidTypeError,
                "has no 'worker_nums'",
            ),
            (
                lambda: made.util.all_reduce(1, "mean"),
                FluidValueError,
                "has the modes sum, min, max",
            ),
            (
                lambda: made.util.all_reduce(1, comm_world="server"),
                UnsupportedError,
                "comm_world='worker'",
            ),
            (lambda: made.util.get_file_shard("a"), FluidTypeError, "a list of files"),
        ):
            if error is None:
                call()
                continue
            with pytest.raises(error, match=sentence):
                call()
    made.init(
        fleet.UserDefinedRoleMaker(
            current_id=0, role=fleet.Role.SERVER, worker_num=2, server_endpoints=ENDS
        )
    )
    with pytest.raises(FluidValueError, match="has no programs yet"):
        made.run_server()
    with (
        fresh(),
        pytest.raises(UnsupportedError, match=r"DistributedStrategy\.amp is for workers alone"),
    ):
        made.distributed_optimizer(momentum(), strategy_of(amp=True)).minimize(net()[0])


def same(value):
    """As Paddle's protobuf holds it: numbers of 32 bits."""
    if isinstance(value, dict):
        return {k: same(v) for k, v in value.items()}
    return float(np.float32(value)) if isinstance(value, float) else value


def test_defaults_and_signatures_are_paddles():
    made = fleet.DistributedStrategy()
    for name, value in RECORDED["strategy"].items():
        found = same(getattr(made, name))
        if name == "hybrid_configs":  # those of dynamic mode are left out
            value = {k: v for k, v in value.items() if k in found}
        assert found == value, name
    for name, parameters in RECORDED["fleet"].items():
        assert [
            p.lstrip("*") for p in inspect.signature(getattr(fleet, name)).parameters
        ] == parameters, name
    for name, parameters in RECORDED["distributed"].items():
        assert [
            p
            for p in inspect.signature(getattr(distributed, name)).parameters
            if p != "use_calc_stream"
        ] == parameters, name
    shares = []
    for index in range(3):
        util = fleet.UtilBase()
        ends = [f"127.0.0.1:{6170 + i}" for i in range(3)]
        util._set_role_maker(
            fleet.UserDefinedRoleMaker(is_collective=True, current_id=index, worker_endpoints=ends)
        )
        shares.append(util.get_file_shard(list(record_fleet.FILES)))
    assert shares == RECORDED["shares"]
    changed = strategy_of(amp=True, amp_configs={"incr_ratio": 3})
    assert (
        repr(changed).splitlines()[1] == "    amp = True"
        and changed.amp_configs["decr_ratio"] == 0.8
    )


@pytest.mark.parametrize("k_steps", [2, 3])
def test_merged_gradients_are_paddles(k_steps):
    """The ops as Paddle 3.3.1 writes them (its mean is reduce_mean), and six steps."""
    avg = k_steps == 2
    record = RECORDED["merged"][f"{k_steps} {avg}"]
    with fresh() as (main, startup):
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1) - y))
        inner = fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1))
        fluid.optimizer.GradientMergeOptimizer(inner, k_steps, avg).minimize(loss)
    begin = next(i for i, op in enumerate(record["ops"]) if op[1] == "increment")
    ours = [[b.idx, op.type, sorted(op.desc.writes)] for b in main.blocks for op in b.ops]
    first = next(i for i, op in enumerate(ours) if op[1] == "increment")
    assert first == begin
    within = [[i, t, o] for i, t, o in ours[first:] if t not in ("conditional_block",)]
    theirs = [[i, t, o] for i, t, o in record["ops"][begin:] if t not in ("conditional_block",)]
    assert [o for o in within if not _decays(o)] == [o for o in theirs if not _decays(o)]
    assert sorted(op.output_arg_names[0] for op in startup.global_block().ops) == sorted(
        record["startup"]
    )
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for name, value in record_fleet.first_values().items():
        scope.var(name).set(value)
    for (a, b), (value, bias, weight) in zip(record_fleet.data(), record["steps"], strict=True):
        np.testing.assert_allclose(
            exe.run(main, {"x": a, "y": b}, [loss], scope=scope)[0][0], value, rtol=1e-5
        )
        np.testing.assert_allclose(scope.get("fc_0.b_0").ravel(), bias, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(scope.get("fc_0.w_0").ravel(), weight, rtol=1e-5, atol=1e-7)
    assert not any(op.type == "increment" for op in main.clone(for_test=True).global_block().ops)


def _decays(op):
    """Paddle 3 decays within the momentum op where it can; Fluid by scale and sum."""
    return op[0] == 1 and (op[1] == "sum" or (op[1] == "scale" and "GradientMerge" not in op[2][0]))


def test_what_gradient_merge_refuses():
    with pytest.raises(FluidValueError, match="wraps an optimizer, not None"):
        fluid.optimizer.GradientMergeOptimizer(None)
    for k in (0, 2.0, True):
        with pytest.raises(FluidValueError, match="k_steps is a positive integer"):
            fluid.optimizer.GradientMergeOptimizer(momentum(), k)
    with fresh():
        loss, _ = net()
        merging = fluid.optimizer.GradientMergeOptimizer(momentum(), 2)
        with pytest.raises(FluidTypeError, match="takes the loss as a Variable"):
            merging.minimize("loss")
        with pytest.raises(FluidValueError, match="takes no no_grad_set"):
            merging.minimize(loss, no_grad_set={"x"})
        rows = fluid.layers.embedding(fluid.data("ids", [None, 1], "int64"), [9, 4], is_sparse=True)
        with pytest.raises(UnsupportedError, match="is sparse: leave is_sparse out of the layer"):
            fluid.optimizer.GradientMergeOptimizer(momentum(), 2).minimize(fluid.layers.mean(rows))
