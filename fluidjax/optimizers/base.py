"""The base of all optimizers: backward, clipping, weight decay, then one update op for each
parameter in order of name.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import unique_name
from ..backward import append_backward
from ..backward.differentiate import gradients_of
from ..base.dtypes import VarType
from ..base.within import within
from ..clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from ..errors import ArgumentError, FluidTypeError, FluidValueError, OneTableError
from ..graph.block import Block
from ..graph.device_guard import device_guard, device_of
from ..graph.name_scope import name_scope
from ..graph.operator import Operator
from ..graph.program import Program, default_main_program, default_startup_program, program_guard
from ..graph.variable import Parameter, Variable
from ..ir import text
from ..regularizer import Pair, append_regularization_ops
from ..state.scope import global_scope
from .state import persistable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A state variable for each parameter: its name, the slots of the update op that read and write
    it, its initial value.

    `scalar`: shape [1] instead of the parameter's. `out` None: the update op only reads it.
    """

    name: str
    slot: str
    out: str | None
    fill: float = 0.0
    scalar: bool = False


def _is_traced_scalar(loss: Variable) -> bool:
    """Whether a loss is a scalar of shape [], as JAX functions return it, or depends on one."""
    return not loss.shape and any(op.type.startswith("jax.") for op in loss.block.ops)


