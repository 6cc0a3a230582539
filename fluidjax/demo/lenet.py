"""The network: LeNet with batch normalisation, as Fluid programs."""

from __future__ import annotations

from dataclasses import dataclass

import fluidjax as fluid

from .digits import SIDE


@dataclass(frozen=True)
class LeNet:
    """The programs, and the variables to fetch."""

    startup: fluid.Program
    train: fluid.Program
    test: fluid.Program
    loss: fluid.Variable
    accuracy: fluid.Variable
    prediction: fluid.Variable


def conv_block(image: fluid.Variable, filters: int) -> fluid.Variable:
    """Convolution, batch normalisation and maximum pooling: [n, c, s, s] -> [n, filters, (s - 4) /
    2, (s - 4) / 2].
    """
    hidden = fluid.layers.conv2d(image, num_filters=filters, filter_size=5, bias_attr=False)
    hidden = fluid.layers.batch_norm(hidden, act="relu")
    return fluid.layers.pool2d(hidden, pool_size=2, pool_stride=2)


def build(seed: int, rate: float = 1e-3) -> LeNet:
    """The programs: `train` ends in Adam's updates with the rate `rate`, `test` is its clone before
    those.
    """
    train, startup = fluid.Program(), fluid.Program()
    train.random_seed = startup.random_seed = seed
    with fluid.unique_name.guard(), fluid.program_guard(train, startup):
        image = fluid.data("image", [None, 1, SIDE, SIDE])
        label = fluid.data("label", [None, 1], dtype="int64")
        hidden = conv_block(conv_block(image, 20), 50)
        hidden = fluid.layers.dropout(fluid.layers.fc(hidden, 200, act="relu"), 0.3)
        prediction = fluid.layers.fc(hidden, 10, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
        accuracy = fluid.layers.accuracy(prediction, label)
        test = train.clone(for_test=True)
        fluid.optimizer.Adam(rate).minimize(loss)
    return LeNet(startup, train, test, loss, accuracy, prediction)
