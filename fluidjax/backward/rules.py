"""The gradient ops of one op.

What an op's gradient is stands where the op is declared: a :class:`GradDef` (an op of its own),
:class:`Reuse` rows (ordinary ops), or a function (``OpDef.write_grad``, for ops whose gradient has
blocks of its own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

from ..base.roles import OP_ROLE, OP_ROLE_VAR
from ..errors import UnsupportedError
from ..graph.block import Block
from ..ir.desc import EMPTY, FrozenMap, OpDesc
from ..ir.gradients import forward_op
from ..ops.definition import GradBlock, GradOp, Unwritten
from ..ops.later import SLOTS
from ..ops.registry import GRAD, GradDef, OpDef, Reuse, further_grad, inputs_of, lookup
from .draft import Draft, own_grad

_BOOKKEEPING = (OP_ROLE, OP_ROLE_VAR, "op_callstack")

Ends = Callable[[Sequence[OpDesc]], Sequence[OpDesc]]
Inside = Callable[[OpDesc, Ends | None], GradBlock]


def has_grad(kind: str) -> bool:
    """Whether gradients flow through ops of this type."""
    return lookup(kind).has_grad or further_grad(kind) is not None


class Names:
    """The names of one op's gradients; `grad_to_var` collects the variable of each gradient."""

    def __init__(self, block: Block, op: OpDesc, no_grad: Set[str], differentiate: Inside) -> None:
        self.block = block
        self.op = op
        self.no_grad = no_grad  # names of unwanted gradients
        self.differentiate = differentiate  # makes the gradient block of an op
        self.grad_to_var: dict[str, str] = {}
        self.repeatable = {s.name for s in lookup(op.type).inputs if s.many}

    def taken(self, origin: str) -> list[str]:
        """The names in an input slot: those of a forward slot, or the gradients of an output
        slot.
        """
        for slots in (self.op.inputs, self.op.outputs):
            if origin in slots:
                return list(slots[origin])
        return self._noted(n for n in self.op.output(origin.removesuffix(GRAD)) if n != EMPTY)

    def given(self, slot: str) -> list[str]:
        """The gradients of an input slot. Unwanted ones are ``@EMPTY@`` in a repeatable slot, and
        left out of a plain one.
        """
        wanted = [n != EMPTY and own_grad(n) not in self.no_grad for n in self.op.input(slot)]
        grads = self._noted(n for n, w in zip(self.op.input(slot), wanted, strict=True) if w)
        if slot not in self.repeatable:
            return grads
        found = iter(grads)
        return [next(found) if w else EMPTY for w in wanted]

    def inside(self, ends: Ends | None = None) -> GradBlock:
        """The gradient ops of the op's block, in a block made for them; see GradNames."""
        return self.differentiate(self.op, ends)

    def shape(self, name: str) -> tuple[int, ...]:
        """The declared shape of a variable."""
        return tuple(self.block._var_recursive(name).shape)

    def declared(self, name: str) -> bool:
        """Whether the block sees a variable of that name."""
        return self.block._find_var_recursive(name) is not None

    def forward(self) -> OpDesc | None:
        """The op that this one, a gradient op, differentiates."""
        return forward_op(
            self.block.program.desc, self.op, lookup(lookup(self.op.type).forward or "")
        )

    def _noted(self, names: Iterable[str]) -> list[str]:
        pairs = [(own_grad(n), n) for n in names]
        self.grad_to_var.update(pairs)
        return [grad for grad, _ in pairs]


def gradient_ops(
    block: Block, op: OpDesc, no_grad: Set[str], differentiate: Inside
) -> tuple[list[Draft], dict[str, str]]:
    """The gradient ops of one op, and the variable of every gradient that they name.

    differentiate: makes the gradient block of an op that has a block. Raises UnsupportedError if a
    gradient is not supported.
    """
    definition, names = lookup(op.type), Names(block, op, no_grad, differentiate)
    attrs = {k: v for k, v in op.attrs.items() if k not in _BOOKKEEPING}
    drafts = _drafts(definition, names, attrs)
    for d in drafts:
        d.loc = op.loc
        d.inputs = {slot: found for slot, found in d.inputs.items() if found}
        d.outputs = {slot: found for slot, found in d.outputs.items() if found}
    return drafts, names.grad_to_var


