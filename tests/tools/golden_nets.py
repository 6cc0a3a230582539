"""The networks and optimizers that record_golden.py records, as data (see resolve() there) or as
builders.
"""

import inspect
import textwrap


def call(name, /, **args):
    return {"@": name, "args": args}


def P(**args):
    return call("ParamAttr", **args)


def O(kind, /, **args):
    return call("optimizer." + kind, **args)


def step(fn, out, /, **args):
    return {"fn": fn, "out": out, "args": args}


def L(fn, out, /, **args):
    return step("layers." + fn, out, **args)


def data(name, shape, dtype="float32", **args):
    return L("data", name, name=name, shape=shape, dtype=dtype, **args)


def fixed(name, shape, dtype="float32"):
    return data(name, shape, dtype, append_batch_size=False)


def L1(c=0.01):
    return call("regularizer.L1Decay", regularization_coeff=c)


def L2(c=0.01):
    return call("regularizer.L2Decay", regularization_coeff=c)


CLIPS = {
    "value": call("clip.GradientClipByValue", max=0.5, min=-0.5),
    "norm": call("clip.GradientClipByNorm", clip_norm=1.0),
    "global_norm": call("clip.GradientClipByGlobalNorm", clip_norm=1.0),
}
SGD = {"sgd": O("SGD", learning_rate=0.1)}


def net(*steps, **more):
    return {"steps": list(steps), "loss": more.get("loss", "loss")}


def total(*keys):
    """the means of these results, added up as the loss"""
    steps = [L("mean", "m%d" % i, x="$" + k) for i, k in enumerate(keys)]
    return steps + [L("sums", "loss", input=["$m%d" % i for i in range(len(keys))])]


def fit_a_line(*last):
    return net(
        data("x", [13]),
        data("y", [1]),
        L("fc", "pred", input="$x", size=1),
        L("square_error_cost", "cost", input="$pred", label="$y"),
        L("mean", "loss", x="$cost"),
        *last,
    )


OPTIMIZERS = {
    "sgd": O("SGD", learning_rate=0.1),
    "momentum": O("Momentum", learning_rate=0.1, momentum=0.9),
    "nesterov": O("Momentum", learning_rate=0.1, momentum=0.9, use_nesterov=True),
    "lars_momentum": O("LarsMomentum", learning_rate=0.1, momentum=0.9),
    "adagrad": O("Adagrad", learning_rate=0.1),
    "adagrad_initial": O("Adagrad", learning_rate=0.1, initial_accumulator_value=0.1),
    "decayed_adagrad": O("DecayedAdagrad", learning_rate=0.1),
    "adadelta": O("Adadelta", learning_rate=0.1, epsilon=1e-6, rho=0.95),
    "adam": O("Adam"),
    "adam_lazy": O("Adam", learning_rate=0.01, beta1=0.8, beta2=0.99, lazy_mode=True),
    "adamax": O("Adamax", learning_rate=0.1),
    "rmsprop": O("RMSProp", learning_rate=0.1),
    "rmsprop_centered": O("RMSProp", learning_rate=0.1, rho=0.9, momentum=0.5, centered=True),
    "ftrl": O("Ftrl", learning_rate=0.1, l1=0.1, l2=0.2),
    "lamb": O("Lamb", learning_rate=0.1, lamb_weight_decay=0.02),
    "dpsgd": O("Dpsgd", learning_rate=0.1, clip=5.0, batch_size=8.0, sigma=0.5),
    "sgd_named_l1": O("SGD", learning_rate=0.1, regularization=L1(), name="named"),
    "adam_l2": O("Adam", learning_rate=0.1, regularization=L2()),
}

