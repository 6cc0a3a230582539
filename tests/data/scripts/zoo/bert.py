"""Trains a masked language model with mixed precision: noam decay, weights decayed apart, data parallel compilation."""
from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

from utility import set_parameters

WORDS, HIDDEN, HEADS, LENGTH, BATCH = 20, 8, 2, 6, 4


def multi_head_attention(queries, attn_bias, name):
    def project(suffix):
        x = layers.fc(queries, HIDDEN, num_flatten_dims=2, name=name + suffix)
        x = layers.reshape(x, shape=[0, 0, HEADS, HIDDEN // HEADS], inplace=True)
        return layers.transpose(x, perm=[0, 2, 1, 3])
    q, k, v = project("_query"), project("_key"), project("_value")
    product = layers.matmul(layers.scale(q, scale=(HIDDEN // HEADS) ** -0.5), k, transpose_y=True)
    weights = layers.softmax(product + attn_bias)
    out = layers.transpose(layers.matmul(weights, v), perm=[0, 2, 1, 3])
    out = layers.reshape(out, shape=[0, 0, HIDDEN], inplace=True)
    return layers.fc(out, HIDDEN, num_flatten_dims=2, name=name + "_output")


def add_and_norm(x, y, name):
    return layers.layer_norm(
        x + y, begin_norm_axis=2,
        param_attr=fluid.ParamAttr(name=name + '_layer_norm_scale', initializer=fluid.initializer.Constant(1.)),
        bias_attr=fluid.ParamAttr(name=name + '_layer_norm_bias', initializer=fluid.initializer.Constant(0.)))


def bert(src, pos, sent, mask):
    emb = layers.embedding(src, [WORDS, HIDDEN], param_attr=fluid.ParamAttr(name="word_embedding"))
    emb = emb + layers.embedding(pos, [LENGTH, HIDDEN], param_attr=fluid.ParamAttr(name="pos_embedding"))
    emb = emb + layers.embedding(sent, [2, HIDDEN], param_attr=fluid.ParamAttr(name="sent_embedding"))
    bias = layers.scale(layers.matmul(mask, mask, transpose_y=True), scale=10000.0, bias=-1.0, bias_after_scale=False)
    bias = layers.stack(x=[bias] * HEADS, axis=1)
    bias.stop_gradient = True
    x = add_and_norm(emb, multi_head_attention(emb, bias, "layer_0_att"), "layer_0_att")
    ffn = layers.fc(layers.fc(x, 16, num_flatten_dims=2, act="gelu", name="ffn_0"), HIDDEN, num_flatten_dims=2, name="ffn_1")
    return add_and_norm(x, ffn, "layer_0_ffn")


def linear_warmup_decay(learning_rate, warmup_steps, num_train_steps):
    """Warm up, then decay linearly, as a Switch over the step's counter."""
    with fluid.default_main_program()._lr_schedule_guard():
        lr = layers.tensor.create_global_var(
            shape=[1], value=0.0, dtype='float32', persistable=True, name="scheduled_learning_rate")
        global_step = layers.learning_rate_scheduler._decay_step_counter()
        with layers.control_flow.Switch() as switch:
            with switch.case(global_step < warmup_steps):
                layers.tensor.assign(learning_rate * (global_step / warmup_steps), lr)
            with switch.default():
                layers.tensor.assign(layers.learning_rate_scheduler.polynomial_decay(
                    learning_rate=learning_rate, decay_steps=num_train_steps, end_learning_rate=0.0, power=1.0,
                    cycle=False), lr)
        return lr


def optimization(loss, train_program):
    scheduled_lr = linear_warmup_decay(0.02, 2, 10)
    optimizer = fluid.optimizer.Adam(learning_rate=scheduled_lr)
    optimizer = fluid.contrib.mixed_precision.decorate(
        optimizer,
        fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_list={"mul", "matmul", "layer_norm"}),
        init_loss_scaling=1024.0, incr_every_n_steps=2, use_dynamic_loss_scaling=True)
    fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0))
    parameters = {}
    for param in train_program.global_block().all_parameters():
        parameters[param.name] = param * 1.0
        parameters[param.name].stop_gradient = True
    _, param_grads = optimizer.minimize(loss)
    for param, grad in param_grads:
        if param.name.rstrip('.w_0').endswith('_norm_scale') or param.name.endswith(('_bias', '.b_0')):
            continue
        with param.block.program._optimized_guard([param, grad]), fluid.framework.name_scope("weight_decay"):
            updated = param - parameters[param.name] * 0.01 * scheduled_lr
            fluid.layers.assign(output=param, input=updated)
    return scheduled_lr, optimizer.get_loss_scaling()


def reader():
    rng = np.random.RandomState(9)
    for _ in range(4):
        src = rng.randint(1, WORDS, (BATCH, LENGTH, 1)).astype('int64')
        pos = np.tile(np.arange(LENGTH).reshape(1, -1, 1), (BATCH, 1, 1)).astype('int64')
        sent = (pos >= 3).astype('int64')
        mask = (np.arange(LENGTH).reshape(1, -1, 1) < rng.randint(3, LENGTH + 1, (BATCH, 1, 1))).astype('float32')
        where = (np.arange(BATCH) * LENGTH + rng.randint(0, 3, BATCH)).astype('int64').reshape(-1, 1)
        yield src, pos, sent, mask, src.reshape(-1)[where], where


def main():
    train_program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_program, startup), fluid.unique_name.guard():
        names = ("src_ids", "pos_ids", "sent_ids", "input_mask", "mask_label", "mask_pos")
        shapes = [[-1, LENGTH, 1]] * 4 + [[-1, 1]] * 2
        dtypes = ["int64"] * 3 + ["float32"] + ["int64"] * 2
        inputs = [layers.data(name=n, shape=s, dtype=t, append_batch_size=False) for n, s, t in zip(names, shapes, dtypes)]
        pyreader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=10, iterable=True)
        out = bert(*inputs[:4])
        picked = layers.gather(input=layers.reshape(x=out, shape=[-1, HIDDEN]), index=inputs[5])
        logits = layers.matmul(picked, train_program.global_block().var("word_embedding"), transpose_y=True)
        logits = logits + layers.create_parameter(
            shape=[WORDS], dtype='float32', attr=fluid.ParamAttr(name="mask_lm_out_fc.b_0"), is_bias=True)
        loss = layers.mean(layers.softmax_with_cross_entropy(logits=logits, label=inputs[4]))
        scheduled_lr, loss_scaling = optimization(loss, train_program)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    set_parameters(train_program, place)
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 1
    exec_strategy.num_iteration_per_drop_scope = 1
    build_strategy = fluid.BuildStrategy()
    train_compiled = fluid.CompiledProgram(train_program).with_data_parallel(
        loss_name=loss.name, exec_strategy=exec_strategy, build_strategy=build_strategy)
    pyreader.set_batch_generator(reader, places=place)
    for steps, data in enumerate(pyreader()):
        found = exe.run(train_compiled, feed=data, fetch_list=[loss.name, scheduled_lr.name, loss_scaling.name])
        print("step", steps, "loss %.6f lr %.6f scaling %.1f" % tuple(np.mean(x) for x in found))


if __name__ == '__main__':
    main()
