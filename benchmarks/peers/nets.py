"""The nets as Fluid programs, for both fluidjax and Paddle 1.8.5, and their batches; channels
first, as Fluid has them.
"""

import numpy as np


def batch_of(shapes, classes=10, label=None):
    """Arrays of these shapes by name; "label" is an integer below `classes`."""
    rng = np.random.RandomState(0)
    feed = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    if label is not None:
        feed["label"] = rng.randint(0, classes, label).astype("int64")
    return feed


def _data(fluid, feed):
    return [fluid.data(name, [None, *v.shape[1:]], str(v.dtype)) for name, v in feed.items()]


def _squares(fluid, predicted, y):
    return fluid.layers.mean(fluid.layers.square_error_cost(predicted, y))


def _classes(fluid, h, label, size=10, dims=1):
    logits = fluid.layers.fc(h, size, num_flatten_dims=dims)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, label))


def fit_a_line(fluid, feed):
    x, y = _data(fluid, feed)
    return _squares(fluid, fluid.layers.fc(x, 1), y)


def two_layers(fluid, feed):
    x, y = _data(fluid, feed)
    return _squares(fluid, fluid.layers.fc(fluid.layers.fc(x, 32, act="relu"), 1), y)


def mlp(fluid, feed):
    h, label = _data(fluid, feed)
    for _ in range(2):
        h = fluid.layers.fc(h, 512, act="relu")
    return _classes(fluid, h, label)


def _norm(fluid, h, filters, size, stride=1, act="relu"):
    h = fluid.layers.conv2d(h, filters, size, stride=stride, padding=size // 2, bias_attr=False)
    return fluid.layers.batch_norm(h, act=act)


def lenet(fluid, feed):
    h, label = _data(fluid, feed)
    for filters in (6, 16):
        h = fluid.layers.batch_norm(fluid.layers.conv2d(h, filters, 5, bias_attr=False), act="relu")
        h = fluid.layers.pool2d(h, 2, pool_stride=2)
    for size in (120, 84):
        h = fluid.layers.fc(h, size, act="relu")
    return _classes(fluid, h, label)


def _residual(fluid, h, filters, stride):
    short = (
        h if stride == 1 and h.shape[1] == filters else _norm(fluid, h, filters, 1, stride, None)
    )
    h = _norm(fluid, _norm(fluid, h, filters, 3, stride), filters, 3, 1, None)
    return fluid.layers.relu(fluid.layers.elementwise_add(h, short))


def _resnet(fluid, feed, stem, stages, blocks):
    h, label = _data(fluid, feed)
    h = _norm(fluid, h, stem, 3)
    for stage, filters in enumerate(stages):
        for block in range(blocks):
            h = _residual(fluid, h, filters, 2 if stage and not block else 1)
    return _classes(fluid, fluid.layers.pool2d(h, pool_type="avg", global_pooling=True), label)


def resnet18(fluid, feed):
    return _resnet(fluid, feed, 64, (64, 128, 256, 512), 2)


def resnet32(fluid, feed):
    return _resnet(fluid, feed, 16, (16, 32, 64), 5)


def small_resnet(fluid, feed):
    return _resnet(fluid, feed, 16, (16, 32, 64), 1)


def _attention(fluid, x, width, heads, length):
    layers = fluid.layers

    def split(h):
        return layers.transpose(
            layers.reshape(h, [-1, length, heads, width // heads]), [0, 2, 1, 3]
        )

    q, k, v = [split(layers.fc(x, width, num_flatten_dims=2)) for _ in range(3)]
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
    mixed = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
    return layers.fc(layers.reshape(mixed, [-1, length, width]), width, num_flatten_dims=2)


def transformer(fluid, feed, width=256, length=128, heads=4, depth=2):
    layers = fluid.layers
    h, label = _data(fluid, feed)
    for _ in range(depth):
        h = layers.layer_norm(
            layers.elementwise_add(h, _attention(fluid, h, width, heads, length)), begin_norm_axis=2
        )
        f = layers.fc(
            layers.fc(h, 4 * width, num_flatten_dims=2, act="relu"), width, num_flatten_dims=2
        )
        h = layers.layer_norm(layers.elementwise_add(h, f), begin_norm_axis=2)
    return _classes(fluid, h, label, dims=2)


# name -> net, optimizer, batch
CASES = {
    "fit-a-line": (fit_a_line, "sgd", lambda: batch_of({"x": (20, 13), "y": (20, 1)})),
    "2 layers": (two_layers, "sgd", lambda: batch_of({"x": (20, 13), "y": (20, 1)})),
    "MLP": (mlp, "adam", lambda: batch_of({"x": (64, 784)}, label=(64, 1))),
    "LeNet": (lenet, "adam", lambda: batch_of({"img": (64, 1, 28, 28)}, label=(64, 1))),
    "small ResNet": (
        small_resnet,
        "momentum",
        lambda: batch_of({"img": (32, 3, 32, 32)}, label=(32, 1)),
    ),
    "ResNet-32": (resnet32, "adam", lambda: batch_of({"img": (128, 3, 32, 32)}, label=(128, 1))),
    "ResNet-18": (resnet18, "momentum", lambda: batch_of({"img": (32, 3, 32, 32)}, label=(32, 1))),
    "transformer": (transformer, "adam", lambda: batch_of({"x": (8, 128, 256)}, label=(8, 128, 1))),
}
