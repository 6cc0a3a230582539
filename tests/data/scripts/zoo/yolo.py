"""Trains a small YOLOv3 head on two scales, with a linear warm-up, then finds boxes by yolo_box and multiclass_nms."""
from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.initializer import Constant
from paddle.fluid.param_attr import ParamAttr
from paddle.fluid.regularizer import L2Decay

from utility import set_parameters

CLASSES, SIZE, BOXES = 3, 64, 4
ANCHORS = [5, 6, 10, 12, 16, 20, 24, 30, 40, 32, 50, 56]
MASKS = [[3, 4, 5], [0, 1, 2]]


def conv_bn_layer(input, ch_out, filter_size, stride, padding, name, act='leaky'):
    conv1 = fluid.layers.conv2d(
        input=input, num_filters=ch_out, filter_size=filter_size, stride=stride, padding=padding, act=None,
        param_attr=ParamAttr(initializer=fluid.initializer.Normal(0., 0.02), name=name + ".conv.weights"), bias_attr=False)
    bn_name = name + ".bn"
    out = fluid.layers.batch_norm(
        input=conv1, act=None, is_test=False, momentum=0.9,
        param_attr=ParamAttr(initializer=fluid.initializer.Normal(0., 0.02), regularizer=L2Decay(0.), name=bn_name + '.scale'),
        bias_attr=ParamAttr(initializer=Constant(0.0), regularizer=L2Decay(0.), name=bn_name + '.offset'),
        moving_mean_name=bn_name + '.mean', moving_variance_name=bn_name + '.var')
    return fluid.layers.leaky_relu(x=out, alpha=0.1) if act == 'leaky' else out


def upsample(input, scale=2, name=None):
    shape_nchw = fluid.layers.shape(input)
    shape_hw = fluid.layers.slice(shape_nchw, axes=[0], starts=[2], ends=[4])
    shape_hw.stop_gradient = True
    in_shape = fluid.layers.cast(shape_hw, dtype='int32')
    out_shape = in_shape * scale
    out_shape.stop_gradient = True
    return fluid.layers.resize_nearest(input=input, scale=scale, actual_shape=out_shape, name=name)


class YOLOv3(object):
    def __init__(self, is_train=True):
        self.is_train = is_train
        self.losses, self.boxes, self.scores = [], [], []
        self.downsample = 16

    def build_input(self):
        self.image = fluid.data(name='image', shape=[None, 3, SIZE, SIZE], dtype='float32')
        if self.is_train:
            self.gtbox = fluid.data(name='gtbox', shape=[None, BOXES, 4], dtype='float32')
            self.gtlabel = fluid.data(name='gtlabel', shape=[None, BOXES], dtype='int32')
            self.gtscore = fluid.data(name='gtscore', shape=[None, BOXES], dtype='float32')
            self.py_reader = fluid.io.DataLoader.from_generator(
                feed_list=[self.image, self.gtbox, self.gtlabel, self.gtscore], capacity=8, use_double_buffer=True, iterable=True)
        else:
            self.im_shape = fluid.data(name="im_shape", shape=[None, 2], dtype='int32')
            self.im_id = fluid.data(name="im_id", shape=[None, 1], dtype='int32')

    def build_model(self):
        self.build_input()
        blocks, out = [], self.image
        for i, channels in enumerate([8, 8, 12, 12]):
            out = conv_bn_layer(out, channels, 3, 2, 1, "stage.%d" % i)
            blocks.append(out)
        route = None
        for i, block in enumerate(blocks[:-3:-1]):
            if i > 0:
                block = fluid.layers.concat(input=[route, block], axis=1)
            tip = conv_bn_layer(block, 12, 3, 1, 1, "yolo_block.%d.tip" % i)
            block_out = fluid.layers.conv2d(
                input=tip, num_filters=len(MASKS[i]) * (CLASSES + 5), filter_size=1, stride=1, padding=0, act=None,
                param_attr=ParamAttr(name="yolo_output.%d.conv.weights" % i),
                bias_attr=ParamAttr(regularizer=L2Decay(0.), name="yolo_output.%d.conv.bias" % i))
            mask_anchors = []
            for m in MASKS[i]:
                mask_anchors += ANCHORS[2 * m:2 * m + 2]
            if self.is_train:
                loss = fluid.layers.yolov3_loss(
                    x=block_out, gt_box=self.gtbox, gt_label=self.gtlabel, gt_score=self.gtscore, anchors=ANCHORS,
                    anchor_mask=MASKS[i], class_num=CLASSES, ignore_thresh=0.7, downsample_ratio=self.downsample,
                    use_label_smooth=True, name="yolo_loss%d" % i)
                self.losses.append(fluid.layers.reduce_mean(loss))
            else:
                boxes, scores = fluid.layers.yolo_box(
                    x=block_out, img_size=self.im_shape, anchors=mask_anchors, class_num=CLASSES, conf_thresh=0.005,
                    downsample_ratio=self.downsample, name="yolo_box%d" % i)
                self.boxes.append(boxes)
                self.scores.append(fluid.layers.transpose(scores, perm=[0, 2, 1]))
            route = upsample(conv_bn_layer(tip, 8, 1, 1, 0, "yolo_transition.%d" % i))
            self.downsample //= 2

    def loss(self):
        return sum(self.losses)

    def get_pred(self):
        return fluid.layers.multiclass_nms(
            bboxes=fluid.layers.concat(self.boxes, axis=1), scores=fluid.layers.concat(self.scores, axis=2), score_threshold=0.01,
            nms_top_k=20, keep_top_k=8, nms_threshold=0.45, background_label=-1, name="multiclass_nms")


