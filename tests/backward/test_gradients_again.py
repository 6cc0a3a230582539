"""Gradients of what was differentiated already, in any pattern, equal those of jax.grad."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ops.registry import further_grad, lookup

from ..nets import fresh

ROWS, WIDTH = 2, 4
Values = dict[str, Any]
Function = Callable[[Values], Any]


def leaves(names: str = "xyz") -> Values:
    rng = np.random.default_rng(len(names))
    return {n: rng.uniform(0.4, 1.2, (ROWS, WIDTH)) for n in names}


def declared(names: str) -> dict[str, Any]:
    found = {
        n: layers.data(n, [ROWS, WIDTH], dtype="float64", append_batch_size=False) for n in names
    }
    for var in found.values():
        var.stop_gradient = False
    return found


def run(main: Any, feed: Values, fetches: list[Any]) -> list[np.ndarray]:
    """What the step gives, op by op: to compile each program would take longer than the test."""
    with jax.enable_x64(True):
        return [
            np.asarray(v)
            for v in fluid.step_fn(main, fetches)({}, {n: jnp.asarray(v) for n, v in feed.items()})[
                1
            ]
        ]


def slope(of: Function, name: str, seed: Function | None = None) -> Function:
    """d of / d name, contracted with `seed` or ones, as a function of all leaves."""

    def at(values: Values) -> Any:
        weights = 1.0 if seed is None else seed(values)
        return jax.grad(
            lambda v: jnp.sum(of({**values, name: v}) * jax.lax.stop_gradient(weights))
        )(values[name])

    def with_seed(values: Values) -> Any:
        _, pull = jax.vjp(lambda v: of({**values, name: v}), values[name])
        return pull(seed(values))[0]

    return at if seed is None else with_seed


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tanh": (layers.tanh, jnp.tanh),
    "sigmoid": (layers.sigmoid, jax.nn.sigmoid),
    "exp": (lambda x: layers.exp(x * 0.25), lambda x: jnp.exp(x * 0.25)),
    "square": (layers.square, jnp.square),
    "sqrt": (lambda x: layers.sqrt(x * x + 1.0), lambda x: jnp.sqrt(x * x + 1.0)),
    "log": (lambda x: layers.log(x * x + 1.0), lambda x: jnp.log(x * x + 1.0)),
    "pow": (lambda x: layers.pow(layers.square(x) + 0.5, 1.5), lambda x: (x**2 + 0.5) ** 1.5),
    "softmax": (layers.softmax, lambda x: jax.nn.softmax(x, -1)),
    "scale": (lambda x: layers.scale(x, 1.5, bias=0.5), lambda x: 1.5 * x + 0.5),
    "leaky_relu": (lambda x: layers.leaky_relu(x, 0.2), lambda x: jnp.where(x > 0, x, 0.2 * x)),
    "reduce_mean": (lambda x: x * layers.reduce_mean(x, dim=1, keep_dim=True), lambda x: x * x.mean(1, keepdims=True)),
    "reduce_sum": (
        lambda x: layers.elementwise_mul(x, layers.reduce_sum(x, dim=1), axis=0), lambda x: x * x.sum(1, keepdims=True),
    ),
    "split": (lambda x: layers.concat(layers.split(x, 2, dim=1)[::-1], 1), lambda x: jnp.roll(x, 2, 1)),
    "half": (lambda x: layers.expand(layers.split(x, 2, dim=1)[1], [1, 2]), lambda x: jnp.tile(x[:, 2:], 2)),
    "slice": (lambda x: layers.pad(layers.slice(x, [1], [1], [4]), [0, 0, 1, 0]), lambda x: x.at[:, 0].set(0)),
    "transpose": (
        lambda x: layers.reshape(layers.transpose(layers.reshape(x, [ROWS, 2, 2]), [0, 2, 1]), [ROWS, WIDTH]),
        lambda x: x.reshape(ROWS, 2, 2).transpose(0, 2, 1).reshape(ROWS, WIDTH),
    ),
    "cumsum": (lambda x: layers.cumsum(x, axis=1), lambda x: jnp.cumsum(x, 1)),
    "layer_norm": (
        lambda x: layers.layer_norm(x, scale=False, shift=False, epsilon=0.125),
        lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 0.125),
    ),
    "cross_entropy": (
        lambda x: x * layers.softmax_with_cross_entropy(x, layers.assign(np.array([[1], [3]]))),
        lambda x: -x * jax.nn.log_softmax(x, -1)[jnp.arange(ROWS), jnp.array([1, 3])][:, None],
    ),
    "pool2d": (
        lambda x: layers.expand(layers.reshape(layers.pool2d(image(x), [2, 1], "avg"), [ROWS, 2]), [1, 2]),
        lambda x: jnp.tile(x.reshape(ROWS, 2, 2).mean(1), 2),
    ),
}  # fmt: skip
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (layers.elementwise_add, jnp.add),
    "sub": (layers.elementwise_sub, jnp.subtract),
    "mul": (layers.elementwise_mul, jnp.multiply),
    "div": (lambda x, y: x / (y * y + 1.0), lambda x, y: x / (y * y + 1.0)),
    "div by the other": (layers.elementwise_div, jnp.divide),
    "max": (layers.elementwise_max, jnp.maximum),
    "dense": (
        lambda x, y: layers.mul(x, layers.mul(layers.transpose(y, [1, 0]), x)),
        lambda x, y: x @ (y.T @ x),
    ),
    "matmul": (
        lambda x, y: layers.matmul(layers.matmul(x, y, transpose_y=True), y),
        lambda x, y: x @ y.T @ y,
    ),
    "sums": (lambda x, y: layers.sums([x, y, x]), lambda x, y: x + y + x),
    "conv2d": (
        lambda x, y: layers.reshape(
            conv2d(image(x), layers.reshape(y, [2, 1, 2, 2])), [ROWS, WIDTH]
        ),
        lambda x, y: conv(x.reshape(ROWS, 1, 2, 2), y.reshape(2, 1, 2, 2)).reshape(ROWS, -1)[
            :, :WIDTH
        ],
    ),
}


def image(x: Any) -> Any:
    return layers.reshape(x, [ROWS, 1, 2, 2])


def conv2d(x: Any, w: Any) -> Any:
    """The first channel of a convolution whose filter is a variable."""
    out = x.block.create_var(dtype=x.dtype)
    x.block.append_op(
        type="conv2d",
        inputs={"Input": x, "Filter": w},
        outputs={"Output": out},
        attrs={"paddings": [1, 1], "strides": [2, 2]},
    )
    return layers.slice(out, [1], [0], [1])


def conv(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (2, 2), [(1, 1), (1, 1)])[:, :1]


class Net:
    """Random ops and gradients of a seed: variables beside the functions that they are."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.leaves = declared("xyz")
        self.values: list[tuple[Any, Function, int]] = [
            (v, lambda at, n=n: at[n], 0) for n, v in self.leaves.items()
        ]
        self.slopes: list[tuple[Any, Function, str]] = []
        for _ in range(2):
            self.layer()
        for _ in range(5):
            self.differentiate()
            self.layer()

    def pick(self) -> tuple[Any, Function, int]:
        return self.random.choice(self.values[-4:])

    def layer(self) -> None:
        a, f, order = self.pick()
        if self.random.random() < 0.45:
            make, compute = UNARY[self.random.choice(sorted(UNARY))]
            self.values.append((make(a), lambda at: compute(f(at)), order))
            return
        b, g, other = self.random.choice(self.values)
        make2, compute2 = BINARY[self.random.choice(sorted(BINARY))]
        self.values.append((make2(a, b), lambda at: compute2(f(at), g(at)), max(order, other)))

    def differentiate(self) -> None:
        # a leaf has no gradient of itself, as in 1.8.5
        able = [v for v in self.values[3:] if v[2] < 3][-3:]
        target, function, order = self.random.choice(able)
        names = self.random.sample("xyz", self.random.randint(1, 3))
        given, seed = None, None
        if self.random.random() < 0.3:
            given, seed, other = self.random.choice(able)
            order = max(order, other)
        found = fluid.gradients(
            [target], [self.leaves[n] for n in names], None if given is None else [given]
        )
        for var, name in zip(found, names, strict=True):
            self.slopes.append((var, slope(function, name, seed), name))
            if var is not None and order < 3:
                self.values.append((var, self.slopes[-1][1], order + 1))


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_and_patterns(seed: int) -> None:
    with fresh() as (main, _):
        net = Net(seed)
    at = leaves()
    there = [var for var, _, _ in net.slopes if var is not None]
    got = iter(run(main, at, there))
    with jax.enable_x64(True):
        for k, (var, function, name) in enumerate(net.slopes):
            want = np.asarray(function({n: jnp.asarray(v) for n, v in at.items()}))
            mine = np.zeros_like(want) if var is None else next(got)
            np.testing.assert_allclose(
                mine,
                want,
                rtol=1e-8,
                atol=1e-8 * max(1, abs(want).max()),
                err_msg=f"gradient {k}, by {name}",
            )


