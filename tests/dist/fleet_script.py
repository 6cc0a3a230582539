"""A fleet with parameter servers in the form of the documents of 1.8. Run by test_pserver_mesh.py.

python -m fluidjax launch --nproc 2 --pservers 2 fleet_script.py FOLDER
"""

import os
import sys

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

folder = sys.argv[1]
given = dict(np.load(os.path.join(folder, "given.npz")))

x = fluid.layers.data(name="x", shape=[8], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="int64")
hidden = fluid.layers.fc(input=x, size=16, act="tanh")
predict = fluid.layers.fc(input=hidden, size=4, act="softmax")
avg_loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))

role = role_maker.PaddleCloudRoleMaker()
fleet.init(role)
optimizer = fleet.distributed_optimizer(
    fluid.optimizer.Adam(learning_rate=0.01), StrategyFactory.create_sync_strategy()
)
optimizer.minimize(avg_loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    print("pserver ends")
elif fleet.is_worker():
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    scope, trainer_id = fluid.global_scope(), fleet.worker_index()
    names = [p.name for p in fleet.main_program.global_block().all_parameters()]
    for name in names:
        scope.find_var(name).get_tensor().set(given[name], fluid.CPUPlace())
    losses = []
    for step in range(len(given["x_0"])):
        if step == 2 and fleet.is_first_worker():  # the other one goes on
            fleet.save_persistables(exe, os.path.join(folder, "checkpoint"))
        feed = {"x": given[f"x_{trainer_id}"][step], "y": given[f"y_{trainer_id}"][step]}
        losses.append(exe.run(fleet.main_program, feed=feed, fetch_list=[avg_loss])[0])
    final = {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    np.savez(os.path.join(folder, f"trainer_{trainer_id}.npz"), losses=np.array(losses), **final)
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, os.path.join(folder, "model"), ["x"], [predict])
    fleet.stop_worker()
