"""Optimizer updates: one op computes a parameter and its accumulators after a step from them and
the gradient.

Every accumulator has the parameter's shape; LearningRate is [1]. An output named XOut overwrites X.
For a sparse Grad, sgd, adagrad and adam with lazy_mode change only its rows (optim_rows.py).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..errors import FluidValueError, ShapeError, UnsupportedError
from . import optim_rows
from .later import UNSAID
from .registry import Array, Int64, SelectedRows, op
from .traits import follows, mixes, updates_elements, updates_whole


def _scalar(x: Array) -> Array:
    """A [1] array as a scalar, so that results computed from it stay scalars."""
    return x.reshape(())


def _each(x: Array) -> Array:
    """One number for all elements as a scalar; an array with one number per element unchanged."""
    return x.reshape(()) if x.size == 1 else x


def _table(grad: Array | SelectedRows) -> Array:
    """A gradient as a plain array: zero in the rows that a sparse one does not name."""
    return grad.dense() if isinstance(grad, SelectedRows) else grad


def _outs(*names: str) -> dict[str, str]:
    return {f"{name}Out": name for name in names}


def settled(Param: Array, MasterParam: Array | None, new: Array, *state: Any) -> tuple[Any, ...]:
    """ParamOut in Param's dtype, the state, and MasterParamOut, which is ParamOut before rounding."""
    return new.astype(Param.dtype), *state, None if MasterParam is None else new


@op(
    outs="ParamOut MasterParamOut?",
    inplace=_outs("Param", "MasterParam"),
    update=updates_elements("MasterParam"),
)
def sgd(
    Param: Array,
    LearningRate: Array,
    Grad: Array | SelectedRows,
    MasterParam: Array | None,
    *,
    multi_precision: bool = False,
):
    """ParamOut = Param - LearningRate * Grad.

    MasterParam (with multi_precision): Param in float32, which is updated instead and then rounded
    to ParamOut; also in the ops below.
    """
    p = Param if MasterParam is None else MasterParam
    if isinstance(Grad, SelectedRows):
        return settled(Param, MasterParam, optim_rows.sgd(p, _scalar(LearningRate), Grad))
    return settled(Param, MasterParam, p - _scalar(LearningRate) * Grad.astype(p.dtype))


@op(
    outs="ParamOut VelocityOut MasterParamOut?",
    inplace=_outs("Param", "Velocity", "MasterParam"),
    update=updates_elements("Velocity", "MasterParam"),
)
def momentum(
    Param: Array, Grad: Array | SelectedRows, Velocity: Array, LearningRate: Array, MasterParam: Array | None, *, mu: float,
    use_nesterov: bool = False, regularization_method: str = "", regularization_coeff: float = 0.0, rescale_grad: float = 1.0,
    multi_precision: bool = False,
):  # fmt: skip
    """v = mu * Velocity + Grad; ParamOut = Param - lr * v, or Param - lr * (Grad + mu * v) by
    use_nesterov.

    Later Paddles also multiply Grad by rescale_grad (their CPU kernel does not) and add
    regularization_coeff * Param if regularization_method is l2_decay.
    """
    if regularization_method not in ("", "l2_decay"):
        raise FluidValueError(
            "momentum has the regularization_method 'l2_decay' or '', not"
            f" {regularization_method!r}"
        )
    p = Param if MasterParam is None else MasterParam
    g = _table(Grad).astype(p.dtype)
    g = g if rescale_grad == 1 else g * rescale_grad
    g = g + regularization_coeff * p if regularization_method else g
    v = mu * Velocity + g
    step = g + mu * v if use_nesterov else v
    return settled(Param, MasterParam, p - _scalar(LearningRate) * step, v)


def _norm(x: Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x * x))


