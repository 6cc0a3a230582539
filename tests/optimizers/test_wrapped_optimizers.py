"""Optimizers around optimizers: programs and three steps are those of Paddle 1.8.5, and
recomputation needs less memory.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import REGISTRY

from ..nets import fresh
from ..test_golden_programs import compare
from ..tools import wrapped_nets

RECORDS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "wrapped_1.8.5.json.gz").read_bytes())
)


def own_blocks(record: dict[str, Any]) -> dict[str, Any]:
    """The recorded program without what 1.8.5 leaves behind: two blocks of drafts that no op names,
    and dtypes that it did not infer.
    """
    blocks = record["blocks"]
    named = {
        v["block"]
        for b in blocks
        for op in b["ops"]
        for v in op["attrs"].values()
        if isinstance(v, dict) and "block" in v
    }
    kept = [b for b in blocks if b["idx"] == 0 or b["idx"] in named]
    for var in (v for b in kept for v in b["vars"] if ".subprog_" in v["name"]):
        var.pop("dtype")
    return {**record, "blocks": kept}


@pytest.mark.first(10)
@pytest.mark.parametrize("net", wrapped_nets.NETS, ids=lambda net: net.__name__)
def test_programs_and_three_steps_equal_paddles(net: Any) -> None:
    record = RECORDS[net.__name__]
    with fresh() as (main, startup):
        loss, result = net(fluid)
    compare(main, own_blocks(record["main"]), "main")
    compare(startup, record["startup"], "startup")
    verify(main.desc, REGISTRY.get)
    assert record["pairs"] == (
        None
        if result is None or net is wrapped_nets.pipeline
        else [[p.name, g.name] for p, g in result[1]]
    )
    if "steps" not in record:
        return
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    params = sorted(p.name for p in main.all_parameters())
    for name in params:
        for held in (name, name + "@SLOW"):
            if scope.find_var(held) is not None:
                scope.var(held).set(wrapped_nets.initial(name, main.global_block().var(name).shape))
    for feed, (value, after) in zip(wrapped_nets.FEEDS, record["steps"], strict=True):
        np.testing.assert_allclose(
            exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0], value, rtol=1e-5
        )
        for name in params:
            np.testing.assert_allclose(scope.get(name), after[name], rtol=2e-5, atol=2e-6)


def tower(checkpoints: bool) -> tuple[fluid.Program, Any]:
    with fresh() as (main, _):
        h = fluid.data("x", [None, 32])
        kept = []
        for i in range(9):
            h = layers.fc(h, 32, act="tanh", bias_attr=False)
            kept += [h] if i % 3 == 2 else []
        loss = layers.mean(layers.square(h))
        optimizer = fluid.optimizer.SGD(0.1)
        if checkpoints:
            optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(kept)
        optimizer.minimize(loss)
    return main, loss


def test_recomputation_needs_less_memory() -> None:
    """XLA does not keep what the forward pass computed, though it computes the same again."""
    plain, again = (
        main.memory_report(batch_size=4096, fetch_list=[loss])
        for main, loss in (tower(False), tower(True))
    )
    assert again.compiled["default"].temporaries < 0.75 * plain.compiled["default"].temporaries


def test_masks_are_those_of_the_forward_pass() -> None:
    """The gradient, through a mask that is drawn again, by the mask that the forward pass shows."""
    with fresh() as (main, startup):
        w = layers.create_parameter(
            [32], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
        )
        dropped = layers.dropout(fluid.data("x", [4, 32]) * w, 0.5)
        squared = layers.square(dropped)
        loss = layers.mean(squared)
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.0))
        optimizer._set_checkpoints([squared])
        _, pairs = optimizer.minimize(loss)
    assert [op.type for op in main.global_block().ops].count("dropout") == 2
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        seen = [
            exe.run(
                main, feed={"x": np.ones((4, 32), "float32")}, fetch_list=[dropped, pairs[0][1]]
            )
            for _ in range(2)
        ]
    for shown, grad in seen:
        assert 0 < np.count_nonzero(shown) < shown.size
        np.testing.assert_allclose(grad, (2 * shown**2 / 0.5).sum(0) / shown.size, rtol=1e-6)
    assert not np.array_equal(seen[0][0], seen[1][0])


def test_lookahead_in_float64() -> None:
    """Its rate is a float32, at which 1.8.5 stops in the k-th step."""
    with fresh() as (main, startup):
        w = layers.create_parameter(
            [2], "float64", name="w", default_initializer=fluid.initializer.Constant(1.0)
        )
        inner = fluid.optimizer.SGD(layers.fill_constant([1], "float64", 0.5))
        loss = layers.reduce_sum(w)
        fluid.optimizer.LookaheadOptimizer(inner, alpha=0.25, k=2).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        seen = [exe.run(main, fetch_list=[loss])[0].item() for _ in range(4)]
        end = np.array(fluid.global_scope().find_var("w").get_tensor())
    # 1 -> 0.5 -> 0, mixed: 0.75 * 1 + 0.25 * 0; then the same from there
    assert seen == [2.0, 1.0, 1.5, 0.5] and end.dtype == np.float64
    assert end.tolist() == [0.5, 0.5]


def test_refused() -> None:
    with fresh():
        x = fluid.data("x", [2, 3])
        y = layers.cond(
            layers.reduce_sum(x) > 0.0, lambda: layers.fc(x, 1), lambda: layers.fc(x, 1)
        )
        loss = layers.mean(y)
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
        with pytest.raises(FluidValueError, match="_set_checkpoints"):
            optimizer.minimize(loss)
        optimizer._set_checkpoints([y])
        with pytest.raises(
            UnsupportedError, match=r"has a block.*test_wrapped|test_wrapped.*has a block"
        ):
            optimizer.minimize(loss)
        with pytest.raises(FluidTypeError, match="holds 3"):
            fluid.backward.append_backward(loss, checkpoints=[3])
        with pytest.raises(FluidValueError, match="3 sections, but place_list has 1"):
            fluid.optimizer.PipelineOptimizer(
                fluid.optimizer.SGD(0.1), [[y], [loss]], [fluid.CPUPlace()]
            )
        with pytest.raises(FluidValueError, match="alpha"):
            fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=2.0)
        with pytest.raises(FluidTypeError, match="an optimizer class"):
            fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD(0.1))  # type: ignore[arg-type]
