"""Normalisations by mean and deviation: batch_norm, inplace_abn, layer_norm, group_norm,
instance_norm.

Every gradient is written by hand in terms of what the forward op saved. With n the normalised x, s
the scale and g the gradient of y times s: d_x = deviation^-1 * (g - mean(g) - n * mean(g * n)), the
means over what was normalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import ShapeError, UnsupportedError
from .conditions import attribute
from .ragged import Ragged, like, rows_of, some_rows
from .registry import Array, grad_of, op
from .statistics import STATISTICS, by_fixed_statistics, keeps_statistics
from .target import PLAIN, Target
from .traits import knows_rows, row_wise


@dataclass(frozen=True)
class Channels:
    """The channel axis of an array: `others`, the averaged axes, and `shape`, with which [C]
    broadcasts.
    """

    axis: int
    others: tuple[int, ...]
    shape: tuple[int, ...]
    count: Any  # values per channel; data if rows are padded
    kept: Any = None  # for padded rows: which are true, broadcastable

    def spread(self, values: Array) -> Array:
        return values.reshape(self.shape)

    def only(self, x: Array) -> Array:
        """x with 0 in padded rows."""
        return x if self.kept is None else jnp.where(self.kept, x, 0)

    def sum(self, x: Array) -> jax.Array:
        return jnp.sum(self.only(x), self.others)

    def mean(self, x: Array) -> jax.Array:
        return (
            jnp.mean(x, self.others)
            if self.kept is None
            else self.sum(x) / self.count.astype(x.dtype)
        )

    def where_single(self, single: Array, several: Array) -> Array:
        """The first if a channel has a single value, else the other."""
        if self.kept is None:
            return single if self.count == 1 else several
        return jnp.where(self.count == 1, single, several)


def channels_of(x: Array | Ragged, data_layout: str) -> Channels:
    """Raises ShapeError for an unknown layout, or fewer than two dimensions."""
    if isinstance(x, Ragged) and x.padded:
        ch = channels_of(x.rows, data_layout)
        beside = ch.count // x.capacity if x.capacity else 0
        return replace(
            ch, count=x.count * beside, kept=x.kept().reshape((-1,) + (1,) * (x.rows.ndim - 1))
        )
    x = rows_of(x)
    if data_layout not in ("NCHW", "NHWC", "AnyLayout"):
        raise ShapeError(f"data_layout is {data_layout!r}; it can be 'NCHW' or 'NHWC'")
    if x.ndim < 2:
        raise ShapeError(f"a batch of at least 2 dimensions is needed, not {list(x.shape)}")
    axis = x.ndim - 1 if data_layout == "NHWC" else 1
    others = tuple(a for a in range(x.ndim) if a != axis)
    sizes = list(x.shape)
    shape = tuple(sizes[a] if a == axis else 1 for a in range(x.ndim))
    return Channels(axis, others, shape, math.prod(sizes[a] for a in others))


def _moments(x: Array, ch: Channels, target: Target) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of each channel in one pass: d = x - a with a the first sample's mean, then
    a + E[d], E[d^2] - E[d]^2.

    If the mean is much larger than the deviation, this keeps the digits that E[x^2] - E[x]^2 loses.
    Both averages must be of d: a rounded E[x] changes the variance at first order
    (docs/numerics.md). A second pass would read x again, and sums in float64 take 1.5 times as
    long. A library call would write d to memory for this alone; there a second pass is faster,
    because Y needs x - mean too.
    """
    if target.library:
        mean = ch.mean(x)
        return mean, jnp.where(jnp.isinf(mean), jnp.inf, ch.mean(jnp.square(x - ch.spread(mean))))
    near = lax.stop_gradient(jnp.mean(lax.slice_in_dim(x, 0, 1, axis=0), ch.others))
    # One bit less precise, so that x - a cannot become fma(sum, -1 / n, x): its a would not be the
    # rounded one added below.
    near = lax.reduce_precision(near, jnp.finfo(near.dtype).nexp, jnp.finfo(near.dtype).nmant - 1)
    d = x - ch.spread(near)
    shift = ch.mean(d)
    square = ch.mean(jnp.square(d))
    variance = jnp.where(jnp.isinf(square), square, jnp.maximum(square - shift * shift, 0))
    return near + shift, variance


