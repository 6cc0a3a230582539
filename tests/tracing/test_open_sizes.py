"""Programs whose batch stays open: one trace, run and exported for batches of 1, 3 and 8."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import fluidjax as fluid
from fluidjax.errors import FeedError, TraceError, VerifyError
from fluidjax.graph.program import Program
from fluidjax.ir import dims
from fluidjax.ir.jsonio import from_json, to_json
from fluidjax.ir.parse import parse
from fluidjax.ir.text import to_text
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import lookup
from fluidjax.passes import lifetimes
from fluidjax.passes import run as run_passes

from ..passes.test_raise_to_fluid import MODELS as RAISED
from ..weights import normal
from .functions import CASES
from .same import as_function

# Nets and training steps of functions.py. Left out are those that hold their batch themselves (an initial state of
# two rows), and Adam's on parameters whose gradient is zero but for rounding (the bias of keys), which it divides by
# its own size.
STEPS = [
    name
    for name in """linen_mlp_sgd linen_mlp_momentum linen_resnet_adamw linen_transformer_dropout_adam linen_recurrent_rmsprop
    linen_mlp_predicts linen_transformer_predicts linen_unet_predicts linen_recurrent_predicts linen_bfloat16 vae
    linen_scanned_layers_adam linen_both_ways_sgd linen_ensemble_vmapped nnx_transformer nnx_batch_norm_and_dropout
    nnx_training_step nnx_recurrent nnx_lora_and_conv_transpose nnx_stacked_layers equinox_training_step
    equinox_recurrent_step haiku_net haiku_resnet equinox_mlp equinox_convolutions equinox_normalized""".split()
    if name in CASES
]
PREDICTIONS = [f"predicting {name}" for name in RAISED]
MODELS = [*STEPS, *PREDICTIONS]
SHOWN = {"linen_mlp_momentum", "linen_recurrent_predicts", "nnx_transformer", "linen_resnet_adamw"}
BATCHES = (1, 3, 8)


def opened(name: str) -> tuple[Any, tuple[Any, ...], fluid.Traced]:
    """The function, its arguments, and the program with the batch, the first axis, open."""
    if name in PREDICTIONS:
        fn, *args, options = (*RAISED[name.removeprefix("predicting ")](), {"state": 0})
    else:
        fn, args, options = CASES[name]()
    if name in ("equinox_mlp", "equinox_convolutions", "equinox_normalized"):  # of one sample
        fn = jax.vmap(fn, (None, 0)) if len(args) == 2 else jax.vmap(fn)
        args = (*args[:-1], args[-1][None])
    feeds = fluid.trace(fn, *args, **options).feeds
    dynamic = {n: ("b",) for n, var in feeds.items() if var.shape}
    return fn, tuple(args), fluid.trace(fn, *args, **options, dynamic=dynamic)


def with_batch(traced: fluid.Traced, leaves: list[Any], batch: int) -> list[Any]:
    """The leaves of the arguments, with so many samples in those that are fed."""

    def resized(name: str, leaf: Any) -> Any:
        var = traced.feeds.get(name)
        if var is None or not var.shape:
            return leaf
        return jnp.take(leaf, np.arange(batch) % leaf.shape[0], axis=0)

    return [resized(n, leaf) for n, leaf in zip(traced.places, leaves, strict=True)]


def check_open(name: str) -> None:
    """One program equals the function at every batch, read from its text too, and exported with a
    symbolic batch.
    """
    fn, args, traced = opened(name)
    desc = traced.main.desc
    assert parse(to_text(desc)) == desc and from_json(to_json(desc)) == desc
    verify(desc, lookup)
    step = replace(traced, main=Program.from_desc(parse(to_text(desc)))).step()
    reference, args = as_function(fn, args)
    leaves, tree = jax.tree.flatten(args)
    scope = export.SymbolicScope()

    def symbolic(name: str, leaf: Any) -> Any:
        var = traced.feeds.get(name)
        if var is None or not var.shape:
            return leaf
        sizes = ["n", *map(str, leaf.shape[1:])]
        return jax.ShapeDtypeStruct(export.symbolic_shape(",".join(sizes), scope=scope), leaf.dtype)

    types = [symbolic(n, leaf) for n, leaf in zip(traced.places, leaves, strict=True)]
    exported = export.export(jax.jit(step))(*jax.tree.unflatten(tree, types))
    for batch in BATCHES:
        given = jax.tree.unflatten(tree, with_batch(traced, leaves, batch))
        expected = jax.jit(reference)(*given)
        for run in (jax.jit(step), exported.call):
            check_near(expected, run(*given))


def check_near(expected: Any, found: Any) -> None:
    pairs = zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True)
    for a, b in pairs:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = (np.asarray(v, np.float64) for v in (a, b))
        scale = max(float(np.abs(np.nan_to_num(a)).max(initial=0.0)), 1e-3)
        np.testing.assert_allclose(b, a, rtol=0, atol=2e-5 * scale)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "name", [n if n in SHOWN else pytest.param(n, marks=pytest.mark.thorough) for n in MODELS]
)
def test_one_program_serves_every_batch(name: str) -> None:
    check_open(name)


def network(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jax.nn.relu(x @ params["w"]) @ params["v"] - y) ** 2)


PARAMS = {"w": normal(4, 8), "v": normal(8, 1, seed=1)}
SIZES = {"x": ("b", None), "y": ("b",)}


def trained(dynamic: Any = SIZES) -> tuple[fluid.Traced, fluid.Program]:
    traced = fluid.trace(network, PARAMS, normal(6, 4), normal(6, 1), state=0, dynamic=dynamic)
    startup = fluid.Program()
    with fluid.program_guard(traced.main, startup):
        fluid.optimizer.SGD(0.1).minimize(traced.main.global_block().var(traced.fetches[0]))
    return traced, startup


@jax.jit
def by_hand(params: Any, x: Any, y: Any) -> Any:
    grads = jax.grad(network)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


@pytest.mark.slow
def test_fluids_own_training_takes_any_batch() -> None:
    traced, startup = trained()
    assert "x: f32[b, 4]" in str(traced)
    exe, params = fluid.Executor(), PARAMS
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(startup)
        for batch in BATCHES:
            x, y = normal(batch, 4, seed=batch), normal(batch, 1, seed=9)
            exe.run(traced.main, feed={"x": x, "y": y})
            params = by_hand(params, x, y)
        np.testing.assert_allclose(traced.read()["params.w"], params["w"], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [(4, 4), (5, 3)])
def test_data_parallel_at_another_batch_is_one_device(rows: tuple[int, int]) -> None:
    """In even parts, one SPMD program; in uneven ones each place at a size of its own, which counts
    by its rows.
    """
    traced, startup = trained()
    total = sum(rows)
    x, y = normal(total, 4, seed=2), normal(total, 1, seed=3)
    cuts = [slice(0, rows[0]), slice(rows[0], total)]
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(startup)
        compiled = fluid.CompiledProgram(traced.main).with_data_parallel(
            loss_name=traced.fetches[0], places=fluid.cpu_places(2)
        )
        exe.run(compiled, feed=[{"x": x[c], "y": y[c]} for c in cuts])
        found = traced.read()["params.w"]
    np.testing.assert_allclose(found, by_hand(PARAMS, x, y)["w"], rtol=1e-5, atol=1e-6)


def test_sizes_that_contradict_each_other_are_refused() -> None:
    traced = fluid.trace(network, PARAMS, normal(6, 4), normal(6, 1), state=0, dynamic=SIZES)
    step = fluid.step_fn(traced.main, list(traced.fetches))
    with pytest.raises(FeedError, match=r"axis 0 of '[xy]' has the size \d .* b, which is \d"):
        step(traced.state, {"x": normal(3, 4), "y": normal(2, 1)})


def test_what_is_no_size_is_refused() -> None:
    x = jnp.ones((4, 2))
    with pytest.raises(TraceError, match=r"dynamic names 'z', .* they are x"):
        fluid.trace(jnp.sin, x, dynamic={"z": ("b",)})
    with pytest.raises(TraceError, match=r"\('b', None, None\), and its shape is \[4, 2\]"):
        fluid.trace(jnp.sin, x, dynamic={"x": ("b", None, None)})
    with pytest.raises(TraceError, match=r"the shape \(b\+\+, 2\), and JAX says"):
        fluid.trace(jnp.sin, x, dynamic={"x": ("b++",)})
    traced = fluid.trace(lambda x: x.reshape(-1), x, dynamic={"x": ("b",)})
    text = str(traced)
    for wrong, why in (
        (
            text.replace('"2*b",)', '"2*c",)'),
            "needs the size 'c', which no fed or persistable variable",
        ),
        (text.replace('"2*b",)', '"2 b",)'), "'2 b' is not a size"),
        (text.replace('f32["2*b"]', 'f32["__import__(b)"]'), "is not a size"),
    ):
        assert wrong != text
        with pytest.raises(VerifyError, match=why):
            verify(parse(wrong), lookup)
    with pytest.raises(
        fluid.FluidError, match=r"'new_sizes' .*open size, which Paddle does not support"
    ):
        traced.main.serialize_to_string()


@pytest.mark.slow
def test_a_size_that_is_at_least_a_number(tmp_path: Path) -> None:
    """In the program's text, in what it is fed, raised, and exported; said by `dynamic`, or by the
    constraints of jax.export.
    """

    def ends(p: Any, x: Any) -> Any:
        return (x[:, -3:] * p["w"]).sum(1), lax.slice_in_dim(x, 2, 4, axis=1)

    params, x = {"w": normal(4)}, normal(2, 6, 4)
    with pytest.raises(Exception, match="inconclusive"):
        fluid.trace(ends, params, x, state={"p": None}, dynamic={"x": ("b", "t")})
    traced = fluid.trace(ends, params, x, state={"p": None}, dynamic={"x": ("b", "t>=4")})
    scope = export.SymbolicScope(["t >= 4"])
    given = jax.ShapeDtypeStruct(export.symbolic_shape("b, t, 4", scope=scope), x.dtype)
    same = fluid.trace(ends, params, given, state={"p": None})
    assert str(same) == str(traced) and 'x: f32[b, "t>=4", 4]' in str(traced)
    assert parse(to_text(traced.main.desc)) == traced.main.desc
    result = run_passes("raise_to_fluid,dce", traced.main.desc, traced.state, keep=traced.fetches)
    assert not [op for op in result.desc.blocks[0].ops if op.type.startswith("jax.")]
    raised = fluid.step_fn(Program.from_desc(result.desc), list(traced.fetches))
    fluid.export(traced, tmp_path / "m.hlo", platforms=["cpu"])
    loaded = fluid.load_exported(tmp_path / "m.hlo")
    for rows, length in ((1, 4), (3, 9)):
        fed = normal(rows, length, 4)
        wanted = ends(params, fed)
        for found in (
            traced.step()(params, fed),
            raised({**traced.state, **result.params}, {"x": fed})[1],
            list(loaded({"x": np.asarray(fed)}).values()),
        ):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(
        FeedError, match=r"axis 1 of 'x' has the size 3, and the program needs t>=4"
    ):
        traced.step()(params, normal(2, 3, 4))
    with pytest.raises(FeedError, match=r"float32\[2, 3, 4\]; it takes x float32\[b, t>=4, 4\]"):
        loaded({"x": np.asarray(normal(2, 3, 4))})
    for wrong in ("t>=u", "t>=", "t>=4>=2", "1>=t"):
        with pytest.raises(TraceError, match=r"not a size|are none|and JAX says"):
            fluid.trace(ends, params, x, state={"p": None}, dynamic={"x": ("b", wrong)})


def test_a_bound_of_another_size_bounds_its_name(tmp_path: Path) -> None:
    traced = fluid.trace(lambda x: x[:, 4:], normal(2, 8), dynamic={"x": ("b", "2*t>=6")})
    assert '"2*t>=6"' in str(traced)
    x = normal(1, 6)
    np.testing.assert_array_equal(traced.step()(x), x[:, 4:])
    with pytest.raises(FeedError, match="the size 4, and the program needs"):
        traced.step()(normal(1, 4))


def test_sizes_are_solved_for_their_names() -> None:
    told = [("x", "2*b + 1", 9), ("y", "floordiv(h, 2)", 3), ("z", "h", 7), ("w", "b*h", 28)]
    assert dims.bound(told) == {"b": 4, "h": 7}
    assert dims.value("max(b, 3)^2 - mod(h, 4)", {"b": 4, "h": 7}) == 13


def test_symbolic_arguments_need_no_names() -> None:
    open_size = jax.ShapeDtypeStruct(export.symbolic_shape("rows, 3"), jnp.float32)
    traced = fluid.trace(lambda x: (x * 2, x.sum() / x.shape[0]), open_size)
    x = jnp.arange(15.0).reshape(5, 3)
    doubled, mean = traced.step()(x)
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_allclose(mean, 21.0)


def test_a_program_that_is_run_in_parts_takes_any_batch() -> None:
    """How many rows `where` finds stands in the data, so the program is no one step."""
    w = np.arange(3, dtype=np.float32)
    traced = fluid.trace(
        lambda p, x: ((x * p["w"]).reshape(-1), x * p["w"]), {"w": w}, np.ones((4, 3), np.float32),
        state={"p": None}, dynamic={"x": ("b", None)},
    )  # fmt: skip
    flat, product = traced.fetches
    with fluid.program_guard(traced.main, traced.startup):
        half = fluid.layers.fill_constant([1], "float32", 0.5)
        above = fluid.layers.where(traced.main.global_block().var(product) > half)
    traced.write()
    exe = fluid.Executor()
    for rows in (4, 2, 4, 5):
        x = np.random.RandomState(rows).randn(rows, 3).astype("float32")
        found = exe.run(traced.main, feed={"x": x}, fetch_list=[flat, above])
        np.testing.assert_array_equal(found[0], (x * w).reshape(-1))
        np.testing.assert_array_equal(found[1], np.argwhere(x * w > 0.5))


def test_a_profile_of_open_sizes_tells_every_op() -> None:
    traced = fluid.trace(lambda x: jnp.tanh(x).reshape(-1), np.ones((4, 3)), dynamic={"x": ("b",)})
    text = str(traced.main.profile(feed={"x": np.ones((5, 3), "float32")}, fetch_list=[*traced.fetches]))  # fmt: skip
    assert "jax.tanh 0" in text and "jax.reshape 0" in text


def test_sizes_that_follow_from_the_batch_count_for_memory() -> None:
    traced = fluid.trace(lambda x: (x.reshape(-1),), np.ones((4, 3)), dynamic={"x": ("b",)})
    flat = traced.main.desc.blocks[0].vars[traced.fetches[0]]
    assert lifetimes.elements(flat, 5) == 15 and flat.shape == (-1,)
