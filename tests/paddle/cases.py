"""Calls of Paddle 2's functions and layers, as expressions; recorded from Paddle 2.6.2 by
tests/tools/record_paddle2.py.

Names in an expression: ``paddle``, ``F`` (paddle.nn.functional), ``nn`` (paddle.nn), ``np``; ``f(2,
3)`` is new float32 data of that shape, some of it negative; ``p(2, 3)`` lies between 0.1 and 0.9;
``i(2, n=3)`` is int64 below 3, ``i32`` int32, ``b`` bool; ``x(1, inf)`` and ``n(1, 2)`` are float32
and int64 of these numbers. Everything runs in one static program. Importable on Python 3.8 with
nothing but NumPy.
"""
# ruff: noqa: E501, UP031

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

TENSORS = {
    "paddle.abs": "paddle.abs(f(2, 3))",
    "paddle.acos": "paddle.acos(f(2, 3))",
    "paddle.add": "paddle.add(f(2, 3), f(3))",
    "paddle.add_n": "paddle.add_n([f(2, 3), f(2, 3)])",
    "paddle.addmm": "paddle.addmm(f(2, 2), f(2, 3), f(3, 2), 0.5, 2.0)",
    "paddle.all": "paddle.all(b(2, 3), axis=1)",
    "paddle.allclose": "paddle.allclose(f(2), f(2))",
    "paddle.any": "paddle.any(b(2, 3), axis=0, keepdim=True)",
    "paddle.arange": "paddle.arange(1, 7, 2)",
    "paddle.argmax": "paddle.argmax(f(2, 3), axis=1)",
    "paddle.argmin": "paddle.argmin(f(2, 3), axis=0, keepdim=True)",
    "paddle.argsort": "paddle.argsort(f(2, 3), descending=True)",
    "paddle.asin": "paddle.asin(f(2, 3))",
    "paddle.assign": "paddle.assign(f(2, 3))",
    "paddle.atan": "paddle.atan(f(2, 3))",
    "paddle.bmm": "paddle.bmm(f(2, 2, 3), f(2, 3, 2))",
    "paddle.broadcast_to": "paddle.broadcast_to(f(1, 3), [2, 3])",
    "paddle.cast": "paddle.cast(p(2, 3), 'int32')",
    "paddle.ceil": "paddle.ceil(f(2, 3))",
    "paddle.cholesky": "paddle.cholesky(paddle.to_tensor(np.array([[2, 1, 0], [1, 3, 1], [0, 1, 2]], 'float32')))",
    "paddle.chunk": "paddle.chunk(f(4, 2), 2)",
    "paddle.clip": "paddle.clip(f(2, 3), -0.2, 0.3)",
    "paddle.concat": "paddle.concat([f(2, 3), f(2, 1)], 1)",
    "paddle.cos": "paddle.cos(f(2, 3))",
    "paddle.cosh": "paddle.cosh(f(2, 3))",
    "paddle.cross": "paddle.cross(f(2, 3), f(2, 3), 1)",
    "paddle.cumsum": "paddle.cumsum(f(2, 3), 1)",
    "paddle.diag": "paddle.diag(f(3), 1, 0.5)",
    "paddle.diag matrix": "paddle.diag(f(3, 3), -1)",
    "paddle.dist": "paddle.dist(f(2, 3), f(2, 3), 3)",
    "paddle.divide": "paddle.divide(f(2, 3), p(2, 3))",
    "paddle.dot": "paddle.dot(f(3), f(3))",
    "paddle.empty": "paddle.shape(paddle.empty([2, 3]))",
    "paddle.empty_like": "paddle.shape(paddle.empty_like(f(2, 3)))",
    "paddle.equal": "paddle.equal(i(4, n=2), i(4, n=2))",
    "paddle.equal_all": "paddle.equal_all(i(4, n=2), i(4, n=2))",
    "paddle.erf": "paddle.erf(f(2, 3))",
    "paddle.exp": "paddle.exp(f(2, 3))",
    "paddle.expand": "paddle.expand(f(1, 3), [2, 3])",
    "paddle.expand_as": "paddle.expand_as(f(1, 3), f(2, 3))",
    "paddle.eye": "paddle.eye(2, 3)",
    "paddle.flatten": "paddle.flatten(f(2, 3, 2), 1)",
    "paddle.flip": "paddle.flip(f(2, 3), [0])",
    "paddle.floor": "paddle.floor(f(2, 3))",
    "paddle.floor_divide": "paddle.floor_divide(i(4, n=9), paddle.full([4], 2, 'int64'))",
    "paddle.full": "paddle.full([2, 2], 1.5)",
    "paddle.full inf": "paddle.full([2], float('-inf'))",
    "paddle.full_like": "paddle.full_like(f(2), 2.0)",
    "paddle.gather": "paddle.gather(f(4, 2), i(3, n=4))",
    "paddle.gather_nd": "paddle.gather_nd(f(3, 3), i(2, 2, n=3))",
    "paddle.greater_equal": "paddle.greater_equal(i(4, n=2), i(4, n=2))",
    "paddle.greater_than": "paddle.greater_than(f(4), f(4))",
    "paddle.increment": "paddle.increment(f(1), 2.0)",
    "paddle.index_sample": "paddle.index_sample(f(2, 4), i(2, 3, n=4))",
    "paddle.index_select": "paddle.index_select(f(2, 4), i(3, n=4), 1)",
    "paddle.inverse": "paddle.inverse(paddle.to_tensor(np.array([[2, 1, 0], [1, 3, 1], [0, 1, 2]], 'float32')))",
    "paddle.inverse batch": "paddle.inverse(paddle.add(paddle.scale(f(2, 2, 2), 0.3), paddle.eye(2)))",
    "paddle.is_empty": "paddle.is_empty(f(2))",
    "paddle.isfinite": "paddle.isfinite(paddle.divide(f(3), paddle.to_tensor(np.array([0, 1, 2], 'float32'))))",
    "paddle.isinf": "paddle.isinf(paddle.divide(f(3), paddle.to_tensor(np.array([0, 1, 2], 'float32'))))",
    "paddle.isnan": "paddle.isnan(paddle.sqrt(f(4)))",
    "paddle.kron": "paddle.kron(f(2, 2), f(1, 2))",
    "paddle.less_equal": "paddle.less_equal(i(4, n=2), i(4, n=2))",
    "paddle.less_than": "paddle.less_than(f(4), f(4))",
    "paddle.linspace": "paddle.linspace(0.0, 2.0, 5)",
    "paddle.log": "paddle.log(p(2, 3))",
    "paddle.log10": "paddle.log10(p(2, 3))",
    "paddle.log1p": "paddle.log1p(p(2, 3))",
    "paddle.log2": "paddle.log2(p(2, 3))",
    "paddle.logical_and": "paddle.logical_and(b(4), b(4))",
    "paddle.logical_not": "paddle.logical_not(b(4))",
    "paddle.logical_or": "paddle.logical_or(b(4), b(4))",
    "paddle.logical_xor": "paddle.logical_xor(b(4), b(4))",
    "paddle.logsumexp": "paddle.logsumexp(f(2, 3), 1)",
    "paddle.masked_select": "paddle.masked_select(f(2, 3), b(2, 3))",
    "paddle.matmul": "paddle.matmul(f(2, 3), f(2, 3), transpose_y=True)",
    "paddle.max": "paddle.max(f(2, 3), 1)",
    "paddle.maximum": "paddle.maximum(f(2, 3), f(2, 3))",
    "paddle.mean": "paddle.mean(f(2, 3), 0)",
    "paddle.median": "paddle.median(f(5), keepdim=True)",
    "paddle.median even": "paddle.median(f(2, 4), 1)",
    "paddle.meshgrid": "paddle.meshgrid(f(2), f(3))",
    "paddle.min": "paddle.min(f(2, 3), 1)",
    "paddle.minimum": "paddle.minimum(f(2, 3), f(2, 3))",
    "paddle.mm": "paddle.mm(f(2, 3), f(3, 2))",
    "paddle.mod": "paddle.mod(i(4, n=9), paddle.full([4], 4, 'int64'))",
    "paddle.multiplex": "paddle.multiplex([f(2, 3), f(2, 3)], i32(2, 1, n=2))",
    "paddle.multiply": "paddle.multiply(f(2, 3), f(2, 3))",
    "paddle.mv": "paddle.mv(f(2, 3), f(3))",
    "paddle.nonzero": "paddle.nonzero(b(2, 3))",
    "paddle.norm": "paddle.norm(f(2, 3))",
    "paddle.norm axis": "paddle.norm(f(2, 3), 3, 1)",
    "paddle.norm inf": "paddle.norm(f(2, 3), float('inf'), 0, True)",
    "paddle.norm matrix": "paddle.norm(f(2, 3, 2), 2, [0, 1])",
    "paddle.not_equal": "paddle.not_equal(i(4, n=2), i(4, n=2))",
    "paddle.numel": "paddle.numel(f(2, 3))",
    "paddle.ones": "paddle.ones([2])",
    "paddle.ones_like": "paddle.ones_like(f(2))",
    "paddle.pow": "paddle.pow(p(2, 3), 1.5)",
    "paddle.prod": "paddle.prod(f(2, 3), 1)",
    "paddle.rank": "paddle.rank(f(2, 3))",
    "paddle.reciprocal": "paddle.reciprocal(p(2, 3))",
    "paddle.remainder": "paddle.remainder(i(4, n=9), paddle.full([4], 4, 'int64'))",
    "paddle.reshape": "paddle.reshape(f(2, 3), [3, -1])",
    "paddle.reshape_": "paddle.reshape_(f(2, 3), [3, -1])",
    "paddle.roll": "paddle.roll(f(2, 3), 1, 1)",
    "paddle.round": "paddle.round(paddle.scale(f(2, 3), 3.0))",
    "paddle.rsqrt": "paddle.rsqrt(p(2, 3))",
    "paddle.scale": "paddle.scale(f(2, 3), 2.0, 1.0, False)",
    "paddle.scatter": "paddle.scatter(f(3, 2), paddle.to_tensor(np.array([2, 0])), f(2, 2))",
    "paddle.scatter_": "paddle.scatter_(f(3, 2), paddle.to_tensor(np.array([2, 0])), f(2, 2), False)",
    "paddle.scatter_nd": "paddle.scatter_nd(i(2, 1, n=4), f(2), [4])",
    "paddle.scatter_nd_add": "paddle.scatter_nd_add(f(4), i(2, 1, n=4), f(2))",
    "paddle.shape": "paddle.shape(f(2, 3))",
    "paddle.shard_index": "paddle.shard_index(i(4, 1, n=20), 20, 2, 0)",
    "paddle.sign": "paddle.sign(f(2, 3))",
    "paddle.sin": "paddle.sin(f(2, 3))",
    "paddle.sinh": "paddle.sinh(f(2, 3))",
    "paddle.slice": "paddle.slice(f(3, 3), [0, 1], [1, 0], [3, 2])",
    "paddle.sort": "paddle.sort(f(2, 3))",
    "paddle.split": "paddle.split(f(4, 2), [1, 3])",
    "paddle.sqrt": "paddle.sqrt(p(2, 3))",
    "paddle.square": "paddle.square(f(2, 3))",
    "paddle.squeeze": "paddle.squeeze(f(1, 3), 0)",
    "paddle.squeeze_": "paddle.squeeze_(f(1, 3, 1))",
    "paddle.stack": "paddle.stack([f(2), f(2)], 1)",
    "paddle.stanh": "paddle.stanh(f(2, 3))",
    "paddle.std": "paddle.std(f(2, 3))",
    "paddle.strided_slice": "paddle.strided_slice(f(5, 2), [0], [0], [5], [2])",
    "paddle.subtract": "paddle.subtract(f(2, 3), f(2, 3))",
    "paddle.sum": "paddle.sum(f(2, 3), 1)",
    "paddle.t": "paddle.t(f(2, 3))",
    "paddle.tan": "paddle.tan(f(2, 3))",
    "paddle.tanh": "paddle.tanh(f(2, 3))",
    "paddle.tanh_": "paddle.tanh_(f(2, 3))",
    "paddle.tile": "paddle.tile(f(1, 3), [2, 2])",
    "paddle.to_tensor": "paddle.to_tensor([1.5, 2.0])",
    "paddle.topk": "paddle.topk(f(3, 2), 2, 0, False)",
    "paddle.trace": "paddle.trace(f(3, 3), 1)",
    "paddle.transpose": "paddle.transpose(f(2, 3), [1, 0])",
    "paddle.tril": "paddle.tril(f(3, 3))",
    "paddle.triu": "paddle.triu(f(3, 3), 1)",
    "paddle.unbind": "paddle.unbind(f(2, 3), 1)",
    "paddle.unsqueeze": "paddle.unsqueeze(f(2, 3), [1])",
    "paddle.unsqueeze_": "paddle.unsqueeze_(f(2, 3), 0)",
    "paddle.unstack": "paddle.unstack(f(2, 3), 1)",
    "paddle.var": "paddle.var(f(2, 3), 1, False, True)",
    "paddle.where": "paddle.where(b(2, 3), f(2, 3), f(2, 3))",
    "paddle.zeros": "paddle.zeros([2], 'int64')",
    "paddle.zeros_like": "paddle.zeros_like(f(2))",
    "paddle.where broadcast": "paddle.where(b(2, 1), f(3), f(1, 3))",
    "paddle.where alone": "paddle.where(b(2, 3))",
    "paddle.ones_like dtype": "paddle.ones_like(f(2), 'int64')",
    "paddle.zeros_like dtype": "paddle.zeros_like(f(2), 'int32')",
    "paddle.cross first": "paddle.cross(f(3, 2), f(3, 2))",
    "paddle.linspace dtype": "paddle.linspace(0, 2, 5, 'float64')",
}

