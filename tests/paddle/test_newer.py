"""What Paddle 3 has in static mode gives what 3.3.1 gave, and takes its arguments; all cases in one
program.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.compat import recorded
from fluidjax.errors import FluidError
from tests.paddle import cases, newer_cases

F, nn = paddle.nn.functional, paddle.nn
RECORDED = dict(np.load(Path(__file__).parents[1] / "data" / "paddle_3.3.1.npz"))
SHAPES, SIGNATURES = json.loads(str(RECORDED["shapes"])), json.loads(str(RECORDED["signatures"]))
LONG = {"F": "paddle.nn.functional", "nn": "paddle.nn", "paddle": "paddle"}
# docs/compatibility.md compares the others with 2.6.2, some of which have got arguments since
NEW = [
    n
    for n in SIGNATURES
    if recorded.find(f"{LONG[n.rpartition('.')[0]]}.{n.rpartition('.')[2]}") is None
]


def numbers(feed: dict[str, np.ndarray], at: int) -> cases.Data:
    """The data of one case, which begin anew, under names of its own."""

    def data(name: str, shape: list[int], dtype: str) -> Any:
        feed[f"{at}.{name}"] = made.feed[name]
        return paddle.static.data(f"{at}.{name}", shape, dtype)

    made = cases.Data(data)
    return made


@cache
def results() -> dict[str, list[np.ndarray]]:
    main, startup, feed = fluid.Program(), fluid.Program(), {}
    outs: dict[str, list[Any]] = {}
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        for at, (name, text) in enumerate(newer_cases.NEWER.items()):
            outs[name] = cases.flat(
                eval(text, {**numbers(feed, at).names(), "paddle": paddle, "F": F, "nn": nn})
            )
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        values = iter(exe.run(main, feed=feed, fetch_list=[v for vs in outs.values() for v in vs]))
        return {name: [np.asarray(next(values)) for _ in vs] for name, vs in outs.items()}


@pytest.mark.parametrize("name", newer_cases.NEWER)
def test_case(name: str) -> None:
    got = results()[name]
    np.testing.assert_allclose(
        np.concatenate([a.ravel() for a in got]), RECORDED[name], rtol=2e-5, atol=2e-6
    )
    # 3.3.1 has scalars, we [1]
    assert [list(a.shape) or [1] for a in got] == [s or [1] for s in SHAPES[name]]


@pytest.mark.parametrize("name", NEW)
def test_arguments_are_paddles(name: str) -> None:
    """In its order, with its defaults; more may follow by keyword alone."""
    owner, _, last = name.rpartition(".")
    parameters = inspect.signature(
        getattr({"F": F, "nn": nn, "paddle": paddle}[owner], last)
    ).parameters.values()
    plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [[p.name, "" if p.default is p.empty else repr(p.default)] for p in plain] == SIGNATURES[
        name
    ]


def run(build: Any, **feed: np.ndarray) -> list[np.ndarray]:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        out = build(*(paddle.static.data(n, v.shape, str(v.dtype)) for n, v in feed.items()))
        exe = fluid.Executor()
        exe.run(startup)
        return [np.asarray(v) for v in exe.run(main, feed=feed, fetch_list=cases.flat(out))]


def test_branches_and_loops_are_those_of_fluid() -> None:
    static = paddle.static.nn
    one, two, three = run(
        lambda i: [
            static.cond(i < 3, lambda: i + 1, lambda: i * 2, return_names=["a"]),
            static.switch_case(i, {1: lambda: i - 1, 2: lambda: i * 10}, lambda: i),
            static.while_loop(lambda n: n < 50, lambda n: [n * 3], [i])[0],
        ],
        i=np.array([2], "int64"),
    )  # fmt: skip
    assert [one.tolist(), two.tolist(), three.tolist()] == [[3], [20], [54]]


X = np.linspace(-2, 2, 240, dtype="float32").reshape(2, 5, 2, 12)


def test_what_no_recording_has() -> None:
    """A kernel for the CPU, a mask of booleans, and channels that come last."""
    keep = np.arange(30).reshape(1, 2, 3, 5) % 4 != 0
    q, k, v = (np.sin(np.arange(n * 8) + n, dtype="float32").reshape(1, n, 2, 4) for n in (3, 5, 5))
    normed, factor, attended, image, channels = run(
        lambda x, q, k, v, keep: [
            *F.rms_norm(x, [2, 12], eps=0.1), F.scaled_dot_product_attention(q, k, v, keep, scale=0.3),
            paddle.static.nn.prelu(x, "channel", data_format="NHWC"), paddle.static.nn.prelu(x, "channel"),
        ],
        x=X, q=q, k=k, v=v, keep=keep,
    )  # fmt: skip
    r = 1 / np.sqrt((X**2).mean((2, 3)) + 0.1)
    np.testing.assert_allclose(normed, X * r[..., None, None], rtol=1e-5)
    np.testing.assert_allclose(factor.ravel(), r.ravel(), rtol=1e-5)
    products = np.where(keep, 0.3 * np.einsum("bqhd,bkhd->bhqk", q, k), -np.inf)
    weights = np.exp(products) / np.exp(products).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        attended, np.einsum("bhqk,bkhd->bqhd", weights, v), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(image, np.where(X > 0, X, np.float32(0.25) * X))
    np.testing.assert_array_equal(image, channels)


def test_what_is_drawn() -> None:
    wide, row, whole, soft, hard = run(
        lambda x: [F.rrelu(x, 0.2, 0.4), F.dropout1d(x[0][0]), F.feature_alpha_dropout(x, 0.5), F.gumbel_softmax(x),
                   F.gumbel_softmax(x, 0.5, True, 1)],
        x=X,
    )  # fmt: skip
    slopes = (wide / X)[X < 0]
    assert (
        (wide[X >= 0] == X[X >= 0]).all()
        and slopes.min() >= 0.2
        and slopes.max() <= 0.4
        and len(np.unique(slopes)) > 50
    )
    assert all((r == 0).all() or np.allclose(r, 2 * x) for r, x in zip(row, X[0, 0], strict=True))
    # dropped channels are flat
    changed = [np.unique(np.round(c[1:] - c[:-1], 4)) for c in whole.reshape(10, -1)]
    assert all(len(c) <= 2 for c in changed) and {bool((c == 0).all()) for c in changed} == {
        True,
        False,
    }
    np.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(hard.sum(1), 1)


def test_a_variance_that_is_not_above_0_is_refused() -> None:
    with pytest.raises(FluidError, match="assert"):
        run(lambda x: F.gaussian_nll_loss(x, x, x), x=X)


def test_layers_by_name() -> None:
    held = nn.LayerDict({"a": nn.Linear(2, 3)})
    held.update([("b", nn.ReLU()), ("c", nn.Linear(3, 1))])
    held["b"] = nn.Tanh()
    assert (
        list(held) == list(held.keys()) == ["a", "b", "c"]
        and len(held) == 3
        and "b" in held
        and len(held.parameters()) == 4
    )
    assert isinstance(held.pop("b"), nn.Tanh) and [n for n, _ in held.items()] == ["a", "c"]
    del held["a"]
    assert [type(v) for v in held.values()] == [nn.Linear]
    held.clear()
    assert not held.parameters()
    with pytest.raises(FluidError, match="pairs"):
        nn.LayerDict([1])


REFUSED = [
    (lambda x: F.celu(x, 0), "celu's alpha"),
    (lambda x: F.glu(x, 1), "glu halves axis 1, which is 5 long"),
    (lambda x: F.lp_pool2d(x, 0, 2), "other than 0"),
    (lambda x: F.fractional_max_pool2d(x, 2, random_u=1.0), "random_u lies between 0 and 1"),
    (lambda x: F.fractional_max_pool2d(x, [2, 1], 2, random_u=0.5), "cannot take 1 windows"),
    (lambda x: F.max_unpool2d(x, x, 2, output_size=[9, 9]), "less than a stride from"),
    (lambda x: F.triplet_margin_loss(x, x, x[0]), "of one shape"),
    (lambda x: F.rrelu(x, 0.5, 0.2), "lower <= upper"),
    (lambda x: F.poisson_nll_loss(x, x, epsilon=0), "epsilon is above 0"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_refused(build: Any, message: str) -> None:
    with pytest.raises(FluidError, match=message):
        run(build, x=X)
