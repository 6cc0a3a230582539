"""Calls of the layer functions, as expressions; recorded from Paddle 1.8.5 by
tests/tools/record_layers.py.

Names in an expression: ``fluid``, ``L`` (fluid.layers), ``I`` (fluid.initializer), ``N``
(fluid.nets), ``P`` (ParamAttr), ``np``; ``f(2, 3)`` is a new float32 data variable of that shape,
``d`` float64, ``i`` int64, ``i32`` int32, ``b`` bool, ``h`` float16; ``s`` float32 and ``si`` int64
with lod_level 1, ``ss`` float32 with 2. A list is evaluated from left to right. "seed:" before a
name sets the programs' random_seed to 90.

Importable on Python 3.8 with nothing but NumPy.
"""

# ruff: noqa: E501, SIM905, UP031

UNARY = (
    "abs acos asin atan ceil cos exp floor log logsigmoid reciprocal relu round rsqrt sigmoid sin"
    " softplus softsign sqrt square tanh tanh_shrink brelu elu hard_sigmoid hard_swish leaky_relu"
    " mish relu6 selu soft_relu stanh swish softmax log_softmax log1p cumsum erf gelu hard_shrink"
    " softshrink thresholded_relu pow sign mean reduce_sum reduce_mean reduce_max reduce_min"
    " reduce_prod logsumexp scale zeros_like ones_like has_inf has_nan isfinite is_empty shape rank"
    " size sum sums assign argmax argmin argsort flatten"
).split()
ELEMENTWISE = "add sub mul div max min pow".split()
COMPARE = "equal not_equal less_than less_equal greater_than greater_equal".split()

CASES = {}
CASES.update({"%s" % n: "L.%s(f(3, 4))" % n for n in UNARY})
CASES.update(
    {
        "%s named" % n: "L.%s(f(-1, 4), name='my')" % n
        for n in UNARY
        if n
        not in (
            "cumsum erf gelu hard_shrink softshrink thresholded_relu sign zeros_like ones_like"
            " has_inf has_nan isfinite is_empty shape rank size sum sums assign argmax argmin".split()
        )
    }
)
CASES.update(
    {
        "elementwise_" + n: "L.elementwise_%s(f(2, 3, 4), f(3,), axis=1, act='relu')" % n
        for n in ELEMENTWISE
    }
)
CASES.update(
    {
        "elementwise_%s plain" % n: "L.elementwise_%s(f(-1, 4), f(-1, 4), name='e')" % n
        for n in ELEMENTWISE
    }
)
CASES.update(
    {"elementwise_" + n: "L.elementwise_%s(i(3, 4), i(3, 4))" % n for n in ("mod", "floordiv")}
)
CASES.update({n: "L.%s(f(3, 4), f(3, 4))" % n for n in COMPARE})
CASES.update(
    {n + " cond": "L.%s(i(1), i(1), cond=L.create_tensor('bool', name='c'))" % n for n in COMPARE}
)
CASES.update({"logical_" + n: "L.logical_%s(b(3), b(3))" % n for n in ("and", "or", "xor")})
CASES.update(
    {
        "reduce_%s %s" % (n, k): "L.reduce_%s(f(2, 3, 4), %s)" % (n, a)
        for n in ("sum", "mean", "max", "min", "prod")
        for k, a in (("dim", "dim=1"), ("dims", "dim=[0, -1], keep_dim=True"))
    }
)
CASES.update({"reduce_" + n: "L.reduce_%s(b(3, 4), dim=[1])" % n for n in ("all", "any")})