@pytest.mark.first(6)
@pytest.mark.parametrize("kind", [*UNARY])
def test_three_orders_of_one_op(kind: str) -> None:
    make, compute = UNARY[kind]
    with fresh() as (main, _):
        x = declared("x")["x"]
        found, function = [make(x) * x], lambda at: compute(at["x"]) * at["x"]
        functions: list[Function] = [function]
        for _ in range(3):
            found += fluid.gradients(found[-1], x)
            functions.append(slope(functions[-1], "x"))
    at = leaves("x")
    with jax.enable_x64(True):
        for mine, want in zip(run(main, at, found), functions, strict=True):
            np.testing.assert_allclose(
                mine, want({"x": jnp.asarray(at["x"])}), rtol=1e-9, atol=1e-9
            )


@pytest.mark.first(4)
@pytest.mark.parametrize("kind", [*BINARY])
def test_each_operand_alone(kind: str) -> None:
    """Where only one operand's gradient is wanted, or only one's goes on, the other's is zero and
    not missing.
    """
    make, compute = BINARY[kind]

    def function(at: Values) -> Any:
        return compute(at["x"], at["y"])

    with fresh() as (main, _):
        v = declared("xy")
        out = make(v["x"], v["y"])
        found: list[tuple[Any, Function]] = []
        for one in "xy":
            (alone,) = fluid.gradients(out, v[one])
            g = slope(function, one)
            for other, var in zip(
                "xy", fluid.gradients(layers.square(alone), [v["x"], v["y"]]), strict=True
            ):
                found.append((var, slope(lambda at, g=g: g(at) ** 2, other)))
        gx, _ = fluid.gradients(out, [v["x"], v["y"]])
        for other, var in zip("xy", fluid.gradients(gx, [v["x"], v["y"]]), strict=True):
            found.append((var, slope(slope(function, "x"), other)))
    at = leaves("xy")
    got = iter(run(main, at, [var for var, _ in found if var is not None]))
    with jax.enable_x64(True):
        for var, want in found:
            mine = 0.0 if var is None else next(got)
            np.testing.assert_allclose(
                mine, want({n: jnp.asarray(a) for n, a in at.items()}), rtol=1e-9, atol=1e-9
            )


