"""Optimizers that wrap another one, and add ops before or after its ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import layers
from ..backward import append_backward
from ..errors import ArgumentError, FluidValueError, UnsupportedError
from ..graph.operator import Operator
from ..graph.program import Program, default_startup_program, program_guard
from ..graph.variable import Parameter, Variable
from ..layers.branches import Switch
from .base import Optimizer, Pair

Pairs = list[tuple[Parameter, Variable]]


class RecomputeOptimizer(Optimizer):
    """The wrapped optimizer with a backward pass that recomputes values between checkpoints instead
    of keeping them.

    optimizer: any other. Name the checkpoints by ``_set_checkpoints([variables])``, then minimize.
    The step needs memory for the checkpoints and for one segment between two of them, and computes
    the forward pass about twice. Raises FluidValueError if minimize is called before
    _set_checkpoints; UnsupportedError for ops that have blocks.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._checkpoints: Sequence[Variable | str] | None = None
        self._learning_rate = optimizer._learning_rate
        self._learning_rate_map = optimizer._learning_rate_map

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        self._checkpoints = checkpoints

    def load(self, stat_dict: Mapping[str, Any]) -> None:
        """Raises UnsupportedError, as in 1.8.5."""
        raise UnsupportedError(
            "RecomputeOptimizer does not load; load the program's variables by"
            " fluid.io.load_persistables"
        )

    def backward(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None, callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Pairs:  # fmt: skip
        """append_backward with the checkpoints."""
        self._dtype = loss.dtype
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return append_backward(
                loss, parameter_list, no_grad_set, callbacks, checkpoints=self._checkpoints
            )

    def apply_gradients(self, params_grads: Sequence[Pair]) -> list[Operator]:
        """The wrapped optimizer's."""
        return self._optimizer.apply_gradients(params_grads=params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[Pair]
    ) -> list[Operator]:
        """The wrapped optimizer's."""
        return self._optimizer.apply_optimize(
            loss, startup_program=startup_program, params_grads=params_grads
        )

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], Pairs]:  # fmt: skip
        """backward, then the wrapped optimizer's updates."""
        if not isinstance(loss, Variable):
            raise ArgumentError(f"minimize takes the loss as a Variable, not {loss!r}")
        if self._checkpoints is None:
            raise ArgumentError(
                "RecomputeOptimizer has no checkpoints; call _set_checkpoints([variables]) before"
                " minimize"
            )
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, pairs), pairs


class LookaheadOptimizer:
    """The wrapped optimizer, and slow copies of the parameters: after every k steps ``slow += alpha
    (param - slow)``, ``param = slow``.

    State: ``<param>@SLOW``, ``lookahead_k``, ``lookahead_alpha``, ``lookahead_step``. Raises
    FluidValueError for an alpha outside [0, 1], a k that is not a positive integer, and a missing
    optimizer.
    """

    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5) -> None:
        if inner_optimizer is None:
            raise ArgumentError("LookaheadOptimizer wraps an optimizer, not None")
        if not 0.0 <= alpha <= 1.0:
            raise ArgumentError(f"LookaheadOptimizer's alpha is between 0 and 1, not {alpha!r}")
        if not isinstance(k, int) or k <= 0:
            raise ArgumentError(f"LookaheadOptimizer's k is a positive integer, not {k!r}")
        self.inner_optimizer = inner_optimizer
        self.alpha = alpha
        self.k = k
        self.type = "lookahead"

    def minimize(self, loss: Variable, startup_program: Program | None = None) -> Any:
        """The wrapped optimizer's minimize, then the ops of the slow copies; returns the wrapped
        optimizer's result.
        """
        done = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        startup = startup_program or default_startup_program()
        block = loss.block
        slow = {p.name: _slow_copy(p, startup) for p in block.all_parameters()}
        k, alpha, step = (
            layers.create_global_var(
                name=f"lookahead_{name}", shape=[1], value=value, dtype=dtype, persistable=True
            )
            for name, value, dtype in (
                ("k", self.k, "int32"),
                ("alpha", float(self.alpha), "float32"),
                ("step", 0, "int32"),
            )
        )
        layers.increment(x=step, value=1.0, in_place=True)
        zero = layers.fill_constant(shape=[1], dtype="float32", value=0.0)
        one = layers.fill_constant(shape=[1], dtype="float32", value=1.0)
        mod = layers.elementwise_mod(step, k)
        with Switch() as switch:
            with switch.case(mod == zero):
                for name, kept in slow.items():
                    fast = block.var(name)
                    mixed = layers.elementwise_add(
                        layers.elementwise_mul(fast, _rate_in_dtype(alpha, fast)),
                        layers.elementwise_mul(
                            kept, _rate_in_dtype(layers.elementwise_sub(one, alpha), fast)
                        ),
                    )
                    layers.assign(input=mixed, output=kept)
                    layers.assign(input=mixed, output=fast)
            with switch.default():
                pass
        return done


