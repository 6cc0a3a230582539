"""Calls of what Paddle 3 has in static mode, as expressions like those of cases.py; recorded from
Paddle 3.3.1.
"""
# ruff: noqa: E501

NEWER = {
    # activations
    "F.celu": "[F.celu(x(-3, -1, -0.0, 0, 2, inf, -inf, nan)), F.celu(f(2, 3), 0.3)]",
    "F.glu": "[F.glu(f(2, 4)), F.glu(f(4, 3), 0)]",
    "F.swiglu": "[F.swiglu(f(2, 4)), F.swiglu(f(2, 3), f(2, 3))]",
    "F.rrelu": "F.rrelu(f(2, 3), 0.2, 0.6, training=False)",
    "F.hardtanh_": "[F.hardtanh_(f(2, 3), -0.5, 0.25), F.leaky_relu_(f(2, 3), 0.3), F.thresholded_relu_(f(2, 3), 0.2)]",
    "nn.CELU": "[nn.CELU(0.5)(f(2, 3)), nn.GLU(0)(f(2, 3)), nn.Softmax2D()(f(2, 3, 2, 2)), nn.Identity(3, a=1)(f(2))]",
    # windows
    "F.lp_pool1d": "[F.lp_pool1d(p(1, 2, 6), 2.0, 3, 2, 1), F.lp_pool1d(p(1, 6, 2), 3.0, 2, data_format='NLC')]",
    "F.lp_pool2d": "[F.lp_pool2d(f(1, 2, 5, 5), 2, [3, 2], 2, 1, True), F.lp_pool2d(f(1, 2, 4, 4), float('inf'), 2)]",
    "F.fractional_max_pool2d": "[F.fractional_max_pool2d(f(1, 2, 7, 5), [3, None], random_u=0.3), *F.fractional_max_pool2d(f(1, 1, 7, 5), 2, [3, 2], 0.8, True)]",
    "F.fractional_max_pool3d": "F.fractional_max_pool3d(f(1, 1, 5, 4, 6), [2, 2, 3], random_u=0.55)",
    "F.max_unpool1d": "[F.max_unpool1d(f(1, 2, 3), i32(1, 1, 3, n=2).tile([1, 2, 1]) + paddle.to_tensor([0, 2, 4], dtype='int32'), 2), F.max_unpool1d(f(1, 1, 2), i32(1, 1, 2, n=1) + paddle.to_tensor([1, 4], dtype='int32'), 2, output_size=[1, 1, 5])]",
    "F.max_unpool2d": "F.max_unpool2d(*F.max_pool2d(f(1, 2, 4, 4), 2, return_mask=True), 2)",
    "F.max_unpool3d": "F.max_unpool3d(*F.max_pool3d(f(1, 1, 4, 4, 4), 2, return_mask=True), 2, output_size=[4, 5, 4])",
    "F.fold": "[F.fold(f(2, 12, 6), [3, 4], [2, 2]), F.fold(f(1, 4, 9), 4, 2, 2, [1, 1])]",
    "nn.LPPool2D": "[nn.LPPool1D(2, 2)(f(1, 2, 6)), nn.LPPool2D(3, 2)(p(1, 2, 4, 4)), nn.FractionalMaxPool2D(3, random_u=0.4)(f(1, 1, 5, 6)), nn.FractionalMaxPool3D(2, random_u=0.4)(f(1, 1, 3, 4, 4))]",
    "nn.MaxUnPool2D": "[nn.MaxUnPool2D(2)(*F.max_pool2d(f(1, 2, 4, 4), 2, return_mask=True)), nn.MaxUnPool3D(2)(*F.max_pool3d(f(1, 1, 4, 4, 4), 2, return_mask=True)), nn.MaxUnPool1D(2)(f(1, 1, 2), i32(1, 1, 2, n=1))]",
    "nn.Fold": "[nn.Fold([3, 4], 2)(f(2, 12, 6)), nn.Unfold(2, paddings=1)(f(1, 2, 3, 3))]",
    # places
    "F.pixel_unshuffle": "[F.pixel_unshuffle(f(1, 2, 4, 6), 2), nn.PixelUnshuffle(3, 'NHWC')(f(1, 3, 6, 2))]",
    "F.channel_shuffle": "[F.channel_shuffle(f(1, 6, 2, 2), 3), nn.ChannelShuffle(2, 'NHWC')(f(1, 2, 2, 4))]",
    "F.zeropad2d": "[F.zeropad2d(f(1, 2, 2, 3), [1, 0, 2, 1]), nn.ZeroPad2D([1, 0, 2, 1])(f(1, 2, 2, 3)), nn.ZeroPad1D(1)(f(1, 2, 3)), nn.ZeroPad3D(1)(f(1, 1, 2, 1, 2))]",
    "F.sequence_mask": "F.sequence_mask(n(2, 0, 3), 4)",
    "nn.Unflatten": "nn.Unflatten(1, [2, -1])(f(2, 6))",
    # of paddle itself
    "paddle.hstack": "[paddle.hstack([f(2), f(3)]), paddle.hstack([f(2, 1), f(2, 3)]), paddle.vstack([f(3), f(2, 3)]), paddle.row_stack([f(2), f(2)])]",
    "paddle.dstack": "[paddle.dstack([f(2), f(2)]), paddle.dstack([f(2, 3), f(2, 3)]), paddle.column_stack([f(2), f(2, 3)])]",
    "paddle.block_diag": "[paddle.block_diag([f(2, 3), f(2), f(1, 1)]), paddle.cartesian_prod([f(2), f(3), f(1)]), paddle.cartesian_prod([f(2)])]",
    "paddle.tensor_split": "[paddle.tensor_split(f(7, 2), 3), paddle.tensor_split(f(2, 5), [1, 3], 1), paddle.hsplit(f(4), 2), paddle.hsplit(f(2, 3), 3), paddle.dsplit(f(1, 2, 4), [1, -1])]",
    "paddle.signbit": "[paddle.signbit(x(0, -0.0, 1, -1, inf, -inf)), paddle.signbit(n(-1, 0, 2)), paddle.isneginf(x(-inf, inf, nan, 1)), paddle.isposinf(x(-inf, inf, nan, 1))]",
    "paddle.copysign": "paddle.copysign(x(1, -2, 0, inf), x(-0.0, 3, -1, -1))",
    "paddle.sinc": "paddle.sinc(x(0, -0.0, 1, 0.5, -2.25, 1e-10))",
    "paddle.gammaln": "[paddle.gammaln(x(0.5, 3, 10)), paddle.gammaincc(x(0.5, 2), x(1, 3)), paddle.gammainc(x(0.5, 2, 3), x(1, 3, 0))]",
    "paddle.bitwise_left_shift": "[paddle.bitwise_left_shift(n(1, -3, 5), n(2, 1, 0)), paddle.bitwise_right_shift(n(8, -8, 5), n(2, 1, 0)), paddle.bitwise_right_shift(n(8, 5), n(2, 1), False)]",
    "paddle.isin": "[paddle.isin(n(1, 2, 3, 4).reshape([2, 2]), n(4, 1)), paddle.isin(x(0.5, 1), x(1, 2, 3), invert=True)]",
    "paddle.vecdot": "[paddle.vecdot(f(2, 3), f(2, 3)), paddle.vecdot(f(2, 3), f(2, 3), 0), paddle.pdist(f(4, 3)), paddle.pdist(f(3, 2), 1.0)]",
    "paddle.reduce_as": "[paddle.reduce_as(f(2, 3, 4), f(3, 1)), paddle.matrix_transpose(f(2, 3, 4))]",
    # distances and losses
    "F.pairwise_distance": "[F.pairwise_distance(f(3, 4), f(3, 4)), F.pairwise_distance(f(3, 4), f(3, 4), 1.0, 0.0, True), F.pairwise_distance(f(2, 3), f(2, 3), float('inf'))]",
    "F.cosine_embedding_loss": "[F.cosine_embedding_loss(f(3, 4), f(3, 4), n(1, -1, 0), 0.1, 'none'), nn.CosineEmbeddingLoss(-0.5)(f(2, 3), f(2, 3), n(-1, 1))]",
    "F.hinge_embedding_loss": "[F.hinge_embedding_loss(f(2, 3), paddle.sign(f(2, 3)), 0.5, 'none'), nn.HingeEmbeddingLoss(reduction='sum')(x(0.5, 1, 2, nan), x(-1, -1, 1, 0))]",
    "F.soft_margin_loss": "[F.soft_margin_loss(f(2, 3), paddle.sign(f(2, 3)), 'none'), nn.SoftMarginLoss()(f(2, 3), paddle.sign(f(2, 3)))]",
    "F.multi_label_soft_margin_loss": "[F.multi_label_soft_margin_loss(f(2, 3), b(2, 3).astype('float32'), p(3), 'none'), nn.MultiLabelSoftMarginLoss(reduction='sum')(f(2, 3), b(2, 3).astype('float32'))]",
    "F.multi_margin_loss": "[F.multi_margin_loss(f(3, 4), n(0, 3, 1), 2, 0.5, p(4), 'none'), nn.MultiMarginLoss()(f(3, 4), n(0, 3, 1)), F.multi_margin_loss(x(1, 0, 1, 2).reshape([2, 2]), n(0, 1), reduction='none')]",
    "F.multi_label_margin_loss": "[F.multi_label_margin_loss(f(3, 4), n(3, 0, -1, 1, -1, 2, 3, 0, 1, 2, 3, 0).reshape([3, 4]), 'none'), nn.MultiLabelMarginLoss()(f(1, 3), n(1, 1, -1).reshape([1, 3]))]",
    "F.triplet_margin_loss": "[F.triplet_margin_loss(f(3, 4), f(3, 4), f(3, 4), 0.5, 1, swap=True, reduction='none'), nn.TripletMarginLoss()(f(2, 3), f(2, 3), f(2, 3))]",
    "F.triplet_margin_with_distance_loss": "[F.triplet_margin_with_distance_loss(f(3, 4), f(3, 4), f(3, 4), lambda a, b: (a - b).abs().sum(1), 2.0, True, 'none'), nn.TripletMarginWithDistanceLoss(reduction='sum')(f(2, 3), f(2, 3), f(2, 3))]",
    "F.poisson_nll_loss": "[F.poisson_nll_loss(f(2, 3), p(2, 3), full=True, reduction='none'), F.poisson_nll_loss(x(0.5, 2, 0), x(0, 3, 1), False, True, reduction='none'), nn.PoissonNLLLoss()(f(2, 3), p(2, 3))]",
    "F.gaussian_nll_loss": "[F.gaussian_nll_loss(f(2, 3), f(2, 3), p(2, 3), True, reduction='none'), F.gaussian_nll_loss(f(2, 3), f(2, 3), p(2), reduction='none'), nn.GaussianNLLLoss(epsilon=0.6)(f(2, 3), f(2, 3), p(2, 1))]",
    "F.scaled_dot_product_attention": "[F.scaled_dot_product_attention(f(2, 3, 2, 4), f(2, 5, 2, 4), f(2, 5, 2, 4), f(2, 2, 3, 5)), F.scaled_dot_product_attention(f(1, 4, 2, 3), f(1, 4, 2, 3), f(1, 4, 2, 3), is_causal=True)]",
}
