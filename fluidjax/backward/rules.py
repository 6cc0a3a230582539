"""The gradient ops of one op.

What an op's gradient is stands where the op is declared: a :class:`GradDef` (an op of its own), :class:`Reuse` rows
(ordinary ops), or a function (``OpDef.write_grad``, for ops whose gradient has blocks of its own).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from ..base.roles import OP_ROLE, OP_ROLE_VAR
from ..errors import UnsupportedError
from ..ir.desc import EMPTY, FrozenMap, OpDesc
from ..ops.definition import GradBlock, GradOp, Unwritten
from ..ops.later import SLOTS
from ..ops.registry import GRAD, GradDef, OpDef, Reuse, lookup
from .draft import Draft, grad_name

_BOOKKEEPING = (OP_ROLE, OP_ROLE_VAR, "op_callstack")

Ends = Callable[[Sequence[OpDesc]], Sequence[OpDesc]]
Inside = Callable[[OpDesc, Ends | None], GradBlock]


def has_grad(kind: str) -> bool:
    """Whether gradients flow through ops of this type."""
    definition = lookup(kind)
    return definition.grad is not None or bool(definition.reuse) or definition.write_grad is not None


class Names:
    """The names of one op's gradients; `grad_to_var` collects the variable that each is of."""

    def __init__(self, op: OpDesc, no_grad: Set[str], differentiate: Inside) -> None:
        self.op = op
        self.no_grad = no_grad  # names of gradients that nobody wants
        self.differentiate = differentiate  # an op's block
        self.grad_to_var: dict[str, str] = {}
        self.repeatable = {s.name for s in lookup(op.type).inputs if s.many}

    def taken(self, origin: str) -> list[str]:
        """What an input slot holds: the names of a forward slot, or the gradients of an output slot."""
        for slots in (self.op.inputs, self.op.outputs):
            if origin in slots:
                return list(slots[origin])
        return self._noted(n for n in self.op.output(origin.removesuffix(GRAD)) if n != EMPTY)

    def given(self, slot: str) -> list[str]:
        """The gradients of an input slot: ``@EMPTY@`` for unwanted ones of a repeatable slot, nothing in a plain one."""
        wanted = [n != EMPTY and grad_name(n) not in self.no_grad for n in self.op.input(slot)]
        grads = self._noted(n for n, w in zip(self.op.input(slot), wanted, strict=True) if w)
        if slot not in self.repeatable:
            return grads
        found = iter(grads)
        return [next(found) if w else EMPTY for w in wanted]

    def inside(self, ends: Ends | None = None) -> GradBlock:
        """The gradient ops of the op's block, in a block made for them; see GradNames."""
        return self.differentiate(self.op, ends)

    def _noted(self, names: Iterable[str]) -> list[str]:
        pairs = [(grad_name(n), n) for n in names]
        self.grad_to_var.update(pairs)
        return [grad for grad, _ in pairs]


def gradient_ops(op: OpDesc, no_grad: Set[str], differentiate: Inside) -> tuple[list[Draft], dict[str, str]]:
    """The gradient ops of one op, and for every gradient that they name the variable it is of.

    differentiate: makes the gradient block of an op that holds one. Raises UnsupportedError where a gradient is not there.
    """
    definition, names = lookup(op.type), Names(op, no_grad, differentiate)
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
        raise UnsupportedError(f"the gradient of op '{op.type}' ({op.loc}) is not there yet: {definition.write_grad.advice}")
    if definition.write_grad is not None:
        return [_written(made) for made in definition.write_grad(names.op, names)]
    if definition.reuse:
        return [d for reuse in definition.reuse for d in _reused(reuse, names, attrs)]
    return [] if definition.grad is None else [_own(definition.grad, names, attrs)]


def _written(made: GradOp) -> Draft:
    ins, outs = ({slot: list(names) for slot, names in slots.items()} for slots in (made.ins, made.outs))
    return Draft(made.type, ins, outs, dict(made.attrs))


def _own(graddef: GradDef, names: Names, attrs: dict[str, Any]) -> Draft:
    later = SLOTS.get(names.op.type, ())
    ins = {slot: found for slot, origin in graddef.taken(attrs).items() if (found := names.taken(origin)) or slot not in later}
    there = graddef.given(slot for slot, found in ins.items() if found)
    _warn_of_lost(graddef, there, names.op)
    return Draft(graddef.type, ins, {slot: names.given(origin) for slot, origin in there.items()}, attrs)


def _warn_of_lost(graddef: GradDef, there: Mapping[str, str], op: OpDesc) -> None:
    """Paddle's conv2d_grad_grad does not differentiate by Output@GRAD unless Input@GRAD is wanted."""
    lost = [origin for slot, origin in graddef.gives.items() if slot not in there and origin.endswith(GRAD)]
    if lost and there:
        warnings.warn(
            f"the second gradient of op '{op.type}' ({op.loc}) does not reach its {lost[0]}, as in Paddle 1.8.5, because "
            "only the filter's gradient was asked for; set stop_gradient = False on the op's input before the first gradients()",
            stacklevel=2,
        )


def _reused(reuse: Reuse, names: Names, attrs: dict[str, Any]) -> list[Draft]:
    full = {**lookup(reuse.type).defaults, **FrozenMap(reuse.attrs(attrs))}
    ins = {slot: names.taken(origin) for slot, origin in reuse.ins.items()}
    outs: dict[str, list[str]] = {}
    for slot, origin in reuse.outs.items():
        # "Out": an input slot itself (increment undoes its step), otherwise the gradient of an input
        own = origin in names.op.inputs and not origin.endswith(GRAD)
        outs[slot] = list(names.op.input(origin)) if own else names.given(origin.removesuffix(GRAD))
    if not reuse.each:
        return [Draft(reuse.type, ins, outs, dict(full))]
    ((slot, found),) = outs.items()
    return [Draft(reuse.type, {s: list(v) for s, v in ins.items()}, {slot: [n]}, dict(full)) for n in found]
