"""Trains a small MobileNet from a py_reader: piecewise decay, memory_optimize, a profile, a test program, checkpoints."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import argparse
import functools
import os
import sys
import time

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.profiler as profiler

import nets.mobile as mobile
from utility import add_arguments, print_arguments, set_parameters

parser = argparse.ArgumentParser(description=__doc__)
add_arg = functools.partial(add_arguments, parser=parser)
add_arg('batch_size', int, 4, "Minibatch size.")
add_arg('use_gpu', bool, False, "Whether to use GPU or not.")
add_arg('total_images', int, 12, "Training image number.")
add_arg('num_epochs', int, 2, "number of epochs.")
add_arg('class_dim', int, 10, "Class number.")
add_arg('image_shape', str, "3,16,16", "input image size")
add_arg('model_save_dir', str, "output", "model save directory")
add_arg('with_mem_opt', bool, True, "Whether to use memory optimization or not.")
add_arg('lr', float, 0.1, "set learning rate.")
add_arg('lr_strategy', str, "piecewise_decay", "Set the learning rate decay strategy.")
add_arg('enable_ce', bool, True, "print for continuous evaluation")


def reader_creator(count, seed):
    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            label = rng.randint(0, 10)
            yield (rng.uniform(-1, 1, (3, 16, 16)) + label * 0.1).astype('float32').ravel(), label
    return reader


def optimizer_setting(params):
    ls = params["learning_strategy"]
    if ls["name"] == "piecewise_decay":
        step = int(params["total_images"] / ls["batch_size"])
        bd = [step * e for e in ls["epochs"]]
        lr = [params["lr"] * (0.1 ** i) for i in range(len(bd) + 1)]
        return fluid.optimizer.Momentum(
            learning_rate=fluid.layers.piecewise_decay(boundaries=bd, values=lr),
            momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    return fluid.optimizer.Momentum(learning_rate=params["lr"], momentum=0.9)


def build_program(is_train, main_prog, startup_prog, args):
    image_shape = [int(m) for m in args.image_shape.split(",")]
    with fluid.program_guard(main_prog, startup_prog):
        py_reader = fluid.layers.py_reader(
            capacity=16, shapes=[[-1] + image_shape, [-1, 1]], lod_levels=[0, 0],
            dtypes=["float32", "int64"], use_double_buffer=True, name="train" if is_train else "test")
        with fluid.unique_name.guard():
            image, label = fluid.layers.read_file(py_reader)
            out = mobile.MobileNet().net(input=image, class_dim=args.class_dim)
            cost = fluid.layers.cross_entropy(input=out, label=label)
            avg_cost = fluid.layers.mean(x=cost)
            acc_top1 = fluid.layers.accuracy(input=out, label=label, k=1)
            acc_top5 = fluid.layers.accuracy(input=out, label=label, k=5)
            for var in (avg_cost, acc_top1, acc_top5):
                var.persistable = True
            if not is_train:
                return py_reader, avg_cost, acc_top1, acc_top5
            optimizer = optimizer_setting({
                "total_images": args.total_images, "lr": args.lr,
                "learning_strategy": {"name": args.lr_strategy, "batch_size": args.batch_size, "epochs": [1]}})
            optimizer.minimize(avg_cost)
            global_lr = optimizer._global_learning_rate()
            return py_reader, avg_cost, acc_top1, acc_top5, global_lr


def train(args):
    startup_prog, train_prog, test_prog = fluid.Program(), fluid.Program(), fluid.Program()
    startup_prog.random_seed = train_prog.random_seed = 1000
    train_py_reader, train_cost, train_acc1, train_acc5, global_lr = build_program(True, train_prog, startup_prog, args)
    test_py_reader, test_cost, test_acc1, test_acc5 = build_program(False, test_prog, startup_prog, args)
    test_prog = test_prog.clone(for_test=True)
    if args.with_mem_opt:
        fluid.memory_optimize(train_prog, skip_opt_set=set([train_cost.name, train_acc1.name, train_acc5.name]))

    place = fluid.CUDAPlace(0) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place)

    train_reader = paddle.batch(reader_creator(args.total_images, 1), batch_size=args.batch_size, drop_last=True)
    test_reader = paddle.batch(reader_creator(6, 2), batch_size=args.batch_size)
    train_py_reader.decorate_paddle_reader(train_reader)
    test_py_reader.decorate_paddle_reader(test_reader)

    train_fetch_list = [train_cost.name, train_acc1.name, train_acc5.name, global_lr.name]
    test_fetch_list = [test_cost.name, test_acc1.name, test_acc5.name]
    for pass_id in range(args.num_epochs):
        train_py_reader.start()
        train_info, batch_id, train_time = [[], [], []], 0, []
        try:
            while True:
                if pass_id == 1 and batch_id == 1:
                    profiler.start_profiler("All")
                t1 = time.time()
                loss, acc1, acc5, lr = exe.run(train_prog, fetch_list=train_fetch_list)
                train_time.append(time.time() - t1)
                for info, value in zip(train_info, (loss, acc1, acc5)):
                    info.append(np.mean(np.array(value)))
                print("Pass {0}, trainbatch {1}, loss {2}, acc1 {3}, acc5 {4}, lr {5}".format(
                    pass_id, batch_id, "%.6f" % loss, "%.6f" % acc1, "%.6f" % acc5, "%.6f" % lr))
                sys.stdout.flush()
                batch_id += 1
        except fluid.core.EOFException:
            train_py_reader.reset()
        if pass_id == 1:
            profiler.stop_profiler("total", os.path.join(args.model_save_dir, "profile"))

        test_info, counts = [[], [], []], []
        test_py_reader.start()
        try:
            while True:
                for info, value in zip(test_info, exe.run(program=test_prog, fetch_list=test_fetch_list)):
                    info.append(np.mean(value))
        except fluid.core.EOFException:
            test_py_reader.reset()
        print("End pass {0}, train_loss {1}, test_loss {2}, test_acc1 {3}".format(
            pass_id, "%.6f" % np.mean(train_info[0]), "%.6f" % np.mean(test_info[0]), "%.6f" % np.mean(test_info[1])))
        model_path = os.path.join(args.model_save_dir, str(pass_id))
        if not os.path.isdir(model_path):
            os.makedirs(model_path)
        fluid.io.save_persistables(exe, model_path, main_program=train_prog)

    def if_exist(var):
        return os.path.exists(os.path.join(model_path, var.name))
    fluid.io.load_vars(exe, model_path, main_program=train_prog, predicate=if_exist)
    saved = sorted(os.listdir(model_path))
    print("saved", len(saved), " ".join(n for n in saved if n.startswith("fc7")))
    if args.enable_ce:
        print("kpis\ttrain_cost\t%.6f" % np.mean(train_info[0]))


if __name__ == '__main__':
    args = parser.parse_args()
    print_arguments(args)
    train(args)
