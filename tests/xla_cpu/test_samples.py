"""Predictions that go image by image, beside the same net on one image at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers


def net(mixes: bool = False) -> tuple[fluid.Program, fluid.Scope, Any]:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 80, 80])
        h = layers.conv2d(x, 8, 3, stride=2, padding=1, act="relu")
        h = layers.conv2d(h, 8, 3, padding=1, groups=8, act="relu")
        h = layers.batch_norm(h, is_test=True)
        out = layers.fc(layers.pool2d(h, pool_type="avg", global_pooling=True), 5)
        if mixes:
            out = out - layers.reduce_mean(out, dim=[0], keep_dim=True)
    fluid.Executor().run(startup, scope=scope)
    return main, scope, out


def loops(main: fluid.Program, scope: fluid.Scope, out: Any, feed: dict[str, Any]) -> bool:
    """Whether the step has a loop."""
    found: str = fluid.Executor().lower(main, feed, [out], scope=scope).as_text()
    return "stablehlo.while" in found


def images(count: int) -> np.ndarray:
    return np.random.RandomState(count).standard_normal((count, 3, 80, 80)).astype("float32")


@pytest.mark.parametrize("count", [2, 5])
def test_as_each_image_alone(count: int) -> None:
    main, scope, out = net()
    exe, x = fluid.Executor(), images(count)
    (got,) = exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope)
    alone = [exe.run(main, feed={"x": x[i : i + 1]}, fetch_list=[out], scope=scope)[0] for i in range(count)]  # fmt: skip
    assert got.shape == (count, 5)
    np.testing.assert_allclose(got, np.concatenate(alone), rtol=1e-5, atol=1e-6)


def test_rows_that_are_mixed_stay_together() -> None:
    main, scope, out = net(mixes=True)
    exe, x = fluid.Executor(), images(4)
    (got,) = exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope)
    np.testing.assert_allclose(got.mean(0), 0, atol=1e-6)
    assert np.abs(got).max() > 1e-3


def test_padded_batches(tmp_path: Any) -> None:
    """A predictor that pads a batch of 3 to 4 gives three rows."""
    main, scope, out = net()
    exe, x = fluid.Executor(), images(3)
    (want,) = exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope)
    with fluid.scope_guard(scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main)
    config = fluid.core.AnalysisConfig(str(tmp_path))
    config.set_batch_sizes([4])
    predictor = fluid.core.create_paddle_predictor(config)
    (got,) = predictor.run([fluid.core.PaddleTensor(x)])
    np.testing.assert_allclose(got.as_ndarray(), want, rtol=1e-5, atol=1e-6)
