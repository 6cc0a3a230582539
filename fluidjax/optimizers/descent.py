"""Optimizers that step along the gradient or its momentum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..clip import GradientClipBase
from ..graph.variable import Parameter, Variable
from .base import Accumulator, Optimizer
from .checks import numbers


class SGDOptimizer(Optimizer):
    """``param -= lr * grad``. Arguments: see :class:`Optimizer`."""

    type = "sgd"


class MomentumOptimizer(Optimizer):
    """``velocity = momentum * velocity + grad``, then ``param -= lr * velocity``.

    use_nesterov: ``param -= lr * (grad + momentum * velocity)`` with the new velocity. Other
    arguments: see
    :class:`Optimizer`. State: ``<param>_velocity_k``, of the parameter's shape.
    """

    type = "momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        parameter_list: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, momentum=momentum)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum = momentum
        self._use_nesterov = bool(use_nesterov)

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (Accumulator("velocity", "Velocity", "VelocityOut"),)

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"mu": self._momentum, "use_nesterov": self._use_nesterov}


class LarsMomentumOptimizer(Optimizer):
    """Momentum with a learning rate for each parameter, proportional to the ratio of its norm to
    its gradient's norm.

    ``local_lr = lr * coeff * |param| / (|grad| + decay * |param|)``;
    ``velocity = momentum * velocity + local_lr * (grad + decay * param)``; ``param -= velocity``,
    with coeff = lars_coeff and decay = lars_weight_decay. Other arguments: see :class:`Optimizer`.
    State: ``<param>_velocity_k``.
    """

    type = "lars_momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, momentum=momentum, lars_coeff=lars_coeff, lars_weight_decay=lars_weight_decay)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum = momentum
        self._lars_coeff = float(lars_coeff)
        self._lars_weight_decay = float(lars_weight_decay)

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (Accumulator("velocity", "Velocity", "VelocityOut"),)

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {
            "mu": self._momentum,
            "lars_coeff": self._lars_coeff,
            "lars_weight_decay": self._lars_weight_decay,
        }


class DpsgdOptimizer(Optimizer):
    """Differentially private SGD: ``param -= lr * (grad / max(1, |grad| / clip) + noise /
    batch_size)``.

    The noise is one normal draw of standard deviation sigma for the whole parameter. clip: the
    largest norm of a gradient; batch_size, sigma: the scale of the noise. parameter_list: see
    :class:`Optimizer`. The op's attribute ``seed`` is ``_seed`` (None: 0, which follows the
    program's random_seed).
    """

    type = "dpsgd"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        clip: float = 0.9,
        batch_size: float = 0.999,
        sigma: float = 1e-8,
        parameter_list: Sequence[Any] | None = None,
    ) -> None:
        numbers(self, clip=clip, batch_size=batch_size, sigma=sigma)
        super().__init__(learning_rate, parameter_list)
        self._clip = clip
        self._batch_size = batch_size
        self._sigma = sigma
        self._seed: int | None = None

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {
            "clip": self._clip,
            "batch_size": self._batch_size,
            "sigma": self._sigma,
            "seed": self._seed or 0,
        }
