"""gradients: the derivatives of any variables with respect to any others, also of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.dtypes import enum_of
from ..base.loc import user_line
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..graph.block import Block
from ..graph.variable import Variable
from ..ir.desc import VarDesc
from .differentiate import Differentiation
from .draft import Draft, own_grad
from .path import op_path, refuse_shared, stopped


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[Variable | None]:
    """Variables holding d(targets)/d(inputs), contracted with `target_gradients` (ones by default).

    Returns one variable per input, None for an input that no target depends on (a single target
    does not depend on itself, as in Paddle). You can call it again on its own results, for
    derivatives of any order. If one target depends on another, each counts by itself.

    Raises FluidTypeError for arguments of the wrong type, FluidValueError if targets and
    target_gradients differ in number or shape, UnsupportedError for targets of another block than
    the one that ops go to.

    Within a case or the body of a loop the gradient ops are appended to that block, and follow only
    its ops: a variable from outside is a constant there unless it is among the inputs.
    """
    outs, ins, given = _checked(targets, inputs, target_gradients)
    program, block = outs[0].block.program, outs[0].block
    no_grad = stopped(program, no_grad_set)
    path = op_path(block, {t.name for t in outs}, {i.name for i in ins}, no_grad)
    call = Differentiation(program)
    # variables with a gradient from the path; a target among them also has its own seed
    flows = {n for op in path for n in op.reads}
    replaced = {
        own_grad(t.name): g.name
        for t, g in zip(outs, given, strict=True)
        if g is not None and t.name not in flows
    }
    start = [
        d
        for t, g in zip(outs, given, strict=True)
        for d in _seed(block, t, g)
        if own_grad(t.name) not in replaced
    ]
    seeds = {own_grad(t.name) for t in outs}
    with call.undone_on_error():
        drafts = call.drafts(
            block,
            path,
            {own_grad(n) for n in no_grad},
            seeds,
            wanted={i.name for i in ins},
            start=start,
        )
    grads = call.append(block, drafts, replaced)
    return [grads.get(i.name) for i in ins]


def calc_gradient(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> Variable | list[Variable | None] | None:
    """As :func:`gradients`, but returns the variable itself if there is one input."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


def as_list(value: Any) -> list[Any]:
    """A list made from a list or tuple, None, or a single value."""
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _checked(
    targets: Any, inputs: Any, target_gradients: Any
) -> tuple[list[Variable], list[Variable], list[Variable | None]]:
    """The arguments as lists. Raises the errors that gradients documents."""
    for what, value, missing in (
        ("targets", targets, ""),
        ("inputs", inputs, ""),
        ("target_gradients", target_gradients, " or None"),
    ):
        many = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(v, Variable) or (missing and v is None) for v in many):
            raise FluidTypeError(
                f"gradients' {what} are a variable, or a list of variables{missing}, not {value!r}"
            )
    outs, ins, given = as_list(targets), as_list(inputs), as_list(target_gradients)
    if not outs:
        raise FluidValueError("gradients needs at least one target; its targets are an empty list")
    given = given or [None] * len(outs)
    if len(given) != len(outs):
        raise FluidValueError(
            f"{len(outs)} targets need as many target_gradients, not {len(given)}"
        )
    for target, grad in zip(outs, given, strict=True):
        if grad is not None and target.shape != grad.shape:
            raise FluidValueError(
                f"target {target.name!r} has shape {list(target.shape)}, its gradient"
                f" {list(grad.shape)}"
            )
    program = outs[0].block.program
    refuse_shared(program)
    current = program.current_block()
    other = next((v for v in outs if v.block is not current), None)
    if other is not None and program is other.block.program:
        where = (
            "a block around it"
            if current._find_var_recursive(other.name) is not None
            else "a block of its own"
        )
        raise UnsupportedError(
            "gradients() takes targets of the block that it is called in, but"
            f" {other.name!r} is in {where}; call gradients() there, or return the value from the"
            " case or the loop first; minimize in a case takes a loss from outside"
        )
    if any(v.block.program is not program for v in [*outs, *ins]):
        raise FluidValueError("targets and inputs of gradients() must belong to one program")
    return outs, ins, given


def _seed(block: Block, target: Variable, given: Variable | None) -> list[Draft]:
    """The op that makes a target's gradient: ones of its shape, or the given gradient."""
    loc, grad = user_line(), own_grad(target.name)
    if given is not None:
        return [Draft("assign", {"X": [given.name]}, {"Out": [grad]}, {}, loc)]
    shape = target.name + "_shape"
    if shape not in block.vars:
        block.vars[shape] = Variable.of(block, VarDesc(shape, (len(target.shape),), "int32"))
    attrs = {"shape": tuple(target.shape), "value": 1.0, "dtype": int(enum_of(target.dtype))}
    return [
        Draft("shape", {"Input": [target.name]}, {"Out": [shape]}, {}, loc),
        Draft("fill_constant", {"ShapeTensor": [shape]}, {"Out": [grad]}, attrs, loc),
    ]
