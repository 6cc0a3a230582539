"""Each kind of layer by itself, raised to Fluid's op: what stands there, its results beside the
function's, and what is left alone for a reason.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax import lax

import fluidjax as fluid
from fluidjax.ir.parse import parse
from fluidjax.ir.text import to_text
from fluidjax.passes import run
from fluidjax.saved.values import put

from ..weights import normal
from .test_raise_to_fluid import check_paddle, error_of

PADDLE = os.environ.get("FLUIDJAX_PADDLE_PYTHON")
IMAGES, SERIES, VOLUMES, ROWS = (
    normal(2, 6, 6, 4),
    normal(2, 8, 4),
    normal(2, 4, 4, 4, 4),
    normal(4, 6),
)
IDS = jnp.asarray(np.random.default_rng(0).integers(0, 7, (2, 5), np.int32))
KEY = jax.random.key(0)
Case = tuple[Any, Any, Any, str]


def layer(module: nn.Module, x: Any, wanted: str) -> Case:
    leaves, structure = jax.tree.flatten(jax.eval_shape(module.init, KEY, x))
    drawn = [normal(*v.shape) + 0.5 * i for i, v in enumerate(leaves)]
    return module.apply, jax.tree.unflatten(structure, drawn), x, wanted


def conv(spec: str, x: Any, kernel: tuple[int, ...], wanted: str, **options: Any) -> Case:
    numbers = tuple(spec.replace(">", ",").split(","))
    given = {"window_strides": (1,) * (x.ndim - 2), "padding": "SAME", **options}

    def fn(p: Any, x: Any) -> Any:
        return lax.conv_general_dilated(x, p["w"], dimension_numbers=numbers, **given)

    return fn, {"w": normal(*kernel)}, x, wanted


def up(x: Any, kernel: tuple[int, ...], wanted: str, padding: str = "SAME", **options: Any) -> Case:
    steps = (2,) * (x.ndim - 2)

    def fn(p: Any, x: Any) -> Any:
        return lax.conv_transpose(x, p["w"], steps, padding, **options)

    return fn, {"w": normal(*kernel)}, x, wanted


def of(fn: Any, x: Any, wanted: str, w: Any = 0.0) -> Case:
    return lambda p, x: fn(p["w"], x), {"w": jnp.asarray(w)}, x, wanted


def entropy(fn: Any, wanted: str = "softmax_with_cross_entropy") -> Case:
    return lambda p, ids: fn(3 * p["w"], ids), {"w": normal(2, 5, 7)}, IDS, wanted


def log_of(w: Any, ids: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(w), ids[..., None], -1)[..., 0]


def last(*axes: int) -> dict[str, Any]:
    return {"reduction_axes": axes, "feature_axes": axes}


ONE, TWO, THREE = "NWC,WIO>NWC", "NHWC,HWIO>NHWC", "NDHWC,DHWIO>NDHWC"
CASES: dict[str, Case] = {
    "dilated": conv(TWO, IMAGES, (3, 3, 4, 5), "conv2d", rhs_dilation=(2, 2)),
    "grouped": conv(TWO, IMAGES, (3, 3, 2, 6), "conv2d", feature_group_count=2),
    "depthwise": conv(TWO, IMAGES, (3, 3, 1, 8), "conv2d", feature_group_count=4),
    "of series": conv(ONE, SERIES, (3, 4, 5), "conv2d", window_strides=(2,)),
    "of series, channels first": conv("NCW,OIW>NCW", SERIES, (5, 8, 3), "conv2d"),
    "of volumes": conv(THREE, VOLUMES, (2, 2, 2, 2, 6), "conv3d", feature_group_count=2),
    "transposed": up(IMAGES, (3, 3, 4, 5), "conv2d_transpose", "VALID"),
    "transposed, a small kernel": up(IMAGES, (1, 1, 4, 5), "conv2d_transpose pad"),
    "transposed, dilated": up(IMAGES, (3, 3, 4, 5), "conv2d_transpose", rhs_dilation=(2, 2)),
    "transposed, of series": up(SERIES, (3, 4, 5), "conv2d_transpose"),
    "transposed, of volumes": up(VOLUMES, (3, 3, 3, 4, 5), "conv3d_transpose"),
    "transposed, grouped": conv(
        TWO, IMAGES, (3, 3, 2, 6), "conv2d_transpose", lhs_dilation=(2, 2), feature_group_count=2,
        padding=((1, 1), (1, 2)),
    ),
    "transposed, depthwise": conv(
        TWO, IMAGES, (4, 4, 1, 4), "conv2d_transpose", lhs_dilation=(2, 2), feature_group_count=4,
        padding=((2, 2), (2, 2)),
    ),
    "layer norm of three axes": layer(nn.LayerNorm(**last(1, 2, 3)), IMAGES, "layer_norm"),
    "layer norm of two axes": layer(nn.LayerNorm(**last(-2, -1)), SERIES, "layer_norm"),
    "layer norm without scale": layer(nn.LayerNorm(use_scale=False, use_bias=False, use_fast_variance=False), SERIES, "layer_norm"),
    "layer norm, scaled by channel": layer(
        nn.LayerNorm(reduction_axes=(1, 2), feature_axes=-1), SERIES, "group_norm"
    ),
    "rms norm": layer(nn.RMSNorm(**last(-2, -1)), SERIES, "reduce_mean rsqrt"),
    "group norm": layer(nn.GroupNorm(2), IMAGES, "group_norm"),
    "group norm of series": layer(nn.GroupNorm(2, use_bias=False), SERIES, "group_norm"),
    "instance norm": layer(nn.InstanceNorm(), IMAGES, "group_norm"),
    "instance norm, channels first": layer(
        nn.InstanceNorm(feature_axes=1), IMAGES, "instance_norm"
    ),
    "instance norm of series, channels first": layer(
        nn.InstanceNorm(feature_axes=1), SERIES, "instance_norm"
    ),
    "group norm of volumes": layer(nn.GroupNorm(2), VOLUMES, "group_norm"),
    "celu": of(lambda w, x: jax.nn.celu(x, 0.7), ROWS, "tanh exp"),
    "hard tanh": of(lambda w, x: jax.nn.hard_tanh(x), ROWS, "where"),
    "logsumexp": of(lambda w, x: jax.nn.logsumexp(x, axis=(1, 2)), SERIES, "reduce_sum log"),
    "logsumexp of all": of(lambda w, x: jax.nn.logsumexp(x), SERIES, "reduce_sum log"),
    "max pool of series": of(lambda w, x: nn.max_pool(x, (3,), (2,), "SAME"), SERIES, "pool2d"),
    "mean pool of series": of(lambda w, x: nn.avg_pool(x, (2,), (2,)), SERIES, "pool2d"),
    "max pool of volumes": of(lambda w, x: nn.max_pool(x, (2, 2, 2), (2, 2, 2)), VOLUMES, "pool3d"),
    "mean pool of volumes": of(
        lambda w, x: nn.avg_pool(x, (3, 2, 2), (1, 2, 2), "SAME"), VOLUMES, "pool3d"
    ),
    "least of a window": of(
        lambda w, x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), IMAGES, "pool2d",
    ),
    "rows of arrays": of(lambda w, i: w[i], IDS, "gather", normal(7, 3, 2)),
    "entries": of(lambda w, i: w[i], IDS, "gather", normal(7)),
    "rows, the nearest": of(
        lambda w, i: jnp.take(w, 3 * i - 4, axis=0, mode="clip"), IDS, "lookup_table_v2 elementwise_min", normal(7, 3),
    ),
    "columns, the nearest": of(
        lambda w, i: jnp.take(w, 3 * i - 4, axis=1, mode="clip"), IDS, "gather elementwise_min", normal(3, 7),
    ),
    "cross entropy": entropy(optax.softmax_cross_entropy_with_integer_labels),
    "its mean": entropy(
        lambda w, i: optax.softmax_cross_entropy_with_integer_labels(w, i).mean(),
        "softmax_with_cross_entropy reduce_mean",
    ),
    "cross entropy of one-hot labels": entropy(
        lambda w, i: optax.softmax_cross_entropy(w, jax.nn.one_hot(i, 7))
    ),
    "cross entropy by hand": entropy(log_of),
    "an outer product": of(lambda w, x: jnp.einsum("bi,j->bij", x, w), ROWS, "mul", normal(3)),
    "by a vector": of(lambda w, x: x @ w, ROWS, "mul", normal(6)),
    "of a vector": of(lambda w, x: w @ x, ROWS, "mul", normal(4)),
    "of all": of(lambda w, x: jnp.vdot(w, x), ROWS, "mul", normal(4, 6)),
    "a trace": of(lambda w, x: jnp.einsum("bii->b", x + w), normal(2, 3, 3), "reduce_sum"),
    "a number and what follows": of(
        lambda w, x: (x / jnp.sqrt((x**2).sum() + w), (x * w).max(), jnp.minimum(x.mean(), 0.5)), ROWS,
        "reduce_sum reduce_max reduce_mean", 2.0,
    ),
}  # fmt: skip


def raised(name: str) -> tuple[Any, tuple[Any, Any], fluid.Traced, Any]:
    fn, params, x, _ = CASES[name]
    traced = fluid.trace(fn, params, x, state={"p": None} if "w" in params else 0)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    return fn, (params, x), traced, result


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CASES)
def test_each_is_raised_and_gives_what_it_gave(name: str) -> None:
    fn, args, traced, result = raised(name)
    kinds = [op.type for op in result.desc.blocks[0].ops]
    assert set(CASES[name][3].split()) <= set(kinds), kinds
    assert not [k for k in kinds if k.startswith("jax.")], str(result.certificate)
    assert error_of(fn, args, traced, result) < 2e-6


@pytest.mark.skipif(not PADDLE, reason="FLUIDJAX_PADDLE_PYTHON names no Python with paddle 1.8.5")
@pytest.mark.parametrize("name", CASES)
def test_paddle_runs_each(name: str, tmp_path: Path) -> None:
    check_paddle(*raised(name), tmp_path)


def two_means(w: Any, x: Any) -> Any:
    """No group norm: the variance is that of the whole sample."""
    groups = x.reshape(2, 8, 2, 2)
    mean = groups.mean((1, 3), keepdims=True)
    var = ((x - x.mean((1, 2), keepdims=True)) ** 2).mean((1, 2))
    return (groups - mean).reshape(x.shape) * lax.rsqrt(var + 1e-5)[:, None, None]


def other_logits(w: Any, ids: Any) -> Any:
    """No cross entropy: the label's entry is of other values."""
    picked = jnp.take_along_axis(w * 0.5, ids[..., None], -1)[..., 0]
    return jax.nn.logsumexp(w, axis=-1) - picked


