"""Trains the small MobileNet on several workers (nccl2 mode) or on the devices of one: ParallelExecutor, py_reader, warm-up, checkpoints."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import argparse
import functools
import os

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter

import nets.mobile as mobile
from image_classification import reader_creator
from utility import add_arguments, print_arguments, set_parameters

parser = argparse.ArgumentParser(description=__doc__)
add_arg = functools.partial(add_arguments, parser=parser)
add_arg('batch_size', int, 4, "Minibatch size of a device.")
add_arg('use_gpu', bool, False, "Whether to use GPU or not.")
add_arg('total_images', int, 24, "Training image number.")
add_arg('num_epochs', int, 1, "number of epochs.")
add_arg('lr', float, 0.1, "set learning rate.")
add_arg('model_save_dir', str, "output", "model save directory")
add_arg('update_method', str, "local", "Can be local or nccl2.")


def dist_env():
    """The worker's place in the job, as the launcher says it."""
    endpoints = os.getenv("PADDLE_TRAINER_ENDPOINTS", "").split(",")
    return {"trainer_id": int(os.getenv("PADDLE_TRAINER_ID", "0")), "num_trainers": len(endpoints), "endpoints": endpoints,
            "current_endpoint": os.getenv("PADDLE_CURRENT_ENDPOINT")}


def lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    """A step's rate goes up linearly, then is what learning_rate says."""
    with fluid.default_main_program()._lr_schedule_guard():
        lr = fluid.layers.tensor.create_global_var(
            shape=[1], value=0.0, dtype='float32', persistable=True, name="learning_rate_warmup")
        global_step = _decay_step_counter()
        with fluid.layers.control_flow.Switch() as switch:
            with switch.case(global_step < warmup_steps):
                decayed_lr = start_lr + (end_lr - start_lr) * (global_step / warmup_steps)
                fluid.layers.tensor.assign(decayed_lr, lr)
            with switch.default():
                fluid.layers.tensor.assign(learning_rate, lr)
        return lr


def build_program(main_prog, startup_prog, args):
    with fluid.program_guard(main_prog, startup_prog):
        py_reader = fluid.layers.py_reader(
            capacity=16, shapes=[[-1, 3, 16, 16], [-1, 1]], lod_levels=[0, 0], dtypes=["float32", "int64"],
            use_double_buffer=False, name="train_reader")
        with fluid.unique_name.guard():
            image, label = fluid.layers.read_file(py_reader)
            out = mobile.MobileNet().net(input=image)
            avg_cost = fluid.layers.mean(x=fluid.layers.cross_entropy(input=out, label=label))
            acc_top1 = fluid.layers.accuracy(input=out, label=label, k=1)
            acc_top5 = fluid.layers.accuracy(input=out, label=label, k=5)
            boundaries, values = [2], [args.lr, args.lr * 0.1]
            learning_rate = fluid.layers.piecewise_decay(boundaries=boundaries, values=values)
            optimizer = fluid.optimizer.Momentum(
                learning_rate=lr_warmup(learning_rate, 1, args.lr / 2, args.lr), momentum=0.9,
                regularization=fluid.regularizer.L2Decay(1e-4))
            optimizer.minimize(avg_cost)
            return py_reader, avg_cost, acc_top1, acc_top5, optimizer._global_learning_rate()


def train(args):
    env = dist_env()
    startup_prog, train_prog = fluid.Program(), fluid.Program()
    py_reader, cost, acc1, acc5, lr = build_program(train_prog, startup_prog, args)
    if args.update_method == "nccl2":
        config = fluid.DistributeTranspilerConfig()
        config.mode = "nccl2"
        t = fluid.DistributeTranspiler(config=config)
        t.transpile(env["trainer_id"], trainers=",".join(env["endpoints"]), current_endpoint=env["current_endpoint"],
                    startup_program=startup_prog, program=train_prog)
    else:
        env["num_trainers"], env["trainer_id"] = 1, 0
    place = fluid.CUDAPlace(int(os.getenv("FLAGS_selected_gpus", "0"))) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place)

    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 1
    build_strategy = fluid.BuildStrategy()
    build_strategy.enable_inplace = False
    build_strategy.memory_optimize = False
    pe = fluid.ParallelExecutor(
        use_cuda=bool(args.use_gpu), loss_name=cost.name, main_program=train_prog, exec_strategy=exec_strategy,
        build_strategy=build_strategy, num_trainers=env["num_trainers"], trainer_id=env["trainer_id"])

    batches = paddle.batch(reader_creator(args.total_images, 1), batch_size=args.batch_size, drop_last=True)

    def my_batches():
        for i, batch in enumerate(batches()):
            if i % env["num_trainers"] == env["trainer_id"]:
                yield batch
    py_reader.decorate_paddle_reader(my_batches)
    fetch_list = [cost.name, acc1.name, acc5.name, lr.name]
    for pass_id in range(args.num_epochs):
        py_reader.start()
        batch_id = 0
        try:
            while True:
                found = pe.run(fetch_list=fetch_list)
                print("Pass %d, trainbatch %d, loss %.6f, acc1 %.6f, acc5 %.6f, lr %.6f" % (
                    (pass_id, batch_id) + tuple(np.mean(np.array(v)) for v in found)))
                batch_id += 1
        except fluid.core.EOFException:
            py_reader.reset()
        if env["trainer_id"] == 0:
            model_path = os.path.join(args.model_save_dir, str(pass_id))
            if not os.path.isdir(model_path):
                os.makedirs(model_path)
            fluid.io.save_persistables(exe, model_path, main_program=train_prog)
            print("saved", len(os.listdir(model_path)))
    weights = [np.array(fluid.global_scope().find_var(n).get_tensor()) for n in ("conv1_weights", "fc7_weights")]
    print("table %.5f %.5f" % tuple(np.abs(w).sum() for w in weights))


if __name__ == '__main__':
    args = parser.parse_args()
    print_arguments(args)
    train(args)