@op(
    outs="ParamOut VelocityOut",
    inplace=_outs("Param", "Velocity"),
    update=updates_whole("Velocity"),
)
def lars_momentum(
    Param: Array, Grad: Array, Velocity: Array, LearningRate: Array, *, mu: float, lars_coeff: float = 0.001,
    lars_weight_decay: float = 0.0005, epsilon: float = 0.0, rescale_grad: float = 1.0,
):  # fmt: skip
    """v = mu * Velocity + rate * (Grad + decay * Param), ParamOut = Param - v.

    rate = lr * lars_coeff * |Param| / (|Grad| + decay * |Param| + epsilon), or lr if one of the
    norms is 0. Later Paddles first multiply Grad by rescale_grad.
    """
    Grad = Grad if rescale_grad == 1 else Grad * rescale_grad
    size, steep, lr = _norm(Param), _norm(Grad), _scalar(LearningRate)
    scaled = (size > 0) & (steep > 0)
    rate = jnp.where(
        scaled, lr * lars_coeff * size / (steep + lars_weight_decay * size + epsilon), lr
    )
    v = mu * Velocity + rate * (Grad + lars_weight_decay * Param)
    return Param - v, v


@op(
    outs="ParamOut MomentOut MasterParamOut?",
    inplace=_outs("Param", "Moment", "MasterParam"),
    update=updates_elements("Moment", "MasterParam"),
)
def adagrad(
    Param: Array, Grad: Array | SelectedRows, Moment: Array, LearningRate: Array, MasterParam: Array | None, *,
    epsilon: float = 1e-6, multi_precision: bool = False,
):  # fmt: skip
    """m = Moment + Grad^2; ParamOut = Param - lr * Grad / (sqrt(m) + epsilon)."""
    p = Param if MasterParam is None else MasterParam
    if isinstance(Grad, SelectedRows):
        return settled(
            Param, MasterParam, *optim_rows.adagrad(p, Grad, Moment, _scalar(LearningRate), epsilon)
        )
    g = Grad.astype(p.dtype)
    m = Moment + g * g
    return settled(Param, MasterParam, p - _scalar(LearningRate) * g / (jnp.sqrt(m) + epsilon), m)


@op(outs="ParamOut MomentOut", inplace=_outs("Param", "Moment"), update=updates_elements("Moment"))
def decayed_adagrad(
    Param: Array,
    Grad: Array,
    Moment: Array,
    LearningRate: Array,
    *,
    decay: float = 0.95,
    epsilon: float = 1e-6,
):
    """m = decay * Moment + (1 - decay) * Grad^2; ParamOut = Param - lr * Grad / (sqrt(m) +
    epsilon).
    """
    m = decay * Moment + (1 - decay) * Grad * Grad
    return Param - _scalar(LearningRate) * Grad / (jnp.sqrt(m) + epsilon), m


@op(
    outs="ParamOut AvgSquaredGradOut AvgSquaredUpdateOut MasterParamOut?",
    inplace=_outs("Param", "AvgSquaredGrad", "AvgSquaredUpdate", "MasterParam"),
    update=updates_elements("AvgSquaredGrad", "AvgSquaredUpdate", "MasterParam"),
)
def adadelta(
    Param: Array, Grad: Array, AvgSquaredGrad: Array, AvgSquaredUpdate: Array, LearningRate: Array | None, MasterParam: Array | None,
    *, rho: float = 0.95, epsilon: float = 1e-6, multi_precision: bool = False,
):  # fmt: skip
    """ParamOut = Param - sqrt((u + epsilon) / (g + epsilon)) * Grad, without a learning rate.

    g = rho * AvgSquaredGrad + (1 - rho) * Grad^2; u is the same average of squared updates,
    including this one, sqrt((AvgSquaredUpdate + epsilon) / (g + epsilon)) * Grad: Paddle writes u
    before Param. With LearningRate (later Paddles), ParamOut = Param - LearningRate * that update,
    from the average before it.
    """
    p = Param if MasterParam is None else MasterParam
    Grad = Grad.astype(p.dtype)
    g = rho * AvgSquaredGrad + (1 - rho) * Grad * Grad
    step = jnp.sqrt((AvgSquaredUpdate + epsilon) / (g + epsilon)) * Grad
    u = rho * AvgSquaredUpdate + (1 - rho) * jnp.square(step)
    moved = (
        jnp.sqrt((u + epsilon) / (g + epsilon)) * Grad
        if LearningRate is None
        else _scalar(LearningRate) * step
    )
    return settled(Param, MasterParam, p - moved, g, u)


