"""Networks with DynamicRNN, IfElse and rank tables against recordings of Paddle 1.8.5: programs op
by op, and training.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid

from ..nets import fresh
from ..test_golden_programs import compare
from ..tools import rank_nets
from .test_control import run_steps

RECORDS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "rank_1.8.5.json.gz").read_bytes())
)
NETS = {net.__name__: net for net in rank_nets.NETS}


@pytest.mark.first(3)
@pytest.mark.parametrize("name", NETS)
def test_programs_and_steps_equal_paddles(name: str) -> None:
    record = RECORDS[name]
    with fresh() as (main, startup):
        loss = NETS[name](fluid)
        compare(main, record["forward"], "forward")
        _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    compare(main, record["main"], "main")
    got = run_steps(rank_nets.FEEDS[name], main, startup, loss, pairs)
    for step, (mine, want) in enumerate(zip(got, record["steps"], strict=True)):
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
