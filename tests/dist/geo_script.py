"""A Geo-SGD script in the form of Paddle's documents: its role comes from the environment. Run by
test_geo.py.

python -m fluidjax launch --nproc 2 --pservers 2 geo_script.py FOLDER
"""

import os
import sys

import numpy as np
import paddle.fluid as fluid

folder = sys.argv[1]
given = dict(np.load(os.path.join(folder, "given.npz")))

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
avg_loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(input=x, size=1), y))
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.SGD(learning_rate=0.1).minimize(avg_loss)

role = os.environ["PADDLE_TRAINING_ROLE"]
trainer_id = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
config = fluid.DistributeTranspilerConfig()
config.sync_mode = False
config.geo_sgd_mode = True
config.geo_sgd_need_push_nums = 3
t = fluid.DistributeTranspiler(config=config)
t.transpile(
    trainer_id,
    pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
    trainers=int(os.environ["PADDLE_TRAINERS"]),
    sync_mode=False,
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
    params = [p.name for p in trainer_program.global_block().all_parameters()]
    first = {f"first {n}": np.array(scope.find_var(n).get_tensor()) for n in params}
    seen = {n: [] for n in params}
    tested = []
    for step in range(len(given["x_0"])):
        feed = {"x": given[f"x_{trainer_id}"][step], "y": given[f"y_{trainer_id}"][step]}
        exe.run(trainer_program, feed=feed, fetch_list=[avg_loss])
        for name in params:
            seen[name].append(np.array(scope.find_var(name).get_tensor()))
        if trainer_id == 0:  # the other one goes on
            tested += exe.run(test_program, feed=feed, fetch_list=[avg_loss])
        if step == 4:  # one step after an exchange
            fluid.io.save_checkpoint(
                exe, os.path.join(folder, "checkpoints"), trainer_program, asynchronous=False
            )
    fluid.io.save_params(
        exe, os.path.join(folder, f"saved {trainer_id}"), main_program=trainer_program
    )
    found = {"tested": np.array(tested), **first, **{n: np.array(v) for n, v in seen.items()}}
    fluid.io.load_checkpoint(exe, os.path.join(folder, "checkpoints"), trainer_program)
    for step in (5, 6):
        exe.run(trainer_program, feed={n: given[f"{n}_{trainer_id}"][step] for n in "xy"})
    found |= {f"again {n}": np.array(scope.find_var(n).get_tensor()) for n in params}
    np.savez(os.path.join(folder, f"trainer_{trainer_id}.npz"), **found)