PIECEWISE = call("layers.piecewise_decay", boundaries=[100, 200], values=[0.1, 0.01, 0.001])
COSINE = call("layers.cosine_decay", learning_rate=0.1, step_each_epoch=10, epochs=5)
NOAM = call("layers.noam_decay", d_model=64, warmup_steps=100)
RATES = {
    "piecewise": PIECEWISE,
    "cosine": COSINE,
    "noam": NOAM,
    "noam_scaled": call("layers.noam_decay", d_model=64, warmup_steps=100, learning_rate=2.0),
    "exponential": call(
        "layers.exponential_decay", learning_rate=0.1, decay_steps=10, decay_rate=0.9
    ),
    "exponential_stairs": call(
        "layers.exponential_decay",
        learning_rate=0.1,
        decay_steps=10,
        decay_rate=0.9,
        staircase=True,
    ),
    "natural_exp": call(
        "layers.natural_exp_decay", learning_rate=0.1, decay_steps=10, decay_rate=0.9
    ),
    "natural_exp_stairs": call(
        "layers.natural_exp_decay",
        learning_rate=0.1,
        decay_steps=10,
        decay_rate=0.9,
        staircase=True,
    ),
    "inverse_time": call(
        "layers.inverse_time_decay", learning_rate=0.1, decay_steps=10, decay_rate=0.9
    ),
    "inverse_time_stairs": call(
        "layers.inverse_time_decay",
        learning_rate=0.1,
        decay_steps=10,
        decay_rate=0.9,
        staircase=True,
    ),
    "polynomial": call(
        "layers.polynomial_decay",
        learning_rate=0.1,
        decay_steps=10,
        end_learning_rate=0.01,
        power=2.0,
    ),
    "polynomial_cycle": call(
        "layers.polynomial_decay",
        learning_rate=0.1,
        decay_steps=10,
        end_learning_rate=0.01,
        power=2.0,
        cycle=True,
    ),
    "warmup": call(
        "layers.linear_lr_warmup", learning_rate=0.1, warmup_steps=50, start_lr=0.01, end_lr=0.1
    ),
    "warmup_piecewise": call(
        "layers.linear_lr_warmup",
        learning_rate=PIECEWISE,
        warmup_steps=50,
        start_lr=0.01,
        end_lr=0.1,
    ),
    "warmup_cosine": call(
        "layers.linear_lr_warmup", learning_rate=COSINE, warmup_steps=50, start_lr=0.01, end_lr=0.1
    ),
}


def rates(kind="SGD", only=None, **args):
    return {
        "%s_%s" % (kind.lower(), k): O(kind, learning_rate=v, **args)
        for k, v in RATES.items()
        if not only or k in only
    }


def clipped():
    table = {"sgd_" + k: O("SGD", learning_rate=0.1, grad_clip=c) for k, c in CLIPS.items()}
    table.update(
        {
            "adam_l2_" + k: O("Adam", learning_rate=0.1, grad_clip=c, regularization=L2())
            for k, c in CLIPS.items()
        }
    )
    table["momentum_l1_global_norm"] = O(
        "Momentum",
        learning_rate=0.1,
        momentum=0.9,
        grad_clip=CLIPS["global_norm"],
        regularization=L1(),
    )
    return table


def classify(feature, classes=10):
    return [
        L("fc", "prob", input="$" + feature, size=classes, act="softmax"),
        data("label", [1], "int64"),
        L("cross_entropy", "ce", input="$prob", label="$label"),
        L("mean", "loss", x="$ce"),
        L("accuracy", "acc", input="$prob", label="$label"),
    ]


CONV_BN = net(
    data("img", [3, 16, 16]),
    L("conv2d", "c1", input="$img", num_filters=8, filter_size=3, padding=1, bias_attr=False),
    L("batch_norm", "b1", input="$c1", act="relu"),
    L("pool2d", "p1", input="$b1", pool_size=2, pool_stride=2),
    L("dropout", "d1", x="$p1", dropout_prob=0.3),
    L(
        "conv2d",
        "c2",
        input="$d1",
        num_filters=8,
        filter_size=3,
        act="relu",
        param_attr=P(regularizer=L1(0.001)),
    ),
    L(
        "batch_norm",
        "b2",
        input="$c2",
        momentum=0.8,
        epsilon=1e-3,
        param_attr=P(name="bn_scale", regularizer=L2(0.1)),
        bias_attr=P(name="bn_bias"),
        moving_mean_name="bn_mean",
        moving_variance_name="bn_var",
    ),
    L("dropout", "d2", x="$b2", dropout_prob=0.5, dropout_implementation="upscale_in_train"),
    *classify("d2"),
)

