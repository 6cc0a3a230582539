"""paddle.optimizer's NAdam, RAdam and Rprop against what Paddle 3.3.1 recorded
(tests/tools/record_later_optimizers.py).
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError

from ..tools import record_later_optimizers as record
from ..tools.record_later_optimizers import CASES, run

RECORDED = json.loads(
    (Path(__file__).parents[1] / "data" / "later_optimizers_3.3.1.json").read_text()
)


@pytest.mark.parametrize("case", CASES)
def test_state_op_and_steps_are_paddles(case):
    want, got = RECORDED["cases"][case], run(paddle, case, fluid.unique_name.guard)
    assert got["state"] == want["state"]
    assert got["inputs"] == want["inputs"] and got["outputs"] == want["outputs"]
    assert got["attrs"].keys() == want["attrs"].keys()
    for name, value in want["attrs"].items():
        assert got["attrs"][name] == pytest.approx(value, rel=1e-6), name
    np.testing.assert_allclose(got["w"], want["w"], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("batches", "decay"), [(1, None), (3, 0.02)])
def test_asgd_steps_along_the_mean_of_the_last_gradients(batches, decay):
    """3.3.1's dynamic mode gives these numbers; its static mode does so for one batch alone."""
    x, y = np.array(record.X, "float32"), np.array(record.Y, "float32")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = record.net(paddle)
        paddle.optimizer.ASGD(0.05, batches, weight_decay=decay).minimize(loss)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        exe.run(startup)
        w, last = np.full((3, 2), 0.5), []
        for t in range(6):
            exe.run(main, feed={"x": x * (t + 1), "y": y}, fetch_list=[loss])
            each = x * (t + 1)
            last = [*last, 2 * each.T @ (each @ w - y) / y.size + (decay or 0) * w][-batches:]
            w = w - 0.05 * sum(last) / len(last)
            np.testing.assert_allclose(
                np.array(fluid.global_scope().find_var("w").get_tensor()), w, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("kind", RECORDED["signatures"])
def test_signatures_are_paddles(kind):
    parameters = list(
        inspect.signature(getattr(paddle.optimizer, kind).__init__).parameters.values()
    )[1:]
    there = [
        [p.name, list(p.default) if isinstance(p.default, tuple) else p.default] for p in parameters
    ]
    assert there == RECORDED["signatures"][kind]


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (
            lambda: paddle.optimizer.NAdam(beta1=1.0),
            FluidValueError,
            r"NAdam's beta1 must be in \[0, 1\), but is 1.0",
        ),
        (
            lambda: paddle.optimizer.NAdam(momentum_decay="a"),
            FluidTypeError,
            "NAdam's momentum_decay is a number, not 'a'",
        ),
        (lambda: paddle.optimizer.RAdam(epsilon=None), FluidValueError, "epsilon is not set"),
        (lambda: paddle.optimizer.ASGD(batch_num=0), FluidValueError, "batch_num is above 0"),
        (lambda: paddle.optimizer.ASGD(batch_num=1.5), FluidTypeError, "batch_num is an integer"),
        (
            lambda: paddle.optimizer.Rprop(0.1, (0.2, 0.3)),
            FluidValueError,
            "0.1 is not within 0.2 to 0.3",
        ),
        (lambda: paddle.optimizer.Rprop(etas=(1.1, 1.2)), FluidValueError, "Rprop's etas"),
        (
            lambda: paddle.optimizer.Rprop(etas=1.2),
            FluidTypeError,
            "Rprop's etas is a pair of numbers, not 1.2",
        ),
        (
            lambda: paddle.optimizer.Rprop(multi_precision=True),
            UnsupportedError,
            "no multi_precision",
        ),
        (
            lambda: paddle.optimizer.Rprop(paddle.optimizer.lr.NaturalExpDecay(0.1, 0.1)),
            FluidTypeError,
            "takes no scheduler",
        ),
    ],
)
def test_what_cannot_be(made, error, said):
    with pytest.raises(error, match=said):
        made()