@op(
    outs="ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut Moment2MaxOut? MasterParamOut?",
    inplace=_outs(
        "Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow", "Moment2Max", "MasterParam"
    ),
    ranks=follows(Beta1PowOut="Beta1Pow", Beta2PowOut="Beta2Pow"),
    update=updates_elements(
        "Moment1", "Moment2", "Moment2Max", "MasterParam", Beta1Pow="beta1", Beta2Pow="beta2"
    ),
)
def adam(
    Param: Array, Grad: Array | SelectedRows, LearningRate: Array, Moment1: Array, Moment2: Array, Beta1Pow: Array,
    Beta2Pow: Array, Beta1Tensor: Array | None, Beta2Tensor: Array | None, EpsilonTensor: Array | None, Moment2Max: Array | None,
    MasterParam: Array | None, SkipUpdate: Array | None, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    lazy_mode: bool = False, min_row_size_to_use_multithread: Int64 = 1000, multi_precision: bool = UNSAID,
    use_global_beta_pow: bool = False, amsgrad: bool = False,
):  # fmt: skip
    """ParamOut = Param - lr * sqrt(1 - Beta2Pow) / (1 - Beta1Pow) * m1 / (sqrt(m2) + epsilon).

    m1 = beta1 * Moment1 + (1 - beta1) * Grad, m2 = beta2 * Moment2 + (1 - beta2) * Grad^2. Beta1Pow
    and Beta2Pow, [1] or one per element, are the betas to the power of the step; their outputs are
    those of the next. Beta1Tensor and Beta2Tensor override the attributes. A sparse Grad uses the
    next step's powers, as 1.8.5's CPU kernel does, which writes them first; a Grad without rows
    changes nothing. lazy_mode: rows not in Grad keep their moments and values. With
    multi_precision, which every later Paddle writes whether true or not, the op is adamw without
    decay: epsilon is multiplied by sqrt(1 - Beta2Pow), and the added slots and attributes have
    their meaning there.
    """
    if multi_precision is not UNSAID:
        if lazy_mode and isinstance(Grad, SelectedRows):
            raise UnsupportedError(
                "adam of Paddle 2 with lazy_mode and a sparse Grad is not supported; leave"
                " lazy_mode out"
            )
        return _adam_of_2x(Param, Grad, LearningRate, Moment1, Moment2, Moment2Max, Beta1Pow, Beta2Pow, MasterParam, SkipUpdate,
                           Beta1Tensor, Beta2Tensor, EpsilonTensor, beta1=beta1, beta2=beta2, epsilon=epsilon,
                           use_global_beta_pow=use_global_beta_pow, amsgrad=amsgrad)  # fmt: skip
    if isinstance(Grad, SelectedRows) and not Grad.rows.shape[0]:
        return Param, Moment1, Moment2, Beta1Pow, Beta2Pow, None, None
    b1 = beta1 if Beta1Tensor is None else _scalar(Beta1Tensor)
    b2 = beta2 if Beta2Tensor is None else _scalar(Beta2Tensor)
    pow1, pow2 = Beta1Pow * b1, Beta2Pow * b2
    sparse = isinstance(Grad, SelectedRows)
    rate = (
        _scalar(LearningRate)
        * jnp.sqrt(1 - _each(pow2 if sparse else Beta2Pow))
        / (1 - _each(pow1 if sparse else Beta1Pow))
    )
    if lazy_mode and isinstance(Grad, SelectedRows):
        return (
            *optim_rows.lazy_adam(Param, Grad, Moment1, Moment2, rate, (b1, b2), epsilon),
            pow1,
            pow2,
            None,
            None,
        )
    g = _table(Grad)
    m1 = b1 * Moment1 + (1 - b1) * g
    m2 = b2 * Moment2 + (1 - b2) * g * g
    return Param - rate * (m1 / (jnp.sqrt(m2) + epsilon)), m1, m2, pow1, pow2, None, None