PARAM_ATTRS = net(
    data("x", [8]),
    L(
        "fc",
        "h",
        input="$x",
        size=6,
        act="relu",
        bias_attr=P(name="b1", learning_rate=2.0),
        param_attr=P(
            name="w1",
            learning_rate=0.5,
            regularizer=L1(),
            initializer=call("initializer.Xavier", uniform=False),
        ),
    ),
    L(
        "fc",
        "h2",
        input="$h",
        size=6,
        act="tanh",
        bias_attr=False,
        param_attr=P(name="w2", regularizer=L2(), initializer=call("initializer.MSRA")),
    ),
    L(
        "fc",
        "h3",
        input="$h2",
        size=6,
        param_attr=P(name="w3", trainable=False),
        bias_attr=P(
            name="b3", learning_rate=0.0, initializer=call("initializer.Constant", value=0.5)
        ),
    ),
    L(
        "fc",
        "h4",
        input=["$h3", "$h"],
        size=5,
        act="sigmoid",
        param_attr=P(initializer=call("initializer.Normal", loc=0.1, scale=0.2, seed=3)),
    ),
    L(
        "fc",
        "h5",
        input="$h4",
        size=5,
        param_attr=P(initializer=call("initializer.TruncatedNormal", scale=0.2)),
        bias_attr=P(initializer=call("initializer.Uniform", low=-0.1, high=0.1, seed=5)),
    ),
    *classify("h5", 4),
)

NORMS = net(
    data("x", [4, 6, 6]),
    L("conv2d", "c", input="$x", num_filters=4, filter_size=1),
    L("layer_norm", "ln", input="$c"),
    L("layer_norm", "ln2", input="$ln", scale=False, shift=False, begin_norm_axis=2, epsilon=1e-4),
    L("group_norm", "gn", input="$ln2", groups=2, act="relu"),
    L("instance_norm", "inorm", input="$gn"),
    L("l2_normalize", "l2", x="$inorm", axis=1),
    L("lrn", "lrn", input="$l2", n=3, alpha=1e-3),
    L("batch_norm", "bn", input="$lrn", is_test=True),
    L("batch_norm", "bn2", input="$bn", use_global_stats=True, data_layout="NHWC"),
    L("spectral_norm", "sn", weight="$w", dim=1, power_iters=2),
    L("reduce_sum", "snsum", input="$sn"),
    *total("bn2", "snsum"),
)
NORMS["steps"].insert(1, L("create_parameter", "w", shape=[3, 4], dtype="float32", name="sn_w"))

CONVS = net(
    data("x", [4, 12, 12]),
    L(
        "conv2d",
        "c1",
        input="$x",
        num_filters=8,
        filter_size=3,
        groups=2,
        dilation=2,
        stride=1,
        padding="SAME",
    ),
    L(
        "conv2d",
        "c2",
        input="$c1",
        num_filters=8,
        filter_size=3,
        groups=8,
        padding=1,
        use_cudnn=False,
    ),
    L(
        "conv2d",
        "c3",
        input="$c2",
        num_filters=4,
        filter_size=[3, 1],
        padding=[1, 0],
        act="relu",
        bias_attr=False,
    ),
    L("conv2d_transpose", "t1", input="$c3", num_filters=3, filter_size=4, stride=2, padding=1),
    L(
        "conv2d_transpose",
        "t2",
        input="$c3",
        num_filters=4,
        output_size=[14, 14],
        groups=2,
        padding=0,
        act="sigmoid",
    ),
    L(
        "pool2d",
        "p1",
        input="$t1",
        pool_size=3,
        pool_type="avg",
        pool_stride=2,
        pool_padding=1,
        exclusive=False,
    ),
    L("pool2d", "p2", input="$t2", pool_size=3, pool_stride=2, ceil_mode=True),
    L("pool2d", "p3", input="$c3", pool_type="avg", global_pooling=True),
    L("adaptive_pool2d", "p4", input="$c3", pool_size=[3, 3], pool_type="avg"),
    L("adaptive_pool2d", "p5", input="$c3", pool_size=2, pool_type="max"),
    data("v", [2, 4, 6, 6]),
    L("conv3d", "c4", input="$v", num_filters=2, filter_size=3, padding=1),
    L("pool3d", "p6", input="$c4", pool_size=2, pool_stride=2),
    L("pixel_shuffle", "ps", x="$c3", upscale_factor=2),
    L("maxout", "mo", x="$c3", groups=2),
    L("space_to_depth", "sd", x="$c3", blocksize=2),
    *total("p1", "p2", "p3", "p4", "p5", "p6", "ps", "mo", "sd"),
)

