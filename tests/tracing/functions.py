"""Functions of JAX's that people write, for the tests of `fluid.trace`: each with arguments, and
how it is iterated.

A case is a function that makes (fn, args, options of trace). Those of other packages are left out
where these are not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx
from jax import lax

from ..weights import normal, weights

Case = Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
CASES: dict[str, Case] = {}
KEY = jax.random.key(7)


def case(make: Case) -> Case:
    CASES[make.__name__] = make
    return make


def needs(package: str) -> Callable[[Case], Case]:
    return case if find_spec(package) else lambda make: make


# -- plain jax.numpy -------------------------------------------------------------------------------


@case
def arithmetic() -> Any:
    def fn(x, y):
        z = (
            jnp.where(x > 0, x / (1 + jnp.abs(y)), -x * 2)
            + jnp.maximum(x, y) ** 2
            - jnp.power(jnp.abs(x) + 1, y)
        )
        return (
            z,
            jnp.clip(z, -1, 1),
            jnp.sign(x) % 3,
            jnp.floor(y) // 2,
            jnp.round(x * 3),
            jnp.hypot(x, y),
        )

    return fn, (normal(3, 4), normal(3, 4, seed=1)), {}


@case
def special_functions() -> Any:
    def fn(x):
        s = jax.scipy.special
        u = jax.nn.sigmoid(x)
        return (
            s.gammaln(u + 1),
            s.digamma(u + 1),
            s.erfinv(u),
            s.i0e(x),
            s.i1e(x),
            s.betainc(u + 1, u + 2, u),
            s.gammainc(u + 1, u),
            s.zeta(u + 2, u + 1),
            s.xlogy(u, u),
        )

    return fn, (normal(6),), {}


@case
def reductions() -> Any:
    def fn(x):
        return (
            x.sum(0),
            x.mean((0, 1)),
            x.max(1),
            x.min(),
            x.prod(2),
            x.var(1),
            x.std(),
            (x > 0).any(0),
            (x > 0).all(1),
            x.argmax(1),
            x.argmin(),
            jnp.cumsum(x, 1),
            jnp.cumprod(x, 0),
            lax.cummax(x, 1, reverse=True),
            lax.cumlogsumexp(x, 0),
            jax.scipy.special.logsumexp(x, 1),
            jnp.linalg.norm(x),
            jnp.median(x),
            jnp.percentile(x, 30.0),
        )

    return fn, (normal(3, 4, 5),), {}


@case
def moving_elements() -> Any:
    def fn(x):
        return (
            x.reshape(4, -1),
            x.T,
            x[::-1],
            x[1:, ::2],
            jnp.roll(x, 1, 0),
            jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0),
            jnp.stack([x, x]),
            jnp.concatenate([x, 2 * x], 1),
            jnp.tile(x, (2, 1)),
            jnp.repeat(x, 2, 0),
            jnp.split(x, 2, 1),
            jnp.flip(x, 1),
            jnp.squeeze(x[None]),
            jnp.moveaxis(x[None], 0, 2),
            jnp.tril(x),
            jnp.eye(3) @ x[:3],
            jnp.meshgrid(x[0], x[1]),
            jnp.broadcast_to(x, (2, 4, 6)),
        )

    return fn, (normal(4, 6),), {}


@case
def indexing() -> Any:
    def fn(x, i):
        return (
            x[i],
            x.at[i].add(1.0),
            x.at[i, 0].set(5.0),
            x.at[i].mul(2.0),
            x.at[i].max(0.0),
            x.at[i].min(0.0),
            jnp.take(x, i, 1, mode="clip"),
            jnp.take_along_axis(x, i[:, None], 1),
            lax.dynamic_slice(x, (i[0], 1), (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :2], (i[1], i[0])),
            x[i, i],
            jnp.searchsorted(jnp.sort(x[0]), x[1]),
            jnp.bincount(i, length=6),
        )

    return fn, (normal(4, 6), jnp.array([2, 0, 3, 1])), {}


@case
def sorting() -> Any:
    def fn(x):
        return (
            jnp.sort(x, 0),
            jnp.argsort(x, 1),
            lax.top_k(x, 2),
            jnp.unique(x.ravel(), size=5),
            lax.sort_key_val(x, -x),
        )

    return fn, (normal(4, 6),), {}


@case
def integers_and_bits() -> Any:
    def fn(i, j):
        return (
            i & j,
            i | j,
            i ^ j,
            ~i,
            i << 2,
            i >> 1,
            lax.shift_right_logical(i, 3),
            lax.population_count(i),
            lax.clz(j),
            i // (j | 1),
            i % (j | 1),
            i**2,
        )

    return fn, (jnp.array([5, -3, 1024], jnp.int32), jnp.array([7, 12, -9], jnp.int32)), {}


@case
def every_dtype() -> Any:
    kinds = "int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64 bool".split()

    def fn(x):
        made = [x.astype(kind) for kind in kinds]
        return (
            made,
            [v + v for v in made[:-1]],
            lax.bitcast_convert_type(x, jnp.uint32),
            x.astype(jnp.float8_e4m3fn),
            x.astype(jnp.int4),
        )

    return fn, (jnp.arange(6, dtype=jnp.float32),), {}


@case
def complex_numbers() -> Any:
    def fn(x):
        z = lax.complex(x, 2 * x)
        return (
            jnp.conj(z) * (1 + 2j),
            z.real,
            jnp.abs(z),
            jnp.angle(z),
            jnp.exp(1j * z),
            jnp.fft.fft(z),
            jnp.fft.irfft(jnp.fft.rfft(x)),
        )

    return fn, (normal(8),), {}


@case
def linear_algebra() -> Any:
    def fn(a):
        s = a @ a.T + 4 * jnp.eye(4)
        return (
            jnp.linalg.cholesky(s),
            jnp.linalg.solve(s, a),
            jnp.linalg.inv(s),
            jnp.linalg.det(s),
            jnp.linalg.qr(a),
            jnp.linalg.svd(a),
            jnp.linalg.eigh(s),
            jnp.linalg.slogdet(s),
            jax.scipy.linalg.solve_triangular(s, a, lower=True),
            jnp.linalg.svd(a, compute_uv=False),
            jax.scipy.linalg.lu(a),
            jnp.linalg.matrix_power(s, 3),
            jnp.linalg.eigvals(a),
            jax.scipy.linalg.expm(0.1 * a),
        )

    return fn, (normal(4, 4),), {}


@case
def products() -> Any:
    def fn(a, b):
        return (
            a @ b,
            jnp.einsum("bij,bjk->bki", a, b),
            jnp.einsum("bij,ckj->bcik", a, b.swapaxes(1, 2)),
            jnp.tensordot(a, b, ((2, 0), (1, 0))),
            lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), precision="highest"),
            jnp.matmul(a, b, preferred_element_type=jnp.float32),
            jnp.kron(a[0], b[0]),
            a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16),
        )

    return fn, (normal(2, 3, 4), normal(2, 4, 5, seed=1)), {}


@case
def functions_of_the_users_own() -> Any:
    """Reductions, windows and scattering by functions that have no op: with blocks."""

    def greater(a, b):
        return jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])

    def fn(x):
        at = lax.broadcasted_iota(jnp.int32, x.shape, 0)
        windows = partial(
            lax.reduce_window, window_dimensions=(2, 2), window_strides=(1, 2), padding="SAME"
        )
        return (
            lax.reduce(x, 0.0, lambda a, b: a + 2 * b, (0,)),
            lax.reduce((x, at), (-jnp.inf, 0), greater, (1,)),
            windows(x, 1.0, lax.mul),
            windows(x, -jnp.inf, jnp.logaddexp),
            windows((x, at), (-jnp.inf, 0), greater),
            x.at[jnp.array([1, 0])].apply(jnp.sin),
            jax.grad(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)).sum())(x),
        )

    return fn, (normal(4, 6),), {}


@case
def more_linear_algebra() -> Any:
    linalg = lax.linalg

    def fn(a, b):
        s = a @ a.T + 4 * jnp.eye(4)
        groups = jnp.array([1, 3], jnp.int32)
        return (
            linalg.cholesky_update(jnp.linalg.cholesky(s).T, a[0]),
            linalg.symmetric_product(a, s, alpha=0.3, beta=2.0, symmetrize_output=True),
            linalg.qr(a, pivoting=True),
            linalg.tridiagonal_solve(a[0], 9 + a[1], a[2], a[:1].T, perturb_singular=True),
            lax.ragged_dot(a, b, groups),
            jax.grad(lambda a: lax.ragged_dot(a, b, groups).sum())(a),
            jnp.frexp(a),
            jax.grad(lambda a: jnp.ldexp(a, 2).sum())(a),
        )

    return fn, (normal(4, 4), normal(2, 4, 3, seed=1)), {}


@case
def axes_of_a_vmap() -> Any:
    def fn(x):
        def row(r):
            near = lax.ppermute(r, "i", [(0, 1), (1, 2), (2, 0)])
            return r / lax.psum(r, "i") + lax.pmax(r.sum(), "i"), lax.all_gather(near, "i")

        return jax.vmap(row, axis_name="i")(x)

    return fn, (normal(3, 4),), {}


def mapped(checked: bool) -> Any:
    """A step over a mesh of all of these devices, of which each talks to the others."""
    devices = min(2, jax.device_count())
    mesh = jax.make_mesh((devices,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec, round_about = jax.sharding.PartitionSpec, [(i, (i + 1) % devices) for i in range(devices)]

    def body(w, x):
        grad = jax.grad(lambda w: lax.pmean(jnp.mean((x @ w) ** 2), "d"))(w)
        talk = (
            lax.psum(x, "d") * lax.axis_index("d"),
            lax.ppermute(x, "d", round_about),
            lax.all_gather(x, "d", tiled=True),
            lax.psum_scatter(x, "d", tiled=True),
            lax.all_to_all(x, "d", 1, 0, tiled=True),
            lax.scan(lambda c, r: (c + r, None), x[0] * 0, x)[0],
        )
        return w - 0.1 * grad, talk

    def fn(w, x):
        out_specs = spec(), (spec("d"),) * 6
        run = jax.shard_map(
            body, mesh=mesh, in_specs=(spec(), spec("d")), out_specs=out_specs, check_vma=checked
        )
        return run(w, x)

    return fn, (normal(2, 3), normal(8, 2, seed=1)), {"state": {0: 0}}


@case
def over_a_mesh() -> Any:
    return mapped(True)


@case
def over_a_mesh_unchecked() -> Any:
    return mapped(False)


@case
def convolutions() -> Any:
    def fn(x, k):
        dims = ("NHWC", "HWIO", "NHWC")
        return (
            lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims),
            lax.conv_general_dilated(
                x, k, (2, 1), [(1, 0), (0, 2)], rhs_dilation=(1, 2), dimension_numbers=dims
            ),
            lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=dims),
            lax.conv_general_dilated(
                x,
                jnp.tile(k[:, :, :1], (1, 1, 1, 1)),
                (1, 1),
                "VALID",
                dimension_numbers=dims,
                feature_group_count=4,
            ),
            jnp.convolve(x[0, 0, :, 0], k[0, 0, 0]),
        )

    return fn, (normal(2, 6, 7, 4), normal(3, 3, 4, 8, seed=1)), {}


@case
def pools_and_their_gradients() -> Any:
    def fn(x):
        pool = partial(
            lax.reduce_window,
            window_dimensions=(1, 2, 2, 1),
            window_strides=(1, 2, 1, 1),
            padding="SAME",
        )

        def total(x):
            return (
                pool(x, -jnp.inf, lax.max) * pool(x, jnp.inf, lax.min) * pool(x, 0.0, lax.add)
            ).sum()

        return total(x), jax.grad(total)(x), jax.jvp(jax.grad(total), (x,), (x,))

    return fn, (normal(2, 5, 6, 3),), {}


@case
def random_typed_keys() -> Any:
    def fn(key, x):
        a, b, c, d = jax.random.split(key, 4)
        keys = jax.random.split(jax.random.fold_in(a, 3), 5)
        return (
            jax.random.normal(a, (3,)),
            jax.random.uniform(b, (2, 2)),
            jax.random.bernoulli(c, 0.3, (4,)),
            jax.random.randint(d, (3,), 0, 9),
            jax.random.categorical(a, x),
            jax.random.permutation(b, 6),
            jax.random.gamma(c, 1.0 + x * x),
            jax.random.truncated_normal(d, -1, 1, (3,)),
            jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys),
            keys,
            jax.random.dirichlet(a, jnp.ones(3)),
            jax.random.bits(b, (3,), jnp.uint8),
        )

    return fn, (KEY, normal(4)), {}


@case
def random_raw_keys() -> Any:
    def fn(key):
        a, b = jax.random.split(key)
        return (
            jax.random.normal(a, (3,)),
            b,
            jax.random.exponential(b, (2,)),
            jax.random.choice(a, 7, (3,), replace=False),
        )

    return fn, (jax.random.PRNGKey(3),), {}


@case
def keys_of_another_kind() -> Any:
    def fn(key, seed):
        return jax.random.normal(key, (3,)), jax.random.uniform(
            jax.random.key(seed, impl="threefry2x32"), (2,)
        )

    return fn, (jax.random.key(1, impl="rbg"), jnp.int32(5)), {}


# -- control flow and transformations --------------------------------------------------------------


@case
def scans() -> Any:
    def fn(x, w):
        def cell(carry, row):
            h = jnp.tanh(carry @ w + row)
            return h, (h.sum(), row * 2)

        return (
            lax.scan(cell, jnp.zeros(4), x),
            lax.scan(cell, x[0], x, reverse=True, unroll=2),
            lax.map(jnp.sin, x),
            lax.associative_scan(jnp.add, x),
        )

    return fn, (normal(5, 4), normal(4, 4, seed=1)), {}


@case
def gradient_of_a_scan() -> Any:
    def fn(w, x):
        def loss(w):
            return lax.scan(lambda h, row: (jnp.tanh(h @ w + row), None), jnp.zeros(4), x)[0].sum()

        return jax.value_and_grad(loss)(w)

    return fn, (normal(4, 4), normal(5, 4, seed=1)), {}


@case
def loops_and_branches() -> Any:
    def fn(i, x):
        return (
            lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + i, c[1] * 1.5), (0, x)),
            lax.fori_loop(0, 3, lambda k, v: v + k, x),
            lax.cond(i > 1, lambda v: v + 1, jnp.sin, x),
            lax.switch(i, [lambda v: v, jnp.cos, lambda v: v * 2], x),
            lax.fori_loop(0, i, lambda k, v: v * 2, x),
            lax.cond(True, lambda: 1.0, lambda: 2.0),
        )

    return fn, (jnp.int32(2), normal(3)), {}


@case
def nested_control() -> Any:
    def fn(x):
        def outer(c, row):
            def inner(state):
                n, v = state
                return n + 1, lax.cond(n % 2 == 0, lambda a: a * 1.1, lambda a: a - 0.1, v)

            return c + lax.while_loop(lambda s: s[0] < 4, inner, (0, row))[1], c.sum()

        return lax.scan(outer, jnp.zeros(3), x)

    return fn, (normal(4, 3),), {}


@case
def custom_rules() -> Any:
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * 2 * jnp.cos(x),))

    @jax.custom_jvp
    def h(x):
        return x**3

    h.defjvps(lambda t, out, x: t * 7.0)

    def fn(x):
        return (
            f(x),
            jax.grad(lambda x: f(x).sum() + h(x).sum())(x),
            jax.grad(lambda x: jax.nn.relu(x).sum())(x * 0),
        )

    return fn, (normal(4),), {}


@case
def large_constants_within() -> Any:
    """Arrays that functions with rules, loops and branches hold themselves."""
    big = np.random.RandomState(0).rand(70, 70).astype("f")

    @jax.custom_jvp
    def f(x):
        return x @ big

    f.defjvp(lambda given, along: (f(*given), along[0] @ (2 * big)))

    @jax.custom_vjp
    def g(x):
        return jnp.sin(x @ big)

    g.defvjp(lambda x: (g(x), x), lambda x, flowing: (flowing @ big.T * 3,))

    def fn(p, x):
        def body(c, _):
            c = f(c)
            return c / jnp.abs(c).max(), g(c).sum()

        c, ys = lax.scan(body, x * p["w"], None, length=3)
        c = lax.cond(ys.sum() > 0, lambda c: c @ big, lambda c: c @ (big + 1), c)
        return lax.while_loop(lambda c: (c @ big).sum() < 1e5, lambda c: c @ big, c).sum()

    return fn, ({"w": jnp.ones(70)}, normal(2, 70)), {"state": 0}


@case
def rematerialized() -> Any:
    @jax.checkpoint
    def block(x, w):
        return jnp.sin(jnp.tanh(x @ w))

    def fn(x, w):
        return jax.grad(lambda w: block(block(x, w), w).sum())(w), block(x, w)

    return fn, (normal(3, 4), normal(4, 4, seed=1)), {}


@case
def vmapped() -> Any:
    def fn(x, w):
        per_sample = jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0))(w, x)
        return (
            per_sample,
            jax.vmap(lambda v: lax.while_loop(lambda s: s.sum() < 3, lambda s: s + 1, v))(x),
            jax.vmap(jnp.linalg.cholesky)(x[:, :, None] * x[:, None] + jnp.eye(4)),
        )

    return fn, (normal(5, 4), normal(4, 3, seed=1)), {}


@case
def second_derivatives() -> Any:
    def loss(w, x):
        return jnp.mean(jax.nn.softplus(jnp.tanh(x @ w) @ w.T) ** 2)

    def fn(w, v, x):
        return (
            jax.hessian(loss)(w[:2, :2], x[:, :2]),
            jax.jvp(jax.grad(lambda w: loss(w, x)), (w,), (v,)),
            jax.jacfwd(loss)(w, x),
            jax.jacrev(loss)(w, x),
        )

    return fn, (normal(4, 3), normal(4, 3, seed=1), normal(5, 4, seed=2)), {}


@case
def maml() -> Any:
    def model(p, x):
        return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]

    def loss(p, x, y):
        return jnp.mean((model(p, x) - y) ** 2)

    def adapted(p, x, y):
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, x, y))

    def fn(params, xs, ys):
        def outer(p):
            return jnp.mean(jax.vmap(lambda x, y: loss(adapted(p, x, y), x, y))(xs, ys))

        value, grads = jax.value_and_grad(outer)(params)
        return jax.tree.map(lambda a, g: a - 0.01 * g, params, grads), value

    return (
        fn,
        (
            {"w": normal(2, 8), "b": jnp.zeros(8), "v": normal(8, 1, seed=1)},
            normal(3, 5, 2),
            normal(3, 5, 1, seed=2),
        ),
        {},
    )


@case
def closed_over_arrays() -> Any:
    table, few = normal(50, 4), jnp.arange(3.0)

    def fn(i):
        return table[i] * few[1], few, np.float32(2.0), jnp.asarray([True, False])

    return fn, (jnp.array([1, 7]),), {}


@case
def jitted_within() -> Any:
    @jax.jit
    def inner(x, n):
        return jnp.sin(x) * n

    def fn(x):
        return inner(x, 2) + inner(x, 2), jax.jit(lambda y: (y, y))(x)

    return fn, (normal(3),), {"calls": "keep"}


@case
def swapped_and_untouched_state() -> Any:
    def fn(a, b, counts, x):
        return b, a, counts, (a["v"] * x).sum()

    return (
        fn,
        ({"v": normal(3)}, {"v": normal(3, seed=1)}, {"n": jnp.int32(4)}, normal(3, seed=2)),
        {"state": (0, 1, 2)},
    )


@case
def moving_average() -> Any:
    def fn(params, ema, x):
        new = jax.tree.map(lambda p: p - 0.1 * jnp.sin(p) * x.mean(), params)
        return new, jax.tree.map(lambda e, p: 0.9 * e + 0.1 * p, ema, new), params["w"]

    return fn, ({"w": normal(3)}, {"w": normal(3, seed=1)}, normal(3, seed=2)), {"state": (0, 1)}


@case
def scalars_and_keywords() -> Any:
    def fn(x, scale=1.0, *, shift=0):
        return x * scale + shift

    return fn, (normal(3), 2.5), {"kwargs": {"shift": 3}}


# -- flax linen ------------------------------------------------------------------------------------


def linen_step(
    model: Any, tx: Any, x: Any, labels: Any, rngs: bool = False, stats: bool = False
) -> Any:
    """A training step of a linen classifier, with its first state."""
    variables = weights(model.init, {"params": KEY, "dropout": KEY}, x)
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}

    def fn(params, opt_state, rest, x, labels, key):
        def loss(p):
            out = model.apply(
                {"params": p, **rest},
                x,
                mutable=list(rest) or False,
                **({"rngs": {"dropout": key}} if rngs else {}),
            )
            logits, changed = out if rest else (out, {})
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, changed, value

    state = (0, 1, 2) if rest else (0, 1)
    return fn, (params, tx.init(params), rest, x, labels, KEY), {"state": state}


class Dense(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.relu(linen.Dense(16)(x))
        return linen.Dense(4)(linen.gelu(linen.LayerNorm()(x)))


class Residual(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x):
        y = linen.Conv(self.features, (3, 3), use_bias=False)(x)
        y = linen.relu(linen.BatchNorm(use_running_average=False)(y))
        return linen.relu(
            x
            + linen.BatchNorm(use_running_average=False)(
                linen.Conv(self.features, (3, 3), use_bias=False)(y)
            )
        )


class SmallResNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.Conv(8, (3, 3))(x)
        x = Residual(8)(Residual(8)(x))
        x = linen.max_pool(x, (2, 2), (2, 2))
        return linen.Dense(4)(x.mean((1, 2)))


class Attention(linen.Module):
    train: bool = True

    @linen.compact
    def __call__(self, tokens):
        x = linen.Embed(20, 16)(tokens) + self.param(
            "position", linen.initializers.normal(0.02), (tokens.shape[1], 16)
        )
        for _ in range(2):
            y = linen.LayerNorm()(x)
            x = x + linen.MultiHeadDotProductAttention(
                2, dropout_rate=0.1, deterministic=not self.train
            )(y, mask=linen.make_causal_mask(tokens))
            y = linen.Dense(32)(linen.RMSNorm()(x))
            x = x + linen.Dropout(0.1, deterministic=not self.train)(linen.Dense(16)(linen.silu(y)))
        return linen.Dense(4)(x.mean(1))


class Recurrent(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(4)(linen.RNN(linen.GRUCell(6))(linen.RNN(linen.LSTMCell(8))(x))[:, -1])


class UNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        a = linen.swish(linen.GroupNorm(2)(linen.Conv(8, (3, 3))(x)))
        b = linen.swish(linen.Conv(16, (3, 3), (2, 2))(a))
        up = linen.ConvTranspose(8, (2, 2), (2, 2))(b)
        y = linen.Conv(4, (1, 1))(jnp.concatenate([a, up], -1))
        return jax.image.resize(y, (2, 4, 4, 4), "bilinear").mean((1, 2))


class Mixer(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.Conv(12, (2, 2), (2, 2))(x).reshape(2, -1, 12)
        y = linen.LayerNorm()(x).swapaxes(1, 2)
        x = x + linen.Dense(16)(linen.gelu(linen.Dense(8)(y))).swapaxes(1, 2)
        return linen.Dense(4)(x.mean(1))


IMAGES, LABELS = normal(2, 8, 8, 3), jnp.array([1, 3])
TOKENS = jnp.array([[1, 5, 3, 0], [2, 2, 19, 7]])


@case
def linen_mlp_sgd() -> Any:
    return linen_step(Dense(), optax.sgd(0.1), normal(2, 6), LABELS)


@case
def linen_mlp_momentum() -> Any:
    return linen_step(Dense(), optax.sgd(0.1, momentum=0.9, nesterov=True), normal(2, 6), LABELS)


@case
def linen_resnet_adamw() -> Any:
    return linen_step(SmallResNet(), optax.adamw(1e-3), IMAGES, LABELS)


@case
def linen_transformer_dropout_adam() -> Any:
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
    return linen_step(
        Attention(),
        optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)),
        TOKENS,
        LABELS,
        rngs=True,
    )


@case
def linen_recurrent_rmsprop() -> Any:
    return linen_step(Recurrent(), optax.rmsprop(1e-2), normal(2, 5, 3), LABELS)


@case
def linen_unet_adafactor() -> Any:
    return linen_step(UNet(), optax.adafactor(1e-2), IMAGES, LABELS)


@case
def linen_mixer_lion() -> Any:
    return linen_step(Mixer(), optax.lion(1e-3), IMAGES, LABELS)


def linen_predict(model: Any, x: Any) -> Any:
    return model.apply, (weights(model.init, {"params": KEY, "dropout": KEY}, x), x), {"state": 0}


@case
def linen_mlp_predicts() -> Any:
    return linen_predict(Dense(), normal(2, 6))


@case
def linen_transformer_predicts() -> Any:
    return linen_predict(Attention(train=False), TOKENS)


@case
def linen_unet_predicts() -> Any:
    return linen_predict(UNet(), IMAGES)


@case
def linen_recurrent_predicts() -> Any:
    return linen_predict(Recurrent(), normal(2, 5, 3))


@case
def linen_bfloat16() -> Any:
    model = linen.Dense(8, dtype=jnp.bfloat16)
    return linen_predict(model, normal(2, 6))


@case
def vae() -> Any:
    class VAE(linen.Module):
        @linen.compact
        def __call__(self, x, key):
            h = linen.relu(linen.Dense(16)(x))
            mean, spread = linen.Dense(3)(h), linen.Dense(3)(h)
            z = mean + jnp.exp(spread / 2) * jax.random.normal(key, mean.shape)
            return linen.Dense(6)(linen.relu(linen.Dense(16)(z))), mean, spread

    model, x = VAE(), normal(4, 6)
    params = weights(model.init, KEY, x, KEY)
    tx = optax.adam(1e-3)

    def fn(params, opt_state, x, key):
        def loss(p):
            logits, mean, spread = model.apply(p, x, key)
            kl = -0.5 * jnp.sum(1 + spread - mean**2 - jnp.exp(spread), -1)
            return jnp.mean(
                optax.sigmoid_binary_cross_entropy(logits, jax.nn.sigmoid(x)).sum(-1) + kl
            )

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return fn, (params, tx.init(params), x, KEY), {}


class ViT(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.Conv(16, (4, 4), (4, 4))(x).reshape(x.shape[0], -1, 16)
        first = self.param("cls", linen.initializers.zeros, (1, 1, 16))
        x = jnp.concatenate([jnp.tile(first, (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("position", linen.initializers.normal(0.02), (1, x.shape[1], 16))
        for _ in range(2):
            y = linen.LayerNorm()(x)
            x = x + linen.MultiHeadDotProductAttention(2)(y)
            x = x + linen.Dense(16)(linen.gelu(linen.Dense(32)(linen.LayerNorm()(x))))
        return linen.Dense(4)(linen.LayerNorm()(x)[:, 0])


class ScannedLayers(linen.Module):
    """Layers of one kind under nn.scan, each computed again in the backward pass."""

    @linen.compact
    def __call__(self, x):
        class Layer(linen.Module):
            @linen.compact
            def __call__(self, x, _):
                return x + linen.Dense(8)(jnp.tanh(linen.LayerNorm()(x))), None

        stack = linen.scan(
            linen.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3
        )
        x, _ = stack()(linen.Dense(8)(x), None)
        return linen.Dense(4)(x)


class BothWays(linen.Module):
    @linen.compact
    def __call__(self, x):
        run = linen.Bidirectional(
            linen.RNN(linen.OptimizedLSTMCell(4)), linen.RNN(linen.GRUCell(4))
        )
        return linen.Dense(4)(linen.WeightNorm(linen.Dense(6))(run(x)[:, -1]))


@case
def linen_vit_adamw() -> Any:
    return linen_step(ViT(), optax.adamw(1e-3, weight_decay=0.05), IMAGES, LABELS)


@case
def linen_scanned_layers_adam() -> Any:
    return linen_step(ScannedLayers(), optax.adam(1e-3), normal(2, 6), LABELS)


@case
def linen_both_ways_sgd() -> Any:
    return linen_step(BothWays(), optax.sgd(1e-2), normal(2, 5, 3), LABELS)


@case
def linen_ensemble_vmapped() -> Any:
    model = Dense()
    x = normal(2, 6)
    params = jax.vmap(model.init, (0, None))(jax.random.split(KEY, 3), x)

    def fn(params, x, y):
        def loss(p):
            return jnp.mean((model.apply(p, x) - y) ** 2)

        values, grads = jax.vmap(jax.value_and_grad(loss))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), values

    return fn, (params, x, normal(2, 4)), {}


@case
def linen_init() -> Any:
    """The start of a net, as a program: its parameters are what it returns."""
    return lambda key, x: SmallResNet().init(key, x), (KEY, IMAGES), {}


@case
def diffusion_step() -> Any:
    """Denoising by a small net that knows the time."""
    model, steps = Dense(), 10
    betas = jnp.linspace(1e-4, 0.02, steps)
    kept = jnp.cumprod(1 - betas)
    x = normal(4, 4)
    params = weights(model.init, KEY, jnp.concatenate([x, x[:, :1]], 1))
    tx = optax.adam(1e-3)

    def fn(params, opt_state, x, key):
        of_time, of_noise = jax.random.split(key)
        t = jax.random.randint(of_time, (4,), 0, steps)
        noise = jax.random.normal(of_noise, x.shape)
        noisy = jnp.sqrt(kept[t])[:, None] * x + jnp.sqrt(1 - kept[t])[:, None] * noise

        def loss(p):
            given = jnp.concatenate([noisy, t[:, None] / steps], 1)
            return jnp.mean((model.apply(p, given) - noise) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return fn, (params, tx.init(params), x, KEY), {"state": (0, 1)}


# -- optax's transformations on one small net ------------------------------------------------------

OPTIMIZERS = {
    "adabelief": lambda: optax.adabelief(1e-2),
    "adadelta": lambda: optax.adadelta(1e-1),
    "adagrad": lambda: optax.adagrad(1e-1),
    "adamax": lambda: optax.adamax(1e-2),
    "amsgrad": lambda: optax.amsgrad(1e-2),
    "fromage": lambda: optax.fromage(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "lars": lambda: optax.lars(1e-2),
    "nadam": lambda: optax.nadam(1e-2),
    "noisy_sgd": lambda: optax.noisy_sgd(1e-2, key=0),
    "novograd": lambda: optax.novograd(1e-2),
    "radam": lambda: optax.radam(1e-2),
    "rprop": lambda: optax.rprop(1e-2),
    "sm3": lambda: optax.sm3(1e-2),
    "yogi": lambda: optax.yogi(1e-2),
    "multi_steps": lambda: optax.MultiSteps(optax.adam(1e-2), 2).gradient_transformation(),
    "apply_if_finite": lambda: optax.apply_if_finite(optax.adam(1e-2), 3),
    "lookahead_free_polyak": lambda: optax.adamw(1e-2, weight_decay=0.1),
    "contrib_prodigy": lambda: optax.contrib.prodigy(1.0),
    "contrib_muon": lambda: optax.contrib.muon(1e-2),
    "contrib_schedule_free": lambda: optax.contrib.schedule_free_adamw(1e-2),
    "adan": lambda: optax.adan(1e-2),
    "lookahead": lambda: optax.chain(optax.adamax(1e-2), optax.ema(0.9)),
    "sign_sgd": lambda: optax.sign_sgd(1e-2),
    "optimistic": lambda: optax.optimistic_gradient_descent(1e-2),
    "masked_and_centralized": lambda: optax.chain(
        optax.centralize(),
        optax.masked(optax.adaptive_grad_clip(0.1), {"w": True, "b": False}),
        optax.inject_hyperparams(optax.sgd)(0.1),
    ),
    "plateau": lambda: optax.chain(
        optax.adam(1e-2), optax.scale_by_schedule(optax.piecewise_constant_schedule(1.0, {1: 0.5}))
    ),
    "clipped_decay": lambda: optax.chain(
        optax.clip(0.5), optax.add_decayed_weights(1e-2), optax.sgd(1e-1)
    ),
}


def _optimizer_case(name: str, make: Any) -> None:
    def build() -> Any:
        tx = make()
        params = {"w": normal(4, 3), "b": jnp.zeros(3)}

        def fn(params, opt_state, x, y):
            value, grads = jax.value_and_grad(
                lambda p: jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - y) ** 2)
            )(params)
            updates, opt_state = tx.update(grads, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, value

        return (
            fn,
            (params, tx.init(params), normal(5, 4, seed=1), normal(5, 3, seed=2)),
            {"state": (0, 1)},
        )

    CASES[f"optax_{name}"] = build


for _name, _make in OPTIMIZERS.items():
    _optimizer_case(_name, _make)


@case
def optax_losses() -> Any:
    def fn(logits, labels, targets):
        log_probs = jax.nn.log_softmax(logits)
        return (
            optax.softmax_cross_entropy(logits, jax.nn.softmax(targets)),
            optax.sigmoid_focal_loss(logits, jax.nn.one_hot(labels, 5)),
            optax.huber_loss(logits, targets),
            optax.cosine_similarity(logits, targets),
            optax.kl_divergence(log_probs, jax.nn.softmax(targets)),
            optax.ctc_loss(logits[None], jnp.zeros((1, 4)), labels[None], jnp.zeros((1, 4))),
            optax.safe_norm(logits, 1e-3),
        )

    return fn, (normal(4, 5), jnp.array([1, 0, 4, 2]), normal(4, 5, seed=1)), {}


@case
def optax_lbfgs_with_line_search() -> Any:
    def loss(p):
        return jnp.sum((p["w"] ** 2 - 1) ** 2) + jnp.sum((p["w"][1:] - p["w"][:-1]) ** 2)

    tx, params = optax.lbfgs(memory_size=3), {"w": normal(4)}

    def fn(params, opt_state):
        value, grads = optax.value_and_grad_from_state(loss)(params, state=opt_state)
        updates, opt_state = tx.update(
            grads, opt_state, params, value=value, grad=grads, value_fn=loss
        )
        return optax.apply_updates(params, updates), opt_state, value

    return fn, (params, tx.init(params)), {"state": (0, 1)}


# -- flax nnx --------------------------------------------------------------------------------------


class NnxBlock(nnx.Module):
    def __init__(self, rngs: Any):
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.attend = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 8, rngs=rngs)])

    def __call__(self, x):
        x = x + self.attend(self.norm(x))
        return x + self.layers[1](jax.nn.gelu(self.layers[0](x)))


class NnxNet(nnx.Module):
    def __init__(self, rngs: Any):
        self.embed = nnx.Embed(20, 8, rngs=rngs)
        self.block = NnxBlock(rngs)
        self.out = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, tokens):
        return self.out(self.block(self.embed(tokens)).mean(1))


class NnxImages(nnx.Module):
    def __init__(self, rngs: Any):
        self.conv = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, x):
        return self.out(self.drop(jax.nn.relu(self.norm(self.conv(x)))).mean((1, 2)))


@case
def nnx_transformer() -> Any:
    return NnxNet(nnx.Rngs(0)), (TOKENS,), {}


@case
def nnx_batch_norm_and_dropout() -> Any:
    return NnxImages(nnx.Rngs(0)), (IMAGES,), {}


@case
def nnx_training_step() -> Any:
    graph, state = nnx.split(NnxImages(nnx.Rngs(0)))
    tx = optax.adam(1e-3)

    def fn(state, opt_state, x, labels):
        model = nnx.merge(graph, state)

        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        params = nnx.state(model, nnx.Param)
        updates, opt_state = tx.update(grads, opt_state, params)
        nnx.update(model, optax.apply_updates(params, updates))
        return nnx.state(model), opt_state, value

    params = nnx.state(nnx.merge(graph, state), nnx.Param)
    return fn, (state, tx.init(params), IMAGES, LABELS), {"state": (0, 1)}


@case
def nnx_recurrent() -> Any:
    class Net(nnx.Module):
        def __init__(self, rngs: Any):
            self.rnn = nnx.RNN(nnx.LSTMCell(3, 8, rngs=rngs))
            self.out = nnx.Linear(8, 4, rngs=rngs)

        def __call__(self, x):
            return self.out(self.rnn(x)[:, -1])

    return Net(nnx.Rngs(0)), (normal(2, 5, 3),), {}


@case
def nnx_lora_and_conv_transpose() -> Any:
    class Net(nnx.Module):
        def __init__(self, rngs: Any):
            self.up = nnx.ConvTranspose(3, 4, (2, 2), (2, 2), rngs=rngs)
            self.norm = nnx.GroupNorm(4, num_groups=2, rngs=rngs)
            self.adapted = nnx.LoRALinear(4, 4, lora_rank=2, rngs=rngs)

        def __call__(self, x):
            return self.adapted(nnx.silu(self.norm(self.up(x))))

    return Net(nnx.Rngs(0)), (IMAGES,), {}


@case
def nnx_stacked_layers() -> Any:
    """Layers whose parameters are stacked, run one after another by nnx.scan."""

    class Layer(nnx.Module):
        def __init__(self, rngs: Any):
            self.linear = nnx.Linear(6, 6, rngs=rngs)

        def __call__(self, x):
            return x + jnp.tanh(self.linear(x))

    make = nnx.vmap(Layer, in_axes=0, out_axes=0)
    graph, state = nnx.split(make(nnx.Rngs(0).split(3)))

    def fn(state, x):
        layers = nnx.merge(graph, state)
        return nnx.scan(lambda x, layer: layer(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(
            x, layers
        )

    return fn, (nnx.to_pure_dict(state), normal(2, 6)), {"state": 0}


@case
def nnx_optimizer_of_its_own() -> Any:
    """A step of nnx.Optimizer, with the model and its moments as one state."""
    model = NnxNet(nnx.Rngs(0))
    graph, state = nnx.split((model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)))

    def fn(state, tokens, labels):
        model, optimizer = nnx.merge(graph, state)

        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(tokens), labels).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    return fn, (state, TOKENS, LABELS), {"state": 0}


# -- other packages --------------------------------------------------------------------------------


@needs("equinox")
def equinox_mlp() -> Any:
    import equinox as eqx

    return eqx.nn.MLP(4, 2, 8, 2, key=KEY), (normal(4),), {}


@needs("equinox")
def equinox_convolutions() -> Any:
    import equinox as eqx

    class Net(eqx.Module):
        conv: Any
        pool: Any
        gru: Any
        attention: Any
        norm: Any

        def __init__(self):
            self.conv = eqx.nn.Conv2d(3, 8, 3, padding=1, key=KEY)
            self.pool = eqx.nn.MaxPool2d(2, 2)
            self.gru = eqx.nn.GRUCell(16, 8, key=KEY)
            self.attention = eqx.nn.MultiheadAttention(2, 8, key=KEY)
            self.norm = eqx.nn.LayerNorm(8)

        def __call__(self, x):
            y = self.pool(jax.nn.relu(self.conv(x))).reshape(8, 16)
            h = lax.scan(lambda h, row: (self.gru(row, h),) * 2, jnp.zeros(8), y)[1]
            return jax.vmap(self.norm)(self.attention(h, h, h))

    return Net(), (normal(3, 8, 8),), {}


@needs("equinox")
def equinox_training_step() -> Any:
    import equinox as eqx

    model = eqx.nn.MLP(4, 2, 8, 2, key=KEY)
    arrays, rest = eqx.partition(model, eqx.is_array)
    tx = optax.adam(1e-2)

    def fn(arrays, opt_state, x, y):
        def loss(a):
            return jnp.mean((jax.vmap(eqx.combine(a, rest))(x) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(arrays)
        updates, opt_state = tx.update(grads, opt_state)
        return eqx.apply_updates(arrays, updates), opt_state, value

    return fn, (arrays, tx.init(arrays), normal(6, 4), normal(6, 2, seed=1)), {"state": (0, 1)}


@needs("haiku")
def haiku_net() -> Any:
    import haiku as hk

    def net(x):
        x = hk.Conv2D(8, 3)(x)
        x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, True))
        return hk.Linear(4)(hk.LayerNorm(-1, True, True)(hk.Flatten()(x)))

    model = hk.transform_with_state(net)
    params, state = weights(model.init, KEY, IMAGES)

    def fn(params, state, x, labels):
        def loss(p):
            logits, new = model.apply(p, state, None, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), new, value

    return fn, (params, state, IMAGES, LABELS), {}


@needs("diffrax")
def diffrax_ode() -> Any:
    import diffrax

    def fn(y0, rate):
        term = diffrax.ODETerm(lambda t, y, args: -args * y)
        solution = diffrax.diffeqsolve(
            term,
            diffrax.Tsit5(),
            0.0,
            1.0,
            0.1,
            y0,
            args=rate,
            adjoint=diffrax.DirectAdjoint(),
            max_steps=64,
            throw=False,
        )
        return solution.ys

    return fn, (normal(3), jnp.float32(0.7)), {}


@needs("distrax")
def distrax_losses() -> Any:
    import distrax

    def fn(mean, scale, x, key):
        d = distrax.Normal(mean, jnp.abs(scale) + 0.1)
        c = distrax.Categorical(logits=x)
        return (
            d.log_prob(x),
            d.entropy(),
            d.kl_divergence(distrax.Normal(0.0, 1.0)),
            d.sample(seed=key),
            c.log_prob(1),
            c.sample(seed=key),
        )

    return fn, (normal(4), normal(4, seed=1), normal(4, seed=2), KEY), {}


@needs("numpyro")
def numpyro_elbo() -> Any:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO

    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(w, 1.0), obs=x)

    def guide(x):
        numpyro.sample(
            "w",
            dist.Normal(
                numpyro.param("m", 0.1),
                numpyro.param("s", 1.0, constraint=dist.constraints.positive),
            ),
        )

    svi = SVI(model, guide, numpyro.optim.Adam(0.01), Trace_ELBO())
    x = normal(5)
    state = svi.init(KEY, x)

    def fn(state, x):
        return svi.update(state, x)

    return fn, (state, x), {"state": 0}


@needs("jraph")
def jraph_net() -> Any:
    import jraph

    graph = jraph.GraphsTuple(
        normal(4, 3),
        normal(5, 2),
        jnp.array([0, 1, 2, 3, 0]),
        jnp.array([1, 2, 3, 0, 2]),
        normal(1, 2),
        jnp.array([4]),
        jnp.array([5]),
    )

    def fn(w, graph):
        net = jraph.GraphNetwork(
            lambda e, s, r, g: jnp.tanh(jnp.concatenate([e, s, r, g], -1) @ w["e"]),
            lambda n, s, r, g: jnp.tanh(jnp.concatenate([n, s, r, g], -1) @ w["n"]),
            None,
        )
        out = net(graph)
        return out.nodes, out.edges, jax.grad(lambda w: jnp.sum(w["e"]))(w)

    return fn, ({"e": normal(10, 2), "n": normal(9, 3, seed=1)}, graph), {"state": {0: None}}


@needs("equinox")
def equinox_batch_norm_step() -> Any:
    """A training step of a net with statistics that a state of equinox's holds."""
    import equinox as eqx

    class Net(eqx.Module):
        conv: Any
        norm: Any
        out: Any

        def __init__(self):
            self.conv = eqx.nn.Conv2d(3, 4, 3, key=KEY)
            self.norm = eqx.nn.BatchNorm(4, "batch", mode="batch")
            self.out = eqx.nn.Linear(4, 4, key=KEY)

        def __call__(self, x, state):
            y, state = self.norm(self.conv(x), state)
            return self.out(jax.nn.relu(y).mean((1, 2))), state

    model, state = eqx.nn.make_with_state(Net)()
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    images = jnp.moveaxis(IMAGES, 3, 1)

    def fn(arrays, state, x, labels):
        def loss(a):
            run = jax.vmap(eqx.combine(a, rest), (0, None), (0, None), axis_name="batch")
            logits, new = run(x, state)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(arrays)
        return eqx.apply_updates(arrays, jax.tree.map(lambda g: -0.1 * g, grads)), new, value

    return fn, (arrays, state, images, LABELS), {"state": (0, 1)}


