"""What a fetch list may hold beside variables, and which updates take place then: as 1.8.5 does it
(tried there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FeedError, FetchError, FluidTypeError

from ..nets import fresh

FEED = {"x": np.ones((2, 3), "float32")}
FIRST = {"fc_0.w_0", "fc_0.b_0", "@LR_DECAY_COUNTER@"}
SECOND = {
    f"fc_1.{p}_0{kind}"
    for p in "wb"
    for kind in ("", "_moment1_0", "_moment2_0", "_beta1_pow_acc_0", "_beta2_pow_acc_0")
}
ALL = FIRST | SECOND | {"count"}


class Net:
    """Two losses, each with an optimizer of its own, and a counter."""

    def __init__(self) -> None:
        self.x = fluid.layers.data("x", [3])
        self.hidden = fluid.layers.fc(self.x, 1)
        self.loss, self.most = fluid.layers.mean(self.hidden), fluid.layers.reduce_max(self.hidden)
        rate = fluid.layers.exponential_decay(0.1, 1, 0.99)
        self.result: Any = fluid.optimizer.SGD(rate).minimize(self.loss)
        self.other: Any = fluid.optimizer.Adam(0.1).minimize(
            fluid.layers.mean(fluid.layers.fc(self.x, 2))
        )
        fluid.layers.autoincreased_step_counter("count")


@pytest.fixture(scope="module")
def net() -> Iterator[tuple[Net, fluid.Program, fluid.Executor]]:
    with fresh(1) as (main, startup), fluid.scope_guard(fluid.Scope()):
        net, exe = Net(), fluid.Executor()
        exe.run(startup)
        yield net, main, exe


def moved(run: Callable[[], Any]) -> tuple[Any, set[str]]:
    """What a run returns, and which variables it changed."""
    scope = fluid.global_scope()
    before = {n: scope.get(n) for n in ALL}
    return run(), {n for n in ALL if not np.array_equal(scope.get(n), before[n])}


def test_a_set_has_no_order(net: tuple[Net, fluid.Program, fluid.Executor]) -> None:
    one, main, exe = net
    for wrong in ({one.loss.name}, frozenset([one.loss.name])):
        with pytest.raises(FluidTypeError, match="a set has none; give a list"):
            exe.run(main, FEED, wrong)


CASES: dict[str, tuple[Callable[[Net], Any], int, set[str]]] = {
    "the result": (lambda n: [n.loss, n.result], 1, FIRST),
    "in a tuple": (lambda n: (n.loss.name, n.result), 1, FIRST),
    "the ops": (lambda n: [n.loss, n.result[0]], 1, FIRST),
    "one op": (lambda n: [n.loss, n.result[0][0]], 1, {"fc_0.b_0", "@LR_DECAY_COUNTER@"}),
    "an op in a list": (
        lambda n: [n.loss, [n.result[0][0], n.most]],
        2,
        {"fc_0.b_0", "@LR_DECAY_COUNTER@"},
    ),
    "no value": (lambda n: [n.result], 0, FIRST),
    "ops alone": (lambda n: n.result[0], 0, FIRST),
    "the other": (lambda n: [n.loss, n.other], 1, SECOND),
    "both": (lambda n: [n.loss, n.other, n.result], 1, FIRST | SECOND),
    "a counter": (lambda n: [n.loss, n.result, "count"], 2, FIRST | {"count"}),
    "a weight": (lambda n: ["fc_0.w_0", n.result], 1, FIRST),
    "lists": (lambda n: [[n.loss, n.most], [n.x.name]], 3, ALL),
    "nothing": (lambda n: [[]], 0, ALL),
}


@pytest.mark.parametrize("case", CASES)
def test_of_ops_there_is_no_value_and_no_other_update(case: str, net: Any) -> None:
    made, main, exe = net
    make, count, want = CASES[case]
    for _ in range(2):
        got, changed = moved(lambda: exe.run(main, feed=FEED, fetch_list=make(made)))
        assert len(got) == count and changed == want


def test_with_use_prune_all_updates_take_place_but_no_counter(net: Any) -> None:
    made, main, exe = net
    assert moved(lambda: exe.run(main, feed=FEED, fetch_list=[made.loss], use_prune=True))[
        1
    ] == ALL - {"count"}
    assert moved(lambda: exe.run(main, feed=FEED, fetch_list=[made.loss]))[1] == ALL


def test_a_fed_variable_stands_for_what_computes_it(net: Any) -> None:
    """With use_prune; without it is computed."""
    made, main, exe = net
    feed = {**FEED, made.hidden.name: np.full((2, 1), 5, "float32")}
    assert exe.run(main, feed=feed, fetch_list=[made.most], use_prune=True)[0] == 5
    assert exe.run(main, feed=feed, fetch_list=[made.most, made.result])[0] == 5
    assert exe.run(main, feed=feed, fetch_list=[made.most])[0] != 5
    with pytest.raises(FeedError, match="'x' must be fed"):  # which the updates need
        exe.run(
            main,
            feed={made.hidden.name: feed[made.hidden.name]},
            fetch_list=[made.most],
            use_prune=True,
        )


def test_what_updates_need_is_computed() -> None:
    """Clips have the role of updates; 1.8.5 leaves them out, and fails."""
    with fresh(1) as (main, startup), fluid.scope_guard(fluid.Scope()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 1))
        clip = fluid.clip.GradientClipByGlobalNorm(0.1)
        result = fluid.optimizer.SGD(
            0.1, regularization=fluid.regularizer.L2Decay(0.1), grad_clip=clip
        ).minimize(loss)
        exe = fluid.Executor()
        found = []
        for fetches in ([loss], [loss, result]):
            exe.run(startup)
            exe.run(main, feed=FEED, fetch_list=fetches)
            found.append(fluid.global_scope().get("fc_0.w_0"))
        assert np.array_equal(*found)


def test_data_parallel(net: Any) -> None:
    made, main, exe = net
    several = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=made.loss.name, places=fluid.cpu_places(2)
    )
    for fetches, want in (
        ([made.loss, made.result], FIRST),
        ([made.loss, made.other], SECOND),
        ([made.loss], ALL),
    ):
        got, changed = moved(lambda f=fetches: exe.run(several, feed=FEED, fetch_list=f))
        assert got[0].shape == (2,) and changed == want


def test_what_is_refused(net: Any) -> None:
    made, main, exe = net
    mean = next(op for op in main.global_block().ops if op.type == "mean")
    with pytest.raises(
        FluidTypeError, match="optimize ops such as minimize returns, not op 'mean'"
    ):
        exe.run(main, feed=FEED, fetch_list=[made.loss, mean])
    for bad in (made.result[0][0], [made.loss, None], [1]):
        with pytest.raises(FluidTypeError, match="fetch_list takes"):
            exe.run(main, feed=FEED, fetch_list=bad)
    with fresh() as (other, _):
        pass
    with pytest.raises(FetchError, match="optimize op of another program"):
        exe.run(other, fetch_list=[made.result])