def affine(
    x: Array, mean: Array, inverse: Array, scale: Array, bias: Array, ch: Channels, target: Target
) -> jax.Array:
    centred = x - ch.spread(mean)
    # the gradient has inverse * scale, and XLA would broadcast one of them for both to an array of
    # x's size
    if target.library:
        return centred * ch.spread(inverse) * ch.spread(scale) + ch.spread(bias)
    return centred * ch.spread(inverse * scale) + ch.spread(bias)


def _batch_norm(
    X, Scale, Bias, Mean, Variance, MomentumTensor, *, is_test, momentum, epsilon, data_layout, use_global_stats,
    trainable_statistics, target,
) -> tuple:  # fmt: skip
    ch = channels_of(X, data_layout)
    x = rows_of(X).astype(Variance.dtype)  # float16 is averaged in float32
    if keeps_statistics(is_test, use_global_stats, trainable_statistics):
        inverse = lax.rsqrt(Variance + epsilon)
        return (
            affine(x, Mean, inverse, Scale, Bias, ch, target).astype(X.dtype),
            Mean,
            Variance,
            Mean,
            inverse,
            None,
        )
    mean, variance = _moments(x, ch, target)
    inverse = lax.rsqrt(variance + epsilon)
    keep = momentum if MomentumTensor is None else MomentumTensor.reshape(())
    new_mean, new_variance = (
        old * keep + now * (1 - keep) for old, now in ((Mean, mean), (Variance, variance))
    )
    found = (
        affine(x, mean, inverse, Scale, Bias, ch, target).astype(X.dtype),
        new_mean,
        new_variance,
        mean,
        inverse,
    )
    # Paddle passes a single value per channel through.
    passed = rows_of(X), Mean, Variance, Mean, lax.rsqrt(Variance + epsilon)
    return *(ch.where_single(a, b) for a, b in zip(passed, found, strict=True)), None


def _batch_norm_spec(
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    MomentumTensor: Any,
    *,
    data_layout: str,
    **_: Any,
) -> Any:
    channels = (
        X.shape[1 if data_layout == "NCHW" else -1]
        if X.ndim >= 2 and data_layout in ("NCHW", "NHWC")
        else -1
    )
    if channels < 0 or any(
        each != Mean or each.shape != (channels,) for each in (Scale, Bias, Mean, Variance)
    ):
        return None
    return X, Mean, Variance, Mean, Variance, None


BN_OUTS = "Y MeanOut VarianceOut SavedMean~ SavedVariance~ ReserveSpace?"
BN_INPLACE = STATISTICS.outs
BN_NOGRAD = "Mean Variance MomentumTensor"
# with use_global_stats the gradient op also gets the statistics that were used
GLOBAL = {"Mean": "MeanOut", "Variance": "VarianceOut"}
WHEN_GLOBAL = dict.fromkeys(GLOBAL, "use_global_stats")


@op(
    outs=BN_OUTS,
    inplace=BN_INPLACE,
    rows=knows_rows(Y="X", each="", alone="X", when=by_fixed_statistics, by_offsets=True),
    unchanged=STATISTICS,
    infer=_batch_norm_spec,
)
def batch_norm(
    X: Array | Ragged, Scale: Array, Bias: Array, Mean: Array, Variance: Array, MomentumTensor: Array | None, *,
    is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_layout: str = "NCHW",
    use_global_stats: bool = False, trainable_statistics: bool = False, target: Target = PLAIN,
):  # fmt: skip
    """Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, mean and variance over all but the
    channel axis.

    X [N, C, ...] or [N, ..., C] by data_layout, all others [C]. is_test (without
    trainable_statistics) and use_global_stats take Mean and Variance instead. MeanOut = Mean *
    momentum + mean * (1 - momentum), VarianceOut likewise with the biased variance; SavedMean is
    the mean, SavedVariance 1 / sqrt(variance + epsilon). MomentumTensor [1] overrides momentum.
    Padded rows do not count.
    """
    y, *rest = _batch_norm(
        X, Scale, Bias, Mean, Variance, MomentumTensor, is_test=is_test, momentum=momentum, epsilon=epsilon,
        data_layout=data_layout, use_global_stats=use_global_stats, trainable_statistics=trainable_statistics,
        target=target,
    )  # fmt: skip
    return like(X, y), *rest