def test_products_and_quotients_of_one_number() -> None:
    """x y: [0, 1]; x / y at 2, 3: 0 and -1/9, as 1.8.5 has them."""
    with fresh() as (main, _):
        x, y = (layers.data(n, [1], append_batch_size=False) for n in "xy")
        x.stop_gradient = y.stop_gradient = False
        found = []
        for out in (x * y, x / y):
            gx, _ = fluid.gradients(out, [x, y])
            found += fluid.gradients(gx, [x, y])
        got = fluid.Executor().run(
            main,
            feed={"x": np.float32([2]), "y": np.float32([3])},
            fetch_list=[v for v in found if v is not None],
        )
    np.testing.assert_allclose(np.ravel(got)[-1], -1 / 9, rtol=1e-6)
    assert 0 in np.ravel(got) and 1 in np.ravel(got)


def test_several_targets_that_lead_to_one_another() -> None:
    """A target that another one is made of has its own gradient besides; one that is given twice
    counts twice.
    """
    with fresh() as (main, _):
        x = declared("x")["x"]
        a = layers.square(x)
        b = a * x
        found = [
            *fluid.gradients([a, b], x),
            *fluid.gradients([b, b], x),
            *fluid.gradients([a, b], x, [x, None]),
        ]
    at = leaves("x")
    u = at["x"]
    for mine, want in zip(
        run(main, at, found), [2 * u + 3 * u**2, 6 * u**2, 2 * u**2 + 3 * u**2], strict=True
    ):
        np.testing.assert_allclose(mine, want, rtol=1e-12)


