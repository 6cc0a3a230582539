"""The ops that carry the recorded zoo models, each with its gradient beside the plain jax.numpy or
lax expression.

Each op is a program of its own: fed arrays, the op, `fluid.gradients` of its output against a fed
cotangent; what runs is its jitted step function, without what an executor adds to every call. The
other side is one jitted `jax.vjp` of the expression. Both compute in Paddle's layout (channels
first) from the same arrays, and must agree before they are timed. One core, CPU time. Optimizers
and metrics stand without a gradient: the new state is compared. Neither side gives its arrays away
(donation).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import fluidjax as fluid
from fluidjax.feeds.bucketing import bucketed
from fluidjax.ops.ragged import rows_of

from .convolutions import milliseconds
from .page import Table, shown

Shape = tuple[int, ...]
CHANNELS_FIRST = ("NCHW", "OIHW", "NCHW")


@dataclass(frozen=True)
class Case:
    """An op at shapes of the zoo: slots and shapes of its float inputs, attributes, and what a JAX
    user would write for them.

    "X:0", "X:1" are the variables of one slot. A case that changes state is not differentiated; nor
    is one whose slots are all fixed.
    """

    op: str
    shapes: Mapping[str, Shape]
    plain: Callable[..., Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    out: str = "Out"
    more: tuple[str, ...] = ()  # outputs that the op insists on
    # slots of integers: shape, and how many there are
    ids: Mapping[str, tuple[Shape, int]] = field(default_factory=dict)
    positive: bool = False
    size: float = 1.0  # of the numbers
    inplace: Mapping[str, str] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()  # slots that are not differentiated
    # of the sequences in a slot; the expression has them last
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    random: bool = False  # the expression takes a key last; the sides draw their own numbers

    @property
    def differentiated(self) -> list[str]:
        return [s for s in self.shapes if s not in self.fixed]

    @property
    def made(self) -> list[str]:
        """The output slots that both sides compute."""
        return [self.out] if self.differentiated else list(dict.fromkeys((self.out, *self.inplace)))


def convolved(x: Any, w: Any, stride: int = 1, pad: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * 2,
        ((pad, pad),) * 2,
        dimension_numbers=CHANNELS_FIRST,
        feature_group_count=groups,
    )


def widened(x: Any, w: Any, stride: int, pad: int) -> Any:
    """A transposed convolution: the gradient of a convolution by its input."""
    sides = [(n - 1) * stride - 2 * pad + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    back = jax.vjp(
        lambda y: convolved(y, w, stride, pad), jnp.zeros((x.shape[0], w.shape[1], *sides), x.dtype)
    )[1]
    return back(x)[0]


def pooled(x: Any, k: int, s: int, pad: int, kind: str) -> Any:
    window, strides, pads = (1, 1, k, k), (1, 1, s, s), ((0, 0), (0, 0), (pad, pad), (pad, pad))
    if kind == "max":
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, pads)
    assert pad == 0  # else cells at the border count less
    return lax.reduce_window(x, 0.0, lax.add, window, strides, pads) / (k * k)


def batch_normed(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    return (x - m[:, None, None]) * (scale / jnp.sqrt(v + 1e-5))[:, None, None] + bias[
        :, None, None
    ]


def layer_normed(x: Any, scale: Any, bias: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(
        x.var(-1, keepdims=True) + 1e-5
    ) * scale + bias


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


def dropped(x: Any, key: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0)


def momentum(p: Any, g: Any, v: Any, rate: Any) -> Any:
    v = 0.9 * v + g
    return p - rate * v, v


def adam(p: Any, g: Any, m: Any, v: Any, b1: Any, b2: Any, rate: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = rate * jnp.sqrt(1 - b2) / (1 - b1)
    return p - step * m / (jnp.sqrt(v) + 1e-8 * jnp.sqrt(1 - b2)), m, v, b1 * 0.9, b2 * 0.999


def recurred(x: Any, w: Any, b: Any, lengths: Any) -> Any:
    """A GRU over sequences of one length, masked as padded ones are."""
    rows, width = x.shape[0], w.shape[0]
    cells = (x + b).reshape(lengths.shape[0], -1, 3 * width).swapaxes(0, 1)
    gates, candidate = (
        w.reshape(-1)[: 2 * width * width].reshape(width, -1),
        w.reshape(-1)[2 * width * width :].reshape(width, width),
    )

    def step(h: Any, given: Any) -> Any:
        x, alive = given
        u, r = jnp.split(jax.nn.sigmoid(x[:, : 2 * width] + h @ gates), 2, 1)
        new = (1 - u) * h + u * jnp.tanh(x[:, 2 * width :] + (r * h) @ candidate)
        return jnp.where(alive[:, None], new, h), new

    alive = jnp.arange(cells.shape[0])[:, None] < lengths
    _, states = lax.scan(step, jnp.zeros((lengths.shape[0], width), x.dtype), (cells, alive))
    return states.swapaxes(0, 1).reshape(rows, width)


def remembered(x: Any, w: Any, b: Any, lengths: Any) -> Any:
    """An LSTM without peepholes, as `recurred`."""
    rows, width = x.shape[0], w.shape[0]
    cells = (x + b).reshape(lengths.shape[0], -1, 4 * width).swapaxes(0, 1)

    def step(state: Any, given: Any) -> Any:
        (h, c), (x, alive) = state, given
        a, i, f, o = jnp.split(x + h @ w, 4, 1)
        cell = jnp.tanh(a) * jax.nn.sigmoid(i) + jax.nn.sigmoid(f) * c
        new = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (jnp.where(alive[:, None], new, h), jnp.where(alive[:, None], cell, c)), new

    alive = jnp.arange(cells.shape[0])[:, None] < lengths
    zero = jnp.zeros((lengths.shape[0], width), x.dtype)
    _, states = lax.scan(step, (zero, zero), (cells, alive))
    return states.swapaxes(0, 1).reshape(rows, width)


def ranked(predict: Any, label: Any, pos: Any, neg: Any) -> Any:
    """The area under the ROC curve of what was counted so far, by 4,096 thresholds."""
    at, hit = (predict[:, 1] * 4095).astype(jnp.int32), label[:, 0]
    pos, neg = pos.at[0, at].add(hit), neg.at[0, at].add(1 - hit)
    p, n = (jnp.cumsum(v[0, ::-1]).astype(jnp.float32) for v in (pos, neg))
    area = jnp.sum((n - jnp.append(0, n[:-1])) * (p + jnp.append(0, p[:-1])) / 2)
    return area / (p[-1] * n[-1]), pos, neg


WEIGHTS: Shape = (1024, 1024)
IMAGE, WIDE = (8, 64, 56, 56), (8, 256, 28, 28)


def pointwise(
    op: str, plain: Callable[..., Any], shape: Shape = IMAGE, positive: bool = False, **attrs: Any
) -> Case:
    return Case(op, {"X": shape}, plain, attrs, positive=positive)


def two(op: str, plain: Callable[..., Any], y: Shape = IMAGE, axis: int = -1) -> Case:
    return Case(op, {"X": IMAGE, "Y": y}, plain, {"axis": axis})


_NORM: dict[str, Any] = {"out": "Y", "more": ("SavedMean", "SavedVariance")}
_STATISTICS: dict[str, Any] = {
    "inplace": {"MeanOut": "Mean", "VarianceOut": "Variance"},
    "fixed": ("Mean", "Variance"),
    "positive": True,
}


def conv(op: str, x: Shape, w: Shape, stride: int, pad: int, groups: int = 1) -> Case:
    attrs = {"strides": [stride] * 2, "paddings": [pad] * 2, "groups": groups}
    return Case(
        op,
        {"Input": x, "Filter": w},
        partial(convolved, stride=stride, pad=pad, groups=groups),
        attrs,
        out="Output",
    )


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
    Case("sum", {"X:0": IMAGE, "X:1": IMAGE, "X:2": IMAGE}, lambda x, y, z: x + y + z),
    Case("concat", {"X:0": IMAGE, "X:1": IMAGE}, lambda x, y: jnp.concatenate([x, y], 1), {"axis": 1}),
    Case("slice", {"Input": IMAGE}, lambda x: x[:, 16:48, 4:52], {"axes": [1, 2], "starts": [16, 4], "ends": [48, 52]}),
    Case("dropout", {"X": (1024, 1024)}, dropped, {"dropout_prob": 0.5, "dropout_implementation": "upscale_in_train"}, more=("Mask",),
         random=True),
    Case("gru", {"Input": (1024, 384), "Weight": (128, 384), "Bias": (1, 384)}, recurred, out="Hidden",
         more=("BatchGate", "BatchResetHiddenPrev", "BatchHidden"), lengths={"Input": (32,) * 32}, size=0.1),
    Case("lstm", {"Input": (1024, 512), "Weight": (128, 512), "Bias": (1, 512)}, remembered, {"use_peepholes": False}, out="Hidden",
         more=("Cell", "BatchGate", "BatchCellPreAct"), lengths={"Input": (32,) * 32}, size=0.1),
    Case("sgd", {"Param": WEIGHTS, "Grad": WEIGHTS, "LearningRate": (1,)}, lambda p, g, rate: p - rate * g, out="ParamOut",
         inplace={"ParamOut": "Param"}, fixed=("Param", "Grad", "LearningRate")),
    Case("momentum", {"Param": WEIGHTS, "Grad": WEIGHTS, "Velocity": WEIGHTS, "LearningRate": (1,)}, momentum, {"mu": 0.9},
         out="ParamOut", inplace={"ParamOut": "Param", "VelocityOut": "Velocity"}, fixed=("Param", "Grad", "Velocity", "LearningRate")),
    Case("adam", {"Param": WEIGHTS, "Grad": WEIGHTS, "Moment1": WEIGHTS, "Moment2": WEIGHTS, "Beta1Pow": (1,), "Beta2Pow": (1,),
                  "LearningRate": (1,)}, adam, out="ParamOut",
         inplace={"ParamOut": "Param", "Moment1Out": "Moment1", "Moment2Out": "Moment2", "Beta1PowOut": "Beta1Pow",
                  "Beta2PowOut": "Beta2Pow"},
         fixed=("Param", "Grad", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow", "LearningRate"), positive=True),
    Case("auc", {"Predict": (1024, 2)}, ranked, {"num_thresholds": 4095, "slide_steps": 0}, out="AUC", positive=True, fixed=("Predict",),
         ids={"Label": ((1024, 1), 2), "StatPos": ((1, 4096), 9), "StatNeg": ((1, 4096), 9)},
         inplace={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"}),
)  # fmt: skip


def arrays(case: Case) -> dict[str, np.ndarray]:
    """The inputs by slot."""
    rng, least = np.random.default_rng(0), 0.1 if case.positive else -1
    floats = {
        s: (case.size * rng.uniform(least, 1, shape)).astype(np.float32)
        for s, shape in case.shapes.items()
    }
    return floats | {s: rng.integers(0, high, shape) for s, (shape, high) in case.ids.items()}


def together(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Variables by slot: one, or a list of those whose names are "X:0", "X:1"."""
    lists: dict[str, list[Any]] = {}
    for name, variable in variables.items():
        if ":" in name:
            lists.setdefault(name.partition(":")[0], []).append(variable)
    return {n: v for n, v in variables.items() if ":" not in n} | lists


