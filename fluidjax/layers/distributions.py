"""Probability distributions whose parameters may be variables; each method appends ops for its
result to the program.

The programs equal those of ``fluid.layers.distributions`` in Paddle 1.8.5. A method notes if its
formula is not the usual one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.loc import located
from ..errors import ShapeError, UnsupportedError
from ..graph.variable import Variable
from . import compare, random, reduce, tensor
from ._build import FLOATS, INTS, typed, variable
from .activation import exp, log
from .elementwise import elementwise_pow
from .index import shape as shape_of
from .manip import reshape
from .nn_dense import matmul

Numbers = float | list[Any] | np.ndarray[Any, Any] | Variable
"""A parameter: a number or an array, which become float32 constants, or a variable."""


class Distribution:
    """The common methods: sample, entropy, log_prob, kl_divergence. A method that a distribution
    lacks raises UnsupportedError.
    """

    def sample(self, *args: Any, **kwargs: Any) -> Variable:
        """Samples of the distribution."""
        raise self._lacks("sample")

    def entropy(self) -> Variable:
        """The expected -log p."""
        raise self._lacks("entropy")

    def log_prob(self, value: Variable) -> Variable:
        """log p(value)."""
        raise self._lacks("log_prob")

    def kl_divergence(self, other: Any) -> Variable:
        """The expected log p - log q under p; q is other."""
        raise self._lacks("kl_divergence")

    def _lacks(self, method: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} has no {method}, as in Paddle 1.8.5")

    def _parameters(self, scalars: bool, **given: Any) -> list[Variable]:
        """The parameters as variables of one shape; numbers and arrays are broadcast and become
        constants.
        """
        kinds = (*((float,) if scalars else ()), np.ndarray, Variable, list)
        for name, value in given.items():
            typed(value, name, kinds, type(self).__name__)
        values = list(given.values())
        variables = [v for v in values if isinstance(v, Variable)]
        if variables:
            if len(variables) < len(values):
                raise ShapeError(
                    f"{type(self).__name__} takes variables for {' and '.join(given)}, or for none"
                    " of them"
                )
            return variables
        try:
            arrays = np.broadcast_arrays(
                *(
                    np.asarray(v, np.float32).reshape(-1 if np.ndim(v) == 0 else np.shape(v))
                    for v in values
                )
            )
        except ValueError:
            shapes = " and ".join(str(np.shape(v)) for v in values)
            raise ShapeError(
                f"{type(self).__name__} cannot broadcast {' and '.join(given)}, of the shapes"
                f" {shapes}"
            ) from None
        made = [tensor.create_tensor("float32") for _ in arrays]
        for made_one, array in zip(made, arrays, strict=True):
            tensor.assign(np.ascontiguousarray(array), made_one)
        return made


class _Located(Distribution):
    """A distribution with two parameters of one shape [batch]."""

    def __init__(self, first: str, second: str, *values: Any) -> None:
        self.all_arg_is_float = all(isinstance(v, float) for v in values)
        self.batch_size_unknown = any(isinstance(v, Variable) for v in values)
        self._pair = self._parameters(True, **dict(zip((first, second), values, strict=True)))

    def _checked(self, shape: Any, seed: Any) -> list[int]:
        typed(shape, "shape", list, "sample")
        typed(seed, "seed", int, "sample")
        return list(shape)

    def _sum(self) -> Variable:
        one, other = self._pair
        return one + other


class Uniform(_Located):
    """The uniform distribution on (low, high).

    p(x) = 1 / (high - low) for low < x < high, else 0. Raises FluidTypeError for a low or high that
    is not a float, list, array or variable, ShapeError for shapes that do not broadcast.
    """

    @located
    def __init__(self, low: Numbers, high: Numbers) -> None:
        super().__init__("low", "high", low, high)
        self.low, self.high = self._pair

    @located
    def sample(self, shape: list[int], seed: int = 0) -> Variable:
        """Samples [*shape, *batch]: low + u (high - low). seed 0: the program's.

        u is uniform on [0, 1) if low and high are variables. If they are numbers, u is uniform on
        [-1, 1), as in 1.8.5, so half of the samples are below low.
        """
        shape = self._checked(shape, seed)
        batch = list(self._sum().shape)
        if self.batch_size_unknown:
            zeros = tensor.fill_constant_batch_size_like(
                self._sum(), batch + shape, self.low.dtype, 0.0
            )
            u = random.uniform_random_batch_size_like(
                zeros, list(zeros.shape), min=0.0, max=1.0, seed=seed
            )
            return reshape(u * (zeros + self.high - self.low) + self.low, shape + batch)
        u = random.uniform_random(shape + batch, seed=seed)
        drawn = (
            u * (tensor.zeros(shape + batch, self.low.dtype) + (self.high - self.low)) + self.low
        )
        return reshape(drawn, shape) if self.all_arg_is_float else drawn

    @located
    def log_prob(self, value: Variable) -> Variable:
        """-log(high - low) where low < value < high, else -inf. value: a variable."""
        variable(value, "value", "log_prob", FLOATS)
        above, below = compare.less_than(self.low, value), compare.less_than(value, self.high)
        inside = tensor.cast(above, value.dtype), tensor.cast(below, value.dtype)
        return log(inside[0] * inside[1]) - log(self.high - self.low)

    @located
    def entropy(self) -> Variable:
        """log(high - low)."""
        return log(self.high - self.low)


class Normal(_Located):
    """The normal distribution of mean loc and standard deviation scale.

    p(x) = exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi)). Raises the same errors as Uniform.
    """

    @located
    def __init__(self, loc: Numbers, scale: Numbers) -> None:
        super().__init__("loc", "scale", loc, scale)
        self.loc, self.scale = self._pair

    @located
    def sample(self, shape: list[int], seed: int = 0) -> Variable:
        """Samples [*shape, *batch]: loc + scale z, z standard normal. seed 0: the program's."""
        shape = self._checked(shape, seed)
        batch = list(self._sum().shape)
        if self.batch_size_unknown:
            zeros = tensor.fill_constant_batch_size_like(
                self._sum(), batch + shape, self.loc.dtype, 0.0
            )
            z = random.gaussian_random(shape_of(zeros), seed=seed)
            return reshape(z * (zeros + self.scale) + self.loc, shape + batch)
        z = random.gaussian_random(shape + batch, seed=seed)
        drawn = z * (tensor.zeros(shape + batch, self.loc.dtype) + self.scale) + self.loc
        return reshape(drawn, shape) if self.all_arg_is_float else drawn

    @located
    def entropy(self) -> Variable:
        """1/2 + 1/2 log(2 pi) + log(scale)."""
        batch = list(self._sum().shape)
        zeros = tensor.fill_constant_batch_size_like(self._sum(), batch, self.loc.dtype, 0.0)
        return log(self.scale + zeros) + (0.5 + 0.5 * math.log(2 * math.pi))

    @located
    def log_prob(self, value: Variable) -> Variable:
        """-(value - loc)^2 / (2 scale^2) - log(scale) - 1/2 log(2 pi). value: a variable."""
        variable(value, "value", "log_prob", FLOATS)
        variance, log_scale = self.scale * self.scale, log(self.scale)
        square = (value - self.loc) * (value - self.loc)
        return square * -1.0 / (variance * 2.0) - log_scale - math.log(math.sqrt(2 * math.pi))

    @located
    def kl_divergence(self, other: Normal) -> Variable:
        """1/2 (r + ((loc - other.loc) / other.scale)^2 - 1 - log r), r = (scale /
        other.scale)^2.
        """
        typed(other, "other", Normal, "kl_divergence")
        ratio = self.scale / other.scale
        ratio = ratio * ratio
        far = (self.loc - other.loc) / other.scale
        return (ratio + far * far - 1.0 - log(ratio)) * 0.5


