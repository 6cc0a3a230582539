"""paddle.optimizer: Fluid's optimizers with the arguments of Paddle 2.0.

parameters is Fluid's parameter_list, weight_decay (a number for L2Decay) its regularization.
learning_rate is a number, a variable, or a scheduler of paddle.optimizer.lr; with a scheduler,
every run of the program uses its current rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ... import optimizer as fluid
from ...clip import GradientClipBase
from ...errors import FluidTypeError, FluidValueError, UnsupportedError
from ...graph.operator import Operator
from ...graph.program import Program
from ...graph.variable import Parameter, Variable
from ...optimizers.later import ASGDUpdate, NAdamUpdate, RAdamUpdate, RpropUpdate
from ...regularizer import L2Decay, Pair, WeightDecayRegularizer, append_regularization_ops
from ...state.scope import Scope, global_scope
from . import lr as lr
from .precision import MultiPrecision


def _decay(weight_decay: Any) -> Any:
    """A regularizer from a coefficient (L2), or a regularizer unchanged. Raises FluidTypeError for
    anything else.
    """
    if weight_decay is None or isinstance(weight_decay, WeightDecayRegularizer):
        return weight_decay
    if isinstance(weight_decay, int | float) and not isinstance(weight_decay, bool):
        return L2Decay(float(weight_decay))
    raise FluidTypeError(
        "weight_decay is a number or a regularizer such as paddle.regularizer.L2Decay(1e-4), not"
        f" {weight_decay!r}"
    )


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A learning rate's variable, which a run sets from a scheduler."""

    name: str
    scheduler: lr.LRScheduler

    @contextmanager
    def set_in(self, scope: Scope) -> Iterator[None]:
        """The current rate is in a scope, if the startup program has made the variable; the rate
        before it again if the run raises.
        """
        held = scope.find_var(self.name)
        if held is None or held.value is None:
            yield
            return
        before = held.value
        held.set(np.full([1], self.scheduler(), np.asarray(before).dtype))
        try:
            yield
        except BaseException:
            held.set(before)
            raise


def register_schedule(optimizer: Any, updates: Any, program: Program) -> None:
    """Make runs of a program use the rate of an optimizer's scheduler, if it has one; updates: the
    optimizer with that rate.
    """
    scheduler = optimizer._scheduler if isinstance(optimizer, Static) else None
    rate = updates._global_learning_rate(program) if scheduler is not None else None
    if (
        scheduler is None
        or rate is None
        or any(s.name == rate.name for s in program.info.schedules)
    ):
        return
    program.update_info(schedules=(*program.info.schedules, Scheduled(rate.name, scheduler)))


class Static:
    """The additions of the 2.0 optimizers to Fluid's."""

    _learning_rate: float | Variable
    _learning_rate_map: dict[Program, Variable]
    _accumulators: dict[str, dict[str, Variable]]

    def __init__(self, learning_rate: Any, **options: Any) -> None:
        self._scheduler = learning_rate if isinstance(learning_rate, lr.LRScheduler) else None
        rate = learning_rate if self._scheduler is None else float(self._scheduler())
        super().__init__(learning_rate=rate, **options)  # type: ignore[call-arg]

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], list[tuple[Parameter, Variable]]]:
        """Append everything that one training step does after the loss, like Fluid's minimize.

        parameters: Parameters or names to update; default the optimizer's, else all trainable ones.
        """
        made = super().minimize(loss, startup_program, parameters, no_grad_set)  # type: ignore[misc]
        register_schedule(self, self, loss.block.program)
        return made

    def get_lr(self) -> float:
        """The scheduler's current rate; else the one that the last run used. Raises FluidValueError
        if there is none yet.
        """
        return self.current_step_lr() if self._scheduler is None else self._scheduler()  # type: ignore[attr-defined]

    def set_lr(self, value: float) -> None:
        """Set another rate: before minimize, or in the global scope. Raises FluidValueError if a
        scheduler sets the rate.

        Raises FluidTypeError unless it is a number.
        """
        if self._scheduler is not None:
            raise FluidValueError("set_lr: the scheduler sets the rate; change the scheduler")
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise FluidTypeError(f"set_lr takes a number, not {value!r}")
        self._learning_rate = float(value)
        for rate in self._learning_rate_map.values():
            held = global_scope().find_var(rate.name)
            if held is not None and held.value is not None:
                held.set(np.full([1], value, np.asarray(held.value).dtype))

    def set_lr_scheduler(self, scheduler: lr.LRScheduler) -> None:
        """Use the rate of a scheduler, from the next minimize on. Raises FluidTypeError for
        anything else.
        """
        if not isinstance(scheduler, lr.LRScheduler):
            raise FluidTypeError(
                f"set_lr_scheduler takes a scheduler of paddle.optimizer.lr, not {scheduler!r}"
            )
        self._scheduler, self._learning_rate = scheduler, float(scheduler())

    def state_dict(self) -> dict[str, Any]:
        """The accumulators' values in the global scope by name, and the scheduler's under
        "LR_Scheduler".
        """
        names: list[str] = self.get_opti_var_name_list()  # type: ignore[attr-defined]
        scope = global_scope()
        vars = {n: v for n in names if (v := scope.find_var(n)) is not None and not v.empty}
        values = scope.between_steps(names, lambda: {n: np.array(v.value) for n, v in vars.items()})
        return (
            values
            if self._scheduler is None
            else {**values, "LR_Scheduler": self._scheduler.state_dict()}
        )

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Put the values from state_dict into the global scope and the scheduler; other names are
        ignored.

        Raises FluidValueError if a value's shape differs from the accumulator's; then nothing is
        set.
        """
        names = self.get_opti_var_name_list()  # type: ignore[attr-defined]
        given = {n: np.asarray(state_dict[n]) for n in names if n in state_dict}
        shapes = {
            v.name: tuple(v.shape) for held in self._accumulators.values() for v in held.values()
        }
        for name, value in given.items():
            if value.shape != shapes[name]:
                raise FluidValueError(
                    f"{name!r} has shape {list(shapes[name])}, but its value has"
                    f" {list(value.shape)}"
                )
        if self._scheduler is not None and "LR_Scheduler" in state_dict:
            self._scheduler.set_state_dict(state_dict["LR_Scheduler"])
        for name, value in given.items():
            global_scope().var(name).set(value)

    def step(self) -> NoReturn:
        """Not supported. Raises UnsupportedError."""
        raise UnsupportedError(
            "optimizer.step() belongs to dynamic mode; in a static program minimize(loss) appends"
            " the update"
        )

    def append_regularization_ops(
        self,
        parameters_and_grads: Sequence[Pair],
        regularization: WeightDecayRegularizer | None = None,
    ) -> list[Pair]:
        """The pairs, with the decay of each parameter's regularizer (default: this one) added to
        its gradient.
        """
        return append_regularization_ops(parameters_and_grads, regularization)

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Does nothing: every run computes new gradients."""

    clear_gradients = clear_grad