DENSE = {
    "data": (
        "[L.data('a', [3]), L.data('b', [-1, 3]), L.data('c', [2, None]), L.data('d', [1],"
        " dtype='int64', lod_level=1, stop_gradient=False), L.data('e', [2, 3],"
        " append_batch_size=False), fluid.data('g', [None, 2], 'float64'), fluid.data('i', [3],"
        " dtype='int64', lod_level=1)]"
    ),
    "fc": "L.fc(f(-1, 13), 10)",
    "fc act": "L.fc(f(-1, 13), 10, act='relu', name='my')",
    "fc no bias": "L.fc(f(-1, 13), 10, bias_attr=False)",
    "fc flatten": "L.fc(f(-1, 3, 4), 10, num_flatten_dims=2, act='tanh')",
    "fc flatten -1": "L.fc(f(-1, 3, 4, 5), 10, num_flatten_dims=-1)",
    "fc image": "L.fc(f(-1, 3, 4, 5), 10)",
    "fc many": "L.fc([f(-1, 3), f(-1, 4)], 5, act='sigmoid')",
    "fc many attrs": (
        "L.fc([f(-1, 3), f(-1, 4)], 5, param_attr=[P(name='wa'), P(name='wb', learning_rate=2.0)],"
        " bias_attr='bias')"
    ),
    "fc shared": (
        "[L.fc(f(-1, 3), 4, param_attr='w', bias_attr=P(name='b')), L.fc(f(-1, 3), 4,"
        " param_attr='w', bias_attr=P(name='b'))]"
    ),
    "fc attrs": (
        "L.fc(f(-1, 3), 4, param_attr=I.Normal(0., 2.), bias_attr=P(initializer=I.Constant(0.5),"
        " trainable=False))"
    ),
    "fc float64": "L.fc(d(-1, 3), 4)",
    "fc float16": "L.fc(h(-1, 3), 4)",
    "seed:fc": "L.fc(f(-1, 3), 4)",
    "fc scope": "scoped('outer', lambda: L.fc(f(-1, 3), 4, act='relu'))",
    "fc weight_norm": (
        "L.fc(f(-1, 3), 4, param_attr=fluid.WeightNormParamAttr(dim=None, name='wn'))"
    ),
    "fc weight_norm 0": "L.fc(f(-1, 3), 4, param_attr=fluid.WeightNormParamAttr(dim=0))",
    "fc weight_norm 1": (
        "L.fc(f(-1, 3), 4, param_attr=fluid.WeightNormParamAttr(dim=1, name='wn',"
        " initializer=I.Constant(2.)))"
    ),
    "conv weight_norm 1": (
        "L.conv2d(f(-1, 2, 5, 5), 4, 3, param_attr=fluid.WeightNormParamAttr(dim=1, name='wn'))"
    ),
    "embedding": "L.embedding(i(-1, 1), [10, 4])",
    "embedding sparse": (
        "L.embedding(i(-1, 1), [10, 4], is_sparse=True, padding_idx=-2, param_attr='emb',"
        " dtype='float64')"
    ),
    "embedding distributed": (
        "L.embedding(i(-1, 1), [10, 4], is_sparse=True, is_distributed=True, padding_idx=3)"
    ),
    "fluid.embedding": "fluid.embedding(i(-1, 5), [10, 4], is_sparse=True, padding_idx=-1)",
    "fluid.one_hot": "fluid.one_hot(i(-1, 5), 7)",
    "fluid.one_hot tensor": "fluid.one_hot(i(-1, 5), i32(1), allow_out_of_range=True)",
    "one_hot": "L.one_hot(i(-1, 1), 7)",
    "one_hot tensor": "L.one_hot(i(-1, 1), i32(1), True)",
    "mul": "L.mul(f(2, 3, 4), f(12, 5), 1, 1)",
    "matmul": "L.matmul(f(2, 3, 4), f(2, 5, 4), transpose_y=True, alpha=0.5, name='mm')",
    "bmm": "L.bmm(f(2, 3, 4), f(2, 4, 5))",
    "dot": "L.dot(f(3, 4), f(3, 4))",
    "addmm": "L.addmm(f(2, 3), f(2, 4), f(4, 3), 0.5, 2.0)",
    "addcmul": "L.addcmul(f(2, 3), f(2, 3), f(2, 3), value=2.0)",
    "cos_sim": "L.cos_sim(f(2, 3), f(2, 3))",
    "bilinear_tensor_product": "L.bilinear_tensor_product(f(-1, 3), f(-1, 4), 5, act='relu')",
    "dropout": "L.dropout(f(3, 4), 0.3)",
    "dropout seed": (
        "L.dropout(f(3, 4), 0.3, seed=7, dropout_implementation='upscale_in_train', name='my')"
    ),
    "dropout test": "L.dropout(f(3, 4), 0.3, is_test=True, seed=0)",
    "seed:dropout": (
        "[L.dropout(f(3, 4), 0.3), L.dropout(f(3, 4), 0.3, seed=0), L.dropout(f(3, 4), 0.3,"
        " seed=5)]"
    ),
    "sizes of int64": (
        "[L.fill_constant([i(1), 3], 'float32', 2.), L.fill_constant(i(2), 'float32', 2.),"
        " L.zeros([2, i(1)], 'int64')]"
    ),
    "ones of int64": (
        "[L.ones([i(1), 3], 'float32'), L.ones([2, 3, i32(1)], 'float32'), L.ones([i(1), i32(1)],"
        " 'float32')]"
    ),
    "random sizes of int64": (
        "[L.gaussian_random([i(1), 3]), L.gaussian_random(i(2)), L.randint(0, 5, shape=[i(1), 3]),"
        " L.uniform_random([i(1), 2])]"
    ),
    "two layers": "[L.fc(L.fc(f(-1, 3), 4, act='relu'), 2), L.softmax(f(3, 4), axis=0)]",
    "autoincreased_step_counter": (
        "[L.autoincreased_step_counter(), L.autoincreased_step_counter(),"
        " L.autoincreased_step_counter('mine', begin=3, step=2)]"
    ),
}
CONV = {
    "conv2d": "L.conv2d(f(-1, 3, 8, 8), 4, 3)",
    "conv2d full": (
        "L.conv2d(f(-1, 4, 8, 9), 6, [3, 2], stride=[2, 1], padding=[1, 2], dilation=(1, 2),"
        " groups=2, act='relu', bias_attr=False, name='cv')"
    ),
    "conv2d same": "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding='same')",
    "conv2d valid": "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding='VALID', use_cudnn=False)",
    "conv2d pad4": "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding=[1, 2, 0, 1])",
    "conv2d pad4 symmetric": "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding=[1, 1, 2, 2])",
    "conv2d pad pairs": "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding=[[0, 0], [0, 0], [1, 2], [3, 4]])",
    "conv2d nhwc": (
        "L.conv2d(f(-1, 8, 8, 3), 4, 3, padding=[[0, 0], [1, 1], [2, 2], [0, 0]],"
        " data_format='NHWC', act='relu')"
    ),
    "conv2d depthwise": "L.conv2d(f(-1, 4, 8, 8), 8, 3, groups=4, use_cudnn=False)",
    "conv2d depthwise cudnn": "L.conv2d(f(-1, 4, 8, 8), 8, 3, groups=4)",
    "conv2d attr": (
        "L.conv2d(f(-1, 3, 8, 8), 4, 3, param_attr=P(name='w', initializer=I.MSRA()),"
        " bias_attr='b')"
    ),
    "conv2d_transpose": "L.conv2d_transpose(f(-1, 3, 8, 8), 4, filter_size=3)",
    "conv2d_transpose output": (
        "L.conv2d_transpose(f(-1, 3, 8, 8), 4, output_size=17, stride=2, padding=1, act='relu')"
    ),
    "conv2d_transpose both": (
        "L.conv2d_transpose(f(-1, 4, 8, 8), 4, output_size=[16, 16], filter_size=3, stride=2,"
        " padding=1, groups=2, bias_attr=False)"
    ),
    "conv2d_transpose same": (
        "L.conv2d_transpose(f(-1, 3, 8, 8), 4, filter_size=3, padding='SAME', dilation=2)"
    ),
    "conv2d_transpose depthwise": (
        "L.conv2d_transpose(f(-1, 4, 8, 8), 4, filter_size=3, groups=4, use_cudnn=False)"
    ),
    "conv2d_transpose pad": (
        "L.conv2d_transpose(f(-1, 3, 8, 8), 4, filter_size=3, padding=[1, 2, 0, 1])"
    ),
    "conv2d_transpose pairs": (
        "L.conv2d_transpose(f(-1, 3, 8, 8), 4, filter_size=[3, 2], padding=[[0, 0], [0, 0], [1, 1],"
        " [2, 2]])"
    ),
    "conv2d_transpose nhwc": (
        "L.conv2d_transpose(f(-1, 8, 8, 3), 4, filter_size=3, data_format='NHWC')"
    ),
    "conv3d": "L.conv3d(f(-1, 3, 4, 8, 8), 4, 3)",
    "conv3d full": (
        "L.conv3d(f(-1, 4, 4, 8, 8), 4, [1, 2, 3], stride=2, padding=[1, 1, 0, 0, 2, 2], groups=2,"
        " act='relu', bias_attr=False)"
    ),
    "conv3d pad6": "L.conv3d(f(-1, 3, 4, 8, 8), 4, 3, padding=[1, 2, 0, 0, 2, 2])",
    "conv3d pairs": (
        "L.conv3d(f(-1, 3, 4, 8, 8), 4, 3, padding=[[0, 0], [0, 0], [1, 1], [2, 2], [0, 1]])"
    ),
    "conv3d same": "L.conv3d(f(-1, 4, 8, 8, 3), 4, 3, padding='SAME', data_format='NDHWC')",
    "conv3d_transpose": (
        "L.conv3d_transpose(f(-1, 3, 4, 8, 8), 4, filter_size=3, stride=2, act='relu')"
    ),
    "conv3d_transpose output": (
        "L.conv3d_transpose(f(-1, 3, 4, 8, 8), 4, output_size=[9, 17, 17], stride=2)"
    ),
    "conv3d_transpose ndhwc": (
        "L.conv3d_transpose(f(-1, 4, 8, 8, 3), 4, filter_size=3, data_format='NDHWC')"
    ),
    "pool2d": "L.pool2d(f(-1, 3, 8, 8), 2)",
    "pool2d full": (
        "L.pool2d(f(-1, 3, 8, 9), [3, 2], 'avg', [2, 1], [1, 0], ceil_mode=True, exclusive=False,"
        " use_cudnn=False, name='p')"
    ),
    "pool2d global": "L.pool2d(f(-1, 3, 8, 8), pool_type='avg', global_pooling=True)",
    "pool2d same": "L.pool2d(f(-1, 3, 8, 8), 3, pool_padding='SAME')",
    "pool2d pad4": "L.pool2d(f(-1, 3, 8, 8), 3, pool_padding=[0, 1, 1, 0])",
    "pool2d nhwc": (
        "L.pool2d(f(-1, 8, 8, 3), 3, pool_padding=[[0, 0], [1, 1], [1, 1], [0, 0]],"
        " data_format='NHWC')"
    ),
    "pool3d": "L.pool3d(f(-1, 3, 4, 8, 8), 2, 'avg', 2)",
    "pool3d valid": "L.pool3d(f(-1, 3, 4, 8, 8), [2, 3, 3], pool_padding='VALID', ceil_mode=False)",
    "pool3d pad": "L.pool3d(f(-1, 3, 4, 8, 8), 3, pool_padding=[1, 0, 1, 1, 1, 1])",
    "adaptive_pool2d": "L.adaptive_pool2d(f(-1, 3, 8, 8), 2, 'avg')",
    "adaptive_pool2d index": "L.adaptive_pool2d(f(-1, 3, 8, 8), [2, 4], 'max', require_index=True)",
    "adaptive_pool2d max": "L.adaptive_pool2d(f(-1, 3, 8, 8), [2, 4], 'max')",
    "adaptive_pool3d": "L.adaptive_pool3d(f(-1, 3, 8, 8, 8), 2, 'avg', name='ap')",
    "adaptive_pool3d index": (
        "L.adaptive_pool3d(f(-1, 3, 8, 8, 8), [2, 2, 4], 'max', require_index=True)"
    ),
}
NORM = {
    "batch_norm": "L.batch_norm(f(-1, 3, 4, 4))",
    "batch_norm 2d": "L.batch_norm(f(-1, 6), act='relu', momentum=0.8, epsilon=1e-3)",
    "batch_norm names": (
        "L.batch_norm(f(-1, 3, 4, 4), is_test=True, param_attr='s', bias_attr=P(name='b'),"
        " moving_mean_name='mm', moving_variance_name='mv',"
        " do_model_average_for_mean_and_var=False, use_global_stats=True, name='bn', in_place=True)"
    ),
    "batch_norm nhwc": (
        "L.batch_norm(f(-1, 4, 4, 3), data_layout='NHWC', param_attr=I.Uniform(),"
        " bias_attr=I.Constant(1.0))"
    ),
    "batch_norm float16": "L.batch_norm(h(-1, 3, 4, 4))",
    "inplace_abn": "L.inplace_abn(f(-1, 3, 4, 4), act='leaky_relu', act_alpha=0.2)",
    "inplace_abn plain": (
        "L.inplace_abn(f(-1, 3, 4, 4), is_test=True, momentum=0.8, epsilon=1e-3, param_attr='s',"
        " bias_attr='b', data_layout='NCHW', name='ia', moving_mean_name='mm',"
        " moving_variance_name='mv', do_model_average_for_mean_and_var=False,"
        " use_global_stats=True)"
    ),
    "inplace_abn elu": "L.inplace_abn(d(-1, 3, 4, 4), act='elu')",
    "layer_norm": "L.layer_norm(f(-1, 3, 4))",
    "layer_norm axis": (
        "L.layer_norm(f(-1, 3, 4), scale=False, begin_norm_axis=2, epsilon=1e-3, act='tanh')"
    ),
    "layer_norm noshift": "L.layer_norm(f(-1, 3, 4), shift=False, param_attr='g')",
    "group_norm": "L.group_norm(f(-1, 4, 5, 5), 2)",
    "group_norm attrs": (
        "L.group_norm(f(-1, 4, 5, 5), 2, param_attr='s', bias_attr=P(name='b'), name='gn')"
    ),
    "group_norm none": (
        "L.group_norm(f(-1, 4, 5, 5), 2, param_attr=False, bias_attr=False, act='relu',"
        " epsilon=1e-3)"
    ),
    "group_norm nhwc": "L.group_norm(f(-1, 5, 5, 4), 2, data_layout='NHWC')",
    "instance_norm": "L.instance_norm(f(-1, 4, 5, 5))",
    "instance_norm attrs": (
        "L.instance_norm(f(-1, 4, 5, 5), 1e-3, param_attr='s', bias_attr=P(name='b'), name='inn')"
    ),
    "data_norm": "L.data_norm(f(-1, 5))",
    "data_norm full": (
        "L.data_norm(f(-1, 5), act='relu', epsilon=1e-3, param_attr={'batch_size': 10.,"
        " 'batch_sum': 1., 'batch_square': 20.}, name='dn', slot_dim=1, sync_stats=True,"
        " summary_decay_rate=0.9)"
    ),
    "data_norm scale": (
        "L.data_norm(f(-1, 5), enable_scale_and_shift=True, param_attr={'scale_w': 2.0, 'bias':"
        " 1.0})"
    ),
    "spectral_norm": (
        "L.spectral_norm(L.create_parameter([4, 3, 2], 'float32', name='w'), dim=1, power_iters=2)"
    ),
    "l2_normalize": "L.l2_normalize(f(3, 4), -1)",
    "l2_normalize 1d": "L.l2_normalize(f(3,), 1, epsilon=1e-6, name='l2')",
    "lrn": "L.lrn(f(-1, 3, 5, 5), n=3, k=2.0, alpha=1e-3, beta=0.5)",
    "affine_channel": "L.affine_channel(f(-1, 3, 4, 4), f(3), f(3), act='relu')",
    "clip": "L.clip(f(3, 4), -1.0, 1.0)",
    "clip_by_norm": "L.clip_by_norm(f(3, 4), 2.0)",
    "prelu all": "L.prelu(f(-1, 3, 4, 4), 'all')",
    "prelu channel": "L.prelu(f(-1, 3, 4, 4), 'channel', param_attr='alpha')",
    "prelu float64": "L.prelu(d(-1, 3), 'all')",
    "prelu element": "L.prelu(f(-1, 3, 4, 4), 'element', P(initializer=I.Constant(0.5)))",
    "maxout": "L.maxout(f(-1, 6, 4, 4), 2, axis=1)",
    "label_smooth": "L.label_smooth(f(-1, 6), epsilon=0.2)",
    "label_smooth prior": "L.label_smooth(f(-1, 6), prior_dist=f(1, 6))",
}
LOSS = {
    "cross_entropy": "L.cross_entropy(f(-1, 10), i(-1, 1))",
    "cross_entropy ignore": "L.cross_entropy(f(-1, 10), i(-1, 1), ignore_index=3)",
    "cross_entropy soft": "L.cross_entropy(f(-1, 10), f(-1, 10), soft_label=True)",
    "square_error_cost": "L.square_error_cost(f(-1, 1), f(-1, 1))",
    "softmax_with_cross_entropy": "L.softmax_with_cross_entropy(f(-1, 10), i(-1, 1))",
    "nce": "L.nce(f(-1, 4), i(-1, 1), 10)",
    "nce log": (
        "L.nce(f(-1, 4), i(-1, 2), 10, sample_weight=f(-1, 1), bias_attr=False, num_neg_samples=3,"
        " name='my', sampler='log_uniform', seed=5, is_sparse=True)"
    ),
    "nce custom": (
        "L.nce(d(-1, 4), i(-1, 1), 5, param_attr='w', bias_attr='b', sampler='custom_dist',"
        " custom_dist=[0.3, 0.05, 0.15, 0.2, 0.3])"
    ),
    "hsigmoid": "L.hsigmoid(f(-1, 4), i(-1, 1), 10)",
    "hsigmoid no bias": (
        "L.hsigmoid(f(-1, 4), i(-1, 1), 10, bias_attr=False, name='my', is_sparse=True)"
    ),
    "hsigmoid custom": (
        "L.hsigmoid(f(-1, 4), i(-1, 1), 10, 'w', 'b', None, i(-1, 3), i(-1, 3), True, True)"
    ),
    "sampled_softmax": "L.sampled_softmax_with_cross_entropy(f(-1, 20), i(-1, 1), 5)",
    "sampled_softmax given": (
        "L.sampled_softmax_with_cross_entropy(f(-1, 20), i(-1, 1), 3, 1, False, True, i(-1, 4),"
        " f(-1, 4), 7)"
    ),
    "continuous_value_model": (
        "[L.continuous_value_model(f(-1, 6), f(-1, 2)), L.continuous_value_model(s(-1, 6), f(-1,"
        " 2), False)]"
    ),
    "softmax_with_cross_entropy full": (
        "L.softmax_with_cross_entropy(f(-1, 10), f(-1, 10), soft_label=True, ignore_index=2,"
        " numeric_stable_mode=False, return_softmax=True)"
    ),
    "sigmoid_cross_entropy_with_logits": (
        "L.sigmoid_cross_entropy_with_logits(f(-1, 3), f(-1, 3), ignore_index=-1, normalize=True)"
    ),
    "huber_loss": "L.huber_loss(f(-1, 1), f(-1, 1), 0.5)",
    "smooth_l1": "L.smooth_l1(f(-1, 3), f(-1, 3))",
    "smooth_l1 weights": "L.smooth_l1(f(-1, 3), f(-1, 3), f(-1, 3), f(-1, 3), 2.0)",
    "log_loss": "L.log_loss(f(-1, 1), f(-1, 1), 1e-3)",
    "kldiv_loss": "L.kldiv_loss(f(-1, 3), f(-1, 3), 'batchmean')",
    "bpr_loss": "L.bpr_loss(f(-1, 4), i(-1, 1))",
    "rank_loss": "L.rank_loss(f(-1, 1), f(-1, 1), f(-1, 1))",
    "margin_rank_loss": "L.margin_rank_loss(f(-1, 1), f(-1, 1), f(-1, 1), 0.2)",
    "mse_loss": "L.mse_loss(f(-1, 1), f(-1, 1))",
    "dice_loss": "L.dice_loss(f(-1, 5, 4), i(-1, 5, 1))",
    "npair_loss": "L.npair_loss(f(6, 4), f(6, 4), f(6,))",
    "teacher_student_sigmoid_loss": "L.teacher_student_sigmoid_loss(f(-1, 1), f(-1, 1))",
    "accuracy": "L.accuracy(f(-1, 10), i(-1, 1), k=5)",
    "accuracy out": (
        "L.accuracy(f(-1, 10), i(-1, 1), correct=L.create_tensor('int32', 'c'),"
        " total=L.create_tensor('int32', 't'))"
    ),
    "auc": "L.auc(f(-1, 2), i(-1, 1), num_thresholds=200)",
    "auc pr": "L.auc(f(-1, 2), i(-1, 1), curve='PR', num_thresholds=100, slide_steps=3)",
    "mean_iou": "L.mean_iou(i32(4, 5), i32(4, 5), 3)",
    "sigmoid_focal_loss": "L.sigmoid_focal_loss(f(-1, 4), i32(-1, 1), i32(1), gamma=1.0)",
    "topk": "L.topk(f(-1, 10), 3)",
    "topk tensor": "L.topk(f(-1, 10), i32(1), name='tk')",
}
TENSOR = {
    "argmax axis": "[L.argmax(f(3, 4), -1), L.argmin(f(3, 4), 1)]",
    "argsort full": "L.argsort(f(3, 4), axis=0, descending=True, name='s')",
    "cast": (
        "[L.cast(f(3, 4), 'int64'), L.cast(i(3), fluid.core.VarDesc.VarType.FP32 if False else"
        " 'float64')]"
    ),
    "scale full": "L.scale(f(3, 4), 2.0, 1.0, bias_after_scale=False, act='relu', name='sc')",
    "scale tensor": "L.scale(f(3, 4), scale=f(1))",
    "sum": "L.sum([f(3, 4), f(3, 4)])",
    "sums": "L.sums([f(3, 4), f(3, 4)])",
    "sums out": "L.sums([f(3, 4), f(3, 4)], out=L.create_tensor('float32', name='o'))",
    "reshape": "L.reshape(f(-1, 4), [-1, 2, 2])",
    "reshape full": "L.reshape(f(2, 4), [0, -1, 2], act='relu', inplace=True, name='rs')",
    "reshape tensor": "L.reshape(f(2, 4), i32(3))",
    "reshape actual": "L.reshape(f(2, 4), [4, 2], actual_shape=i32(2))",
    "reshape list": "L.reshape(f(2, 4), [i32(1), 2, -1])",
    "transpose": "L.transpose(f(-1, 3, 4), [0, 2, 1])",
    "squeeze": "L.squeeze(f(3, 1, 4), [1])",
    "unsqueeze": "L.unsqueeze(f(3, 4), [1, -1])",
    "unsqueeze int": "L.unsqueeze(f(3, 4), 1)",
    "unsqueeze tensor": "L.unsqueeze(f(3, 4), i32(1))",
    "flatten axis": "L.flatten(f(2, 3, 4), axis=2, name='fl')",
    "concat": "L.concat([f(-1, 3), f(-1, 4)], axis=1)",
    "concat negative": "L.concat([f(2, 3), f(2, 4)], axis=-1, name='ct')",
    "concat tensor": "L.concat([f(2, 3), f(2, 3)], axis=i32(1))",
    "concat one": "L.concat(f(2, 3))",
    "split": "L.split(f(-1, 6), 3)",
    "split sections": "L.split(f(-1, 6), [1, 2, -1], dim=1, name='sp')",
    "split tensor": "L.split(f(4, 6), [i32(1), 2, 3], dim=1)",
    "split dim tensor": "L.split(f(4, 6), 2, dim=i32(1))",
    "unsqueeze list": "L.unsqueeze(f(3, 4), [i32(1), 2])",
    "stack": "L.stack([f(3, 4), f(3, 4)], axis=1)",
    "stack one": "L.stack(f(3, 4))",
    "unstack": "L.unstack(f(3, 4), axis=1)",
    "unstack num": "L.unstack(f(2, 4), axis=0, num=2)",
    "slice": "L.slice(f(-1, 5, 6), [1, 2], [0, -3], [2, 100])",
    "slice tensor": "L.slice(f(4, 5, 6), [0, 1], i32(2), [2, 3])",
    "slice partial": "L.slice(f(4, 5, 6), [0, 1], [i32(1), 1], [2, 3])",
    "slice list": "L.slice(f(4, 5, 6), [0, 1], [i32(1), 1], [2, i32(1)])",
    "strided_slice": "L.strided_slice(f(4, 5, 6), [0, 1], [0, 1], [3, 5], [1, 2])",
    "strided_slice partial": "L.strided_slice(f(4, 5, 6), [0, 1], [i32(1), 1], [3, 5], [1, 2])",
    "strided_slice list": "L.strided_slice(f(4, 5, 6), [0, 1], [i32(1), 1], [3, 5], [1, i32(1)])",
    "strided_slice tensor": "L.strided_slice(f(4, 5, 6), [0, 1], i32(2), i32(2), i32(2))",
    "gather": "L.gather(f(5, 3), i(2), overwrite=False)",
    "gather_nd": "L.gather_nd(f(5, 3), i32(2, 1), name='gn')",
    "scatter": "L.scatter(f(5, 3), i(2), f(2, 3), name='sc', overwrite=False)",
    "scatter_nd_add": "L.scatter_nd_add(f(5, 3), i(2, 1), f(2, 3))",
    "scatter_nd": "L.scatter_nd(i(2, 1), f(2, 3), [5, 3])",
    "index_select": "L.index_select(f(5, 3), i(2), dim=1)",
    "index_sample": "L.index_sample(f(5, 3), i(5, 2))",
    "expand": "L.expand(f(2, 3), [2, 1])",
    "expand tensor": "L.expand(f(2, 3), i32(2))",
    "expand list": "L.expand(f(2, 3), [2, i32(1)])",
    "expand_as": "L.expand_as(f(2, 3), f(4, 3), name='ea')",
    "pad": "L.pad(f(2, 3), [0, 1, 2, 3], 1.5)",
    "pad2d": "L.pad2d(f(-1, 3, 4, 4), [1, 2, 3, 4], 'reflect', data_format='NCHW')",
    "pad2d tensor": "L.pad2d(f(-1, 3, 4, 4), i32(4), pad_value=2.0)",
    "pad_constant_like": "L.pad_constant_like(f(4, 5), f(2, 3), 1.0)",
    "crop": "L.crop(f(5, 6), [2, 3], [1, 1])",
    "crop like": "L.crop(f(5, 6), f(2, 3), offsets=i32(2))",
    "crop plain": "L.crop(f(5, 6), f(2, 3))",
    "crop_tensor": "L.crop_tensor(f(5, 6), [2, -1], [1, 1])",
    "crop_tensor var": "L.crop_tensor(f(5, 6), i32(2), i32(2))",
    "crop_tensor list": "L.crop_tensor(f(5, 6), [i32(1), 3], [i32(1), 0])",
    "assign numpy": (
        "[L.assign(np.array([[1.5, 2]], 'float32')), L.assign(np.array([1, 2], 'int32')),"
        " L.assign(np.array([True, False])), L.assign(np.array([3, 4], 'int64'))]"
    ),
    "assign output": "L.assign(f(3, 4), L.create_tensor('float32', name='o'))",
    "assign numpy output": (
        "L.assign(np.zeros([2], 'float32'), output=L.create_tensor('float32', name='o'))"
    ),
    "multiplex": "L.multiplex([f(3, 4), f(3, 4)], i32(3, 1))",
    "shard_index": "L.shard_index(i(-1, 1), 20, 2, 0, -2)",
    "sequence_mask": "L.sequence_mask(i(4), maxlen=5, dtype='float32')",
    "sequence_mask none": "L.sequence_mask(i(4), name='sm')",
    "sequence_mask tensor": "L.sequence_mask(i(4), maxlen=i32(1))",
    "reverse": "[L.reverse(f(3, 4), 0), L.reverse(f(3, 4), [0, 1])]",
    "flip": "L.flip(f(3, 4), [0, 1])",
    "roll": "[L.roll(f(3, 4), 1), L.roll(f(3, 4), [1, 2], dims=[0, 1])]",
    "zeros": "[L.zeros([2, 3], 'float32'), L.ones([2], 'int64', force_cpu=True)]",
    "zeros_like out": (
        "[L.zeros_like(f(3), out=L.create_tensor('float32', name='z')), L.ones_like(f(3),"
        " out=L.create_tensor('float32', name='o'))]"
    ),
    "fill_constant": "L.fill_constant([2, 3], 'float32', 1.5)",
    "fill_constant ints": (
        "[L.fill_constant([1], 'int64', 3, force_cpu=True), L.fill_constant([1], 'bool', True),"
        " L.fill_constant([2], 'int32', 2.0)]"
    ),
    "fill_constant out": (
        "L.fill_constant([2], 'float32', 0.1, out=L.create_tensor('float32', name='o'))"
    ),
    "fill_constant tensor": "L.fill_constant(i32(2), 'float32', 1.0)",
    "fill_constant list": "L.fill_constant([i32(1), 3], 'float32', 1.0)",
    "fill_constant value tensor": "L.fill_constant([2], 'float32', f(1))",
    "fill_constant_batch_size_like": (
        "L.fill_constant_batch_size_like(f(-1, 3), [-1, 4], 'float32', 2.5)"
    ),
    "fill_constant_batch_size_like ints": (
        "L.fill_constant_batch_size_like(f(-1, 3), [2, -1], 'int64', 2, input_dim_idx=0,"
        " output_dim_idx=1, force_cpu=True)"
    ),
    "full": "L.full([2, 3], 1.5)",
    "full full": "L.full([2, 3], 2, dtype='int64', device='cpu', stop_gradient=False, name='fu')",
    "full_like": "[L.full_like(f(-1, 3), 1.5), L.full_like(f(2, 3), 2, dtype='int64')]",
    "create_tensor": (
        "[L.create_tensor('float32'), L.create_tensor('int64', name='mine', persistable=True)]"
    ),
    "create_parameter": (
        "[L.create_parameter([3, 4], 'float32'), L.create_parameter([3], 'float32', is_bias=True),"
        " L.create_parameter([2, 2], 'float64', name='pp', default_initializer=I.Constant(2.0)),"
        " L.create_parameter([2], 'float32', attr=P(name='qq', learning_rate=0.5))]"
    ),
    "create_global_var": (
        "[L.create_global_var([1], 0.5, 'float32'), L.create_global_var([2, 2], 3, 'int64',"
        " persistable=True, force_cpu=True, name='gg')]"
    ),
    "range": (
        "[L.range(0, 10, 2, 'int32'), L.range(0.0, i32(1) if False else 5, 1, 'float32'),"
        " L.arange(0, 4), L.arange(i(1), 5, 1, 'int64')]"
    ),
    "range mixed": "L.range(i32(1), 5, 1, 'float32')",
    "linspace": "[L.linspace(0, 10, 5, 'float32'), L.linspace(f(1), f(1), i32(1), 'float32')]",
    "diag": "[L.diag(f(3)), L.diag(np.arange(3, dtype='float32'))]",
    "eye": "[L.eye(3), L.eye(3, 4, dtype='int64'), L.eye(2, batch_shape=[3])]",
    "eye batch": "L.eye(2, batch_shape=[3, 4])",
    "diag_embed": "L.diag_embed(f(2, 3), 1, 0, 2)",
    "uniform_random": "L.uniform_random([2, 3], 'float64', -2.0, 3.0, 7)",
    "uniform_random tensor": "[L.uniform_random(i32(2)), L.uniform_random([i32(1), 3])]",
    "gaussian_random": "L.gaussian_random([2, 3], 1.0, 2.0, 5, 'float64')",
    "gaussian_random tensor": "[L.gaussian_random(i32(2)), L.gaussian_random([i32(1), 3])]",
    "seed:uniform_random": "[L.uniform_random([2, 3]), L.gaussian_random([2, 3])]",
    "uniform_random_batch_size_like": (
        "L.uniform_random_batch_size_like(f(-1, 3), [-1, 4], min=-2.0)"
    ),
    "gaussian_random_batch_size_like": (
        "L.gaussian_random_batch_size_like(f(-1, 3), [-1, 4], 0, 0, 1.0, 2.0, 3)"
    ),
    "sampling_id": "L.sampling_id(f(-1, 3), 0.1, 0.9, 7)",
    "randint": (
        "[L.randint(0, 10, [2, 3]), L.randint(5), L.randint(1, 5, shape=[2], dtype='int32', seed=3,"
        " stop_gradient=True)]"
    ),
    "randn": "[L.randn([2, 3]), L.randn([2], dtype='float64', stop_gradient=False)]",
    "randperm": "[L.randperm(5), L.randperm(5, dtype='int32', seed=3)]",
    "random_crop": "L.random_crop(f(-1, 3, 8, 8), [2, 4, 4], seed=i(1))",
    "gather_tree": "L.gather_tree(i(4, 2, 3), i(4, 2, 3))",
    "cumsum full": "L.cumsum(f(3, 4), axis=1, exclusive=True, reverse=True)",
    "pow factor": "[L.pow(f(3), 3.0), L.pow(f(3), factor=f(1)), L.pow(f(3), factor=2)]",
    "logical_not": (
        "[L.logical_not(b(3)), L.logical_not(b(3), out=L.create_tensor('bool', name='o'))]"
    ),
    "logical_and out": (
        "L.logical_and(b(3), b(3), out=L.create_tensor('bool', name='o'), name='la')"
    ),
    "less_than cpu": "L.less_than(i(1), i(1), force_cpu=True)",
    "equal broadcast": "L.equal(f(3, 4), f(4))",
    "elementwise_equal": "L.elementwise_equal(f(3), f(3))",
    "is_empty cond": "L.is_empty(f(3), cond=L.create_tensor('bool', name='c'))",
    "increment": (
        "[L.increment(L.create_global_var([1], 0.0, 'float32', name='c')),"
        " L.increment(L.fill_constant([1], 'int64', 0), 2, in_place=False)]"
    ),
    "softmax axis": "L.softmax(f(2, 3, 4), axis=1, name='sm')",
    "log_softmax full": "L.log_softmax(f(2, 3), axis=0, dtype='float64')",
    "clamp": "[L.clamp(f(3), -1.0, 1.0), L.clamp(f(3), min=0.5)]",
    "allclose": "L.allclose(f(3), f(3), 1e-3, 1e-4, True)",
    "dist": "L.dist(f(3, 4), f(3, 4), p=0)",
    "kron": "L.kron(f(2, 2), f(3, 3))",
    "trace": "L.trace(f(3, 4), 1, 0, 1)",
    "tril": "[L.tril(f(3, 4), 1), L.triu(f(3, 4))]",
    "t": "[L.t(f(3, 4)), L.t(f(3))]",
    "cross": "[L.cross(f(3, 3), f(3, 3)), L.cross(f(2, 3), f(2, 3), dim=1)]",
    "meshgrid": "L.meshgrid([f(3), f(4)])",
    "logsumexp full": "L.logsumexp(f(3, 4), dim=[-1], keepdim=True)",
    "pixel_shuffle": "L.pixel_shuffle(f(-1, 8, 3, 3), 2)",
    "space_to_depth": "L.space_to_depth(f(-1, 4, 4, 4), 2)",
    "shuffle_channel": "L.shuffle_channel(f(-1, 6, 3, 3), 2)",
    "temporal_shift": "L.temporal_shift(f(8, 4, 3, 3), 2, 0.2)",
    "unfold": "L.unfold(f(-1, 3, 8, 8), 3, 1, [1, 2], 1)",
    "image_resize": "L.image_resize(f(-1, 3, 4, 6), [8, 9], name='big')",
    "image_resize scale": (
        "L.image_resize(f(-1, 3, 4, 6), scale=1.6, resample='NEAREST', align_corners=False)"
    ),
    "image_resize both": "L.image_resize(f(-1, 3, 4, 6), (8, 9), 3)",
    "image_resize open": (
        "L.image_resize(f(-1, 3, -1, -1), scale=2, align_mode=0, align_corners=False)"
    ),
    "image_resize open size": "L.image_resize(f(-1, 3, -1, -1), [5, 7])",
    "image_resize size variable": (
        "L.image_resize(f(-1, 3, 4, 6), L.fill_constant([2], 'int32', 8))"
    ),
    "image_resize size variables": (
        "L.image_resize(f(-1, 3, 4, 6), [L.fill_constant([1], 'int32', 8), 12])"
    ),
    "image_resize scale variable": (
        "L.image_resize(f(-1, 3, 4, 6), scale=L.fill_constant([1], 'float32', 2.0))"
    ),
    "image_resize last": "L.image_resize(f(-1, 4, 6, 3), [8, 9], data_format='NHWC')",
    "interpolate": "L.interpolate(f(-1, 3, 4, 6), [8, 9], resample='BICUBIC')",
    "resize_bilinear": "L.resize_bilinear(f(-1, 3, 4, 6), [8, 9], None, 'b', None, False, 0)",
    "resize_nearest": "L.resize_nearest(f(-1, 3, 4, 6), scale=0.5)",
    "resize_trilinear": (
        "[L.resize_trilinear(f(-1, 3, 4, 6, 5), [8, 9, 10]), L.resize_trilinear(f(-1, 4, 6, 5, 3),"
        " scale=2.0, data_format='NDHWC')]"
    ),
    "image_resize_short": (
        "[L.image_resize_short(f(-1, 3, 4, 6), 7), L.image_resize_short(f(-1, 3, 9, 5), 3,"
        " 'NEAREST')]"
    ),
}
INITIALIZERS = {
    "Constant": "I.Constant(2.0)",
    "Constant cpu": "I.Constant(1, force_cpu=True)",
    "Uniform": "I.Uniform(-0.5, 0.5, seed=3)",
    "Uniform diag": "I.Uniform(diag_num=2, diag_step=2, diag_val=3.0)",
    "Normal": "I.Normal(1.0, 2.0)",
    "TruncatedNormal": "I.TruncatedNormal(0.0, 2.0, 4)",
    "Xavier": "I.Xavier()",
    "Xavier normal": "I.Xavier(uniform=False, fan_in=3)",
    "Xavier fans": "I.Xavier(fan_in=3, fan_out=5, seed=2)",
    "MSRA": "I.MSRA()",
    "MSRA normal": "I.MSRA(uniform=False, fan_in=4, seed=6)",
    "Bilinear": "I.Bilinear()",
    "NumpyArray": "I.NumpyArrayInitializer(np.arange(54).reshape(2, 3, 3, 3).astype('float32'))",
}
INIT = {}
for _dtype in ("float32", "float16"):
    INIT.update(
        {
            "init %s %s"
            % (
                n,
                _dtype,
            ): (
                "L.create_parameter([2, 3, 3, 3], '%s', name='w', default_initializer=%s)"
                % (_dtype, e)
            )
            for n, e in INITIALIZERS.items()
        }
    )