def test_a_gradient_asked_twice() -> None:
    with fresh() as (main, _):
        x = declared("x")["x"]
        y = layers.tanh(x) * x
        found = [
            *fluid.gradients(y, x, target_gradients=[None]),
            *fluid.gradients(y, x, target_gradients=[None]),
            *fluid.gradients([y], [x]),
        ]
        found += fluid.gradients(found[0] * found[1], x)
    at = leaves("x")
    first, second, third, product = run(main, at, found)
    g = slope(lambda v: jnp.tanh(v["x"]) * v["x"], "x")
    with jax.enable_x64(True):
        want, slope_of_square = g(at), slope(lambda v: g(v) ** 2, "x")({"x": jnp.asarray(at["x"])})
    for mine in (first, second, third):
        np.testing.assert_allclose(mine, want, rtol=1e-12)
    np.testing.assert_allclose(product, slope_of_square, rtol=1e-12)


def test_two_backward_passes_share_a_gradient() -> None:
    """Two losses of one gradient, each by append_backward: each parameter's gradients are those of
    its loss.
    """
    with fresh() as (main, _):
        x = declared("x")["x"]
        w = layers.create_parameter([WIDTH, WIDTH], "float64", name="w")
        (g,) = fluid.gradients(layers.tanh(layers.mul(x, w)), x)
        losses = [layers.mean(layers.square(g)), layers.mean(g * layers.mul(x, w))]
        pairs = [fluid.backward.append_backward(loss)[0] for loss in losses]
        fetches = [grad for _, grad in pairs]
    at, weight = leaves("x"), np.random.default_rng(5).uniform(-1, 1, (WIDTH, WIDTH))
    with jax.enable_x64(True):
        got = fluid.step_fn(main, fetches)({"w": jnp.asarray(weight)}, {"x": jnp.asarray(at["x"])})[
            1
        ]

        def first(w: Any) -> Any:
            return jax.grad(lambda x: jnp.tanh(x @ w).sum())(jnp.asarray(at["x"]))

        functions = [
            lambda w: jnp.mean(first(w) ** 2),
            lambda w: jnp.mean(first(w) * (at["x"] @ w)),
        ]
        for mine, function in zip(got, functions, strict=True):
            np.testing.assert_allclose(mine, jax.grad(function)(jnp.asarray(weight)), rtol=1e-9)


def test_a_gradient_that_stops_is_a_constant_and_its_variable_is_none() -> None:
    with fresh() as (main, _):
        x = declared("x")["x"]
        (g,) = fluid.gradients(layers.square(x), x)
        g.stop_gradient = True
        (h,) = fluid.gradients(g * x, x)
    at = leaves("x")
    np.testing.assert_allclose(run(main, at, [h])[0], 2 * at["x"], rtol=1e-12)


def test_what_cannot_be_differentiated_again_is_told() -> None:
    """nce draws its classes; what it gives again would take other ones."""
    assert further_grad("nce_grad") is None
    assert further_grad("tanh_grad").type == "tanh_grad_vjp"
    assert lookup("tanh_grad_vjp_vjp").forward == "tanh_grad_vjp"
    with fresh():
        x = layers.data("x", [4])
        x.stop_gradient = False
        cost = layers.nce(x, layers.data("label", [1], dtype="int64"), 10)
        (g,) = fluid.gradients(cost, x)
        with pytest.warns(
            UserWarning,
            match=(
                r"the gradient of op 'nce_grad' \(.*test_gradients_again.py:\d+\) is taken as zero"
            ),
        ):
            fluid.gradients(layers.square(g), x)
