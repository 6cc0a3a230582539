"""Averages of parameters over training steps, which replace the parameters for evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import layers, unique_name
from ..base.dtypes import VarType
from ..errors import FluidTypeError
from ..graph.block import Block
from ..graph.name_scope import name_scope
from ..graph.program import Program, default_main_program, program_guard
from ..graph.variable import Parameter, Variable
from ..layers.branches import Switch
from ..state.scope import global_scope
from .base import Accumulator, Optimizer
from .checks import numbers
from .state import persistable


def _averaged_parameters(prefix: str, suffix: str) -> list[tuple[Parameter, Variable]]:
    """The main program's parameters that take part, each with the variable that stores its value
    while averages are applied.
    """
    block = default_main_program().global_block()
    pairs = []
    for param in block.all_parameters():
        if param.do_model_average is False:
            continue
        name = unique_name.generate(f"{prefix}{param.name}.{suffix}")
        kept = param.block.create_var(
            name=name, shape=param.shape, dtype=param.dtype, persistable=False, stop_gradient=True
        )
        pairs.append((param, kept))
    return pairs


def _restoring(pairs: list[tuple[Parameter, Variable]]) -> Program:
    """A program that restores every parameter's own value."""
    program = Program()
    block = program.global_block()
    with program_guard(main_program=program):
        for param, kept in pairs:
            own, saved = block._clone_variable(param), block._clone_variable(kept)
            layers.assign(input=saved, output=own)
    return program


class _Average:
    """apply and restore, which run the two programs that a subclass builds."""

    apply_program: Program
    restore_program: Program

    @contextlib.contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Set parameters to their averages within the block, and restore their own values
        afterwards unless need_restore=False.
        """
        self._put_averages(executor)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def _put_averages(self, executor: Any) -> None:
        executor.run(self.apply_program)

    def restore(self, executor: Any) -> None:
        """Restore the parameters' own values after ``apply(need_restore=False)``."""
        executor.run(self.restore_program)


class ModelAverage(_Average, Optimizer):
    """The mean of each parameter over a window of recent steps.

    The window grows with training: ``average_window_rate`` times the number of updates, at least
    min_average_window and at most max_average_window. Create it after the optimizer's minimize, in
    the same program: every run of the program then adds to the sums. Parameters with
    ``ParamAttr(do_model_average=False)`` are left out. regularization: has no effect, as in Fluid.
    name: a part of the names of the state. State of ``<param>``: ``_sum_1_k``, ``_sum_2_k``,
    ``_sum_3_k`` of its shape, and int64 [1] ``_num_accumulates_k``, ``_old_num_accumulates_k``,
    ``_num_updates_k``.
    """

    type = "average_accumulates"

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: Any = None,
        name: str | None = None,
    ) -> None:
        numbers(
            self,
            average_window_rate=average_window_rate,
            min_average_window=min_average_window,
            max_average_window=max_average_window,
        )
        super().__init__(0.0, regularization=regularization, name=name)
        self.average_window = average_window_rate
        self.min_average_window = min_average_window
        self.max_average_window = max_average_window
        self.params_grads = _averaged_parameters("", "tmp")
        for param, kept in self.params_grads:
            with param.block.program._optimized_guard([param, kept]), name_scope("move_average"):
                self._append_average_accumulate_op(param)
        self.apply_program = Program()
        block = self.apply_program.global_block()
        with program_guard(main_program=self.apply_program):
            for pair in self.params_grads:
                self._add_average_apply_op(block, pair)
        self.restore_program = _restoring(self.params_grads)

    def _accumulator_specs(self) -> tuple[Accumulator, ...]:
        sums = tuple(Accumulator(f"sum_{i}", f"in_sum_{i}", f"out_sum_{i}") for i in (1, 2, 3))
        counts = ("num_accumulates", "old_num_accumulates", "num_updates")
        return sums + tuple(Accumulator(n, f"in_{n}", f"out_{n}", scalar=True) for n in counts)

    def _append_average_accumulate_op(self, param: Parameter) -> None:
        inputs: dict[str, Any] = {"param": param}
        outputs: dict[str, Any] = {}
        for a in self._accumulator_specs():
            count: dict[str, Any] = {"dtype": "int64", "shape": [1]} if a.scalar else {}
            var = self._add_accumulator(a.name, param, **count)
            inputs[a.slot] = var
            outputs[str(a.out)] = var
        default_main_program().global_block().append_op(
            type=self.type,
            inputs=inputs,
            outputs=outputs,
            attrs={
                "average_window": self.average_window,
                "min_average_window": self.min_average_window,
                "max_average_window": self.max_average_window,
            },
        )

    def _add_average_apply_op(self, block: Block, pair: tuple[Parameter, Variable]) -> None:
        """``kept = param; param = (sum_1 + sum_2 + sum_3) / (num_accumulates +
        old_num_accumulates)``.
        """
        param, kept = (block._clone_variable(v) for v in pair)
        held = {
            a.name: block._clone_variable(self._get_accumulator(a.name, pair[0]))
            for a in self._accumulator_specs()
        }
        layers.assign(input=param, output=kept)
        count = layers.sum(x=[held["num_accumulates"], held["old_num_accumulates"]])
        total = layers.sum(x=[held["sum_1"], held["sum_2"], held["sum_3"]])
        dtype = "float32" if self._dtype is None else self._dtype
        count = layers.cast(x=count, dtype=dtype)
        total = layers.cast(x=total, dtype=dtype)
        block.append_op(
            type="elementwise_div",
            inputs={"X": total, "Y": count},
            outputs={"Out": param},
            attrs={"axis": -1},
        )


