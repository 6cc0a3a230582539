"""Programs with open sizes, raised to Fluid's ops whole: one program at several sizes, along any
axis, and two open ones; in Paddle 1.8.5 and onnxruntime too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from jax import export, lax

import fluidjax as fluid
from fluidjax.passes import run

from ..weights import normal, weights
from .test_raise_to_fluid import PADDLE, check_paddle, error_of

KEY = jax.random.key(0)
BOTH, SECOND, FIRST = ("b", "t"), (None, "t"), ("b",)
W = {"w": normal(4)}
EACH: dict[str, Callable[[Any, Any], Any]] = {
    "repeated along the second": lambda p, x: jnp.broadcast_to(x[:, :1], x.shape) + p["w"],
    "a parameter for every entry": lambda p, x: (jnp.broadcast_to(p["w"], x.shape), x.sum()),
    "means beside what they are of": lambda p, x: jnp.concatenate(
        [jnp.broadcast_to(x.mean(1, keepdims=True), x.shape), p["w"] * x], -1
    ),
    "each entry twice": lambda p, x: jnp.repeat(p["w"] * x, 2, axis=1),
    "tiled": lambda p, x: jnp.tile(p["w"] * x, (1, 3, 1)),
    "differences of pairs": lambda p, x: (x[:, None] - x[:, :, None]) * p["w"],
    "a mask of a half": lambda p, x: jnp.where(
        jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), jnp.einsum("btd,bsd->bts", x * p["w"], x), -1.0
    ),
    "positions": lambda p, x: jnp.sin(jnp.arange(x.shape[1])[:, None] * p["w"]) + x,
    "rows": lambda p, x: (x.reshape(-1, 4) * p["w"]).reshape(*x.shape[:2], 2, 2),
    "parts": lambda p, x: (x[:, 1:] - x[:, :-1], x[..., :2] * p["w"][:2], x[:, -1], x[:, 0]),
    "backwards": lambda p, x: x[:, ::-1] * p["w"],
    "tiled to the size": lambda p, x: jnp.tile(p["w"][None, None], (*x.shape[:2], 1)) + x[:, :1],
    "sums of five axes": lambda p, x: (x[:, :, None, :, None] * p["w"]).sum((0, 2, 3)),
    "numbers of sizes": lambda p, x: x * p["w"] / (2 * x.shape[1] + 1),
    "mean square of all": lambda p, x: jnp.square(x - p["w"]).mean(),
    "the first is a number": lambda p, x: (1.0 / (2.0 + x * x), 2.0 ** (x * p["w"]), 3.0 - x),
    "the first is smaller": lambda p, x: (jnp.exp(p["w"]) ** x, jnp.exp(p["w"]) / (1 + x * x)),
    "products over two": lambda p, x: jnp.einsum("btd,bte->de", x * p["w"], x),
    "scanned beside what is open": lambda p, x: lax.scan(
        lambda h, r: (jnp.tanh(h + r + x.mean(1)), (x * h[:, None]).sum(-1)), x[:, 0], x.swapaxes(0, 1) * p["w"]
    )[1],
}  # fmt: skip


class Decoder(nn.Module):
    """Rotary embeddings, keys of half of the heads, a gate."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        b, t = ids.shape
        embed = nn.Embed(30, 16)
        x = embed(ids)
        h = nn.RMSNorm()(x)
        angle = jnp.broadcast_to(jnp.arange(t), (b, t))[..., None] / 100.0 ** jnp.array([0.0, 0.5])

        def turned(v: Any) -> Any:
            c, s = jnp.cos(angle)[:, :, None], jnp.sin(angle)[:, :, None]
            first, second = v[..., :2], v[..., 2:]
            return jnp.concatenate([first * c - second * s, second * c + first * s], -1)

        q = turned(nn.Dense(16)(h).reshape(b, t, 4, 4))
        k, v = (nn.Dense(8)(h).reshape(b, t, 2, 4) for _ in range(2))
        k, v = jnp.repeat(turned(k), 2, axis=2), jnp.repeat(v, 2, axis=2)
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / 2.0
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        x = x + nn.Dense(16)(jnp.einsum("bhts,bshd->bthd", nn.softmax(scores), v).reshape(b, t, 16))
        h = nn.RMSNorm()(x)
        return embed.attend(x + nn.Dense(16)(nn.silu(nn.Dense(32)(h)) * nn.Dense(32)(h)))


class Experts(nn.Module):
    """Two of four experts for each position."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        gates = nn.softmax(nn.Dense(4, use_bias=False)(x))
        top, ids = lax.top_k(gates, 2)
        share = (jax.nn.one_hot(ids, 4) * (top / top.sum(-1, keepdims=True))[..., None]).sum(-2)
        into = self.param("into", nn.initializers.lecun_normal(), (4, 4, 8))
        out = self.param("out", nn.initializers.lecun_normal(), (4, 8, 4))
        h = jnp.einsum("btef,efd->bted", nn.gelu(jnp.einsum("btd,edf->btef", x, into)), out)
        return x + jnp.einsum("bted,bte->btd", h, share)


class Dilated(nn.Module):
    """Causal convolutions over an axis of any length."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x, skip = nn.Conv(8, (1,))(x), 0.0
        for step in (1, 2, 4):
            y = nn.Conv(16, (2,), kernel_dilation=step, padding="CAUSAL")(x)
            a, b = jnp.split(y, 2, -1)
            x, skip = x + nn.Conv(8, (1,))(nn.tanh(a) * nn.sigmoid(b)), skip + a
        return nn.log_softmax(nn.Conv(5, (1,))(nn.relu(skip)))


