"""Trains a recommender on users and films, saves it for inference, and serves it by an AnalysisConfig's predictor."""
from __future__ import print_function

import math
import os
import sys

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid import layers, nets
from paddle.fluid.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

from utility import set_parameters

IS_SPARSE, USERS, JOBS, FILMS, KINDS, TITLE = True, 12, 5, 15, 6, 20


def get_usr_combined_features():
    uid = layers.data(name='user_id', shape=[1], dtype='int64')
    usr_emb = layers.embedding(input=uid, dtype='float32', size=[USERS, 8], param_attr='user_table', is_sparse=IS_SPARSE)
    usr_fc = layers.fc(input=usr_emb, size=8)
    usr_job_id = layers.data(name='job_id', shape=[1], dtype='int64')
    usr_job_emb = layers.embedding(input=usr_job_id, size=[JOBS, 4], param_attr='job_table', is_sparse=IS_SPARSE)
    usr_job_fc = layers.fc(input=usr_job_emb, size=4)
    return layers.fc(input=layers.concat(input=[usr_fc, usr_job_fc], axis=1), size=10, act="tanh")


def get_mov_combined_features():
    mov_id = layers.data(name='movie_id', shape=[1], dtype='int64')
    mov_emb = layers.embedding(input=mov_id, dtype='float32', size=[FILMS, 8], param_attr='movie_table', is_sparse=IS_SPARSE)
    mov_fc = layers.fc(input=mov_emb, size=8)
    category_id = layers.data(name='category_id', shape=[1], dtype='int64', lod_level=1)
    mov_categories_emb = layers.embedding(input=category_id, size=[KINDS, 8], is_sparse=IS_SPARSE)
    mov_categories_hidden = layers.sequence_pool(input=mov_categories_emb, pool_type="sum")
    mov_title_id = layers.data(name='movie_title', shape=[1], dtype='int64', lod_level=1)
    mov_title_emb = layers.embedding(input=mov_title_id, size=[TITLE, 8], is_sparse=IS_SPARSE)
    mov_title_conv = nets.sequence_conv_pool(input=mov_title_emb, num_filters=8, filter_size=3, act="tanh", pool_type="sum")
    concat_embed = layers.concat(input=[mov_fc, mov_categories_hidden, mov_title_conv], axis=1)
    return layers.fc(input=concat_embed, size=10, act="tanh")


def inference_program():
    inference = layers.cos_sim(X=get_usr_combined_features(), Y=get_mov_combined_features())
    return layers.scale(x=inference, scale=5.0)


def train_program():
    scale_infer = inference_program()
    label = layers.data(name='score', shape=[1], dtype='float32')
    square_cost = layers.square_error_cost(input=scale_infer, label=label)
    return layers.mean(square_cost), scale_infer


def reader():
    rng = np.random.RandomState(8)
    for _ in range(12):
        yield (rng.randint(USERS), rng.randint(JOBS), rng.randint(FILMS), rng.randint(0, KINDS, rng.randint(1, 4)).tolist(),
               rng.randint(0, TITLE, rng.randint(1, 6)).tolist(), float(rng.randint(1, 6)))


def lod_tensor(array, lod):
    tensor = PaddleTensor(array)
    tensor.lod = lod
    return tensor


def main(params_dirname):
    place = fluid.CPUPlace()
    avg_cost, scale_infer = train_program()
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(learning_rate=0.2).minimize(avg_cost)
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    main_program = fluid.default_main_program()
    set_parameters(main_program, place)
    feed_order = ['user_id', 'job_id', 'movie_id', 'category_id', 'movie_title', 'score']
    feeder = fluid.DataFeeder([main_program.global_block().var(name) for name in feed_order], place)
    train_reader = paddle.batch(paddle.reader.shuffle(reader, buf_size=1), batch_size=4)
    for batch_id, data in enumerate(train_reader()):
        outs = exe.run(program=main_program, feed=feeder.feed(data), fetch_list=[avg_cost])
        print("step %d cost %.6f" % (batch_id, outs[0][0]))
        if math.isnan(float(outs[0][0])):
            sys.exit("got NaN loss, training failed.")
    test_costs = [exe.run(program=test_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0][0] for data in train_reader()]
    print("step test %.6f" % np.array(test_costs).mean())
    fluid.io.save_inference_model(params_dirname, feed_order[:-1], [scale_infer], exe, model_filename="model", params_filename="params")
    print("files", sorted(os.listdir(params_dirname)))

    config = AnalysisConfig(os.path.join(params_dirname, "model"), os.path.join(params_dirname, "params"))
    config.disable_gpu()
    config.switch_ir_optim(True)
    config.enable_memory_optim()
    predictor = create_paddle_predictor(config)
    inputs = [PaddleTensor(np.array([[v], [w]], 'int64')) for v, w in ((3, 4), (1, 2), (7, 9))]
    inputs += [lod_tensor(np.array([[1], [2], [5]], 'int64'), [[0, 2, 3]]), lod_tensor(np.array([[4], [9], [11], [0]], 'int64'), [[0, 3, 4]])]
    for tensor, name in zip(inputs, feed_order):
        tensor.name = name
    (out,) = predictor.run(inputs)
    print("step predicted", out.shape, " ".join("%.5f" % v for v in out.data.float_data()))

    inference_scope = fluid.core.Scope()
    with fluid.scope_guard(inference_scope):
        program, feed_names, targets = fluid.io.load_inference_model(params_dirname, exe, "model", "params")
        feed = {name: fluid.create_lod_tensor([v], [[len(v)]], place) if isinstance(v, list) else np.array([[v]])
                for name, v in zip(feed_names, (1, 2, 3, [0, 4], [3, 3, 8]))}
        (rating,) = exe.run(program, feed=feed, fetch_list=targets, return_numpy=False)
        print("step rating %.5f" % np.array(rating)[0, 0], feed_names)


if __name__ == '__main__':
    main(sys.argv[1])
