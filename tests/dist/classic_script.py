"""Scripts of 1.x as a shell starts them, each role by itself: `fluidjax run` is all that is new.
Run by test_classic.py.

The role comes by variables or by arguments that only the script knows; what it gives to the
transpiler says the rest.
"""

import argparse
import os

import numpy as np
import paddle.fluid as fluid


def network():
    x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [1])
    predict = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(0.5), bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return loss


def train(exe, program, loss, trainer_id, steps):
    draw = np.random.RandomState(trainer_id)
    for step in range(steps):
        if str(step) == os.environ.get("FAIL"):
            raise ValueError("out of data")
        x = draw.rand(8, 4).astype("float32")
        exe.run(program, feed={"x": x, "y": x.sum(1, keepdims=True)}, fetch_list=[loss])
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    print("trained", " ".join(f"{v:.5f}" for v in weight.ravel()))


def by_arguments():
    """The examples of click-through rates."""
    parser = argparse.ArgumentParser()
    for name in ("role", "endpoints", "current_endpoint", "mode"):
        parser.add_argument(f"--{name}")
    for name in ("trainers", "trainer_id", "steps"):
        parser.add_argument(f"--{name}", type=int, default=0)
    args = parser.parse_args()
    loss = network()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.Program())  # so a device is in use before anybody knows of a job
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = args.mode == "sync"
    if args.mode == "geo":
        config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, 2
    t = fluid.DistributeTranspiler(config)
    t.transpile(
        args.trainer_id, pservers=args.endpoints, trainers=args.trainers, sync_mode=config.sync_mode
    )
    if args.role == "pserver":
        serve(exe, t, args.current_endpoint)
    else:
        program = t.get_trainer_program()
        exe.run(fluid.default_startup_program())
        train(exe, program, loss, args.trainer_id, args.steps)


def serve(exe, t, endpoint):
    program = t.get_pserver_program(endpoint)
    exe.run(t.get_startup_program(endpoint, program))
    exe.run(program)
    print("served", endpoint)


def by_variables():
    """dist_train of the vision models, as far as its pservers go; steps come by a variable too."""
    role = os.environ["TRAINING_ROLE"]
    trainer_id, trainers = (
        int(os.getenv("PADDLE_TRAINER_ID", "0")),
        int(os.getenv("PADDLE_TRAINERS_NUM", "1")),
    )
    endpoints, current = (
        os.environ["PADDLE_PSERVER_ENDPOINTS"],
        os.getenv("PADDLE_CURRENT_ENDPOINT"),
    )
    loss = network()
    t = fluid.DistributeTranspiler()
    t.transpile(trainer_id, pservers=endpoints, trainers=trainers)
    exe = fluid.Executor(fluid.CPUPlace())
    if role == "PSERVER":
        serve(exe, t, current)
    else:
        program = t.get_trainer_program()
        exe.run(fluid.default_startup_program())
        train(exe, program, loss, trainer_id, int(os.environ["STEPS"]))


def by_nccl2():
    """Its other half, prepare_for_multi_process: the startup program has run, then another one
    joins the trainers.
    """
    trainer_id, listed = (
        int(os.environ["PADDLE_TRAINER_ID"]),
        os.environ["PADDLE_TRAINER_ENDPOINTS"],
    )
    loss = network()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    strategy = fluid.BuildStrategy()
    strategy.num_trainers, strategy.trainer_id = len(listed.split(",")), trainer_id
    config, joins = fluid.DistributeTranspilerConfig(), fluid.Program()
    config.mode = "nccl2"
    t = fluid.DistributeTranspiler(config=config)
    current = os.environ["PADDLE_CURRENT_ENDPOINT"]
    t.transpile(
        trainer_id,
        trainers=listed,
        current_endpoint=current,
        startup_program=joins,
        program=fluid.default_main_program(),
    )
    exe.run(joins)
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, build_strategy=strategy
    )
    train(exe, compiled, loss, trainer_id, int(os.environ["STEPS"]))


def by_collective():
    """Collective mode of the transpiler: the startup program joins the trainers, the main program
    averages gradients.
    """
    trainer_id, listed = (
        int(os.environ["PADDLE_TRAINER_ID"]),
        os.environ["PADDLE_TRAINER_ENDPOINTS"],
    )
    loss = network()
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = "collective", "grad_allreduce"
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(trainer_id, trainers=listed, current_endpoint=os.environ["PADDLE_CURRENT_ENDPOINT"])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    train(exe, fluid.default_main_program(), loss, trainer_id, int(os.environ["STEPS"]))


def by_fleet():
    """A fleet whose roles the user tells."""
    from paddle.fluid.incubate.fleet.base import role_maker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        StrategyFactory,
    )

    number, serves = int(os.environ["NUMBER"]), os.environ["ROLE"] == "server"
    role = role_maker.UserDefinedRoleMaker(
        current_id=number, role=role_maker.Role.SERVER if serves else role_maker.Role.WORKER, worker_num=2,
        server_endpoints=os.environ["SERVERS"].split(","),
    )  # fmt: skip
    fleet.init(role)
    x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [1])
    predict = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(0.5), bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
    optimizer = fleet.distributed_optimizer(
        fluid.optimizer.Momentum(0.05, 0.9), StrategyFactory.create_sync_strategy()
    )
    optimizer.minimize(loss)
    if serves:
        fleet.init_server()
        fleet.run_server()
        print("served", number)
    else:
        fleet.init_worker()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fleet.startup_program)
        train(exe, fleet.main_program, loss, number, int(os.environ["STEPS"]))
        fleet.stop_worker()


{
    "by_variables": by_variables,
    "by_nccl2": by_nccl2,
    "by_collective": by_collective,
    "by_fleet": by_fleet,
}.get(os.environ.get("KIND", ""), by_arguments)()