def centred_grad(
    n: Array,
    d_y: Array,
    scale: Array,
    inverse: Array,
    fixed: bool,
    ch: Channels,
    average: Callable[[Any], Any] = lambda x: x,
) -> tuple:
    """n: the normalised input; fixed: mean and deviation do not depend on it; average: divides a
    sum by the number of other elements.
    """
    d_bias, d_scale = ch.sum(d_y), ch.sum(d_y * n)
    rate = ch.spread(scale * inverse)
    if fixed:
        return d_y * rate, d_scale, d_bias
    centred = (
        d_y - ch.spread(average(d_bias) / ch.count) - n * ch.spread(average(d_scale) / ch.count)
    )
    return ch.only(rate * centred.astype(d_y.dtype)), d_scale, d_bias


def _centred_grad_in_library(
    centred: Array, d_y: Array, scale: Array, inverse: Array, ch: Channels
) -> tuple:
    """The gradient of centred_grad from centred = n / inverse, an output of the forward op, so that
    no array is needed for n.
    """
    d_bias, product = ch.sum(d_y), ch.sum(d_y * centred)
    falls = ch.spread(d_bias / ch.count) + centred * ch.spread(
        product * inverse * inverse / ch.count
    )
    return ch.only(ch.spread(scale * inverse) * (d_y - falls)), product * inverse, d_bias


def used_statistics(
    Mean, Variance, SavedMean, SavedVariance, epsilon: float, given: bool
) -> tuple[Array, Array]:
    """The mean and 1 / deviation used to compute Y."""
    if given and Mean is not None:
        return Mean, lax.rsqrt(Variance + epsilon)
    return SavedMean, SavedVariance


@grad_of(
    "batch_norm", "X Scale Bias SavedMean SavedVariance ReserveSpace", nograd=BN_NOGRAD, grad_outs="Y", wiring=GLOBAL,
    when=WHEN_GLOBAL,
)  # fmt: skip
def batch_norm_grad(
    X, Scale, Bias, SavedMean, SavedVariance, ReserveSpace, d_Y, Mean, Variance, *, is_test, epsilon, data_layout,
    use_global_stats, trainable_statistics, target,
):  # fmt: skip
    """Scale@GRAD = sum(Y@GRAD * n), Bias@GRAD = sum(Y@GRAD), X@GRAD as the module's text says."""
    if d_Y is None:
        return None, None, None
    ch, d_y = channels_of(X, data_layout), rows_of(d_Y)
    fixed = keeps_statistics(is_test, use_global_stats, trainable_statistics)
    mean, inverse = used_statistics(
        Mean, Variance, SavedMean, SavedVariance, epsilon, use_global_stats
    )
    centred = rows_of(X).astype(mean.dtype) - ch.spread(mean)
    if target.library and not fixed:
        d_x, d_scale, d_bias = _centred_grad_in_library(
            centred, d_y.astype(mean.dtype), Scale, inverse, ch
        )
    else:
        d_x, d_scale, d_bias = centred_grad(
            centred * ch.spread(inverse), d_y.astype(mean.dtype), Scale, inverse, fixed, ch
        )
    found = d_x.astype(X.dtype), d_scale, d_bias
    if fixed:
        return found
    return tuple(
        ch.where_single(a, b)
        for a, b in zip((d_y, jnp.zeros_like(Scale), jnp.zeros_like(Bias)), found, strict=True)
    )


# name: (function, its derivative in terms of its value, its inverse)
_ACTIVATIONS = {
    "": (lambda z, a: z, lambda y, a: 1, lambda y, a: y),
    "leaky_relu": (
        lambda z, a: jnp.where(z > 0, z, a * z), lambda y, a: jnp.where(y > 0, 1, a).astype(y.dtype),
        lambda y, a: jnp.where(y > 0, y, y / a),
    ),
    "elu": (
        lambda z, a: jnp.where(z > 0, z, a * jnp.expm1(z)), lambda y, a: jnp.where(y > 0, 1, y + a),
        lambda y, a: jnp.where(y > 0, y, jnp.log1p(jnp.where(y > 0, 0, y / a))),
    ),
}  # fmt: skip
_ACTIVATIONS["identity"] = _ACTIVATIONS[""]


