"""Trains a small SSD from an iterable PyReader and evaluates it by DetectionMAP."""
from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid

from utility import set_parameters

IMAGE, CLASSES = [3, 32, 32], 3


def conv_bn(input, filter_size, num_filters, stride, padding):
    conv = fluid.layers.conv2d(input, num_filters, filter_size, stride, padding, bias_attr=False)
    return fluid.layers.batch_norm(conv, act='relu')


def reader():
    rng = np.random.RandomState(11)
    for i in range(6):
        boxes = []
        for _ in range(rng.randint(1, 4)):
            x, y = rng.uniform(0, 0.6, 2)
            w, h = rng.uniform(0.2, 0.4, 2)
            boxes.append([x, y, x + w, y + h])
        labels = rng.randint(1, CLASSES, len(boxes))
        image = rng.uniform(-1, 1, IMAGE).astype('float32')
        yield image, np.array(boxes, 'float32'), labels.astype('int32'), np.zeros(len(boxes), 'int32')


def build_program(main_prog, startup_prog, is_train):
    with fluid.program_guard(main_prog, startup_prog):
        image = fluid.layers.data(name='image', shape=IMAGE, dtype='float32')
        gt_box = fluid.layers.data(name='gt_box', shape=[4], dtype='float32', lod_level=1)
        gt_label = fluid.layers.data(name='gt_label', shape=[1], dtype='int32', lod_level=1)
        difficult = fluid.layers.data(name='gt_difficult', shape=[1], dtype='int32', lod_level=1)
        py_reader = fluid.io.PyReader(
            feed_list=[image, gt_box, gt_label, difficult], capacity=4, use_double_buffer=True, iterable=True)
        with fluid.unique_name.guard("detector"):
            tmp = conv_bn(image, 3, 8, 4, 1)
            last = conv_bn(tmp, 3, 8, 2, 1)
            locs, confs, box, box_var = fluid.layers.multi_box_head(
                inputs=[tmp, last], image=image, num_classes=CLASSES, min_ratio=20, max_ratio=90,
                min_sizes=[8.0, 16.0], max_sizes=[[], 24.0], aspect_ratios=[[2.], [2., 3.]], base_size=32,
                offset=0.5, flip=True)
        if is_train:
            with fluid.unique_name.guard("train"):
                loss = fluid.layers.reduce_sum(fluid.layers.ssd_loss(locs, confs, gt_box, gt_label, box, box_var))
                optimizer = fluid.optimizer.RMSProp(
                    learning_rate=fluid.layers.piecewise_decay([2], [0.001, 0.0005]),
                    regularization=fluid.regularizer.L2Decay(0.00005))
                optimizer.minimize(loss)
            return py_reader, loss
        with fluid.unique_name.guard("inference"):
            nmsed_out = fluid.layers.detection_output(locs, confs, box, box_var, nms_threshold=0.45)
            map_eval = fluid.metrics.DetectionMAP(
                nmsed_out, gt_label, gt_box, difficult, CLASSES, overlap_threshold=0.3, evaluate_difficult=False,
                ap_version='11point')
        return py_reader, nmsed_out, map_eval


def main():
    startup_prog, train_prog, test_prog = fluid.Program(), fluid.Program(), fluid.Program()
    train_reader, loss = build_program(train_prog, startup_prog, True)
    test_reader, nmsed_out, map_eval = build_program(test_prog, startup_prog, False)
    test_prog = test_prog.clone(for_test=True)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place, 2.0)
    train_reader.decorate_sample_list_generator(paddle.batch(reader, batch_size=2), places=place)
    test_reader.decorate_sample_list_generator(paddle.batch(reader, batch_size=3), places=place)
    for batch_id, data in enumerate(train_reader()):
        print("batch", batch_id, "loss %.6f" % exe.run(train_prog, feed=data, fetch_list=[loss])[0])
    cur_map, accum_map = map_eval.get_map_var()
    map_eval.reset(exe)
    for data in test_reader():
        out, current, accumulated = exe.run(test_prog, feed=data, fetch_list=[nmsed_out, cur_map, accum_map],
                                            return_numpy=False)
        rows = np.array(out)
        print("detections", rows.shape[0], out.recursive_sequence_lengths(), "%.4f" % rows[:, 1].max(),
              "mAP %.6f %.6f" % (np.array(current)[0], np.array(accumulated)[0]))


if __name__ == '__main__':
    main()
