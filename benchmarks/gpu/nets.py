"""The nets, as Fluid programs with their channels first or last, and in flax with a dtype to
compute in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

import fluidjax as fluid
from fluidjax import layers

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
Feed = dict[str, np.ndarray]


def _loss(logits: Any, *shape: int) -> Any:
    return layers.mean(
        layers.softmax_with_cross_entropy(logits, fluid.data("label", [None, *shape, 1], "int64"))
    )


class Images:
    """Layers for images: data_format NCHW, as most Fluid programs have it, or NHWC."""

    def __init__(self, data_format: str) -> None:
        self.format = data_format
        self.axis = 1 if data_format == "NCHW" else -1
        self.sides = [2, 3] if data_format == "NCHW" else [1, 2]

    def data(self, side: int, channels: int) -> Any:
        shape = [channels, side, side] if self.axis == 1 else [side, side, channels]
        return fluid.data("img", [None, *shape])

    def conv_bn(self, h: Any, filters: int, size: int, stride: int, act: str | None) -> Any:
        h = layers.conv2d(
            h,
            filters,
            size,
            stride=stride,
            padding=size // 2,
            bias_attr=False,
            data_format=self.format,
        )
        return layers.batch_norm(h, act=act, data_layout=self.format)

    def bottleneck(self, h: Any, filters: int, stride: int) -> Any:
        same_shape = stride == 1 and h.shape[self.axis] == 4 * filters
        short = h if same_shape else self.conv_bn(h, 4 * filters, 1, stride, None)
        h = self.conv_bn(self.conv_bn(h, filters, 1, 1, "relu"), filters, 3, stride, "relu")
        return layers.relu(layers.elementwise_add(self.conv_bn(h, 4 * filters, 1, 1, None), short))


def resnet50_logits(
    data_format: str = "NCHW", side: int = 224, classes: int = 1000, stages: Any = STAGES
) -> Any:
    net = Images(data_format)
    h = net.conv_bn(net.data(side, 3), 64, 7, 2, "relu")
    h = layers.pool2d(h, 3, pool_stride=2, pool_padding=1, data_format=data_format)
    for stage, (filters, blocks) in enumerate(stages):
        for block in range(blocks):
            h = net.bottleneck(h, filters, 2 if stage and not block else 1)
    return layers.fc(layers.reduce_mean(h, dim=net.sides), classes)


def resnet50(
    data_format: str = "NCHW", side: int = 224, classes: int = 1000, stages: Any = STAGES
) -> Any:
    return _loss(resnet50_logits(data_format, side, classes, stages))


def mlp(inputs: int, width: int) -> Any:
    h = fluid.data("x", [None, inputs])
    for _ in range(2):
        h = layers.fc(h, width, act="relu")
    return _loss(layers.fc(h, 10))


def lstm(words: int, width: int) -> Any:
    h = layers.embedding(fluid.data("words", [None, 1], "int64", lod_level=1), [words, 128])
    h, _ = layers.dynamic_lstm(layers.fc(h, 4 * width), 4 * width, use_peepholes=False)
    return _loss(layers.fc(layers.sequence_pool(h, "max"), 2))


def recommender(height: int, width: int, slots: int) -> Any:
    ids = fluid.data("ids", [None, slots, 1], "int64")
    h = layers.reshape(
        layers.embedding(ids, [height, width], is_sparse=True, param_attr="table"),
        [-1, slots * width],
    )
    for size in (512, 256):
        h = layers.fc(h, size, act="relu")
    return _loss(layers.fc(h, 2))


class Bottleneck(nn.Module):
    filters: int
    stride: int
    dtype: Any
    train: bool

    @nn.compact
    def __call__(self, x: Any) -> Any:
        conv, norm = _conv(self.dtype), _norm(self.dtype, self.train)
        short = x
        if self.stride != 1 or x.shape[-1] != 4 * self.filters:
            short = norm()(conv(4 * self.filters, (1, 1), strides=self.stride)(x))
        h = nn.relu(norm()(conv(self.filters, (1, 1))(x)))
        h = nn.relu(norm()(conv(self.filters, (3, 3), strides=self.stride, padding=1)(h)))
        return nn.relu(norm()(conv(4 * self.filters, (1, 1))(h)) + short)


def _conv(dtype: Any) -> Callable[..., Any]:
    return lambda filters, size, **more: nn.Conv(filters, size, use_bias=False, dtype=dtype, **more)


def _norm(dtype: Any, train: bool) -> Callable[..., Any]:
    return lambda: nn.BatchNorm(
        use_running_average=not train, momentum=0.9, epsilon=1e-5, dtype=dtype
    )


class ResNet50(nn.Module):
    classes: int = 1000
    stages: Any = STAGES
    dtype: Any = jnp.float32
    train: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(
            _norm(self.dtype, self.train)()(_conv(self.dtype)(64, (7, 7), strides=2, padding=3)(x))
        )
        x = nn.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for stage, (filters, blocks) in enumerate(self.stages):
            for block in range(blocks):
                x = Bottleneck(filters, 2 if stage and not block else 1, self.dtype, self.train)(x)
        return nn.Dense(self.classes, dtype=self.dtype)(x.mean(axis=(1, 2))).astype(jnp.float32)


class MLP(nn.Module):
    width: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width, dtype=self.dtype)(x))
        return nn.Dense(10, dtype=self.dtype)(x).astype(jnp.float32)


class Encoder(nn.Module):
    width: int
    heads: int
    depth: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(self.depth):
            x = nn.LayerNorm(epsilon=1e-5, dtype=self.dtype)(x + self.attention(x))
            f = nn.Dense(self.width, dtype=self.dtype)(
                nn.relu(nn.Dense(4 * self.width, dtype=self.dtype)(x))
            )
            x = nn.LayerNorm(epsilon=1e-5, dtype=self.dtype)(x + f)
        return nn.Dense(10, dtype=self.dtype)(x).astype(jnp.float32)

    def attention(self, x: Any) -> Any:
        b, t, _ = x.shape
        dense = lambda: nn.Dense(self.width, dtype=self.dtype)  # noqa: E731
        q, k, v = (dense()(x).reshape(b, t, self.heads, -1).transpose(0, 2, 1, 3) for _ in range(3))
        weights = nn.softmax((q @ k.swapaxes(-1, -2)) * (self.width // self.heads) ** -0.5)
        return dense()((weights @ v).transpose(0, 2, 1, 3).reshape(b, t, self.width))


class LSTM(nn.Module):
    """given [batch, 1 + length, 1]: how many words count, then the words."""

    words: int
    width: int

    @nn.compact
    def __call__(self, given: Any) -> Any:
        words, lengths = given[:, 1:], given[:, 0, 0]
        h = nn.Embed(self.words, 128)(words[..., 0])
        h = nn.RNN(nn.OptimizedLSTMCell(self.width))(h, seq_lengths=lengths)
        there = jnp.arange(h.shape[1]) < lengths[:, None]
        return nn.Dense(2)(jnp.where(there[..., None], h, -jnp.inf).max(1))


class Recommender(nn.Module):
    height: int
    width: int

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        h = nn.Embed(self.height, self.width)(ids[..., 0]).reshape(ids.shape[0], -1)
        for size in (512, 256):
            h = nn.relu(nn.Dense(size)(h))
        return nn.Dense(2)(h)
