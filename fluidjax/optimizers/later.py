"""Optimizers that only Paddle 3 has: NAdam, RAdam, Rprop, ASGD. The names of their ops' slots are
lower case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import layers
from ..clip import GradientClipBase
from ..errors import FluidTypeError, FluidValueError
from ..graph.block import Block
from ..graph.operator import Operator
from ..graph.variable import Parameter, Variable
from ..layers.tensor import assign
from .base import Accumulator, Optimizer
from .checks import numbers


class _Later(Optimizer):
    """An optimizer whose op has the slots param, grad, learning_rate, param_out and the slots of
    its state.
    """

    def _state(self) -> Mapping[str, float]:
        """The state by slot, with its initial value; each variable has its parameter's shape and is
        named after the slot.
        """
        return {}

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return [
            Accumulator(slot, slot, f"{slot}_out", fill) for slot, fill in self._state().items()
        ]

    def _append_optimize_op(
        self, block: Block, param_and_grad: tuple[Parameter, Variable]
    ) -> Operator:
        param, grad = param_and_grad
        inputs: dict[str, Any] = {"param": param, "grad": grad}
        if self.uses_learning_rate:
            inputs["learning_rate"] = self._create_param_lr(param_and_grad)
        outputs: dict[str, Any] = {"param_out": param}
        for a in self._accumulator_specs():
            inputs[a.slot] = outputs[f"{a.slot}_out"] = self._get_accumulator(a.name, param)
        inputs.update(self._more_inputs())
        return block.append_op(
            type=self.type, inputs=inputs, outputs=outputs, attrs=dict(self.op_attributes(param))
        )


class RAdamUpdate(_Later):
    """Adam that steps along the plain average until the variance of the average of squares is
    known; op ``radam``.

    State, each of the parameter's shape: ``<param>_beta1_pow_k``, ``_beta2_pow_k``, ``_rho_k``,
    ``_moment1_k``, ``_moment2_k``.
    """

    type = "radam"

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
        for what, value in {"beta1": beta1, "beta2": beta2}.items():
            if not 0 <= value < 1:
                raise FluidValueError(
                    f"{type(self).__name__}'s {what} must be in [0, 1), but is {value}"
                )
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attributes: dict[str, float] = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    def _state(self) -> Mapping[str, float]:
        return {"beta1_pow": 1.0, "beta2_pow": 1.0, "rho": 1.0, "moment1": 0.0, "moment2": 0.0}

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return self._attributes


class NAdamUpdate(RAdamUpdate):
    """Adam with Nesterov's look-ahead and a momentum that grows to beta1; op ``nadam``.

    State, each of the parameter's shape: ``<param>_momentum_decay_pow_k``, ``_beta2_pow_k``,
    ``_mu_product_k``, ``_moment1_k``, ``_moment2_k``.
    """

    type = "nadam"

    def __init__(
        self, learning_rate: float | Variable = 0.002, momentum_decay: float = 0.004, **options: Any
    ) -> None:
        numbers(self, momentum_decay=momentum_decay)
        super().__init__(learning_rate, **options)
        self._attributes["momentum_decay"] = momentum_decay

    def _state(self) -> Mapping[str, float]:
        return {
            "momentum_decay_pow": 1.0,
            "beta2_pow": 1.0,
            "mu_product": 1.0,
            "moment1": 0.0,
            "moment2": 0.0,
        }


class RpropUpdate(_Later):
    """A rate of its own for each element, which grows while the gradient keeps its sign and shrinks
    where it turns; op ``rprop``.

    State, each of the parameter's shape: ``<param>_prevs_k``, the last gradient;
    ``<param>_learning_rates_k``, at first learning_rate.
    """

    type = "rprop"
    uses_learning_rate = False

    def __init__(
        self,
        learning_rate: float = 0.001,
        learning_rate_range: Sequence[float] = (1e-5, 50),
        etas: Sequence[float] = (0.5, 1.2),
        parameter_list: Sequence[Any] | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(learning_rate, Variable):
            raise FluidTypeError(
                "Rprop's learning_rate is what the rates of the elements start from: a number, not"
                " a variable"
            )
        low, high = _two(self, "learning_rate_range", learning_rate_range)
        down, up = _two(self, "etas", etas)
        if not 0 < low <= learning_rate <= high:
            raise FluidValueError(
                f"Rprop's learning_rate lies in learning_rate_range, above 0: {learning_rate} is"
                f" not within {low} to {high}"
            )
        if not 0 < down < 1 < up:
            raise FluidValueError(
                f"Rprop's etas are a factor below 1, above 0, and one above 1, not {down} and {up}"
            )
        super().__init__(float(learning_rate), parameter_list, None, grad_clip, name)
        self._range, self._etas = [low, high], [down, up]

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        rate = float(self._learning_rate)  # type: ignore[arg-type]
        return [
            Accumulator("prevs", "prev", "prev_out"),
            Accumulator("learning_rates", "learning_rate", "learning_rate_out", rate),
        ]

    def _more_inputs(self) -> Mapping[str, Any]:
        return {
            "learning_rate_range": assign(np.array(self._range, "float32")),
            "etas": assign(np.array(self._etas, "float32")),
        }


class ASGDUpdate(_Later):
    """Steps along the mean of the last batch_num gradients; op ``asgd``.

    State: ``<param>_d_k``, the sum of those gradients; ``<param>_y_k`` [batch_num, ...], the
    gradients, each in the row of its batch; ``<param>_m_k`` int64 [1], how many there were.
    """

    type = "asgd"

    def __init__(
        self, learning_rate: float | Variable = 0.001, batch_num: int = 1, **options: Any
    ) -> None:
        if isinstance(batch_num, bool) or not isinstance(batch_num, int):
            raise FluidTypeError(f"ASGD's batch_num is an integer, not {batch_num!r}")
        if batch_num < 1:
            raise FluidValueError(f"ASGD's batch_num is above 0, not {batch_num}")
        super().__init__(learning_rate, **options)
        self._batches = batch_num

    def _create_accumulators(self, block: Block, parameters: Iterable[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("d", param)
            self._add_accumulator("y", param, shape=[self._batches, *param.shape])
            self._add_accumulator("m", param, dtype="int64", shape=[1])

    def _append_optimize_op(
        self, block: Block, param_and_grad: tuple[Parameter, Variable]
    ) -> Operator:
        param, grad = param_and_grad
        d, held, seen = (self._get_accumulator(name, param) for name in ("d", "y", "m"))
        batches = layers.fill_constant([1], "int64", self._batches)
        row = layers.elementwise_mod(seen, batches)
        oldest = layers.reshape(layers.gather(held, row), list(param.shape))
        layers.increment(seen)
        inputs = {
            "param": param,
            "grad": grad,
            "learning_rate": self._create_param_lr(param_and_grad),
            "d": d,
            "y": oldest,
        }
        inputs["n"] = layers.cast(layers.elementwise_min(seen, batches), param.dtype)
        made = block.append_op(
            type=self.type, inputs=inputs, outputs={"param_out": param, "d_out": d, "y_out": oldest}
        )
        layers.assign(layers.scatter(held, row, layers.reshape(oldest, [1, *param.shape])), held)
        return made


def _two(owner: Any, what: str, given: Any) -> tuple[float, float]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise FluidTypeError(f"{type(owner).__name__}'s {what} is a pair of numbers, not {given!r}")
    numbers(owner, **{f"{what}[{i}]": v for i, v in enumerate(given)})
    return float(given[0]), float(given[1])
