"""Trains the click predictor on several workers, each with its own files, and parameter servers, by a fleet."""
from __future__ import print_function

import argparse
import os

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

from ctr import DENSE, EMBED, HERE, SPARSE, write_files


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder', type=str, help="where samples and models are kept")
    parser.add_argument('--is_local', type=int, default=0, help="train in this process alone")
    parser.add_argument('--sync_mode', type=str, default='sync', help="sync, half_async, async or geo")
    return parser.parse_args()


def attr(name, *shape):
    """First values that do not depend on where a parameter lives."""
    values = np.random.RandomState(len(name)).uniform(-1, 1, shape) * np.sqrt(3.0 / shape[0])
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.NumpyArrayInitializer(values.astype('float32')))


def ctr_dnn_model():
    dense_input = fluid.layers.data(name="dense_input", shape=[DENSE], dtype='float32')
    sparse_input_ids = [
        fluid.layers.data(name="C" + str(i), shape=[1], lod_level=1, dtype='int64') for i in (1, 2)]
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    table = attr("SparseFeatFactors", SPARSE, EMBED)

    def embedding_layer(input):
        emb = fluid.layers.embedding(input=input, is_sparse=True, is_distributed=False, size=[SPARSE, EMBED], param_attr=table)
        return fluid.layers.sequence_pool(input=emb, pool_type='average')

    concated = fluid.layers.concat(list(map(embedding_layer, sparse_input_ids)) + [dense_input], axis=1)
    fc1 = fluid.layers.fc(input=concated, size=8, act='relu', param_attr=attr("fc1_w", 2 * EMBED + DENSE, 8))
    predict = fluid.layers.fc(input=fc1, size=2, act='softmax', param_attr=attr("predict_w", 8, 2))
    avg_cost = fluid.layers.reduce_mean(fluid.layers.cross_entropy(input=predict, label=label))
    auc_var, _, _ = fluid.layers.auc(input=predict, label=label, num_thresholds=2 ** 12, slide_steps=20)
    return avg_cost, auc_var, [dense_input] + sparse_input_ids + [label]


def get_dataset(inputs, files):
    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_use_var(inputs)
    dataset.set_pipe_command("%s %s" % (os.environ.get("PIPE_PYTHON", "python"), os.path.join(HERE, "ctr_reader.py")))
    dataset.set_batch_size(4)
    dataset.set_filelist(files)
    dataset.set_thread(1)
    return dataset


def main():
    args = parse_args()
    avg_cost, auc_var, inputs = ctr_dnn_model()
    optimizer = fluid.optimizer.Adam(learning_rate=1e-2, lazy_mode=True)
    exe = fluid.Executor(fluid.CPUPlace())
    if args.is_local:
        optimizer.minimize(avg_cost)
    else:
        fleet.init(role_maker.PaddleCloudRoleMaker())
        strategy = getattr(StrategyFactory, "create_%s_strategy" % args.sync_mode)()
        fleet.distributed_optimizer(optimizer, strategy).minimize(avg_cost)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            return
        fleet.init_worker()
    main_program = fluid.default_main_program() if args.is_local else fleet.main_program
    exe.run(fluid.default_startup_program() if args.is_local else fleet.startup_program)
    worker, first = (0, True) if args.is_local else (fleet.worker_index(), fleet.is_first_worker())

    folder = os.path.join(args.folder, "data_%d" % worker)
    os.makedirs(folder)
    files = write_files(folder)
    dataset = get_dataset(inputs, files if args.is_local else files[worker::fleet.worker_num()])
    for epoch in range(2):
        exe.train_from_dataset(program=main_program, dataset=dataset, fetch_list=[avg_cost, auc_var],
                               fetch_info=["cost", "auc"], print_period=1, debug=False)
        if first:
            model_dir = os.path.join(args.folder, "epoch_%d" % epoch)
            (fluid.io if args.is_local else fleet).save_persistables(exe, model_dir, main_program)
            print("files", " ".join(sorted(n for n in os.listdir(model_dir) if "." not in n)))
    weights = [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("fc1_w", "predict_w")]
    print("table %.5f %.5f" % tuple(np.abs(w).sum() for w in weights))
    if not args.is_local:
        fleet.stop_worker()


if __name__ == '__main__':
    main()
