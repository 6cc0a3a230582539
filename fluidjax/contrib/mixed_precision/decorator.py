"""decorate: an optimizer that trains in mixed precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import layers, unique_name
from ...base.dtypes import VarType, enum_of
from ...errors import FluidTypeError, FluidValueError
from ...graph.operator import Operator
from ...graph.program import Program, default_main_program
from ...graph.variable import Variable
from ...layers.control_flow import Switch
from ...optimizers.base import Optimizer
from .fp16_lists import AutoMixedPrecisionLists
from .fp16_utils import rewrite_program, update_loss_scaling, update_role_var_grad


class OptimizerWithMixedPrecision:
    """An optimizer's minimize, backward and apply_gradients, on a rewritten program and a scaled
    loss. See decorate.
    """

    def __init__(
        self, optimizer: Optimizer, amp_lists: AutoMixedPrecisionLists, init_loss_scaling: float, use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int, decr_every_n_nan_or_inf: int, incr_ratio: float, decr_ratio: float, dtype: Any = "float16",
    ) -> None:  # fmt: skip
        self._optimizer, self._amp_lists, self._dtype = optimizer, amp_lists, dtype
        self._train_program = default_main_program()
        self._scaled_loss: Variable | None = None
        self._loss_scaling = _kept("loss_scaling", init_loss_scaling, "float32")
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        if use_dynamic_loss_scaling:
            self._incr_every_n_steps = layers.fill_constant(
                shape=[1], dtype="int32", value=incr_every_n_steps
            )
            self._decr_every_n_nan_or_inf = layers.fill_constant(
                shape=[1], dtype="int32", value=decr_every_n_nan_or_inf
            )
            self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
            self._num_good_steps = _kept("num_good_steps", 0, "int32")
            self._num_bad_steps = _kept("num_bad_steps", 0, "int32")
        rate = optimizer._learning_rate
        if isinstance(rate, float):  # stays float32, whatever the loss's dtype
            optimizer._learning_rate_map[default_main_program()] = _kept(
                "learning_rate", rate, "float32"
            )

    def get_loss_scaling(self) -> Variable:
        """The variable that holds the scale."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The loss times the scale; None before backward."""
        return self._scaled_loss

    def backward(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None, callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[list[Any]]:  # fmt: skip
        """Rewrite the program, differentiate the scaled loss, and divide the gradients by the
        scale: [parameter, gradient] pairs.

        Raises the errors of Optimizer.backward, and FluidValueError for a loss in half precision
        (end in a mean).
        """
        rewrite_program(self._train_program, self._amp_lists, self._dtype)
        if loss.dtype != VarType.FP32:
            raise FluidValueError(
                f"the loss {loss.name!r} is in {self._dtype}; let it come of an op on the black"
                " list, such as mean"
            )
        self._scaled_loss = loss * self._loss_scaling
        pairs = self._optimizer.backward(
            self._scaled_loss, startup_program, parameter_list, no_grad_set, callbacks
        )
        update_role_var_grad(self._train_program, pairs)
        scaled: list[list[Any]] = []
        for param, grad in pairs:
            with self._train_program._optimized_guard([param, grad]):
                scaled.append([param, grad / self._loss_scaling])
        return scaled

    def apply_gradients(self, scaled_params_grads: Sequence[Sequence[Any]]) -> list[Operator]:
        """Append the update of the scale, zeros in place of gradients that are not finite, and the
        updates.
        """
        if self._use_dynamic_loss_scaling:
            sums = [layers.reduce_sum(grad) for _, grad in scaled_params_grads]
            finite = layers.isfinite(layers.reduce_sum(layers.concat(sums)))
            update_loss_scaling(
                finite, self._loss_scaling, self._num_good_steps, self._num_bad_steps, self._incr_every_n_steps,
                self._decr_every_n_nan_or_inf, self._incr_ratio, self._decr_ratio,
            )  # fmt: skip
            with Switch() as switch:
                with switch.case(finite):
                    pass
                with switch.default():
                    for _, grad in scaled_params_grads:
                        layers.assign(layers.zeros_like(grad), grad)
        return self._optimizer.apply_gradients(
            [(param, grad) for param, grad in scaled_params_grads]
        )

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], list[list[Any]]]:  # fmt: skip
        """backward and apply_gradients: the update ops, and [parameter, gradient] pairs. Raises
        their errors.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(pairs), pairs


def _kept(name: str, value: float, dtype: str) -> Variable:
    return layers.create_global_var(
        name=unique_name.generate(name), shape=[1], value=value, dtype=dtype, persistable=True
    )


def decorate(
    optimizer: Optimizer, amp_lists: AutoMixedPrecisionLists | None = None, init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000, decr_every_n_nan_or_inf: int = 2, incr_ratio: float = 2.0, decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True, dtype: Any = "float16",
) -> OptimizerWithMixedPrecision:  # fmt: skip
    """An optimizer whose minimize trains in mixed precision: parameters and updates in float32,
    white ops in `dtype`.

    amp_lists: which ops; default AutoMixedPrecisionLists(). The loss is multiplied by a scale,
    initially init_loss_scaling, and gradients are divided by it. use_dynamic_loss_scaling: the
    scale is multiplied by incr_ratio after incr_every_n_steps steps with finite gradients, and by
    decr_ratio after decr_every_n_nan_or_inf other steps, whose gradients count as zero. dtype:
    "float16" as in Fluid, or "bfloat16". Raises FluidTypeError unless given an optimizer,
    FluidValueError for other dtypes.
    """
    if not isinstance(optimizer, Optimizer):
        raise FluidTypeError(f"decorate takes an optimizer, not {type(optimizer).__name__}")
    if enum_of(dtype) not in (VarType.FP16, VarType.BF16):
        raise FluidValueError(f"mixed precision is of float16 or bfloat16, not {dtype!r}")
    return OptimizerWithMixedPrecision(
        optimizer, AutoMixedPrecisionLists() if amp_lists is None else amp_lists, init_loss_scaling, use_dynamic_loss_scaling,
        incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio, dtype,
    )  # fmt: skip


OptimizerWithMixedPrecison = OptimizerWithMixedPrecision  # the spelling before 1.8

__all__ = ["decorate"]
