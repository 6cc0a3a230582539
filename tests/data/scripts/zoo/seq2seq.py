"""Trains a translator with attention from a DataLoader, then translates by beam search."""
from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.layers import RNNCell

from utility import set_parameters

WORDS, HIDDEN, BATCH, LENGTH = 12, 6, 3, 5
uniform = fluid.initializer.UniformInitializer(low=-0.1, high=0.1)


class DecoderCell(RNNCell):
    """An LSTM whose input is joined with what it attends to."""

    def __init__(self, hidden_size):
        self.cell = layers.LSTMCell(hidden_size, fluid.ParamAttr(name="dec_w"), fluid.ParamAttr(name="dec_b"))
        self.hidden_size = hidden_size

    def attention(self, hidden, encoder_output, mask):
        query = layers.unsqueeze(layers.fc(hidden, self.hidden_size, bias_attr=False, param_attr="query_w"), [1])
        score = layers.matmul(query, encoder_output, transpose_y=True)
        score = layers.elementwise_add(score, mask)
        return layers.squeeze(layers.matmul(layers.softmax(score), encoder_output), [1])

    def call(self, step_input, states, encoder_output, mask):
        lstm, attention = states
        out, lstm = self.cell(layers.concat([step_input, attention], 1), lstm)
        context = self.attention(out, encoder_output, mask)
        out = layers.fc(layers.concat([out, context], 1), self.hidden_size, act="tanh", bias_attr=False, param_attr="att_w")
        return out, [lstm, out]


def encoder(src, src_length):
    emb = fluid.embedding(src, (WORDS, HIDDEN), param_attr=fluid.ParamAttr(name="src_emb", initializer=uniform))
    cell = layers.LSTMCell(HIDDEN, fluid.ParamAttr(name="enc_w"), fluid.ParamAttr(name="enc_b"))
    out, state = layers.rnn(cell, emb, sequence_length=src_length)
    mask = layers.sequence_mask(src_length, maxlen=layers.shape(src)[1], dtype='float32')
    mask = layers.unsqueeze(layers.scale(mask, scale=1e9, bias=-1e9), [1])
    return out, state, mask


def target_embedder(ids):
    return fluid.embedding(ids, (WORDS, HIDDEN), param_attr=fluid.ParamAttr(name="trg_emb", initializer=uniform))


def output_layer(x):
    return layers.fc(x, WORDS, num_flatten_dims=len(x.shape) - 1, param_attr="out_w", bias_attr=False)


def start_states(out, state):
    return [state, layers.fill_constant_batch_size_like(out, [-1, HIDDEN], 'float32', 0.0)]


def reader():
    rng = np.random.RandomState(5)
    for _ in range(3):
        length = rng.randint(2, LENGTH + 1, BATCH).astype('int64')
        src = rng.randint(2, WORDS, (BATCH, LENGTH)).astype('int64')
        trg = np.concatenate([np.zeros((BATCH, 1), 'int64'), src[:, ::-1]], 1)
        yield src, length, trg[:, :-1], np.expand_dims(trg[:, 1:], 2), length


def main():
    main_program, startup, infer_program = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup), fluid.unique_name.guard():
        src = fluid.data(name="src", shape=[None, None], dtype="int64")
        src_length = fluid.data(name="src_sequence_length", shape=[None], dtype="int64")
        trg = fluid.data(name="trg", shape=[None, None], dtype="int64")
        label = fluid.data(name="label", shape=[None, None, 1], dtype="int64")
        trg_length = fluid.data(name="trg_sequence_length", shape=[None], dtype="int64")
        loader = fluid.io.DataLoader.from_generator(
            feed_list=[src, src_length, trg, label, trg_length], capacity=8, iterable=True, use_double_buffer=True)
        enc, state, mask = encoder(src, src_length)
        dec, _ = layers.rnn(DecoderCell(HIDDEN), target_embedder(trg), start_states(enc, state),
                            sequence_length=trg_length, encoder_output=enc, mask=mask)
        loss = layers.softmax_with_cross_entropy(logits=output_layer(dec), label=label, soft_label=False)
        loss = layers.unsqueeze(loss, axes=[2])
        real = layers.sequence_mask(trg_length, maxlen=layers.shape(trg)[1], dtype='float32')
        loss = layers.reduce_sum(layers.reduce_mean(layers.squeeze(loss, [2, 3]) * real, dim=[0]))
        fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=0.5))
        fluid.optimizer.Adam(learning_rate=layers.exponential_decay(0.05, 2, 0.5, staircase=True)).minimize(loss)
    with fluid.program_guard(infer_program, fluid.Program()), fluid.unique_name.guard():
        src = fluid.data(name="src", shape=[None, None], dtype="int64")
        src_length = fluid.data(name="src_sequence_length", shape=[None], dtype="int64")
        enc, state, mask = encoder(src, src_length)
        tile = layers.BeamSearchDecoder.tile_beam_merge_with_batch
        decoder = layers.BeamSearchDecoder(DecoderCell(HIDDEN), start_token=0, end_token=1, beam_size=2,
                                           embedding_fn=target_embedder, output_fn=output_layer)
        found, _ = layers.dynamic_decode(decoder, inits=start_states(enc, state), max_step_num=4,
                                         encoder_output=tile(enc, 2), mask=tile(mask, 2))

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    set_parameters(main_program, place, 2.0)
    loader.set_batch_generator(reader, places=place)
    for step, data in enumerate(loader()):
        print("step", step, "loss %.6f" % exe.run(main_program, feed=data, fetch_list=[loss.name])[0])
    batch = next(reader())
    ids = exe.run(infer_program, feed={"src": batch[0], "src_sequence_length": batch[1]}, fetch_list=[found.name])[0]
    print("beams", ids.shape, ids.ravel().tolist())


if __name__ == "__main__":
    main()
