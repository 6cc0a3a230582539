"""Networks with control flow against recordings of Paddle 1.8.5: programs op by op, and three steps of training."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from .nets import fresh
from .test_golden_programs import compare
from .tools import control_nets

RECORDS = json.loads(gzip.decompress((Path(__file__).parent / "data" / "control_1.8.5.json.gz").read_bytes()))
NETS = {net.__name__: net for net in control_nets.NETS}
# Loops that write anew, by assign, what they multiply: 1.8.5 differentiates by what it is after the loop, and finite
# differences contradict it. tests/test_while.py compares ours with jax.grad.
WRONG_IN_PADDLE = {"while_loop", "while_in_cond", "cond_in_while", "while_in_while"}


def trained(name: str) -> tuple[fluid.Program, fluid.Program, Any, list[Any]]:
    """The main program with SGD, the startup program, the loss, and the pairs of parameters and gradients."""
    with fresh() as (main, startup):
        loss = NETS[name](fluid)
        _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss, pairs


def run_steps(name: str, main: Any, startup: Any, loss: Any, pairs: Any) -> list[dict[str, Any]]:
    """Each step's loss, gradients and parameters after it, as the recording has them."""
    found = []
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for p, _ in pairs:
            scope.find_var(p.name).get_tensor().set(control_nets.initial(p.name, p.shape), fluid.CPUPlace())
        for feed in control_nets.FEEDS[name]:
            given = {k: control_nets.fed(fluid, v) for k, v in feed.items()}
            values = exe.run(main, feed=given, fetch_list=[loss, *(g for _, g in pairs)])
            grads = dict(zip((p.name for p, _ in pairs), values[1:], strict=True))
            after = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p, _ in pairs}
            found.append({"loss": values[0], "grads": grads, "after": after})
    return found


@pytest.mark.parametrize("name", NETS)
def test_programs_equal_paddles(name: str) -> None:
    with fresh() as (main, _):
        NETS[name](fluid)
    compare(main, RECORDS[name]["forward"], "forward")
    compare(trained(name)[0], RECORDS[name]["main"], "main")


@pytest.mark.parametrize("name", NETS)
def test_three_steps_equal_paddles(name: str) -> None:
    got = run_steps(name, *trained(name))
    if name in WRONG_IN_PADDLE:
        np.testing.assert_allclose(got[0]["loss"], RECORDS[name]["steps"][0]["loss"], rtol=2e-5)
        assert not np.allclose(got[0]["grads"]["w"], RECORDS[name]["steps"][0]["grads"]["w"], rtol=1e-2)
        return
    for step, (mine, want) in enumerate(zip(got, RECORDS[name]["steps"], strict=True)):
        np.testing.assert_allclose(mine["loss"], want["loss"], rtol=2e-5, atol=1e-6, err_msg=f"loss of step {step}")
        for what in ("grads", "after"):
            for p, value in want[what].items():
                np.testing.assert_allclose(mine[what][p], value, rtol=2e-5, atol=1e-6, err_msg=f"{what} of {p}, step {step}")
