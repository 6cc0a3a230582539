"""paddle.nn.functional: losses by margins, distances and likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....input import one_hot as _one_hot
from ....layers import sums
from ....layers._build import chosen, require
from ...math import add, multiply, subtract
from ...norms import norm
from .activation import log_sigmoid
from .loss import _reduced


def _where_equal(label: Variable, number: int, values: Variable) -> Variable:
    """values where the label is this number, else 0."""
    is_it = layers.equal(
        label,
        layers.fill_constant_batch_size_like(label, [-1, *label.shape[1:]], label.dtype, number),
    )
    return chosen(is_it, values, layers.zeros_like(values))


def _same(layer: str, **given: Variable) -> None:
    (first, a), *others = given.items()
    for name, b in others:
        fits = len(a.shape) == len(b.shape) and all(
            m == n or -1 in (m, n) for m, n in zip(a.shape, b.shape, strict=True)
        )
        require(
            fits,
            f"{layer} takes {first} and {name} of one shape, not {list(a.shape)} and"
            f" {list(b.shape)}",
        )


def pairwise_distance(
    x: Variable,
    y: Variable,
    p: float = 2.0,
    epsilon: float = 1e-6,
    keepdim: bool = False,
    name: str | None = None,
) -> Variable:
    """The p-norm of x - y + epsilon along the last axis."""
    return norm(layers.scale(subtract(x, y), 1.0, float(epsilon)), p, -1, keepdim, name)


def cosine_embedding_loss(
    input1: Variable,
    input2: Variable,
    label: Variable,
    margin: float = 0,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """1 - cos of the rows where label is 1, max(cos - margin, 0) where it is -1, reduced; 1e-11 is
    added to sums of squares.

    input1, input2 [N, D] or [D], label [N] or [1]. Raises FluidValueError for other shapes.
    """
    _same("cosine_embedding_loss", input1=input1, input2=input2)
    ranks = input1.ndim <= 2 and label.ndim == 1
    require(
        ranks,
        f"cosine_embedding_loss takes inputs [N, D] and a label [N], not {list(input1.shape)} and"
        f" {list(label.shape)}",
    )
    pairs = ((input1, input2), (input1, input1), (input2, input2))
    both, one, two = (layers.reduce_sum(layers.elementwise_mul(a, b), -1) for a, b in pairs)
    size = layers.sqrt(
        layers.elementwise_mul(layers.scale(one, 1.0, 1e-11), layers.scale(two, 1.0, 1e-11))
    )
    cos = layers.elementwise_div(both, size)
    near, far = layers.scale(cos, -1.0, 1.0), layers.relu(layers.scale(cos, 1.0, -float(margin)))
    return _reduced(
        layers.elementwise_add(_where_equal(label, 1, near), _where_equal(label, -1, far)),
        reduction,
    )


def hinge_embedding_loss(
    input: Variable,
    label: Variable,
    margin: float = 1.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """input where label is 1, max(margin - input, 0) where it is -1, reduced."""
    _same("hinge_embedding_loss", input=input, label=label)
    far = layers.relu(layers.scale(input, -1.0, float(margin)))
    return _reduced(
        layers.elementwise_add(_where_equal(label, 1, input), _where_equal(label, -1, far)),
        reduction,
    )


def soft_margin_loss(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """log(1 + exp(-label * input)), reduced; label is 1 or -1."""
    _same("soft_margin_loss", input=input, label=label)
    inner = layers.exp(
        layers.scale(layers.elementwise_mul(layers.cast(label, input.dtype), input), -1.0)
    )
    return _reduced(layers.log(layers.scale(inner, 1.0, 1.0)), reduction)


def multi_label_soft_margin_loss(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """-(label * log sigmoid(input) + (1 - label) * log sigmoid(-input)) * weight, averaged over the
    last axis, reduced.
    """
    _same("multi_label_soft_margin_loss", input=input, label=label)
    label = layers.cast(label, input.dtype)
    yes = layers.elementwise_mul(label, log_sigmoid(input))
    no = layers.elementwise_mul(
        layers.scale(label, -1.0, 1.0), log_sigmoid(layers.scale(input, -1.0))
    )
    loss = layers.scale(layers.elementwise_add(yes, no), -1.0)
    return _reduced(
        layers.reduce_mean(loss if weight is None else multiply(loss, weight), -1), reduction
    )


def multi_margin_loss(
    input: Variable, label: Variable, p: int = 1, margin: float = 1.0, weight: Variable | None = None, reduction: str = "mean",
    name: str | None = None,
) -> Variable:  # fmt: skip
    """sum over the classes j != label of max(margin - input[label] + input[j], 0) ** p, over the
    number of classes, reduced.

    input [N, C], label [N]; weight [C]: a factor per class, applied to the rows of its label.
    """
    require(input.ndim == 2, f"multi_margin_loss takes an input [N, C], not {list(input.shape)}")
    column = layers.reshape(label, [-1, 1])
    right = layers.index_sample(input, column)
    short = layers.relu(add(layers.scale(right, -1.0, float(margin)), input))
    each = layers.scale(
        layers.reduce_mean(layers.pow(short, float(p)), 1),
        1.0,
        -(float(margin) ** p) / input.shape[1],
    )
    if weight is not None:
        each = layers.elementwise_mul(each, layers.gather(weight, layers.reshape(label, [-1])))
    return _reduced(each, reduction)


def multi_label_margin_loss(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """sum of max(1 - input[t] + input[j], 0) over labels t and all other classes j, divided by the
    number of classes, reduced.

    input [N, C], label [N, T]; a row of labels ends at its first -1.
    """
    fits = input.ndim == 2 and label.ndim == 2
    require(
        fits,
        f"multi_label_margin_loss takes [N, C] and [N, T], not {list(input.shape)},"
        f" {list(label.shape)}",
    )
    classes, most = input.shape[1], label.shape[1]
    ended = layers.cast(
        layers.equal(
            label, layers.fill_constant_batch_size_like(label, [-1, most], label.dtype, -1)
        ),
        input.dtype,
    )
    # before the first -1
    counts = layers.cast(
        layers.equal(layers.cumsum(ended, 1), layers.zeros_like(ended)), input.dtype
    )
    counts.stop_gradient = True
    known = layers.elementwise_mul(label, layers.cast(counts, label.dtype))
    is_label = layers.reduce_max(
        layers.elementwise_mul(_one_hot(known, classes), layers.unsqueeze(counts, [2])), 1
    )
    is_label.stop_gradient = True
    right = layers.index_sample(input, known)
    short = layers.relu(
        subtract(
            layers.unsqueeze(input, [1]), layers.unsqueeze(layers.scale(right, 1.0, -1.0), [2])
        )
    )
    others = multiply(short, layers.unsqueeze(layers.scale(is_label, -1.0, 1.0), [1]))
    total = layers.reduce_sum(layers.elementwise_mul(layers.reduce_sum(others, 2), counts), 1)
    return _reduced(layers.scale(total, 1.0 / classes), reduction)


def triplet_margin_with_distance_loss(
    input: Variable, positive: Variable, negative: Variable, distance_function: Callable[[Variable, Variable], Variable] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean", name: str | None = None,
) -> Variable:  # fmt: skip
    """max(d(input, positive) - d(input, negative) + margin, 0), reduced; d: default
    pairwise_distance.

    swap: d(positive, negative) is used if it is less than d(input, negative). Raises
    FluidValueError for a margin below 0.
    """
    _same("triplet_margin_with_distance_loss", input=input, positive=positive, negative=negative)
    require(
        margin >= 0, f"triplet_margin_with_distance_loss's margin is no less than 0, not {margin}"
    )
    distance: Any = pairwise_distance if distance_function is None else distance_function
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = layers.elementwise_min(far, distance(positive, negative))
    return _reduced(
        layers.relu(layers.scale(layers.elementwise_sub(near, far), 1.0, float(margin))), reduction
    )


def triplet_margin_loss(
    input: Variable, positive: Variable, negative: Variable, margin: float = 1.0, p: float = 2, epsilon: float = 1e-6, swap: bool = False,
    reduction: str = "mean", name: str | None = None,
) -> Variable:  # fmt: skip
    """triplet_margin_with_distance_loss by the p-norm of differences, to which epsilon is added."""

    def distance(x: Variable, y: Variable) -> Variable:
        return pairwise_distance(x, y, p, epsilon)

    return triplet_margin_with_distance_loss(
        input, positive, negative, distance, margin, swap, reduction, name
    )


def poisson_nll_loss(
    input: Variable, label: Variable, log_input: bool = True, full: bool = False, epsilon: float = 1e-8, reduction: str = "mean",
    name: str | None = None,
) -> Variable:  # fmt: skip
    """exp(input) - label * input, or input - label * log(input + epsilon) without log_input;
    reduced.

    full: with Stirling's label * log(label) - label + log(2 pi label) / 2 where label > 1.
    Raises FluidValueError for an epsilon that is not above 0.
    """
    _same("poisson_nll_loss", input=input, label=label)
    require(epsilon > 0, f"poisson_nll_loss's epsilon is above 0, not {epsilon}")
    if log_input:
        loss = layers.elementwise_sub(layers.exp(input), layers.elementwise_mul(label, input))
    else:
        loss = layers.elementwise_sub(
            input,
            layers.elementwise_mul(label, layers.log(layers.scale(input, 1.0, float(epsilon)))),
        )
    if full:
        stirling = sums([
            layers.elementwise_mul(label, layers.log(label)), layers.scale(label, -1.0),
            layers.scale(layers.log(layers.scale(label, 2 * math.pi)), 0.5),
        ])  # fmt: skip
        ones = layers.fill_constant_batch_size_like(label, [-1, *label.shape[1:]], label.dtype, 1.0)
        loss = layers.elementwise_add(
            loss, chosen(layers.greater_than(label, ones), stirling, layers.zeros_like(stirling))
        )
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Variable, label: Variable, variance: Variable, full: bool = False, epsilon: float = 1e-6, reduction: str = "mean",
    name: str | None = None,
) -> Variable:  # fmt: skip
    """(log(v) + (input - label) ** 2 / v) / 2 with v = max(variance, epsilon), reduced; full: with
    log(2 pi) / 2 besides.

    variance: of input's shape, or without its last dimension, or with size 1 there. A run raises if
    a variance is not above 0.
    """
    rank = input.ndim
    if variance.ndim == rank - 1:
        variance = layers.unsqueeze(variance, [rank - 1])
    fits = (
        variance.ndim == rank
        and variance.shape[:-1] == input.shape[:-1]
        and variance.shape[-1] in (1, input.shape[-1])
    )
    shapes = f"{list(input.shape)}, but for its last dimension, not {list(variance.shape)}"
    require(fits, f"gaussian_nll_loss's variance is of the input's shape {shapes}")
    above = layers.greater_than(
        variance,
        layers.fill_constant_batch_size_like(
            variance, [-1, *variance.shape[1:]], variance.dtype, 0.0
        ),
    )
    layers.Assert(layers.reduce_all(above), [variance], 6)
    v = layers.clip(variance, float(epsilon), 3.4e38)
    far = layers.elementwise_sub(input, label)
    spread = multiply(layers.elementwise_mul(far, far), layers.reciprocal(v))
    return _reduced(
        layers.scale(add(spread, layers.log(v)), 0.5, 0.5 * math.log(2 * math.pi) if full else 0.0),
        reduction,
    )


__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "multi_label_margin_loss", "multi_label_soft_margin_loss",
    "multi_margin_loss", "pairwise_distance", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip
