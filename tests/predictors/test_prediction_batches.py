"""A predictor's batches padded up to sizes that were named or learnt: results of the true rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidValueError

core = fluid.core
DRAWN = np.random.RandomState(3)


def convolutional(x: Any) -> Any:
    x = layers.conv2d(x, 4, 3, padding=1, act="relu")
    x = layers.batch_norm(x, is_test=True)
    x = layers.pool2d(x, 2, "avg", 2)
    return layers.fc(x, 5, act="softmax")


def by_minus_one(x: Any) -> Any:
    return layers.fc(layers.reshape(x, [-1, 3 * 8 * 8]), 5)


def attention(x: Any) -> Any:
    x = layers.reshape(x, [0, 3, 64])
    weights = layers.softmax(layers.matmul(x, x, transpose_y=True, alpha=0.125))
    return layers.layer_norm(layers.matmul(weights, x), begin_norm_axis=2)


def best(x: Any) -> Any:
    return layers.topk(layers.fc(x, 7), 2)[1]


def centred(x: Any) -> Any:
    """Each row less the mean of all: padding must not count."""
    return layers.elementwise_sub(x, layers.reduce_mean(x, dim=[0], keep_dim=True))


def across(x: Any) -> Any:
    """A row depends on the rows before it."""
    return layers.cumsum(layers.reshape(x, [0, 192]), axis=0)


def turned(x: Any) -> Any:
    return layers.transpose(layers.reshape(x, [0, 192]), [1, 0])


def counted(x: Any) -> Any:
    return layers.elementwise_mul(
        x, layers.cast(layers.slice(layers.shape(x), [0], [0], [1]), "float32")
    )


def projected(x: Any) -> Any:
    """Mean and Variance of layer_norm have three entries for each row of the batch."""
    x = layers.reshape(x, [0, 3, 64])
    block = x.block
    mean = block.create_var(name="mean", dtype="float32", shape=[-1])
    variance = block.create_var(name="variance", dtype="float32", shape=[-1])
    out = block.create_var(name="normal", dtype="float32", shape=[-1, 3, 64])
    outs = {"Y": out, "Mean": mean, "Variance": variance}
    block.append_op("layer_norm", {"X": x}, outs, {"begin_norm_axis": 2})
    return layers.scale(mean, 2.0)


APART = (convolutional, by_minus_one, attention, best, projected)
TOGETHER = (centred, across, turned, counted)


def saved(folder: Path, net: Callable[[Any], Any]) -> Any:
    """A config of the saved net, and what Executor.run says for a batch."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.scope_guard(scope), fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 8, 8])
        out = net(x)
        exe = fluid.Executor()
        startup.random_seed = 1
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), ["x"], [out], exe, main)
    return core.AnalysisConfig(str(folder))


def batch(n: int) -> np.ndarray:
    return DRAWN.uniform(-1, 1, (n, 3, 8, 8)).astype("float32")


def said(predictor: Any, x: np.ndarray) -> np.ndarray:
    (out,) = predictor.run([core.PaddleTensor(x)])
    return out.as_ndarray()


@pytest.mark.first(1)
@pytest.mark.parametrize("net", APART + TOGETHER, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sizes", [(), (4, 8)], ids=["learnt", "named"])
def test_results_are_those_of_the_true_rows(
    tmp_path: Path, net: Callable[[Any], Any], sizes: tuple[int, ...]
) -> None:
    plain, padded = saved(tmp_path, net), core.AnalysisConfig(str(tmp_path))
    plain.set_batch_sizes(None)
    if sizes:
        padded.set_batch_sizes(sizes)
    one, other = (core.create_paddle_predictor(c) for c in (plain, padded))
    for n in (3, 1, 5, 7, 6, 8, 2, 9, 4):
        x = batch(n)
        want, got = said(one, x), said(other, x)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=f"batch of {n}")


def compiled(predictor: Any, action: Callable[[], Any]) -> int:
    """How many executables of the model an action adds."""
    before = len(predictor.compilations())
    action()
    return len(predictor.compilations()) - before


def test_learnt_sizes_are_few(tmp_path: Path) -> None:
    predictor = core.create_paddle_predictor(saved(tmp_path, by_minus_one))
    batches = [batch(n) for n in (5, 3, 4, 6, 7, 8, 10, 11, 12, 9, 13, 16, 15, 14)]
    assert (
        compiled(predictor, lambda: [said(predictor, x) for x in batches]) == 5
    )  # sizes 5, 6, 8, 12, 16
    assert not compiled(predictor, lambda: [said(predictor.clone(), x) for x in batches])


def test_named_sizes_are_warmed_up(tmp_path: Path) -> None:
    config = saved(tmp_path, by_minus_one)
    config.set_batch_sizes([8, 2])
    assert config.batch_sizes() == (2, 8)
    predictor = core.create_paddle_predictor(config)
    assert compiled(predictor, lambda: predictor.warm_up(config.batch_sizes())) == 2
    batches = [batch(n) for n in range(1, 9)]
    assert not compiled(predictor, lambda: [said(predictor, x) for x in batches])
    assert compiled(predictor, lambda: said(predictor, batch(9)))  # larger than all: as it is
    assert not compiled(predictor, lambda: predictor.warm_up([{"x": [9, 3, 8, 8]}]))


def test_a_batch_that_is_mixed_is_compiled_as_it_is(tmp_path: Path) -> None:
    predictor = core.create_paddle_predictor(saved(tmp_path, across))
    for n in (3, 5, 7):
        x = batch(n)
        want = np.cumsum(x.reshape(n, -1).astype("float64"), 0)
        np.testing.assert_allclose(said(predictor, x), want, rtol=1e-5, atol=1e-5)


def test_no_rows_are_no_batch_to_pad(tmp_path: Path) -> None:
    config = saved(tmp_path, by_minus_one)
    config.set_batch_sizes([4])
    assert said(core.create_paddle_predictor(config), batch(0)).shape == (0, 5)


@pytest.mark.parametrize("sizes", [[], [0], [-2], [2.0], [True], ["4"]])
def test_sizes_are_positive_integers(sizes: list[Any]) -> None:
    with pytest.raises(FluidValueError, match="positive integers"):
        core.AnalysisConfig("folder").set_batch_sizes(sizes)


def test_a_shape_to_warm_up_is_whole(tmp_path: Path) -> None:
    predictor = core.create_paddle_predictor(saved(tmp_path, by_minus_one))
    with pytest.raises(FluidValueError, match="every dimension of input 'x'"):
        predictor.warm_up([{"x": [-1, 3, 8, 8]}])
    with pytest.raises(FluidValueError, match="a shape for each of 'x', not for 'y'"):
        predictor.warm_up([{"y": [1]}])
