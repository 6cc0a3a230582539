"""Networks with control flow against recordings of Paddle 1.8.5: programs op by op, and three steps
of training.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from ..documents import examples
from ..nets import fresh
from ..test_golden_programs import compare
from ..tools import control_nets

RECORDS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "control_1.8.5.json.gz").read_bytes())
)
NETS = {net.__name__: net for net in control_nets.NETS}
# Loops that write anew, by assign, what they multiply: 1.8.5 differentiates by what it is after the
# loop, which differences of the loss contradict. tests/lower/test_while.py compares ours with jax.grad.
WRONG_IN_PADDLE = {
    "while_loop",
    "while_in_cond",
    "cond_in_while",
    "while_in_while",
    "slope_in_a_case",
}
# 1.8.5 takes what the first gradients() computed for what flows back in the second, and has ops for
# that.
OTHER_OPS = {"slope_in_a_case", "slope_in_a_step"}


def trained(name: str) -> tuple[fluid.Program, fluid.Program, Any, list[Any]]:
    """The main program with SGD, the startup program, the loss, and the pairs of parameters and
    gradients.
    """
    with fresh() as (main, startup):
        loss = NETS[name](fluid)
        _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss, pairs


def run_steps(feeds: Any, main: Any, startup: Any, loss: Any, pairs: Any) -> list[dict[str, Any]]:
    """Each step's loss, gradients and parameters after it, as the recording has them."""
    found = []
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for p, _ in pairs:
            scope.find_var(p.name).get_tensor().set(
                control_nets.initial(p.name, p.shape), fluid.CPUPlace()
            )
        for feed in feeds:
            given = {k: control_nets.fed(fluid, v) for k, v in feed.items()}
            values = exe.run(main, feed=given, fetch_list=[loss, *(g for _, g in pairs)])
            grads = dict(zip((p.name for p, _ in pairs), values[1:], strict=True))
            after = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p, _ in pairs}
            found.append({"loss": values[0], "grads": grads, "after": after})
    return found


def differences(name: str, h: float = 1e-2) -> np.ndarray:
    """The slope of the first step's loss along each element of w, from the loss alone."""
    main, startup, loss, _ = trained(name)
    feed = {k: control_nets.fed(fluid, v) for k, v in control_nets.FEEDS[name][0].items()}
    exe, w = fluid.Executor(), control_nets.initial("w", main.global_block().var("w").shape)

    def at(value: np.ndarray) -> float:
        scope = fluid.Scope()
        exe.run(startup, scope=scope)
        scope.var("w").set(value)
        return exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0].item()

    steps = h * np.eye(w.size, dtype=np.float32).reshape(-1, *w.shape)
    return np.array([(at(w + d) - at(w - d)) / (2 * h) for d in steps]).reshape(w.shape)


@pytest.mark.parametrize("name", NETS)
def test_programs_equal_paddles(name: str) -> None:
    with fresh() as (main, _):
        NETS[name](fluid)
    compare(main, RECORDS[name]["forward"], "forward")
    if name not in OTHER_OPS:
        compare(trained(name)[0], RECORDS[name]["main"], "main")


@pytest.mark.first(6)
@pytest.mark.parametrize("name", NETS)
def test_three_steps_equal_paddles(name: str) -> None:
    got = run_steps(control_nets.FEEDS[name], *trained(name))
    if name in WRONG_IN_PADDLE:
        want = RECORDS[name]["steps"][0]
        np.testing.assert_allclose(got[0]["loss"], want["loss"], rtol=2e-5)
        ours, theirs = (
            np.asarray(grads["w"], np.float64) for grads in (got[0]["grads"], want["grads"])
        )
        slope = differences(name)
        np.testing.assert_allclose(ours, slope, rtol=2e-2, atol=1e-3)
        assert np.abs(theirs - slope).max() > 10 * np.abs(ours - slope).max()
        return
    for step, (mine, want) in enumerate(zip(got, RECORDS[name]["steps"], strict=True)):
        np.testing.assert_allclose(
            mine["loss"], want["loss"], rtol=2e-5, atol=1e-6, err_msg=f"loss of step {step}"
        )
        for what in ("grads", "after"):
            for p, value in want[what].items():
                np.testing.assert_allclose(
                    mine[what][p],
                    value,
                    rtol=2e-5,
                    atol=1e-6,
                    err_msg=f"{what} of {p}, step {step}",
                )


def test_the_documents_example(capsys: pytest.CaptureFixture[str]) -> None:
    """w is 1.1 and x 1, so the slope of x * w^4 is 4 * 1.1^3."""
    code, *others = examples("control-flow.md", "# Control flow")
    for other in others:
        with fresh(), fluid.scope_guard(fluid.Scope()):
            exec(other, {})
    capsys.readouterr()
    with fresh(), fluid.scope_guard(fluid.Scope()):
        exec(code, {})
    values = [float(v) for v in capsys.readouterr().out.strip(" []\n").split()]
    np.testing.assert_allclose(values, [4 * 1.1**3] * 4, rtol=1e-5)
