"""Metric learning as models/metric_learning has it: losses as classes, arcmargin, triplets, a recall metric, resume from a checkpoint."""
from __future__ import absolute_import, division, print_function
import argparse
import functools
import math
import os
import sys
import numpy as np
import paddle
import paddle.fluid as fluid
from utility import add_arguments, print_arguments, set_parameters

parser = argparse.ArgumentParser(description=__doc__)
add_arg = functools.partial(add_arguments, parser=parser) if False else functools.partial(add_arguments)
for n, t, d in (("train_batch_size", int, 6), ("lr", float, 0.05), ("lr_strategy", str, "piecewise_decay"), ("use_gpu", bool, False), ("checkpoint", str, "")):
    add_arguments(n, t, d, "", parser)
CLASSES = 4


class TripletLoss():
    def __init__(self, margin=0.1):
        self.margin = margin

    def loss(self, input):
        fea_dim = input.shape[1]
        output = fluid.layers.reshape(input, shape=[-1, 3, fea_dim])
        output = fluid.layers.l2_normalize(output, axis=2)
        anchor, positive, negative = fluid.layers.split(output, num_or_sections=3, dim=1)
        a_p = fluid.layers.reduce_sum(fluid.layers.square(anchor - positive), dim=2)
        a_n = fluid.layers.reduce_sum(fluid.layers.square(anchor - negative), dim=2)
        return fluid.layers.mean(fluid.layers.relu(a_p + self.margin - a_n))


def arcmargin(input, label, out_dim, m=0.2, s=10.0, easy_margin=False):
    input_norm = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(input), dim=1))
    input = fluid.layers.elementwise_div(input, input_norm, axis=0)
    weight = fluid.layers.create_parameter(shape=[out_dim, input.shape[1]], dtype='float32', name='weight_norm', attr=fluid.param_attr.ParamAttr(
        initializer=fluid.initializer.Xavier()))
    weight_norm = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(weight), dim=1))
    weight = fluid.layers.elementwise_div(weight, weight_norm, axis=0)
    weight = fluid.layers.transpose(weight, perm=[1, 0])
    cosine = fluid.layers.mul(input, weight)
    sine = fluid.layers.sqrt(1.0 - fluid.layers.square(cosine) + 1e-6)
    phi = cosine * math.cos(m) - sine * math.sin(m)
    if easy_margin:
        phi = fluid.layers.where(cosine > 0, phi, cosine)
    else:
        cond = fluid.layers.cast(cosine > math.cos(math.pi - m), 'float32')
        phi = cond * phi + (1.0 - cond) * (cosine - math.sin(math.pi - m) * m)
    one_hot = fluid.layers.one_hot(input=label, depth=out_dim)
    output = fluid.layers.elementwise_mul(one_hot, phi) + fluid.layers.elementwise_mul((1.0 - one_hot), cosine)
    logit = output * s
    return fluid.layers.softmax_with_cross_entropy(logit, label), logit


def optimizer_setting(params):
    ls = params["learning_strategy"]
    bd = ls["epochs"]
    lr = [params["lr"] * (0.1 ** i) for i in range(len(bd) + 1)]
    return fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay(boundaries=bd, values=lr), momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))


def build_program(is_train, main_prog, startup_prog, args, kind):
    with fluid.program_guard(main_prog, startup_prog):
        queue_capacity = 64
        py_reader = fluid.layers.py_reader(capacity=queue_capacity, shapes=[[-1, 3, 8, 8], [-1, 1]], lod_levels=[0, 0], dtypes=["float32", "int64"],
                                           use_double_buffer=True)
        image, label = fluid.layers.read_file(py_reader)
        with fluid.unique_name.guard():
            c = fluid.layers.conv2d(image, 6, 3, act=None, bias_attr=False, param_attr='c1')
            c = fluid.layers.batch_norm(c, act='relu', param_attr='s', bias_attr='b', moving_mean_name='m', moving_variance_name='v')
            c = fluid.layers.pool2d(c, pool_type='avg', global_pooling=True)
            emb = fluid.layers.fc(c, 5, param_attr='emb_w', bias_attr='emb_b')
            out = {}
            if is_train:
                if kind == 'arcmargin':
                    cost, logit = arcmargin(emb, label, CLASSES)
                    avg_cost = fluid.layers.mean(cost)
                    acc = fluid.layers.accuracy(fluid.layers.softmax(logit), label, k=1)
                else:
                    avg_cost, acc = TripletLoss().loss(emb), fluid.layers.fill_constant([1], 'float32', 0.0)
                optimizer_setting({"learning_strategy": {"epochs": [2, 4]}, "lr": args.lr}).minimize(avg_cost)
                return py_reader, avg_cost, acc, fluid.default_main_program().global_block().var('learning_rate') if False else None
            return py_reader, emb, label


def recall_topk(fea, lab, k=1):
    fea, lab = np.array(fea), np.array(lab).reshape(-1)
    d = ((fea[:, None] - fea[None]) ** 2).sum(2)
    np.fill_diagonal(d, 1e9)
    return np.mean([lab[i] in lab[np.argsort(d[i])[:k]] for i in range(len(lab))])


def data(n, seed, size):
    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(n):
            yield [(rng.rand(3, 8, 8).astype('float32'), int(rng.randint(0, CLASSES))) for _ in range(size)]
    return reader


def train(args, kind, resume=None):
    startup_prog, train_prog, test_prog = fluid.Program(), fluid.Program(), fluid.Program()
    train_reader, cost, acc, _ = build_program(True, train_prog, startup_prog, args, kind)
    test_reader, emb, label = build_program(False, test_prog, startup_prog, args, kind)
    test_prog = test_prog.clone(for_test=True)
    place = fluid.CUDAPlace(0) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place)
    if resume:
        fluid.io.load_persistables(exe, resume, main_program=train_prog)
    train_reader.decorate_paddle_reader(data(4, 1, args.train_batch_size))
    test_reader.decorate_paddle_reader(data(2, 2, 5))
    train_exe = fluid.ParallelExecutor(main_program=train_prog, use_cuda=args.use_gpu, loss_name=cost.name)
    train_reader.start()
    iter_no, total = 0, []
    try:
        while True:
            loss, a = train_exe.run(fetch_list=[cost.name, acc.name])
            total.append(np.mean(np.array(loss)))
            print("step [%s] trainbatch %d, loss %.6f acc %.6f" % (kind, iter_no, float(np.mean(loss)), float(np.mean(a))))
            sys.stdout.flush()
            iter_no += 1
    except fluid.core.EOFException:
        train_reader.reset()
    f, l = [], []
    test_reader.start()
    try:
        while True:
            feas, label_ = exe.run(test_prog, fetch_list=[emb.name, label.name])
            f.append(feas); l.append(label_)
    except fluid.core.EOFException:
        test_reader.reset()
    f, l = np.vstack(f), np.vstack(l)
    print("step [%s] test recall %.5f sum %.6f" % (kind, recall_topk(f, l), np.abs(f).sum()))
    path = os.path.join('output', kind)
    if not os.path.isdir(path):
        os.makedirs(path)
    fluid.io.save_persistables(exe, path, main_program=train_prog)
    return path


if __name__ == '__main__':
    args = parser.parse_args()
    print_arguments(args)
    for kind in ('arcmargin', 'triplet'):
        path = train(args, kind)
        print("saved", kind, len(os.listdir(path)))
    train(args, 'triplet', path)
