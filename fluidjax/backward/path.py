"""Finds the ops that gradients flow through and the variables where they stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.loc import warn
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..graph.block import Block
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir.desc import OpDesc
from ..ir.text import op_called
from ..ops.registry import lookup
from .rules import has_grad

# JAX ops without a rule whose gradient is zero
_FLAT = frozenset({"jax.stop_gradient", "jax.round", "jax.bitcast_convert_type"})


def around(block: Block) -> list[Block]:
    """The block and the blocks around it, from the inside out."""
    found = [block]
    while (parent := found[-1].parent) is not None:
        found.append(parent)
    return found


def stopped(
    program: Program, no_grad_set: Iterable[Any] | None, block: Block | None = None
) -> set[str]:
    """Names that get no gradient: stop_gradient variables of a block (default: the first) and the
    caller's.
    """
    names = {v.name for v in (block or program.global_block()).vars.values() if v.stop_gradient}
    if not isinstance(no_grad_set, set | frozenset | list | tuple | None):
        raise FluidTypeError(
            "no_grad_set is a set, a list or a tuple of variables or their names, not"
            f" {no_grad_set!r}"
        )
    for v in no_grad_set or ():
        if not isinstance(v, Variable | str):
            raise FluidTypeError(
                f"no_grad_set takes variables or their names, not {type(v).__name__}"
            )
        names.add(v if isinstance(v, str) else v.name)
    return names


def op_path(block: Block, targets: set[str], inputs: set[str], no_grad: set[str]) -> list[OpDesc]:
    """The ops between `inputs` (all, if empty) and `targets` through which a gradient flows. Adds
    to `no_grad`.
    """
    ops = [op.desc for op in block.ops]
    relevant = [True] * len(ops)
    reached = set(inputs)
    if inputs:
        for i, op in enumerate(ops):
            relevant[i] = has_grad(op.type) and any(n in reached for n in op.reads)
            if relevant[i]:
                reached.update(n for n in op.writes if n not in no_grad)
    needed = set(targets)
    moving = reached if inputs else None
    for i in range(len(ops) - 1, -1, -1):
        if not any(n in needed for n in ops[i].writes):
            relevant[i] = False
        elif has_grad(ops[i].type):
            needed.update(n for n in ops[i].reads if n not in no_grad)
        else:
            _warn_of_lost(ops[i], reached if inputs else None)
            if ops[i].type.startswith("jax.") and ops[i].type not in _FLAT:
                moving = _differentiable_names(block, ops, no_grad) if moving is None else moving
                _refuse_lost(ops[i], moving - no_grad)
            relevant[i] = False
    path = [op for op, keep in zip(ops, relevant, strict=True) if keep]
    if inputs:
        for op in path:
            there = {n: block._find_var_recursive(n) for n in op.reads if n not in reached}
            no_grad.update(n for n, var in there.items() if var is not None and var.stop_gradient)
    return path


def _warn_of_lost(op: OpDesc, reached: set[str] | None) -> None:
    """Warn of a gradient op that cannot be differentiated: it ends the path although its outputs
    depend on its inputs.
    """
    if lookup(op.type).forward is not None and (
        reached is None or not reached.isdisjoint(op.reads)
    ):
        warn(
            f"the gradient of op '{op.type}' ({op.loc}) is taken as zero, as in Paddle 1.8.5: the "
            "op cannot be differentiated, because its random numbers would be drawn again; set "
            "stop_gradient = True on its output if that is what you want"
        )


def _differentiable_names(block: Block, ops: Sequence[OpDesc], no_grad: set[str]) -> set[str]:
    """The variables that may have a gradient and that no op computes, and all that depend on
    them.
    """
    made = {n for op in ops for n in op.writes}
    found = {n for op in ops for n in op.reads if n not in made and n not in no_grad}
    for op in ops:
        if op.type not in _FLAT and not found.isdisjoint(op.reads):
            found.update(n for n in op.writes if n not in no_grad)
    return found


def _refuse_lost(op: OpDesc, moving: set[str]) -> None:
    """Raises UnsupportedError for a JAX op that would end the path of a gradient silently. jax.grad
    refuses such functions too, except for eigenvalues of matrices that are not symmetric.
    """
    if moving.isdisjoint(op.reads):
        return
    cure = "write it as lax.scan or a fori_loop of a known number, or " * (op.type == "jax.while")
    raise UnsupportedError(
        f"{op_called(op)} has no gradient, and the loss depends on what it computes: {cure}stop the"
        " gradient of its result by jax.lax.stop_gradient"
    )


def path_inside(block: Block, ends: Sequence[OpDesc]) -> list[OpDesc]:
    """The ops of a block that `ends`, its last ops, depend on, and `ends` themselves, in Fluid's
    order.
    """
    targets = {n for op in ends for n in op.reads if n in block.vars}
    path = op_path(block, targets, set(), set())
    return [*path, *(op for op in ends if op not in path)]


def unused(block: Block, path: Sequence[OpDesc], targets: set[str], no_grad: set[str]) -> set[str]:
    """Outputs on the path that nothing on the path reads, so their gradient is zero."""
    used = set(targets)
    found: set[str] = set()
    for op in reversed(path):
        reads = set(op.reads)
        if not op.blocks:  # which outputs of a block are used is not known
            found.update(
                n
                for n in op.writes
                if n not in used and n not in reads and not block._var_recursive(n).stop_gradient
            )
        used.update(n for n in reads if n not in no_grad)
    return found


def refuse_shared(program: Program) -> None:
    """Raises UnsupportedError if variables share a name, because gradients are found by name."""
    if program.info.reused:
        raise FluidValueError(
            "memory_optimize let variables of this program share names, so it cannot be"
            " differentiated any more; call minimize or append_backward before memory_optimize"
        )