INIT.update(
    {
        "seed:init " + n: (
            "L.create_parameter([2, 3, 3, 3], 'float32', name='w', default_initializer=%s)" % e
        )
        for n, e in INITIALIZERS.items()
    }
)
INIT["init NumpyArray int32"] = (
    "L.create_parameter([3], 'int32', name='w',"
    " default_initializer=I.NumpyArrayInitializer(np.arange(3)))"
)
INIT["init Xavier shapes"] = "[L.create_parameter(s, 'float64') for s in ([3], [3, 4], [3, 4, 5])]"
INIT["init seed kept"] = (
    "[L.create_parameter([3], 'float32', default_initializer=i_) for i_ in [I.Uniform()] * 2]"
)

SCHEDULES = {
    "exponential_decay": "L.exponential_decay(0.1, 10, 0.5)",
    "exponential_decay staircase": "L.exponential_decay(0.1, 10, 0.5, staircase=True)",
    "natural_exp_decay": "L.natural_exp_decay(0.1, 10, 0.5)",
    "natural_exp_decay staircase": "L.natural_exp_decay(0.1, 10, 0.5, True)",
    "inverse_time_decay": "L.inverse_time_decay(0.1, 10, 0.5)",
    "inverse_time_decay staircase": "L.inverse_time_decay(0.1, 10, 0.5, True)",
    "polynomial_decay": "L.polynomial_decay(0.1, 10, 0.01, 2.0)",
    "polynomial_decay cycle": "L.polynomial_decay(0.1, 10, 0.01, 2.0, cycle=True)",
    "piecewise_decay": "L.piecewise_decay([10, 20], [0.1, 0.05, 0.01])",
    "noam_decay": "L.noam_decay(512, 100)",
    "noam_decay rate": "L.noam_decay(512, 100, learning_rate=2.0)",
    "cosine_decay": "L.cosine_decay(0.1, 100, 10)",
    "linear_lr_warmup": "L.linear_lr_warmup(0.1, 50, 0.0, 0.1)",
    "linear_lr_warmup int": "L.linear_lr_warmup(1, 50, 0.0, 0.1)",
    "linear_lr_warmup decay": "L.linear_lr_warmup(L.cosine_decay(0.1, 100, 10), 50, 0.0, 0.1)",
    "two schedules": "[L.exponential_decay(0.1, 10, 0.5), L.noam_decay(64, 10)]",
    "Switch": "switch(fluid, False)",
    "Switch default": "switch(fluid, True)",
    "Switch reads": "switch_reads(fluid)",
    "Switch nested": "switch_nested(fluid)",
}
NETS = {
    "simple_img_conv_pool": "N.simple_img_conv_pool(f(-1, 1, 28, 28), 20, 5, 2, 2, act='relu')",
    "simple_img_conv_pool full": (
        "N.simple_img_conv_pool(f(-1, 4, 28, 28), 20, 5, 2, 2, pool_padding=1, pool_type='avg',"
        " conv_stride=2, conv_padding=2, conv_groups=2, bias_attr=False, use_cudnn=False)"
    ),
    "img_conv_group": "N.img_conv_group(f(-1, 3, 8, 8), [4, 5], 2, conv_act='relu', pool_stride=2)",
    "img_conv_group bn": (
        "N.img_conv_group(f(-1, 3, 8, 8), [4, 5], 2, conv_padding=[1, 1], conv_filter_size=3,"
        " conv_act='relu', conv_with_batchnorm=[True, False], conv_batchnorm_drop_rate=[0.3, 0.0],"
        " pool_stride=2, pool_type='avg')"
    ),
    "img_conv_group drop": (
        "N.img_conv_group(f(-1, 3, 8, 8), (4, 5), 2, param_attr=[P(name='a'), P(name='b')],"
        " conv_with_batchnorm=True, conv_batchnorm_drop_rate=0.4)"
    ),
    "glu": "N.glu(f(3, 6))",
    "scaled_dot_product_attention": (
        "N.scaled_dot_product_attention(f(3, 5, 8), f(3, 6, 8), f(3, 6, 10), num_heads=2,"
        " dropout_rate=0.1)"
    ),
    "scaled_dot_product_attention 1": (
        "N.scaled_dot_product_attention(f(3, 5, 8), f(3, 6, 8), f(3, 6, 10))"
    ),
}
OPERATORS = {
    "operators": (
        "[f(3) + f(3), f(-1, 3) - f(-1, 3), f(2, 3) * f(3), f(2, 3) / d(2, 3), f(3) ** f(3), i(3)"
        " // i(3), i(3) % i(3), -f(-1, 3)]"
    ),
    "operators unknown": (
        "[f(-1, 3) * f(3), f(3) / f(-1, 3), f(-1, 3) < i(-1, 3), f(-1, 3) == f(-1, 3)]"
    ),
    "operators numbers": (
        "[f(3) + 1, 2 - f(3), f(3) * 0.5, f(3) / 4, f(3) ** 2, i(3) / 2, i(3) // 2, i(3) % 2, f(3)"
        " // 2.0, f(3) >= 1]"
    ),
    "operators reversed": "[2 / f(3), 2.0 / f(-1, 3), 2 ** f(2, -1), 1 + f(-1)]",
}
for _part in (OPERATORS, DENSE, CONV, NORM, LOSS, TENSOR, INIT, SCHEDULES, NETS):
    CASES.update(_part)

