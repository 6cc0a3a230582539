"""Mixed precision on the GPU: Fluid's decorator and fleet's strategy, in float16 and bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import data, fluid_models
from benchmarks.gpu import nets
from fluidjax import layers
from fluidjax.contrib import mixed_precision
from fluidjax.paddle.distributed import fleet
from tests.nets import fresh

from .card import PLACE, REHEARSAL

STEPS = 5


def _losses(
    network: Any, around: Any, feed: dict[str, Any]
) -> tuple[list[float], fluid.Scope, fluid.Program]:
    with fresh(1) as (main, startup):
        loss = network()
        around(fluid.optimizer.Momentum(0.01, 0.9)).minimize(loss)
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    return (
        [
            np.asarray(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0]).item()
            for _ in range(STEPS)
        ],
        scope,
        main,
    )


def images() -> Any:
    return nets.resnet50("NCHW", 32, 10, ((8, 1), (16, 1)))


def _images() -> dict[str, Any]:
    feed = data.images(8, 32, 3)
    return {**feed, "img": np.ascontiguousarray(feed["img"].transpose(0, 3, 1, 2))}


NETS = {
    "images": (images, _images), "mlp": (fluid_models.mlp, lambda: data.vectors(32, 784, 10)),
    "transformer": (lambda: fluid_models.transformer(32, 8, 2, 1), lambda: data.sequences(4, 8, 32, 10)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NETS)
def test_the_decorator(name: str, dtype: str) -> None:
    """Losses as in float32, within the half precision's rounding; parameters stay float32; the
    scale is a power of two.
    """
    network, feed = NETS[name]
    want, _, _ = _losses(network, lambda o: o, feed())
    got, scope, main = _losses(
        network, lambda o: mixed_precision.decorate(o, init_loss_scaling=128.0, dtype=dtype), feed()
    )
    np.testing.assert_allclose(got, want, rtol=5e-2)
    assert all(scope.find_var(p.name).value.dtype == np.float32 for p in main.all_parameters())
    assert np.log2(np.array(scope.find_var("loss_scaling_0").get_tensor())).item() % 1 == 0


def test_a_step_that_overflows_changes_nothing() -> None:
    """Gradients that are not finite count as zero, and the scale shrinks."""
    with fresh(1) as (main, startup):
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1, bias_attr=False), y))
        optimizer = mixed_precision.decorate(
            fluid.optimizer.SGD(0.1), init_loss_scaling=2.0**15, decr_every_n_nan_or_inf=1
        )
        optimizer.minimize(loss)
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    before = np.array(scope.find_var("fc_0.w_0").get_tensor())
    # the scale changes when one more step than decr_every_n_nan_or_inf overflows
    for _ in range(2):
        exe.run(
            main,
            feed={"x": np.full((2, 3), 6e4, "float32"), "y": np.zeros((2, 1), "float32")},
            fetch_list=[loss],
            scope=scope,
        )
    np.testing.assert_array_equal(np.array(scope.find_var("fc_0.w_0").get_tensor()), before)
    assert np.array(scope.find_var("loss_scaling_0").get_tensor()).item() < 2.0**15


def test_fleets_amp() -> None:
    """DistributedStrategy.amp makes what the decorator makes, and it trains."""

    def by_fleet(optimizer: Any) -> Any:
        strategy = fleet.DistributedStrategy()
        strategy.amp = True
        strategy.amp_configs = {"init_loss_scaling": 128.0}
        fleet.init(is_collective=True)
        return fleet.distributed_optimizer(optimizer, strategy)

    network, feed = NETS["mlp"]
    want, _, _ = _losses(network, lambda o: o, feed())
    got, _, main = _losses(network, by_fleet, feed())
    assert any(op.type == "cast" for op in main.global_block().ops)
    np.testing.assert_allclose(got, want, rtol=5e-2)


def test_white_ops_run_in_half_precision() -> None:
    """The products of the compiled step are of bfloat16."""
    import jax

    with fresh(1) as (main, startup):
        loss = fluid_models.mlp()
        mixed_precision.decorate(fluid.optimizer.SGD(0.1), dtype="bfloat16").minimize(loss)
    exe, scope, feed = fluid.Executor(PLACE), fluid.Scope(), data.vectors(32, 784, 10)
    exe.run(startup, scope=scope)
    exe.run(main, feed=feed, fetch_list=[loss], scope=scope)
    (compiled,) = exe.compiled_steps(main)
    with jax.enable_x64(True):
        text = compiled.function().lower(*compiled.bind(scope).arrays, feed, 0, 0).as_text()
    dots = [line for line in text.splitlines() if "dot_general" in line]
    assert len(dots) >= 8 and all("bf16" in line for line in dots), dots[:3]
    assert REHEARSAL or scope.find_var("fc_0.w_0").value.dtype == np.float32
