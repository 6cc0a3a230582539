"""Optimizer updates that Paddle 2 added: decoupled weight decay, and several parameters in one op."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .registry import Array, Floats, Int64, SelectedRows, Strs, op
from .traits import follows, mixes, updates_elements


def _outs(*names: str) -> dict[str, str]:
    return {f"{name}Out": name for name in names}


@op(
    outs="ParamOut Moment1Out Moment2Out Moment2MaxOut? Beta1PowOut Beta2PowOut MasterParamOut?",
    inplace=_outs(
        "Param", "Moment1", "Moment2", "Moment2Max", "Beta1Pow", "Beta2Pow", "MasterParam"
    ),
    ranks=follows(Beta1PowOut="Beta1Pow", Beta2PowOut="Beta2Pow"),
    update=updates_elements(
        "Moment1", "Moment2", "Moment2Max", "MasterParam", Beta1Pow="beta1", Beta2Pow="beta2"
    ),
)
def adamw(
    Param: Array, Grad: Array | SelectedRows, LearningRate: Array, Moment1: Array, Moment2: Array, Moment2Max: Array | None,
    Beta1Pow: Array, Beta2Pow: Array, MasterParam: Array | None, SkipUpdate: Array | None, Beta1Tensor: Array | None,
    Beta2Tensor: Array | None, EpsilonTensor: Array | None, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    lr_ratio: float = 1.0, coeff: float = 0.01, with_decay: bool = False, lazy_mode: bool = False,
    min_row_size_to_use_multithread: Int64 = 1000, multi_precision: bool = False, use_global_beta_pow: bool = False,
    amsgrad: bool = False,
):  # fmt: skip
    """ParamOut = p - r * sqrt(1 - Beta2Pow) / (1 - Beta1Pow) * m1 / (sqrt(m2) + e), p = Param * (1
    - r * coeff), r = lr * lr_ratio.

    m1, m2, the powers and the tensors that override attributes are as in adam; e = epsilon * sqrt(1
    - Beta2Pow). Without with_decay, p is Param. amsgrad: the greatest m2 so far replaces m2.
    MasterParam: Param in float32, which is updated instead and then rounded to ParamOut.
    use_global_beta_pow: the powers do not change. SkipUpdate: if true, nothing changes. lr_ratio is
    that of Paddle's GPU kernel; its CPU kernel scales only the decay by it.
    """
    rate = LearningRate.reshape(()) * lr_ratio
    held = Param if MasterParam is None else MasterParam
    p = held * (1 - rate * coeff) if with_decay else held
    b1, b2 = (
        t if b is None else b.reshape(()) for t, b in ((beta1, Beta1Tensor), (beta2, Beta2Tensor))
    )
    eps = epsilon if EpsilonTensor is None else EpsilonTensor.reshape(())
    g = (Grad.dense() if isinstance(Grad, SelectedRows) else Grad).astype(held.dtype)
    m1, m2 = b1 * Moment1 + (1 - b1) * g, b2 * Moment2 + (1 - b2) * g * g
    top = jnp.maximum(m2, Moment2Max) if amsgrad and Moment2Max is not None else m2
    root = jnp.sqrt(1 - _each(Beta2Pow))
    new = p - rate * root / (1 - _each(Beta1Pow)) * (m1 / (jnp.sqrt(top) + eps * root))
    pow1, pow2 = (Beta1Pow, Beta2Pow) if use_global_beta_pow else (Beta1Pow * b1, Beta2Pow * b2)
    master = None if MasterParam is None else new
    found = (new.astype(Param.dtype), m1, m2, top if amsgrad else None, pow1, pow2, master)
    if SkipUpdate is None:
        return found
    before = (Param, Moment1, Moment2, Moment2Max, Beta1Pow, Beta2Pow, MasterParam)
    skip = SkipUpdate.reshape(())
    return tuple(
        None if new is None else jnp.where(skip, old, new)
        for new, old in zip(found, before, strict=True)
    )


def _each(x: Array) -> Array:
    """One number for all elements as a scalar; an array with one number per element unchanged."""
    return x.reshape(()) if x.size == 1 else x


@op(
    outs="ParamOut* VelocityOut* MasterParamOut*?",
    inplace=_outs("Param", "Velocity", "MasterParam"),
    rows=mixes(),
    update=updates_elements("Velocity"),
)
def merged_momentum(
    Param: list[Array], Grad: list[Array], Velocity: list[Array], LearningRate: list[Array], MasterParam: list[Array] | None, *,
    mu: float, use_nesterov: bool = False, regularization_method: Strs = (), regularization_coeff: Floats = (),
    multi_precision: bool = False, rescale_grad: float = 1.0,
):  # fmt: skip
    """ParamOut[i], VelocityOut[i] = those of momentum; regularization_method[i] l2_decay adds coeff
    * Param to the gradient.

    The gradient is first multiplied by rescale_grad, which Paddle's CPU kernel ignores.
    """
    found: list[tuple[Any, Any, Any]] = []
    for i, (param, grad, velocity) in enumerate(zip(Param, Grad, Velocity, strict=True)):
        p = MasterParam[i] if MasterParam else param
        rate = LearningRate[i if len(LearningRate) > 1 else 0].reshape(())
        g = grad.astype(p.dtype) * rescale_grad
        if i < len(regularization_method) and regularization_method[i] == "l2_decay":
            g = g + regularization_coeff[i] * p
        v = mu * velocity + g
        new = p - rate * (g + mu * v if use_nesterov else v)
        found.append((new.astype(param.dtype), v, new))
    params, velocities, masters = (list(values) for values in zip(*found, strict=True))
    return params, velocities, masters if MasterParam else None


@op(
    outs=(
        "ParamOut* Moment1Out* Moment2Out* Moment2MaxOut*? Beta1PowOut* Beta2PowOut*"
        " MasterParamOut*?"
    ),
    rows=mixes(),
    inplace=_outs(
        "Param", "Moment1", "Moment2", "Moment2Max", "Beta1Pow", "Beta2Pow", "MasterParam"
    ),
    update=updates_elements("Moment1", "Moment2", Beta1Pow="beta1", Beta2Pow="beta2"),
)
def merged_adam(
    Param: list[Array], Grad: list[Array], LearningRate: list[Array], Moment1: list[Array], Moment2: list[Array],
    Moment2Max: list[Array] | None, Beta1Pow: list[Array], Beta2Pow: list[Array], MasterParam: list[Array] | None, *,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, multi_precision: bool = False,
    use_global_beta_pow: bool = False, amsgrad: bool = False,
):  # fmt: skip
    """ParamOut[i], Moment1Out[i], ... = those of adamw without decay."""
    found = []
    for i in range(len(Param)):
        rate = LearningRate[i if len(LearningRate) > 1 else 0]
        master, top = (values[i] if values else None for values in (MasterParam, Moment2Max))
        found.append(
            adamw(
                Param[i],
                Grad[i],
                rate,
                Moment1[i],
                Moment2[i],
                top,
                Beta1Pow[i],
                Beta2Pow[i],
                master,
                None,
                None,
                None,
                None,
                beta1=beta1,
                beta2=beta2,
                epsilon=epsilon,
                multi_precision=multi_precision,
                use_global_beta_pow=use_global_beta_pow,
                amsgrad=amsgrad,
            )
        )
    columns = [list(values) for values in zip(*found, strict=True)]
    return tuple(None if column[0] is None else column for column in columns)
