"""JAX programs raised to Fluid's ops: the same results, nothing of JAX's left, and no pattern taken
for another.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.passes import run
from fluidjax.saved.values import put

from ..weights import normal, weights
from . import raised_models

PADDLE = os.environ.get("FLUIDJAX_PADDLE_PYTHON")
KEY = jax.random.key(0)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        def norm() -> Any:
            return nn.BatchNorm(use_running_average=True)

        x = nn.relu(norm()(nn.Conv(8, (3, 3), use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        y = nn.relu6(norm()(nn.Conv(16, (3, 3), (2, 2))(x)))
        y = norm()(nn.Conv(16, (3, 3), feature_group_count=16, use_bias=False)(y))
        x = nn.relu(norm()(nn.Conv(16, (1, 1), (2, 2), use_bias=False)(x)) + y)
        return nn.Dense(10)(nn.avg_pool(x, (2, 2), (2, 2)).mean((1, 2)))


class Bert(nn.Module):
    """Embeddings, masked attention, layer norms, both gelus."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.Embed(50, 16)(ids) + nn.Embed(12, 16)(jnp.arange(ids.shape[1])[None])
        mask = nn.make_attention_mask(ids > 0, ids > 0)
        attended = nn.MultiHeadDotProductAttention(2, deterministic=True)(x, x, mask=mask)
        x = nn.LayerNorm()(x + attended)
        x = x + nn.Dense(16)(nn.gelu(nn.Dense(32)(x), approximate=False))
        return nn.log_softmax(nn.Dense(50)(nn.gelu(x))), nn.tanh(nn.Dense(4)(x[:, 0]))


class Mixed(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.leaky_relu(nn.RMSNorm()(nn.Dense(8)(x)))
        x = nn.silu(nn.softplus(x)) / (2.0 + nn.sigmoid(x)) - 1.0 / (3.0 + x * x)
        y = jnp.concatenate([x, x[:, ::2]], -1)
        hot = jax.nn.one_hot(y.argmax(-1), 12)
        return nn.softmax(y) * hot, jnp.clip(y, -1.0, 1.0).max(-1), jnp.pad(y, ((0, 0), (1, 2)))


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        down = nn.silu(nn.GroupNorm(4)(nn.Conv(8, (3, 3), (2, 2))(x)))
        shape = (x.shape[0], x.shape[1], x.shape[2], 8)
        up = nn.ConvTranspose(8, (3, 3), (2, 2))(down) + nn.ConvTranspose(8, (2, 2), (2, 2))(down)
        return nn.Conv(1, (1, 1))(up + jax.image.resize(down, shape, "nearest"))


class Nnx(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.out = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(nnx.silu(self.norm(self.conv(x))).mean((1, 2)))


X = normal(4, 6)


def of_linen(module: nn.Module, x: Any) -> tuple[Any, Any, Any]:
    return module.apply, weights(module.init, KEY, x), x


def of_nnx() -> tuple[Any, Any, Any]:
    graph, state = nnx.split(Nnx(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graph, state)(x), state, normal(2, 8, 8, 3)


def heads(params: Any, x: Any) -> Any:
    """Products of every kind, as einsum writes them."""
    q = jnp.einsum("btd,dhk->bthk", x, params["q"])
    scores = jnp.einsum("bthk,bshk->bhts", q, q)
    return jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), q), x @ params["w"].T


def pools(params: Any, x: Any) -> Any:
    """Windows over two axes of five, as jax.vmap of a pool of one image has them."""
    window, steps = (1, 1, 2, 2, 1), (1, 1, 2, 1, 1)
    pads = ((0, 0), (0, 0), (1, 0), (0, 1), (0, 0))
    most = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, steps, pads)
    total = jax.lax.reduce_window(x, 0.0, jax.lax.add, window, steps, "VALID")
    return most * params["w"], total / 4.0


