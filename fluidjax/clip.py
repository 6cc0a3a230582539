"""Gradient clipping: ops between the backward pass and the update that bound the gradients.

There are two interfaces, as in Fluid: ``optimizer(grad_clip=...)``, and the older
:func:`set_gradient_clip`, which attaches a clip to each parameter. They leave different
``op_namescope`` marks (``/gradient_clip/``; ``/gradient_clip_@CLIP/`` and
``/graident_clip_@CLIP/``, spelt so), by which DistributeTranspiler distinguishes them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat

from . import layers
from .base.loc import warn
from .base.roles import OP_NAMESCOPE, OP_ROLE, OP_ROLE_VAR, OpRole
from .errors import ArgumentError, FluidTypeError, FluidValueError
from .graph.block import Block
from .graph.name_scope import name_scope
from .graph.program import Program, as_program
from .graph.variable import Parameter, Variable
from .ir.edit import role_names
from .regularizer import Pair


class BaseErrorClipAttr:
    """Base class for ``Variable.error_clip``: bounds the gradient of one variable during
    backward.
    """

    def _append_clip_op(self, block: Block, grad_name: str, index: int | None = None) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how it clips")


def _number(owner: Any, name: str, value: Any) -> float:
    """`value` as a float. Raises ArgumentError for anything but a number."""
    if isinstance(value, str | bool) or not isinstance(value, SupportsFloat):
        raise ArgumentError(f"{type(owner).__name__}'s {name} is a number, not {value!r}")
    return float(value)


class ErrorClipByValue(BaseErrorClipAttr):
    """``x@GRAD = clip(x@GRAD, min, max)`` as soon as backward has computed it; `min` defaults to
    ``-max``.
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = _number(self, "max", max)
        self.min = -self.max if min is None else _number(self, "min", min)

    def __str__(self) -> str:
        return f"ByValue, min={self.min:f}, max={self.max:f}"

    def _append_clip_op(self, block: Block, grad_name: str, index: int | None = None) -> None:
        """Insert the ``clip`` op at position `index` of the block, by default at its end."""
        block._insert_op(
            len(block.ops) if index is None else index,
            type="clip",
            inputs={"X": grad_name},
            outputs={"Out": grad_name},
            attrs={"min": self.min, "max": self.max, OP_ROLE: int(OpRole.Backward)},
        )


def error_clip_callback(block: Block, context: Mapping[str, Any]) -> None:
    """append_backward's callback: clip the gradients that the current op wrote, if their variable
    has an error_clip.

    `context` holds the op's desc as ``__current_op_desc__`` and the map from gradient names to
    variables, either under ``grad_to_var`` or as the context itself. Raises FluidTypeError for an
    error_clip of another type.
    """
    desc = context["__current_op_desc__"]
    grad_to_var = context.get("grad_to_var", context)
    for name in [n for n in desc.writes if n in grad_to_var]:
        error_clip = getattr(block._var_recursive(grad_to_var[name]), "error_clip", None)
        if error_clip is None:
            continue
        if not isinstance(error_clip, BaseErrorClipAttr):
            raise FluidTypeError(
                f"error_clip of variable {grad_to_var[name]!r} is an ErrorClipByValue or None, not"
                f" {error_clip!r}"
            )
        at = next(i for i, op in enumerate(block.ops) if op.desc is desc)
        error_clip._append_clip_op(block, name, at + 1)