def _activation(name: str):
    if name not in _ACTIVATIONS:
        raise UnsupportedError(
            f"inplace_abn has no activation {name!r}; it has {', '.join(map(repr, _ACTIVATIONS))}"
        )
    return _ACTIVATIONS[name]


@op(
    outs=BN_OUTS,
    inplace={**BN_INPLACE, "Y": "X"},
    rows=knows_rows(Y="X", each=""),
    unchanged=STATISTICS,
)
def inplace_abn(
    X: Array | Ragged, Scale: Array, Bias: Array, Mean: Array, Variance: Array, MomentumTensor: Array | None, *,
    is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_layout: str = "NCHW",
    use_global_stats: bool = False, trainable_statistics: bool = False, activation: str = "", alpha: float = 0.1,
    use_sync_bn: bool = False, target: Target = PLAIN,
):  # fmt: skip
    """Y = activation(batch_norm(X)), written over X: identity (""), leaky_relu or elu with slope or
    scale alpha.
    """
    function, _, _ = _activation(activation)
    y, *rest = _batch_norm(
        X, Scale, Bias, Mean, Variance, MomentumTensor, is_test=is_test, momentum=momentum, epsilon=epsilon,
        data_layout=data_layout, use_global_stats=use_global_stats, trainable_statistics=trainable_statistics,
        target=target,
    )  # fmt: skip
    return like(X, function(y, alpha)), *rest


@grad_of(
    "inplace_abn", "Y Scale Bias SavedMean SavedVariance", nograd=BN_NOGRAD, grad_outs="Y",
    wiring=GLOBAL, when=WHEN_GLOBAL, ragged="Y",
)  # fmt: skip
def inplace_abn_grad(
    Y, Scale, Bias, SavedMean, SavedVariance, d_Y, Mean, Variance, *, is_test, epsilon, data_layout,
    use_global_stats, trainable_statistics, activation, alpha,
):  # fmt: skip
    """batch_norm's gradients, from Y with the activation and scale inverted."""
    if d_Y is None:
        return None, None, None
    _, slope, inverse_of = _activation(activation)
    ch = channels_of(Y, data_layout)
    _, inverse = used_statistics(
        Mean, Variance, SavedMean, SavedVariance, epsilon, use_global_stats
    )
    y, d_y = rows_of(Y).astype(Scale.dtype), rows_of(d_Y)
    n = (inverse_of(y, alpha) - ch.spread(Bias)) / ch.spread(Scale)
    fixed = keeps_statistics(is_test, use_global_stats, trainable_statistics)
    d_x, d_scale, d_bias = centred_grad(
        n, d_y.astype(y.dtype) * slope(y, alpha), Scale, inverse, fixed, ch
    )
    return d_x.astype(Y.dtype), d_scale, d_bias