MODELS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "resnet": lambda: of_linen(ResNet(), normal(2, 16, 16, 3)),
    "bert": lambda: of_linen(
        Bert(), jnp.asarray(np.random.default_rng(0).integers(1, 30, (2, 6), np.int32))
    ),
    "unet": lambda: of_linen(UNet(), normal(2, 8, 8, 3)),
    "mixed": lambda: of_linen(Mixed(), normal(3, 6)),
    "nnx": of_nnx,
    "pools": lambda: (pools, {"w": normal(3)}, normal(2, 1, 6, 6, 3)),
    "products": lambda: (heads, {"q": normal(8, 2, 3), "w": normal(5, 8)}, normal(2, 4, 8)),
}

# how many batch norms of each of raised_models.py fold: those that stand behind a convolution
FOLDED = {"resnet": 12, "efficientnet": 11, "mobilenet": 5, "vgg": 2, "densenet": 4, "generator": 1,
          "nnx_images": 1, "equinox_images": 1}  # fmt: skip
FOLDS = "fold_constants,fuse_batch_norm,dce"
WHOLE = f"raise_to_fluid,{FOLDS}"


def traced_model(name: str) -> tuple[Any, Any, Any, fluid.Traced]:
    fn, params, x = raised_models.MODELS[name]()
    return fn, params, x, fluid.trace(fn, params, x, state=0)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", raised_models.names())
def test_models_are_raised_whole_and_keep_their_results(name: str) -> None:
    fn, params, x, traced = traced_model(name)
    before = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    result = run(FOLDS, before.desc, traced.state, keep=traced.fetches)
    kinds = Counter(op.type for block in result.desc.blocks for op in block.ops)
    assert not [k for k in kinds if k.startswith("jax.")], str(before.certificate)
    assert error_of(fn, (params, x), traced, result) <= 1e-6
    norms = Counter(op.type for op in before.desc.blocks[0].ops)["batch_norm"]
    assert norms - kinds["batch_norm"] == FOLDED.get(name, 0)


def test_a_scan_is_a_recurrent_op_in_both_directions() -> None:
    def fn(p: Any, x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            h = jnp.tanh(row @ p["w"] + carry[0])
            return (h, carry[1] + h), (h, h * row.sum(-1, keepdims=True))

        start = (jnp.zeros((x.shape[1], 6)), jnp.ones((x.shape[1], 6)))
        forth = jax.lax.scan(step, start, x)
        return forth, jax.lax.scan(step, start, x, reverse=True)

    params, x = {"w": normal(6, 6)}, normal(5, 3, 6)
    open_sizes: list[dict[str, Any]] = [{}, {"x": (None, "b")}, {"x": ("t", None)}]
    for dynamic in open_sizes:
        traced = fluid.trace(fn, params, x, state=0, dynamic=dynamic)
        result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
        kinds = Counter(op.type for op in result.desc.blocks[0].ops)
        assert kinds["recurrent"] == 2 and not result.refusals, str(result.certificate)
        assert error_of(fn, (params, x), traced, result) < 1e-6
    assert error_of(fn, (params, normal(3, 3, 6)), traced, result) < 1e-6


def masked(p: Any, x: Any) -> Any:
    """Rows, numbers and masks that no sample has as its own, repeated for each sample."""
    places = jnp.broadcast_to(jnp.arange(6), x.shape[:2])
    causal = nn.make_causal_mask(x[..., 0])
    scores = jnp.einsum("bqc,bkc->bqk", x, x)[:, None]
    first = jnp.broadcast_to(p["first"], (x.shape[0], 1, 3))
    return (
        jnp.where(causal, scores, p["low"]),
        jnp.concatenate([first, x], 1),
        places * jnp.broadcast_to(x.sum(), x.shape[:1])[:, None],
    )


@pytest.mark.slow
def test_what_is_repeated_for_each_sample_is_raised_and_exported() -> None:
    params, x = {"low": jnp.array(-9.0), "first": normal(1, 1, 3)}, normal(2, 6, 3)
    traced = fluid.trace(masked, params, x, state=0, dynamic={"x": ("b",)})
    result = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
    kinds = Counter(op.type for op in result.desc.blocks[0].ops)
    assert not [k for k in kinds if k.startswith("jax.")] and not result.refusals, str(result.notes)
    persistable = {n for n, v in result.desc.blocks[0].vars.items() if v.persistable}
    state = {n: v for n, v in {**traced.state, **result.params}.items() if n in persistable}
    step = jax.jit(fluid.step_fn(Program.from_desc(result.desc), list(traced.fetches)))
    any_batch = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 6, 3"), x.dtype)
    exported = jax.export.export(step)(state, {"x": any_batch})
    for batch in (1, 3):
        x = normal(batch, 6, 3)
        expected = jax.jit(masked)(params, x)
        for call in (step, exported.call):
            for a, b in zip(expected, call(state, {"x": x})[1], strict=True):
                np.testing.assert_allclose(b, a, rtol=0, atol=2e-6 * float(jnp.abs(a).max()))


def test_sizes_of_constants_are_those_of_an_exported_step() -> None:
    """An op on numbers that are known, whose result has a symbolic size."""
    traced = fluid.trace(
        lambda x: jnp.broadcast_to(np.arange(3), x.shape) * x, normal(2, 3), dynamic={"x": ("b",)}
    )
    result = run("fold_constants", traced.main.desc, traced.state, keep=traced.fetches)
    step = jax.jit(fluid.step_fn(Program.from_desc(result.desc), list(traced.fetches)))
    any_batch = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), jnp.float32)
    exported = jax.export.export(step)(result.params, {"x": any_batch})
    for batch in (1, 3, 8):
        x = normal(batch, 3)
        np.testing.assert_array_equal(
            exported.call(result.params, {"x": x})[1][0], x * np.arange(3)
        )


