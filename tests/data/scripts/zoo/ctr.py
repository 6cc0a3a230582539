"""Trains a click predictor from files by train_from_dataset, with a data generator as pipe command."""
from __future__ import print_function

import os
import sys

import numpy as np
import paddle.fluid as fluid

from utility import set_parameters

HERE = os.path.dirname(os.path.abspath(__file__))
SPARSE, DENSE, EMBED = 50, 3, 4


def write_files(folder, files=2, lines=6):
    rng, names = np.random.RandomState(3), []
    for i in range(files):
        names.append(os.path.join(folder, "part-%d" % i))
        with open(names[-1], "w") as f:
            for _ in range(lines):
                first = rng.randint(0, SPARSE, rng.randint(1, 4))
                second = rng.randint(0, SPARSE, 1)
                f.write("%d\t%s\t%s\t%s\n" % (
                    (first.sum() + second[0]) % 2, ",".join("%.3f" % x for x in rng.rand(DENSE)),
                    ",".join(map(str, first)), ",".join(map(str, second))))
    return names


def ctr_dnn_model():
    dense_input = fluid.layers.data(name="dense_input", shape=[DENSE], dtype='float32')
    sparse_input_ids = [
        fluid.layers.data(name="C" + str(i), shape=[1], lod_level=1, dtype='int64') for i in (1, 2)]
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')

    def embedding_layer(input):
        emb = fluid.layers.embedding(
            input=input, is_sparse=True, size=[SPARSE, EMBED],
            param_attr=fluid.ParamAttr(name="SparseFeatFactors", initializer=fluid.initializer.Uniform()))
        return fluid.layers.sequence_pool(input=emb, pool_type='average')

    concated = fluid.layers.concat(list(map(embedding_layer, sparse_input_ids)) + [dense_input], axis=1)
    fc1 = fluid.layers.fc(input=concated, size=8, act='relu', param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Normal(scale=1 / np.sqrt(11))))
    predict = fluid.layers.fc(input=fc1, size=2, act='softmax')
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.reduce_sum(cost)
    accuracy = fluid.layers.accuracy(input=predict, label=label)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(
        input=predict, label=label, num_thresholds=2 ** 12, slide_steps=20)
    return avg_cost, auc_var, batch_auc_var, [dense_input] + sparse_input_ids + [label], auc_states


def main(folder):
    avg_cost, auc_var, batch_auc_var, inputs, auc_states = ctr_dnn_model()
    optimizer = fluid.optimizer.Adam(learning_rate=1e-2, lazy_mode=True)
    optimizer.minimize(avg_cost)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), place)

    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_use_var(inputs)
    dataset.set_pipe_command("%s %s" % (os.environ.get("PIPE_PYTHON", "python"), os.path.join(HERE, "ctr_reader.py")))
    dataset.set_batch_size(4)
    dataset.set_filelist(write_files(folder))
    dataset.set_thread(1)
    for i in range(2):
        exe.train_from_dataset(
            program=fluid.default_main_program(), dataset=dataset, fetch_list=[avg_cost, auc_var],
            fetch_info=["cost", "auc"], print_period=1, debug=False)
        fluid.io.save_persistables(executor=exe, dirname=os.path.join(folder, "epoch_%d" % i))
    table = np.array(fluid.global_scope().find_var("SparseFeatFactors").get_tensor())
    print("table", "%.6f %.6f" % (np.abs(table).sum(), (table ** 2).sum()))
    print("files", len(os.listdir(os.path.join(folder, "epoch_1"))))


if __name__ == '__main__':
    main(sys.argv[1])