ERRORS = [
    "L.dynamic_gru(i(-1, 12), 4)",
    "L.dynamic_gru(s(-1, 12), 4, h_0=f(-1, 5))",
    "L.dynamic_lstm(s(-1, 16), 16, bias_attr=False)",
    "L.linear_chain_crf(s(-1, 5), s(-1, 1))",
    "L.crf_decoding(s(-1, 5), P(name='nope'))",
    "L.crf_decoding(s(-1, 5), None)",
    "L.sequence_pool(s(-1, 3), 'median')",
    "L.sequence_concat(s(-1, 3))",
    "L.lod_reset(s(-1, 3))",
    "L.lod_append(s(-1, 3), 3)",
    "L.lod_append(None, [0, 1])",
    "L.sequence_softmax(i(-1, 1))",
    "L.sequence_pad(s(-1, 3), 0.0)",
    "L.fc('x', 10)",
    "L.fc(i(-1, 3), 10)",
    "L.fc([f(-1, 3), 'x'], 10)",
    "L.fc([f(-1, 3), d(-1, 3)], 10)",
    "L.fc([f(-1, 3), f(-1, 3)], 10, param_attr=['a', 'b', 'c'])",
    "L.fc(f(-1, 3), 10, act=3)",
    "L.fc(f(-1, 3), 10, param_attr=3)",
    "L.embedding(f(-1, 1), [10, 4])",
    "L.embedding(i(-1, 1), [10, 4], dtype='int64')",
    "L.data(3, [1])",
    "L.data('a', 3)",
    "L.dropout(i(3), 0.5)",
    "L.conv2d(i(-1, 3, 8, 8), 4, 3)",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, use_cudnn=1)",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, data_format='NCDHW')",
    "L.conv2d(f(-1, -1, 8, 8), 4, 3)",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, groups=2)",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding='SOME')",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, padding=[[0, 1], [0, 0], [1, 1], [1, 1]])",
    "L.conv2d(f(-1, 3, 8, 8), 4, [3, 3, 3])",
    "L.conv2d(f(-1, 3, 8, 8), 4, 'a')",
    "L.conv2d(f(-1, 3, 8, 8), 4, 3, param_attr=False)",
    "L.pool2d(f(-1, 3, 8, 8), 2, 'sum')",
    "L.pool2d(f(-1, 3, 8, 8), -1)",
    "L.pool2d(f(-1, 3, 8, 8), 2, data_format='X')",
    "L.pool2d(f(-1, 3, 8, 8), 2, use_cudnn=0)",
    "L.pool2d(f(-1, 3, 8, 8), 2, pool_padding='VALID', ceil_mode=True)",
    "L.pool2d(f(-1, 3, 8, 8), 2, pool_padding='no')",
    "L.adaptive_pool2d(f(-1, 3, 8, 8), 2, 'sum')",
    "L.adaptive_pool2d(f(-1, 3, 8, 8), 2, 'avg', require_index=True)",
    "L.conv2d_transpose(f(-1, 3, 8, 8), 4)",
    "L.conv2d_transpose(f(-1, 3, 8, 8), 4, filter_size=3, data_format='X')",
    "L.batch_norm(i(-1, 3, 4, 4))",
    "L.layer_norm(i(-1, 3))",
    "L.group_norm(f(-1, 4, 5, 5), 2, data_layout='X')",
    "L.lrn(f(3, 4))",
    "L.inplace_abn(f(-1, 3, 4, 4), act='relu')",
    "L.inplace_abn(f(-1, 3, 4, 4), bias_attr=False)",
    "L.inplace_abn(i(-1, 3, 4, 4))",
    "L.random_crop('x', [3])",
    "L.random_crop(f(3), 3)",
    "L.gather_tree(f(4, 2, 3), 'x')",
    "L.batch_norm(f(-1, 3, 4, 4), bias_attr=False)",
    "L.batch_norm(f(-1, 3, 4, 4), param_attr=False)",
    "L.instance_norm(f(-1, 4, 5, 5), bias_attr=False)",
    "L.lrn(f(1, 3, 4, 4), data_format='X')",
    "L.prelu(f(-1, 3), 'some')",
    "L.cross_entropy(i(-1, 10), i(-1, 1))",
    "L.cross_entropy('x', i(-1, 1))",
    "L.square_error_cost(i(-1, 1), f(-1, 1))",
    "L.accuracy(i(-1, 10), i(-1, 1))",
    "L.auc(i(-1, 2), i(-1, 1))",
    "L.auc(f(-1, 2), f(-1, 1))",
    "L.mean(i(3))",
    "L.mean('x')",
    "L.relu('x')",
    "L.relu(i(3))",
    "L.tanh(i(3))",
    "L.softmax(i(3, 4))",
    "L.mul(i(2, 3), f(3, 4))",
    "L.matmul(f(2, 3), f(4, 5))",
    "L.matmul(f(2, 3, 4), f(3, 4, 5))",
    "L.matmul(i(2, 3), f(3, 5))",
    "L.elementwise_add('x', f(3))",
    "L.elementwise_add(b(3), f(3))",
    "L.reduce_sum('x')",
    "L.reduce_sum(b(3))",
    "L.reshape(f(2, 3), 6)",
    "L.reshape(f(2, 3), [-1, -1])",
    "L.reshape(f(2, 3), [2, 3, 0])",
    "L.reshape(f(2, 3), [-2, 3])",
    "L.transpose(f(2, 3), [0])",
    "L.transpose(f(2, 3), [0, 5])",
    "L.transpose(f(2, 3), 1)",
    "L.squeeze(f(2, 1), 1)",
    "L.unsqueeze(f(2), 'a')",
    "L.flatten(f(2, 3), 5)",
    "L.flatten('x')",
    "L.concat([f(2, 3), 'x'])",
    "L.concat([f(2, 3), i(2, 3)])",
    "L.concat([f(2, 3)], axis='a')",
    "L.split(f(4, 6), 'a')",
    "L.split(f(4, 6), 4, dim=1)",
    "L.split(f(4, 6), [1, 2, 3], dim=[1])",
    "L.slice(f(4, 5), [0], 0, [1])",
    "L.expand(f(2, 3), 2)",
    "L.pad2d(i32(-1, 3, 4, 4), 1)",
    "L.cast(f(3), 'string')",
    "L.cast('x', 'int64')",
    "L.assign('x')",
    "L.assign(np.zeros([2], 'int8'))",
    "L.one_hot(f(-1, 1), 3)",
    "L.one_hot(i(-1, 1), 2.5)",
    "L.fill_constant([2], 'uint8', 1)",
    "L.fill_constant('x', 'float32', 1)",
    "L.fill_constant(2, 'float32', 1)",
    "L.create_parameter([3], 'string')",
    "L.create_parameter([3], 'int64')",
    "L.create_parameter(3, 'float32')",
    "L.create_global_var(3, 1.0, 'float32')",
    "L.less_than('x', f(3))",
    "L.less_than(f(3), 3)",
    "L.equal(f(3), 3)",
    "L.logical_and(f(3), b(3))",
    "L.increment(b(1))",
    "L.increment(f(1), 'a')",
    "L.eye(-1)",
    "L.eye(2.5)",
    "L.eye(2, batch_shape=3)",
    "L.shard_index(i(-1, 1), 20, 2, 2)",
    "L.kldiv_loss(f(3), i(3))",
    "L.label_smooth(f(3), epsilon=2.0)",
    "L.huber_loss(i(3), f(3), 1.0)",
    "L.log_loss(i(3), f(3))",
    "L.margin_rank_loss(f(3), 1, f(3))",
    "L.rank_loss(f(3), 1, f(3))",
    "L.rank_loss(1, f(3), f(3))",
    "L.clip(i(3), 0., 1.)",
    "L.clip_by_norm(f(3), 'a')",
    "L.maxout(f(-1, 6, 4, 4), 2, axis=2)",
    "L.argsort(b(3))",
    "L.sum('x')",
    "L.sums('x')",
    "L.stack(['x'])",
    "L.gather('x', i(3))",
    "L.gather_nd(f(3), f(3))",
    "L.scatter('x', i(2), f(2))",
    "L.scatter_nd_add(f(3), i(1, 1), d(1))",
    "L.diag('x')",
    "L.unstack('x')",
    "L.has_inf('x')",
    "L.isfinite('x')",
    "L.is_empty('x')",
    "L.multiplex([f(3, 4)], i32(3, 1))",
    "L.crop(f(3), 3)",
    "L.uniform_random(3)",
    "L.range('x', 1, 1, 'int32')",
    "L.polynomial_decay(0.1, 'x')",
    "L.piecewise_decay([10], [0.1])",
    "L.linear_lr_warmup('x', 10, 0.0, 0.1)",
    "N.scaled_dot_product_attention(f(3, 5), f(3, 5), f(3, 5))",
    "N.scaled_dot_product_attention(f(3, 5, 8), f(3, 6, 9), f(3, 6, 10))",
    "N.scaled_dot_product_attention(f(3, 5, 8), f(3, 6, 8), f(3, 6, 10), num_heads=3)",
    "I.Uniform(low=1.0, high=0.0)",
    "I.Constant(None)",
    "I.NumpyArrayInitializer([1.0])",
    "I.Uniform(diag_num=2)",
    "P(name='')",
    "P(name=3)",
    "P(learning_rate='a')",
    "P(trainable=1)",
    "L.create_parameter([2, 3], 'float32', default_initializer=I.Bilinear())",
    "L.create_parameter([1, 1, 2, 3], 'float32', default_initializer=I.Bilinear())",
    "L.create_parameter([2], 'float64', default_initializer=I.NumpyArrayInitializer(np.zeros(2)))",
    "L.spectral_norm(i(3, 4))",
    "L.instance_norm(i(1, 2, 3, 4))",
    "L.instance_norm(f(1, 2, 3, 4), param_attr=False)",
    "L.l2_normalize(i(3, 4), 1)",
    "L.topk('x', 1)",
    "fluid.data('x', 3)",
    "fluid.data(3, [1])",
    "fluid.data('x', [1, 'a'])",
    "fluid.embedding(f(3), [3, 4])",
    "L.strided_slice(f(3), [0], 1, [2], [1])",
    "L.image_resize(f(1, 3, 4, 6))",
    "L.image_resize(f(1, 3, 4, 6), [8])",
    "L.image_resize(f(1, 3, 4, 6), [8, 0])",
    "L.image_resize(f(1, 3, 4, 6), 8)",
    "L.image_resize(f(1, 3, 4, 6), [8, 9], resample='BICUBIC')",
    "L.image_resize(f(1, 3, 4), [8, 9])",
    "L.image_resize(f(1, 3, 4, 6), [8, 9, 9], resample='TRILINEAR')",
    "L.image_resize(f(1, 3, 4, 6), scale=0)",
    "L.image_resize(f(1, 3, 4, 6), scale='2')",
    "L.image_resize(f(1, 3, 4, 6), [8, 9], align_corners=1)",
    "L.image_resize(f(1, 3, 4, 6), [8, 9], align_mode=2)",
    "L.image_resize(f(1, 3, 4, 6), [8, 9], data_format='NCDHW')",
    "L.image_resize(f(1, 3, 4, 6), [8, 9], actual_shape=[1, 2])",
    "L.image_resize_short(f(1, 3, 4), 3)",
    "L.interpolate(f(1, 3, 4, 6), [8, 9], resample='LINEAR')",
    "switch_errors(fluid, 'case outside')",
    "switch_errors(fluid, 'default first')",
    "switch_errors(fluid, 'not bool')",
]