LAYERS = {
    "nn.ELU": "nn.ELU(0.5)(f(2, 3))",
    "nn.GELU": "nn.GELU()(f(2, 3))",
    "nn.Hardshrink": "nn.Hardshrink()(f(2, 3))",
    "nn.Hardsigmoid": "nn.Hardsigmoid()(f(2, 3))",
    "nn.Hardswish": "nn.Hardswish()(f(2, 3))",
    "nn.Hardtanh": "nn.Hardtanh(-0.3, 0.2)(f(2, 3))",
    "nn.LeakyReLU": "nn.LeakyReLU(0.2)(f(2, 3))",
    "nn.LogSigmoid": "nn.LogSigmoid()(f(2, 3))",
    "nn.LogSoftmax": "nn.LogSoftmax(0)(f(2, 3))",
    "nn.Maxout": "nn.Maxout(2)(f(2, 4, 2, 2))",
    "nn.Mish": "nn.Mish()(f(2, 3))",
    "nn.PReLU": "nn.PReLU(3, 0.1)(f(2, 3, 2))",
    "nn.ReLU": "nn.ReLU()(f(2, 3))",
    "nn.ReLU6": "nn.ReLU6()(f(2, 3))",
    "nn.SELU": "nn.SELU()(f(2, 3))",
    "nn.Sigmoid": "nn.Sigmoid()(f(2, 3))",
    "nn.Silu": "nn.Silu()(f(2, 3))",
    "nn.Softmax": "nn.Softmax(0)(f(2, 3))",
    "nn.Softplus": "nn.Softplus(2, 1)(f(2, 3))",
    "nn.Softshrink": "nn.Softshrink(0.3)(f(2, 3))",
    "nn.Softsign": "nn.Softsign()(f(2, 3))",
    "nn.Swish": "nn.Swish()(f(2, 3))",
    "nn.Tanh": "nn.Tanh()(f(2, 3))",
    "nn.Tanhshrink": "nn.Tanhshrink()(f(2, 3))",
    "nn.ThresholdedReLU": "nn.ThresholdedReLU(0.3)(f(2, 3))",
    "nn.Linear": "nn.Linear(3, 4)(f(2, 3))",
    "nn.Linear no bias": "nn.Linear(3, 2, weight_attr=paddle.ParamAttr(name='shared'), bias_attr=False)(f(2, 3))",
    "nn.Bilinear": "nn.Bilinear(3, 2, 4)(f(2, 3), f(2, 2))",
    "nn.Embedding": "nn.Embedding(5, 2, padding_idx=1)(i(2, 3, n=5))",
    "nn.Dropout": "evaluated(nn.Dropout(0.3))(f(2, 3))",
    "nn.Dropout2D": "evaluated(nn.Dropout2D())(f(1, 2, 2, 2))",
    "nn.Dropout3D": "evaluated(nn.Dropout3D())(f(1, 2, 2, 2, 2))",
    "nn.AlphaDropout": "evaluated(nn.AlphaDropout())(f(2, 3))",
    "nn.CosineSimilarity": "nn.CosineSimilarity()(f(2, 3), f(2, 3))",
    "nn.Flatten": "nn.Flatten()(f(2, 3, 2))",
    "nn.Pad1D": "nn.Pad1D([1, 2], 'replicate')(f(1, 2, 3))",
    "nn.Pad2D": "nn.Pad2D(1)(f(1, 2, 3, 3))",
    "nn.Pad3D": "nn.Pad3D([1, 0, 0, 1, 0, 0], value=2.0)(f(1, 1, 2, 2, 2))",
    "nn.PairwiseDistance": "nn.PairwiseDistance()(f(2, 3), f(2, 3))",
    "nn.PixelShuffle": "nn.PixelShuffle(2)(f(1, 4, 2, 2))",
    "nn.Upsample": "nn.Upsample([4, 5], mode='bilinear')(f(1, 2, 3, 3))",
    "nn.UpsamplingBilinear2D": "nn.UpsamplingBilinear2D([4, 5])(f(1, 2, 3, 3))",
    "nn.UpsamplingNearest2D": "nn.UpsamplingNearest2D(scale_factor=2)(f(1, 2, 3, 3))",
    "nn.AdaptiveAvgPool1D": "nn.AdaptiveAvgPool1D(2)(f(1, 2, 5))",
    "nn.AdaptiveAvgPool2D": "nn.AdaptiveAvgPool2D(2)(f(1, 2, 5, 5))",
    "nn.AdaptiveAvgPool3D": "nn.AdaptiveAvgPool3D(2)(f(1, 1, 3, 3, 3))",
    "nn.AdaptiveMaxPool1D": "nn.AdaptiveMaxPool1D(2)(f(1, 2, 5))",
    "nn.AdaptiveMaxPool2D": "nn.AdaptiveMaxPool2D(2)(f(1, 2, 5, 5))",
    "nn.AdaptiveMaxPool3D": "nn.AdaptiveMaxPool3D(2)(f(1, 1, 3, 3, 3))",
    "nn.AvgPool1D": "nn.AvgPool1D(2)(f(1, 2, 5))",
    "nn.AvgPool2D": "nn.AvgPool2D(2, 1, 1)(f(1, 2, 4, 4))",
    "nn.AvgPool3D": "nn.AvgPool3D(2)(f(1, 1, 4, 4, 4))",
    "nn.MaxPool1D": "nn.MaxPool1D(2)(f(1, 2, 5))",
    "nn.MaxPool2D": "nn.MaxPool2D(2, 1, 1)(f(1, 2, 4, 4))",
    "nn.MaxPool3D": "nn.MaxPool3D(2)(f(1, 1, 4, 4, 4))",
    "nn.Conv1D": "nn.Conv1D(2, 3, 3, padding=1, padding_mode='circular')(f(1, 2, 5))",
    "nn.Conv2D": "nn.Conv2D(2, 4, 3, 2, 1, groups=2)(f(1, 2, 5, 5))",
    "nn.Conv3D": "nn.Conv3D(1, 2, 2)(f(1, 1, 3, 3, 3))",
    "nn.Conv1DTranspose": "nn.Conv1DTranspose(2, 3, 2, stride=2)(f(1, 2, 3))",
    "nn.Conv2DTranspose": "nn.Conv2DTranspose(2, 3, 2, stride=2, bias_attr=False)(f(1, 2, 3, 3), output_size=[7, 6])",
    "nn.Conv3DTranspose": "nn.Conv3DTranspose(1, 2, 2)(f(1, 1, 2, 2, 2))",
    "nn.BatchNorm": "nn.BatchNorm(3, act='relu', is_test=True)(f(2, 3, 2, 2))",
    "nn.BatchNorm1D": "nn.BatchNorm1D(3)(f(4, 3))",
    "nn.BatchNorm2D": "evaluated(nn.BatchNorm2D(3))(f(2, 3, 2, 2))",
    "nn.BatchNorm2D train": "nn.BatchNorm2D(3)(f(2, 3, 2, 2))",
    "nn.BatchNorm3D": "nn.BatchNorm3D(2, use_global_stats=True)(f(1, 2, 2, 2, 2))",
    "nn.InstanceNorm1D": "nn.InstanceNorm1D(2)(f(2, 2, 4))",
    "nn.InstanceNorm2D": "nn.InstanceNorm2D(2)(f(1, 2, 3, 3))",
    "nn.InstanceNorm3D": "nn.InstanceNorm3D(2, weight_attr=False, bias_attr=False)(f(1, 2, 2, 2, 2))",
    "nn.LayerNorm": "nn.LayerNorm([3, 2])(f(2, 3, 2))",
    "nn.GroupNorm": "nn.GroupNorm(2, 4)(f(2, 4, 2, 2))",
    "nn.LocalResponseNorm": "nn.LocalResponseNorm(3, 0.5)(f(1, 4, 2, 2))",
    "nn.BCELoss": "nn.BCELoss()(p(2, 3), p(2, 3))",
    "nn.BCEWithLogitsLoss": "nn.BCEWithLogitsLoss(reduction='sum')(f(2, 3), p(2, 3))",
    "nn.CTCLoss": "nn.CTCLoss(3)(f(5, 2, 4), i32(2, 2, n=3), paddle.full([2], 5, 'int64'), paddle.full([2], 2, 'int64'))",
    "nn.CrossEntropyLoss": "nn.CrossEntropyLoss(ignore_index=1)(f(4, 3), i(4, n=3))",
    "nn.KLDivLoss": "nn.KLDivLoss()(f(2, 3), p(2, 3))",
    "nn.L1Loss": "nn.L1Loss()(f(2, 3), f(2, 3))",
    "nn.MSELoss": "nn.MSELoss()(f(2, 3), f(2, 3))",
    "nn.MarginRankingLoss": "nn.MarginRankingLoss(0.2)(f(2, 3), f(2, 3), paddle.sign(f(2, 3)))",
    "nn.NLLLoss": "nn.NLLLoss()(f(3, 4), i(3, n=4))",
    "nn.SmoothL1Loss": "nn.SmoothL1Loss(delta=0.5)(f(2, 3), f(2, 3))",
    "nn.HSigmoidLoss": "nn.HSigmoidLoss(3, 4)(f(2, 3), i(2, 1, n=4))",
    "nn.MultiHeadAttention": "nn.MultiHeadAttention(4, 2, need_weights=True)(f(2, 3, 4), f(2, 2, 4), f(2, 2, 4), f(2, 2, 3, 2))",
    "nn.MultiHeadAttention bool": "nn.MultiHeadAttention(4, 1)(f(1, 3, 4), attn_mask=b(3, 3))",
    "nn.TransformerEncoder": "evaluated(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5), 2, nn.LayerNorm(4)))(f(2, 3, 4))",
    "nn.TransformerDecoderLayer": "evaluated(nn.TransformerDecoderLayer(4, 2, 5, 0.1, 'gelu', None, None, True))(f(2, 3, 4), f(2, 2, 4))",
    "nn.Transformer": "evaluated(nn.Transformer(4, 2, 1, 1, 6))(f(1, 2, 4), f(1, 3, 4), None, f(3, 3))",
    "nn.Sequential": "nn.Sequential(nn.Linear(3, 4), nn.ReLU())(f(2, 3))",
    "nn.Sequential named": "nn.Sequential(('first', nn.Linear(3, 4)), ('last', nn.Tanh()))(f(2, 3))",
    "nn.LayerList": "[layer(f(2, 3)) for layer in nn.LayerList([nn.Linear(3, 2), nn.Sigmoid()])]",
    "nn.MultiHeadAttention cache": "stepped(nn.MultiHeadAttention(4, 2), f(2, 1, 4), f(2, 2, 4))",
    "nn.MultiHeadAttention given": "nn.MultiHeadAttention(4, 2)(f(2, 1, 4), cache=nn.MultiHeadAttention.Cache(*[f(2, 2, 3, 2)] * 2))",
    "nn.MultiHeadAttention static": "fixed(nn.MultiHeadAttention(4, 2, need_weights=True), f(2, 1, 4), f(2, 3, 4))",
    "nn.TransformerEncoderLayer cache": "stepped(evaluated(nn.TransformerEncoderLayer(4, 2, 5)), f(2, 1, 4), f(2, 1, 4))",
    "nn.TransformerEncoder cache": "stepped(evaluated(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5), 2)), f(2, 1, 4), f(2, 1, 4))",
    "nn.TransformerDecoder cache": "decoded(evaluated(nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 5), 2)), f(2, 1, 4), f(2, 3, 4))",
}


