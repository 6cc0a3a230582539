"""Gradients of gradients: programs and trained values equal those of Paddle 1.8.5
(tests/backward/gradient_nets.py).
"""

from __future__ import annotations

import gzip
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import UnsupportedError
from fluidjax.ir.desc import OpDesc
from fluidjax.ops.definition import GradNames, GradOp
from fluidjax.ops.registry import REGISTRY, lookup

from ..nets import fresh
from ..test_golden_programs import compare_ops
from . import gradient_nets as nets

RECORD: dict[str, Any] = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "gradients_1.8.5.json.gz").read_bytes())
)


# Seeds of nets in which 1.8.5 is wrong, and what it does there. What is right is compared with
# jax.grad (test_gradients_again.py).
WRONG_IN_PADDLE = {
    "5 67 75 85 137": (
        "the gradient that a target begins with is overwritten by what flows into it from another"
        " target"
    ),
    "59": (
        "an op reads what flows back in place of the gradient that an earlier call computed, which"
        " has the same name"
    ),
}
# 1.8.5 takes the second gradient of concat and split for zero, without a word.
LOST_IN_PADDLE = {"dense_penalty"}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", [n for n in nets.TRAINED if n not in LOST_IN_PADDLE])
def test_a_penalty_on_gradients_trains_as_in_paddle(name: str) -> None:
    record = RECORD["trained"][name]
    with fresh() as (main, startup):
        fetched = nets.TRAINED[name](fluid)
    compare_ops(main.global_block(), record, name)
    exe, scope = fluid.Executor(), fluid.Scope()
    # by hand: to compile what draws the parameters would take longer than the test
    for op in startup.global_block().ops:
        constant = np.full(
            op.attr("shape"), op.attr("value") if op.has_attr("value") else 0, "float32"
        )
        scope.var(op.output("Out")[0]).get_tensor().set(constant)
    for p in main.all_parameters():
        scope.var(p.name).get_tensor().set(nets.values(p.name, p.shape))
    with fluid.scope_guard(scope):
        steps = [exe.run(main, feed=nets.feeds(main, k), fetch_list=fetched) for k in range(3)]
    got = [[float(np.asarray(v).ravel()[0]) for v in step] for step in steps]
    np.testing.assert_allclose(got, record["steps"], rtol=2e-4)


def test_random_programs_are_paddles() -> None:
    wrong = {seed for seeds in WRONG_IN_PADDLE for seed in seeds.split()}
    assert wrong <= RECORD["random"].keys()
    for seed, record in ((s, r) for s, r in RECORD["random"].items() if s not in wrong):
        with fresh() as (main, _), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no gradient reaches any parameter")
            net = nets.RandomNet(fluid, int(seed))
        assert [[None] if found == [] else found for found in record["log"]] == [
            [None] if f == [] else f for f in net.log
        ], seed
        for i, (got, want) in enumerate(zip(nets.plain(main), record["ops"], strict=False)):
            assert got == want, f"seed {seed}, op {i}"
        assert len(main.global_block().ops) == len(record["ops"]), seed


@pytest.mark.parametrize("name", LOST_IN_PADDLE)
def test_a_penalty_trains_by_its_derivative(name: str) -> None:
    """The gradient of the whole loss, which holds gradients, is that of jax.grad through the step
    that computes it.
    """
    with fresh() as (main, _):
        loss = nets.TRAINED[name](fluid)[0]
    state = {
        n: np.zeros([max(d, 1) for d in v.shape], "float32")
        for n, v in main.global_block().vars.items()
        if v.persistable
    }
    values = {p.name: nets.values(p.name, p.shape) for p in main.all_parameters()}
    slopes = {
        op.input("Param")[0]: op.input("Grad")[0]
        for op in main.global_block().ops
        if op.type == "momentum"
    }
    feed, step = nets.feeds(main, 0), fluid.step_fn(main, [loss, *slopes.values()])
    found, want = jax.jit(
        jax.value_and_grad(
            lambda given: _loss_and_rest(step, {**state, **given}, feed), has_aux=True
        )
    )(values)
    for param, mine in zip(slopes, found[1], strict=True):
        np.testing.assert_allclose(mine, want[param], rtol=1e-4, atol=1e-6, err_msg=param)