def _adam_of_2x(*slots: Any, **attrs: Any) -> tuple[Any, ...]:
    """adamw without decay, its outputs in adam's order."""
    from .optim_2x import adamw

    new, m1, m2, top, pow1, pow2, master = adamw(*slots, **attrs)
    return new, m1, m2, pow1, pow2, top, master


@op(
    outs="ParamOut MomentOut InfNormOut MasterParamOut?",
    inplace=_outs("Param", "Moment", "InfNorm", "MasterParam"),
    update=updates_elements("Moment", "InfNorm", "MasterParam", Beta1Pow="beta1"),
)
def adamax(
    Param: Array, Grad: Array, LearningRate: Array, Moment: Array, InfNorm: Array, Beta1Pow: Array, MasterParam: Array | None, *,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, multi_precision: bool = False,
):  # fmt: skip
    """ParamOut = Param - lr / (1 - Beta1Pow) * m / n.

    m = beta1 * Moment + (1 - beta1) * Grad, n = max(|Grad|, beta2 * InfNorm + epsilon). Beta1Pow:
    [1], or one per element.
    """
    p = Param if MasterParam is None else MasterParam
    g = Grad.astype(p.dtype)
    m = beta1 * Moment + (1 - beta1) * g
    n = jnp.maximum(jnp.abs(g), beta2 * InfNorm + epsilon)
    return settled(
        Param, MasterParam, p - _scalar(LearningRate) / (1 - _each(Beta1Pow)) * (m / n), m, n
    )


@op(
    outs="ParamOut MomentOut MeanSquareOut MeanGradOut MasterParamOut?",
    inplace=_outs("Param", "Moment", "MeanSquare", "MeanGrad", "MasterParam"),
    update=updates_elements("MeanSquare", "MeanGrad", "Moment", "MasterParam"),
)
def rmsprop(
    Param: Array, MeanSquare: Array, MeanGrad: Array | None, LearningRate: Array, Grad: Array | SelectedRows,
    Moment: Array, MasterParam: Array | None, *, epsilon: float = 1e-10, decay: float = 0.9, momentum: float = 0.0,
    centered: bool = False, multi_precision: bool = False,
):  # fmt: skip
    """ParamOut = Param - v with v = momentum * Moment + lr * Grad / sqrt(s + epsilon).

    s = decay * MeanSquare + (1 - decay) * Grad^2; centered subtracts the square of the same average
    of Grad from it.
    """
    p = Param if MasterParam is None else MasterParam
    g = _table(Grad).astype(p.dtype)
    s = decay * MeanSquare + (1 - decay) * g * g
    mean, spread = MeanGrad, s
    if centered:
        if MeanGrad is None:
            raise ShapeError("rmsprop with centered=True needs MeanGrad")
        mean = decay * MeanGrad + (1 - decay) * g
        spread = s - mean * mean
    v = momentum * Moment + _scalar(LearningRate) * g / jnp.sqrt(spread + epsilon)
    return settled(Param, MasterParam, p - v, v, s, mean)


