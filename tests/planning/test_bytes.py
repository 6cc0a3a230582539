"""What a plan says of bytes: those that devices hold, those that travel and those that lie there
meanwhile, against the compiled step's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.planning import plan
from fluidjax.planning.hlo import payload
from tests.planning.nets import build, clicks, compiled, dense, plain

ROOT = Path(__file__).parents[2]
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "lamb": lambda: fluid.optimizer.Lamb(0.01),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
}
CASES = [("pservers", 4, clicks, "adagrad")]
MORE = [
    (s, n, net, o) for s in ("data parallel", "pieces", "pservers") for n in (2, 4) for net, o in
    ((plain, "momentum"), (dense, "sgd"), (dense, "adam"), (dense, "lamb"), (clicks, "sgd"), (clicks, "adam"), (clicks, "adagrad"))
]  # fmt: skip


def check(strategy: str, ranks: int, net: Any, optimizer: str) -> None:
    main, _, loss = build(net, OPTIMIZERS[optimizer]())
    batch = max(16, ranks)
    row = plan(main, ranks, batch=batch, strategies=strategy, fetch_list=[loss]).rows[0]
    step = compiled(main, loss, strategy, ranks, batch)
    assert dict(row.payload) == payload(step.as_text(), ranks)
    # kilobytes, nearly all of them on their way; of parts XLA copies what Adam overwrites
    least = 0.25 if optimizer == "adam" and strategy != "data parallel" else 0.65
    assert least < row.activations / step.memory_analysis().temp_size_in_bytes < 1.55
    key = 16 if net is dense else 0  # the seed and the number of the step, for the dropout
    if optimizer != "lamb":  # which reads powers that it does not use, and XLA is not given those
        assert (
            row.parameters + row.state + row.feeds + key
            == step.memory_analysis().argument_size_in_bytes
        )


@pytest.mark.optimized
@pytest.mark.parametrize(("strategy", "ranks", "net", "optimizer"), CASES)
def test_bytes_are_those_of_the_compiled_step(
    strategy: str, ranks: int, net: Any, optimizer: str
) -> None:
    check(strategy, ranks, net, optimizer)


@pytest.mark.thorough
@pytest.mark.optimized
@pytest.mark.parametrize(
    ("strategy", "ranks", "net", "optimizer"), [c for c in MORE if c not in CASES]
)
def test_bytes_of_more(strategy: str, ranks: int, net: Any, optimizer: str) -> None:
    check(strategy, ranks, net, optimizer)


MANY = """
import sys
import jax
ranks = int(sys.argv[1])
jax.config.update("jax_num_cpu_devices", ranks)
from tests.planning import test_bytes as t
dense, sparse = (t.dense, "adam"), (t.clicks, "adagrad")
each = [("data parallel", sparse), ("pieces", dense), ("pservers", dense)]
if ranks > 8:
    each += [("data parallel", dense), ("pieces", sparse), ("pservers", sparse)]
for strategy, (net, optimizer) in each:
    t.check(strategy, ranks, net, optimizer)
print("equal")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranks", [8, *(pytest.param(n, marks=pytest.mark.thorough) for n in (64, 256))]
)
def test_on_many_devices(ranks: int) -> None:
    """In a process of its own, since there are four here."""
    flags = {n: v for n, v in os.environ.items() if n != "XLA_FLAGS"}
    found = subprocess.run(
        [sys.executable, "-c", MANY, str(ranks)],
        capture_output=True,
        text=True,
        env=flags,
        cwd=ROOT,
        check=False,
    )
    assert found.stdout == "equal\n", found.stderr
