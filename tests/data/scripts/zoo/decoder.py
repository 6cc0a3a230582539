"""contrib.decoder's TrainingDecoder and BeamSearchDecoder, EMA, ModelAverage, Lookahead, fluid.save, PrintOp, py_func."""
from __future__ import print_function
import contextlib
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.contrib.decoder.beam_search_decoder import *
from utility import set_parameters

dict_size, word_dim, hidden_dim, max_length, beam_size = 15, 4, 6, 4, 2


def encoder():
    src_word = layers.data(name="src_word", shape=[1], dtype='int64', lod_level=1)
    src_embedding = layers.embedding(input=src_word, size=[dict_size, word_dim], dtype='float32', is_sparse=True, param_attr='src_emb')
    fc1 = layers.fc(input=src_embedding, size=hidden_dim * 4, act='tanh')
    lstm_hidden0, lstm_0 = layers.dynamic_lstm(input=fc1, size=hidden_dim * 4)
    return layers.sequence_last_step(input=lstm_hidden0)


def decoder_state_cell(context):
    h = InitState(init=context, need_reorder=True)
    state_cell = StateCell(inputs={'x': None}, states={'h': h}, out_state='h')

    @state_cell.state_updater
    def updater(state_cell):
        current_word = state_cell.get_input('x')
        prev_h = state_cell.get_state('h')
        h = layers.fc(input=[prev_h, current_word], size=hidden_dim, act='tanh')
        state_cell.set_state('h', h)
    return state_cell


def decoder_train(state_cell):
    trg = layers.data(name="trg_word", shape=[1], dtype='int64', lod_level=1)
    emb = layers.embedding(input=trg, size=[dict_size, word_dim], dtype='float32', is_sparse=True, param_attr='trg_emb')
    decoder = TrainingDecoder(state_cell)
    with decoder.block():
        current_word = decoder.step_input(emb)
        decoder.state_cell.compute_state(inputs={'x': current_word})
        current_score = layers.fc(input=decoder.state_cell.get_state('h'), size=dict_size, act='softmax')
        decoder.state_cell.update_states()
        decoder.output(current_score)
    return decoder()


def decoder_decode(state_cell):
    init_ids = layers.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
    init_scores = layers.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
    decoder = BeamSearchDecoder(state_cell=state_cell, init_ids=init_ids, init_scores=init_scores, target_dict_dim=dict_size,
                                word_dim=word_dim, input_var_dict={}, topk_size=6, sparse_emb=True, max_len=max_length,
                                beam_size=beam_size, end_id=1, name=None)
    decoder.decode()
    return decoder()


def lod(rows, dtype='int64'):
    return fluid.create_lod_tensor(np.concatenate(rows).reshape(-1, 1).astype(dtype), [[len(r) for r in rows]], fluid.CPUPlace())


rng = np.random.RandomState(5)
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    rnn_out = decoder_train(decoder_state_cell(encoder()))
    label = layers.data(name="next", shape=[1], dtype='int64', lod_level=1)
    loss = layers.mean(layers.cross_entropy(input=rnn_out, label=label))
    optimizer = fluid.optimizer.Adam(learning_rate=0.02)
    optimizer.minimize(loss)
    ema = fluid.optimizer.ExponentialMovingAverage(0.9)
    ema.update()
    avg = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=4)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
set_parameters(main, fluid.CPUPlace(), 1.5)
test = main.clone(for_test=True)
for i in range(5):
    src = [rng.randint(0, dict_size, n) for n in (3, 2)]
    trg = [rng.randint(0, dict_size, n) for n in (2, 4)]
    feed = {'src_word': lod(src), 'trg_word': lod(trg), 'next': lod([np.roll(t, -1) for t in trg])}
    print('step', i, exe.run(main, feed=feed, fetch_list=[loss]))
name = sorted(p.name for p in main.all_parameters())[0]
value = lambda: float(np.abs(np.array(fluid.global_scope().find_var(name).get_tensor())).sum())
print(name, '%.6f' % value())
with ema.apply(exe):
    print('step ema %.6f' % value(), exe.run(test, feed=feed, fetch_list=[loss])[0])
with avg.apply(exe, need_restore=False):
    print('step average %.6f' % value())
print('step', '%.6f' % value())
avg.restore(exe)
print('step', '%.6f' % value())
infer = fluid.Program()
with fluid.program_guard(infer, fluid.Program()), fluid.unique_name.guard():
    ids, scores = decoder_decode(decoder_state_cell(encoder()))
init = [[1] * 2, [1] * 2]
for p in infer.all_parameters():
    if fluid.global_scope().find_var(p.name) is None:
        print('new', p.name, p.shape)
        fluid.global_scope().var(p.name).get_tensor().set(rng.uniform(-1, 1, p.shape).astype('float32'), fluid.CPUPlace())
print(sorted(p.name for p in infer.all_parameters()))
feed = {'src_word': lod(src), 'init_ids': fluid.create_lod_tensor(np.zeros((2, 1), 'int64'), init, fluid.CPUPlace()),
        'init_scores': fluid.create_lod_tensor(np.zeros((2, 1), 'float32'), init, fluid.CPUPlace())}
i, s = exe.run(infer, feed=feed, fetch_list=[ids, scores], return_numpy=False)
print('beams', i.lod(), np.array(i).reshape(-1).tolist())
print('beams', ' '.join('%.6f' % v for v in np.array(s).reshape(-1)))