SHAPES = net(
    fixed("x", [4, 6]),
    L("fc", "h", input="$x", size=8),
    L("split", ["s0", "s1"], input="$h", num_or_sections=2, dim=1),
    L("split", ["s2", "s3", "s4"], input="$h", num_or_sections=[2, 4, -1], dim=-1),
    L("concat", "cat", input=["$s0", "$s3"], axis=1),
    L("stack", "st", x=["$s0", "$s1"], axis=1),
    L("reshape", "rs", x="$st", shape=[0, -1, 2]),
    L("transpose", "tr", x="$rs", perm=[2, 0, 1]),
    L("slice", "sl", input="$tr", axes=[1, 2], starts=[1, 0], ends=[3, -1]),
    L("strided_slice", "ss", input="$tr", axes=[2], starts=[0], ends=[4], strides=[2]),
    L("assign", "idx", input=call("layers.fill_constant", shape=[3], dtype="int64", value=1)),
    L("gather", "ga", input="$h", index="$idx"),
    L("unsqueeze", "us", input="$cat", axes=[1]),
    L("squeeze", "sq", input="$us", axes=[1]),
    L("flatten", "fl", x="$tr", axis=2),
    L("expand", "ex", x="$s2", expand_times=[1, 3]),
    L("expand_as", "ea", x="$s2", target_tensor="$h"),
    L("pad", "pd", x="$h", paddings=[0, 1, 2, 3], pad_value=0.5),
    L("unstack", ["u0", "u1"], x="$st", axis=1),
    L("reverse", "rv", x="$h", axis=[0]),
    L("cast", "ca", x="$h", dtype="float64"),
    L("cast", "cb", x="$ca", dtype="float32"),
    L(
        "gather_nd",
        "gn",
        input="$h",
        index=call("layers.fill_constant", shape=[2, 1], dtype="int64", value=2),
    ),
    L("scatter", "sc", input="$h", index="$idx", updates="$ga"),
    L("crop_tensor", "cr", x="$h", shape=[2, 3], offsets=[1, 2]),
    L("unsqueeze", "im", input="$tr", axes=[0]),
    L("pad2d", "p2", input="$im", paddings=[1, 1, 2, 2], mode="reflect"),
    L("shape", "shp", input="$h"),
    *total(
        "sl",
        "ss",
        "ga",
        "sq",
        "fl",
        "ex",
        "ea",
        "pd",
        "u0",
        "u1",
        "rv",
        "cb",
        "gn",
        "sc",
        "cr",
        "p2",
        "s4",
    ),
)

MATH = net(
    fixed("x", [2, 3, 4]),
    fixed("x2", [2, 3, 4]),
    L("create_parameter", "w", shape=[3], dtype="float32", name="w_mid"),
    L("create_parameter", "v", shape=[4, 5], dtype="float32", name="v_mat"),
    L("elementwise_add", "a", x="$x", y="$w", axis=1, act="relu"),
    L("elementwise_sub", "b", x="$a", y="$x2"),
    L("elementwise_mul", "c", x="$b", y="$w", axis=1),
    L("elementwise_div", "d", x="$c", y="$w", axis=1),
    L("elementwise_max", "e", x="$d", y="$x2"),
    L("elementwise_min", "f", x="$e", y="$a"),
    L("elementwise_pow", "g", x="$f", y="$w", axis=1),
    L("matmul", "h", x="$g", y="$v"),
    L("matmul", "i", x="$h", y="$h", transpose_y=True, alpha=0.5),
    L("mul", "j", x="$g", y="$v", x_num_col_dims=2),
    L("reduce_sum", "k", input="$j", dim=1),
    L("reduce_mean", "l", input="$j", dim=[0, 2], keep_dim=True),
    L("reduce_max", "m_", input="$j", dim=-1),
    L("reduce_min", "n", input="$j"),
    L("reduce_prod", "o", input="$j", dim=0),
    L("clip", "p", x="$j", min=-0.5, max=0.5),
    L("clip_by_norm", "q", x="$k", max_norm=1.0),
    L("scale", "r", x="$p", scale=2.0, bias=1.0, bias_after_scale=False, act="tanh"),
    L("pow", "s", x="$r", factor=3.0),
    L("cumsum", "t", x="$s", axis=1, exclusive=True),
    L("sum", "u", x=["$s", "$t", "$s"]),
    L(
        "elementwise_mod",
        "mod",
        x=call("layers.fill_constant", shape=[3], dtype="int64", value=7),
        y=call("layers.fill_constant", shape=[3], dtype="int64", value=4),
    ),
    L("cos_sim", "cs", X="$k", Y="$k"),
    L("bilinear_tensor_product", "bt", x="$k", y="$k", size=3),
    L("reduce_all", "ra", input=call("layers.less_than", x="$x", y="$x2")),
    *total("i", "k", "l", "m_", "n", "o", "q", "u", "cs", "bt"),
)