@op(
    outs="ParamOut SquaredAccumOut LinearAccumOut",
    inplace={
        "ParamOut": "Param",
        "SquaredAccumOut": "SquaredAccumulator",
        "LinearAccumOut": "LinearAccumulator",
    },
    update=updates_elements("SquaredAccumulator", "LinearAccumulator"),
)
def ftrl(
    Param: Array, SquaredAccumulator: Array, LinearAccumulator: Array, Grad: Array, LearningRate: Array, *,
    l1: float = 0.0, l2: float = 0.0, lr_power: float = -0.5,
):  # fmt: skip
    """ParamOut = (sign(z) * l1 - z) / (n^-lr_power / lr + 2 * l2) where |z| > l1, else 0.

    n = SquaredAccumulator + Grad^2, z = LinearAccumulator + Grad - (n^-lr_power -
    SquaredAccumulator^-lr_power) / lr
    * Param. As in Paddle, 1e-10 is added to l1 and l2.
    """
    l1, l2, lr = l1 + 1e-10, l2 + 1e-10, _scalar(LearningRate)

    def power(x: Array) -> Array:
        return jnp.sqrt(x) if lr_power == -0.5 else x**-lr_power

    n = SquaredAccumulator + Grad * Grad
    top = power(n)
    z = LinearAccumulator + Grad - (top - power(SquaredAccumulator)) / lr * Param
    return jnp.where(jnp.abs(z) > l1, (l1 * jnp.sign(z) - z) / (top / lr + 2 * l2), 0), n, z


@op(
    outs="ParamOut Moment1Out Moment2Out Beta1PowOut? Beta2PowOut? MasterParamOut?",
    inplace=_outs("Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow", "MasterParam"),
    ranks=follows(Beta1PowOut="Beta1Pow", Beta2PowOut="Beta2Pow"),
    update=updates_whole("Moment1", "Moment2", "MasterParam"),
)
def lamb(
    Param: Array, Grad: Array | SelectedRows, LearningRate: Array, Moment1: Array, Moment2: Array, Beta1Pow: Array,
    Beta2Pow: Array, MasterParam: Array | None, SkipUpdate: Array | None, *, weight_decay: float, beta1: float = 0.9,
    beta2: float = 0.999, epsilon: float = 1e-6, multi_precision: bool = False, always_adapt: bool = UNSAID,
):  # fmt: skip
    """ParamOut = Param - lr * |Param| / |u| * u with u = m1 / (sqrt(m2) + epsilon) + weight_decay *
    Param.

    m1 and m2 are as in adam, without bias correction: Beta1Pow and Beta2Pow are ignored. |Param| /
    |u| is 1 if either norm is 0. With always_adapt, which every later Paddle writes whether true or
    not, m1 and m2 are divided by 1 - Beta1Pow and 1 - Beta2Pow in u;
    |Param| / |u| is 1 without weight_decay unless it is true; the powers go on; SkipUpdate: true leaves everything as it is.
    """
    p = Param if MasterParam is None else MasterParam
    g = _table(Grad).astype(p.dtype)
    m1 = beta1 * Moment1 + (1 - beta1) * g
    m2 = beta2 * Moment2 + (1 - beta2) * g * g
    later = always_adapt is not UNSAID
    first, second = (
        (m1 / (1 - _scalar(Beta1Pow)), m2 / (1 - _scalar(Beta2Pow))) if later else (m1, m2)
    )
    u = first / (jnp.sqrt(second) + epsilon) + weight_decay * p
    p_size, u_size = _norm(p), _norm(u)
    ratio = jnp.where((p_size > 0) & (u_size > 0), p_size / jnp.where(u_size > 0, u_size, 1), 1)
    ratio = ratio if not later or always_adapt or weight_decay > 0 else 1
    new = p - _scalar(LearningRate) * ratio * u
    pows = (Beta1Pow * beta1, Beta2Pow * beta2) if later else (Beta1Pow, Beta2Pow)
    found = settled(Param, MasterParam, new, m1, m2, *pows)
    if SkipUpdate is None:
        return found
    before = (Param, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam)
    return tuple(
        None if v is None else jnp.where(_scalar(SkipUpdate), old, v)
        for v, old in zip(found, before, strict=True)
    )