@needs("equinox")
def equinox_recurrent_step() -> Any:
    import equinox as eqx

    cell, out = eqx.nn.LSTMCell(3, 8, key=KEY), eqx.nn.Linear(8, 2, key=KEY)
    arrays, rest = eqx.partition((cell, out), eqx.is_array)
    tx = optax.adam(1e-2)

    def fn(arrays, opt_state, x, y):
        def loss(a):
            cell, out = eqx.combine(a, rest)

            def one(rows):
                zero = jnp.zeros(8), jnp.zeros(8)
                return out(lax.scan(lambda h, row: (cell(row, h), None), zero, rows)[0][0])

            return jnp.mean((jax.vmap(one)(x) - y) ** 2)

        value, grads = eqx.filter_value_and_grad(loss)(arrays)
        updates, opt_state = tx.update(grads, opt_state)
        return eqx.apply_updates(arrays, updates), opt_state, value

    return fn, (arrays, tx.init(arrays), normal(4, 5, 3), normal(4, 2, seed=1)), {"state": (0, 1)}


@needs("equinox")
def equinox_normalized() -> Any:
    import equinox as eqx

    layers = [
        eqx.nn.Conv1d(3, 4, 3, key=KEY),
        eqx.nn.GroupNorm(2, 4),
        eqx.nn.Lambda(jax.nn.gelu),
        eqx.nn.AdaptiveAvgPool1d(2),
        eqx.nn.Lambda(jnp.ravel),
        eqx.nn.RMSNorm(8),
        eqx.nn.Linear(8, 2, key=KEY),
    ]
    return eqx.nn.Sequential(layers), (normal(3, 9),), {}