LOSSES = net(
    fixed("x", [4, 6]),
    fixed("soft", [4, 5]),
    fixed("hard", [4, 1], "int64"),
    fixed("y", [4, 5]),
    L("fc", "h", input="$x", size=5),
    L("softmax", "pr", input="$h"),
    L("softmax_with_cross_entropy", "a", logits="$h", label="$soft", soft_label=True),
    L(
        "softmax_with_cross_entropy",
        ["b", "bs"],
        logits="$h",
        label="$hard",
        ignore_index=2,
        return_softmax=True,
    ),
    L("sigmoid_cross_entropy_with_logits", "c", x="$h", label="$soft", normalize=True),
    L("huber_loss", "d", input="$h", label="$y", delta=0.5),
    L("smooth_l1", "e", x="$h", y="$y", sigma=2.0),
    L("kldiv_loss", "f", x="$pr", target="$soft", reduction="sum"),
    L("cross_entropy", "g", input="$pr", label="$soft", soft_label=True),
    L("mse_loss", "i", input="$h", label="$y"),
    L(
        "log_loss",
        "j",
        input=call("layers.slice", input="$pr", axes=[1], starts=[0], ends=[1]),
        label=call("layers.slice", input="$soft", axes=[1], starts=[0], ends=[1]),
    ),
    L("label_smooth", "ls", label="$soft", epsilon=0.1),
    L("cross_entropy", "k", input="$pr", label="$ls", soft_label=True),
    L("slice", "left", input="$h", axes=[1], starts=[0], ends=[1]),
    L("slice", "right", input="$h", axes=[1], starts=[1], ends=[2]),
    L("slice", "lab", input="$soft", axes=[1], starts=[0], ends=[1]),
    L("rank_loss", "l", label="$lab", left="$left", right="$right"),
    L("margin_rank_loss", "m", label="$lab", left="$left", right="$right", margin=0.2),
    L("bpr_loss", "n", input="$pr", label="$hard"),
    L("dice_loss", "o", input="$pr", label="$hard"),
    L("teacher_student_sigmoid_loss", "p", input="$left", label="$lab"),
    *total("a", "b", "c", "d", "e", "f", "g", "i", "j", "k", "l", "m", "n", "o", "p"),
)

SIMPLE = (
    "relu sigmoid logsigmoid tanh tanh_shrink exp abs softplus softsign square reciprocal sin cos"
    " sqrt rsqrt log atan acos asin elu relu6 leaky_relu soft_relu hard_sigmoid swish brelu"
    " hard_swish stanh gelu selu softmax softshrink hard_shrink thresholded_relu erf ceil floor"
    " round sign log1p"
).split()


def activations():
    """each applied to the same layer, so that its gradient has many parts"""
    steps = [fixed("x", [4, 6]), L("fc", "h", input="$x", size=6)]
    keys = []
    for fn in SIMPLE:
        steps.append(L(fn, "o_" + fn, **{"input" if fn == "softmax" else "x": "$h"}))
        keys.append("o_" + fn)
    steps += [
        L("prelu", "p1", x="$h", mode="all"),
        L("unsqueeze", "h4", input="$h", axes=[2, 3]),
        L("prelu", "p2", x="$h4", mode="channel", param_attr=P(name="alpha")),
        L("prelu", "p3", x="$h", mode="element"),
    ]
    steps += [
        L("gelu", "g2", x="$h", approximate=True),
        L("leaky_relu", "lr2", x="$h", alpha=0.3),
        L("log_softmax", "lsm", input="$h"),
    ]
    return net(*(steps[:-1] + total(*(keys + ["p1", "p2", "p3", "g2", "lr2"]))))


EMBEDDINGS = net(
    data("ids", [1], "int64"),
    data("seq", [5], "int64"),
    L("embedding", "e1", input="$ids", size=[20, 6], padding_idx=3, param_attr=P(name="table")),
    L("embedding", "e2", input="$ids", size=[20, 6], param_attr=P(name="table"), is_sparse=False),
    L("embedding", "e3", input="$ids", size=[30, 6], is_sparse=True, padding_idx=-1),
    step("embedding", "e4", input="$seq", size=[20, 6], param_attr=P(name="table2")),
    L("reduce_mean", "e5", input="$e4", dim=1),
    L("one_hot", "o1", input="$ids", depth=6),
    step("one_hot", "o2", input="$seq", depth=7),
    L("sums", "s", input=["$e1", "$e2", "$e3", "$e5", "$o1"]),
    *classify("s", 4),
)

