"""A trainer or a pserver that saves and loads what the job keeps. Run by test_job_saves.py."""

import argparse

import numpy as np
import paddle.fluid as fluid

parser = argparse.ArgumentParser()
for name in ("role", "endpoints", "current", "save", "load", "load_here"):
    parser.add_argument(f"--{name}")
for name in ("id", "first", "last"):
    parser.add_argument(f"--{name}", type=int, default=0)
args = parser.parse_args()

main, startup = fluid.default_main_program(), fluid.default_startup_program()
main.random_seed = startup.random_seed = 5
x, y = fluid.layers.data("x", [128]), fluid.layers.data("y", [1])
ids = fluid.layers.data("ids", [1], dtype="int64")
hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 300, act="tanh"))
rows = fluid.layers.embedding(ids, [60, 8], is_sparse=True, param_attr="table")
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc([hidden, rows], 1), y))
fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.5, staircase=True)).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(args.id, pservers=args.endpoints, trainers=2)
exe = fluid.Executor(fluid.CPUPlace())
if args.role == "pserver":
    program, first = t.get_pserver_programs(args.current)
    exe.run(first)
    if args.load:
        fluid.io.load_persistables(exe, args.load, program)
    exe.run(program)
else:
    program = t.get_trainer_program()
    exe.run(startup)
    if args.load_here:
        fluid.io.load_persistables(exe, args.load_here, program)
    for step in range(args.first, args.last):
        draw = np.random.RandomState(10 * step + args.id)
        drawn = draw.rand(4, 128).astype("float32")
        feed = {"x": drawn, "y": drawn[:, :1], "ids": draw.randint(0, 60, (4, 1)).astype("int64")}
        exe.run(program, feed=feed, fetch_list=[loss])
    if args.save:
        fluid.io.save_persistables(exe, f"{args.save}{args.id}", program)