def reader():
    rng = np.random.RandomState(21)
    for _ in range(3):
        image = rng.uniform(-1, 1, (2, 3, SIZE, SIZE)).astype('float32')
        box = np.concatenate([rng.uniform(0.2, 0.8, (2, BOXES, 2)), rng.uniform(0.1, 0.5, (2, BOXES, 2))], 2).astype('float32')
        box[1, 3] = 0
        yield image, box, rng.randint(0, CLASSES, (2, BOXES)).astype('int32'), np.ones((2, BOXES), 'float32')


def learning_rate():
    values = [0.01, 0.001]
    lr = fluid.layers.piecewise_decay(boundaries=[2], values=values)
    return fluid.layers.linear_lr_warmup(learning_rate=lr, warmup_steps=2, start_lr=0.0, end_lr=0.01)


def main():
    train_prog, startup_prog, test_prog = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(train_prog, startup_prog), fluid.unique_name.guard():
        model = YOLOv3()
        model.build_model()
        loss = model.loss()
        loss.persistable = True
        lr = learning_rate()
        optimizer = fluid.optimizer.Momentum(learning_rate=lr, regularization=fluid.regularizer.L2Decay(0.0005), momentum=0.9)
        optimizer.minimize(loss)
    with fluid.program_guard(test_prog, fluid.Program()), fluid.unique_name.guard():
        tester = YOLOv3(is_train=False)
        tester.build_model()
        outputs = tester.get_pred()
    test_prog = test_prog.clone(for_test=True)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place)
    model.py_reader.set_batch_generator(reader, places=place)
    for iter_id, data in enumerate(model.py_reader()):
        losses, rate = exe.run(train_prog, feed=data, fetch_list=[loss.name, lr.name])
        print("step %d, lr %.6f, loss %.4f" % (iter_id, rate[0], np.mean(losses)))
    image = next(reader())[0]
    (out,) = exe.run(
        test_prog, feed={"image": image, "im_shape": np.array([[64, 64], [48, 60]], 'int32'), "im_id": np.array([[0], [1]], 'int32')},
        fetch_list=[outputs], return_numpy=False)
    rows = np.array(out)
    print("detections", out.lod(), rows.shape, " ".join("%.3f" % v for v in np.abs(rows).sum(0)))


if __name__ == '__main__':
    main()