IMAGE_NETS = net(
    data("img", [3, 16, 16]),
    step(
        "nets.img_conv_group",
        "g",
        input="$img",
        conv_num_filter=[4, 4],
        pool_size=2,
        conv_act="relu",
        conv_with_batchnorm=[True, False],
        conv_batchnorm_drop_rate=[0.3, 0.0],
        pool_stride=2,
    ),
    step(
        "nets.simple_img_conv_pool",
        "p",
        input="$g",
        num_filters=6,
        filter_size=3,
        pool_size=2,
        pool_stride=2,
        pool_type="avg",
        act="relu",
    ),
    *classify("p"),
)

ATTENTION = net(
    data("x", [6, 8]),
    L("fc", "q", input="$x", size=8, num_flatten_dims=2, bias_attr=False),
    L("fc", "k", input="$x", size=8, num_flatten_dims=2, bias_attr=False),
    L("fc", "v", input="$x", size=8, num_flatten_dims=2),
    step(
        "nets.scaled_dot_product_attention",
        "a",
        queries="$q",
        keys="$k",
        values="$v",
        num_heads=2,
        dropout_rate=0.1,
    ),
    step("nets.glu", "g", input="$a", dim=-1),
    L("layer_norm", "n", input="$g", begin_norm_axis=2),
    *classify("n", 4),
)

SEQUENCES = net(
    data("words", [1], "int64", lod_level=1),
    L("embedding", "emb", input="$words", size=[50, 8]),
    L("fc", "f4", input="$emb", size=32),
    L("dynamic_lstm", ["h", "c"], input="$f4", size=32, use_peepholes=True),
    L("fc", "f3", input="$emb", size=24),
    L("dynamic_gru", "gru", input="$f3", size=8, is_reverse=True),
    L("sequence_pool", "p1", input="$h", pool_type="max"),
    L("sequence_last_step", "p2", input="$gru"),
    L("sequence_first_step", "p3", input="$gru"),
    step("nets.sequence_conv_pool", "p4", input="$emb", num_filters=6, filter_size=3, act="tanh"),
    L("sequence_softmax", "sm", input=call("layers.fc", input="$emb", size=1)),
    L("sequence_expand", "ex", x="$p2", y="$emb"),
    L("elementwise_mul", "att", x="$emb", y="$sm", axis=0),
    L("sequence_pool", "p5", input="$att", pool_type="sum"),
    L("sequence_reverse", "rev", x="$emb"),
    L("sequence_pool", "p6", input="$rev", pool_type="sqrt"),
    L("concat", "cat", input=["$p1", "$p2", "$p3", "$p4", "$p5", "$p6"], axis=1),
    L("fc", "exf", input="$ex", size=2),
    *classify("cat", 3),
)

METRICS = net(
    data("x", [8]),
    L("fc", "h", input="$x", size=4, act="relu"),
    L("topk", ["tv", "ti"], input="$h", k=2),
    L("argsort", ["av", "ai"], input="$h", axis=1),
    L("argmax", "am", x="$h", axis=1),
    L("reduce_sum", "t1", input="$tv"),
    L("reduce_sum", "t2", input="$av"),
    L("fc", "prob", input="$h", size=2, act="softmax"),
    data("label", [1], "int64"),
    L("auc", ["auc", "batch_auc", "states"], input="$prob", label="$label"),
    L("accuracy", "acc", input="$prob", label="$label", k=1),
    L("cross_entropy", "ce", input="$prob", label="$label"),
    *total("ce", "t1", "t2"),
)

FAN_OUT = net(
    data("x", [8]),
    L("fc", "h", input="$x", size=8, param_attr=P(name="shared"), bias_attr=P(name="shared_b")),
    L(
        "fc",
        "h2",
        input="$h",
        size=8,
        param_attr=P(name="shared"),
        bias_attr=P(name="shared_b"),
        act="relu",
    ),
    L("elementwise_add", "a", x="$h", y="$h2"),
    L("elementwise_mul", "b", x="$a", y="$h"),
    L("elementwise_add", "c", x="$h", y="$h"),
    L("relu", "d", x="$b"),
    L("assign", "e", input="$d"),
    L("sums", "s", input=["$a", "$b", "$c", "$d", "$e", "$h"]),
    L("fc", "unused", input="$h", size=3),
    L("fc", "side", input="$s", size=2),
    L("reduce_mean", "loss", input="$s"),
)


