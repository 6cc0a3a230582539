"""paddle.optimizer: Fluid's optimizers with the arguments of Paddle 2.0.

parameters is Fluid's parameter_list, weight_decay (a number for L2Decay) its regularization.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import optimizer as fluid
from ..clip import GradientClipBase
from ..errors import FluidTypeError
from ..graph.operator import Operator
from ..graph.program import Program
from ..graph.variable import Parameter, Variable
from ..regularizer import L2Decay, WeightDecayRegularizer


def _decay(weight_decay: Any) -> Any:
    """A regularizer from a coefficient (L2), or as it is. Raises FluidTypeError for anything else."""
    if weight_decay is None or isinstance(weight_decay, WeightDecayRegularizer):
        return weight_decay
    if isinstance(weight_decay, int | float) and not isinstance(weight_decay, bool):
        return L2Decay(float(weight_decay))
    raise FluidTypeError(
        f"weight_decay is a number or a regularizer such as paddle.regularizer.L2Decay(1e-4), not {weight_decay!r}"
    )


class Static:
    """What the 2.0 optimizers have on top of Fluid's."""

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], list[tuple[Parameter, Variable]]]:
        """Append everything that one training step does after the loss, as Fluid's minimize.

        parameters: Parameters or names to update; default the optimizer's, else all trainable ones.
        """
        return super().minimize(loss, startup_program, parameters, no_grad_set)  # type: ignore[misc]

    def get_lr(self) -> float:
        """The learning rate that the last run used. Raises FluidValueError where the variable holds no value yet."""
        return self.current_step_lr()  # type: ignore[attr-defined]


class SGD(Static, fluid.SGDOptimizer):
    """``param -= lr * grad``: fluid.optimizer.SGD."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class Momentum(Static, fluid.MomentumOptimizer):
    """``velocity = momentum * velocity + grad``, then ``param -= lr * velocity``: fluid.optimizer.Momentum."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        momentum: float = 0.9,
        parameters: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            momentum=momentum,
            parameter_list=parameters,
            use_nesterov=use_nesterov,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class Adagrad(Static, fluid.AdagradOptimizer):
    """``moment += grad ** 2``; ``param -= lr * grad / (sqrt(moment) + epsilon)``: fluid.optimizer.Adagrad."""

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1e-06,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            epsilon=epsilon,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
            initial_accumulator_value=initial_accumulator_value,
        )


class Adadelta(Static, fluid.AdadeltaOptimizer):
    """Steps from running squares of gradients and of updates, without a learning rate: fluid.optimizer.Adadelta."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        epsilon: float = 1e-06,
        rho: float = 0.95,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            epsilon=epsilon,
            rho=rho,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class RMSProp(Static, fluid.RMSPropOptimizer):
    """``ms = rho * ms + (1 - rho) * grad ** 2``; ``mom = momentum * mom + lr * grad / sqrt(ms + epsilon)``: fluid.optimizer.RMSProp."""

    def __init__(
        self,
        learning_rate: float | Variable,
        rho: float = 0.95,
        epsilon: float = 1e-06,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            rho=rho,
            epsilon=epsilon,
            momentum=momentum,
            centered=centered,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class Adam(Static, fluid.AdamOptimizer):
    """Steps from running averages of the gradient and of its square: fluid.optimizer.Adam."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
            lazy_mode=lazy_mode,
        )


class Adamax(Static, fluid.AdamaxOptimizer):
    """Adam with a running maximum in place of the average square: fluid.optimizer.Adamax."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class Lamb(Static, fluid.LambOptimizer):
    """Adam's direction plus weight decay, scaled to the parameter's norm: fluid.optimizer.Lamb."""

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        parameters: Sequence[Any] | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        exclude_from_weight_decay_fn: Any = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            lamb_weight_decay=lamb_weight_decay,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            parameter_list=parameters,
            grad_clip=grad_clip,
            name=name,
            exclude_from_weight_decay_fn=exclude_from_weight_decay_fn,
        )


__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Lamb", "Momentum", "RMSProp"]