@needs("haiku")
def haiku_transformer_step() -> Any:
    import haiku as hk

    def net(tokens):
        x = hk.Embed(20, 8)(tokens)
        mask = jnp.tril(jnp.ones((1, 1, tokens.shape[1], tokens.shape[1])))
        start = hk.initializers.VarianceScaling(1.0)
        x = x + hk.MultiHeadAttention(2, 4, w_init=start)(
            hk.LayerNorm(-1, True, True)(x), x, x, mask
        )
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
        return hk.Linear(4)(hk.Linear(8)(jax.nn.gelu(x)).mean(1))

    model, tx = hk.transform(net), optax.adam(1e-3)
    params = weights(model.init, KEY, TOKENS)

    def fn(params, opt_state, tokens, labels, key):
        def loss(p):
            logits = model.apply(p, key, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return fn, (params, tx.init(params), TOKENS, LABELS, KEY), {"state": (0, 1)}


@needs("haiku")
def haiku_recurrent() -> Any:
    import haiku as hk

    def net(x):
        core = hk.DeepRNN([hk.LSTM(8), jax.nn.relu, hk.GRU(6)])
        out, _ = hk.dynamic_unroll(core, x, core.initial_state(2))
        return hk.Linear(4)(out[-1])

    model = hk.without_apply_rng(hk.transform(net))
    x = normal(5, 2, 3)
    return model.apply, (weights(model.init, KEY, x), x), {"state": 0}


@needs("haiku")
def haiku_resnet() -> Any:
    import haiku as hk

    def net(x):
        blocks = dict(blocks_per_group=(1, 1, 1, 1), channels_per_group=(4, 4, 8, 8))
        return hk.nets.ResNet(
            num_classes=4, bottleneck=False, use_projection=(True,) * 4, **blocks
        )(x, True)

    model = hk.without_apply_rng(hk.transform_with_state(net))
    params, state = weights(model.init, KEY, normal(2, 16, 16, 3))

    def fn(params, state, x):
        out, new = model.apply(params, state, x)
        return new, out

    return fn, (params, state, normal(2, 16, 16, 3)), {"state": {0: None, 1: 0}}


@needs("diffrax")
def diffrax_gradient_of_an_ode() -> Any:
    import diffrax

    def fn(w, y0):
        def loss(w):
            term = diffrax.ODETerm(lambda t, y, w: jnp.tanh(w @ y))
            save = diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 4))
            control = diffrax.PIDController(rtol=1e-3, atol=1e-4)
            found = diffrax.diffeqsolve(
                term, diffrax.Dopri5(), 0.0, 1.0, 0.1, y0, args=w, saveat=save,
                stepsize_controller=control, max_steps=32, throw=False,
            )  # fmt: skip
            return jnp.sum(found.ys**2)

        value, grad = jax.value_and_grad(loss)(w)
        return w - 0.1 * grad, value

    # equinox's checks of an error are callbacks
    return fn, (normal(3, 3), normal(3, seed=1)), {"state": {0: 0}, "strict": False}