def _normalise(
    x: Array, axes: Sequence[int], epsilon: float
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """x normalised over `axes`, then mean, variance and 1 / deviation with those axes kept."""
    mean = jnp.mean(x, axes, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axes, keepdims=True)
    inverse = lax.rsqrt(variance + epsilon)
    return (x - mean) * inverse, mean, variance, inverse


def _normalise_grad(n: Array, g: Array, inverse: Array, axes: Sequence[int]) -> jax.Array:
    """The gradient of x from that of the normalised x, g."""
    return inverse * (
        g - jnp.mean(g, axes, keepdims=True) - n * jnp.mean(g * n, axes, keepdims=True)
    )


def _rows(x: Array, begin: int) -> tuple[int, int]:
    return math.prod(x.shape[:begin]), math.prod(x.shape[begin:])


@op(
    outs="Y Mean~ Variance~",
    rows=row_wise("X", when=attribute("begin_norm_axis", lambda a: a >= 1), folded="Mean Variance"),
)
def layer_norm(
    X: Array,
    Scale: Array | None,
    Bias: Array | None,
    *,
    epsilon: float = 1e-5,
    begin_norm_axis: int = 1,
):
    """Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias, over the axes from begin_norm_axis
    on.

    Scale and Bias [product of those axes], Mean and Variance [product of the axes before].
    """
    if not 0 <= begin_norm_axis < X.ndim:
        raise ShapeError(
            f"layer_norm's begin_norm_axis is one of the axes of {list(X.shape)}, not"
            f" {begin_norm_axis}"
        )
    left, right = _rows(X, begin_norm_axis)
    y, mean, variance, _ = _normalise(X.reshape(left, right), (1,), epsilon)
    if Scale is not None:
        y = y * Scale.reshape(1, right)
    if Bias is not None:
        y = y + Bias.reshape(1, right)
    return y.reshape(X.shape), mean.reshape(left), variance.reshape(left)


@grad_of("layer_norm", "X Scale Bias Mean Variance")
def layer_norm_grad(X, Scale, Bias, Mean, Variance, d_Y, *, epsilon, begin_norm_axis):
    """Scale@GRAD = sum(Y@GRAD * n), Bias@GRAD = sum(Y@GRAD), X@GRAD as the module's text says."""
    if d_Y is None:
        return None, None, None
    left, right = _rows(X, begin_norm_axis)
    inverse = lax.rsqrt(Variance.reshape(left, 1) + epsilon)
    n, d_y = (X.reshape(left, right) - Mean.reshape(left, 1)) * inverse, d_Y.reshape(left, right)
    d_scale = None if Scale is None else jnp.sum(d_y * n, 0).reshape(Scale.shape)
    d_bias = None if Bias is None else jnp.sum(d_y, 0).reshape(Bias.shape)
    g = d_y if Scale is None else d_y * Scale.reshape(1, right)
    return _normalise_grad(n, g, inverse, (1,)).reshape(X.shape), d_scale, d_bias


@dataclass(frozen=True)
class Groups:
    """[N, C, ...] as [N, groups, C / groups, rest], [N, ..., C] as [N, rest, groups, C / groups]."""

    shape: tuple[int, ...]
    axes: tuple[int, int]  # axes over which a group is averaged
    channel: tuple[int, ...]  # shape to broadcast [C] with
    rest: tuple[int, int]  # axes that are not channels


def _groups(x: Array, groups: int, data_layout: str) -> Groups:
    c = x.shape[-1] if data_layout == "NHWC" else x.shape[1]
    if c % groups:
        raise ShapeError(f"{c} channels do not divide into {groups} groups")
    if data_layout == "NHWC":
        return Groups(
            (x.shape[0], math.prod(x.shape[1:-1]), groups, c // groups),
            (1, 3),
            (1, 1, groups, c // groups),
            (0, 1),
        )
    return Groups(
        (x.shape[0], groups, c // groups, math.prod(x.shape[2:])),
        (2, 3),
        (1, groups, c // groups, 1),
        (0, 3),
    )


@op(outs="Y Mean~ Variance~", rows=row_wise("X"))
def group_norm(
    X: Array,
    Scale: Array | None,
    Bias: Array | None,
    *,
    epsilon: float = 1e-5,
    groups: int,
    data_layout: str = "NCHW",
):
    """Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias, over each sample's groups of
    channels.

    X [N, C, ...] or [N, ..., C] by data_layout, Scale and Bias [C], Mean and Variance [N, groups].
    """
    gr = _groups(X, groups, data_layout)
    y, mean, variance, _ = _normalise(X.reshape(gr.shape), gr.axes, epsilon)
    if Scale is not None:
        y = y * Scale.reshape(gr.channel)
    if Bias is not None:
        y = y + Bias.reshape(gr.channel)
    return (
        y.reshape(X.shape),
        mean.reshape(X.shape[0], groups),
        variance.reshape(X.shape[0], groups),
    )


@grad_of("group_norm", "Y Scale Bias Variance")
def group_norm_grad(Y, Scale, Bias, Variance, d_Y, *, epsilon, groups, data_layout):
    """Scale@GRAD = sum(Y@GRAD * n), Bias@GRAD = sum(Y@GRAD), with n = (Y - Bias) / Scale.

    X@GRAD as the module's text says, except that Paddle omits mean(g) without a Scale.
    """
    if d_Y is None:
        return None, None, None
    gr = _groups(Y, groups, data_layout)
    n, g = Y.reshape(gr.shape), d_Y.reshape(gr.shape)
    inverse = lax.rsqrt(jnp.expand_dims(Variance, gr.axes) + epsilon)
    if Bias is not None:
        n = n - Bias.reshape(gr.channel)
    d_bias = None if Bias is None else jnp.sum(g, gr.rest).reshape(Bias.shape)
    if Scale is None:
        d_x = inverse * (g - n * jnp.mean(g * n, gr.axes, keepdims=True))
        return d_x.reshape(Y.shape), None, d_bias
    scale = Scale.reshape(gr.channel)
    n = n / jnp.where(scale == 0, 1, scale)
    d_scale = jnp.sum(g * n, gr.rest).reshape(Scale.shape)
    return _normalise_grad(n, g * scale, inverse, gr.axes).reshape(Y.shape), d_scale, d_bias


@op(
    outs="Y SavedMean~ SavedVariance~",
    rows=knows_rows(Y="X", each=""),
)
def instance_norm(X: Array | Ragged, Scale: Array, Bias: Array, *, epsilon: float = 1e-5):
    """Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, over each channel of each sample.

    X [N, C, ...], Scale and Bias [C]; SavedMean [N * C] is the mean, SavedVariance 1 /
    sqrt(variance + epsilon).
    """
    x = rows_of(X)
    rows = _planes(x)
    spread = 1, -1, 1
    y, mean, _, inverse = _normalise(rows, (2,), epsilon)
    y = y * Scale.reshape(spread) + Bias.reshape(spread)
    y, saved = y.reshape(x.shape), (mean.reshape(-1), inverse.reshape(-1))
    if isinstance(X, Ragged) and X.padded:
        saved = tuple(some_rows(v, X.count * x.shape[1], ("of each channel", X.key)) for v in saved)
    return like(X, y), *saved


def _planes(x: Array) -> Array:
    """x [N, C, ...] as [N, C, rest]."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _instance_norm_grad(
    n: Array, inverse: Array, scale: Array, d_y: Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """scale: in a shape that broadcasts over n."""
    d_x = _normalise_grad(n, d_y * scale, inverse, (2,))
    return d_x, jnp.sum(d_y * n, (0, 2)), jnp.sum(d_y, (0, 2))


@grad_of("instance_norm", "X Scale SavedMean SavedVariance")
def instance_norm_grad(X, Scale, SavedMean, SavedVariance, d_Y):
    """Scale@GRAD = sum(Y@GRAD * n), Bias@GRAD = sum(Y@GRAD), X@GRAD as the module's text says."""
    if d_Y is None:
        return None, None, None
    x = rows_of(X)
    rows = _planes(x)
    lead = (*rows.shape[:2], 1)
    inverse = SavedVariance.reshape(lead)
    d_x, d_scale, d_bias = _instance_norm_grad(
        (rows - SavedMean.reshape(lead)) * inverse,
        inverse,
        Scale.reshape(1, -1, 1),
        rows_of(d_Y).reshape(rows.shape),
    )
    return d_x.reshape(x.shape), d_scale, d_bias


@grad_of(
    "instance_norm_grad", "X Scale SavedMean SavedVariance", grad_type="instance_norm_grad_grad",
    wiring={"DY": "Y@GRAD", "DDX": "X@GRAD@GRAD", "DDScale": "Scale@GRAD@GRAD", "DDBias": "Bias@GRAD@GRAD"},
    gives={"DX": "X", "DScale": "Scale", "DDY": "Y@GRAD"},
)  # fmt: skip
def instance_norm_grad_grad(
    X, Scale, SavedMean, SavedVariance, DY, DDX, DDScale, DDBias, *, epsilon
):
    """The vector-Jacobian product of instance_norm_grad as a function of X, Scale and Y@GRAD."""
    X = rows_of(X)
    rows = _planes(X)

    def first(x: Array, scale: Array, d_y: Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        n, _, _, inverse = _normalise(x, (2,), epsilon)
        return _instance_norm_grad(n, inverse, scale.reshape(1, -1, 1), d_y)

    given = [
        None if d is None else d.reshape(p)
        for d, p in ((DDX, rows.shape), (DDScale, (-1,)), (DDBias, (-1,)))
    ]
    primals, pull = jax.vjp(first, rows, Scale, DY.reshape(rows.shape))
    d_x, d_scale, d_dy = pull(
        tuple(jnp.zeros_like(p) if d is None else d for p, d in zip(primals, given, strict=True))
    )
    return d_x.reshape(X.shape), d_scale, d_dy.reshape(X.shape)