class Categorical(Distribution):
    """Classes with the probabilities softmax(logits), over the last axis of logits [..., classes].

    Raises FluidTypeError for logits that are not a list, array or variable.
    """

    @located
    def __init__(self, logits: list[Any] | np.ndarray[Any, Any] | Variable) -> None:
        (self.logits,) = self._parameters(False, logits=logits)

    @located
    def kl_divergence(self, other: Categorical) -> Variable:
        """sum p (log p - log q) [..., 1], with p = softmax(logits) and other's q."""
        typed(other, "other", Categorical, "kl_divergence")
        mine, others = self._shifted(), other._shifted()
        weights, other_weights = exp(mine), exp(others)
        total, other_total = _over_classes(weights), _over_classes(other_weights)
        return _over_classes(weights / total * (mine - log(total) - others + log(other_total)))

    @located
    def entropy(self) -> Variable:
        """-sum p log p [..., 1], p = softmax(logits)."""
        logits = self._shifted()
        weights = exp(logits)
        total = _over_classes(weights)
        return _over_classes(weights / total * (logits - log(total))) * -1.0

    def _shifted(self) -> Variable:
        """The logits shifted to a maximum of 0."""
        variable(self.logits, "logits", "Categorical", FLOATS)
        return self.logits - reduce.reduce_max(self.logits, dim=-1, keep_dim=True)


