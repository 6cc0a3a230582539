"""Mixed precision: programs equal to Paddle 1.8.5's op by op, and the rule of the scale."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.contrib import mixed_precision
from fluidjax.errors import FluidTypeError, FluidValueError

from ..nets import fresh
from ..test_golden_programs import compare
from ..tools.record_mixed_precision import CASES, line

RECORDED = json.loads(
    gzip.decompress(
        (Path(__file__).parents[1] / "data" / "mixed_precision_1.8.5.json.gz").read_bytes()
    )
)


@pytest.mark.parametrize("name", sorted(CASES))
def test_programs_equal_paddles(name):
    with fresh() as (main, startup):
        result = CASES[name](fluid)
    want = RECORDED[name]
    compare(main, want["main"], "main")
    compare(startup, want["startup"], "startup")
    assert [result[0], [list(p) for p in result[1]], *result[2:]] == want["result"]


def trained(batches, dtype="float16", **args):
    """The scale, both counts and the weights after each step of fitting a line."""
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        loss = line(fluid)
        optimizer = mixed_precision.decorate(fluid.optimizer.SGD(0.1), dtype=dtype, **args)
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fluid.global_scope().var("fc_0.w_0").set(np.full((3, 1), 0.5, "float32"))
        found = []
        kept = [
            n
            for n in ("loss_scaling_0", "num_good_steps_0", "num_bad_steps_0", "fc_0.w_0")
            if main.global_block().has_var(n)
        ]
        for x, y in batches:
            (value,) = exe.run(main, {"x": x, "y": y}, [loss])
            found.append((float(value), *(fluid.global_scope().get(n).copy() for n in kept)))
        return found


X, Y = np.array([[1, 2, 3], [0, 1, -1]], "float32"), np.array([[1], [2]], "float32")
BAD = np.array([[6e4, 6e4, 6e4], [0, 0, 0]], "float32")  # the product is infinite in float16


def test_the_scale():
    """It grows after two good steps in a row and shrinks after two bad ones, in which nothing is
    updated.
    """
    kinds = "ggggbgbbbbbb"
    scale, good, bad, told = 4.0, 0, 0, []
    for kind in kinds:  # the rule: a change comes when one more step would exceed the number
        if kind == "g":
            good, bad = (0, 0) if good + 1 > 2 else (good + 1, 0)
            scale = scale * 2 if good == 0 else scale
        else:
            good, bad = 0, 0 if bad + 1 > 2 else bad + 1
            scale = max(scale * 0.25, 1.0) if bad == 0 else scale
        told.append((scale, good, bad))
    found = trained(
        [(X if k == "g" else BAD, Y) for k in kinds],
        init_loss_scaling=4.0,
        incr_every_n_steps=2,
        decr_ratio=0.25,
    )
    assert [(float(s[0]), int(g[0]), int(b[0])) for _, s, g, b, _ in found] == told
    for kind, before, after in zip(kinds[1:], found, found[1:], strict=False):
        assert np.array_equal(before[-1], after[-1]) == (kind == "b")
    assert np.isfinite(found[-1][-1]).all() and min(t[0] for t in told) == 1.0


@pytest.mark.parametrize(("dtype", "near"), [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_values(dtype, near):
    """Steps are those of NumPy in float32, within the half precision's rounding, whatever the
    scale.
    """
    w, b, want = np.full((3, 1), 0.5), 0.0, []
    for _ in range(3):
        error = X @ w + b - Y
        want.append((error**2).mean())
        w, b = w - 0.1 * X.T @ error, b - 0.1 * error.sum()
    ways = [
        trained([(X, Y)] * 3, dtype, init_loss_scaling=s, use_dynamic_loss_scaling=False)
        for s in (1.0, 64.0)
    ]
    for steps in ways:
        np.testing.assert_allclose([s[0] for s in steps], want, rtol=near, atol=near)


def test_lists():
    lists = mixed_precision.AutoMixedPrecisionLists(
        {"exp", "relu", "mine"}, {"conv2d", "tanh", "other"}
    )
    assert (
        {"exp", "relu", "mine", "mul"} <= lists.white_list
        and "exp" not in lists.black_list
        and "relu" not in lists.gray_list
    )
    assert {
        "conv2d",
        "tanh",
        "other",
        "mean",
    } <= lists.black_list and "conv2d" not in lists.white_list
    with pytest.raises(FluidValueError, match="mul is on both"):
        mixed_precision.AutoMixedPrecisionLists({"mul"}, {"mul"})


def test_what_is_wrong():
    with pytest.raises(FluidTypeError, match="decorate takes an optimizer, not float"):
        mixed_precision.decorate(0.1)
    with fresh():
        with pytest.raises(FluidValueError, match="float16 or bfloat16, not 'float32'"):
            mixed_precision.decorate(fluid.optimizer.SGD(0.1), dtype="float32")
        x = fluid.layers.fc(fluid.data("x", [1, 3]), 1)
        with pytest.raises(FluidValueError, match="let it come of an op on the black list"):
            mixed_precision.decorate(fluid.optimizer.SGD(0.1)).minimize(
                fluid.layers.reshape(x, [1])
            )