RECURRENT = {
    "nn.SimpleRNNCell": "nn.SimpleRNNCell(3, 4, 'relu')(f(2, 3), f(2, 4))",
    "nn.LSTMCell": "nn.LSTMCell(3, 4)(f(2, 3))",
    "nn.GRUCell": "nn.GRUCell(3, 4, bias_ih_attr=False)(f(2, 3), f(2, 4))",
    "nn.SimpleRNN": "nn.SimpleRNN(3, 4, 2, dropout=0.0, activation='relu')(f(2, 3, 3), f(2, 2, 4))",
    "nn.LSTM": "nn.LSTM(3, 4, 2, 'bidirect')(f(2, 3, 3))",
    "nn.LSTM lengths": "nn.LSTM(3, 2, time_major=True)(f(3, 2, 3), (f(1, 2, 2), f(1, 2, 2)), sequence_length=paddle.full([2], 2, 'int64'))",
    "nn.GRU": "nn.GRU(3, 4)(f(2, 3, 3))",
    "nn.RNN": "nn.RNN(nn.GRUCell(3, 4), is_reverse=True)(f(2, 3, 3))",
    "nn.RNN lengths": "nn.RNN(nn.SimpleRNNCell(3, 4), time_major=True)(f(3, 2, 3), None, i(2, n=3))[1]",
    "nn.BiRNN": "nn.BiRNN(nn.LSTMCell(3, 2), nn.LSTMCell(3, 2))(f(2, 3, 3))",
}