class Optimizer:
    """Base class. A subclass names its update op (`type`), its accumulators and its attributes.

    learning_rate: a float, or a Variable of shape [1] (a schedule). parameter_list: the parameters
    to update, as Variables or names; default all trainable ones. regularization: weight decay for
    parameters without a regularizer of their own. grad_clip: a gradient clip. name: a part of the
    accumulators' names.

    Raises FluidTypeError for a learning_rate or grad_clip of another type.
    """

    type = ""
    uses_learning_rate = True  # whether the update op has a LearningRate slot

    def __init__(
        self,
        learning_rate: float | Variable,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(learning_rate, float | Variable):
            raise ArgumentError(
                f"{type(self).__name__}'s learning_rate is a float or a Variable, "
                f"not {learning_rate!r} ({type(learning_rate).__name__})"
            )
        self._init_common(parameter_list, regularization, grad_clip, name)
        self._learning_rate: float | Variable = learning_rate
        if isinstance(learning_rate, Variable):
            if learning_rate.desc.shape is not None and math.prod(learning_rate.shape) != 1:
                raise FluidValueError(
                    f"{type(self).__name__}'s learning_rate has one element; variable"
                    f" {learning_rate.name!r} has shape {list(learning_rate.shape)}"
                )
            self._learning_rate_map[default_main_program()] = learning_rate

    def _init_common(
        self, parameter_list: Any, regularization: Any, grad_clip: Any, name: str | None
    ) -> None:
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            raise FluidTypeError(
                f"{type(self).__name__}'s grad_clip is a clip such as GradientClipByNorm(1.0), not"
                f" {grad_clip!r}"
            )
        if regularization is not None and not callable(regularization):
            raise FluidTypeError(
                f"{type(self).__name__}'s regularization is an object such as L2Decay(1e-4), not"
                f" {regularization!r}"
            )
        self._parameter_list = (
            list(parameter_list)
            if isinstance(parameter_list, list | tuple | set)
            else parameter_list
        )
        self._name = name
        self.regularization = regularization
        self._grad_clip = grad_clip
        self._dtype: VarType | None = None
        self._learning_rate_map: dict[Program, Variable] = {}
        self._accumulators: dict[str, dict[str, Variable]] = {}
        self._opti_name_list: list[str] = []

    # declarations of a subclass

    def _accumulator_specs(self) -> Iterable[Accumulator]:
        return ()

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {}

    def _more_inputs(self) -> Mapping[str, Any]:
        return {}

    def _also_updated(self) -> Mapping[str, Variable]:
        return {}

    # learning rate

    def _create_global_learning_rate(self) -> None:
        """Create ``learning_rate_k``, a persistable [1], unless this program has one already."""
        if self._global_learning_rate() is not None:
            return
        if not isinstance(self._learning_rate, float):
            raise FluidTypeError(
                f"{type(self).__name__}'s learning rate {self._learning_rate.name!r} is a variable"
                " of another program than the one that is minimized; make schedule and optimizer"
                " inside that program's program_guard"
            )
        dtype = "float32" if self._dtype is None else self._dtype
        name = unique_name.generate("learning_rate")
        self._learning_rate_map[default_main_program()] = persistable(
            name, [1], dtype, self._learning_rate, stop_gradient=True
        )

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The learning rate variable of a program, or None before minimize has made it."""
        return self._learning_rate_map.get(default_main_program() if program is None else program)

    def current_step_lr(self) -> float:
        """The learning rate of the last run: its variable's value in the global scope.

        Before minimize it is the given float. Raises FluidValueError if the variable has no value
        yet.
        """
        var = self._global_learning_rate()
        if var is None and isinstance(self._learning_rate, float):
            return self._learning_rate
        held = None if var is None else global_scope().find_var(var.name)
        if held is None or held.value is None:
            name = "" if var is None else f" {var.name!r}"
            raise FluidValueError(
                f"the learning rate variable{name} has no value in the global scope; run the"
                " startup program first"
            )
        return float(np.asarray(held.value).ravel()[0])

    def _create_param_lr(self, param_and_grad: tuple[Parameter, Variable | None]) -> Variable:
        """The learning rate of one parameter: the global one, scaled if
        ``ParamAttr(learning_rate=...)`` is not 1.
        """
        factor = param_and_grad[0].optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        rate = self._global_learning_rate()
        assert rate is not None
        if factor == 1.0:
            return rate
        with (
            default_main_program()._lr_schedule_guard(is_with_opt=True),
            name_scope("scale_with_param_lr"),
        ):
            return rate * factor

    # accumulators

    def _add_accumulator(
        self,
        name: str,
        param: Parameter,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
        type: Any = None,
    ) -> Variable:
        """Create the state variable `name` of a parameter. Raises FluidValueError if it exists
        already.
        """
        name = name if self._name is None else f"{self._name}_{name}"
        known = self._accumulators.setdefault(name, {})
        if param.name in known:
            raise FluidValueError(
                f"Accumulator {name} already exists for parameter {param.name}: this optimizer has"
                " updated it before; use another optimizer object for the second minimize"
            )
        var = persistable(
            unique_name.generate(f"{param.name}_{name}"),
            param.shape if shape is None else shape,
            dtype or param.dtype,
            fill_value,
            kind=param.type if type is None else type,
        )
        self._opti_name_list.append(var.name)
        known[param.name] = var
        return var

    def _get_accumulator(self, name: str, param: Parameter) -> Variable:
        """The state variable `name` of a parameter. Raises FluidValueError if there is none."""
        name = name if self._name is None else f"{self._name}_{name}"
        found = self._accumulators.get(name, {}).get(param.name)
        if found is None:
            raise FluidValueError(f"Accumulator {name} does not exist for parameter {param.name}")
        return found

    def get_opti_var_name_list(self) -> list[str]:
        """Names of all accumulators, in order of creation."""
        return list(self._opti_name_list)

    def _create_accumulators(self, block: Block, parameters: Iterable[Parameter]) -> None:
        for param in parameters:
            for a in self._accumulator_specs():
                scalar: dict[str, Any] = (
                    {"shape": [1], "type": VarType.LOD_TENSOR} if a.scalar else {}
                )
                self._add_accumulator(a.name, param, fill_value=a.fill, **scalar)

    # the update

    def _append_optimize_op(
        self, block: Block, param_and_grad: tuple[Parameter, Variable]
    ) -> Operator:
        """Append the op that updates one parameter."""
        param, grad = param_and_grad
        inputs: dict[str, Any] = {"Param": param, "Grad": grad}
        outputs: dict[str, Any] = {"ParamOut": param}
        if self.uses_learning_rate:
            inputs["LearningRate"] = self._create_param_lr(param_and_grad)
        for a in self._accumulator_specs():
            var = self._get_accumulator(a.name, param)
            inputs[a.slot] = var
            if a.out is not None:
                outputs[a.out] = var
        inputs.update(self._more_inputs())
        for slot, var in self._also_updated().items():
            inputs[slot] = outputs[f"{slot}Out"] = var
        return block.append_op(
            type=self.type, inputs=inputs, outputs=outputs, attrs=dict(self.op_attributes(param))
        )

    def _finish_update(self, block: Block, parameters_and_grads: Sequence[Pair]) -> None:
        """Append the ops that follow all updates."""

    def _create_optimization_pass(self, parameters_and_grads: Sequence[Pair]) -> list[Operator]:
        """Create the state and append the update ops; returns all appended ops."""
        block = default_main_program().current_block()
        start = len(block.ops)
        self._create_accumulators(block, [p for p, _ in parameters_and_grads if p.trainable])
        self._create_global_learning_rate()
        devices = _devices_of({param.name for param, _ in parameters_and_grads}, block)
        for param, grad in parameters_and_grads:
            if grad is None:
                continue
            with param.block.program._optimized_guard([param, grad]), name_scope("optimizer"):
                if param.trainable:
                    with device_guard(devices.get(param.name)):
                        self._append_optimize_op(block, (param, grad))
        self._finish_update(block, parameters_and_grads)
        return block.ops[start:]

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[tuple[Parameter, Variable]]:
        """Append the backward ops of `loss` (shape [1], or [] for a traced function); returns
        (parameter, gradient) pairs. First half of minimize, with the same defaults.

        The ops go into the program of `loss`, regardless of the current program_guard, as in 1.8.5.
        Raises FluidTypeError or FluidValueError for a loss that is not a Variable of one element,
        and FluidValueError if the current guard's program is a later one (a clone, the result of
        passes, a loaded one) with a variable of the loss's name.
        """
        if not isinstance(loss, Variable):
            raise ArgumentError(f"minimize takes the loss as a Variable, not {loss!r}")
        if tuple(loss.shape) != (1,) and not _is_traced_scalar(loss):
            raise ArgumentError(
                f"the loss to minimize has shape [1]; {loss.name!r} has {list(loss.shape)}; reduce"
                " it with layers.mean"
            )
        parameter_list = parameter_list or self._parameter_list
        if parameter_list is not None and not isinstance(parameter_list, list | tuple | set):
            raise FluidTypeError(
                f"parameter_list is a list of Parameters or their names, not {parameter_list!r}"
            )
        if not isinstance(no_grad_set, set | frozenset | list | tuple | None):
            raise FluidTypeError(
                "no_grad_set is a set, a list or a tuple of variables or their names, not"
                f" {no_grad_set!r}"
            )
        self._dtype = loss.dtype
        program = loss.block.program
        _refuse_namesake(loss, default_main_program())
        stopped = [*(p for p in program.all_parameters() if not p.trainable), *(no_grad_set or ())]
        with program_guard(program, startup_program or default_startup_program()):
            return append_backward(
                loss, parameter_list, stopped, [*(callbacks or ()), error_clip_callback]
            )

    def apply_gradients(self, params_grads: Sequence[Pair]) -> list[Operator]:
        """Append clipping, weight decay and the updates of (parameter, gradient) pairs to the
        default programs.

        Second half of minimize. Pairs are taken in order of parameter name; those without a
        gradient are not updated. Returns the ops of the update.
        """
        with _in_gradient_block(default_main_program()):
            return self._applied(sorted(params_grads, key=lambda pair: pair[0].name))

    def _applied(self, pairs: Sequence[Pair]) -> list[Operator]:
        pairs, table_op = self._update_distributed_table(pairs)
        pairs = (
            append_gradient_clip_ops(pairs) if self._grad_clip is None else self._grad_clip(pairs)
        )
        pairs = append_regularization_ops(pairs, self.regularization)
        ops = self._create_optimization_pass(pairs)
        return ops if table_op is None else [*ops, table_op]

    def _update_distributed_table(
        self, pairs: Sequence[Pair]
    ) -> tuple[Sequence[Pair], Operator | None]:
        """Update a table on pservers by plain ``sgd``, regardless of the optimizer; returns the
        other pairs, and that op.
        """
        table = _distributed_table(default_main_program())
        mine = [(p, g) for p, g in pairs if p.name == table]
        if not mine:
            return pairs, None
        param, grad = mine[0]
        if self.type != "sgd":
            _logger.warning(
                "distributed lookup table %r is updated with sgd instead of %s", table, self.type
            )
        with param.block.program._optimized_guard([param, grad]), name_scope("optimizer"):
            self._create_global_learning_rate()
            op = (
                default_main_program()
                .global_block()
                .append_op(
                    type="sgd",
                    inputs={
                        "Param": param,
                        "Grad": grad,
                        "LearningRate": self._create_param_lr((param, grad)),
                    },
                    outputs={"ParamOut": param},
                )
            )
        return [(p, g) for p, g in pairs if p.name != table], op

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[Pair]
    ) -> list[Operator]:
        """apply_gradients in the program of `loss`, its state initialised in `startup_program` (or
        the default one).
        """
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], list[tuple[Parameter, Variable]]]:
        """Append all ops of a training step after the loss; within a case of cond or Switch, to its
        gradient block.

        loss: a Variable of shape [1]. startup_program: the program that initialises the state.
        parameter_list: Parameters or names to update (default: the optimizer's own list, else all
        trainable ones). no_grad_set: Variables or names to treat as constants. Returns the update
        ops, and (parameter, gradient) pairs in backward's order, before clipping.
        """
        params_grads = self.backward(
            loss,
            startup_program=startup_program,
            parameter_list=parameter_list,
            no_grad_set=no_grad_set,
        )
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def _backward(self, *args: Any, **kwargs: Any) -> list[tuple[Parameter, Variable]]:
        """The name of backward since 1.3."""
        return self.backward(*args, **kwargs)


def _devices_of(params: Collection[str], block: Block) -> dict[str, str | None]:
    """For each of these parameters, the device that device_guard named for the first op that reads
    it.
    """
    found: dict[str, str | None] = {}
    for op in block.ops:
        for name in op.desc.reads:
            if name in params and name not in found:
                found[name] = device_of(op)
    return found


_UPDATED: ContextVar[Block | None] = ContextVar("block of updates", default=None)


def updates_within(block: Block) -> contextlib.AbstractContextManager[None]:
    """Within the block, apply_gradients in this block of a case appends to the block, not to a
    gradient block.
    """
    return within(_UPDATED, block)


@contextlib.contextmanager
def _in_gradient_block(program: Program) -> Iterator[None]:
    """Within a case, ops go to its gradient block. Raises FluidValueError if there is none."""
    current = program.current_block()
    if not current.idx or current is _UPDATED.get():
        yield
        return
    block = gradients_of(current)
    if block is None:
        raise FluidValueError(
            "the updates of a case (of cond, switch_case, Switch) are in its gradient block, and "
            "this block has none; call minimize, or append_backward, in it first"
        )
    program.current_block_idx = block.idx
    try:
        yield
    finally:
        program.current_block_idx = current.idx


def _refuse_namesake(loss: Variable, guarded: Program) -> None:
    """Raises FluidValueError if `guarded` is a later program than the loss's and has a variable of
    its name.

    In all other cases 1.8.5's rule holds, because scripts rely on it: the loss decides the program,
    with or without a guard.
    """
    own = loss.block.program
    if guarded.serial > own.serial and guarded.global_block().has_var(loss.name):
        raise FluidValueError(
            f"the loss {loss.name!r} is a variable of the program that has {_size(own)}, which this"
            " would train; the program guard in force is of another program, made later, that has"
            f" {_size(guarded)} and a variable of the same name; take the loss from there,"
            f" program.global_block().var({loss.name!r}), or leave the guard"
        )


def _size(program: Program) -> str:
    """``1 block, 4 ops, 7 variables, ...``: the beginning of a program's printed form."""
    return text.summary(program.desc).splitlines()[0]


def _distributed_table(program: Program) -> str | None:
    """The table of the program's distributed ``lookup_table`` ops. Raises OneTableError if there
    are several.
    """
    tables = {
        op.input("W")[0]
        for op in program.global_block().ops
        if op.type == "lookup_table" and op.desc.attrs.get("is_distributed")
    }
    if len(tables) > 1:
        raise OneTableError(
            "all distributed lookup_table ops should have only one table, but there are"
            f" {sorted(tables)}"
        )
    return next(iter(tables), None)
