"""A fleet with parameter servers in the form of Paddle 2's documents. Run by test_pserver_mesh.py.

python -m fluidjax launch --workers IP:PORT,IP:PORT --servers IP:PORT,IP:PORT fleet2_script.py
FOLDER
"""

import os
import sys

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
import paddle.fluid as fluid

paddle.enable_static()
fleet.init()

folder = sys.argv[1]
given = dict(np.load(os.path.join(folder, "given.npz")))

x = paddle.static.data("x", [None, 8], "float32")
y = paddle.static.data("y", [None, 1], "int64")
hidden = fluid.layers.fc(input=x, size=16, act="tanh")
predict = fluid.layers.fc(input=hidden, size=4, act="softmax")
avg_loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))

strategy = fleet.DistributedStrategy()
strategy.a_sync = False
optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(learning_rate=0.01), strategy)
optimizer.minimize(avg_loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    print("pserver ends")
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    scope, trainer_id = paddle.static.global_scope(), fleet.worker_index()
    names = [p.name for p in paddle.static.default_main_program().all_parameters()]
    for name in names:
        scope.find_var(name).get_tensor().set(given[name], paddle.CPUPlace())
    losses = []
    for step in range(len(given["x_0"])):
        feed = {"x": given[f"x_{trainer_id}"][step], "y": given[f"y_{trainer_id}"][step]}
        losses.append(
            exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[avg_loss])[0]
        )
    final = {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    np.savez(os.path.join(folder, f"trainer_{trainer_id}.npz"), losses=np.array(losses), **final)
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, os.path.join(folder, "model"), ["x"], [predict])
    fleet.stop_worker()
