"""Optimizers that divide by a running average of the gradient's size: Adagrad's family, RMSProp,
Ftrl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.loc import warn
from ..clip import GradientClipBase
from ..graph.variable import Parameter, Variable
from .base import Accumulator, Optimizer
from .checks import numbers


class AdagradOptimizer(Optimizer):
    """``moment += grad ** 2``; ``param -= lr * grad / (sqrt(moment) + epsilon)``.

    initial_accumulator_value: the initial value of moment. Other arguments: see :class:`Optimizer`.
    State: ``<param>_moment_k``.
    """

    type = "adagrad"
    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1.0e-6,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        numbers(self, epsilon=epsilon, initial_accumulator_value=initial_accumulator_value)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon = epsilon
        self.initial_accumulator_value = initial_accumulator_value

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (Accumulator("moment", "Moment", "MomentOut", fill=self.initial_accumulator_value),)

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"epsilon": self._epsilon}


class DecayedAdagradOptimizer(Optimizer):
    """``moment = decay * moment + (1 - decay) * grad ** 2``; ``param -= lr * grad / (sqrt(moment) +
    epsilon)``.

    Other arguments: see :class:`Optimizer`. State: ``<param>_moment_k``.
    """

    type = "decayed_adagrad"
    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: float | Variable,
        decay: float = 0.95,
        epsilon: float = 1.0e-6,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, decay=decay, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._decay = decay
        self._epsilon = epsilon

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (Accumulator("moment", "Moment", "MomentOut"),)

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"decay": self._decay, "epsilon": self._epsilon}


class AdadeltaOptimizer(Optimizer):
    """Adadelta, without a learning rate.

    ``g2 = rho * g2 + (1 - rho) * grad ** 2``; ``u = sqrt((u2 + epsilon) / (g2 + epsilon)) * grad``;
    ``u2 = rho * u2 + (1 - rho) * u ** 2``; ``param -= sqrt((u2 + epsilon) / (g2 + epsilon)) *
    grad`` (with the new u2, as in Fluid). learning_rate: creates the variable ``learning_rate_k``
    but does not affect the update, as in Fluid. Other arguments: see :class:`Optimizer`. State:
    ``<param>__avg_squared_grad_k``, ``<param>__avg_squared_update_k``.
    """

    type = "adadelta"
    uses_learning_rate = False
    _avg_squared_grad_acc_str = "_avg_squared_grad"
    _avg_squared_update_acc_str = "_avg_squared_update"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1.0e-6,
        rho: float = 0.95,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, epsilon=epsilon, rho=rho)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon = epsilon
        self._rho = rho

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (
            Accumulator("_avg_squared_grad", "AvgSquaredGrad", "AvgSquaredGradOut"),
            Accumulator("_avg_squared_update", "AvgSquaredUpdate", "AvgSquaredUpdateOut"),
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"epsilon": self._epsilon, "rho": self._rho}


class RMSPropOptimizer(Optimizer):
    """``ms = rho * ms + (1 - rho) * grad ** 2``; ``mom = momentum * mom + lr * grad / sqrt(ms +
    epsilon)``; ``param -= mom``.

    centered: also keeps ``mg = rho * mg + (1 - rho) * grad`` and divides by ``sqrt(ms - mg ** 2 +
    epsilon)``. Other arguments: see :class:`Optimizer`. State: ``<param>_momentum_k``,
    ``<param>_mean_square_k``, ``<param>_mean_grad_k`` (which also exists without `centered`, but
    does not change).
    """

    type = "rmsprop"
    _momentum_acc_str = "momentum"
    _mean_square_acc_str = "mean_square"
    _mean_grad_acc_str = "mean_grad"

    def __init__(
        self,
        learning_rate: float | Variable,
        rho: float = 0.95,
        epsilon: float = 1.0e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        numbers(self, rho=rho, epsilon=epsilon, momentum=momentum)
        self._rho = rho
        self._epsilon = epsilon
        self._momentum = momentum
        self._centered = bool(centered)

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (
            Accumulator("momentum", "Moment", "MomentOut"),
            Accumulator("mean_square", "MeanSquare", "MeanSquareOut"),
            Accumulator("mean_grad", "MeanGrad", "MeanGradOut"),
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {
            "epsilon": self._epsilon,
            "decay": self._rho,
            "momentum": self._momentum,
            "centered": self._centered,
        }


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader, with squared = sum of grad ** 2 and lr_power p (usually -0.5).

    ``new = squared + grad ** 2``; ``linear += grad - (new ** -p - squared ** -p) / lr * param``;
    ``param = (l1 * sign(linear) - linear) / (new ** -p / lr + 2 * l2)`` where ``|linear| > l1``,
    else 0.

    **The op does not get l2**: Fluid 1.8.5 passes l1 in its place, and so does this class, so that
    a program trains as before; it warns if the two differ. Other arguments: see :class:`Optimizer`.
    State: ``<param>_squared_k``, ``<param>_linear_k``.
    """

    type = "ftrl"
    _squared_acc_str = "squared"
    _linear_acc_str = "linear"

    def __init__(
        self,
        learning_rate: float | Variable,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        numbers(self, l1=l1, l2=l2, lr_power=lr_power)
        if l1 != l2:
            warn(
                f"Ftrl(l1={l1}, l2={l2}) runs with l2={l1}: Fluid 1.8.5 hands l1 to the op for both"
            )
        self._l1 = l1
        self._l2 = l2
        self._lr_power = lr_power

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (
            Accumulator("squared", "SquaredAccumulator", "SquaredAccumOut"),
            Accumulator("linear", "LinearAccumulator", "LinearAccumOut"),
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"l1": self._l1, "l2": self._l1, "lr_power": self._lr_power}