def evaluated(layer):
    layer.eval()
    return layer


def symmetric(matrix):
    """matrix + its transpose"""
    return matrix + matrix.transpose([1, 0])


def stepped(layer, first, second):
    """two calls, the second with the cache that the first gave: both outputs, the last cache"""
    one, cache = layer(first, cache=layer.gen_cache(first))
    return [one, layer(second, cache=cache)]


def fixed(layer, query, memory):
    """attention to a memory whose keys and values are computed once"""
    cache = layer.gen_cache(memory, memory, layer.StaticCache)
    return [layer(query, memory, memory, None, cache), layer.gen_cache(memory, memory).k]


def decoded(layer, target, memory):
    """two steps of a decoder"""
    layer.gen_cache(memory, do_zip=True)
    one, cache = layer(target, memory, cache=layer.gen_cache(memory))
    return [one, layer(target, memory, cache=cache)]


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
            "i32": lambda *shape, n: self.make(
                ((self.numbers(shape) * 500 + 500).astype("int64") % n).astype("int32")
            ),
            "b": lambda *shape: self.make(self.numbers(shape) > 0),
            "x": lambda *numbers: self.make(np.array(numbers, "float32")),
            "n": lambda *numbers: self.make(np.array(numbers, "int64")),
            "inf": float("inf"),
            "nan": float("nan"),
            "symmetric": symmetric,
            "np": np,
            "evaluated": evaluated,
            "stepped": stepped,
            "fixed": fixed,
            "decoded": decoded,
        }


def parameter(name, shape):
    """The value of a parameter in these tests: positive for what may be a variance."""
    n = np.arange(int(np.prod(shape))) + float(sum(map(ord, name.split(".")[-1])))
    return (
        (np.sin(n * n * 0.23 + n) * 0.3 + (0.5 if len(shape) == 1 else 0.0))
        .astype("float32")
        .reshape(shape)
    )


def flat(value):
    """The variables in what a case gives."""
    if isinstance(value, (list, tuple)):
        return [v for part in value for v in flat(part)]
    if isinstance(value, dict):
        return [v for key in sorted(value) for v in flat(value[key])]
    return [value]