def _over_classes(values: Variable) -> Variable:
    return reduce.reduce_sum(values, dim=-1, keep_dim=True)


class MultivariateNormalDiag(Distribution):
    """The normal distribution of mean loc [k] and the diagonal covariance scale [k, k].

    Raises FluidTypeError for a loc or scale that is not a list, array or variable. Constants are
    broadcast to one shape, as in 1.8.5, which makes loc [k, k].
    """

    @located
    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = self._parameters(False, loc=loc, scale=scale)

    @located
    def entropy(self) -> Variable:
        """1/2 (k (1 + log(2 pi)) + log det(scale))."""
        k = self.scale.shape[0]
        return (log(_determinant(self.scale)) + k * (1.0 + math.log(2 * math.pi))) * 0.5

    @located
    def kl_divergence(self, other: MultivariateNormalDiag) -> Variable:
        """1/2 (trace(S2^-1 S1) + d^T S2^-1 d - k + log(det S2 / det S1)), d = other.loc - loc, S2
        the scale of other.
        """
        typed(other, "other", MultivariateNormalDiag, "kl_divergence")
        variable(self.loc, "loc", "MultivariateNormalDiag", (*FLOATS, *INTS))
        trace = reduce.reduce_sum(_inverse(other.scale) * self.scale)
        weighted = matmul(other.loc - self.loc, _inverse(other.scale))
        distance = matmul(weighted, other.loc - self.loc)
        logs = log(_determinant(other.scale)) - log(_determinant(self.scale))
        return (trace + distance - self.scale.shape[0] + logs) * 0.5


def _ones_and_identity(matrix: Variable) -> tuple[Variable, Variable]:
    shape = list(matrix.shape)
    return tensor.ones(shape, matrix.dtype), tensor.diag(tensor.ones([shape[0]], matrix.dtype))


def _determinant(diagonal: Variable) -> Variable:
    """The determinant of a diagonal matrix: the product of its elements after replacing the zeros
    off the diagonal by 1.
    """
    ones, identity = _ones_and_identity(diagonal)
    return reduce.reduce_prod(diagonal + ones - identity)


def _inverse(diagonal: Variable) -> Variable:
    """The inverse of a diagonal matrix: elementwise powers, -1 on the diagonal and 1 elsewhere."""
    ones, identity = _ones_and_identity(diagonal)
    return elementwise_pow(diagonal, ones - identity * 2.0)


__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]
