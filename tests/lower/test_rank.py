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


@pytest.mark.first(1)
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


def test_rows_of_a_rank_table_are_declared_open() -> None:
    """A memory whose start has a known number of rows says nothing of how many rows go on, or of
    how many come out: roll, which reshapes to what is declared, takes them all.
    """
    with fresh() as (main, _):
        x = fluid.data("x", [None, 1], lod_level=1)
        first = fluid.layers.fill_constant([2, 3], "float32", 0.5)
        rnn = fluid.layers.DynamicRNN()
        with rnn.block():
            given = rnn.step_input(x)
            memory = rnn.memory(init=first)
            assert memory.shape == (-1, 3)
            new = fluid.layers.elementwise_add(memory, fluid.layers.expand(given, [1, 3]))
            rnn.update_memory(memory, new)
            rnn.output(new)
        out = rnn()
        assert out.shape == (-1, 3)
        rolled = fluid.layers.roll(fluid.layers.elementwise_add(out, x, axis=0), [1], dims=[1])
        known = fluid.layers.data("known", [4, 1], append_batch_size=False, lod_level=1)
        entries = fluid.layers.lod_tensor_to_array(known, fluid.layers.lod_rank_table(known))
        assert entries.shape == (-1, 1)
    rows = np.float32([[1], [2], [3], [10]])
    tensor = fluid.create_lod_tensor(rows, [[3, 1]], fluid.CPUPlace())
    (got,) = fluid.Executor().run(
        main, feed={"x": tensor, "known": tensor}, fetch_list=[rolled], return_numpy=False
    )
    sums = np.float32([[1], [3], [6], [10]])
    np.testing.assert_allclose(np.asarray(got), np.tile(sums + rows + 0.5, 3), rtol=1e-6)
