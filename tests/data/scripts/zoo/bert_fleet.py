"""Pretrains a BERT of two layers on several workers: fleet collective, mixed precision, warm-up, clipping by the global norm."""
from __future__ import print_function

import argparse

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
import paddle.fluid.layers as layers
from paddle.fluid.incubate.fleet.collective import DistributedStrategy, fleet

from bert import BATCH, HEADS, HIDDEN, LENGTH, WORDS, add_and_norm, linear_warmup_decay, multi_head_attention, reader
from utility import set_parameters

parser = argparse.ArgumentParser(__doc__)
parser.add_argument("--layers", type=int, default=2, help="of the transformer")
parser.add_argument("--steps", type=int, default=3, help="of training")
parser.add_argument("--fp16", action="store_true", help="compute products in half precision")


class BertModel(object):
    def __init__(self, src, pos, sent, mask, n_layer):
        def embed(ids, size, name):
            return layers.embedding(ids, [size, HIDDEN], param_attr=fluid.ParamAttr(name=name))
        bias = layers.scale(layers.matmul(mask, mask, transpose_y=True), scale=10000.0, bias=-1.0, bias_after_scale=False)
        bias = layers.stack(x=[bias] * HEADS, axis=1)
        bias.stop_gradient = True
        x = embed(src, WORDS, "word_embedding") + embed(pos, LENGTH, "pos_embedding") + embed(sent, 2, "sent_embedding")
        for i in range(n_layer):
            name = "encoder_layer_%d" % i
            x = add_and_norm(x, multi_head_attention(x, bias, name + "_multi_head_att"), name + "_post_att")
            ffn = layers.fc(x, 16, num_flatten_dims=2, act="gelu", name=name + "_ffn_fc_0")
            x = add_and_norm(x, layers.fc(ffn, HIDDEN, num_flatten_dims=2, name=name + "_ffn_fc_1"), name + "_post_ffn")
        self.enc_out = x

    def pretraining_loss(self, mask_label, mask_pos, sent_label):
        picked = layers.gather(input=layers.reshape(x=self.enc_out, shape=[-1, HIDDEN]), index=mask_pos)
        picked = layers.fc(picked, HIDDEN, act="gelu", name="mask_lm_trans_fc")
        words = fluid.default_main_program().global_block().var("word_embedding")
        logits = layers.matmul(picked, words, transpose_y=True) + layers.create_parameter(
            shape=[WORDS], dtype="float32", attr=fluid.ParamAttr(name="mask_lm_out_fc.b_0"), is_bias=True)
        mask_lm_loss = layers.mean(layers.softmax_with_cross_entropy(logits=logits, label=mask_label))
        first = layers.slice(input=self.enc_out, axes=[1], starts=[0], ends=[1])
        pooled = layers.fc(first, HIDDEN, num_flatten_dims=2, act="tanh", name="pooled_fc")
        next_sent = layers.fc(layers.reshape(pooled, [-1, HIDDEN]), 2, name="next_sent_fc")
        next_sent_loss, softmax = layers.softmax_with_cross_entropy(logits=next_sent, label=sent_label, return_softmax=True)
        return layers.mean(next_sent_loss) + mask_lm_loss, layers.accuracy(input=softmax, label=sent_label)


def shares(steps):
    """This worker's rows of every batch; which words are masked counts from its own first row."""
    mine = BATCH // fleet.worker_num()
    rows = slice(fleet.worker_index() * mine, (fleet.worker_index() + 1) * mine)
    for step, (src, pos, sent, mask, label, where) in enumerate(reader()):
        if step == steps:
            return
        sent_label = (src[:, :1, 0] % 2).astype("int64")
        yield src[rows], pos[rows], sent[rows], mask[rows], label[rows], where[rows] - rows.start * LENGTH, sent_label[rows]


def main(args):
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    train_program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_program, startup), fluid.unique_name.guard():
        names = ("src_ids", "pos_ids", "sent_ids", "input_mask", "mask_label", "mask_pos", "labels")
        shapes = [[-1, LENGTH, 1]] * 4 + [[-1, 1]] * 3
        dtypes = ["int64"] * 3 + ["float32"] + ["int64"] * 3
        inputs = [layers.data(name=n, shape=s, dtype=t, append_batch_size=False) for n, s, t in zip(names, shapes, dtypes)]
        data_loader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=50, iterable=True)
        model = BertModel(*inputs[:4], n_layer=args.layers)
        loss, next_sent_acc = model.pretraining_loss(*inputs[4:])
        scheduled_lr = linear_warmup_decay(0.02, 2, 10)
        fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0))
        optimizer = fluid.optimizer.Adam(learning_rate=scheduled_lr)
        black = set() if args.fp16 else {"mul", "matmul", "layer_norm"}  # a CPU of 1.8 has no products in half precision
        optimizer = fluid.contrib.mixed_precision.decorate(
            optimizer, fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_list=black),
            init_loss_scaling=128.0, incr_every_n_steps=2, use_dynamic_loss_scaling=True)
        loss_scaling = optimizer.get_loss_scaling()
        dist_strategy = DistributedStrategy()
        dist_strategy.exec_strategy = fluid.ExecutionStrategy()
        dist_strategy.exec_strategy.num_threads = 1
        dist_strategy.nccl_comm_num = 1
        optimizer = fleet.distributed_optimizer(optimizer, strategy=dist_strategy)
        optimizer.minimize(loss, startup)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fleet.startup_program)
    set_parameters(train_program, place)
    data_loader.set_batch_generator(lambda: shares(args.steps), places=place)
    for steps, data in enumerate(data_loader()):
        fetched = [loss.name, next_sent_acc.name, scheduled_lr.name, loss_scaling.name]
        found = exe.run(fleet.main_program, feed=data, fetch_list=fetched)
        print("step %d loss %.6f acc %.4f lr %.6f scaling %.1f" % ((steps,) + tuple(np.mean(np.array(x)) for x in found)))


if __name__ == "__main__":
    main(parser.parse_args())