Case = tuple[Callable[..., Any], Any, Any, tuple[str | None, ...]]
X, IDS = normal(2, 3, 4), jax.random.randint(KEY, (2, 3), 0, 30)
CASES: dict[str, Callable[[], Case]] = {
    **{name: lambda fn=fn: (fn, W, X, BOTH) for name, fn in EACH.items()},  # type: ignore[misc]
    **{f"{name}, one": lambda fn=EACH[name]: (fn, W, X, SECOND) for name in ("each entry twice", "positions")},  # type: ignore[misc]
    "decoder": lambda: (Decoder().apply, weights(Decoder().init, KEY, IDS), IDS, BOTH),
    "experts": lambda: (Experts().apply, weights(Experts().init, KEY, X), X, BOTH),
    "dilated": lambda: (Dilated().apply, weights(Dilated().init, KEY, X), X, BOTH),
    "columns": lambda: (lambda p, i: p["w"][:, i], {"w": normal(3, 30)}, IDS, BOTH),
    "in the middle": lambda: (lambda p, i: p["w"][:, i], {"w": normal(3, 30, 2)}, IDS, FIRST),
}  # fmt: skip


def raised(name: str) -> tuple[Any, Any, Any, fluid.Traced, Any]:
    fn, params, x, sizes = CASES[name]()
    text = ", ".join(n or str(m) for n, m in zip((*sizes, *(None,) * 9), x.shape, strict=False))
    given = jax.ShapeDtypeStruct(export.symbolic_shape(text), x.dtype)
    traced = fluid.trace(fn, params, given, state={0: None} if "w" not in params else {"p": None})
    result = run("raise_to_fluid,dce", traced.main.desc, traced.state, keep=traced.fetches)
    return fn, params, x, traced, result


def at_sizes(x: Any, sizes: tuple[str | None, ...]) -> list[Any]:
    found = []
    for b, t in ((1, 5), (3, 2), (4, 4)):
        for axis, n in enumerate({"b": b, "t": t}.get(s or "") for s in sizes):
            x = x if n is None else jnp.take(x, np.arange(n) % x.shape[axis], axis)
        found.append(x)
    return found


@pytest.mark.first(6)
@pytest.mark.parametrize("name", CASES)
def test_each_is_raised_whole_and_gives_what_it_gave(name: str) -> None:
    fn, params, x, traced, result = raised(name)
    kinds = [op.type for op in result.desc.blocks[0].ops]
    assert not [k for k in kinds if k.startswith("jax.")], str(result.refusals)
    for given in at_sizes(x, CASES[name]()[3]):
        assert error_of(fn, (params, given), traced, result) < 2e-6


@pytest.mark.skipif(not PADDLE, reason="FLUIDJAX_PADDLE_PYTHON names no Python with paddle 1.8.5")
@pytest.mark.parametrize("name", CASES)
def test_paddle_runs_each(name: str, tmp_path: Path) -> None:
    fn, params, x, traced, result = raised(name)
    for at, given in enumerate(at_sizes(x, CASES[name]()[3])[:2]):
        (tmp_path / str(at)).mkdir()
        check_paddle(fn, (params, given), traced, result, tmp_path / str(at))


EXPORTED = ("experts", "decoder", "rows", "parts", "positions", "scanned beside what is open")


@pytest.mark.first(1)
@pytest.mark.parametrize("name", EXPORTED)
def test_each_is_exported_for_any_size(name: str) -> None:
    fn, params, x, traced, result = raised(name)
    step = fluid.step_fn(fluid.Program.from_desc(result.desc), list(traced.fetches))
    vars = result.desc.blocks[0].vars
    state = {n: v for n, v in {**traced.state, **result.params}.items() if vars[n].persistable}
    (feed,), sizes = traced.feeds, CASES[name]()[3]
    text = ", ".join(n or str(m) for n, m in zip((*sizes, *(None,) * 9), x.shape, strict=False))
    given = jax.ShapeDtypeStruct(export.symbolic_shape(text), x.dtype)
    made = export.export(jax.jit(lambda x: step(state, {feed: x})[1]))(given)
    for each in at_sizes(x, sizes):
        wanted = jax.tree.leaves(jax.jit(fn)(params, each))
        for found, want in zip(made.call(each), wanted, strict=True):
            scale = float(np.abs(want).max())
            np.testing.assert_allclose(np.reshape(found, want.shape), want, atol=2e-6 * scale)
