"""The benchmark models as Fluid programs. Each function appends a network and returns its loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluidjax as fluid
from fluidjax import layers


def _label(*shape: int) -> Any:
    return fluid.data("label", [None, *shape, 1], "int64")


def _classify(logits: Any, label: Any) -> Any:
    return layers.mean(layers.softmax_with_cross_entropy(logits, label))


def fit_a_line() -> Any:
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    return layers.mean(layers.square_error_cost(layers.fc(x, 1), y))


def mlp() -> Any:
    h = fluid.data("x", [None, 784])
    for _ in range(2):
        h = layers.fc(h, 512, act="relu")
    return _classify(layers.fc(h, 10), _label())


def lenet() -> Any:
    h = fluid.data("img", [None, 28, 28, 1])
    for filters in (6, 16):
        h = layers.conv2d(h, filters, 5, bias_attr=False, data_format="NHWC")
        h = layers.batch_norm(h, act="relu", data_layout="NHWC")
        h = layers.pool2d(h, 2, pool_stride=2, data_format="NHWC")
    for size in (120, 84):
        h = layers.fc(h, size, act="relu")
    return _classify(layers.fc(h, 10), _label())


def _conv_bn(h: Any, filters: int, size: int, stride: int, act: str | None) -> Any:
    h = layers.conv2d(
        h, filters, size, stride=stride, padding=size // 2, bias_attr=False, data_format="NHWC"
    )
    return layers.batch_norm(h, act=act, data_layout="NHWC")


def _class_head(h: Any, classes: int) -> Any:
    return _classify(layers.fc(layers.reduce_mean(h, dim=[1, 2]), classes), _label())


def _residual(h: Any, filters: int, stride: int) -> Any:
    short = h if stride == 1 and h.shape[-1] == filters else _conv_bn(h, filters, 1, stride, None)
    h = _conv_bn(_conv_bn(h, filters, 3, stride, "relu"), filters, 3, 1, None)
    return layers.relu(layers.elementwise_add(h, short))


def resnet18() -> Any:
    h = _conv_bn(fluid.data("img", [None, 32, 32, 3]), 64, 3, 1, "relu")
    for stage, filters in enumerate((64, 128, 256, 512)):
        for block in range(2):
            h = _residual(h, filters, 2 if stage and not block else 1)
    return _class_head(h, 10)


def resnet32() -> Any:
    h = _conv_bn(fluid.data("img", [None, 32, 32, 3]), 16, 3, 1, "relu")
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(5):
            h = _residual(h, filters, 2 if stage and not block else 1)
    return _class_head(h, 10)


def many_parameters(count: int = 500, width: int = 8) -> Any:
    h = fluid.data("x", [None, width])
    for _ in range(count):
        h = layers.fc(h, width, bias_attr=False)
    return _classify(h, _label())


def _bottleneck(h: Any, filters: int, stride: int) -> Any:
    short = (
        h
        if stride == 1 and h.shape[-1] == 4 * filters
        else _conv_bn(h, 4 * filters, 1, stride, None)
    )
    h = _conv_bn(_conv_bn(h, filters, 1, 1, "relu"), filters, 3, stride, "relu")
    return layers.relu(layers.elementwise_add(_conv_bn(h, 4 * filters, 1, 1, None), short))


def resnet50(side: int = 224, classes: int = 1000) -> Any:
    h = _conv_bn(fluid.data("img", [None, side, side, 3]), 64, 7, 2, "relu")
    h = layers.pool2d(h, 3, pool_stride=2, pool_padding=1, data_format="NHWC")
    for stage, (filters, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            h = _bottleneck(h, filters, 2 if stage and not block else 1)
    return _class_head(h, classes)


def vgg16(side: int = 224, classes: int = 1000) -> Any:
    h = fluid.data("img", [None, side, side, 3])
    for filters, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            h = layers.conv2d(h, filters, 3, padding=1, act="relu", data_format="NHWC")
        h = layers.pool2d(h, 2, pool_stride=2, data_format="NHWC")
    for _ in range(2):
        h = layers.dropout(layers.fc(h, 4096, act="relu"), 0.5)
    return _classify(layers.fc(h, classes), _label())


def mobilenet_v1(side: int = 224, classes: int = 1000) -> Any:
    h = _conv_bn(fluid.data("img", [None, side, side, 3]), 32, 3, 2, "relu")
    rows = (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *((512, 1),) * 5,
        (1024, 2),
        (1024, 1),
    )
    for filters, stride in rows:
        channels = h.shape[-1]
        h = layers.conv2d(
            h, channels, 3, stride, 1, groups=channels, bias_attr=False, data_format="NHWC"
        )
        h = _conv_bn(layers.batch_norm(h, act="relu", data_layout="NHWC"), filters, 1, 1, "relu")
    return _class_head(h, classes)


def _attention(x: Any, width: int, heads: int, length: int) -> Any:
    def split(h: Any) -> Any:
        return layers.transpose(
            layers.reshape(h, [-1, length, heads, width // heads]), [0, 2, 1, 3]
        )

    q, k, v = (split(layers.fc(x, width, num_flatten_dims=2)) for _ in range(3))
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
    mixed = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
    return layers.fc(layers.reshape(mixed, [-1, length, width]), width, num_flatten_dims=2)


def transformer(width: int = 256, length: int = 128, heads: int = 4, depth: int = 2) -> Any:
    h = fluid.data("x", [None, length, width])
    for _ in range(depth):
        h = layers.layer_norm(
            layers.elementwise_add(h, _attention(h, width, heads, length)), begin_norm_axis=2
        )
        f = layers.fc(h, 4 * width, num_flatten_dims=2, act="relu")
        h = layers.layer_norm(
            layers.elementwise_add(h, layers.fc(f, width, num_flatten_dims=2)), begin_norm_axis=2
        )
    return _classify(layers.fc(h, 10, num_flatten_dims=2), _label(length))


def bert(length: int = 128, width: int = 256, heads: int = 4, depth: int = 4) -> Any:
    """An encoder of words; its answer is two classes."""
    words = fluid.data("words", [None, length], "int64")
    places = layers.create_parameter([length, width], "float32")
    h = layers.elementwise_add(fluid.embedding(words, [8000, width]), places, axis=1)
    h = layers.layer_norm(h, begin_norm_axis=2)
    for _ in range(depth):
        mixed = _attention(h, width, heads, length)
        h = layers.layer_norm(layers.elementwise_add(h, mixed), begin_norm_axis=2)
        f = layers.fc(h, 4 * width, num_flatten_dims=2, act="gelu")
        f = layers.fc(f, width, num_flatten_dims=2)
        h = layers.layer_norm(layers.elementwise_add(h, f), begin_norm_axis=2)
    first = layers.reshape(layers.slice(h, [1], [0], [1]), [-1, width])
    return layers.softmax(layers.fc(layers.fc(first, width, act="tanh"), 2))


def word_model(vocabulary: int = 2000, width: int = 32, context: int = 4) -> Any:
    words = fluid.data("words", [None, context, 1], "int64")
    h = layers.reshape(layers.embedding(words, [vocabulary, width]), [-1, context * width])
    return _classify(layers.fc(layers.fc(h, 256, act="sigmoid"), vocabulary), _label())


def build(network: Callable[[], Any], optimizer: Any) -> tuple[fluid.Program, fluid.Program, Any]:
    """(main, startup, loss) of a training program."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = network()
        optimizer.minimize(loss)
    return main, startup, loss