def _loss_and_rest(step: Any, state: dict[str, Any], feed: dict[str, Any]) -> tuple[Any, Any]:
    loss, *rest = step(state, feed)[1]
    return loss.sum(), rest


def test_the_filters_second_gradient_alone() -> None:
    """What flows back to conv2d's Output@GRAD, which 1.8.5 leaves out then; of h = conv(x, w), g =
    sum of 2 h x, dg/dh = 2 x summed.
    """
    with fresh() as (main, startup):
        x = fluid.layers.data("x", [1, 2, 2])
        h = fluid.layers.conv2d(x, 1, 1, bias_attr=False, param_attr="w")
        y = fluid.layers.reduce_sum(fluid.layers.square(h))
        (g,) = fluid.gradients(y, main.global_block().var("w"))
        (second,) = fluid.gradients(fluid.layers.reduce_sum(g), h)
    value = np.arange(4, dtype="float32").reshape(1, 1, 2, 2)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    np.testing.assert_allclose(
        exe.run(main, feed={"x": value}, fetch_list=[second], scope=scope)[0], 2 * value
    )


def test_an_op_may_write_its_gradient_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpDef.write_grad: where neither an op of its own nor ordinary ones say what the gradient is."""

    def write(op: OpDesc, names: GradNames) -> list[GradOp]:
        return [
            GradOp(
                "scale", {"X": names.taken("Out@GRAD")}, {"Out": names.given("X")}, {"scale": 3.0}
            )
        ]

    monkeypatch.setitem(REGISTRY, "relu", replace(lookup("relu"), grad=None, write_grad=write))
    with fresh() as (main, _):
        x = fluid.layers.data("x", [4])
        x.stop_gradient = False
        (g,) = fluid.gradients(fluid.layers.relu(x), x)
    assert g.name == "x@GRAD"
    assert (main.global_block().ops[-1].type, main.global_block().ops[-1].attr("scale")) == (
        "scale",
        3.0,
    )
    got = fluid.Executor().run(main, feed={"x": -np.ones((2, 4), "float32")}, fetch_list=[g])[0]
    np.testing.assert_array_equal(got, np.full((2, 4), 3, "float32"))


def test_calc_gradient_gives_the_variable_itself() -> None:
    with fresh():
        x = fluid.layers.data("x", [4])
        x.stop_gradient = False
        y = fluid.layers.square(x)
        assert fluid.backward.calc_gradient(y, x).name == "x@GRAD"
        assert [v.name for v in fluid.backward.calc_gradient(y, [x, x])] == ["grad/grad/x@GRAD"] * 2


# What gradients of a sum are asked for: the ops as 1.8.5 appends them behind the first gradient.
SUMS: dict[tuple[str, str], list[str]] = {
    ("h x", "h"): ["scale h@GRAD", "scale x@GRAD"],
    ("h h x", "h"): ["scale h@GRAD@RENAME@block0@0", "scale h@GRAD@RENAME@block0@1", "sum h@GRAD"],
    ("h x z", "x"): [
        "scale h@GRAD",
        "scale x@GRAD@RENAME@block0@0",
        "relu_grad x@GRAD@RENAME@block0@1",
        "sum x@GRAD",
    ],
}


@pytest.mark.parametrize("terms, of", SUMS)
def test_the_gradients_of_a_sum_that_nobody_asks_for_are_left_out(terms: str, of: str) -> None:
    with fresh() as (main, _):
        x, z = (fluid.data(n, [2]) for n in "xz")
        x.stop_gradient = z.stop_gradient = False
        h = fluid.layers.relu(x)
        found = {"h": h, "x": x, "z": z}
        fluid.gradients(fluid.layers.sum([found[n] for n in terms.split()]), found[of])
    ops = main.global_block().ops
    got = [f"{op.type} {op.output_arg_names[0].replace(h.name, 'h')}" for op in ops[4:]]
    assert got == SUMS[terms, of]


def test_a_parameter_that_is_a_term_of_the_loss_has_its_gradient() -> None:
    """1.8.5 loses it: nothing that the forward ops make leads to it. And the gradient of a value
    beside a term that stands there twice.
    """
    with fresh() as (main, startup):
        x = fluid.data("x", [2])
        p, q = (
            fluid.layers.create_parameter([n], "float32", name=m) for n, m in ((1, "p"), (2, "q"))
        )
        loss = fluid.layers.sum([fluid.layers.mean(x * q), fluid.layers.scale(p, 3.0), p])
        pairs = fluid.append_backward(loss)
        h = fluid.layers.relu(q)
        pairs += [(h, fluid.gradients(fluid.layers.sum([h, q, q]), h)[0])]
    exe = fluid.Executor()
    exe.run(startup)
    got = exe.run(main, {"x": np.float32([1, 3])}, [grad for _, grad in pairs])
    want = {"p": [4.0], "q": [0.5, 1.5], h.name: [1.0, 1.0]}
    assert {v.name: g.tolist() for (v, _), g in zip(pairs, got, strict=True)} == want


def test_names_of_an_op_go_by_slot() -> None:
    """As 1.8.5 lists them: slots in the order of their names, whatever order they were given in."""
    with fresh() as (main, _):
        x, z = fluid.layers.data("x", [3, 4, 4]), fluid.layers.data("z", [4])
        fluid.layers.batch_norm(fluid.layers.conv2d(x, 2, 3, bias_attr=False))
        label = fluid.layers.data("label", [1], dtype="int64")
        fluid.layers.cross_entropy(fluid.layers.fc(z, 3, bias_attr=False, act="softmax"), label)
    ops = {op.type: op for op in main.global_block().ops}
    assert ops["conv2d"].input_arg_names == ["conv2d_0.w_0", "x"]
    norm = "b_0 w_1 w_0 w_2", "w_1 tmp_0 tmp_1 w_2 tmp_2"
    names = [[f"batch_norm_0.{n}" for n in side.split()] for side in norm]
    assert ops["batch_norm"].input_arg_names == [*names[0], "conv2d_0.tmp_0"]
    assert ops["batch_norm"].output_arg_names == names[1]
    assert ops["cross_entropy2"].input_arg_names == ["label", "fc_0.tmp_1"]
    assert ops["cross_entropy2"].output_arg_names == [
        f"cross_entropy2_0.tmp_{k}" for k in (2, 1, 0)
    ]


def in_a_branch(x: Any, w: Any) -> Any:
    positive = fluid.layers.less_than(
        fluid.layers.fill_constant([1], "float32", 0.0), fluid.layers.reduce_sum(w)
    )
    return fluid.layers.cond(positive, lambda: x * w * w, lambda: fluid.layers.tanh(x))


def in_a_loop(x: Any, w: Any) -> Any:
    i, n = (fluid.layers.fill_constant([1], "int64", v) for v in (0, 2))
    return fluid.layers.while_loop(
        lambda i, y: fluid.layers.less_than(i, n), lambda i, y: [i + 1, y * w], [i, x * w]
    )[1]


def in_steps(x: Any, w: Any) -> Any:
    rnn = fluid.layers.StaticRNN()
    with rnn.step():
        row = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 1], batch_ref=row)
        rnn.update_memory(before, before * w + row)
        rnn.step_output(before)
    return rnn()


@pytest.mark.parametrize("net", [in_a_branch, in_a_loop, in_steps])
def test_a_second_derivative_through_a_block_is_refused(net: Any) -> None:
    """1.8.5 fails at the branch and the steps (IndexError, or EnforceNotMet by minimize), and
    leaves the loop out of what it gives.
    """
    with fresh() as (main, _):
        x = fluid.layers.data("x", [2, 3, 1], append_batch_size=False)
        x.stop_gradient = False
        w = fluid.layers.create_parameter([1], "float32", name="w")
        (slope,) = fluid.gradients(fluid.layers.reduce_sum(net(x, w)), x)
        before = main.desc
        penalty = fluid.layers.reduce_sum(fluid.layers.square(slope))
        with pytest.raises(
            UnsupportedError,
            match=(
                r"the gradient of op '\w+_grad' \(.*test_gradients.py:\d+\) is not supported yet: a"
                r" second"
            ),
        ):
            fluid.gradients(penalty, x)
        with pytest.raises(UnsupportedError, match="call gradients\\(\\) within the block"):
            fluid.optimizer.SGD(0.1).minimize(penalty)
        assert len(main.blocks) == len(before.blocks)
        slope.stop_gradient = True
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.reduce_sum(net(x, w) * slope))
