"""Weight decay beside an optimizer's update, instead of an addition to the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ... import layers
from ...base.absent import reporter
from ...errors import FluidTypeError
from ...graph.name_scope import name_scope
from ...graph.program import Program
from ...graph.variable import Parameter, Variable
from ...optimizers.base import Optimizer

_SCOPE = "weight decay"


class DecoupledWeightDecay:
    """A mix-in for an optimizer class: ``param -= coeff param`` before its update.

    coeff: a float, or a Variable [1] of the parameters' dtype. apply_decay_param_fun: name ->
    whether the parameter decays (all). Raises FluidTypeError for another coeff.
    """

    def __init__(
        self,
        coeff: float | Variable = 0.0,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(coeff, float | Variable):
            raise FluidTypeError(f"weight_decay is a float or a Variable, not {coeff!r}")
        self._params_name: set[str] = set()
        self._apply_decay_param_fun = apply_decay_param_fun
        self._coeff = coeff
        super().__init__(**kwargs)

    def _scale_parameters(
        self, params_and_grads: Sequence[tuple[Parameter, Variable]]
    ) -> list[tuple[Parameter, Variable, Variable]]:
        """(parameter, gradient, coeff parameter) for parameters that decay; none if coeff is the
        float 0.
        """
        if isinstance(self._coeff, float) and self._coeff == 0.0:
            return []
        found = []
        for param, grad in params_and_grads:
            if grad is None or (
                self._apply_decay_param_fun is not None
                and not self._apply_decay_param_fun(param.name)
            ):
                continue
            if isinstance(self._coeff, Variable) and self._coeff.dtype != param.dtype:
                raise FluidTypeError(
                    f"weight_decay {self._coeff.name!r} has another dtype than the parameter"
                    f" {param.name!r}"
                )
            with param.block.program._optimized_guard([param, grad]), name_scope(_SCOPE):
                found.append((param, grad, param * self._coeff))
            self._params_name.add(param.name)
        return found

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Any], list[tuple[Parameter, Variable]]]:  # fmt: skip
        """The optimizer's backward pass, the decay, and the optimizer's updates; returns the result
        of the optimizer's minimize.
        """
        base: Any = self
        pairs = base.backward(
            loss=loss,
            startup_program=startup_program,
            parameter_list=parameter_list,
            no_grad_set=no_grad_set,
        )
        for param, grad, scaled in self._scale_parameters(pairs):
            with param.block.program._optimized_guard([param, grad]), name_scope(_SCOPE):
                layers.assign(input=layers.elementwise_sub(x=param, y=scaled), output=param)
        return (
            base.apply_optimize(loss=loss, params_grads=pairs, startup_program=startup_program),
            pairs,
        )

    def __str__(self) -> str:
        return f"Weight Decay, params: {','.join(sorted(self._params_name))}"


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:
    """The optimizer class with ``weight_decay`` as its first argument: ``AdamW =
    extend_with_decoupled_weight_decay(Adam)``.

    The class takes weight_decay (float or Variable), apply_decay_param_fun (name -> bool), and the
    optimizer's own arguments by name. Raises FluidTypeError unless given an optimizer class.
    """
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise FluidTypeError(
            "extend_with_decoupled_weight_decay takes an optimizer class such as"
            f" fluid.optimizer.Adam, not {base_optimizer!r}"
        )

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):  # type: ignore[misc, valid-type]
        """The optimizer, with weight decay."""

        def __init__(
            self,
            weight_decay: float | Variable,
            apply_decay_param_fun: Callable[[str], bool] | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay


__all__ = ["extend_with_decoupled_weight_decay"]

if not TYPE_CHECKING:
    __getattr__ = reporter(
        "fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay", __all__
    )
