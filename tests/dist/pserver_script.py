"""A training script in the form of Paddle's documents: its role comes from the environment. Run by
test_pserver_mesh.py.

python -m fluidjax launch --nproc 2 --pservers 2 pserver_script.py FOLDER [async]
"""

import os
import sys

import numpy as np
import paddle.fluid as fluid

folder = sys.argv[1]
given = dict(np.load(os.path.join(folder, "given.npz")))

x = fluid.layers.data(name="x", shape=[8], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="int64")
hidden = fluid.layers.fc(input=x, size=16, act="tanh")
predict = fluid.layers.fc(input=hidden, size=4, act="softmax")
avg_loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))
fluid.optimizer.Adam(learning_rate=0.01).minimize(avg_loss)

role = os.environ["PADDLE_TRAINING_ROLE"]
trainer_id = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
sync = "async" not in sys.argv
fluid.default_main_program().random_seed = 4
config = fluid.DistributeTranspilerConfig()
config.sync_mode = sync
t = fluid.DistributeTranspiler(config)
t.transpile(
    trainer_id,
    pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
    trainers=int(os.environ["PADDLE_TRAINERS"]),
    sync_mode=sync,
)
exe = fluid.Executor(fluid.CPUPlace())
if role == "PSERVER":
    endpoint = os.environ["PADDLE_CURRENT_ENDPOINT"]
    pserver_program = t.get_pserver_program(endpoint)
    exe.run(t.get_startup_program(endpoint, pserver_program))
    exe.run(pserver_program)
    print("pserver ends")
elif role == "TRAINER":
    trainer_program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    for p in trainer_program.global_block().all_parameters():
        scope.find_var(p.name).get_tensor().set(given[p.name], fluid.CPUPlace())
    losses = []
    for step in range(len(given["x_0"])):
        feed = {"x": given[f"x_{trainer_id}"][step], "y": given[f"y_{trainer_id}"][step]}
        losses.append(exe.run(trainer_program, feed=feed, fetch_list=[avg_loss])[0])
    final = {
        p.name: np.array(scope.find_var(p.name).get_tensor())
        for p in trainer_program.global_block().all_parameters()
    }
    np.savez(os.path.join(folder, f"trainer_{trainer_id}.npz"), losses=np.array(losses), **final)