def build_switch_case(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    h = layers.fc(x, 4)
    index = layers.fill_constant([1], "int32", 1)
    out = layers.switch_case(
        index,
        {
            0: lambda: layers.fc(h, 3, param_attr=fluid.ParamAttr(name="w0")),
            1: lambda: layers.fc(h, 3, param_attr=fluid.ParamAttr(name="w1")),
        },
    )
    return layers.mean(out), {}


def build_while_loop(fluid):
    layers = fluid.layers
    x = layers.data("x", [4], append_batch_size=False)
    w = layers.create_parameter([4], "float32", name="w")
    i = layers.fill_constant([1], "int64", 0)
    n = layers.fill_constant([1], "int64", 3)
    i, y = layers.while_loop(
        lambda i, y: layers.less_than(i, n),
        lambda i, y: [i + 1, y * w + x],
        [i, layers.elementwise_add(x, w)],
    )
    return layers.mean(y), {}


def build_dynamic_rnn(fluid):
    layers = fluid.layers
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    emb = layers.embedding(words, [30, 6])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(emb)
        memory = rnn.memory(shape=[5], value=0.5)
        hidden = layers.fc([word, memory], 5, act="tanh")
        rnn.update_memory(memory, hidden)
        rnn.output(hidden)
    return layers.mean(layers.sequence_last_step(rnn())), {}


def build_ifelse(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    y = layers.data("y", [1])
    zero = layers.fill_constant_batch_size_like(y, [-1, 1], "float32", 0.0)
    branch = layers.IfElse(layers.less_than(y, zero))
    with branch.true_block():
        branch.output(layers.fc(branch.input(x), 3))
    with branch.false_block():
        branch.output(layers.fc(branch.input(x), 3, act="relu"))
    return layers.mean(branch()[0]), {}


def source(builder):
    return textwrap.dedent(inspect.getsource(builder))


def cases():
    """{name: {"net": net or builder, "minimize": {name: optimizer}}}"""
    momentum = dict(momentum=0.9, regularization=L2())
    table = {
        "optimizers": (fit_a_line(), OPTIMIZERS),
        "learning_rates": (fit_a_line(), rates()),
        "grad_clip": (PARAM_ATTRS, clipped()),
        "param_attrs": (
            PARAM_ATTRS,
            {
                "sgd": SGD["sgd"],
                "sgd_piecewise": O("SGD", learning_rate=PIECEWISE),
                "adam_l2": O("Adam", learning_rate=0.1, regularization=L2()),
            },
        ),
        "conv_bn_dropout": (CONV_BN, rates("Momentum", ["piecewise", "warmup_cosine"], **momentum)),
        "norms": (NORMS, SGD),
        "convs": (CONVS, SGD),
        "shapes": (SHAPES, SGD),
        "math": (MATH, SGD),
        "losses": (LOSSES, SGD),
        "activations": (activations(), SGD),
        "embeddings": (EMBEDDINGS, dict(SGD, adam=OPTIMIZERS["adam_lazy"])),
        "image_nets": (IMAGE_NETS, {"adam_noam": O("Adam", learning_rate=NOAM)}),
        "attention": (ATTENTION, SGD),
        "sequences": (SEQUENCES, SGD),
        "metrics": (METRICS, SGD),
        "fan_out": (FAN_OUT, SGD),
        "switch_case": (build_switch_case, SGD),
        "while_loop": (build_while_loop, SGD),
        "dynamic_rnn": (build_dynamic_rnn, SGD),
        "ifelse": (build_ifelse, SGD),
    }
    for kind, clip in CLIPS.items():
        last = step("clip.set_gradient_clip", None, clip=clip)
        table["set_clip_" + kind] = (
            fit_a_line(last),
            {"sgd": SGD["sgd"], "adam_l2": OPTIMIZERS["adam_l2"]},
        )
    some = step("clip.set_gradient_clip", None, clip=CLIPS["norm"], param_list=["fc_0.w_0"])
    table["set_clip_one_parameter"] = (fit_a_line(some), SGD)
    return {k: {"net": n, "minimize": m} for k, (n, m) in table.items()}
