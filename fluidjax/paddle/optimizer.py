"""paddle.optimizer: Fluid's optimizers with the arguments of Paddle 2.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import optimizer as fluid
from ..errors import FluidTypeError
from ..program import Operator, Parameter, Program, Variable
from ..regularizer import L2Decay, WeightDecayRegularizer
from .adapt import signature_of

_COMMON = "parameters=None, weight_decay=None, grad_clip=None, name=None"
_ROWS = {
    "SGD": (fluid.SGD, f"learning_rate=0.001, {_COMMON}"),
    "Momentum": (
        fluid.Momentum,
        "learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None, grad_clip=None, name=None",
    ),
    "Adagrad": (fluid.Adagrad, f"learning_rate, epsilon=1e-06, {_COMMON}, initial_accumulator_value=0.0"),
    "Adadelta": (fluid.Adadelta, f"learning_rate=0.001, epsilon=1e-06, rho=0.95, {_COMMON}"),
    "RMSProp": (fluid.RMSProp, f"learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, {_COMMON}"),
    "Adam": (fluid.Adam, f"learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, {_COMMON}, lazy_mode=False"),
    "Adamax": (fluid.Adamax, f"learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, {_COMMON}"),
    "Lamb": (
        fluid.Lamb,
        "learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06, parameters=None, grad_clip=None, "
        "name=None, exclude_from_weight_decay_fn=None",
    ),
}


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


def _made(name: str, base: type, parameters: str) -> type:
    """A class with the parameters of Paddle 2.0 over one of Fluid's optimizers."""
    signature = signature_of(parameters)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        values = dict(given.arguments)
        values["parameter_list"] = values.pop("parameters")
        if "weight_decay" in values:
            values["regularization"] = _decay(values.pop("weight_decay"))
        base.__init__(self, **values)  # type: ignore[misc]

    doc = (
        f"{(base.__doc__ or name).strip()}\n\n    This is fluid.optimizer.{name}, where parameters is parameter_list and "
        "weight_decay (a number for L2Decay) is\n    regularization."
    )
    made = type(name, (Static, base), {"__init__": init, "__doc__": doc, "__module__": __name__})
    made.__signature__ = signature  # type: ignore[attr-defined]
    return made


globals().update({name: _made(name, *row) for name, row in _ROWS.items()})
__all__ = sorted(_ROWS)