def test_results_of_large_logits_are_not_cut_off() -> None:
    """Paddle's softmax gives nothing below exp(-64)."""
    x = jnp.array([[0.0, 200.0, -300.0], [1.0, 2.0, 3.0]])
    traced = fluid.trace(lambda p, x: jax.nn.log_softmax(x + p), jnp.zeros(3), x, state=0)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert not result.refusals
    assert error_of(lambda p, x: jax.nn.log_softmax(x + p), (jnp.zeros(3), x), traced, result) == 0


SINGLES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "elu": (lambda p, x: jax.nn.elu(x, 0.7), ("elu",)),
    "several results": (lambda p, x: jnp.split(x, [1, 4], 1)[::2], ("split",)),
    "largest": (lambda p, x: jax.lax.top_k(x, 3), ("top_k", "cast")),
    "where they stand": (lambda p, x: jax.lax.top_k(x, 3)[1], ("top_k", "cast")),
    "backwards": (lambda p, x: x[:, ::-1], ("reverse",)),
    "a number to powers": (lambda p, x: 3.0**x, ("fill_constant", "elementwise_pow")),
    "by a root": (
        lambda p, x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5),
        ("layer_norm",),
    ),
    "in three dimensions": (
        lambda p, x: jax.lax.conv_general_dilated(
            jnp.broadcast_to(x[:1, :, None, None, None], (2, 6, 4, 4, 4)), jnp.ones((3, 6, 2, 2, 2)),
            (1, 1, 1), "VALID",
        ), ("conv3d",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLES)
def test_single_ops(name: str) -> None:
    fn, wanted = SINGLES[name]
    traced = fluid.trace(fn, {"w": X}, X, state=0)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    kinds = [op.type for op in result.desc.blocks[0].ops]
    assert set(wanted) <= set(kinds) and not result.refusals, str(result.certificate)
    assert error_of(fn, ({"w": X}, X), traced, result) < 2e-6


@cache
def raised(name: str) -> tuple[Any, Any, fluid.Traced, Any]:
    fn, params, x = MODELS[name]()
    batch = None if name in ("bert", "mixed", "unet") else {"x": ("b",), "arg1": ("b",)}
    known = {"x", "arg1"} & set(fluid.trace(fn, params, x, state=0).feeds)
    dynamic = {n: v for n, v in (batch or {}).items() if n in known}
    traced = fluid.trace(fn, params, x, state=0, dynamic=dynamic)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    return fn, (params, x), traced, result


def error_of(fn: Any, args: Any, traced: fluid.Traced, result: Any) -> float:
    """The greatest difference from the function itself over the scale of each result."""
    params, x = args
    step = jax.jit(fluid.step_fn(Program.from_desc(result.desc), list(traced.fetches)))
    persistable = {n for n, v in result.desc.blocks[0].vars.items() if v.persistable}
    state = {n: v for n, v in {**traced.state, **result.params}.items() if n in persistable}
    (fed,) = traced.feeds
    _, found = step(state, {fed: x})
    expected = jax.tree.leaves(jax.jit(fn)(params, x))
    return max(
        float(np.abs(np.asarray(a) - b).max() / np.abs(np.asarray(a)).max())
        for a, b in zip(expected, found, strict=True)
    )


@pytest.mark.first(1)
@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_jaxs_is_left_and_results_are_the_same(name: str) -> None:
    fn, (params, x), traced, result = raised(name)
    kinds = Counter(op.type for op in result.desc.blocks[0].ops)
    assert not [k for k in kinds if k.startswith("jax.")], str(result.certificate)
    assert error_of(fn, (params, x), traced, result) < 2e-6
    assert result.certificate.error < 1e-5 and not result.refusals
    dynamic = traced.main.desc.blocks[0].vars[next(iter(traced.feeds))].dims
    if dynamic:  # at another batch too
        more = jnp.concatenate([x, x * 0.5, x[:1]])
        assert error_of(fn, (params, more), traced, result) < 2e-6


def test_what_stands_there_are_fluids_own_layers() -> None:
    kinds = Counter(op.type for op in raised("resnet")[3].desc.blocks[0].ops)
    assert kinds["conv2d"] == kinds["batch_norm"] == 4 and kinds["pool2d"] == 2
    kinds = Counter(op.type for op in raised("bert")[3].desc.blocks[0].ops)
    assert kinds["lookup_table_v2"] == kinds["gelu"] == 2 and kinds["softmax"] == 1
    assert kinds["layer_norm"] == 1 and kinds["matmul"] == 2
    kinds = Counter(op.type for op in raised("mixed")[3].desc.blocks[0].ops)
    assert kinds["one_hot_v2"] == kinds["softmax"] == kinds["arg_max"] == 1


@pytest.mark.parametrize("name", ["resnet", "nnx"])
def test_every_batch_norm_is_folded(name: str) -> None:
    fn, args, traced, before = raised(name)
    result = run(FOLDS, before.desc, traced.state, keep=traced.fetches)
    kinds = Counter(op.type for op in result.desc.blocks[0].ops)
    assert kinds["conv2d"] and not kinds["batch_norm"] and not kinds["transpose2"]
    assert error_of(fn, args, traced, result) <= 1e-6


class Series(nn.Module):
    """Convolutions of one axis, which Fluid's ops compute as images of height 1."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for groups, bias in ((1, True), (8, True), (8, False)):
            x = nn.Conv(8, (3,), feature_group_count=groups, use_bias=bias)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.ConvTranspose(6, (4,), strides=(2,))(x)
        return nn.BatchNorm(use_running_average=True)(x)


@pytest.mark.first(1)
@pytest.mark.parametrize("dynamic", [(), ("b",), ("b", "t")])
def test_norms_behind_convolutions_of_one_axis_are_folded(dynamic: tuple[str, ...]) -> None:
    apply, params, x = of_linen(Series(), normal(2, 9, 8))

    def fn(params: Any, x: Any) -> Any:
        return apply(params, x)

    traced = fluid.trace(fn, params, x, state=0, dynamic={"x": dynamic} if dynamic else {})
    result = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
    kinds = Counter(op.type for op in result.desc.blocks[0].ops)
    assert not kinds["batch_norm"] and not [k for k in kinds if k.startswith("jax.")]
    for size in (
        x.shape,
        *([(3, 9, 8)] if dynamic else []),
        *([(1, 4, 8)] if len(dynamic) > 1 else []),
    ):
        assert error_of(fn, (params, normal(*size)), traced, result) <= 1e-6


# Each looks like a pattern, and is another function.
NEARLY: dict[str, tuple[Any, str]] = {
    "gelu": (lambda p, x: 0.5 * x * (1 + jax.lax.erf(x * 0.6)), "gelu"),
    "tanh gelu": (lambda p, x: 0.5 * x * (1 + jnp.tanh(0.7978846 * (x + 0.05 * x**3))), "gelu"),
    "mean": (lambda p, x: x.sum(1) / 5.0, "reduce_mean"),
    "softmax of other sums": (
        lambda p, x: jnp.exp(x) / (jnp.exp(x).sum(1, keepdims=True) + 1.0), "softmax",
    ),
    "norm of two inputs": (
        lambda p, x: (x - x.mean(1, keepdims=True))
        * jax.lax.rsqrt((x * 2).var(1, keepdims=True) + 1e-5), "layer_norm",
    ),
}  # fmt: skip


@pytest.mark.first(2)
@pytest.mark.parametrize("name", NEARLY)
def test_what_only_looks_like_a_pattern_is_not_taken_for_it(name: str) -> None:
    fn, kind = NEARLY[name]
    traced = fluid.trace(fn, {"w": X}, X, state=0)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert kind not in {op.type for op in result.desc.blocks[0].ops}
    assert error_of(fn, ({"w": X}, X), traced, result) < 2e-6


def test_what_stays_says_why() -> None:
    def fn(p: Any, x: Any) -> Any:
        total, _ = jax.lax.scan(lambda c, row: (c + jax.lax.lgamma(row), None), x[0], x)
        return total[None] + p["w"][:1], jax.lax.lgamma(x)

    traced = fluid.trace(fn, {"w": X}, X, state=0)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    text = "\n".join(map(str, result.refusals))
    assert "'jax.scan'" in text and "its block holds 'jax.lgamma'" in text
    assert "'jax.lgamma'" in text and "Fluid has no such op" in text
    assert "test_raise_to_fluid.py" in text
    assert error_of(fn, ({"w": X}, X), traced, result) < 2e-6


def test_a_training_program_stays_as_it_is() -> None:
    traced = fluid.trace(lambda p, x: jnp.mean((x @ p["w"].T) ** 2), {"w": X}, X, state=0)
    with fluid.program_guard(traced.main, traced.startup):
        loss = traced.main.global_block().var(traced.fetches[0])
        fluid.optimizer.SGD(0.1).minimize(loss)
    result = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    assert not result.changed and "differentiate that" in str(result.refusals[0])


def check_paddle(
    fn: Any, args: tuple[Any, Any], traced: fluid.Traced, result: Any, at: Path
) -> None:
    """What real Paddle computes of the saved program, beside the function."""
    program = Program.from_desc(result.desc)
    values = {**traced.state, **result.params}
    read = {n for block in result.desc.blocks for op in block.ops for n in op.reads}
    with fluid.scope_guard(fluid.Scope()):
        put({n: np.array(values[n]) for n in read if n in values}, None)
        targets = [program.global_block().var(n) for n in traced.fetches]
        fluid.io.save_inference_model(
            str(at / "model"), list(traced.feeds), targets, fluid.Executor(), main_program=program
        )
    np.save(at / "x.npy", args[1])
    script = Path(__file__).with_name("paddle_runs.py")
    subprocess.run([str(PADDLE), str(script), str(at)], check=True, timeout=300)
    with np.load(at / "found.npz") as found:
        for i, expected in enumerate(jax.tree.leaves(jax.jit(fn)(*args))):
            scale = float(np.abs(expected).max())
            np.testing.assert_allclose(found[f"out_{i}"], expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.skipif(not PADDLE, reason="FLUIDJAX_PADDLE_PYTHON names no Python with paddle 1.8.5")
@pytest.mark.parametrize("name", MODELS)
def test_paddle_runs_what_is_saved(name: str, tmp_path: Path) -> None:
    check_paddle(*raised(name), tmp_path)


@pytest.mark.skipif(not PADDLE, reason="FLUIDJAX_PADDLE_PYTHON names no Python with paddle 1.8.5")
@pytest.mark.parametrize("name", raised_models.MODELS)
def test_paddle_runs_whole_models(name: str, tmp_path: Path) -> None:
    fn, params, x, traced = traced_model(name)
    result = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
    check_paddle(fn, (params, x), traced, result, tmp_path)
