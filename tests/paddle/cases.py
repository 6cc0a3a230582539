"""Calls of Paddle 2's functions and layers, as expressions; recorded from Paddle 2.6.2 by tests/tools/record_paddle2.py.

Names in an expression: ``paddle``, ``F`` (paddle.nn.functional), ``nn`` (paddle.nn), ``np``; ``f(2, 3)`` is new float32 data
of that shape, some of it negative; ``p(2, 3)`` lies between 0.1 and 0.9; ``i(2, n=3)`` is int64 below 3, ``i32`` int32, ``b`` bool.
Everything runs in one static program. Importable on Python 3.8 with nothing but NumPy.
"""
# ruff: noqa: UP031

import numpy as np

FUNCTIONS = {
    # activations
    "F.elu_": "F.elu_(f(2, 3), 0.5)",
    "F.relu_": "F.relu_(f(2, 3))",
    "F.softmax_": "F.softmax_(f(2, 3), axis=0)",
    "F.hardsigmoid": "F.hardsigmoid(paddle.scale(f(2, 3), 4.0))",
    "F.hardtanh": "F.hardtanh(f(2, 3), -0.5, 0.25)",
    "F.silu": "F.silu(f(2, 3))",
    "F.mish": "F.mish(f(2, 3))",
    "F.prelu": "F.prelu(f(2, 3, 2), p(1))",
    "F.prelu channels": "F.prelu(f(2, 3, 2), p(3))",
    "F.softplus": "F.softplus(f(2, 3))",
    "F.softplus beta": "F.softplus(f(2, 3), beta=2, threshold=1)",
    "F.gelu": "F.gelu(f(2, 3), True)",
    "F.hardshrink": "F.hardshrink(f(2, 3))",
    "F.hardswish": "F.hardswish(paddle.scale(f(2, 3), 4.0))",
    "F.leaky_relu": "F.leaky_relu(f(2, 3))",
    "F.log_sigmoid": "F.log_sigmoid(f(2, 3))",
    "F.log_softmax": "F.log_softmax(f(2, 3))",
    "F.maxout": "F.maxout(f(2, 4, 2, 2), 2)",
    "F.relu6": "F.relu6(paddle.scale(f(2, 3), 9.0))",
    "F.selu": "F.selu(f(2, 3))",
    "F.softshrink": "F.softshrink(f(2, 3))",
    "F.softsign": "F.softsign(f(2, 3))",
    "F.swish": "F.swish(f(2, 3))",
    "F.tanhshrink": "F.tanhshrink(f(2, 3))",
    "F.thresholded_relu": "F.thresholded_relu(f(2, 3), 0.2)",
    "F.sigmoid": "F.sigmoid(f(2, 3))",
    "F.tanh": "F.tanh(f(2, 3))",
    "F.elu": "F.elu(f(2, 3))",
    # convolutions
    "F.conv1d": "F.conv1d(f(2, 4, 6), f(4, 2, 3), f(4), 2, 1, 1, 2)",
    "F.conv1d last": "F.conv1d(f(2, 6, 4), f(3, 4, 2), padding=[2, 1], data_format='NLC')",
    "F.conv2d": "F.conv2d(f(1, 4, 5, 5), f(4, 2, 3, 3), f(4), [2, 1], [1, 0], 1, 2)",
    "F.conv2d same": "F.conv2d(f(1, 5, 5, 2), f(3, 2, 2, 2), padding='SAME', data_format='NHWC')",
    "F.conv2d depthwise": "F.conv2d(f(1, 3, 4, 4), f(3, 1, 2, 2), groups=3)",
    "F.conv3d": "F.conv3d(f(1, 2, 3, 3, 3), f(2, 2, 2, 2, 2), f(2))",
    "F.conv1d_transpose": "F.conv1d_transpose(f(1, 2, 3), f(2, 3, 2), f(3), stride=2, output_padding=1)",
    "F.conv2d_transpose": "F.conv2d_transpose(f(1, 2, 3, 3), f(2, 2, 2, 2), f(2), 2, 1, 1)",
    "F.conv2d_transpose size": "F.conv2d_transpose(f(1, 2, 3, 3), f(2, 1, 2, 2), stride=2, groups=2, output_size=[7, 6])",
    "F.conv3d_transpose": "F.conv3d_transpose(f(1, 1, 2, 2, 2), f(1, 2, 2, 2, 2), f(2), 2)",
    # pools
    "F.avg_pool1d": "F.avg_pool1d(f(1, 2, 6), 3, 2, 1)",
    "F.avg_pool2d": "F.avg_pool2d(f(1, 2, 5, 5), 3, 2, 1, exclusive=False)",
    "F.avg_pool2d divisor": "F.avg_pool2d(f(1, 2, 4, 4), 2, divisor_override=3)",
    "F.avg_pool3d": "F.avg_pool3d(f(1, 1, 4, 4, 4), 2)",
    "F.max_pool1d": "F.max_pool1d(f(1, 2, 6), 2, padding=1)",
    "F.max_pool1d mask": "F.max_pool1d(f(1, 2, 6), 2, return_mask=True)",
    "F.max_pool2d": "F.max_pool2d(f(1, 2, 5, 5), 2, 2, ceil_mode=True)",
    "F.max_pool2d mask": "F.max_pool2d(f(1, 2, 5, 5), 3, 1, 1, True)",
    "F.max_pool3d": "F.max_pool3d(f(1, 1, 4, 4, 4), 2)",
    "F.adaptive_avg_pool1d": "F.adaptive_avg_pool1d(f(1, 2, 7), 3)",
    "F.adaptive_avg_pool2d": "F.adaptive_avg_pool2d(f(1, 2, 5, 6), [None, 2])",
    "F.adaptive_avg_pool2d last": "F.adaptive_avg_pool2d(f(1, 5, 6, 2), 3, 'NHWC')",
    "F.adaptive_avg_pool3d": "F.adaptive_avg_pool3d(f(1, 1, 4, 5, 4), 2)",
    "F.adaptive_max_pool1d": "F.adaptive_max_pool1d(f(1, 2, 7), 3)",
    "F.adaptive_max_pool2d": "F.adaptive_max_pool2d(f(1, 2, 5, 6), 2)",
    "F.adaptive_max_pool3d": "F.adaptive_max_pool3d(f(1, 1, 4, 5, 4), 2)",
    # normalisation
    "F.batch_norm": "F.batch_norm(f(2, 3, 2, 2), f(3), p(3), f(3), f(3))",
    "F.batch_norm NC": "F.batch_norm(f(2, 3), f(3), p(3), p(3), f(3), data_format='NC')",
    "F.instance_norm": "F.instance_norm(f(2, 3, 2, 2), weight=f(3), bias=f(3))",
    "F.instance_norm plain": "F.instance_norm(f(2, 3, 4))",
    "F.layer_norm": "F.layer_norm(f(2, 3, 4), [3, 4], f(12), f(12))",
    "F.layer_norm plain": "F.layer_norm(f(2, 3, 4), 4)",
    "F.local_response_norm": "F.local_response_norm(f(1, 4, 3, 3), 3, alpha=0.5)",
    "F.normalize": "F.normalize(f(2, 3), p=3, axis=0)",
    # the rest
    "F.linear": "F.linear(f(2, 2, 3), f(3, 4), f(4))",
    "F.bilinear": "F.bilinear(f(2, 3), f(2, 2), f(4, 3, 2), f(1, 4))",
    "F.cosine_similarity": "F.cosine_similarity(f(2, 3), p(2, 3))",
    "F.diag_embed": "F.diag_embed(f(2, 3), 1)",
    "F.embedding": "F.embedding(i(2, 3, n=5), f(5, 2), padding_idx=-2)",
    "F.gather_tree": "F.gather_tree(i(3, 2, 2, n=9), i(3, 2, 2, n=2))",
    "F.label_smooth": "F.label_smooth(p(2, 3))",
    "F.one_hot": "F.one_hot(i(2, n=3), 4)",
    "F.unfold": "F.unfold(f(1, 2, 4, 4), 2)",
    "F.pad": "F.pad(f(1, 2, 3), [1, 2], 'reflect', data_format='NCL')",
    "F.pad all": "F.pad(f(2, 3), [0, 1, 2, 0], value=0.5)",
    "F.pad image": "F.pad(f(1, 2, 3, 3), [1, 0, 0, 2], 'replicate')",
    "F.pad last": "F.pad(f(1, 3, 3, 2), [1, 0, 0, 2], 'circular', data_format='NHWC')",
    "F.pad volume": "F.pad(f(1, 1, 2, 2, 2), [1, 0, 0, 2, 1, 1], value=2.0, data_format='NCDHW')",
    "F.interpolate": "F.interpolate(f(1, 2, 3, 3), [5, 4])",
    "F.interpolate bilinear": "F.interpolate(f(1, 2, 3, 3), scale_factor=2, mode='bilinear')",
    "F.interpolate corners": "F.interpolate(f(1, 2, 3, 4), [5, 6], mode='bilinear', align_corners=True)",
    "F.interpolate bicubic": "F.interpolate(f(1, 1, 4, 4), [6, 5], mode='bicubic')",
    "F.interpolate linear": "F.interpolate(f(1, 2, 4), [7], mode='linear', data_format='NCW')",
    "F.interpolate trilinear": "F.interpolate(f(1, 1, 2, 2, 2), [3, 3, 4], mode='trilinear', data_format='NCDHW')",
    "F.interpolate area": "F.interpolate(f(1, 2, 4, 4), [2, 3], mode='area')",
    "F.upsample": "F.upsample(f(1, 3, 3, 2), scale_factor=[2, 3], data_format='NHWC')",
    "F.affine_grid": "F.affine_grid(f(1, 2, 3), [1, 1, 3, 4])",
    "F.grid_sample": "F.grid_sample(f(1, 2, 3, 3), f(1, 3, 3, 2))",
    "F.pixel_shuffle": "F.pixel_shuffle(f(1, 4, 2, 2), 2)",
    "F.temporal_shift": "F.temporal_shift(f(4, 4, 2, 2), 2)",
    "F.dropout": "F.dropout(f(2, 3), 0.3, training=False, mode='downscale_in_infer')",
    "F.dropout axis": "F.dropout(f(2, 3), 0.3, axis=0, training=False)",
    "F.dropout2d": "F.dropout2d(f(1, 2, 2, 2), training=False)",
    "F.dropout3d": "F.dropout3d(f(1, 2, 2, 2, 2), training=False)",
    "F.alpha_dropout": "F.alpha_dropout(f(2, 3), training=False)",
    # losses
    "F.binary_cross_entropy": "F.binary_cross_entropy(p(2, 3), p(2, 3), p(2, 3))",
    "F.binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits(f(2, 3), paddle.cast(b(2, 3), 'float32'), p(2, 3), 'sum')",
    "F.cross_entropy": "F.cross_entropy(f(4, 3), i(4, n=3))",
    "F.cross_entropy weight": "F.cross_entropy(f(4, 3), i(4, n=3), p(3), ignore_index=1)",
    "F.cross_entropy weight none": "F.cross_entropy(f(4, 3), i(4, 1, n=3), p(3), reduction='none')",
    "F.cross_entropy soft": "F.cross_entropy(f(2, 3), p(2, 3), p(3), soft_label=True)",
    "F.cross_entropy probabilities": "F.cross_entropy(p(2, 3), i(2, n=3), use_softmax=False)",
    "F.cross_entropy smoothed": "F.cross_entropy(f(2, 3), i(2, n=3), label_smoothing=0.2)",
    "F.ctc_loss": "F.ctc_loss(f(5, 2, 4), i32(2, 2, n=3), paddle.full([2], 5, 'int64'), paddle.full([2], 2, 'int64'), blank=3)",
    "F.dice_loss": "F.dice_loss(p(2, 3), i(2, 1, n=3))",
    "F.hsigmoid_loss": "F.hsigmoid_loss(f(2, 3), i(2, 1, n=4), 4, f(3, 3), f(3, 1))",
    "F.kl_div": "F.kl_div(f(2, 3), p(2, 3))",
    "F.l1_loss": "F.l1_loss(f(2, 3), p(2, 3))",
    "F.log_loss": "F.log_loss(p(2, 1), p(2, 1))",
    "F.margin_ranking_loss": "F.margin_ranking_loss(f(2, 3), p(2, 3), paddle.sign(f(2, 3)), 0.3)",
    "F.mse_loss": "F.mse_loss(f(2, 3), p(2, 3))",
    "F.nll_loss": "F.nll_loss(f(3, 4), i(3, n=4), p(4))",
    "F.nll_loss image": "F.nll_loss(f(2, 4, 2, 2), i(2, 2, 2, n=4), ignore_index=1)",
    "F.nll_loss row": "F.nll_loss(f(2, 4, 3), i(2, 3, n=4), reduction='none')",
    "F.npair_loss": "F.npair_loss(f(3, 2), f(3, 2), p(3))",
    "F.sigmoid_focal_loss": "F.sigmoid_focal_loss(f(2, 3), paddle.cast(b(2, 3), 'float32'), p(1))",
    "F.smooth_l1_loss": "F.smooth_l1_loss(f(2, 3), p(2, 3), delta=0.4)",
    "F.softmax_with_cross_entropy": "F.softmax_with_cross_entropy(f(2, 3), i(2, 1, n=3))",
    "F.square_error_cost": "F.square_error_cost(f(2, 3), p(2, 3))",
}