SEQUENCES = {
    "dynamic_gru": "L.dynamic_gru(s(-1, 12), 4)",
    "dynamic_gru args": (
        "L.dynamic_gru(f(-1, 12), 4, P(name='w'), P(name='b'), True, 'relu', 'sigmoid', f(-1, 4),"
        " True)"
    ),
    "dynamic_lstm": "L.dynamic_lstm(s(-1, 16), 16)",
    "dynamic_lstm args": (
        "L.dynamic_lstm(f(-1, 16), 16, f(-1, 4), f(-1, 4), use_peepholes=False, is_reverse=True,"
        " gate_activation='tanh', name='my')"
    ),
    "linear_chain_crf": (
        "L.linear_chain_crf(s(-1, 5), si(-1, 1), P(name='crfw', learning_rate=0.1))"
    ),
    "linear_chain_crf length": "L.linear_chain_crf(f(-1, 7, 5), i(-1, 7, 1), length=i(-1, 1))",
    "crf_decoding": (
        "[L.linear_chain_crf(s(-1, 5), si(-1, 1), P(name='crfw')), L.crf_decoding(s(-1, 5),"
        " P(name='crfw')), L.crf_decoding(s(-1, 5), P(name='crfw'), si(-1, 1))]"
    ),
    "crf_decoding length": (
        "[L.linear_chain_crf(f(-1, 7, 5), i(-1, 7, 1), P(name='w'), i(-1, 1)), L.crf_decoding(f(-1,"
        " 7, 5), P(name='w'), length=i(-1, 1))]"
    ),
    "sequence_pool": (
        "[L.sequence_pool(s(-1, 3), k) for k in ('sum', 'average', 'sqrt', 'max', 'last', 'first')]"
    ),
    "sequence_pool 2": "L.sequence_pool(ss(-1, 3), 'MAX', is_test=True, pad_value=2.5)",
    "sequence_first_step": "L.sequence_first_step(s(-1, 3))",
    "sequence_last_step": "L.sequence_last_step(s(-1, 3))",
    "sequence_softmax": "L.sequence_softmax(s(-1, 1), use_cudnn=True, name='my')",
    "sequence_expand": "L.sequence_expand(f(-1, 3), s(-1, 1))",
    "sequence_expand level": "L.sequence_expand(i(-1, 3), ss(-1, 1), ref_level=0, name='my')",
    "sequence_expand_as": "L.sequence_expand_as(f(-1, 3), s(-1, 1), name='my')",
    "sequence_reverse": "L.sequence_reverse(s(-1, 3), name='my')",
    "sequence_concat": "L.sequence_concat([s(-1, 3), s(-1, 3)])",
    "sequence_pad": "L.sequence_pad(s(-1, 3), L.fill_constant([1], 'float32', 0.0))",
    "sequence_pad maxlen": (
        "L.sequence_pad(s(-1, 3), L.fill_constant([3], 'float32', 0.0), maxlen=9, name='my')"
    ),
    "lod_reset": "L.lod_reset(s(-1, 3), si(-1, 1))",
    "lod_reset target": "L.lod_reset(f(6, 3), target_lod=[0, 2, 6])",
    "lod_append": "L.lod_append(s(-1, 3), [0, 1, 3])",
    "tagging": (
        "L.fc(L.concat([L.dynamic_gru(L.fc(L.embedding(si(-1, 1), [9, 4]), 12), 4),"
        " L.dynamic_gru(L.fc(L.embedding(si(-1, 1), [9, 4]), 12), 4, is_reverse=True)], axis=1), 5)"
    ),
    "ragged": (
        "[L.softmax(s(-1, 3)), L.transpose(s(-1, 3), [1, 0]), L.reduce_sum(s(-1, 3), dim=1),"
        " L.mean(s(-1, 3)), L.reshape(s(-1, 4), [0, 2, 2]), s(-1, 3) * 2.0 + s(-1, 3),"
        " L.dropout(s(-1, 3), 0.5)]"
    ),
}
CASES.update(SEQUENCES)
RECURRENCES = {
    "gru_unit": "L.gru_unit(f(-1, 12), f(-1, 4), 12)",
    "gru_unit args": "L.gru_unit(f(-1, 12), f(-1, 4), 12, P(name='w'), False, origin_mode=True)",
    "gru_unit bias": "L.gru_unit(d(-1, 12), d(-1, 4), 12, bias_attr=P(name='b'))",
    "lstm_unit": "L.lstm_unit(f(-1, 3), f(-1, 4), f(-1, 4))",
    "lstm_unit args": (
        "L.lstm_unit(f(-1, 3), f(-1, 4), f(-1, 4), 1.5, P(name='w'), P(name='b'), name='my')"
    ),
    "lstm": "L.lstm(f(4, 3, 5), f(1, 3, 6), f(1, 3, 6), 4, 6, 1)",
    "lstm args": (
        "L.lstm(d(-1, 3, 5), d(4, 3, 6), d(4, 3, 6), 9, 6, 2, 0.3, True, True, 'my',"
        " I.Constant(0.5), 7)"
    ),
    "filter_by_instag": "L.filter_by_instag(s(-1, 4), si(-1, 1), i(-1), True)",
    "filter_by_instag args": "L.filter_by_instag(d(-1, 4), si(-1, 1), i(-1), False, 3)",
    "dynamic_lstmp": "L.dynamic_lstmp(s(-1, 16), 16, 5)",
    "dynamic_lstmp args": (
        "L.dynamic_lstmp(s(-1, 16), 16, 5, None, P(name='b'), use_peepholes=False, is_reverse=True,"
        " proj_activation='relu', cell_clip=2.5, proj_clip=1.5, name='my')"
    ),
    "sequence_conv": "L.sequence_conv(s(-1, 4), 5)",
    "sequence_conv args": (
        "L.sequence_conv(s(-1, 4), 5, 4, padding_start=-3, bias_attr=False, param_attr=P(name='w'),"
        " act='tanh', name='my')"
    ),
    "row_conv": "L.row_conv(s(-1, 4), 2, P(name='w'), 'relu')",
    "sequence_slice": "L.sequence_slice(s(-1, 3), i(-1, 1), i(-1, 1), name='my')",
    "sequence_unpad": (
        "[L.sequence_unpad(f(-1, 5, 3), i(-1)), L.sequence_unpad(f(-1, 5), i(-1), name='my')]"
    ),
    "sequence_reshape": "L.sequence_reshape(s(-1, 6), 3)",
    "sequence_scatter": "L.sequence_scatter(f(-1, 6), si(-1, 1), s(-1, 1), name='my')",
    "sequence_enumerate": "L.sequence_enumerate(si(-1, 1), 3, 2, name='my')",
    "im2sequence": (
        "[L.im2sequence(f(-1, 3, 8, 8), 2, 2), L.im2sequence(f(-1, 3, 8, 8), [2, 1], [1, 2], [0, 1,"
        " 2, 0], f(-1, 2), 4)]"
    ),
    "warpctc": "L.warpctc(s(-1, 6), L.cast(si(-1, 1), 'int32'))",
    "warpctc length": "L.warpctc(f(7, -1, 6), i32(-1, 4), 5, True, i(-1), i(-1))",
    "ctc_greedy_decoder": "L.ctc_greedy_decoder(s(-1, 6), 5)",
    "ctc_greedy_decoder length": "L.ctc_greedy_decoder(f(-1, 7, 6), 0, i(-1, 1), padding_value=3)",
    "edit_distance": "L.edit_distance(si(-1, 1), si(-1, 1))",
    "edit_distance args": "L.edit_distance(si(-1, 1), si(-1, 1), False, [0, 3])",
    "edit_distance length": (
        "L.edit_distance(i(-1, 5), i(-1, 6), input_length=i(-1, 1), label_length=i(-1, 1))"
    ),
    "chunk_eval": "L.chunk_eval(si(-1, 1), si(-1, 1), 'IOB', 3)",
    "chunk_eval args": "L.chunk_eval(i(-1, 7, 1), i(-1, 7, 1), 'IOBES', 3, [1, 2], i(-1, 1))",
    "sequence_expand rows": "L.sequence_expand(s(-1, 3), ss(-1, 1), ref_level=0)",
    "sequence_conv_pool": "N.sequence_conv_pool(s(-1, 4), 5, 3)",
}
CASES.update(RECURRENCES)


