"""append_backward: the gradients of a loss with respect to parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.loc import user_line, warn
from ..base.roles import OP_ROLE, OP_ROLE_VAR, OpRole
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..graph.block import Block
from ..graph.operator import Operator
from ..graph.program import Program
from ..graph.variable import Parameter, Variable
from .differentiate import Differentiation
from .draft import Draft, own_grad
from .path import around, op_path, refuse_shared, stopped, unused
from .recompute import names_of
from .summing import add_up

_NO_PARAMETER = (
    "the traced program has no parameter ({}), so nothing is trained: name the arguments that hold"
    " them, fluid.trace(..., state='params')"
)


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., Any]] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
    distop_context: Any = None,
) -> list[tuple[Parameter, Variable]]:
    """Append the ops that compute d(loss)/d(parameter), starting from ``loss@GRAD`` = 1.

    loss: a variable of shape [1]. parameter_list: parameters (or names) wanted; default all
    trainable ones. no_grad_set: variables to treat as constants. checkpoints: variables between
    which values are computed again in the backward pass instead of being kept (recompute.py).
    callbacks: called as ``callback(block, context)`` for each gradient op. The gradients of ops
    with blocks have blocks of their own. Within a case (of cond, switch_case, Switch) the ops go to
    a gradient block, which runs after the case if the case runs; gradients flow through the ops of
    the case, or of a block around it that computes the loss. Returns (parameter, gradient) pairs in
    parameter order. The list is empty, with a warning, if no gradient reaches a parameter or if a
    traced program has no parameter. distop_context: None; other values belong to Paddle 2's planner
    of distributed programs.

    Raises FluidTypeError for arguments of the wrong type; UnsupportedError for a distop_context,
    for checkpoints with ops that have blocks, and for an op on the path whose gradient is not
    supported yet.
    """
    if distop_context is not None:
        raise UnsupportedError(
            "append_backward's distop_context belongs to a planner that is not supported; leave it "
            "out"
        )
    program = _checked(loss, callbacks, checkpoints)
    names = _parameter_names(program, parameter_list)
    op = _loss_op(loss)
    op._set_attr(OP_ROLE, int(OpRole.Forward | OpRole.Loss))
    current = program.current_block()
    call = Differentiation(program, within=current.idx != 0)
    seeds = None if current.idx else {own_grad(loss.name)}
    found: list[Draft] = []
    unwanted: set[str] = set()
    needed = {loss.name}
    with call.undone_on_error():
        block = call.gradient_block(current)
        # ops of the blocks around a case compute what the case reads
        for forward in around(current):
            no_grad = stopped(program, no_grad_set, forward)
            path = op_path(forward, needed, set(), no_grad)
            no_grad |= unused(forward, path, needed, no_grad)
            there = {n for d in found for n in d.writes}
            found += call.drafts(
                forward,
                path,
                {own_grad(n) for n in no_grad},
                seeds,
                names_of(checkpoints or ()),
                wanted={*names},
                there=there,
            )
            unwanted |= no_grad
            needed = needed | {n for o in path for n in o.reads}
        found = add_up(found, block.idx) if current.idx else found
    start = len(block.ops)
    grads = call.append(block, [_loss_gradient(loss, op.desc.loc), *found], {})
    program.current_block_idx = current.idx
    if callbacks:
        _call_back(callbacks, call, block, start + 1)
    params = program.global_block().vars
    pairs = [(params[p], grads[p]) for p in names if p in grads and grads[p].block is block]
    if names and not pairs and not no_grad_set:
        warn(_no_path(program.global_block(), loss, names, unwanted, needed))
    if not (names or parameter_list) and any(op.type.startswith("jax.") for op in block.ops):
        warn(_NO_PARAMETER.format(user_line()))
    _mark_pairs(block, pairs, start)
    return pairs  # type: ignore[return-value]


def _call_back(
    callbacks: Sequence[Callable[..., Any]], call: Differentiation, block: Block, start: int
) -> None:
    """Call each callback for every gradient op of a block from `start` on, and before it for those
    of its own block.
    """
    for new in block.ops[start:]:
        for idx in new.desc.blocks:
            if idx in call.inside:
                _call_back(callbacks, call, call.inside[idx].block, 0)
        for callback in callbacks:
            callback(
                block=block,
                context={"__current_op_desc__": new.desc, "grad_to_var": call.grad_to_var},
            )


def _checked(loss: Any, callbacks: Any, checkpoints: Any) -> Program:
    """The loss's program. Raises the errors that append_backward documents."""
    if not isinstance(loss, Variable):
        raise FluidTypeError(
            "The type of 'loss' in fluid.backward.append_backward must be Variable, but received"
            f" {type(loss)}."
        )
    if checkpoints:
        names_of(checkpoints)
        if loss.block.program.current_block_idx:
            raise UnsupportedError(
                "checkpoints need a loss of the whole program, not of a case or a loop; leave them "
                "out"
            )
    if callbacks is not None and not (
        isinstance(callbacks, list | tuple) and all(map(callable, callbacks))
    ):
        raise FluidTypeError("append_backward's callbacks are a list of functions")
    program = loss.block.program
    refuse_shared(program)
    return program


