"""A classifier as ERNIE's fine-tuning of 1.3 writes it: py_reader, warmup by Switch, weight decay by hand, load_vars by predicate."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function
import argparse
import os
import multiprocessing
import time
import numpy as np
import six
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from utility import set_parameters, print_arguments


class ArgumentGroup(object):
    def __init__(self, parser, title, des):
        self._group = parser.add_argument_group(title=title, description=des)

    def add_arg(self, name, type, default, help, **kwargs):
        type = str2bool if type == bool else type
        self._group.add_argument("--" + name, default=default, type=type, help=help + ' Default: %(default)s.', **kwargs)


def str2bool(v):
    return v.lower() in ("true", "t", "1")


parser = argparse.ArgumentParser(__doc__)
g = ArgumentGroup(parser, "model", "model configuration and paths.")
g.add_arg("learning_rate", float, 0.01, "lr")
g.add_arg("lr_scheduler", str, "linear_warmup_decay", "sched", choices=['linear_warmup_decay', 'noam_decay'])
g.add_arg("weight_decay", float, 0.01, "wd")
g.add_arg("use_fp16", bool, False, "fp16")
args = parser.parse_args()
VOCAB, HID, HEADS, SEQ = 40, 8, 2, 6


def linear_warmup_decay(learning_rate, warmup_steps, num_train_steps):
    with fluid.default_main_program()._lr_schedule_guard():
        lr = fluid.layers.tensor.create_global_var(shape=[1], value=0.0, dtype='float32', persistable=True, name="scheduled_learning_rate")
        global_step = fluid.layers.learning_rate_scheduler._decay_step_counter()
        with fluid.layers.control_flow.Switch() as switch:
            with switch.case(global_step < warmup_steps):
                warmup_lr = learning_rate * (global_step / warmup_steps)
                fluid.layers.tensor.assign(warmup_lr, lr)
            with switch.default():
                decayed_lr = fluid.layers.learning_rate_scheduler.polynomial_decay(
                    learning_rate=learning_rate, decay_steps=num_train_steps, end_learning_rate=0.0, power=1.0, cycle=False)
                fluid.layers.tensor.assign(decayed_lr, lr)
        return lr


def optimization(loss, warmup_steps, num_train_steps, learning_rate, train_program, startup_prog, weight_decay, scheduler):
    if scheduler == 'noam_decay':
        scheduled_lr = fluid.layers.learning_rate_scheduler.noam_decay(1 / (warmup_steps * (learning_rate ** 2)), warmup_steps)
    else:
        scheduled_lr = linear_warmup_decay(learning_rate, warmup_steps, num_train_steps)
    optimizer = fluid.optimizer.Adam(learning_rate=scheduled_lr)
    fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0))

    def exclude_from_weight_decay(name):
        if name.find("layer_norm") > -1:
            return True
        return any(name.endswith(s) for s in ["_bias", "_b", ".b_0"])
    param_list = dict()
    for param in train_program.global_block().all_parameters():
        param_list[param.name] = param * 1.0
        param_list[param.name].stop_gradient = True
    _, param_grads = optimizer.minimize(loss)
    if weight_decay > 0:
        for param, grad in param_grads:
            if exclude_from_weight_decay(param.name):
                continue
            with param.block.program._optimized_guard([param, grad]), fluid.framework.name_scope("weight_decay"):
                updated_param = param - param_list[param.name] * weight_decay * scheduled_lr
                fluid.layers.assign(output=param, input=updated_param)
    return scheduled_lr


def encoder(src, pos, mask):
    emb = layers.embedding(src, size=[VOCAB, HID], dtype='float32', is_sparse=False, param_attr=fluid.ParamAttr(name="word_embedding"))
    emb = emb + layers.embedding(pos, size=[SEQ, HID], param_attr=fluid.ParamAttr(name="pos_embedding"))
    bias = layers.scale(layers.matmul(mask, mask, transpose_y=True), scale=10000.0, bias=-1.0, bias_after_scale=False)
    n_head_bias = layers.stack(x=[bias] * HEADS, axis=1)
    n_head_bias.stop_gradient = True
    x = emb
    for i in range(2):
        name = "encoder_layer_%d" % i
        q, k, v = [layers.fc(x, size=HID, num_flatten_dims=2, param_attr=fluid.ParamAttr(name=name + n + ".w_0"), bias_attr=name + n + ".b_0")
                   for n in ("_q", "_k", "_v")]
        split = lambda t: layers.transpose(layers.reshape(x=t, shape=[0, 0, HEADS, HID // HEADS], inplace=True), perm=[0, 2, 1, 3])
        product = layers.matmul(layers.scale(x=split(q), scale=(HID // HEADS) ** -0.5), split(k), transpose_y=True)
        product += n_head_bias
        weights = layers.softmax(product)
        out = layers.reshape(layers.transpose(layers.matmul(weights, split(v)), [0, 2, 1, 3]), [0, 0, HID], inplace=True)
        x = layers.layer_norm(out + x, begin_norm_axis=len(x.shape) - 1, param_attr=fluid.ParamAttr(name=name + '_layer_norm_scale'),
                              bias_attr=fluid.ParamAttr(name=name + '_layer_norm_bias'))
        ffn = layers.fc(layers.fc(x, 16, 2, act='gelu', param_attr=name + '_fc_0.w_0', bias_attr=name + '_fc_0.b_0'), HID, num_flatten_dims=2,
                        param_attr=name + '_fc_1.w_0', bias_attr=name + '_fc_1.b_0')
        x = x + ffn
    return x


def create_model(pyreader_name):
    pyreader = fluid.layers.py_reader(
        capacity=50, shapes=[[-1, SEQ, 1], [-1, SEQ, 1], [-1, SEQ, 1], [-1, 1], [-1, 1]],
        dtypes=['int64', 'int64', 'float32', 'int64', 'int64'], lod_levels=[0, 0, 0, 0, 0], name=pyreader_name, use_double_buffer=True)
    (src_ids, position_ids, input_mask, labels, qids) = fluid.layers.read_file(pyreader)
    enc = encoder(src_ids, position_ids, input_mask)
    first = layers.slice(input=enc, axes=[1], starts=[0], ends=[1])
    cls = layers.fc(input=first, size=HID, act="tanh", param_attr=fluid.ParamAttr(name="pooled_fc.w_0"), bias_attr="pooled_fc.b_0")
    cls_feats = layers.dropout(x=cls, dropout_prob=0.0, dropout_implementation="upscale_in_train")
    logits = layers.fc(input=cls_feats, size=3, param_attr=fluid.ParamAttr(name="cls_out_w"), bias_attr=fluid.ParamAttr(name="cls_out_b"))
    ce_loss, probs = layers.softmax_with_cross_entropy(logits=logits, label=labels, return_softmax=True)
    loss = layers.mean(x=ce_loss)
    num_seqs = layers.create_tensor(dtype='int64')
    accuracy = layers.accuracy(input=probs, label=labels, total=num_seqs)
    graph_vars = {"loss": loss, "probs": probs, "accuracy": accuracy, "labels": labels, "num_seqs": num_seqs, "qids": qids}
    for k, v in graph_vars.items():
        v.persistable = True
    return pyreader, graph_vars


def batches(n, seed):
    def gen():
        rng = np.random.RandomState(seed)
        for _ in range(n):
            b = 4
            src = rng.randint(1, VOCAB, (b, SEQ, 1)).astype('int64')
            mask = np.ones((b, SEQ, 1), 'float32')
            mask[0, 4:] = 0
            yield [src, np.tile(np.arange(SEQ).reshape(1, SEQ, 1), (b, 1, 1)).astype('int64'), mask, rng.randint(0, 3, (b, 1)).astype('int64'),
                   np.arange(b).reshape(-1, 1).astype('int64')]
    return gen


def init_pretraining_params(exe, path, main_program):
    assert os.path.exists(path), "[%s] cann't be found." % path

    def existed_params(var):
        if not isinstance(var, fluid.framework.Parameter):
            return False
        return os.path.exists(os.path.join(path, var.name))
    fluid.io.load_vars(exe, path, main_program=main_program, predicate=existed_params)
    print("Load pretraining parameters from {}.".format(path))


def main(args):
    print_arguments(args)
    place = fluid.CPUPlace()
    dev_count = int(os.environ.get('CPU_NUM', multiprocessing.cpu_count()))
    exe = fluid.Executor(place)
    startup_prog = fluid.Program()
    startup_prog.random_seed = 1
    train_program = fluid.Program()
    with fluid.program_guard(train_program, startup_prog):
        with fluid.unique_name.guard():
            train_pyreader, graph_vars = create_model('train_reader')
            scheduled_lr = optimization(graph_vars["loss"], 2, 6, args.learning_rate, train_program, startup_prog, args.weight_decay, args.lr_scheduler)
            fluid.memory_optimize(input_program=train_program, skip_opt_set=[graph_vars["loss"].name, graph_vars["accuracy"].name])
    test_prog = fluid.Program()
    with fluid.program_guard(test_prog, startup_prog):
        with fluid.unique_name.guard():
            test_pyreader, test_vars = create_model('test_reader')
    test_prog = test_prog.clone(for_test=True)
    exe.run(startup_prog)
    set_parameters(train_program, place)
    fluid.io.save_params(exe, 'pretrained', train_program)
    os.remove('pretrained/cls_out_w')
    init_pretraining_params(exe, 'pretrained', main_program=train_program)
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.use_experimental_executor = True
    exec_strategy.num_threads = dev_count
    exec_strategy.num_iteration_per_drop_scope = 1
    train_exe = fluid.ParallelExecutor(
        use_cuda=False, loss_name=graph_vars["loss"].name, exec_strategy=exec_strategy, main_program=train_program,
        num_trainers=1, trainer_id=0)
    train_pyreader.decorate_tensor_provider(batches(5, 3))
    test_pyreader.decorate_tensor_provider(batches(2, 9))
    steps = 0
    for epoch in range(2):
        train_pyreader.start()
        while True:
            try:
                steps += 1
                loss, acc, n, lr = train_exe.run(fetch_list=[graph_vars["loss"].name, graph_vars["accuracy"].name, graph_vars["num_seqs"].name, scheduled_lr.name])
                print("step: %d, ave loss: %f, ave acc: %f, n %s lr %f" % (steps, np.mean(loss), np.mean(acc), n, np.mean(lr)))
            except fluid.core.EOFException:
                train_pyreader.reset()
                break
    test_pyreader.start()
    total_cost, scores, labels = [], [], []
    while True:
        try:
            l, p, lab = exe.run(program=test_prog, fetch_list=[test_vars["loss"].name, test_vars["probs"].name, test_vars["labels"].name])
            total_cost.append(np.sum(l)); scores.extend(p[:, 1].reshape(-1).tolist()); labels.extend(lab.reshape((-1)).tolist())
        except fluid.core.EOFException:
            test_pyreader.reset()
            break
    print("step evaluation ave loss: %f" % np.mean(total_cost), " ".join("%.5f" % s for s in scores), labels)
    print("step rate", *[np.array(fluid.global_scope().find_var(n).get_tensor())[0] for n in ("scheduled_learning_rate", "@LR_DECAY_COUNTER@")])
    fluid.io.save_persistables(exe, os.path.join('out', "step_" + str(steps)), train_program)
    print("saved", len(os.listdir('out/step_%d' % steps)), sorted(os.listdir('out/step_%d' % steps))[:6])


if __name__ == '__main__':
    main(args)