def ours(case: Case, given: Mapping[str, np.ndarray], flow: np.ndarray) -> Callable[[], Any]:
    """One run of the op's program: its outputs, and the gradients."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        state = set(case.inplace.values())
        ins = {}
        for s, a in given.items():
            still = s not in case.differentiated
            ins[s] = block.create_var(
                name=s, shape=a.shape, dtype=str(a.dtype), is_data=s not in state, persistable=s in state, stop_gradient=still,
                lod_level=int(s in case.lengths),
            )  # fmt: skip
        names = [case.out, *case.more]
        outs: dict[str, Any] = {
            s: block.create_var(name=f"o.{s}", dtype="float32", stop_gradient=s != case.out)
            for s in names
        }
        outs |= {s: ins[x] for s, x in case.inplace.items()}
        block.append_op(type=case.op, inputs=together(ins), outputs=outs, attrs=dict(case.attrs))
        fetched = [outs[s] for s in case.made if s not in case.inplace]
        feed = {s: a for s, a in given.items() if s not in state}
        if case.differentiated:
            dy = block.create_var(
                name="dy", shape=flow.shape, dtype="float32", is_data=True, stop_gradient=True
            )
            fetched += fluid.gradients(fetched, [ins[s] for s in case.differentiated], [dy])
            feed["dy"] = flow
    raw = fluid.functional.step_fn(main, fetched)

    @jax.jit
    def step(kept: Any, feed: Any, key: Any) -> list[Any]:
        after, found = raw(kept, feed, key)
        changed = [after[case.inplace[s]] for s in case.made if s in case.inplace]
        return [rows_of(v) for v in found] + changed

    sequences = bucketed(
        {s: fluid.create_lod_tensor(given[s], [list(n)]) for s, n in case.lengths.items()},
        exact=True,
    )
    fed = {s: sequences[s] if s in sequences else jnp.asarray(a) for s, a in feed.items()}
    return partial(
        step,
        {s: jnp.asarray(given[s]) for s in sorted(state)},
        fed,
        jax.random.key(1) if case.random else None,
    )


def theirs(case: Case, given: Mapping[str, np.ndarray], flow: np.ndarray) -> Callable[[], Any]:
    floats = {s: jnp.asarray(given[s]) for s in case.differentiated}
    rest = {s: jnp.asarray(a) for s, a in given.items() if s not in floats}

    @jax.jit
    def both(floats: Any, rest: Any, last: Any, flow: Any) -> Any:
        def plain(floats: Any) -> Any:
            return case.plain(*({**floats, **rest}[s] for s in given), *last)

        if not floats:
            made = plain(floats)
            return list(made) if isinstance(made, tuple) else [made]
        out, back = jax.vjp(plain, floats)
        (grads,) = back(flow)
        return [out, *(grads[s] for s in case.differentiated)]

    return partial(both, floats, rest, last(case), jnp.asarray(flow))


def last(case: Case) -> list[Any]:
    """What an expression takes behind the inputs."""
    return [jnp.asarray(n) for n in case.lengths.values()] + (
        [jax.random.key(1)] if case.random else []
    )


def agree(case: Case, mine: list[Any], plain: list[Any]) -> None:
    """Raises AssertionError where the sides compute different things. Of random ones the share of
    zeros is compared, and where they are.
    """
    if case.random:
        (a, da), (b, db) = (tuple(map(np.asarray, side)) for side in (mine, plain))
        np.testing.assert_allclose((a == 0).mean(), (b == 0).mean(), atol=0.01)
        assert ((a == 0) == (da == 0)).all() and ((b == 0) == (db == 0)).all()
        kept = (a != 0) & (b != 0)
        np.testing.assert_allclose(a[kept], b[kept], rtol=1e-6)
        return
    order = [s for s in case.made if s not in case.inplace] + [
        s for s in case.made if s in case.inplace
    ]
    if not case.differentiated:
        plain = [dict(zip(case.made, plain, strict=True))[s] for s in order]
    for a, b in zip(map(np.asarray, mine), map(np.asarray, plain), strict=True):
        np.testing.assert_allclose(
            a.reshape(b.shape),
            b,
            rtol=1e-3,
            atol=1e-4 * max(1.0, float(np.abs(b).max())),
            err_msg=case.op,
        )


def measured(case: Case) -> tuple[float, float]:
    """CPU ms of both sides. Raises AssertionError where they compute different things."""
    sides = both_sides(case)
    first, second = milliseconds(list(sides))
    return first, second


def both_sides(case: Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """One run of each side, which agree."""
    given = arrays(case)
    made = jax.eval_shape(case.plain, *given.values(), *last(case))
    flow = np.random.default_rng(1).standard_normal(jax.tree.leaves(made)[0].shape, np.float32)
    sides = ours(case, given, flow), theirs(case, given, flow)
    agree(case, sides[0](), sides[1]())
    return sides


def table(cases: Sequence[Case] = CASES) -> list[Table]:
    """CPU ms of each op with its gradient, the expression's, and the ratio."""

    def row(case: Case) -> list[str]:
        a, b = measured(case)
        shapes = ", ".join("x".join(map(str, s)) for s in list(case.shapes.values())[:2])
        return [case.op, shapes, f"{a:.3f}", f"{b:.3f}", f"{a / b:.2f}"]

    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        title = (
            "Ops and their gradients beside plain jax.numpy: CPU ms, one core, medians of"
            " interleaved turns"
        )
        return [
            shown(
                "ops",
                title,
                ["op", "shapes", "ours", "plain", "ratio"],
                map(row, cases),
                widths=[36, 40, 10, 10, 8],
            )
        ]
    finally:
        os.sched_setaffinity(0, before)
