"""DeepFM on Criteo-like slots: train_from_dataset with a pipe command, InMemoryDataset, infer_from_dataset, AUC by the states."""
from __future__ import print_function
import argparse
import logging
import math
import os
import sys
import time
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.data_generator as dg


logging.basicConfig(format='%(asctime)s - %(levelname)s - %(message)s')
logger = logging.getLogger("fluid")
logger.setLevel(logging.INFO)
FIELDS, FEATS, K = 6, 60, 3


class CriteoDataset(dg.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def wd_iter():
            cols = line.rstrip('\n').split('\t')
            label = int(cols[0])
            ids = [int(c) for c in cols[1].split(' ')]
            vals = [float(c) for c in cols[2].split(' ')]
            yield ('feat_index', ids), ('feat_value', vals), ('label', [label])
        return wd_iter


def data_files(folder):
    rng = np.random.RandomState(11)
    names = []
    for i in range(3):
        name = os.path.join(folder, 'part-%03d' % i)
        with open(name, 'w') as f:
            for _ in range(10):
                ids = rng.randint(0, FEATS, FIELDS)
                vals = rng.rand(FIELDS).round(4)
                f.write('%d\t%s\t%s\n' % (ids[0] % 2, ' '.join(map(str, ids)), ' '.join('%.4f' % v for v in vals)))
        names.append(name)
    return names


def ctr_deepfm_model(embedding_size, num_field, num_feat, layer_sizes, act, reg):
    init_value_ = 0.1
    raw_feat_idx = fluid.layers.data(name='feat_index', shape=[num_field], dtype='int64')
    raw_feat_value = fluid.layers.data(name='feat_value', shape=[num_field], dtype='float32')
    label = fluid.layers.data(name='label', shape=[1], dtype='float32')
    feat_idx = fluid.layers.reshape(raw_feat_idx, [-1, 1])
    feat_value = fluid.layers.reshape(raw_feat_value, [-1, num_field, 1])
    first_weights_re = fluid.layers.embedding(
        input=feat_idx, is_sparse=True, is_distributed=False, dtype='float32', size=[num_feat + 1, 1], padding_idx=0,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=init_value_),
                                   regularizer=fluid.regularizer.L1DecayRegularizer(reg)))
    first_weights = fluid.layers.reshape(first_weights_re, shape=[-1, num_field, 1])
    y_first_order = fluid.layers.reduce_sum((first_weights * feat_value), 1)
    feat_embeddings_re = fluid.layers.embedding(
        input=feat_idx, is_sparse=True, dtype='float32', size=[num_feat + 1, embedding_size], padding_idx=0,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(
            loc=0.0, scale=init_value_ / math.sqrt(float(embedding_size)))))
    feat_embeddings = fluid.layers.reshape(feat_embeddings_re, shape=[-1, num_field, embedding_size])
    feat_embeddings = feat_embeddings * feat_value
    summed = fluid.layers.reduce_sum(feat_embeddings, 1)
    squared_sum = fluid.layers.reduce_sum(feat_embeddings * feat_embeddings, 1)
    y_second_order = 0.5 * fluid.layers.reduce_sum(summed * summed - squared_sum, 1, keep_dim=True)
    y_dnn = fluid.layers.reshape(feat_embeddings, [-1, num_field * embedding_size])
    for s in layer_sizes:
        y_dnn = fluid.layers.fc(
            input=y_dnn, size=s, act=act,
            param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=0.1)),
            bias_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=init_value_)))
    y_dnn = fluid.layers.fc(input=y_dnn, size=1, act=None)
    predict = fluid.layers.sigmoid(y_first_order + y_second_order + y_dnn)
    cost = fluid.layers.log_loss(input=predict, label=label)
    batch_cost = fluid.layers.reduce_sum(cost)
    predict_2d = fluid.layers.concat([1 - predict, predict], 1)
    label_int = fluid.layers.cast(label, 'int64')
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=predict_2d, label=label_int, slide_steps=0, num_thresholds=1024)
    return batch_cost, auc_var, [raw_feat_idx, raw_feat_value, label], auc_states


def set_zero(var_name, scope=fluid.global_scope(), place=fluid.CPUPlace(), param_type="int64"):
    param = scope.var(var_name).get_tensor()
    param_array = np.zeros(param._get_dims()).astype(param_type)
    param.set(param_array, place)


def make_dataset(kind, variables, files):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_pipe_command('{} {} pipe'.format(os.environ['PIPE_PYTHON'], os.path.abspath(__file__)))
    dataset.set_batch_size(8)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    return dataset


def train(folder):
    from utility import set_parameters
    loss, auc, data_list, auc_states = ctr_deepfm_model(K, FIELDS, FEATS, [8, 8], 'relu', 1e-4)
    optimizer = fluid.optimizer.SGD(learning_rate=0.05, regularization=fluid.regularizer.L2DecayRegularizer(1e-4))
    optimizer.minimize(loss)
    print([v.name for v in data_list], [len(s) if isinstance(s, (list, tuple)) else s.shape for s in auc_states])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), fluid.CPUPlace())
    files = data_files(folder)
    dataset = make_dataset('QueueDataset', data_list, files[:2])
    logger.info("begin")
    for epoch_id in range(2):
        start = time.time()
        exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset, fetch_list=[loss, auc],
                               fetch_info=['epoch %d batch loss' % (epoch_id + 1), "auc"], print_period=1, debug=False)
        model_dir = 'model/epoch_' + str(epoch_id + 1)
        sys.stderr.write('epoch%d is finished and takes %f s\n' % (epoch_id + 1, time.time() - start))
        main_program = fluid.default_main_program()
        fluid.io.save(main_program, model_dir)
        for s in auc_states:
            set_zero(s.name)
    table = np.array(fluid.global_scope().find_var('embedding_1.w_0').get_tensor())
    print("table %.6f %.6f" % (np.abs(table).sum(), (table * np.arange(table.size).reshape(table.shape)).sum()))
    memory = make_dataset('InMemoryDataset', data_list, files)
    memory.load_into_memory()
    print("step memory", memory.get_memory_data_size(), memory.get_shuffle_data_size())
    test_program = fluid.default_main_program().clone(for_test=True)
    state = fluid.io.load_program_state('model/epoch_2')
    print("saved state", len(state), sorted(state)[:4])
    fluid.set_program_state(test_program, state)
    exe.infer_from_dataset(program=test_program, dataset=memory, fetch_list=[loss, auc], fetch_info=["test loss", "auc"], print_period=2)
    memory.release_memory()
    print(sorted(os.listdir('model')))


if __name__ == '__main__':
    if sys.argv[1:] == ['pipe']:
        CriteoDataset().run_from_stdin()
    else:
        train('.')
