"""What a plan says of bytes: those that devices hold and those that travel, against the compiled step's own."""

from __future__ import annotations

from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.planning import plan
from fluidjax.planning.hlo import payload
from tests.planning.nets import build, clicks, compiled, dense

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "lamb": lambda: fluid.optimizer.Lamb(0.01),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
}
CASES = [
    ("data parallel", 4, dense, "adam"), ("pieces", 4, dense, "momentum"), ("pservers", 4, dense, "adam"),
    ("data parallel", 2, clicks, "adagrad"), ("pservers", 4, clicks, "adagrad"),
]  # fmt: skip
MORE = [
    (s, n, net, o) for s in ("data parallel", "pieces", "pservers") for n in (2, 4) for net, o in
    ((dense, "sgd"), (dense, "adam"), (dense, "lamb"), (clicks, "sgd"), (clicks, "adam"), (clicks, "adagrad"))
]  # fmt: skip


def check(strategy: str, ranks: int, net: Any, optimizer: str) -> None:
    main, _, loss = build(net, OPTIMIZERS[optimizer]())
    row = plan(main, ranks, batch=16, strategies=strategy, fetch_list=[loss]).rows[0]
    step = compiled(main, loss, strategy, ranks, 16)
    assert dict(row.payload) == payload(step.as_text(), ranks)
    key = 16 if net is dense else 0  # the seed and the number of the step, for the dropout
    if optimizer != "lamb":  # which reads powers that it does not use, and XLA is not given those
        assert row.parameters + row.state + row.feeds + key == step.memory_analysis().argument_size_in_bytes


@pytest.mark.optimized
@pytest.mark.parametrize(("strategy", "ranks", "net", "optimizer"), CASES)
def test_bytes_are_those_of_the_compiled_step(strategy: str, ranks: int, net: Any, optimizer: str) -> None:
    check(strategy, ranks, net, optimizer)


@pytest.mark.thorough
@pytest.mark.optimized
@pytest.mark.parametrize(("strategy", "ranks", "net", "optimizer"), [c for c in MORE if c not in CASES])
def test_bytes_of_more(strategy: str, ranks: int, net: Any, optimizer: str) -> None:
    check(strategy, ranks, net, optimizer)
