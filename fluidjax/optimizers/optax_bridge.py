"""Any optax transformation as a Fluid optimizer."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import unique_name
from ..clip import GradientClipBase
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..graph.name_scope import name_scope
from ..graph.operator import Operator
from ..graph.program import Program, default_main_program, default_startup_program
from ..graph.variable import Parameter, Variable
from ..ops.optax_bridge import (
    TRANSFORMATIONS,
    Leaf,
    check,
    identify,
    register_transformation,
    state_leaves,
)
from ..regularizer import Pair
from .base import Optimizer

# a transformation that calls the host of another process must not pass for this process's
_PROCESS = uuid.uuid4().hex[:8]
_count = itertools.count()


class Optax(Optimizer):
    """Minimize with an ``optax.GradientTransformation`` (or any object with its ``init`` and
    ``update``).

        loss = fluid.layers.mean(...)
        fluid.optimizer.Optax(optax.adamw(1e-3, weight_decay=1e-4)).minimize(loss)

    All parameters are updated by one op, ``optax_update``: params, gradients and the whole state
    in, new params and state out. The transformation gets params and gradients as dicts from
    parameter name to array, so masks can use names. It gets the loss as ``value=`` if it takes one
    (optax.contrib.reduce_on_plateau). Each leaf of its state is a persistable variable, which
    ``optax_init`` makes from the parameters at the end of the startup program:
    ``<param>_<field>_k`` for the state of one parameter (``fc_0.w_0_mu_0``) and ``optax_<field>_k``
    for the rest (``optax_count_0``, int32). Scalars have shape [1], and unsigned leaves are kept
    bit for bit in int32.

    transformation: has the learning rate and schedule. parameter_list, regularization, grad_clip,
    name: see :class:`Optimizer`; a parameter's ``ParamAttr(learning_rate=...)`` multiplies its
    update. key: the name by which the ops find the transformation, unique in a process. A program
    that is saved and loaded elsewhere runs after ``register_transformation(key, transformation)``
    (fluidjax.ops.optax_bridge) was called there. The default is derived from the transformation's
    computation, traced for these parameters, so the same optimizer has the same key in every
    process, and a checkpoint can be resumed there. A transformation that calls back to the host has
    a new key in each process. The ops also show the settings: ``scale_by_adam(b1=0.9, ...)``.

    Raises FluidTypeError for an object without init and update, FluidValueError for a key that is
    taken, UnsupportedError for sparse gradients.
    """

    type = "optax_update"
    uses_learning_rate = False

    def __init__(
        self,
        transformation: Any,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        key: str | None = None,
    ) -> None:
        self._init_common(parameter_list, regularization, grad_clip, name)
        self._learning_rate = 1.0
        self._key = key
        if key is None:
            check(transformation)
        else:
            register_transformation(key, transformation)
        self._transformation = transformation
        self._loss: Variable | None = None

    def current_step_lr(self) -> float:
        """Raises UnsupportedError, because the learning rate is inside the transformation."""
        raise UnsupportedError(
            "an Optax optimizer's learning rate is inside its transformation; ask optax for it"
        )

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[Pair]
    ) -> list[Operator]:
        """As Optimizer.apply_optimize; the transformation may use the value of `loss`."""
        self._loss = loss
        try:
            return super().apply_optimize(loss, startup_program, params_grads)
        finally:
            self._loss = None

    def _create_optimization_pass(self, parameters_and_grads: Sequence[Pair]) -> list[Operator]:
        pairs = [(p, g) for p, g in parameters_and_grads if g is not None and p.trainable]
        if not pairs:
            return []
        for _, grad in pairs:
            if grad.desc.kind == "SELECTED_ROWS":
                raise UnsupportedError(
                    f"Optax takes dense gradients, but {grad.name!r} is sparse; build its embedding"
                    " without is_sparse"
                )
        params, grads = [p for p, _ in pairs], [g for _, g in pairs]
        attrs = {**self._identity(params), "names": [p.name for p in params]}
        state = self._create_state(params, attrs)
        block = default_main_program().global_block()
        inputs = {"Params": params, "Grads": grads, "State": state, "Loss": self._loss}
        with (
            default_main_program()._optimized_guard([v for pair in pairs for v in pair]),
            name_scope("optimizer"),
        ):
            op = block.append_op(
                type=self.type,
                inputs=inputs,
                outputs={"ParamsOut": params, "StateOut": state},
                attrs={**attrs, "scales": [_factor(p) for p in params]},
            )
        return [op]

    def _identity(self, params: Sequence[Parameter]) -> dict[str, str]:
        """The attributes that identify the transformation; without a key from the user, a bound one
        is made.
        """
        loss = None if self._loss is None else self._loss.desc.dtype
        found, setting = identify(self._transformation, _declared(params), loss)
        key = self._key
        if key is None and found is not None:
            key = f"optax_{found}"
            # the existing transformation computes the same
            TRANSFORMATIONS.setdefault(key, self._transformation)
        elif key is None:
            key = f"optax_{next(_count)}_{_PROCESS}"
            register_transformation(key, self._transformation)
        return {"setting": setting, "transformation": key}

    def _create_state(
        self, params: Sequence[Parameter], attrs: Mapping[str, Any]
    ) -> list[Variable]:
        """A variable for every leaf of the state, and the op that initialises them."""
        leaves = state_leaves(self._transformation, _declared(params))
        if not leaves:
            return []
        start = default_startup_program().global_block()
        missing = [p for p in params if not start.has_var(p.name)]
        if missing and not any(op.type.startswith("jax.") for op in params[0].block.ops):
            raise FluidValueError(
                f"the startup program does not initialise {[p.name for p in missing]}; give"
                " minimize the startup_program that does"
            )
        for p in missing:  # for a traced function, Traced.write has stored its values in the scope
            start.create_var(name=p.name, shape=p.shape, dtype=p.dtype, persistable=True)
        made = []
        for leaf in leaves:
            given: dict[str, Any] = {
                "name": unique_name.generate(self._variable_name(leaf)),
                "shape": leaf.shape,
                "dtype": leaf.dtype,
            }
            made.append(
                default_main_program()
                .global_block()
                .create_var(**given, persistable=True, stop_gradient=True)
            )
            start.create_var(**given, persistable=True)
            self._opti_name_list.append(made[-1].name)
        names = [v.name for v in made]
        start.append_op(
            type="optax_init",
            inputs={"Params": [p.name for p in params]},
            outputs={"State": names},
            attrs=attrs,
        )
        return made

    def _variable_name(self, leaf: Leaf) -> str:
        parts: Iterable[str | None] = (leaf.param or "optax", self._name, leaf.field)
        return "_".join(p for p in parts if p)


def _declared(params: Sequence[Parameter]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {p.name: (tuple(p.shape), p.desc.dtype or "float32") for p in params}


def _factor(param: Parameter) -> float:
    """The ``ParamAttr(learning_rate=...)`` of a parameter."""
    factor = param.optimize_attr["learning_rate"]
    if isinstance(factor, Variable):
        raise FluidTypeError(
            f"Optax takes a number as the learning_rate factor of parameter {param.name!r}, not a"
            " Variable"
        )
    return float(factor)
