"""Paddle 2's functions and layers on static variables give what Paddle 2.6.2 gave, each table of
cases in one program.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from tests.paddle import cases, late_cases

DATA = Path(__file__).parents[1] / "data"
RECORDED = dict(np.load(DATA / "paddle_2.6.2.npz"))
MADE: dict[str, dict[str, list[int]]] = {}  # the parameters of each case
LATER = dict(np.load(DATA / "paddle_2.6.2_late.npz"))
SHAPES = json.loads(str(RECORDED["shapes"])) | json.loads(str(LATER["shapes"]))
RECORDED = LATER | RECORDED


@cache
def results(table: str) -> dict[str, list[np.ndarray]]:
    """What every case of a table gives: one program, one run."""
    expressions = getattr(late_cases if hasattr(late_cases, table) else cases, table)
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        data = cases.Data(paddle.static.data)
        names = {**data.names(), "paddle": paddle, "F": paddle.nn.functional, "nn": paddle.nn}
        outs: dict[str, list[Any]] = {}
        for name, text in expressions.items():
            before = {p.name for p in main.all_parameters()}
            outs[name] = cases.flat(eval(text, names))
            made = {p.name: list(p.shape) for p in main.all_parameters() if p.name not in before}
            MADE.update({name: made} if made else {})
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for made in main.all_parameters():
            fluid.global_scope().find_var(made.name).get_tensor().set(
                cases.parameter(made.name, made.shape), fluid.CPUPlace()
            )
        values = iter(
            exe.run(main, feed=data.feed, fetch_list=[v for vs in outs.values() for v in vs])
        )
        return {name: [np.asarray(next(values)) for _ in vs] for name, vs in outs.items()}


def close(name: str, got: list[np.ndarray]) -> None:
    flat = np.concatenate([a.ravel().astype("float64") for a in got])
    np.testing.assert_allclose(flat, RECORDED[name], rtol=2e-5, atol=2e-6)
    # 2.6.2 has scalars, 2.1 and we [1]
    assert [list(a.shape) or [1] for a in got] == [s or [1] for s in SHAPES[name]]


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_function(name):
    close(name, results("FUNCTIONS")[name])


@pytest.mark.parametrize("name", cases.TENSORS)
def test_tensor_function(name):
    close(name, results("TENSORS")[name])


@pytest.mark.parametrize("name", late_cases.LATE)
def test_late_function(name):
    close(name, results("LATE")[name])


@pytest.mark.thorough
@pytest.mark.parametrize("name", late_cases.MORE)
def test_late_function_of_several_ops(name):
    close(name, results("MORE")[name])


@pytest.mark.parametrize("name", late_cases.METHODS)
def test_method(name):
    close(name, results("METHODS")[name])


@pytest.mark.parametrize("name", cases.LAYERS)
def test_layer(name):
    close(name, results("LAYERS")[name])


@pytest.mark.parametrize("name", cases.RECURRENT)
def test_recurrent_layer(name):
    close(name, results("RECURRENT")[name])


def test_layers_make_the_parameters_of_paddle():
    results("LAYERS")
    results("RECURRENT")
    assert MADE == json.loads(str(RECORDED["parameters"]))


def run(build, **feed):
    """What `build` of fed variables gives, in a program of its own."""
    main = fluid.Program()
    with (
        fluid.program_guard(main, fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        out = build(*(paddle.static.data(n, v.shape, str(v.dtype)) for n, v in feed.items()))
        return [
            np.asarray(v) for v in fluid.Executor().run(main, feed=feed, fetch_list=cases.flat(out))
        ]


def test_weights_of_positive_labels_multiply_their_losses():
    """As in Paddle 2.1; 2.6.2's static mode weights a part of the loss alone."""
    x, weight = np.array([[-1.5, 0.5, 2.0]], "float32"), np.array([3.0, 0.5, 2.0], "float32")
    label = np.array([[1.0, 0.0, 1.0]], "float32")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits
    got = run(lambda x, y, w: loss(x, y, reduction="none", pos_weight=w), x=x, y=label, w=weight)[0]
    q = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(
        got, -(weight * label * np.log(q) + (1 - label) * np.log(1 - q)), rtol=1e-5
    )


def test_random_functions_keep_as_many_as_they_say():
    f = paddle.nn.functional
    whole, rows, images, last, alpha = run(
        lambda x, y: [f.dropout(x, 0.25), f.dropout(x, 0.25, axis=0), f.dropout2d(y, 0.25),
                      f.dropout2d(y, 0.25, data_format="NHWC"), f.alpha_dropout(x, 0.25)],
        x=np.ones((400, 5), "float32"), y=np.ones((20, 20, 2, 20), "float32"),
    )  # fmt: skip
    for got in (whole, rows, images, last):
        assert (
            set(np.unique(got)) <= {np.float32(0), np.float32(1 / 0.75)}
            and 0.15 < (got == 0).mean() < 0.35
        )
    assert (
        (rows == rows[:, :1]).all()
        and (images == images[:, :, :1, :1]).all()
        and (last == last[:, :1, :1, :]).all()
    )
    assert len(np.unique(alpha)) == 2 and 0.15 < (alpha == alpha.min()).mean() < 0.35
    a = (0.75 * (1 + 0.25 * 1.7580993408473766**2)) ** -0.5
    np.testing.assert_allclose(
        np.unique(alpha), a * np.array([-1.7580993, 1.0]) + a * 1.7580993 * 0.25, rtol=1e-5
    )