@needs("diffrax")
def diffrax_stochastic() -> Any:
    import diffrax

    def fn(y0, key):
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: 0.1 * y, noise)
        )
        return diffrax.diffeqsolve(
            terms, diffrax.Euler(), 0.0, 1.0, 0.1, y0, max_steps=16, throw=False
        ).ys

    return fn, (jnp.float32(1.0), KEY), {"strict": False}


@needs("distrax")
def distrax_flow_step() -> Any:
    import distrax

    def fn(params, x):
        def loss(p):
            def affine(given):
                return distrax.ScalarAffine(given[..., 0], log_scale=given[..., 1])

            def net(part):
                return jnp.tanh(part @ p["w"]).reshape(*part.shape, 2)

            coupling = distrax.MaskedCoupling(jnp.arange(4) % 2 == 0, net, affine)
            base = distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4))
            return -distrax.Transformed(base, coupling).log_prob(x).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return fn, ({"w": normal(4, 8)}, normal(5, 4, seed=1)), {}


@needs("distrax")
def distrax_hidden_markov() -> Any:
    import distrax

    def fn(start, move, x):
        start, move = distrax.Categorical(logits=start), distrax.Categorical(logits=move)
        model = distrax.HMM(start, move, distrax.Normal(jnp.arange(3.0), jnp.ones(3)))
        return model.forward(x), model.viterbi(x)

    return fn, (normal(3), normal(3, 3, seed=1), normal(6, seed=2)), {}


