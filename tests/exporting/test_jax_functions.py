"""Functions of JAX's, not raised to Fluid's ops, in onnxruntime beside JAX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import export, lax

import fluidjax as fluid
from fluidjax.exporting import ExportError
from tests.tracing.functions import CASES

from ..weights import weights
from .beside import session

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.RandomState(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


class Pictures(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.each = nnx.Conv(8, 8, (3, 3), strides=2, feature_group_count=8, rngs=rngs)
        self.back = nnx.ConvTranspose(8, 4, (2, 2), strides=2, rngs=rngs)
        self.last = nnx.Linear(4 * 8 * 8, 10, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.max_pool(nnx.relu(self.norm(self.first(x))), (2, 2), strides=(2, 2))
        x = nnx.avg_pool(self.back(nnx.gelu(self.each(x))), (3, 3), padding="SAME")
        return nnx.softmax(self.last(x.reshape(x.shape[0], -1)))


class Words(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.embed = nnx.Embed(50, 16, rngs=rngs)
        self.attend = nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs)
        self.norm = nnx.LayerNorm(16, rngs=rngs)
        self.wide, self.narrow = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)

    def __call__(self, ids: Any) -> Any:
        x = self.embed(ids)
        x = self.norm(x + self.attend(x))
        return self.norm(x + self.narrow(nnx.gelu(self.wide(x))))


class Dense(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.swish(linen.GroupNorm(4)(linen.Dense(16)(x)))
        return linen.log_softmax(linen.Dense(4)(x))


MODEL = Dense()
WEIGHTS = weights(MODEL.init, jax.random.key(0), jnp.zeros((3, 8)))


def recurrent() -> nnx.RNN:
    return nnx.RNN(nnx.LSTMCell(4, 8, rngs=nnx.Rngs(0)))


def dense(x: Any) -> Any:
    return MODEL.apply(WEIGHTS, x)


def shapes(x: Any, y: Any) -> Any:
    a = jnp.where(x > 0, jnp.einsum("ij,kj->ik", x, y)[:, :1], jnp.sort(x)[::-1] + jnp.cumsum(x, 0))
    b = lax.pad(x, 2.0, ((1, 2, 0), (0, -1, 0)))
    c = jnp.concatenate([x[1:, ::2], jnp.tile(y[:3, :2], (1, 2))], 1)
    return a, b, c, jnp.argmax(x, 1), lax.rev(x, (1,)), jnp.stack([x, y]), x.T.reshape(-1)


def contracted(x: Any, y: Any) -> Any:
    z = x.reshape(2, 2, 2, 3)[:, 0]
    return jnp.einsum("abc,dc->bad", z, y[:, :3]), jnp.einsum("abc,abd->cd", z, z), x @ y.T


def indexed(x: Any, i: Any) -> Any:
    along = jnp.take_along_axis(x, i[None, :4] % 4, 0)
    put = lax.dynamic_update_slice(x, x[:2, :2] * 3, (i[0] + 7, 1))
    return x[i], x[:, i], x[i, i], along, put, x[0, i[1]], lax.dynamic_slice(x, (i[0], 1), (2, 2))


def branches(x: Any) -> Any:
    picked = lax.switch(x.sum().astype(int) % 3, [jnp.sin, jnp.cos, lambda v: v * 2], x)
    return picked, lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)


def loops(x: Any) -> Any:
    counted = lax.fori_loop(0, 5, lambda i, v: v * 0.5 + i, x)
    until = lax.while_loop(
        lambda s: s[0].sum() < 50, lambda s: (s[0] * 2, s[1] + 1), (jnp.abs(x), 0)
    )
    back = lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True)
    return counted, until, back


def statistics(x: Any) -> Any:
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), jax.nn.logsumexp(x, 1), x.max(), x.prod(1), (x > 0).any(0)  # fmt: skip


def logarithms(x: Any) -> Any:
    return jnp.log2(jnp.abs(x) + 0.5), jnp.log10(jnp.abs(x) + 0.5), jnp.exp2(x)


def filled(x: Any, i: Any) -> Any:
    """Entries beyond the array, which are a number that the function gives."""
    get = {"mode": "fill", "fill_value": 7}
    whole = x.at[i].get(**get), x.at[:, i].get(**get), x.at[i[None], 1].get(**get)
    along = jnp.take_along_axis(x, i[:, None], 1, mode="fill", fill_value=3)
    return *whole, x.at[i, i].get(**get), along, (x > 0).at[i].get(mode="fill", fill_value=True)


def samples(x: Any, n: Any) -> Any:
    """Loops under vmap, which end for each sample at another time."""

    def until(row: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + jnp.abs(row).sum(), s[1] + 1, s[2] * row),
            (0.1, 0, row),
        )

    counted = jax.vmap(lambda row, n: lax.fori_loop(0, n, lambda i, c: c * row + i, row))(x, n)
    return jax.vmap(until)(x), jax.vmap(until)(x[:1]), counted, until(x[0])


def no_turns(x: Any) -> Any:
    return lax.scan(lambda c, r: (c + r.sum(), (r, c)), 1.0, x[:0]), lax.scan(
        lambda c, _: (c + 1, c * 2), x, length=0
    )


def derived(x: Any) -> Any:
    return jax.grad(lambda v: (jnp.tanh(v @ v.T) ** 2).sum())(x)


def slices(x: Any, i: Any) -> Any:
    """Slices of one entry, whose axis stays, and that begin too far behind."""

    def sliced(value: Any, *sizes: int) -> Any:
        def one(n: Any) -> Any:
            at = [n if size == 1 else 0 for size in sizes]
            return lax.dynamic_slice(value, at, sizes)

        return jax.vmap(one)(i), jax.vmap(jax.vmap(one))(i.reshape(2, 2) + 2)

    cube = jnp.stack([x, 2 * x, 3 * x])
    return sliced(x, 1, 4), sliced(x, 4, 1), sliced(cube, 3, 1, 4), sliced(cube, 1, 1, 4)


def flags(x: Any) -> Any:
    return jnp.where(x > 0, x > 0.5, x < -0.5), jnp.tril(x > -0.1), (x > 0)[:, 0]


def rounded(x: Any) -> Any:
    halves = jnp.concatenate([jnp.arange(-3.5, 4, 0.5), jnp.array([0.49999997, 8388609.0])])
    x = jnp.concatenate([x.ravel(), halves])
    return jnp.round(x), lax.round(x), jnp.round(x, 2), jnp.rint(x)


def nothing(x: Any) -> Any:
    return x.reshape(4, 0), jnp.concatenate([x, x + 1], 0), x.sum(), jnp.ones((2, 0)) @ x


FUNCTIONS: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
    ("pictures", Pictures, (normal(2, 16, 16, 3),)),
    ("words", Words, (RNG.randint(0, 50, (2, 7)).astype("int32"),)),
    ("recurrent", recurrent, (normal(2, 5, 4),)),
    ("dense", dense, (normal(3, 8),)),
    ("shapes", shapes, (normal(4, 6), normal(4, 6))),
    ("contracted", contracted, (normal(4, 6), normal(4, 6))),
    ("indexed", indexed, (normal(4, 4), np.array([2, 0, 3, 1], "int32"))),
    ("slices", slices, (normal(4, 4), np.array([2, 0, 3, 1], "int32"))),
    ("branches", branches, (normal(3, 4),)),
    ("loops", loops, (normal(3, 4),)),
    ("logarithms", logarithms, (normal(3, 4),)),
    ("statistics", statistics, (normal(5, 4),)),
    ("rounded", rounded, (normal(3, 4),)),
    ("filled", filled, (normal(4, 4), np.array([2, -1, 3, 7], "int32"))),
    ("samples", samples, (normal(4, 3), np.array([2, 0, 3, 1], "int32"))),
    ("no_turns", no_turns, (normal(4, 3),)),
    ("flags", flags, (normal(4, 4),)),
    ("nothing", nothing, (normal(0, 4),)),
    ("derived", derived, (normal(3, 4),)),
]

MODULES = (Pictures, Words, recurrent)  # made by the tests: to make one compiles its first numbers


def exported(traced: Any, path: Path, given: dict[str, Any]) -> dict[str, np.ndarray]:
    fluid.export(traced, path, opset=18)
    running = session(path)
    names = [o.name for o in running.get_outputs()]
    return dict(zip(names, running.run(None, given), strict=True))


@pytest.mark.first(5)
@pytest.mark.parametrize(("function", "args"), [f[1:] for f in FUNCTIONS], ids=[f[0] for f in FUNCTIONS])  # fmt: skip
def test_as_jax_computes_it(function: Any, args: Any, tmp_path: Path) -> None:
    if function in MODULES:
        function = function()
    traced = fluid.trace(function, *args)
    got = exported(traced, tmp_path / "f.onnx", dict(zip(traced.feeds, args, strict=True)))
    if isinstance(function, nnx.Module):
        want = [nnx.jit(lambda module, *args: module(*args))(function, *args)]
    else:
        want = jax.tree.leaves(jax.jit(function)(*args))
    for name, value in zip(traced.fetches, want, strict=True):
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        assert got[name].dtype == value.dtype and got[name].shape == value.shape


def grows(x: Any) -> Any:
    """Sizes that follow from open ones, in every attribute that holds sizes."""
    n, m = x.shape
    h = jnp.pad(x, ((1, 2), (0, n)))  # n + 3 rows
    halves = jnp.reshape(jnp.concatenate([x, x], 0), (n, 2 * m))
    even = x[: n // 2 * 2].reshape(n // 2, 2, m).sum(1)
    back = lax.rev(lax.dynamic_slice(h, (1, 0), (n, m)), (0,))
    grid = jnp.arange(n)[:, None] * jnp.ones((n, m), "int32") + n
    means = x.sum(0) / n, lax.fori_loop(0, 3, lambda i, v: v + jnp.full((n, m), 0.5), x)
    rows = lax.scan(lambda c, r: (c + r[0], c * jnp.ones((n,))), x[0, 0], x)
    picked = x[:, 1], x[-1], jnp.tile(x, (1, 2)), jnp.sort(x, 0)
    pooled = lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "VALID")
    return h, halves, even, back, grid, means, rows, picked, pooled, x @ x.T


@pytest.mark.parametrize("sizes", ["n, 3", "n, m", "2*k + 1, m"])
def test_sizes_stay_open(sizes: str, tmp_path: Path) -> None:
    """Also those that are computed of them, and in blocks."""
    shape = export.symbolic_shape(sizes, constraints=["n >= 3"] if "n" in sizes else ["k >= 1"])
    traced = fluid.trace(grows, jax.ShapeDtypeStruct(shape, jnp.float32))
    path = tmp_path / "f.onnx"
    fluid.export(traced, path)
    onnx.checker.check_model(str(path), full_check=True)
    running = session(path)
    names = [o.name for o in running.get_outputs()]
    for rows, columns in ((3, 3), (5, 3), (7, 3 if "3" in sizes else 4)):
        x = normal(rows, columns)
        found = dict(zip(names, running.run(None, {"x": x}), strict=True))
        for name, want in zip(traced.fetches, jax.tree.leaves(jax.jit(grows)(x)), strict=True):
            assert found[name].shape == want.shape and found[name].dtype == want.dtype
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-5, err_msg=name)


# Of the functions that tracing is tested with, those whose ops all have rules; the rest draw at
# random, take bits apart, scatter, or decompose matrices, and name what they lack.
WHOLE = """
axes_of_a_vmap gradient_of_a_scan loops_and_branches nested_control custom_rules large_constants_within
second_derivatives closed_over_arrays jitted_within linen_mlp_predicts
linen_transformer_predicts linen_unet_predicts linen_recurrent_predicts linen_ensemble_vmapped
convolutions
""".split()


@pytest.mark.first(5)
@pytest.mark.parametrize("name", WHOLE)
def test_functions_that_are_traced(name: str, tmp_path: Path) -> None:
    function, args, options = CASES[name]()
    traced = fluid.trace(function, *args, **options)
    leaves = zip(traced.places, jax.tree.leaves(args), strict=True)
    got = exported(traced, tmp_path / "f.onnx", {n: np.asarray(v) for n, v in leaves if n in traced.feeds})  # fmt: skip
    want = dict(zip(traced.results, jax.tree.leaves(jax.jit(function)(*args)), strict=True))
    assert got
    for out, value in got.items():
        np.testing.assert_allclose(value, want[out], rtol=1e-4, atol=1e-5, err_msg=out)


@pytest.mark.parametrize("name", ["random_raw_keys", "linear_algebra", "indexing"])
def test_what_lacks_is_named(name: str, tmp_path: Path) -> None:
    function, args, options = CASES[name]()
    traced = fluid.trace(function, *args, **options)
    with pytest.raises(ExportError) as error:
        fluid.export(traced, tmp_path / "f.onnx", opset=18)
    assert all(lack.what.startswith("jax.") and lack.places for lack in error.value.report.lacks)
    assert not list(tmp_path.iterdir())


def test_complex_numbers_are_refused_op_by_op(tmp_path: Path) -> None:
    def fn(x: Any) -> Any:
        z = lax.complex(x, x)
        return jnp.abs(z @ z.T), x + 1

    traced = fluid.trace(fn, normal(3, 4))
    with pytest.raises(
        ExportError, match=r"jax\.dot_general.*complex.*test_jax_functions"
    ) as error:
        fluid.export(traced, tmp_path / "f.onnx")
    assert "jax.add" not in [lack.what for lack in error.value.report.lacks]


def test_results_that_follow_from_new_state(tmp_path: Path) -> None:
    """A metric that a step computes of its new state, and what it says of gradients and updates."""

    def step(params: Any, seen: Any, x: Any) -> Any:
        grad = jax.grad(lambda p: ((x @ p["w"]) ** 2).mean())(params)["w"]
        params = {"w": params["w"] - 0.1 * grad}
        seen = {"n": seen["n"] + 1, "total": seen["total"] + x.sum()}
        return (
            params,
            seen,
            seen["total"] / seen["n"],
            jnp.linalg.norm(grad),
            (x @ params["w"]).sum(),
        )

    args = {"w": normal(4, 2)}, {"n": np.float32(0), "total": np.float32(0)}, normal(3, 4)
    traced = fluid.trace(step, *args)
    want = dict(zip(traced.fetches, jax.jit(step)(*args)[2:], strict=True))
    for got in (
        exported(traced, tmp_path / "f.onnx", {"x": args[2]}),
        _by_stablehlo(traced, tmp_path / "f.hlo", {"x": args[2]}),
        _only_these(traced, {"x": args[2]}),
    ):
        for name, value in want.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, err_msg=name)


def _by_stablehlo(traced: Any, path: Path, given: dict[str, Any]) -> Any:
    fluid.export(traced, path, platforms=("cpu",))
    return fluid.load_exported(path)(given)


def _only_these(traced: Any, given: dict[str, Any]) -> dict[str, Any]:
    """By an Executor that leaves out what these results do not need."""
    scope = fluid.Scope()
    traced.write(scope)
    names = list(traced.fetches)
    found = fluid.Executor().run(traced.main, given, names, scope=scope, use_prune=True)
    return dict(zip(names, found, strict=True))


def test_a_cache_is_written_for_every_batch(tmp_path: Path) -> None:
    """One time step of a cache with an open batch, as decoders write it; and parts of other axes."""
    put = lax.dynamic_update_slice

    def fn(x: Any, i: Any) -> Any:
        inner = put(x, x[:, :2, 2:4] * 2, (i, 0, i))
        turned = jnp.swapaxes(x, 0, 1)
        index = lax.dynamic_update_index_in_dim(x, x[:, 0] * 3, i, 1)
        return put(x, x[:, :1] * 2, (0, i + 9, 0)), inner, put(turned, turned[1:2], (i, 0, 0)), index, put(x, -x, (i, i, i))  # fmt: skip

    x, i = normal(3, 4, 5), np.array(2, "int32")
    path = tmp_path / "f.onnx"
    traced = fluid.trace(fn, x, i, dynamic={"x": ("b",)})
    fluid.export(traced, path)
    running = session(path)
    for batch in (1, 3, 7):
        x = normal(batch, 4, 5)
        for found, want in zip(running.run(None, {"x": x, "i": i}), jax.jit(fn)(x, i), strict=True):
            np.testing.assert_array_equal(found, want)


def test_a_function_of_new_state_alone_has_nothing_to_export(tmp_path: Path) -> None:
    traced = fluid.trace(lambda p, x: {"w": p["w"] + x}, {"w": normal(3)}, normal(3))
    for name in ("f.onnx", "f.hlo", "f.txt"):
        with pytest.raises(fluid.FluidError, match=r"all results are new state.*fetches=\["):
            fluid.export(traced, tmp_path / name)
    fluid.export(traced, tmp_path / "f.onnx", fetches=["p.w"])
