"""GradientMergeOptimizer: sums the gradients of several runs, and updates in every k-th run (Paddle
2.0's form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import layers
from ..base.dtypes import VarType
from ..errors import ArgumentError, UnsupportedError
from ..graph.operator import Operator
from ..graph.program import Program, default_main_program, default_startup_program, program_guard
from ..graph.variable import Parameter, Variable
from ..initializer import Constant
from ..layers.branches import cond
from .base import Pair, updates_within

# the suffix of the name of a parameter's gradient sum
MERGED = "@GRAD@GradientMerge"
CONDITION = "gradient_merge_cond"


class GradientMergeOptimizer:
    """The wrapped optimizer, which updates in every k_steps-th run by the sum of the gradients
    since the last update (avg: their mean).

    With a mean loss and avg, k runs are one step on their batches together. Clipping, weight decay
    and the state's own counters use the merged gradient, once in k runs; a schedule of the learning
    rate counts runs. A test clone of the program does not count. State:
    ``<param>@GRAD@GradientMerge``, ``gradient_merge_k``, ``gradient_merge_zero``,
    ``gradient_merge_step``. Raises FluidValueError for a missing optimizer and for k_steps that are
    not a positive integer; minimize raises FluidValueError for a parameter_list or no_grad_set, as
    in Paddle, and UnsupportedError for sparse gradients.
    """

    GRAD_MERGE_COND_NAME = "grad_merge_cond_name"

    def __init__(self, inner_optimizer: Any, k_steps: int = 1, avg: bool = True) -> None:
        if inner_optimizer is None:
            raise ArgumentError("GradientMergeOptimizer wraps an optimizer, not None")
        self.inner_optimizer = inner_optimizer
        self.type = "gradient_merge"
        self._set_k_steps(k_steps)
        self._set_avg(avg)

    def _set_k_steps(self, k_steps: int) -> None:
        if not isinstance(k_steps, int) or isinstance(k_steps, bool) or k_steps <= 0:
            raise ArgumentError(
                f"GradientMergeOptimizer's k_steps is a positive integer, not {k_steps!r}"
            )
        self.k_steps = k_steps

    def _set_avg(self, avg: bool) -> None:
        self.avg = bool(avg)

    def backward(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None, callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[Any]:  # fmt: skip
        """The wrapped optimizer's."""
        if not isinstance(loss, Variable):
            raise ArgumentError(f"minimize takes the loss as a Variable, not {loss!r}")
        for name, given in (("parameter_list", parameter_list), ("no_grad_set", no_grad_set)):
            if given is not None:
                raise ArgumentError(
                    f"GradientMergeOptimizer takes no {name}; give it to the optimizer inside, or"
                    " set stop_gradient"
                )
        return list(self.inner_optimizer.backward(loss, startup_program=startup_program))

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[Pair]
    ) -> list[Operator]:
        """apply_gradients in the program of `loss`."""
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(params_grads)

    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Operator]:
        """Append the counter, the sums, and the block that updates; returns the ops of the
        update.
        """
        main = default_main_program()
        pairs = [(p, g) for p, g in params_grads if g is not None]
        for param, grad in pairs:
            if grad.type == VarType.SELECTED_ROWS:
                raise UnsupportedError(
                    f"GradientMergeOptimizer adds up dense gradients; that of {param.name!r} is"
                    " sparse: leave is_sparse out of the layer"
                )
        with main._optimized_guard([]):
            due = self._append_counter(main)
        _remove_pairs(main, {p.name for p, _ in pairs})
        merged = [(p, _append_sum(p, g)) for p, g in pairs]
        ops: list[Operator] = []

        def update() -> None:
            block = main.current_block()
            for _, total in merged if self.avg else ():
                block.append_op(
                    type="scale", inputs={"X": total}, outputs={"Out": total},
                    attrs={"scale": 1.0 / self.k_steps, "bias": 0.0, "bias_after_scale": False, "op_role": _BACKWARD},
                )  # fmt: skip
            with updates_within(block):
                ops.extend(self.inner_optimizer.apply_gradients(merged))
            for param, total in merged:
                with main._optimized_guard([param, total]):
                    layers.fill_constant(
                        shape=list(total.shape), dtype=total.dtype, value=0.0, out=total
                    )

        with main._optimized_guard([]):
            cond(due, true_fn=update, false_fn=None)
        return ops

    def _append_counter(self, main: Program) -> Variable:
        """Append the counter; returns a bool that is true in every k_steps-th run."""
        k, zero, step = (
            layers.create_global_var(
                name=f"gradient_merge_{n}",
                shape=[1],
                value=v,
                dtype="int32",
                persistable=True,
                force_cpu=True,
            )
            for n, v in (("k", self.k_steps), ("zero", 0), ("step", 0))
        )
        block = main.global_block()
        due = block.create_var(name=CONDITION, shape=[1], dtype="bool")
        layers.increment(x=step, value=1.0)
        block.append_op(
            type="elementwise_mod",
            inputs={"X": step, "Y": k},
            outputs={"Out": step},
            attrs={"axis": -1},
        )
        block.append_op(type="equal", inputs={"X": step, "Y": zero}, outputs={"Out": due})
        return due

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[list[Operator], list[Any]]:  # fmt: skip
        """backward and apply_optimize; returns the ops of the update, and (parameter, gradient of
        one run) pairs.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, pairs), pairs


_BACKWARD = 1  # Fluid's op role, by which rewrites for several ranks find these ops


def _append_sum(param: Parameter, grad: Variable) -> Variable:
    """``<param>@GRAD@GradientMerge`` of both programs, and the op that adds the gradient to it."""
    given: dict[str, Any] = {
        "name": param.name + MERGED,
        "shape": param.shape,
        "dtype": param.dtype,
        "persistable": True,
    }
    total = param.block.program.global_block().create_var(**given)
    start = default_startup_program().global_block()
    Constant(0.0)(start.create_var(**given), start)
    total.block.append_op(
        type="elementwise_add", inputs={"X": grad, "Y": total}, outputs={"Out": total},
        attrs={"axis": -1, "op_role": _BACKWARD, "op_role_var": [param.name, total.name]},
    )  # fmt: skip
    return total


def _remove_pairs(main: Program, params: set[str]) -> None:
    """Remove these parameters' pairs from ops of the backward part, because the sums complete the
    gradients now.
    """
    for op in main.global_block().ops:
        named = list(op.desc.attrs.get("op_role_var", ()))
        if not params.isdisjoint(named[::2]):
            op._remove_attr("op_role_var")
            rest = [
                n
                for p, g in zip(named[::2], named[1::2], strict=True)
                if p not in params
                for n in (p, g)
            ]
            if rest:
                op._set_attr("op_role_var", rest)


__all__ = ["CONDITION", "MERGED", "GradientMergeOptimizer"]