NEARLY: dict[str, tuple[Case, str]] = {
    "statistics of different groups": (of(two_means, SERIES, ""), "group_norm"),
    "another's entry": (entropy(other_logits), "softmax_with_cross_entropy"),
    "labels that are shares": (
        of(lambda w, x: optax.softmax_cross_entropy(50 * x, w), ROWS, "", jax.nn.softmax(normal(4, 6))),
        "softmax_with_cross_entropy",
    ),
    "scaled along some of its axes": (
        of(lambda w, x: w * (x - x.mean((1, 2), keepdims=True)) * lax.rsqrt(x.var((1, 2), keepdims=True) + 1e-5),
           SERIES, "", normal(8, 1)), "layer_norm",
    ),
}  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("name", NEARLY)
def test_what_only_looks_like_one_is_left_composed(name: str) -> None:
    (fn, params, x, _), kind = NEARLY[name]
    traced = fluid.trace(fn, params, x, state={"p": None})
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert kind not in {op.type for op in result.desc.blocks[0].ops}
    assert error_of(fn, (params, x), traced, result) < 2e-6


REFUSED: dict[str, tuple[Case, str]] = {
    "windows": (
        of(lambda w, x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 2, 1), (1,) * 4, "VALID", window_dilation=(1, 2, 2, 1)
        ), IMAGES, ""), "its windows are dilated",
    ),
    "strides": (
        conv(TWO, IMAGES, (3, 3, 4, 5), "", lhs_dilation=(2, 2), window_strides=(2, 2), padding=((1, 1), (1, 1))),
        "it strides besides",
    ),
    "batches": (
        conv(TWO, IMAGES, (3, 3, 4, 2), "", batch_group_count=2), "it groups batches",
    ),
    "windows where the data says": (
        of(lambda w, x: lax.dynamic_slice(x, (0, x[0].argmax()), (4, 2)), ROWS, ""),
        "it begins where a computed value says",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_fluid_lacks_stays_with_the_reason(name: str) -> None:
    (fn, params, x, _), why = REFUSED[name]
    traced = fluid.trace(fn, params, x, state=0 if "w" not in params else {"p": None})
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert why in "\n".join(map(str, result.refusals))
    assert error_of(fn, (params, x), traced, result) < 2e-6


def test_a_number_between_an_op_that_stays_and_those_that_are_raised() -> None:
    def fn(p: Any, x: Any) -> Any:
        total = lax.lgamma(x.sum() + 30.0)
        return x * total + p["w"], total, lax.lgamma(lax.lgamma(p["v"]))

    params = {"w": normal(6), "v": jnp.asarray(3.5)}
    traced = fluid.trace(fn, params, ROWS, state={"p": None})
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    vars, ops = result.desc.blocks[0].vars, result.desc.blocks[0].ops
    assert [op.type for op in ops].count("jax.lgamma") == 3
    # [] within what stays, [1] for Fluid's
    assert [vars[n].shape for n in traced.fetches] == [(4, 6), (1,), ()]
    assert error_of(fn, (params, ROWS), traced, result) < 2e-6


def test_means_over_an_open_batch() -> None:
    def fn(p: Any, x: Any) -> Any:
        return ((x - 3 * p["w"]) ** 2).mean(), x.mean(0)

    params = {"w": normal(6)}
    traced = fluid.trace(fn, params, ROWS, state={"p": None}, dynamic={"x": ("b", None)})
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    kinds = [op.type for op in result.desc.blocks[0].ops]
    assert kinds.count("reduce_mean") == 2 and not result.refusals, str(result.certificate)
    for rows in (1, 4, 7):
        assert error_of(fn, (params, np.resize(ROWS, (rows, 6))), traced, result) < 2e-6


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("by", [1, 3])
def test_indices_beyond_an_array_are_refused(axis: int, by: int) -> None:
    """JAX gives nan, and counts negative ones from the end."""
    fn = lambda p, i: jnp.take(p["w"], by * i, axis=axis)  # noqa: E731
    params = {"w": normal(7, 7)}
    traced = fluid.trace(fn, params, IDS, state={"p": None})
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert not [op for op in result.desc.blocks[0].ops if op.type.startswith("jax.")]
    scope = fluid.Scope()
    put({n: np.asarray(v) for n, v in {**traced.state, **result.params}.items()}, scope)
    main, exe = fluid.Program.from_desc(result.desc), fluid.Executor()

    def found(ids: Any) -> Any:
        return exe.run(main, {"i": np.int32(ids)}, list(traced.fetches), scope=scope)[0]

    shape = np.shape(IDS)
    np.testing.assert_array_equal(found(np.full(shape, 2)), fn(params, np.full(shape, 2)))
    for wrong in (-1, 7):
        with pytest.raises(fluid.FluidError, match=r"expects 0 <= \w+ < 7"):
            found(np.full(shape, wrong))


def by_fluid(fn: Any, *args: Any) -> tuple[Any, list[str]]:
    """What the raised program computes, and the kinds of its ops."""
    traced = fluid.trace(fn, *args)
    result = run("raise_to_fluid", traced.main.desc, {}, keep=traced.fetches)
    step = fluid.step_fn(fluid.Program.from_desc(result.desc), list(traced.fetches))
    found = jax.jit(step)(dict(result.params), dict(zip(traced.feeds, args, strict=True)))[1]
    return found, [op.type for op in result.desc.blocks[0].ops]


def test_floats_are_compared_exactly() -> None:
    """Fluid's own equal takes floats for equal that lie within 1e-8, and infinities for unequal."""
    x = np.array([np.inf, -np.inf, np.nan, 1.0, 5e-9, 0.0, -0.0], np.float32)

    def fn(x: Any, y: Any) -> Any:
        whole = x == jnp.inf, x != x, x == 1e-9, x == y, x != y, y == x[:1]
        return *whole, jnp.nan_to_num(x), jnp.isinf(x), jnp.isfinite(x), jnp.sign(x) == y

    found, kinds = by_fluid(fn, x, np.roll(x, 1))
    assert not [kind for kind in kinds if kind.startswith("jax.") and kind != "jax.sign"]
    for a, b in zip(found, jax.jit(fn)(x, np.roll(x, 1)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_negative_indices_that_are_clipped_and_entries_beyond_that_are_numbers() -> None:
    table, ids = normal(3, 5), np.array([1, -1, 4, -7, 0], np.int32)

    def clipped(x: Any, i: Any) -> Any:
        return x.at[i].get(mode="clip"), x.at[:, i].get(mode="clip"), jnp.take(x, i, 0, mode="clip")

    def filled(x: Any, i: Any) -> Any:
        return x.at[i].get(mode="fill", fill_value=7.0), jnp.take(
            x, i, 1, mode="fill", fill_value=0
        )

    for fn, left in ((clipped, 0), (filled, 2)):
        found, kinds = by_fluid(fn, table, ids)
        assert kinds.count("jax.gather") == left
        for a, b in zip(found, jax.jit(fn)(table, ids), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_raised_program_with_nan_is_parsed_to_itself() -> None:
    traced = fluid.trace(lambda x: jnp.where(x > 0, x, jnp.nan) + jnp.nanmean(x), ROWS)
    desc = run("raise_to_fluid", traced.main.desc, {}, keep=traced.fetches).desc
    assert "nan" in to_text(desc) and parse(to_text(desc)) == desc
    main = fluid.Program()
    with fluid.program_guard(main):
        fluid.layers.fill_constant([2], "float32", np.float32("nan"))
        fluid.layers.scale(fluid.data("x", [2]), scale=float("nan"))
    assert parse(to_text(main.desc)) == main.desc