def _drafts(definition: OpDef, names: Names, attrs: dict[str, Any]) -> list[Draft]:
    if isinstance(definition.write_grad, Unwritten):
        op = names.op
        raise UnsupportedError(
            f"the gradient of op '{op.type}' ({op.loc}) is not supported yet:"
            f" {definition.write_grad.advice}"
        )
    if definition.write_grad is not None:
        return [_draft_of(made) for made in definition.write_grad(names.op, names)]
    if definition.reuse:
        return [d for reuse in definition.reuse for d in _reused_ops(reuse, names, attrs)]
    if definition.grad is not None and (
        definition.forward is None or not _is_insufficient(definition.grad, names)
    ):
        return [_declared_gradient(definition.grad, names, attrs)]
    return _gradient_by_vjp(definition, names, attrs)


def _draft_of(made: GradOp) -> Draft:
    ins, outs = (
        {slot: list(names) for slot, names in slots.items()} for slots in (made.ins, made.outs)
    )
    return Draft(made.type, ins, outs, dict(made.attrs))


def _declared_gradient(graddef: GradDef, names: Names, attrs: dict[str, Any]) -> Draft:
    later = SLOTS.get(names.op.type, ())
    ins = {
        slot: found
        for slot, origin in graddef.taken(attrs).items()
        if (found := names.taken(origin)) or slot not in later
    }
    there = graddef.given(slot for slot, found in ins.items() if found)
    return Draft(
        graddef.type, ins, {slot: names.given(origin) for slot, origin in there.items()}, attrs
    )


def _is_insufficient(graddef: GradDef, names: Names) -> bool:
    """Whether Paddle's gradient of a gradient op would be wrong here, because it lacks a value,
    leaves out a gradient or cannot broadcast.

    conv2d_grad_grad leaves out the gradient of Output@GRAD unless Input@GRAD is wanted;
    elementwise_div_grad_grad takes the gradient of X in place of Out's.
    """
    op, held = names.op, {*names.op.inputs, *names.op.outputs}
    takes = {slot: origin for slot, origin in graddef.takes.items() if not _flows(origin, op)}
    there = graddef.given(slot for slot, origin in graddef.takes.items() if names.taken(origin))
    lost = any(origin.endswith(GRAD) for slot, origin in graddef.gives.items() if slot not in there)
    shapes = {
        names.shape(n) for origin in graddef.alike if origin in held for n in names.taken(origin)
    }
    return not all(map(names.taken, takes.values())) or lost or len(shapes) > 1


def _flows(origin: str, op: OpDesc) -> bool:
    return any(s.name + GRAD == origin for s in lookup(op.type).outputs)


def _gradient_by_vjp(definition: OpDef, names: Names, attrs: dict[str, Any]) -> list[Draft]:
    """The gradient of a gradient op by jax.vjp of the gradient op, or of its definition by jax.vjp.
    The latter takes inputs of the forward op, whose names the forward op gives.
    """
    graddef = further_grad(definition.type)
    if graddef is None:
        return []
    lacking = [slot for slot in inputs_of(definition.type) if not names.op.input(slot)]
    if lacking:
        forward = names.forward()
        if forward is None:
            return []
        held = {slot: forward.inputs[slot] for slot in lacking if forward.inputs.get(slot)}
        names.op = replace(names.op, inputs=names.op.inputs.set(**held))
    # a gradient that nothing computes is zero
    uncomputed = [s for s, held in names.op.inputs.items() if not any(map(names.declared, held))]
    names.op = replace(names.op, inputs=names.op.inputs.without(*uncomputed))
    return [_declared_gradient(graddef, names, attrs)]


def _reused_ops(reuse: Reuse, names: Names, attrs: dict[str, Any]) -> list[Draft]:
    full = {**lookup(reuse.type).defaults, **FrozenMap(reuse.attrs(attrs))}
    ins = {slot: names.taken(origin) for slot, origin in reuse.ins.items()}
    outs: dict[str, list[str]] = {}
    for slot, origin in reuse.outs.items():
        # an input slot itself ("Out": increment undoes its step), otherwise the gradient of an
        # input
        own = origin in names.op.inputs and not origin.endswith(GRAD)
        outs[slot] = list(names.op.input(origin)) if own else names.given(origin.removesuffix(GRAD))
    if not reuse.each:
        return [Draft(reuse.type, ins, outs, dict(full))]
    ((slot, found),) = outs.items()
    return [
        Draft(reuse.type, {s: list(v) for s, v in ins.items()}, {slot: [n]}, dict(full))
        for n in found
    ]
