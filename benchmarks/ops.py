"""The ops that carry the recorded zoo models, each with its gradient beside the plain jax.numpy or lax expression.

Each op is a program of its own: fed arrays, the op, `fluid.gradients` of its output against a fed cotangent; what runs is its
jitted step function, without what an executor adds to every call. The other side is one jitted `jax.vjp` of the expression. Both
compute in Paddle's layout (channels first) from the same arrays, and must agree before they are timed. One core, CPU time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import fluidjax as fluid

from .convolutions import milliseconds

Shape = tuple[int, ...]
CHANNELS_FIRST = ("NCHW", "OIHW", "NCHW")


@dataclass(frozen=True)
class Case:
    """An op at shapes of the zoo: slots and shapes of its float inputs, attributes, and what a JAX user would write for them."""

    op: str
    shapes: Mapping[str, Shape]
    plain: Callable[..., Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    out: str = "Out"
    more: tuple[str, ...] = ()  # outputs that the op insists on
    ids: Mapping[str, tuple[Shape, int]] = field(default_factory=dict)  # slots of integers: shape, and how many there are
    positive: bool = False
    inplace: Mapping[str, str] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()  # slots that are not differentiated


def convolved(x: Any, w: Any, stride: int = 1, pad: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, w, (stride,) * 2, ((pad, pad),) * 2, dimension_numbers=CHANNELS_FIRST, feature_group_count=groups
    )


def widened(x: Any, w: Any, stride: int, pad: int) -> Any:
    """A transposed convolution: the gradient of a convolution by its input."""
    sides = [(n - 1) * stride - 2 * pad + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    back = jax.vjp(lambda y: convolved(y, w, stride, pad), jnp.zeros((x.shape[0], w.shape[1], *sides), x.dtype))[1]
    return back(x)[0]


def pooled(x: Any, k: int, s: int, pad: int, kind: str) -> Any:
    window, strides, pads = (1, 1, k, k), (1, 1, s, s), ((0, 0), (0, 0), (pad, pad), (pad, pad))
    if kind == "max":
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, pads)
    assert pad == 0  # else cells at the border count less
    return lax.reduce_window(x, 0.0, lax.add, window, strides, pads) / (k * k)


def batch_normed(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    return (x - m[:, None, None]) * (scale / jnp.sqrt(v + 1e-5))[:, None, None] + bias[:, None, None]


def layer_normed(x: Any, scale: Any, bias: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


def group_normed(x: Any, scale: Any, bias: Any) -> Any:
    n, c, h, w = x.shape
    g = x.reshape(n, 32, c // 32, h, w)
    g = (g - g.mean((2, 3, 4), keepdims=True)) / jnp.sqrt(g.var((2, 3, 4), keepdims=True) + 1e-5)
    return g.reshape(x.shape) * scale[:, None, None] + bias[:, None, None]


def classified(logits: Any, label: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), label, 1)


def crossed(x: Any, label: Any) -> Any:
    return -jnp.log(jnp.take_along_axis(x, label, 1))


def entropy(x: Any, label: Any) -> Any:
    return jnp.maximum(x, 0) - x * label + jnp.log1p(jnp.exp(-jnp.abs(x)))


IMAGE, WIDE = (8, 64, 56, 56), (8, 256, 28, 28)


def pointwise(op: str, plain: Callable[..., Any], shape: Shape = IMAGE, positive: bool = False, **attrs: Any) -> Case:
    return Case(op, {"X": shape}, plain, attrs, positive=positive)


def two(op: str, plain: Callable[..., Any], y: Shape = IMAGE, axis: int = -1) -> Case:
    return Case(op, {"X": IMAGE, "Y": y}, plain, {"axis": axis})


_NORM: dict[str, Any] = {"out": "Y", "more": ("SavedMean", "SavedVariance")}
_STATISTICS: dict[str, Any] = {"inplace": {"MeanOut": "Mean", "VarianceOut": "Variance"}, "fixed": ("Mean", "Variance"), "positive": True}


def conv(op: str, x: Shape, w: Shape, stride: int, pad: int, groups: int = 1) -> Case:
    attrs = {"strides": [stride] * 2, "paddings": [pad] * 2, "groups": groups}
    return Case(op, {"Input": x, "Filter": w}, partial(convolved, stride=stride, pad=pad, groups=groups), attrs, out="Output")


def pool(k: int, s: int, pad: int, kind: str) -> Case:
    attrs = {"ksize": [k] * 2, "strides": [s] * 2, "paddings": [pad] * 2, "pooling_type": kind}
    return Case("pool2d", {"X": IMAGE}, partial(pooled, k=k, s=s, pad=pad, kind=kind), attrs)


CASES = (
    conv("conv2d", IMAGE, (64, 64, 3, 3), 1, 1), conv("conv2d", WIDE, (128, 256, 1, 1), 1, 0),
    conv("depthwise_conv2d", WIDE, (256, 1, 3, 3), 1, 1, 256),
    Case("conv2d_transpose", {"Input": (4, 64, 28, 28), "Filter": (64, 32, 4, 4)}, partial(widened, stride=2, pad=1),
         {"strides": [2, 2], "paddings": [1, 1]}, out="Output"),
    Case("batch_norm", {"X": IMAGE, "Scale": (64,), "Bias": (64,), "Mean": (64,), "Variance": (64,)}, batch_normed, **_NORM,
         **_STATISTICS),
    Case("layer_norm", {"X": (1024, 512), "Scale": (512,), "Bias": (512,)}, layer_normed, {"begin_norm_axis": 1}, "Y",
         ("Mean", "Variance")),
    Case("group_norm", {"X": IMAGE, "Scale": (64,), "Bias": (64,)}, group_normed, {"groups": 32}, "Y", ("Mean", "Variance")),
    pool(3, 2, 1, "max"), pool(2, 2, 0, "avg"),
    Case("mul", {"X": (1024, 512), "Y": (512, 512)}, jnp.matmul),
    Case("matmul", {"X": (8, 8, 128, 64), "Y": (8, 8, 128, 64)}, lambda x, y: x @ y.swapaxes(-1, -2), {"transpose_Y": True}),
    two("elementwise_add", jnp.add), two("elementwise_add", lambda x, y: x + y[:, None, None], (64,), 1),
    two("elementwise_mul", jnp.multiply), two("elementwise_mul", lambda x, y: x * y[:, :, None, None], (8, 64), 0),
    two("elementwise_sub", jnp.subtract), two("elementwise_div", jnp.divide), two("elementwise_max", jnp.maximum),
    pointwise("relu", jax.nn.relu), pointwise("relu6", lambda x: jnp.clip(x, 0, 6)),
    pointwise("leaky_relu", lambda x: jnp.where(x > 0, x, 0.02 * x)),
    pointwise("sigmoid", jax.nn.sigmoid), pointwise("tanh", jnp.tanh), pointwise("exp", jnp.exp), pointwise("square", jnp.square),
    pointwise("log", jnp.log, positive=True), pointwise("sqrt", jnp.sqrt, positive=True),
    pointwise("gelu", partial(jax.nn.gelu, approximate=False)), pointwise("swish", jax.nn.silu, beta=1.0),
    pointwise("hard_swish", lambda x: x * jnp.clip(x + 3, 0, 6) / 6),
    pointwise("scale", lambda x: 2.0 * x + 1.0, scale=2.0, bias=1.0),
    pointwise("clip", lambda x: jnp.clip(x, -0.5, 0.5), min=-0.5, max=0.5),
    pointwise("softmax", jax.nn.softmax, (8, 8, 128, 128)), pointwise("mean", lambda x: jnp.mean(x).reshape(1)),
    pointwise("reduce_sum", lambda x: x.sum((2, 3)), dim=[2, 3]), pointwise("reduce_mean", lambda x: x.mean(1), dim=[1]),
    Case("transpose2", {"X": (8, 128, 8, 64)}, lambda x: x.transpose(0, 2, 1, 3), {"axis": [0, 2, 1, 3]}, more=("XShape",)),
    Case("nearest_interp", {"X": (4, 64, 28, 28)}, lambda x: x.repeat(2, 2).repeat(2, 3),
         {"out_h": 56, "out_w": 56, "align_corners": False, "interp_method": "nearest"}),
    Case("lookup_table", {"W": (10000, 128)}, lambda w, i: w[i[:, 0]], ids={"Ids": ((1024, 1), 10000)}),
    Case("softmax_with_cross_entropy", {"Logits": (256, 1000)}, classified, out="Loss", more=("Softmax",), ids={"Label": ((256, 1), 1000)}),
    Case("cross_entropy", {"X": (256, 1000)}, crossed, out="Y", ids={"Label": ((256, 1), 1000)}, positive=True),
    Case("sigmoid_cross_entropy_with_logits", {"X": (1024, 80), "Label": (1024, 80)}, entropy, positive=True, fixed=("Label",)),
    Case("gather", {"X": (4096, 128)}, lambda x, i: x[i], {"overwrite": False}, ids={"Index": ((1024,), 4096)}),
)  # fmt: skip


def arrays(case: Case) -> dict[str, np.ndarray]:
    """The inputs by slot."""
    rng = np.random.default_rng(0)
    floats = {s: rng.uniform(0.1 if case.positive else -1, 1, shape).astype(np.float32) for s, shape in case.shapes.items()}
    return floats | {s: rng.integers(0, high, shape) for s, (shape, high) in case.ids.items()}


def ours(case: Case, given: Mapping[str, np.ndarray], flow: np.ndarray) -> Callable[[], Any]:
    """One run of the op's program: its output, and the gradients."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        state = set(case.inplace.values())
        ins = {}
        for s, a in given.items():
            still = s in case.ids or s in case.fixed
            ins[s] = block.create_var(
                name=s, shape=a.shape, dtype=str(a.dtype), is_data=s not in state, persistable=s in state, stop_gradient=still
            )
        names = [case.out, *case.more]
        outs: dict[str, Any] = {s: block.create_var(name=f"o.{s}", dtype="float32", stop_gradient=s != case.out) for s in names}
        outs |= {s: ins[x] for s, x in case.inplace.items()}
        block.append_op(type=case.op, inputs=ins, outputs=outs, attrs=dict(case.attrs))
        dy = block.create_var(name="dy", shape=flow.shape, dtype="float32", is_data=True, stop_gradient=True)
        wrt = [ins[s] for s in case.shapes if s not in case.fixed]
        fetched = [outs[case.out], *fluid.gradients([outs[case.out]], wrt, [dy])]
    step = jax.jit(fluid.functional.step_fn(main, fetched))
    feed = {k: jnp.asarray(v) for k, v in {**given, "dy": flow}.items()}
    kept = {k: feed.pop(k) for k in sorted(state)}
    return lambda: step(kept, feed)[1]


