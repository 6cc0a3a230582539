"""Record programs that mixed precision of Paddle 1.8.5 makes:
tests/data/mixed_precision_1.8.5.json.gz.

    python3.8 tests/tools/record_mixed_precision.py
"""

import gzip
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)


def image(fluid, act="relu"):
    x = fluid.layers.data("x", [1, 6, 6])
    label = fluid.layers.data("label", [1], dtype="int64")
    y = fluid.layers.batch_norm(fluid.layers.conv2d(x, 2, 3, padding=1, bias_attr=False), act=act)
    y = fluid.layers.elementwise_add(fluid.layers.conv2d(y, 2, 3, padding=1), y)
    y = fluid.layers.dropout(fluid.layers.pool2d(y, 2, pool_stride=2), 0.3)
    out = fluid.layers.fc(y, 3)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(out, label))


def words(fluid):
    ids = fluid.layers.data("ids", [4, 1], dtype="int64")
    emb = fluid.layers.embedding(ids, [7, 6])
    q = fluid.layers.fc(emb, 6, num_flatten_dims=2, param_attr=fluid.ParamAttr(name="shared"))
    k = fluid.layers.fc(emb, 6, num_flatten_dims=2, act="tanh")
    att = fluid.layers.softmax(fluid.layers.matmul(q, k, transpose_y=True, alpha=0.5))
    ctx = fluid.layers.layer_norm(fluid.layers.matmul(att, emb), begin_norm_axis=2)
    ctx = fluid.layers.reshape(fluid.layers.scale(ctx, 2.0), [-1, 24])
    return fluid.layers.mean(
        fluid.layers.square(fluid.layers.cast(fluid.layers.fc(ctx, 1, act="sigmoid"), "float32"))
    )


def line(fluid):
    x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def minimized(fluid, net, optimizer, lists=None, **args):
    """the program of a net under mixed precision; what minimize returns, as names"""
    mp = fluid.contrib.mixed_precision
    loss = net(fluid)
    lists = None if lists is None else mp.AutoMixedPrecisionLists(**lists)
    opt = mp.decorate(optimizer(fluid), lists, **args)
    ops, pairs = opt.minimize(loss)
    return [
        [o.type for o in ops],
        [[p.name, g.name] for p, g in pairs],
        opt.get_loss_scaling().name,
        opt.get_scaled_loss().name,
    ]


def adam(fluid):
    return fluid.optimizer.Adam(0.01)


def momentum(fluid):
    return fluid.optimizer.Momentum(
        fluid.layers.piecewise_decay([2, 4], [0.1, 0.01, 0.001]),
        0.9,
        regularization=fluid.regularizer.L2Decay(1e-4),
    )


def sgd(fluid):
    return fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))


CASES = {
    "image": lambda f: minimized(f, image, momentum),
    "image, static scale": lambda f: minimized(
        f, image, adam, init_loss_scaling=8.0, use_dynamic_loss_scaling=False
    ),
    "image, lists": lambda f: minimized(
        f,
        lambda f: image(f, "sigmoid"),
        sgd,
        dict(
            custom_white_list={"softmax_with_cross_entropy", "pool2d"}, custom_black_list={"conv2d"}
        ),
        use_dynamic_loss_scaling=False,
    ),
    "words": lambda f: minimized(
        f,
        words,
        adam,
        incr_every_n_steps=3,
        decr_every_n_nan_or_inf=1,
        incr_ratio=3.0,
        decr_ratio=0.5,
    ),
    "words, by name": lambda f: minimized(
        f, words, adam, dict(custom_black_varnames={"shared"}), use_dynamic_loss_scaling=False
    ),
    "line": lambda f: minimized(f, line, sgd, init_loss_scaling=4.0),
}

if __name__ == "__main__":
    import paddle.fluid as fluid
    import record_golden

    record_golden.count_control_variables()
    found = {}
    for name, case in sorted(CASES.items()):
        fluid.framework._name_scope = fluid.framework.NameScope()
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            result = case(fluid)
        programs = {
            k: record_golden.dump_program(p) for k, p in (("main", main), ("startup", startup))
        }
        for p in programs.values():
            del p["all_vars"]
        found[name] = dict(programs, result=result)
    path = os.path.join(FOLDER, "..", "data", "mixed_precision_1.8.5.json.gz")
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(found, sort_keys=True).encode())