class ExponentialMovingAverage(_Average):
    """``ema = decay * ema + (1 - decay) * param`` at each run, after :meth:`update` was called.

    :meth:`apply` sets parameters to ``ema / (1 - decay^t)``, where t is the number of updates: the
    average starts at 0. decay: a number. thres_steps: a Variable of shape [1], a step count; the
    decay is then ``min(decay, (1 + thres_steps) / (10 + thres_steps))``. name: a prefix of the
    names of the averages. State: ``<name><param>_ema_k`` of the parameter's shape,
    ``scheduled_ema_decay_rate``, ``@EMA_STEP_COUNTER@``.

    `apply_program`, as Fluid 1.8.5 writes it, leaves the corrected value in ``_ema_k`` itself.
    :meth:`apply` restores the uncorrected average afterwards, so that it does not disturb training;
    1.8.5 did not. Raises FluidTypeError for a thres_steps that is not a Variable.
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None
    ) -> None:
        numbers(self, decay=decay)
        if thres_steps is not None and not isinstance(thres_steps, Variable):
            raise FluidTypeError(
                "ExponentialMovingAverage's thres_steps is a Variable that counts steps, not"
                f" {thres_steps!r}"
            )
        self._decay = float(decay)
        self._thres_steps = thres_steps
        self._name = name or ""
        self._decay_var = self._get_ema_decay()
        self._step_counter_name = "@EMA_STEP_COUNTER@"
        self._params_tmps = _averaged_parameters(self._name, "ema_tmp")
        self._ema_vars: dict[str, Variable] = {}
        for param, kept in self._params_tmps:
            with param.block.program._optimized_guard([param, kept]), name_scope("moving_average"):
                self._ema_vars[param.name] = self._create_ema_vars(param)
        self.apply_program = self._applying()
        self.restore_program = _restoring(self._params_tmps)

    def _get_ema_decay(self) -> Variable:
        """The decay's variable, which each step sets if there is a schedule."""
        with default_main_program()._lr_schedule_guard():
            var = persistable(
                "scheduled_ema_decay_rate", [1], "float32", self._decay, stop_gradient=True
            )
            steps = self._thres_steps
            if steps is not None:
                if steps.dtype != VarType.FP32:
                    steps = layers.cast(x=steps, dtype="float32")
                growing = (steps + 1.0) / (steps + 10.0)
                with Switch() as switch:
                    with switch.case(growing < self._decay):
                        layers.assign(growing, var)
                    with switch.default():
                        layers.assign(np.array([self._decay], dtype=np.float32), var)
        return var

    def _create_ema_vars(self, param: Parameter) -> Variable:
        name = unique_name.generate(f"{self._name}{param.name}_ema")
        return persistable(name, param.shape, param.dtype, 0.0, stop_gradient=True)

    def _applying(self) -> Program:
        """``kept = param; param = ema / (1 - decay^t)`` for every parameter."""
        program = Program()
        block = program.global_block()
        with program_guard(main_program=program):
            decay = block._clone_variable(self._decay_var)
            counter = persistable(self._step_counter_name, [1], "int64", 0, stop_gradient=True)
            step = layers.cast(counter, "float32")
            power = layers.elementwise_pow(decay, step)
            for pair in self._params_tmps:
                param, kept = (block._clone_variable(v) for v in pair)
                ema = block._clone_variable(self._ema_vars[param.name])
                layers.assign(input=param, output=kept)
                with Switch() as switch, switch.case(step > 0):
                    layers.assign(output=ema, input=ema / (1.0 - power))
                layers.assign(input=ema, output=param)
        return program

    def update(self) -> None:
        """Append the ops that update the averages to the main program. Call it once, after
        minimize.
        """
        layers.autoincreased_step_counter(counter_name=self._step_counter_name)
        for param, kept in self._params_tmps:
            with param.block.program._optimized_guard([param, kept]), name_scope("moving_average"):
                ema = self._ema_vars[param.name]
                layers.assign(
                    input=ema * self._decay_var + param * (1.0 - self._decay_var), output=ema
                )

    def _put_averages(self, executor: Any) -> None:
        """Restore the averages that training continues with, because the program corrects them in
        place.
        """
        scope = global_scope()
        held = [var for v in self._ema_vars.values() if (var := scope.find_var(v.name)) is not None]
        before = [np.array(var.value) for var in held]
        super()._put_averages(executor)
        for var, value in zip(held, before, strict=True):
            var.set(value)