@op(outs="ParamOut", inplace=_outs("Param"), update=updates_whole())
def dpsgd(
    Param: Array, Grad: Array, LearningRate: Array, key: jax.Array, *, clip: float = 10.0, batch_size: float = 16.0,
    sigma: float = 1.0, seed: int = 0,
):  # fmt: skip
    """ParamOut = Param - lr * (Grad / max(1, |Grad| / clip) + noise / batch_size).

    noise is one number from N(0, sigma^2) for the whole parameter, as in Paddle.
    """
    norm = _norm(Grad)
    scale = jnp.where(norm > clip, norm / clip, 1)  # 1 where the norm is nan
    key = jax.random.key(seed) if seed else key
    noise = sigma * jax.random.normal(key, (), Param.dtype)
    return Param - _scalar(LearningRate) * (Grad / scale + noise / batch_size)


_SUMS = ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates")
# number of parameters summed before their sum is moved to the next one: a float32 sum loses digits
_PRECISION_STEPS = 16384


@op(
    outs=" ".join(f"out_{n}" for n in _SUMS),
    inplace={f"out_{n}": f"in_{n}" for n in _SUMS},
    rows=mixes(),
)
def average_accumulates(
    param: Array, in_sum_1: Array, in_sum_2: Array, in_sum_3: Array, in_num_accumulates: Array,
    in_old_num_accumulates: Array, in_num_updates: Array, *, average_window: float = 0.0, max_average_window: Int64,
    min_average_window: Int64 = 10000,
):  # fmt: skip
    """out_sum_1 = in_sum_1 + param; the sums for the average of a parameter's last values.

    The window ends once it holds at least min_average_window values and min(max_average_window,
    average_window * updates) of them: its sum then is sum_3, its count old_num_accumulates, and a
    new one begins. Counts are int64 [1].
    """
    updates, count = in_num_updates + 1, in_num_accumulates + 1
    limit = jnp.minimum(
        max_average_window, (updates.astype(jnp.float32) * average_window).astype(updates.dtype)
    )
    ends = (count >= min_average_window) & (count >= limit)
    moves = updates % _PRECISION_STEPS == 0
    end, move = _scalar(ends), _scalar(moves)
    total = in_sum_1 + param  # Paddle overwrites in_sum_1 with it, so that it counts everywhere
    sum_1 = jnp.where(end | move, 0, total)
    sum_2 = jnp.where(end, 0, jnp.where(move, total + in_sum_2, in_sum_2))
    sum_3 = jnp.where(end, total + in_sum_2, in_sum_3)
    return (
        sum_1,
        sum_2,
        sum_3,
        jnp.where(ends, 0, count),
        jnp.where(ends, count, in_old_num_accumulates),
        updates,
    )


def _shrink(x: Array, lr: Array, l1: float, l2: float) -> Array:
    """The proximal step of l1 * |x| + l2 / 2 * x^2."""
    if l1 > 0:
        x = jnp.sign(x) * jnp.maximum(jnp.abs(x) - lr * l1, 0)
    return x / (1 + lr * l2)


@op(outs="ParamOut", inplace=_outs("Param"), update=updates_elements())
def proximal_gd(
    Param: Array, Grad: Array, LearningRate: Array, *, l1: float = 0.0, l2: float = 0.0
):
    """ParamOut = sign(x) * max(|x| - lr * l1, 0) / (1 + lr * l2) with x = Param - lr * Grad."""
    lr = _scalar(LearningRate)
    return _shrink(Param - lr * Grad, lr, l1, l2)


@op(outs="ParamOut MomentOut", inplace=_outs("Param", "Moment"), update=updates_elements("Moment"))
def proximal_adagrad(
    Param: Array,
    Moment: Array,
    Grad: Array,
    LearningRate: Array,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
):
    """ParamOut = sign(x) * max(|x| - lr * l1, 0) / (1 + lr * l2) with x = Param - lr * Grad /
    sqrt(m).

    m = Moment + Grad^2.
    """
    m, lr = Moment + Grad * Grad, _scalar(LearningRate)
    return _shrink(Param - lr * Grad / jnp.sqrt(m), lr, l1, l2), m