class Data:
    """What is fed: numbers that follow from how many were made before."""

    def __init__(self, data):
        self.data, self.feed = data, {}

    def make(self, array):
        name = "data_%d" % len(self.feed)
        self.feed[name] = array
        return self.data(name, list(array.shape), str(array.dtype))

    def numbers(self, shape):
        n = np.arange(int(np.prod(shape))) + 7.0 * len(self.feed)
        return np.sin(n * n * 0.37 + n * 1.3).reshape(shape)

    def names(self):
        return {
            "f": lambda *shape: self.make(self.numbers(shape).astype("float32")),
            "p": lambda *shape: self.make((self.numbers(shape) * 0.4 + 0.5).astype("float32")),
            "i": lambda *shape, n: self.make((self.numbers(shape) * 500 + 500).astype("int64") % n),
            "i32": lambda *shape, n: self.make(((self.numbers(shape) * 500 + 500).astype("int64") % n).astype("int32")),
            "b": lambda *shape: self.make(self.numbers(shape) > 0),
            "np": np,
        }


def parameter(name, shape):
    """The value of a parameter in these tests: positive for what may be a variance."""
    n = np.arange(int(np.prod(shape))) + float(sum(map(ord, name.split(".")[-1])))
    return (np.sin(n * n * 0.23 + n) * 0.3 + (0.5 if len(shape) == 1 else 0.0)).astype("float32").reshape(shape)


def flat(value):
    """The variables in what a case gives."""
    if isinstance(value, (list, tuple)):
        return [v for part in value for v in flat(part)]
    if isinstance(value, dict):
        return [v for key in sorted(value) for v in flat(value[key])]
    return [value]
