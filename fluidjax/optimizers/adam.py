"""Adam and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..clip import GradientClipBase
from ..errors import FluidTypeError
from ..graph.block import Block
from ..graph.name_scope import name_scope
from ..graph.variable import Parameter, Variable
from ..regularizer import Pair
from .base import Accumulator, Optimizer
from .checks import numbers


class AdamOptimizer(Optimizer):
    """``m1 = beta1 * m1 + (1 - beta1) * grad``; ``m2 = beta2 * m2 + (1 - beta2) * grad ** 2``;
    ``param -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m1 / (sqrt(m2) + epsilon)``.

    beta1, beta2: numbers, or Variables of shape [1] that the op reads at each step (beta1^t then
    starts from 0.9, and beta2^t from 0.999). lazy_mode: for sparse gradients, rows that the batch
    does not touch keep their moments too; a dense gradient touches every row. Other arguments: see
    :class:`Optimizer`. State: ``<param>_moment1_k``, ``<param>_moment2_k``, and of shape [1]
    ``<param>_beta1_pow_acc_k``, ``<param>_beta2_pow_acc_k``.
    """

    type = "adam"
    _moment1_acc_str = "moment1"
    _moment2_acc_str = "moment2"
    _beta1_pow_acc_str = "beta1_pow_acc"
    _beta2_pow_acc_str = "beta2_pow_acc"
    _writes_pows = True

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float | Variable = 0.9,
        beta2: float | Variable = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        given = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        numbers(
            self,
            **{n: v for n, v in given.items() if n == "epsilon" or not isinstance(v, Variable)},
        )
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._lazy_mode = bool(lazy_mode)

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        first = 0.9 if isinstance(self._beta1, Variable) else self._beta1
        second = 0.999 if isinstance(self._beta2, Variable) else self._beta2
        written = self._writes_pows
        return (
            Accumulator("moment1", "Moment1", "Moment1Out"),
            Accumulator("moment2", "Moment2", "Moment2Out"),
            Accumulator(
                "beta1_pow_acc", "Beta1Pow", "Beta1PowOut" if written else None, first, scalar=True
            ),
            Accumulator(
                "beta2_pow_acc", "Beta2Pow", "Beta2PowOut" if written else None, second, scalar=True
            ),
        )

    def _more_inputs(self) -> Mapping[str, Any]:
        given = {"Beta1Tensor": self._beta1, "Beta2Tensor": self._beta2}
        return {slot: v for slot, v in given.items() if isinstance(v, Variable)}

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        betas = {
            n: v
            for n, v in (("beta1", self._beta1), ("beta2", self._beta2))
            if not isinstance(v, Variable)
        }
        return {
            **betas,
            "epsilon": self._epsilon,
            "lazy_mode": self._lazy_mode,
            "min_row_size_to_use_multithread": 1000,
        }


class AdamaxOptimizer(Optimizer):
    """``m = beta1 * m + (1 - beta1) * grad``; ``n = max(beta2 * n + epsilon, |grad|)``;
    ``param -= lr / (1 - beta1^t) * m / n``.

    Other arguments: see :class:`Optimizer`. State: ``<param>_moment_k``, ``<param>_inf_norm_k``,
    and of shape [1] ``<param>_beta1_pow_acc_k``, which a ``scale`` op after all updates multiplies
    by beta1.
    """

    type = "adamax"
    _moment_acc_str = "moment"
    _inf_norm_acc_str = "inf_norm"
    _beta1_pow_acc_str = "beta1_pow_acc"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, beta1=beta1, beta2=beta2, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return (
            Accumulator("moment", "Moment", "MomentOut"),
            Accumulator("inf_norm", "InfNorm", "InfNormOut"),
            Accumulator("beta1_pow_acc", "Beta1Pow", None, self._beta1, scalar=True),
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {"beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon}

    def _finish_update(self, block: Block, parameters_and_grads: Sequence[Pair]) -> None:
        """``beta1^t *= beta1`` for every parameter (the op itself does not write it)."""
        for param, grad in parameters_and_grads:
            if grad is None or not param.trainable:
                continue
            with param.block.program._optimized_guard([param, grad]), name_scope("adamx"):
                power = self._get_accumulator("beta1_pow_acc", param)
                block.append_op(
                    type="scale",
                    inputs={"X": power},
                    outputs={"Out": power},
                    attrs={"scale": self._beta1},
                )


class LambOptimizer(AdamOptimizer):
    """Adam's direction plus weight decay, scaled to the parameter's norm.

    ``m1 = beta1 * m1 + (1 - beta1) * grad``; ``m2 = beta2 * m2 + (1 - beta2) * grad ** 2``;
    ``r = m1 / (sqrt(m2) + epsilon) + lamb_weight_decay * param``; ``param -= lr * |param| / |r| *
    r``.

    exclude_from_weight_decay_fn: a function of a Parameter; where it returns true, that parameter's
    decay is 0. Other arguments: see :class:`Optimizer`. State: as :class:`AdamOptimizer`; the
    powers of beta are read but, as in Fluid, never change.
    """

    type = "lamb"
    _writes_pows = False

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        exclude_from_weight_decay_fn: Callable[[Parameter], bool] | None = None,
        name: str | None = None,
    ) -> None:
        numbers(self, lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2)
        if exclude_from_weight_decay_fn is not None and not callable(exclude_from_weight_decay_fn):
            raise FluidTypeError(
                "exclude_from_weight_decay_fn is a function of a Parameter, not"
                f" {exclude_from_weight_decay_fn!r}"
            )
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, name
        )
        self._weight_decay = lamb_weight_decay
        self._exclude_from_weight_decay_fn = exclude_from_weight_decay_fn

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        excluded = (
            self._exclude_from_weight_decay_fn is not None
            and self._exclude_from_weight_decay_fn(param)
        )
        decay = 0.0 if excluded else self._weight_decay
        return {
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
            "weight_decay": decay,
        }
