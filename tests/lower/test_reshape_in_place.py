"""layers.reshape(inplace=True): what was computed before keeps its gradient.

AFTER: w's first row after a step, recorded from Paddle 1.8.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh

X = np.arange(12, dtype="float32").reshape(2, 6) / 6
AFTER = {
    "relu": 0.07875, "tanh": 0.09097424, "sigmoid": 0.096326, "leaky_relu": 0.07875, "swish": 0.08691616, "square": 0.06929375,
    "hard_swish": 0.08931892, None: 0.07875,
}  # fmt: skip


def fc(x: Any, act: str | None) -> Any:
    return layers.fc(
        x, 4, act=act, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(0.1))
    )


def trained(net: Any) -> tuple[np.ndarray, np.ndarray]:
    """w after a step of SGD, and what the reshaped variable holds."""
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        out = net(fluid.data("x", [2, 6]))
        fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.square(out)))
        exe = fluid.Executor()
        exe.run(startup)
        (value,) = exe.run(main, feed={"x": X}, fetch_list=[out])
        return np.array(fluid.global_scope().find_var("w").get_tensor()), value


@pytest.mark.parametrize("act", AFTER)
def test_behind_an_activation(act: str | None) -> None:
    w, value = trained(lambda x: layers.reshape(fc(x, act), [2, 2, 2], inplace=True))
    np.testing.assert_allclose(w[0], AFTER[act], rtol=1e-6)
    assert value.shape == (2, 2, 2)


def test_twice_and_with_an_activation() -> None:
    w, value = trained(
        lambda x: layers.reshape(
            layers.reshape(fc(x, "relu"), [2, 2, 2], inplace=True), [8], inplace=True
        )
    )
    np.testing.assert_allclose(w[0], AFTER["relu"], rtol=1e-6)
    assert value.shape == (8,)
    w, _ = trained(lambda x: layers.reshape(fc(x, "relu"), [2, 2, 2], inplace=True, act="tanh"))
    np.testing.assert_allclose(w[0], AFTER["tanh"], rtol=1e-6)


def test_what_was_read_before_and_is_read_after() -> None:
    """1.8.5 stops here, since x no longer has the shape of its square; the gradient is that of the
    same net without `inplace`.
    """

    def net(x: Any, inplace: bool) -> Any:
        h = fc(x, None)
        squared = layers.square(h)
        return layers.reshape(squared, [4, 2]) + layers.reshape(h, [4, 2], inplace=inplace)

    np.testing.assert_allclose(
        trained(lambda x: net(x, True))[0], trained(lambda x: net(x, False))[0], rtol=1e-6
    )


@pytest.mark.parametrize("shape", [[15, 1], [-1, 3, 1]])
def test_rows_with_a_lod(shape: list[int]) -> None:
    """Rows that are reshaped away, and rows that stay; also behind an op that needs the sequences.
    Equal without `inplace`.
    """
    rows = np.linspace(-1, 1, 15, dtype="float32").reshape(5, 3)
    found = []
    for inplace in (False, True):
        with fresh() as (main, _):
            x = fluid.data("x", [-1, 3], lod_level=1)
            x.stop_gradient = False
            outs = [
                layers.sigmoid(x),
                layers.sequence_softmax(layers.reduce_sum(x, 1, keep_dim=True)) * x,
            ]
            made = [
                layers.reduce_sum(layers.square(layers.reshape(y, shape, inplace=inplace)))
                for y in outs
            ]
            fetched = [g for loss in made for g in fluid.gradients(loss, x)]
        feed = {"x": fluid.create_lod_tensor(rows, [[2, 3]], fluid.CPUPlace())}
        found.append(fluid.Executor().run(main, feed=feed, fetch_list=fetched, return_numpy=False))
    for plain, within in zip(*found, strict=True):
        np.testing.assert_allclose(np.asarray(within), np.asarray(plain), rtol=1e-6)
        assert within.recursive_sequence_lengths() == [[2, 3]]
