"""Trains skip-gram vectors with negative samples from a DataLoader that the program reads, then looks for the nearest words."""
from __future__ import print_function

import argparse

import numpy as np
import six

import paddle.fluid as fluid
from utility import set_parameters

WORDS, SIZE, BATCH = 30, 8, 6


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--num_passes', type=int, default=2)
    parser.add_argument('--nce_num', type=int, default=4)
    parser.add_argument('--base_lr', type=float, default=0.5)
    parser.add_argument('--print_batch', type=int, default=1)
    return parser.parse_args()


class Word2VecReader(object):
    def __init__(self, neg_num, window_size=2):
        self.neg_num = neg_num
        rng = np.random.RandomState(4)
        self.window_size = window_size
        self.corpus = [rng.randint(0, WORDS, rng.randint(3, 7)) for _ in range(8)]

    def get_context_words(self, words, idx):
        start_point = max(idx - self.window_size, 0)
        return list(set(words[start_point:idx].tolist() + words[idx + 1:idx + 1 + self.window_size].tolist()))

    def train(self):
        def _reader():
            cs = np.arange(1, WORDS + 1).astype('float64').cumsum()
            for words in self.corpus:
                for idx, target in enumerate(words):
                    for context in sorted(self.get_context_words(words, idx)):
                        neg_array = cs.searchsorted(np.random.uniform(0, cs[-1], self.neg_num))
                        yield [int(target)], [context], neg_array.tolist()
        return _reader


def skip_gram_word2vec(dict_size, embedding_size, neg_num, is_sparse=True):
    words = [fluid.layers.data(name=name, shape=[size], dtype='int64')
             for name, size in (('input_word', 1), ('true_label', 1), ('neg_label', neg_num))]
    py_reader = fluid.io.DataLoader.from_generator(feed_list=words, capacity=64, use_double_buffer=True, iterable=False)
    init_width = 0.5 / embedding_size
    input_emb = fluid.layers.embedding(
        input=words[0], is_sparse=is_sparse, size=[dict_size, embedding_size],
        param_attr=fluid.ParamAttr(name='emb', initializer=fluid.initializer.Uniform(-init_width, init_width)))
    true_emb_w = fluid.layers.embedding(
        input=words[1], is_sparse=is_sparse, size=[dict_size, embedding_size],
        param_attr=fluid.ParamAttr(name='emb_w', initializer=fluid.initializer.Constant(value=0.0)))
    true_emb_b = fluid.layers.embedding(
        input=words[1], is_sparse=is_sparse, size=[dict_size, 1],
        param_attr=fluid.ParamAttr(name='emb_b', initializer=fluid.initializer.Constant(value=0.0)))
    neg_word_reshape = fluid.layers.reshape(words[2], shape=[-1, 1])
    neg_word_reshape.stop_gradient = True
    neg_emb_w = fluid.layers.embedding(
        input=neg_word_reshape, is_sparse=is_sparse, size=[dict_size, embedding_size], param_attr=fluid.ParamAttr(name='emb_w'))
    neg_emb_w = fluid.layers.reshape(neg_emb_w, shape=[-1, neg_num, embedding_size])
    neg_emb_b = fluid.layers.embedding(
        input=neg_word_reshape, is_sparse=is_sparse, size=[dict_size, 1], param_attr=fluid.ParamAttr(name='emb_b'))
    neg_emb_b_vec = fluid.layers.reshape(neg_emb_b, shape=[-1, neg_num])
    input_emb = fluid.layers.reshape(input_emb, shape=[-1, 1, embedding_size])
    true_emb_w = fluid.layers.reshape(true_emb_w, shape=[-1, embedding_size])
    true_logits = fluid.layers.elementwise_add(
        fluid.layers.reduce_sum(fluid.layers.elementwise_mul(
            fluid.layers.reshape(input_emb, shape=[-1, embedding_size]), true_emb_w), dim=1, keep_dim=True), true_emb_b)
    neg_matmul = fluid.layers.matmul(input_emb, neg_emb_w, transpose_y=True)
    neg_logits = fluid.layers.elementwise_add(fluid.layers.reshape(neg_matmul, shape=[-1, neg_num]), neg_emb_b_vec)
    label_ones = fluid.layers.fill_constant_batch_size_like(true_logits, shape=[-1, 1], value=1.0, dtype='float32')
    label_zeros = fluid.layers.fill_constant_batch_size_like(true_logits, shape=[-1, neg_num], value=0.0, dtype='float32')
    true_xent = fluid.layers.sigmoid_cross_entropy_with_logits(true_logits, label_ones)
    neg_xent = fluid.layers.sigmoid_cross_entropy_with_logits(neg_logits, label_zeros)
    cost = fluid.layers.elementwise_add(
        fluid.layers.reduce_sum(true_xent, dim=1), fluid.layers.reduce_sum(neg_xent, dim=1))
    return fluid.layers.reduce_mean(cost), py_reader


def infer_network(vocab_size, emb_size):
    analogy_a = fluid.data(name="analogy_a", shape=[None], dtype='int64')
    analogy_b = fluid.data(name="analogy_b", shape=[None], dtype='int64')
    all_label = fluid.data(name="all_label", shape=[vocab_size], dtype='int64')
    emb_all_label = fluid.embedding(input=all_label, size=[vocab_size, emb_size], param_attr="emb")
    emb_a = fluid.embedding(input=analogy_a, size=[vocab_size, emb_size], param_attr="emb")
    emb_b = fluid.embedding(input=analogy_b, size=[vocab_size, emb_size], param_attr="emb")
    target = fluid.layers.elementwise_add(emb_b, emb_a)
    emb_all_label_l2 = fluid.layers.l2_normalize(x=emb_all_label, axis=1)
    dist = fluid.layers.matmul(x=target, y=emb_all_label_l2, transpose_y=True)
    return fluid.layers.topk(input=dist, k=4)


def main():
    args = parse_args()
    word2vec_reader = Word2VecReader(args.nce_num)
    np.random.seed(0)
    loss, py_reader = skip_gram_word2vec(WORDS, SIZE, args.nce_num)
    optimizer = fluid.optimizer.SGD(
        learning_rate=fluid.layers.exponential_decay(learning_rate=args.base_lr, decay_steps=100000, decay_rate=0.999, staircase=True),
        regularization=None)
    optimizer.minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), place)
    py_reader.set_sample_generator(word2vec_reader.train(), batch_size=BATCH, drop_last=True, places=place)
    for pass_id in six.moves.range(args.num_passes):
        py_reader.start()
        batch_id = 0
        try:
            while True:
                loss_val = exe.run(fetch_list=[loss.name])
                if batch_id % args.print_batch == 0:
                    print("Pass: %d batch: %d loss: %.6f" % (pass_id, batch_id, np.mean(loss_val)))
                batch_id += 1
        except fluid.core.EOFException:
            py_reader.reset()
    infer_program = fluid.Program()
    with fluid.program_guard(infer_program, fluid.Program()):
        values, pred = infer_network(WORDS, SIZE)
    feed = {"analogy_a": np.array([1, 2, 3]), "analogy_b": np.array([4, 5, 6]), "all_label": np.arange(WORDS)}
    nearest, index = exe.run(infer_program, feed=feed, fetch_list=[values, pred])
    for row, at in zip(nearest, index):
        print("step nearest", at.tolist(), " ".join("%.5f" % v for v in row))


if __name__ == '__main__':
    main()