@needs("numpyro")
def numpyro_densities() -> Any:
    import numpyro.distributions as dist

    def fn(x, u, key):
        made = [
            dist.Normal(0.5, 2.0), dist.StudentT(3.0), dist.Gamma(2.0, 1.5), dist.Beta(2.0, 3.0),
            dist.Laplace(0.0, 1.0), dist.LogNormal(0.0, 1.0), dist.Cauchy(0.0, 1.0),
        ]  # fmt: skip
        correlated = dist.MultivariateNormal(jnp.zeros(3), 2 * jnp.eye(3) + 0.5)
        return (
            [d.log_prob(u) for d in made],
            [d.sample(key, (2,)) for d in made],
            correlated.log_prob(x),
            dist.Dirichlet(jnp.ones(3)).log_prob(jax.nn.softmax(x)),
        )

    return fn, (normal(3), jax.nn.sigmoid(normal(4)), KEY), {}


@needs("numpyro")
def numpyro_hamiltonian() -> Any:
    """One draw of NUTS: a tree of states, built by loops in loops."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS

    def model(x):
        spread = numpyro.sample("s", dist.HalfNormal(1.0))
        numpyro.sample("x", dist.Normal(numpyro.sample("m", dist.Normal(0.0, 1.0)), spread), obs=x)

    kernel, x = NUTS(model, max_tree_depth=3), normal(6)
    state = kernel.init(KEY, 2, None, (x,), {})

    def fn(state, x):
        return kernel.sample(state, (x,), {})

    return fn, (state, x), {"state": 0}


@needs("jraph")
def jraph_attention_step() -> Any:
    import jraph

    senders, receivers = jnp.array([0, 1, 2, 3, 0]), jnp.array([1, 2, 3, 0, 2])

    def fn(params, nodes, labels):
        def loss(p):
            h = nodes @ p["w"]
            scores = jax.nn.leaky_relu(jnp.concatenate([h[senders], h[receivers]], -1) @ p["a"])
            weights = jraph.segment_softmax(scores, receivers, 4)
            h = jraph.segment_sum(h[senders] * weights[:, None], receivers, 4)
            pooled = jraph.segment_mean(jax.nn.elu(h), jnp.array([0, 0, 1, 1]), 2)
            return optax.softmax_cross_entropy_with_integer_labels(pooled, labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return fn, ({"w": normal(3, 4), "a": normal(8, seed=1)}, normal(4, 3, seed=2), LABELS), {}