def _rate_in_dtype(rate: Variable, param: Variable) -> Variable:
    """The rate, a float32, in the parameter's dtype."""
    return rate if rate.dtype == param.dtype else layers.cast(x=rate, dtype=param.dtype)


def _slow_copy(param: Parameter, startup: Program) -> Variable:
    """``<param>@SLOW`` of the main program, which the startup program sets to the parameter."""
    given: dict[str, Any] = {
        "name": param.name + "@SLOW",
        "shape": param.shape,
        "dtype": param.dtype,
        "persistable": True,
    }
    block = startup.global_block()
    made = block.create_var(**given)
    first = first_value(startup, param)
    block.append_op(type="assign", inputs={"X": first}, outputs={"Out": made})
    return param.block.create_var(**given)


def first_value(startup: Program, param: Parameter) -> Variable:
    """Set a parameter in the startup program. A traced program's startup program sets no
    parameters; the scope has them before.
    """
    block = startup.global_block()
    if not block.has_var(param.name):
        block.create_var(name=param.name, shape=param.shape, dtype=param.dtype, persistable=True)
    return block.var(param.name)


class PipelineOptimizer:
    """The wrapped optimizer. The result runs as one program, regardless of the sections, and gives
    the values of the plain program.

    cut_list: lists of variables that end the sections, the loss last. place_list: a place for each
    of the 2 n - 1 sections. concurrency_list, queue_size, sync_steps, start_cpu_core_id: settings
    of Paddle's threads; they change no value here. Raises FluidValueError for lists that do not fit
    each other.
    """

    def __init__(
        self, optimizer: Any, cut_list: Sequence[Sequence[Variable]] | None = None, place_list: Sequence[Any] | None = None,
        concurrency_list: Sequence[int] | None = None, queue_size: int = 30, sync_steps: int = 1, start_cpu_core_id: int = 0,
    ) -> None:  # fmt: skip
        self._optimizer = optimizer
        self._cut_list = list(cut_list or ())
        sections = max(2 * len(self._cut_list) - 1, 1)
        for name, given in (("place_list", place_list), ("concurrency_list", concurrency_list)):
            if given is not None and len(given) != sections:
                raise FluidValueError(
                    f"PipelineOptimizer: {len(self._cut_list)} lists of cut_list make {sections}"
                    f" sections, but {name} has {len(given)}"
                )
        self._turns = {
            "place_list": place_list, "concurrency_list": concurrency_list, "queue_size": queue_size, "sync_steps": sync_steps,
            "start_cpu_core_id": start_cpu_core_id,
        }  # fmt: skip

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """The wrapped optimizer's minimize. Raises FluidValueError for a cut that is not a variable
        of the loss's program.
        """
        block = loss.block.program.global_block()
        for cut in (v for cuts in self._cut_list for v in cuts):
            if not isinstance(cut, Variable) or not block.has_var(cut.name):
                raise FluidValueError(
                    "PipelineOptimizer's cut_list names variables of the loss's program, which"
                    f" {cut!r} is not"
                )
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)


__all__ = ["LookaheadOptimizer", "PipelineOptimizer", "RecomputeOptimizer"]
