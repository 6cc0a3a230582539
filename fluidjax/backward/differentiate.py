"""One differentiation of a block: the drafts of all gradient ops of a path, and how they become ops and variables."""

from __future__ import annotations

from collections.abc import Sequence

from .. import unique_name
from ..base.roles import OP_ROLE, OP_ROLE_VAR, OpRole
from ..graph.block import Block
from ..graph.operator import Operator
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir.desc import EMPTY, FrozenMap, OpDesc, VarDesc
from ..ops.kinds import kind_of_output
from ..ops.registry import GRAD
from .draft import Draft, forward_name
from .pruning import drop_unconnected, drop_unwanted
from .rules import gradient_ops
from .summing import add_up

_ADDED = {"sum", "fill_zeros_like", "shape", "fill_constant"}  # ops of a differentiation that are no op's gradient


class Differentiation:
    """One call of append_backward or gradients.

    A program's first call makes gradients of everything on the path; later ones follow only what the targets' own
    gradients (`seeds`) reach, and must not overwrite the gradients of earlier calls.
    """

    def __init__(self, program: Program) -> None:
        program.update_info(grad_calls=program.info.grad_calls + 1)
        self.program = program
        self.order = program.info.grad_calls
        self.grad_to_var: dict[str, str] = {}

    def drafts(self, block: Block, path: Sequence[OpDesc], no_grad: set[str], seeds: set[str]) -> list[Draft]:
        """The gradient ops of a path, backwards. Adds to `no_grad`, the gradients that are not wanted."""
        reached = set(seeds)
        renamed: dict[str, str] = {}
        found: list[Draft] = []
        for op in reversed(path):
            made, grad_to_var = gradient_ops(op, no_grad)
            if self.order > 1:
                self._name_again(block, op, made, grad_to_var, renamed)
                made, any_kept = _reached(made, reached)
            else:
                any_kept = True
            found += made
            if any_kept:
                self.grad_to_var.update(grad_to_var)
        found = drop_unwanted(add_up(found, block.idx), no_grad)
        known = {n for op in path for n in (*op.reads, *op.writes)}
        return drop_unconnected(found, known | reached if self.order > 1 else known)

    def _name_again(
        self, block: Block, op: OpDesc, drafts: list[Draft], grad_to_var: dict[str, str], renamed: dict[str, str]
    ) -> None:
        """Rename gradients that an earlier call made, ``grad/grad/x@GRAD``; an op's gradient reads the new ones."""
        for d in drafts:
            if not _is_gradient(op):
                for name in d.reads:
                    if name in renamed:
                        d.rename_input(name, renamed[name])
            for name in d.writes:
                if GRAD in name and name in block.vars:
                    renamed[name] = "grad/" * self.order + name
                    d.rename_output(name, renamed[name])
                    if name in grad_to_var:
                        grad_to_var[renamed[name]] = grad_to_var.pop(name)

    def append(self, block: Block, drafts: list[Draft], given: dict[str, str]) -> dict[str, str]:
        """Append the ops and create their variables; forward variable -> its gradient's name.

        given: gradients that the caller has, under the caller's names.
        """
        self._free_names(block, drafts, given)
        found: dict[str, str] = {}
        for d in drafts:
            writes = [n for n in d.writes if n != EMPTY]
            grads = d.gradients_read
            if not writes or (grads and all(block._find_var_recursive(n) is None for n in grads)):
                continue
            for name in writes:
                if block._find_var_recursive(name) is None:
                    self._create(block, name, d)
                    if name in self.grad_to_var:
                        found[self.grad_to_var[name]] = name
            self._append_op(block, d)
        self.program.touch()
        return found

    def _free_names(self, block: Block, drafts: list[Draft], given: dict[str, str]) -> None:
        """Rename gradients whose names are taken: ``x@GRAD_0``."""
        names = dict(given)
        for d in drafts:
            for name in d.reads:
                if name in names:
                    d.rename_input(name, names[name])
            for name in d.writes:
                if GRAD in name and name in block.vars:
                    names[name] = unique_name.generate(name)
                    d.rename_output(name, names[name])
        for old, new in names.items():
            if old in self.grad_to_var:
                self.grad_to_var[new] = self.grad_to_var.pop(old)

    def _create(self, block: Block, name: str, draft: Draft) -> None:
        like = block._find_var_recursive(self.grad_to_var.get(name) or forward_name(name))
        if like is None:
            like = block._var_recursive(draft.reads[0])
        added = [block._find_var_recursive(n) for n in draft.inputs.get("X", ())]
        kinds = [v.desc.kind for v in added if v is not None]
        kind = kind_of_output(draft.type, draft.attrs, kinds) or like.desc.kind
        block.vars[name] = Variable(block, VarDesc(name, like.desc.shape, like.desc.dtype, kind, like.desc.lod_level))

    def _append_op(self, block: Block, d: Draft) -> None:
        attrs = FrozenMap({**d.attrs, OP_ROLE: d.attrs.get(OP_ROLE, int(OpRole.Backward))})
        ins = FrozenMap({s: tuple(v) for s, v in d.inputs.items()})
        outs = FrozenMap({s: tuple(v) for s, v in d.outputs.items()})
        block.ops.append(Operator(block, OpDesc(self.program.next_uid(), d.type, ins, outs, attrs, d.loc)))


def _is_gradient(op: OpDesc) -> bool:
    """Whether an op is an earlier differentiation's gradient of an op; Paddle tells it from the roles, and so do we."""
    return op.attrs.get(OP_ROLE) == OpRole.Backward and (op.type not in _ADDED or OP_ROLE_VAR in op.attrs)


def _reached(drafts: list[Draft], reached: set[str]) -> tuple[list[Draft], bool]:
    """The drafts that read a gradient in `reached`, which grows; and whether there is anything of the op's gradient."""
    kept: list[Draft] = []
    for d in drafts:
        if not d.gradients_read:  # increment's undoing reads none; it is left out, and what follows it
            return kept, True
        if not reached.isdisjoint(d.gradients_read):
            kept.append(d)
            reached.update(d.writes)
    return kept, bool(kept)