def static_rnn(fluid, x=None, y=None, z=None):
    """a memory of each kind, two inputs, two outputs, a parameter that is used twice, a variable
    from outside
    """
    L = fluid.layers
    x = fluid.data("x", [5, -1, 3]) if x is None else x
    y = fluid.data("y", [5, -1, 2]) if y is None else y
    outside = L.fc(fluid.data("z", [-1, 4]) if z is None else z, 4)
    loop = L.StaticRNN(name="loop")
    with loop.step():
        a, b = loop.step_input(x), loop.step_input(y)
        m = loop.memory(shape=[-1, 4], batch_ref=a, init_value=0.5)
        n = loop.memory(init=outside)
        h = L.fc(
            [a, m], 4, act="tanh", param_attr=[fluid.ParamAttr(name="v"), fluid.ParamAttr(name="w")]
        )
        k = L.elementwise_add(
            L.fc(n, 4, param_attr=fluid.ParamAttr(name="w"), bias_attr=False), L.fc(b, 4)
        )
        loop.update_memory(m, h)
        loop.update_memory(n, L.elementwise_mul(k, outside))
        loop.output(h, k)
    return loop()


CELLS = {
    "StaticRNN": "static_rnn(fluid)",
    "rnn": "L.rnn(L.GRUCell(6), f(4, 5, 3))",
    "rnn lstm": (
        "L.rnn(L.LSTMCell(6, param_attr=P(name='w'), forget_bias=0.5), f(4, 5, 3),"
        " sequence_length=i(4), is_reverse=True)"
    ),
    "rnn time major": (
        "L.rnn(L.GRUCell(6, P(name='w'), P(name='b'), L.tanh, L.relu), f(5, 4, 3), f(4, 6),"
        " time_major=True)"
    ),
    "initial states": (
        "[L.LSTMCell(6).get_initial_states(f(-1, 3), init_value=1.5), L.GRUCell(6,"
        " name='g').get_initial_states(i(3, -1), [4, 5], batch_dim_idx=1)]"
    ),
}
CASES.update(CELLS)
CASES.update(
    {
        "reduce_%s every dim" % n: (
            "[L.reduce_%s(%s(3), dim=-1), L.reduce_%s(%s(2, 3), dim=[1, 0])]" % (n, k, n, k)
        )
        for n, k in (("sum", "f"), ("max", "f"), ("all", "b"))
    }
)
DISTRIBUTIONS = {
    "sample numbers": "L.Uniform(0., 2.).sample([3])",
    "sample list seed": "L.Uniform([1., 2.], 3.).sample([5, 3], seed=7)",
    "sample variables": "L.Uniform(f(-1, 2), f(-1, 2)).sample([5])",
    "sample float64": "L.Uniform(d(2), d(2)).sample([2])",
    "log_prob": "L.Uniform(f(-1, 2), f(-1, 2)).log_prob(f(-1, 2))",
    "log_prob broadcast": "L.Uniform(np.zeros((2, 1), 'int64'), np.ones((1, 3))).log_prob(d(2, 3))",
    "entropy": "L.Uniform([0., 1.], [2., 3.]).entropy()",
    "normal sample numbers": "L.Normal(0., 2.).sample([3])",
    "normal sample list seed": "L.Normal([1., 2.], [3., 4.]).sample([5, 3], seed=7)",
    "normal sample variables": "L.Normal(f(-1, 2), f(-1, 2)).sample([5])",
    "normal entropy": "L.Normal([1., 2.], [3., 4.]).entropy()",
    "normal entropy variables": "L.Normal(f(-1, 2), f(-1, 2)).entropy()",
    "normal log_prob": "L.Normal(0., 2.).log_prob(f(2))",
    "normal kl_divergence": "L.Normal(0., 2.).kl_divergence(L.Normal([1., 2.], [3., 4.]))",
    "categorical entropy": "L.Categorical([1., 2.]).entropy()",
    "categorical kl_divergence": "L.Categorical(f(-1, 4)).kl_divergence(L.Categorical(f(-1, 4)))",
    "multivariate entropy": "L.MultivariateNormalDiag([1., 2.], [[1., 0.], [0., 2.]]).entropy()",
    "multivariate kl_divergence": (
        "L.MultivariateNormalDiag(f(2), f(2, 2)).kl_divergence(L.MultivariateNormalDiag(f(2), f(2,"
        " 2)))"
    ),
}
CASES.update({"distributions " + name: expression for name, expression in DISTRIBUTIONS.items()})
ERRORS += [
    "L.Uniform(1, 2.)",
    "L.Uniform(f(2), 2.)",
    "L.Uniform([1., 2.], [1., 2., 3.])",
    "L.Uniform(0., 1.).sample(3)",
    "L.Uniform(0., 1.).sample((3,))",
    "L.Uniform(0., 1.).sample([3], seed=1.5)",
    "L.Uniform(0., 1.).log_prob(1.)",
    "L.Normal(0., None)",
    "L.Normal(0., 1.).kl_divergence(3)",
    "L.Categorical(1.)",
    "L.Categorical([1.]).kl_divergence(L.Normal(0., 1.))",
    "L.MultivariateNormalDiag(1., [[1.]])",
]
REGIONS = {
    "affine_grid": (
        "[L.affine_grid(f(-1, 2, 3), [2, 3, 4, 5]), L.affine_grid(f(2, 2, 3), (2, 3, 4, 5),"
        " name='my'), L.affine_grid(f(2, 2, 3), i32(4))]"
    ),
    "grid_sampler": "L.grid_sampler(f(-1, 3, 4, 5), f(-1, 4, 5, 2), 'my')",
    "similarity_focus": "L.similarity_focus(f(-1, 3, 4, 5), 1, [0, 2], 'my')",
    "center_loss": "L.center_loss(f(-1, 6), i(-1, 1), 10, 0.1, P(name='w'))",
    "center_loss args": (
        "L.center_loss(f(-1, 6), i(-1, 1), 10, L.fill_constant([1], 'float32', 0.2),"
        " P(initializer=I.Constant(1.5)), False)"
    ),
    "fsp_matrix": "L.fsp_matrix(f(-1, 3, 4, 5), f(-1, 2, 4, 5))",
    "deformable_conv": (
        "L.deformable_conv(f(-1, 4, 8, 8), f(-1, 18, 8, 8), f(-1, 9, 8, 8), 6, 3, padding=1)"
    ),
    "deformable_conv args": (
        "L.deformable_conv(f(-1, 4, 8, 8), f(-1, 24, 4, 3), f(-1, 12, 4, 3), 6, [2, 3], [2, 3], [0,"
        " 1], [1, 1], 2, 2, 1, P(name='w'), P(name='b'), name='my')"
    ),
    "deformable_conv plain": (
        "L.deformable_conv(f(-1, 4, 8, 8), f(-1, 18, 8, 8), None, 6, 3, padding=1, bias_attr=False,"
        " modulated=False)"
    ),
    "deformable_roi_pooling": (
        "L.deformable_roi_pooling(f(-1, 8, 9, 9), s(-1, 4), f(-1, 2, 2, 2), False, 0.5, [1, 1], 2,"
        " 2, [2, 2], 3, 0.2)"
    ),
    "deformable_roi_pooling sensitive": (
        "L.deformable_roi_pooling(f(-1, 8, 9, 9), s(-1, 4), f(-1, 2, 2, 2), True, group_size=[2,"
        " 2], pooled_height=2, pooled_width=2, position_sensitive=True, name='my')"
    ),
    "psroi_pool": "L.psroi_pool(f(-1, 12, 9, 9), s(-1, 4), 3, 0.5, 2, 2, 'my')",
    "prroi_pool": (
        "[L.prroi_pool(f(-1, 3, 9, 9), s(-1, 4), 0.5, 2, 3), L.prroi_pool(f(-1, 3, 9, 9), f(-1, 4),"
        " batch_roi_nums=i(-1), name='my')]"
    ),
    "roi_align": (
        "[L.roi_align(f(-1, 3, 9, 9), s(-1, 4), 2, 3, 0.5, 2, 'my'), L.roi_align(f(-1, 3, 9, 9),"
        " f(-1, 4), rois_lod=i(-1))]"
    ),
    "roi_pool": (
        "[L.roi_pool(f(-1, 3, 9, 9), s(-1, 4), 2, 3, 0.5), L.roi_pool(f(-1, 3, 9, 9), f(-1, 4),"
        " rois_lod=i(-1))]"
    ),
    "roi_perspective_transform": (
        "L.roi_perspective_transform(f(-1, 3, 9, 9), s(-1, 8), 4, 5, 0.5, 'my')"
    ),
    "generate_proposals": (
        "L.generate_proposals(f(-1, 3, 4, 5), f(-1, 12, 4, 5), f(-1, 3), f(4, 5, 3, 4), f(4, 5,"
        " 3, 4))"
    ),
    "generate_proposals args": (
        "L.generate_proposals(f(-1, 3, 4, 5), f(-1, 12, 4, 5), f(-1, 3), f(4, 5, 3, 4), f(4, 5, 3,"
        " 4), 100, 20, 0.7, 2.0, 0.9, 'my', True)"
    ),
    "rpn_target_assign": (
        "L.rpn_target_assign(f(-1, 60, 4), f(-1, 60, 1), f(60, 4), f(60, 4), s(-1, 4),"
        " L.cast(si(-1, 1), 'int32'), f(-1, 3))"
    ),
    "rpn_target_assign args": (
        "L.rpn_target_assign(f(-1, 60, 4), f(-1, 60, 1), f(60, 4), f(60, 4), s(-1, 4),"
        " L.cast(si(-1, 1), 'int32'), f(-1, 3), 64, 1.0, 0.25, 0.6, 0.4, False)"
    ),
    "retinanet_target_assign": (
        "L.retinanet_target_assign(f(-1, 60, 4), f(-1, 60, 3), f(60, 4), f(60, 4), s(-1, 4),"
        " L.cast(si(-1, 1), 'int32'), L.cast(si(-1, 1), 'int32'), f(-1, 3), 3, 0.6, 0.3)"
    ),
    "generate_proposal_labels": (
        "L.generate_proposal_labels(s(-1, 4), L.cast(si(-1, 1), 'int32'), L.cast(si(-1, 1),"
        " 'int32'), s(-1, 4), f(-1, 3), class_nums=5)"
    ),
    "generate_proposal_labels args": (
        "L.generate_proposal_labels(s(-1, 4), L.cast(si(-1, 1), 'int32'), L.cast(si(-1, 1),"
        " 'int32'), s(-1, 4), f(-1, 3), 64, 0.5, 0.6, 0.4, 0.1, [0.2, 0.2, 0.4, 0.4], 3, False,"
        " True, True)"
    ),
    "generate_mask_labels": (
        "L.generate_mask_labels(f(-1, 3), L.cast(si(-1, 1), 'int32'), L.cast(si(-1, 1), 'int32'),"
        " fluid.data('p', [-1, 2], 'float32', 3), s(-1, 4), L.cast(si(-1, 1), 'int32'), 5, 14)"
    ),
    "collect_fpn_proposals": (
        "L.collect_fpn_proposals([s(-1, 4), s(-1, 4)], [s(-1, 1), s(-1, 1)], 2, 3, 100, 'my')"
    ),
    "distribute_fpn_proposals": "L.distribute_fpn_proposals(s(-1, 4), 2, 4, 3, 224, 'my')",
}
CASES.update(REGIONS)