def _loss_op(loss: Variable) -> Operator:
    for op in reversed(loss.block.ops):
        if loss.name in op.desc.writes:
            return op
    raise FluidValueError(f"no op computes the loss {loss.name!r}, so it has no gradient")


def _no_path(
    block: Block, loss: Variable, names: list[str], no_grad: set[str], reached: set[str]
) -> str:
    found = [n for n in reached if n in no_grad and n in block.vars and not block.vars[n].is_data]
    hint = f"; {found[0]!r} has stop_gradient" if found else ""
    if fed := _fed_and_written(block, loss):
        hint = (
            f"; {fed!r} is on the path and has stop_gradient=True because it is fed: set its "
            "stop_gradient to False, or let the loop carry a copy (layers.assign)"
        )
    return (
        f"no gradient reaches any parameter from the loss {loss.name!r} ({user_line()}): none of"
        f" {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} is connected to it by"
        f" differentiable ops{hint}"
    )


def _fed_and_written(block: Block, loss: Variable) -> str | None:
    """A fed variable with stop_gradient that ops write, as a loop writes its carried variables, and
    that the loss depends on.
    """
    needed = {loss.name}
    for op in reversed(block.ops):
        if written := needed.intersection(op.desc.writes):
            fed = (
                n
                for n in written
                if n in block.vars and block.vars[n].is_data and block.vars[n].stop_gradient
            )
            if name := next(fed, None):
                return name
            needed.update(op.desc.reads)
    return None


def _parameter_names(program: Program, parameter_list: Any) -> list[str]:
    if parameter_list is None:
        return [p.name for p in program.global_block().all_parameters() if p.trainable]
    if isinstance(parameter_list, str):
        raise FluidTypeError(
            f"parameter_list is a list of parameters or names, not the string {parameter_list!r}"
        )
    names = []
    for i, p in enumerate(parameter_list):
        if not isinstance(p, Variable | str):
            raise FluidTypeError(
                f"The type of 'parameter_list[{i}]' in fluid.backward.append_backward must be"
                f" Variable or str, but received {type(p)}."
            )
        names.append(p if isinstance(p, str) else p.name)
    return names


def _loss_gradient(loss: Variable, loc: str | None) -> Draft:
    """``loss@GRAD`` = 1; a traced function's loss has the shape []."""
    role = int(OpRole.Backward | OpRole.Loss)
    shape = tuple(loss.shape) and (1,)
    attrs = {
        "shape": shape,
        "value": 1.0,
        "dtype": int(loss.dtype),
        "force_cpu": False,
        OP_ROLE: role,
    }
    return Draft("fill_constant", {}, {"Out": [own_grad(loss.name)]}, attrs, loc)


def _mark_pairs(block: Block, pairs: list[tuple[Variable, Variable]], start: int) -> None:
    """Note the pair (op_role_var) on the op that computes a parameter's gradient."""
    last = {n: op for op in block.ops[start:] for n in op.desc.writes}
    for p, g in pairs:
        op = last[g.name]
        op.change(
            attrs=op.desc.attrs.set(
                **{OP_ROLE_VAR: (p.name, g.name, *op.desc.attrs.get(OP_ROLE_VAR, ()))}
            )
        )
