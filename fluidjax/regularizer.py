"""Weight decay: ops that add the gradient of a penalty on a parameter to the parameter's own
gradient.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .errors import ArgumentError, FluidTypeError
from .graph.block import Block
from .graph.name_scope import name_scope
from .graph.variable import Parameter, Variable

_logger = logging.getLogger(__name__)

NEW_GRAD = "@NEWGRAD@"  # suffix of the name of a dense gradient that replaces a sparse one
Pair = tuple[Parameter, Variable | None]


class WeightDecayRegularizer:
    """Base of the regularizers: a callable that appends ops and returns the variable to add to the
    gradient.
    """

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        raise NotImplementedError(
            f"{type(self).__name__} does not say what its penalty's gradient is"
        )


class _Decay(WeightDecayRegularizer):
    """A penalty with one coefficient."""

    _label = ""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        if isinstance(regularization_coeff, bool) or not isinstance(
            regularization_coeff, int | float
        ):
            raise ArgumentError(
                f"{type(self).__name__}'s regularization_coeff is a number, not"
                f" {regularization_coeff!r}"
            )
        self._regularization_coeff = float(regularization_coeff)

    @property
    def coefficient(self) -> float:
        """The factor of the penalty."""
        return self._regularization_coeff

    def __str__(self) -> str:
        return f"{self._label}, regularization_coeff={self._regularization_coeff:f}"

    def _variable(self, param: Parameter, block: Block) -> Variable:
        if not isinstance(param, Parameter):
            raise FluidTypeError(f"{self._label} applies to a Parameter, not to {param}")
        return block.create_var(dtype=param.dtype, shape=param.shape, lod_level=param.lod_level)


class L2DecayRegularizer(_Decay):
    """Adds ``coeff * param`` to the gradient (penalty ``coeff / 2 * sum(param ** 2)``)."""

    _label = "L2Decay"

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        """Append the ``scale`` op; the result has the parameter's shape and dtype."""
        decay = self._variable(param, block)
        block.append_op(
            type="scale",
            inputs={"X": param},
            outputs={"Out": decay},
            attrs={"scale": self._regularization_coeff},
        )
        return decay


class L1DecayRegularizer(_Decay):
    """Adds ``coeff * sign(param)`` to the gradient (penalty ``coeff * sum(abs(param))``)."""

    _label = "L1Decay"

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        """Append ``sign`` and ``scale``; the result has the parameter's shape and dtype."""
        decay = self._variable(param, block)
        block.append_op(type="sign", inputs={"X": param}, outputs={"Out": decay})
        block.append_op(
            type="scale",
            inputs={"X": decay},
            outputs={"Out": decay},
            attrs={"scale": self._regularization_coeff},
        )
        return decay


def _regularized(param: Parameter, grad: Variable, penalty: Callable[..., Variable]) -> Variable:
    """Append ``grad + penalty``; the sum keeps the gradient's variable, except that a sparse one
    becomes dense.
    """
    block = grad.block.program.current_block()  # within a case where the updates stand there
    term = penalty(param, grad, block)
    total = grad
    if grad.desc.kind == "SELECTED_ROWS":
        total = block.create_var(
            name=grad.name + NEW_GRAD,
            dtype=param.dtype,
            shape=param.shape,
            lod_level=param.lod_level,
        )
    block.append_op(type="sum", inputs={"X": [grad, term]}, outputs={"Out": [total]})
    return total


def append_regularization_ops(
    parameters_and_grads: Sequence[Pair], regularization: Any = None
) -> list[Pair]:
    """Append the weight decay of every parameter; returns the pairs with the gradients that include
    it.

    A parameter's own regularizer (``ParamAttr(regularizer=...)``) overrides the optimizer's
    `regularization`. Pairs without a gradient are not changed. Raises FluidTypeError for a
    regularizer that cannot be called.
    """
    own = [p.name for p, _ in parameters_and_grads if getattr(p, "regularizer", None) is not None]
    if own and regularization is not None:
        _logger.info(
            "parameters %s have a regularizer of their own; the optimizer's %s applies to the"
            " others",
            own,
            regularization,
        )
    result: list[Pair] = []
    with name_scope("regularization"):
        for param, grad in parameters_and_grads:
            chosen = getattr(param, "regularizer", None)
            chosen = regularization if chosen is None else chosen
            if grad is not None and chosen is not None:
                if not callable(chosen):
                    raise FluidTypeError(
                        f"parameter {param.name!r}: a regularizer is an object such as"
                        f" L2Decay(1e-4), not {chosen!r}"
                    )
                with param.block.program._optimized_guard([param, grad]):
                    grad = _regularized(param, grad, chosen)
            result.append((param, grad))
    return result


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]