def switch(fluid, default):
    """a Switch of two cases, and a default"""
    L = fluid.layers
    step = L.fill_constant([1], "float32", 3.0)
    out = L.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    one, two = L.fill_constant([1], "float32", 1.0), L.fill_constant([1], "float32", 2.0)
    with L.Switch() as s:
        with s.case(step < one):
            L.assign(one, out)
        with s.case(L.less_than(step, two)):
            L.assign(L.scale(two, 2.0), out)
        if default:
            with s.default():
                L.assign(step, out)
    return out


def switch_reads(fluid):
    """a case that reads its condition, what it wrote, and a parameter, and writes a temporary of
    the outer block
    """
    L = fluid.layers
    x = L.fill_constant([1], "float32", 3.0)
    w = L.create_parameter([1], "float32", name="w")
    yes = L.less_than(x, w)
    with L.Switch() as s, s.case(yes):
        y = L.elementwise_add(x, w)
        L.assign(L.cast(yes, "float32"), y)
        L.assign(y, x)
    return x


def switch_nested(fluid):
    """a Switch within a case"""
    L = fluid.layers
    out = L.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    one = L.fill_constant([1], "float32", 1.0)
    with L.Switch() as s:
        with s.case(L.less_than(out, one)):
            inner = L.fill_constant([1], "float32", 5.0)
            with L.Switch() as t:
                with t.case(L.less_than(out, inner)):
                    L.assign(inner, out)
                with t.default():
                    L.assign(one, out)
        with s.default():
            L.assign(one, out)
    return out


