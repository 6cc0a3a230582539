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
from .draft import Draft, grad_name
from .path import op_path, refuse_shared, stopped


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Variable | str] | None = None
) -> list[Variable | None]:
    """Variables holding d(targets)/d(inputs), contracted with `target_gradients` (ones by default).

    Returns one variable per input, None for an input that the targets do not depend on. May be called again on its
    own results, for second derivatives.

    Raises FluidTypeError for arguments of the wrong type, FluidValueError where targets and target_gradients differ in
    number or shape, UnsupportedError for targets of another block than the one that ops go to.

    Within a case or the body of a loop the gradient ops go behind the others of that block, and follow its ops alone: a variable
    from around it is a constant there unless it is among the inputs.
    """
    outs, ins, given = _checked(targets, inputs, target_gradients)
    program, block = outs[0].block.program, outs[0].block
    no_grad = stopped(program, no_grad_set)
    path = op_path(block, {t.name for t in outs}, {i.name for i in ins}, no_grad)
    call = Differentiation(program)
    replaced = {grad_name(t.name): g.name for t, g in zip(outs, given, strict=True) if g is not None}
    start = [d for t, g in zip(outs, given, strict=True) if g is None for d in _ones(block, t)]
    seeds = {grad_name(t.name) for t in outs} | {n for d in start for n in d.writes} | set(replaced.values())
    with call.undone_on_error():
        drafts = call.drafts(block, path, {grad_name(n) for n in no_grad}, seeds)
    grads = call.append(block, [*start, *drafts], replaced)
    return [grads.get(i.name) for i in ins]


def calc_gradient(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Variable | str] | None = None
) -> Variable | list[Variable | None] | None:
    """As :func:`gradients`, but the variable itself where there is one input."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _checked(targets: Any, inputs: Any, target_gradients: Any) -> tuple[list[Variable], list[Variable], list[Variable | None]]:
    """The arguments as lists of equal meaning. Raises what gradients says."""
    for what, value in (("targets", targets), ("inputs", inputs)):
        if not all(isinstance(v, Variable) for v in _as_list(value)) or not isinstance(value, Variable | list | tuple):
            raise FluidTypeError(
                f"The type of '{what}' in fluid.backward.gradients must be Variable or list of Variables, but received {type(value)}."
            )
    outs, ins, given = _as_list(targets), _as_list(inputs), _as_list(target_gradients)
    given = given or [None] * len(outs)
    if len(given) != len(outs):
        raise FluidValueError(f"{len(outs)} targets need as many target_gradients, not {len(given)}")
    for target, grad in zip(outs, given, strict=True):
        if grad is not None and target.shape != grad.shape:
            raise FluidValueError(f"target {target.name!r} has shape {list(target.shape)}, its gradient {list(grad.shape)}")
    program = outs[0].block.program
    refuse_shared(program)
    current = program.current_block()
    other = next((v for v in outs if v.block is not current), None)
    if other is not None and program is other.block.program:
        where = "a block around it" if current._find_var_recursive(other.name) is not None else "a block of its own"
        raise UnsupportedError(
            f"gradients() goes from variables of the block that it is called in, and its target {other.name!r} stands in {where}; call it "
            "there, or hand the value out of the case or the loop first; minimize in a case takes a loss from around it"
        )
    if any(v.block.program is not program for v in [*outs, *ins]):
        raise FluidValueError("targets and inputs of gradients() belong to one program")
    return outs, ins, given


def _ones(block: Block, target: Variable) -> list[Draft]:
    """Ones of the target's shape, as its gradient."""
    shape, loc = target.name + "_shape", user_line()
    if shape not in block.vars:
        block.vars[shape] = Variable.of(block, VarDesc(shape, (len(target.shape),), "int32"))
    attrs = {"shape": tuple(target.shape), "value": 1.0, "dtype": int(enum_of(target.dtype))}
    return [
        Draft("shape", {"Input": [target.name]}, {"Out": [shape]}, {}, loc),
        Draft("fill_constant", {"ShapeTensor": [shape]}, {"Out": [grad_name(target.name)]}, attrs, loc),
    ]
