"""A parameter-server script in the form of Paddle's documents, with the mistake that its argument
names.
"""

import os
import sys

import numpy as np
import paddle.fluid as fluid

mistake = sys.argv[1]
role, trainer_id = os.environ["PADDLE_TRAINING_ROLE"], int(os.environ.get("PADDLE_TRAINER_ID", "0"))
trainers, endpoint = int(os.environ["PADDLE_TRAINERS"]), os.environ["PADDLE_CURRENT_ENDPOINT"]
steps = 4 - (trainer_id if mistake == "batches" else 0)
if mistake == "endpoint":
    endpoint = "127.0.0.1:1"
if mistake == "trainers":
    trainers += 1

x = fluid.layers.data(name="x", shape=[4], dtype="float32")
hidden = fluid.layers.fc(input=x, size=5 if mistake == "program" and trainer_id else 3)
loss = fluid.layers.mean(hidden)
fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(trainer_id, pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"], trainers=trainers)
exe = fluid.Executor(fluid.CPUPlace())
if role == "PSERVER":
    main, startup = t.get_pserver_programs(endpoint)
    exe.run(startup)
    exe.run(main)
else:
    exe.run(fluid.default_startup_program())
    for _ in range(steps):
        exe.run(t.get_trainer_program(), feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
    print("trained", flush=True)