class SGD(Static, MultiPrecision, fluid.SGDOptimizer):
    """``param -= lr * grad``: fluid.optimizer.SGD. multi_precision: 16-bit parameters are updated
    by copies in float32.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            multi_precision=multi_precision,
            name=name,
        )


class Momentum(Static, MultiPrecision, fluid.MomentumOptimizer):
    """``velocity = momentum * velocity + rescale_grad * grad``, then ``param -= lr * velocity``:
    fluid.optimizer.Momentum.

    An L2 weight_decay is an attribute of the op, for parameters without a regularizer.
    multi_precision: as in SGD. use_multi_tensor: one op for several parameters in Paddle; here
    there is one per parameter, and XLA fuses them.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        momentum: float = 0.9,
        parameters: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        decay = _decay(weight_decay)
        self._own_decay = decay if isinstance(decay, L2Decay) else None
        self._rescale_grad = float(rescale_grad)
        super().__init__(
            learning_rate=learning_rate,
            momentum=momentum,
            parameter_list=parameters,
            use_nesterov=use_nesterov,
            regularization=None if self._own_decay is not None else decay,
            grad_clip=grad_clip,
            multi_precision=multi_precision,
            name=name,
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        attrs = {**super().op_attributes(param), "rescale_grad": self._rescale_grad}
        if self._own_decay is None or param.regularizer is not None:
            return attrs
        return {
            **attrs,
            "regularization_method": "l2_decay",
            "regularization_coeff": self._own_decay.coefficient,
        }


class Adagrad(Static, fluid.AdagradOptimizer):
    """``moment += grad ** 2``; ``param -= lr * grad / (sqrt(moment) + epsilon)``:
    fluid.optimizer.Adagrad.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler,
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
    """Steps from running squares of gradients and of updates, times the learning rate:
    fluid.optimizer.Adadelta, which has no rate.
    """

    uses_learning_rate = True

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
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
    """``ms = rho * ms + (1 - rho) * grad ** 2``; ``mom = momentum * mom + lr * grad / sqrt(ms +
    epsilon)``: fluid.optimizer.RMSProp.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler,
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


class Adam(Static, MultiPrecision, fluid.AdamOptimizer):
    """Steps from running averages of the gradient and of its square: fluid.optimizer.Adam, with
    epsilon scaled as sqrt(1 - beta2^t).

    multi_precision, use_multi_tensor: as in Momentum.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
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
            lazy_mode=lazy_mode,
            multi_precision=multi_precision,
            name=name,
        )


class AdamW(Adam):
    """Adam with decoupled decay: ``param -= lr * weight_decay * param`` before Adam's step; op
    ``adamw``.

    lr_ratio: a function of a parameter that returns the factor of its rate. apply_decay_param_fun:
    a function of a parameter's name that returns whether it decays. Raises FluidTypeError for a
    weight_decay that is not a number.
    """

    type = "adamw"

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Sequence[Any] | None = None,
        weight_decay: float = 0.01,
        lr_ratio: Callable[[Any], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: GradientClipBase | None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if not isinstance(weight_decay, float | int):
            raise FluidTypeError(f"AdamW's weight_decay is a number, not {weight_decay!r}")
        super().__init__(
            learning_rate,
            beta1,
            beta2,
            epsilon,
            parameters,
            None,
            grad_clip,
            lazy_mode,
            multi_precision,
            use_multi_tensor=False,
            name=name,
        )
        self._coefficient, self._ratio, self._decays = (
            float(weight_decay),
            lr_ratio,
            apply_decay_param_fun,
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        decays = self._decays is None or self._decays(param.name)
        ratio = 1.0 if self._ratio is None else float(self._ratio(param))
        return {
            **super().op_attributes(param),
            "coeff": self._coefficient,
            "with_decay": bool(decays),
            "lr_ratio": ratio,
        }


class Adamax(Static, fluid.AdamaxOptimizer):
    """Adam with a running maximum in place of the average square: fluid.optimizer.Adamax."""

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
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


class Lamb(Static, MultiPrecision, fluid.LambOptimizer):
    """Adam's direction plus weight decay, scaled to the parameter's norm: fluid.optimizer.Lamb,
    with Adam's correction of the averages.

    With a decay of 0 nothing is scaled, unless always_adapt. multi_precision: as in SGD.
    """

    _writes_pows = True

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        parameters: Sequence[Any] | None = None,
        grad_clip: GradientClipBase | None = None,
        exclude_from_weight_decay_fn: Any = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        self._always_adapt = bool(always_adapt)
        super().__init__(
            learning_rate=learning_rate,
            lamb_weight_decay=lamb_weight_decay,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            parameter_list=parameters,
            grad_clip=grad_clip,
            exclude_from_weight_decay_fn=exclude_from_weight_decay_fn,
            multi_precision=multi_precision,
            name=name,
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        return {**super().op_attributes(param), "always_adapt": self._always_adapt}


class NAdam(Static, NAdamUpdate):
    """Adam with Nesterov's look ahead: ``mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2)`` takes
    beta1's place; Paddle 3's op ``nadam``.

    Raises FluidTypeError for a beta1, beta2, epsilon or momentum_decay that is not a number,
    FluidValueError for a beta outside of [0, 1).
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        momentum_decay: float = 0.004,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            momentum_decay=momentum_decay,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


class RAdam(Static, RAdamUpdate):
    """Rectified Adam: a step uses the gradient's average alone while too few gradients have been
    seen to estimate the variance; op ``radam``.

    Raises FluidTypeError for a beta1, beta2 or epsilon that is not a number, FluidValueError for a
    beta outside of [0, 1).
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
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


class Rprop(Static, RpropUpdate):
    """Steps by the gradient's sign, with a size per element: multiplied by etas[1] while the sign
    stays, by etas[0] if it changes, within learning_rate_range; Paddle 3's op ``rprop``. For whole
    batches.

    learning_rate is the initial size. Raises FluidValueError if it is outside of the range or etas
    are not below and above 1, FluidTypeError for a variable or a scheduler, UnsupportedError for
    multi_precision.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        learning_rate_range: Sequence[float] = (1e-05, 50),
        parameters: Sequence[Any] | None = None,
        etas: Sequence[float] = (0.5, 1.2),
        grad_clip: GradientClipBase | None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if multi_precision:
            raise UnsupportedError(
                "Rprop has no multi_precision: its parameters are float32 or float64 here"
            )
        if isinstance(learning_rate, lr.LRScheduler):
            raise FluidTypeError(
                "Rprop's learning_rate is where the rates of its elements start, so it takes no"
                " scheduler"
            )
        super().__init__(
            learning_rate=learning_rate,
            learning_rate_range=learning_rate_range,
            etas=etas,
            parameter_list=parameters,
            grad_clip=grad_clip,
            name=name,
        )


class ASGD(Static, ASGDUpdate):
    """Steps along the mean of the last batch_num gradients, all of which are stored: averaged SGD
    over the batches of a pass; op ``asgd``.

    Computed as in Paddle 3's dynamic mode; with batch_num above 1 its static mode loses the stored
    gradients. Raises FluidTypeError, FluidValueError for a batch_num that is not an integer above
    0, UnsupportedError for multi_precision.
    """

    def __init__(
        self,
        learning_rate: float | Variable | lr.LRScheduler = 0.001,
        batch_num: int = 1,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: GradientClipBase | None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if multi_precision:
            raise UnsupportedError(
                "ASGD has no multi_precision: its parameters are float32 or float64 here"
            )
        super().__init__(
            learning_rate=learning_rate,
            batch_num=batch_num,
            parameter_list=parameters,
            regularization=_decay(weight_decay),
            grad_clip=grad_clip,
            name=name,
        )


__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lamb", "Momentum", "NAdam", "RAdam", "RMSProp", "Rprop", "lr",
]  # fmt: skip