class GradientClipBase:
    """Base of the gradient clips.

    need_clip: a function of a Parameter that says whether its gradient is to be clipped; None clips
    all.
    """

    def __init__(self, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise FluidTypeError(
                "need_clip is a function that takes a Parameter and returns True or False, not"
                f" {need_clip!r}"
            )
        self._need_clip_func = need_clip

    def _is_clipped(self, param: Parameter) -> bool:
        wanted = self._need_clip_func is None or bool(self._need_clip_func(param))
        return wanted and getattr(param, "need_clip", True)

    def __call__(self, params_grads: Sequence[Pair]) -> list[Pair]:
        """Append the ops; returns the pairs with the clipped gradients. Pairs without a gradient
        are left out.
        """
        if any(getattr(p, "gradient_clip_attr", None) is not None for p, _ in params_grads):
            warn(
                "set_gradient_clip has no effect here: the optimizer has a grad_clip of its own;"
                " remove one of the two"
            )
        return self._static_clip([(p, g) for p, g in params_grads if g is not None])

    def _static_clip(self, params_grads: list[tuple[Parameter, Variable]]) -> list[Pair]:
        result: list[Pair] = []
        with name_scope("gradient_clip"):
            for param, grad in params_grads:
                if self._is_clipped(param):
                    with param.block.program._optimized_guard([param, grad]):
                        grad = self._clipped(grad)
                result.append((param, grad))
        _correct_role_vars(params_grads, result)
        return result

    def _clipped(self, grad: Variable) -> Variable:
        """Append the op that clips one gradient by itself."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it clips")

    # set_gradient_clip works in two passes over the parameters: measure, then clip.
    def _process_context(self, context: dict[str, Any], param: Parameter, grad: Variable) -> None:
        """First pass: measure all gradients before any is clipped."""

    def _create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        """Second pass: the clipped gradient."""
        return param, self._clipped(grad)


class GradientClipByValue(GradientClipBase):
    """``grad = min(max(grad, min), max)``, elementwise; `min` defaults to ``-max``, and then max
    must be positive.
    """

    def __init__(
        self,
        max: float,
        min: float | None = None,
        need_clip: Callable[[Parameter], bool] | None = None,
    ) -> None:
        super().__init__(need_clip)
        self.max = _number(self, "max", max)
        if min is None and not self.max > 0.0:
            raise FluidValueError(
                f"GradientClipByValue without min takes a max above 0, not {max!r}"
            )
        self.min = -self.max if min is None else _number(self, "min", min)

    def __str__(self) -> str:
        return f"Gradient Clip By Value, min = {self.min:f}, max={self.max:f}"

    def _clipped(self, grad: Variable) -> Variable:
        return layers.clip(x=grad, min=self.min, max=self.max)


class GradientClipByNorm(GradientClipBase):
    """``grad * clip_norm / max(clip_norm, l2norm(grad))``, each gradient by its own norm."""

    def __init__(
        self, clip_norm: float, need_clip: Callable[[Parameter], bool] | None = None
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = _number(self, "clip_norm", clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _clipped(self, grad: Variable) -> Variable:
        return layers.clip_by_norm(x=grad, max_norm=self.clip_norm)


class GradientClipByGlobalNorm(GradientClipBase):
    """``grad * clip_norm / max(clip_norm, global_norm)``, global_norm = sqrt of the sum of squares
    of all gradients.

    group_name: under set_gradient_clip, parameters of one group share a norm (and must have one
    clip_norm). It has no effect in an optimizer's grad_clip, in which the norm is over all
    gradients that need_clip admits.
    """

    def __init__(
        self,
        clip_norm: float,
        group_name: str = "default_group",
        need_clip: Callable[[Parameter], bool] | None = None,
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = _number(self, "clip_norm", clip_norm)
        self.group_name = group_name
        self.context: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _limit(self, dtype: Any) -> Variable:
        return layers.fill_constant(shape=[1], dtype=dtype, value=self.clip_norm)

    def _static_clip(self, params_grads: list[tuple[Parameter, Variable]]) -> list[Pair]:
        chosen = [(p, g) for p, g in params_grads if self._is_clipped(p)]
        if not chosen:
            return list(params_grads)
        result: list[Pair] = []
        with name_scope("gradient_clip"):
            squares = []
            for param, grad in chosen:
                with param.block.program._optimized_guard([param, grad]):
                    squares.append(_sum_of_squares(grad))
            last = params_grads[-1]
            with last[0].block.program._optimized_guard(last):
                norm = layers.sqrt(x=layers.sums(squares))
                scale = _ratio(self._limit(norm.dtype), norm)
            clipped = {p.name for p, _ in chosen}
            for param, grad in params_grads:
                if param.name in clipped:
                    with param.block.program._optimized_guard([param, grad]):
                        grad = layers.elementwise_mul(x=grad, y=scale)
                result.append((param, grad))
        _correct_role_vars(params_grads, result)
        return result

    def _process_context(self, context: dict[str, Any], param: Parameter, grad: Variable) -> None:
        squares, limit = context.setdefault(self.group_name, ([], self.clip_norm))
        if limit != self.clip_norm:
            raise FluidValueError(
                f"parameter {param.name!r}: clip group {self.group_name!r} has clip_norm {limit}"
                f" and cannot have {self.clip_norm} too; give the second GradientClipByGlobalNorm"
                " another group_name"
            )
        if not squares:
            context[self.group_name + "_clip"] = self._limit(grad.dtype)
        squares.append(_sum_of_squares(grad))
        self.context = context

    def _create_operators(self, param: Parameter, grad: Variable) -> tuple[Parameter, Variable]:
        key = self.group_name + "_scale"
        if key not in self.context:
            norm = layers.sqrt(x=layers.sums(self.context[self.group_name][0]))
            self.context[key] = _ratio(self.context[self.group_name + "_clip"], norm)
        return param, layers.elementwise_mul(x=grad, y=self.context[key])


def _sum_of_squares(grad: Variable) -> Variable:
    """The squared l2 norm; rows of a sparse gradient that repeat are added up first."""
    if grad.desc.kind == "SELECTED_ROWS":
        grad = layers.get_tensor_from_selected_rows(layers.merge_selected_rows(grad))
    return layers.reduce_sum(layers.square(grad))


def _ratio(limit: Variable, norm: Variable) -> Variable:
    """``limit / max(limit, norm)``."""
    return layers.elementwise_div(x=limit, y=layers.elementwise_max(x=limit, y=norm))


def set_gradient_clip(
    clip: GradientClipBase, param_list: Sequence[Any] | None = None, program: Program | None = None
) -> None:
    """Attach `clip` to parameters; the next minimize clips their gradients. Prefer
    ``optimizer(grad_clip=...)``.

    param_list: Parameters or names; default all of `program` (default: the main program). As in
    Fluid 1.8.5, minimize clips only if *every* parameter that it updates has a clip, and if the
    clips differ it applies the clip of the parameter whose name sorts last; it warns in both cases.

    Raises FluidTypeError for a clip or list element of another type, FluidValueError for an unknown
    name.
    """
    warn("set_gradient_clip may go away; give the optimizer a grad_clip instead")
    if not isinstance(clip, GradientClipBase):
        raise FluidTypeError(
            f"set_gradient_clip takes a clip such as GradientClipByNorm(1.0), not {clip!r}"
        )
    block = as_program(program).block(0)
    if any("optimizer" in op.desc.attrs.get(OP_NAMESCOPE, "") for op in block.ops):
        warn("set_gradient_clip comes after minimize and so has no effect on it; call it before")
    params = block.all_parameters() if param_list is None else list(param_list)
    params = [block.var(p) if isinstance(p, str) else p for p in params]
    for p in params:
        if not isinstance(p, Parameter):
            raise FluidTypeError(
                f"set_gradient_clip's param_list holds Parameters or their names, not {p!r}"
            )
    for p in params:
        p.gradient_clip_attr = copy.deepcopy(clip)


def append_gradient_clip_ops(params_grads: Sequence[Pair]) -> list[Pair]:
    """Append the ops of the clips that set_gradient_clip attached to parameters; returns the pairs
    with the clipped gradients.
    """
    context: dict[str, Any] = {}
    clip: Any = None
    pairs = [(p, g) for p, g in params_grads if g is not None]
    for param, grad in pairs:
        with param.block.program._optimized_guard([param, grad]), name_scope("gradient_clip_@CLIP"):
            clip = getattr(param, "gradient_clip_attr", None)
            if clip is None:
                _warn_unclipped(param, pairs)
                return list(params_grads)
            if not isinstance(clip, GradientClipBase):
                raise FluidTypeError(
                    f"gradient_clip_attr of parameter {param.name!r} is a gradient clip, not"
                    f" {clip!r}"
                )
            clip._process_context(context=context, param=param, grad=grad)
    _warn_mixed(pairs)
    result: list[Pair] = []
    for param, grad in pairs:
        with param.block.program._optimized_guard([param, grad]), name_scope("graident_clip_@CLIP"):
            result.append(clip._create_operators(param=param, grad=grad))
    _correct_role_vars(pairs, result)
    return result


def _warn_unclipped(param: Parameter, pairs: list[tuple[Parameter, Variable]]) -> None:
    clipped = [p.name for p, _ in pairs if getattr(p, "gradient_clip_attr", None) is not None]
    if clipped:
        warn(
            f"no gradient is clipped: set_gradient_clip was called for {clipped} but not for"
            f" {param.name!r}, and as in Fluid 1.8.5 it works for all parameters or none; use"
            " optimizer(grad_clip=...) with need_clip"
        )


def _warn_mixed(pairs: list[tuple[Parameter, Variable]]) -> None:
    kinds = {
        str(p.gradient_clip_attr) + str(getattr(p.gradient_clip_attr, "group_name", ""))
        for p, _ in pairs
    }
    if len(kinds) > 1:
        last = pairs[-1][0]
        warn(
            "set_gradient_clip was called with different clips; as in Fluid 1.8.5 the one of"
            f" {last.name!r} ({last.gradient_clip_attr}) is applied to every parameter"
        )


def _correct_role_vars(before: Sequence[Pair], after: Sequence[Pair]) -> None:
    """Set op_role_var of the clip ops to the clipped gradients, because these update the
    parameters.
    """
    changed = {
        p.name: g.name
        for (p, old), (_, g) in zip(before, after, strict=True)
        if g is not None and g is not old
    }
    if not changed:
        return
    for op in before[0][0].block.program.global_block().ops:
        role_var = role_names(op.desc)
        if (
            role_var
            and role_var[0] in changed
            and "gradient_clip" in op.desc.attrs.get(OP_NAMESCOPE, "")
        ):
            op._set_attr(OP_ROLE_VAR, [role_var[0], changed[role_var[0]]])


ClipByValue = GradientClipByValue
ClipByNorm = GradientClipByNorm
ClipByGlobalNorm = GradientClipByGlobalNorm

__all__ = [
    "ErrorClipByValue",
    "GradientClipByGlobalNorm",
    "GradientClipByNorm",
    "GradientClipByValue",
    "set_gradient_clip",
]