def switch_errors(fluid, what):
    L = fluid.layers
    one = L.fill_constant([1], "float32", 1.0)
    s = L.Switch()
    if what == "case outside":
        with s.case(L.less_than(one, one)):
            pass
    with s:
        if what == "default first":
            with s.default():
                pass
        elif what == "case after default":
            with s.case(L.less_than(one, one)):
                L.assign(one)
            with s.default():
                L.assign(one)
            with s.case(L.less_than(one, one)):
                L.assign(one)
        else:
            with s.case(one):
                L.assign(one)


def namespace(fluid):
    """what the expressions see"""
    import numpy as np

    count = iter(range(100))

    def data(dtype):
        return lambda *shape: fluid.data("x%d" % next(count), list(shape), dtype)

    def scoped(name, call):
        with fluid.name_scope(name):
            return call()

    def ragged(dtype, levels):
        return lambda *shape: fluid.data("x%d" % next(count), list(shape), dtype, lod_level=levels)

    kinds = {
        "f": "float32",
        "d": "float64",
        "i": "int64",
        "i32": "int32",
        "b": "bool",
        "h": "float16",
    }
    return dict(
        {k: data(v) for k, v in kinds.items()},
        fluid=fluid,
        s=ragged("float32", 1),
        si=ragged("int64", 1),
        ss=ragged("float32", 2),
        L=fluid.layers,
        I=fluid.initializer,
        N=fluid.nets,
        P=fluid.ParamAttr,
        np=np,
        scoped=scoped,
        switch=switch,
        switch_nested=switch_nested,
        switch_reads=switch_reads,
        switch_errors=switch_errors,
        static_rnn=static_rnn,
    )


def results(value):
    """the names of the variables that a call returned, nested as it returned them"""
    if isinstance(value, (list, tuple)):
        return [results(v) for v in value]
    return value.name if hasattr(value, "name") else value


def dtype_variants(name):
    """(position, expression with {} for the kind) for each data variable of a case, to see which
    dtypes a layer takes
    """
    import re

    expression = CASES[name]
    if name.startswith("seed:") or name in SCHEDULES or name in INIT or expression.startswith("["):
        return []
    found = [m for m in re.finditer(r"\b(f|d|i|i32|b|h)\((?=[-0-9])", expression)]
    return [
        (k, expression[: m.start()] + "%s(" + expression[m.end() :]) for k, m in enumerate(found)
    ]


DETECTION = {
    "prior_box": "L.prior_box(f(-1, 8, 4, 5), f(-1, 3, 40, 50), [10.], [20.], [2.], flip=True, steps=[8., 9.])",
    "prior_box plain": "L.prior_box(f(-1, 8, 4, 5), f(-1, 3, 40, 50), 10., name='p')",
    "density_prior_box": "L.density_prior_box(f(-1, 8, 4, 5), f(-1, 3, 40, 50), [2, 1], [8., 4.], [1.], clip=True)",
    "density_prior_box flat": "L.density_prior_box(f(-1, 8, 4, 5), f(-1, 3, 40, 50), [2], [8.], [1.], flatten_to_2d=True, name='d')",
    "anchor_generator": "L.anchor_generator(f(-1, 8, 4, 5), [32., 64.], 1., stride=[16., 16.])",
    "iou_similarity": "L.iou_similarity(f(-1, 4), f(7, 4), box_normalized=False)",
    "box_coder": "L.box_coder(f(7, 4), f(7, 4), f(-1, 4))",
    "box_coder list": "L.box_coder(f(7, 4), [.1, .1, .2, .2], f(-1, 7, 4), 'decode_center_size', False, 'c', 0)",
    "polygon_box_transform": "L.polygon_box_transform(f(-1, 8, 4, 5))",
    "yolo_box": "L.yolo_box(f(-1, 14, 4, 4), i32(-1, 2), [10, 13, 16, 30], 2, 0.1, 32)",
    "yolov3_loss": "L.yolov3_loss(f(-1, 14, 4, 4), f(-1, 6, 4), i32(-1, 6), [10, 13, 16, 30, 33, 23], [1, 2], 2, 0.7, 32, f(-1, 6), False)",
    "box_clip": "L.box_clip(s(-1, 4), f(-1, 3))",
    "box_decoder_and_assign": "L.box_decoder_and_assign(f(-1, 4), f(4,), f(-1, 12), f(-1, 3), 4.)",
    "bipartite_match": "L.bipartite_match(f(-1, 7), 'per_prediction', 0.4)",
    "bipartite_match plain": "L.bipartite_match(f(-1, 7), name='m')",
    "target_assign": "L.target_assign(s(-1, 1, 4), i32(-1, 7), mismatch_value=3)",
    "multi_box_head": "L.multi_box_head([f(-1, 8, 4, 4), f(-1, 8, 2, 2), f(-1, 8, 1, 1)], f(-1, 3, 32, 32), 32, 3, [[2.], [2., 3.], [2.]], 20, 90)",
    "multi_box_head one": "L.multi_box_head([f(-1, 8, 4, 4)], f(-1, 3, 32, 32), 32, 3, [[2.]], min_sizes=[8.], max_sizes=[16.], steps=[8.])",
    "detection_output": "L.detection_output(f(-1, 7, 4), f(-1, 7, 3), f(7, 4), f(7, 4))",
    "detection_output index": "L.detection_output(f(-1, 7, 4), f(-1, 7, 3), f(7, 4), f(7, 4), return_index=True)",
    "multiclass_nms": "L.multiclass_nms(f(-1, 7, 4), f(-1, 3, 7), 0.1, 40, 20)",
    "locality_aware_nms": "L.locality_aware_nms(f(-1, 7, 4), f(-1, 1, 7), 0.1, 40, 20)",
    "matrix_nms": "L.matrix_nms(f(-1, 7, 4), f(-1, 3, 7), 0.1, 0.2, 40, 20, return_index=True)",
    "retinanet_detection_output": "L.retinanet_detection_output([f(-1, 7, 4)], [f(-1, 7, 2)], [f(7, 4)], f(-1, 3))",
}  # fmt: skip
CASES.update(DETECTION)
CONTRIB = {
    "contrib ctr_metric_bundle": "fluid.contrib.layers.ctr_metric_bundle(f(-1, 1), f(-1, 1))",
    "contrib partial_concat": "fluid.contrib.layers.partial_concat([f(-1, 4), f(-1, 4)], 1, 2)",
    "contrib partial_sum": "fluid.contrib.layers.partial_sum([f(-1, 4), f(-1, 4)], 1)",
    "contrib rank_attention": (
        "fluid.contrib.layers.rank_attention(f(-1, 2), i32(-1, 7), [18, 3], P(name='w'), 3)"
    ),
    "contrib tdm_child": (
        "fluid.contrib.layers.tdm_child(i32(-1, 1), 7, 2, P(name='t'), dtype='int64')"
    ),
    "contrib tdm_sampler": (
        "fluid.contrib.layers.tdm_sampler(i32(-1, 1), [1, 2], [2, 4], 4, P(name='t'), P(name='l'))"
    ),
    "contrib search_pyramid_hash": (
        "fluid.contrib.layers.search_pyramid_hash(si(-1, 1), 8, 37, 3, 4, .5, 1, False, 10, 12, 3,"
        " .1, P(name='w'), P(name='a'), P(name='b'), distribute_update_vars=['w'])"
    ),
    "contrib tdm_sampler flat": (
        "fluid.contrib.layers.tdm_sampler(i32(-1, 1), [1, 2], [2, 4], 4, None, None, False, False,"
        " 3, dtype='int64')"
    ),
}
CASES.update(CONTRIB)
