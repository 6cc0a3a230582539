"""The script of `faults.py`: a training job in the form of Paddle's documents that saves
checkpoints and goes on from them.

python -m fluidjax launch --nproc 2 --pservers 2 benchmarks/fault_job.py FOLDER STEPS EVERY WIDTH

It has what a restart could get wrong: dropout, Adam, a decaying learning rate, a shuffle, a
DataLoader that reads ahead, checkpoints that are written while the steps go on. Every process says
its number (pid), trainers what step they begin.
"""

import os
import sys

import numpy as np
import paddle
import paddle.fluid as fluid

folder, steps, every, width = sys.argv[1], *map(int, sys.argv[2:])
trainers, trainer_id = (
    int(os.environ["PADDLE_TRAINERS"]),
    int(os.environ.get("PADDLE_TRAINER_ID", "0")),
)
batch = 16
print("pid", os.getpid(), flush=True)


def samples():
    """The trainer's part of the samples, the same in every pass."""
    rng = np.random.RandomState(7)
    for number in range(trainers * batch * 6):
        x = rng.rand(32).astype("float32")
        if number % trainers == trainer_id:
            yield x, np.array([int(x.sum() > 16)], "int64")


main, startup = fluid.default_main_program(), fluid.default_startup_program()
main.random_seed = startup.random_seed = 5
x = fluid.data(name="x", shape=[None, 32], dtype="float32")
y = fluid.data(name="y", shape=[None, 1], dtype="int64")
hidden = fluid.layers.dropout(fluid.layers.fc(input=x, size=width, act="relu"), 0.3)
hidden = fluid.layers.dropout(fluid.layers.fc(input=hidden, size=width, act="relu"), 0.3)
predict = fluid.layers.fc(input=hidden, size=2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))
fluid.optimizer.Adam(fluid.layers.exponential_decay(0.002, decay_steps=7, decay_rate=0.8)).minimize(
    loss
)
state = [v.name for v in fluid.io.get_program_persistable_vars(main)]

t = fluid.DistributeTranspiler()
t.transpile(trainer_id, pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"], trainers=trainers)
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    endpoint = os.environ["PADDLE_CURRENT_ENDPOINT"]
    pserver_program = t.get_pserver_program(endpoint)
    exe.run(t.get_startup_program(endpoint, pserver_program))
    exe.run(pserver_program)
    sys.exit(0)

program = t.get_trainer_program()
exe.run(startup)
loader = fluid.io.DataLoader.from_generator(feed_list=[x, y], capacity=4)
loader.set_sample_list_generator(
    paddle.batch(fluid.io.shuffle(samples, 50, seed=3), batch), fluid.CPUPlace()
)
checkpoints = os.path.join(folder, "checkpoints")
step = 0
if fluid.io.get_latest_checkpoint_serial(checkpoints) >= 0:
    step = fluid.io.load_checkpoint(exe, checkpoints, program, reader=loader).step
    print("goes on after step", step, flush=True)
losses = {}
while step < steps:
    for feed in loader():
        step += 1
        print("step", step, flush=True)
        losses[f"loss {step}"] = exe.run(program, feed=feed, fetch_list=[loss])[0]
        if step % every == 0:
            fluid.io.save_checkpoint(exe, checkpoints, program, step, loader)
        if step == steps:
            break
fluid.io.wait_checkpoint(checkpoints)
held = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in state}
np.savez(os.path.join(folder, f"trainer_{trainer_id}.npz"), **held, **losses)