def theirs(case: Case, given: Mapping[str, np.ndarray], flow: np.ndarray) -> Callable[[], Any]:
    floats = {s: jnp.asarray(given[s]) for s in case.shapes if s not in case.fixed}
    rest = {s: jnp.asarray(a) for s, a in given.items() if s not in floats}

    @jax.jit
    def both(floats: Any, rest: Any, flow: Any) -> Any:
        out, back = jax.vjp(lambda floats: case.plain(*({**floats, **rest}[s] for s in given)), floats)
        (grads,) = back(flow)
        return [out, *(grads[s] for s in case.shapes if s in grads)]

    return partial(both, floats, rest, jnp.asarray(flow))


def measured(case: Case) -> tuple[float, float]:
    """CPU ms of both sides. Raises AssertionError where they compute different things."""
    given = arrays(case)
    shape = jax.eval_shape(case.plain, *given.values()).shape
    flow = np.random.default_rng(1).standard_normal(shape, np.float32)
    sides = ours(case, given, flow), theirs(case, given, flow)
    for a, b in zip(*(side() for side in sides), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max())), err_msg=case.op)
    first, second = milliseconds(list(sides))
    return first, second


def table() -> None:
    """CPU ms of each op with its gradient, the expression's, and the ratio."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        print("\nOps and their gradients beside plain jax.numpy: CPU ms, one core, medians of interleaved turns")
        print(f"{'op':<36}{'shapes':<40}{'ours':>10}{'plain':>10}{'ratio':>8}")
        for case in CASES:
            a, b = measured(case)
            shapes = " ".join("x".join(map(str, s)) for s in list(case.shapes.values())[:2])
            print(f"{case.op:<36}{shapes:<40}{a:>10.3f}{b:>10.3f}{a / b:>8.2f}", flush=True)
    finally:
        os.sched_setaffinity(0, before)
