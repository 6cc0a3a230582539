"""paddle.optimizer's NAdam, RAdam and Rprop against what Paddle 3.3.1 recorded (tests/tools/record_later_optimizers.py)."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError

from ..tools.record_later_optimizers import CASES, run

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "later_optimizers_3.3.1.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_state_op_and_steps_are_paddles(case):
    want, got = RECORDED["cases"][case], run(paddle, case, fluid.unique_name.guard)
    assert got["state"] == want["state"]
    assert got["inputs"] == want["inputs"] and got["outputs"] == want["outputs"]
    assert got["attrs"].keys() == want["attrs"].keys()
    for name, value in want["attrs"].items():
        assert got["attrs"][name] == pytest.approx(value, rel=1e-6), name
    np.testing.assert_allclose(got["w"], want["w"], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", RECORDED["signatures"])
def test_signatures_are_paddles(kind):
    parameters = list(inspect.signature(getattr(paddle.optimizer, kind).__init__).parameters.values())[1:]
    there = [[p.name, list(p.default) if isinstance(p.default, tuple) else p.default] for p in parameters]
    assert there == RECORDED["signatures"][kind]


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda: paddle.optimizer.NAdam(beta1=1.0), FluidValueError, r"NAdam's beta1 lies in \[0, 1\), and is 1.0"),
        (lambda: paddle.optimizer.NAdam(momentum_decay="a"), FluidTypeError, "NAdam's momentum_decay is a number, not 'a'"),
        (lambda: paddle.optimizer.RAdam(epsilon=None), FluidValueError, "epsilon is not set"),
        (lambda: paddle.optimizer.Rprop(0.1, (0.2, 0.3)), FluidValueError, "0.1 is not within 0.2 to 0.3"),
        (lambda: paddle.optimizer.Rprop(etas=(1.1, 1.2)), FluidValueError, "Rprop's etas"),
        (lambda: paddle.optimizer.Rprop(etas=1.2), FluidTypeError, "Rprop's etas is a pair of numbers, not 1.2"),
        (lambda: paddle.optimizer.Rprop(multi_precision=True), UnsupportedError, "no multi_precision"),
        (lambda: paddle.optimizer.Rprop(paddle.optimizer.lr.NaturalExpDecay(0.1, 0.1)), FluidTypeError, "takes no scheduler"),
    ],
)
def test_what_cannot_be(made, error, said):
    with pytest.raises(error, match=said):
        made()
