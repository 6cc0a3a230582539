"""Deep gradient compression: the ops around it that 1.8.5 runs without NCCL."""

from __future__ import annotations

import jax.numpy as jnp

from .math import clip_by_norm
from .optim import momentum, sgd
from .registry import Array, op
from .traits import mixes, updates_elements


def _begun(step: Array, begin: float) -> Array:
    return jnp.trunc(step.reshape(())) >= int(begin)


@op(outs="Out", rows=mixes("X"))
def dgc_clip_by_norm(
    X: Array, current_step: Array, *, max_norm: float, rampup_begin_step: float = -1.0
):
    """Out = X * min(1, max_norm / ||X||) from step rampup_begin_step on (if negative: never), else
    X.
    """
    if int(rampup_begin_step) < 0:
        return X
    return jnp.where(_begun(current_step, rampup_begin_step), clip_by_norm(X, max_norm=max_norm), X)


@op(
    outs="Grad_out ParamOut VelocityOut",
    inplace={"Grad_out": "Grad", "ParamOut": "Param", "VelocityOut": "Velocity"},
    update=updates_elements("Velocity"),
)
def dgc_momentum(
    Param: Array, Grad: Array, Velocity: Array, LearningRate: Array, current_step: Array, nranks: Array, *, mu: float,
    use_nesterov: bool = False, rampup_begin_step: float = -1.0,
):  # fmt: skip
    """Grad_out = Grad / nranks; ParamOut = momentum's update with it, and sgd's from step
    rampup_begin_step on (if negative: no update).

    Grad_out overwrites Grad, as in 1.8.5's optimizer, so the updates use the divided gradient.
    """
    if int(rampup_begin_step) < 0:
        return Grad, Param, Velocity
    grad = Grad / nranks.reshape(()).astype(Grad.dtype)
    moved, velocity, _ = momentum(
        Param, grad, Velocity, LearningRate, None, mu=mu, use_nesterov=use_nesterov
    )
    plain, _ = sgd(Param, LearningRate, grad, None)
    begun = _begun(current_step, rampup_begin_step)
    return grad, jnp.where(begun, plain, moved), jnp.where(begun, Velocity, velocity)
