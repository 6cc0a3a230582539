"""Label semantic roles: eight lstms, CRF, chunk evaluation, an embedding loaded from a file, LambdaRank-like learning rates by parameter."""
from __future__ import print_function
import math
import os
import sys
import time
import numpy as np
import paddle
import paddle.fluid as fluid
from utility import set_parameters

word_dict_len, label_dict_len, pred_dict_len, mark_dict_len = 30, 7, 5, 2
word_dim = 6
mark_dim = 3
hidden_dim = 16
depth = 4
mix_hidden_lr = 1e-3
embedding_name = 'emb'
BATCH_SIZE = 3


def load_parameter(file_name, h, w):
    with open(file_name, 'rb') as f:
        f.read(16)
        return np.fromfile(f, dtype=np.float32).reshape(h, w)


def db_lstm(word, predicate, ctx_n1, ctx_0, ctx_p1, mark, **ignored):
    predicate_embedding = fluid.layers.embedding(input=predicate, size=[pred_dict_len, word_dim], dtype='float32', is_sparse=True, param_attr='vemb')
    mark_embedding = fluid.layers.embedding(input=mark, size=[mark_dict_len, mark_dim], dtype='float32', is_sparse=True)
    word_input = [word, ctx_n1, ctx_0, ctx_p1]
    emb_layers = [fluid.layers.embedding(size=[word_dict_len, word_dim], input=x, param_attr=fluid.ParamAttr(name=embedding_name, trainable=False))
                  for x in word_input]
    emb_layers.append(predicate_embedding)
    emb_layers.append(mark_embedding)
    hidden_0_layers = [fluid.layers.fc(input=emb, size=hidden_dim, act='tanh') for emb in emb_layers]
    hidden_0 = fluid.layers.sums(input=hidden_0_layers)
    lstm_0 = fluid.layers.dynamic_lstm(input=hidden_0, size=hidden_dim, candidate_activation='relu', gate_activation='sigmoid', cell_activation='sigmoid')
    input_tmp = [hidden_0, lstm_0[0]]
    for i in range(1, depth):
        mix_hidden = fluid.layers.sums(input=[
            fluid.layers.fc(input=input_tmp[0], size=hidden_dim, act='tanh'), fluid.layers.fc(input=input_tmp[1], size=hidden_dim, act='tanh')])
        lstm, _ = fluid.layers.dynamic_lstm(
            input=mix_hidden, size=hidden_dim, candidate_activation='relu', gate_activation='sigmoid', cell_activation='sigmoid',
            is_reverse=((i % 2) == 1))
        input_tmp = [mix_hidden, lstm]
    return fluid.layers.sums(input=[
        fluid.layers.fc(input=input_tmp[0], size=label_dict_len, act='tanh'), fluid.layers.fc(input=input_tmp[1], size=label_dict_len, act='tanh')])


def reader():
    rng = np.random.RandomState(8)
    for _ in range(9):
        n = rng.randint(2, 6)
        ids = lambda high: rng.randint(0, high, n).tolist()
        yield ids(word_dict_len), ids(word_dict_len), ids(word_dict_len), ids(word_dict_len), ids(pred_dict_len), ids(mark_dict_len), ids(label_dict_len)


def train(save_dirname=None):
    names = ['word_data', 'ctx_n1_data', 'ctx_0_data', 'ctx_p1_data', 'verb_data', 'mark_data', 'target']
    word, ctx_n1, ctx_0, ctx_p1, predicate, mark, target = [
        fluid.layers.data(name=n, shape=[1], dtype='int64', lod_level=1) for n in names]
    feature_out = db_lstm(**locals())
    crf_cost = fluid.layers.linear_chain_crf(input=feature_out, label=target, param_attr=fluid.ParamAttr(name='crfw', learning_rate=mix_hidden_lr))
    avg_cost = fluid.layers.mean(crf_cost)
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(learning_rate=0.01, decay_steps=2, decay_rate=0.5, staircase=True))
    sgd_optimizer.minimize(avg_cost)
    crf_decode = fluid.layers.crf_decoding(input=feature_out, param_attr=fluid.ParamAttr(name='crfw'))
    (precision, recall, f1, n_infer, n_label, n_correct) = fluid.layers.chunk_eval(
        input=crf_decode, label=target, chunk_scheme="IOB", num_chunk_types=int(math.ceil((label_dict_len - 1) / 2.0)))
    evaluator = fluid.metrics.ChunkEvaluator()
    place = fluid.CPUPlace()
    feeder = fluid.DataFeeder(feed_list=[word, ctx_n1, ctx_0, ctx_p1, predicate, mark, target], place=place)
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), place)
    table = np.random.RandomState(3).rand(word_dict_len, word_dim).astype('float32')
    with open('emb.bin', 'wb') as f:
        f.write(b'\0' * 16)
        table.tofile(f)
    embedding_param = fluid.global_scope().find_var(embedding_name).get_tensor()
    embedding_param.set(load_parameter('emb.bin', word_dict_len, word_dim), place)
    main_program = fluid.default_main_program()
    train_data = paddle.batch(paddle.reader.shuffle(reader, buf_size=1), batch_size=BATCH_SIZE)
    for pass_id in range(2):
        evaluator.reset()
        for batch_id, data in enumerate(train_data()):
            cost, p, r, f, a, b, c = exe.run(main_program, feed=feeder.feed(data), fetch_list=[avg_cost, precision, recall, f1, n_infer, n_label, n_correct])
            evaluator.update(a, b, c)
            cost = cost[0]
            print("step avg_cost: %.5f precision %s recall %s %s chunks %s %s %s" % (cost, p, r, f, a, b, c))
        print("step pass %d" % pass_id, evaluator.eval())
    fluid.io.save_inference_model(save_dirname, names[:-1], [feature_out, crf_decode], exe)
    print("saved", len(os.listdir(save_dirname)))
    with fluid.scope_guard(fluid.core.Scope()):
        [inference_program, feed_target_names, fetch_targets] = fluid.io.load_inference_model(save_dirname, exe)
        lod = [[3, 4, 2]]
        base_shape = [1]
        rng = np.random.RandomState(0)
        feed = {}
        for n, high in zip(feed_target_names, [30, 30, 30, 30, 5, 2]):
            feed[n] = fluid.create_lod_tensor(rng.randint(0, high, (9, 1)).astype('int64'), lod, place)
        results = exe.run(inference_program, feed=feed, fetch_list=fetch_targets, return_numpy=False)
        print("step results", results[0].lod(), np.array(results[0]).sum(), results[1].lod(), np.array(results[1]).reshape(-1))


if __name__ == '__main__':
    train('srl.model')
