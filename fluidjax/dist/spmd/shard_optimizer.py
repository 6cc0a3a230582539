"""Sharded optimizer state: every device keeps and updates its part of it, and its part of the
parameters.

This is Fluid's parameter server without servers: gradients are reduce-scattered, the optimizer runs
on shards, and the updated parameters are gathered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ...devices.shard_layout import ShardLayout, even
from ...ir import edit, walk
from ...ir.desc import OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder
from ...ops.registry import traits
from ...ops.sharding import flat_shapes, piece_size
from ...passes.base import Note, Params, Pass, Rewrite, did, refused
from .summing import pairs


@dataclass(frozen=True)
class ShardOptimizer(Pass):
    """Shard the optimizer's state, one shard on each of `ranks`; run before DataParallel.

    An elementwise optimizer op runs on this rank's shards of parameter, gradient and state. A
    gradient that nothing else reads is summed by a reduce-scatter; one that a clip or regularizer
    has read is summed by DataParallel and then split. Other optimizers gather their state, update
    it whole, and keep their shards, which saves memory only between the steps.
    """

    name: ClassVar[str] = "shard_optimizer"

    ranks: int

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        return _Sharding(desc, self, keep).rewritten()

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the persistable variables that the rewritten program shards."""
        old = walk.persistables(before)
        cut = [
            n for n, v in walk.persistables(after).items() if n in old and v.shape != old[n].shape
        ]
        return {n: even(n, old[n].shape or (), self.ranks) for n in cut}


class _Sharding:
    """The state of one rewrite."""

    def __init__(self, desc: ProgramDesc, options: ShardOptimizer, keep: frozenset[str]) -> None:
        self.desc, self.ranks, self.keep = desc, options.ranks, keep
        self.block = desc.blocks[0]
        self.made = OpBuilder.after(desc)
        self.vars: dict[str, VarDesc] = {}
        self.notes: list[Note] = []
        self.uses = Counter(
            n for op in self.block.ops for n in dict.fromkeys((*op.reads, *op.writes))
        )
        self.below = {n for b in desc.blocks[1:] for op in b.ops for n in (*op.reads, *op.writes)}
        # for this rank's batch only
        self.raw = {g for op in self.block.ops for _, g in pairs(op) if g in op.writes}

    def rewritten(self) -> Rewrite:
        updates = [op for op in self.block.ops if self._takes(op)]
        if not updates:
            return Rewrite(self.desc, notes=tuple(self.notes))
        by_elements = [op for op in updates if _by_elements(op)]
        first, last = (by_elements[0], by_elements[-1]) if by_elements else (None, None)
        out: list[OpDesc] = []
        chosen = {id(op) for op in updates}
        for op in self.block.ops:
            if op is first:
                out += self._before(by_elements)
            out += (
                [op]
                if id(op) not in chosen
                else [self._on_shards(op)]
                if _by_elements(op)
                else self._on_wholes(op)
            )
            if op is last:
                out += self._after(by_elements)
        desc = edit.add_vars(edit.replace_ops(self.desc, 0, out), 0, self.vars.values())
        return Rewrite(desc, notes=tuple(self.notes))

    # -- which ops ---------------------------------------------------------------------------------

    def _takes(self, op: OpDesc) -> bool:
        """Whether the op's state can be sharded; notes why not."""
        if traits(op.type).update is None or not edit.role(op) & edit.OPTIMIZE:
            return False
        reason = self._objection(op) if _by_elements(op) else None
        if reason is not None:
            self.notes.append(refused(op, reason))
        return reason is None and bool(self._state(op) or _by_elements(op))

    def _objection(self, op: OpDesc) -> str | None:
        (param,), (grad,) = op.input("Param"), op.input("Grad")
        var = self.block.vars.get(param)
        if var is None or var.shape is None or any(d < 0 for d in var.shape):
            return "its parameter has no fixed shape"
        if math.prod(var.shape) < self.ranks:
            return f"its parameter has fewer elements than there are ranks ({self.ranks})"
        if (found := self.block.vars.get(grad)) is not None and found.kind != "LOD_TENSOR":
            return "its gradient is sparse"
        if len(self._state(op)) < len(state_names(op)):
            return "something else uses its state"
        return None

    def _state(self, op: OpDesc) -> list[str]:
        """Variables of the op's state that can be sharded: large enough, and used only by this op."""
        return [n for n in state_names(op) if self._own(n)]

    def _own(self, name: str) -> bool:
        var = self.block.vars.get(name)
        sized = (
            var is not None
            and var.shape is not None
            and var.persistable
            and math.prod(var.shape) >= self.ranks
        )
        return sized and self.uses[name] == 1 and name not in self.below and name not in self.keep

    # -- the rewrite -------------------------------------------------------------------------------

    def _before(self, ops: Iterable[OpDesc]) -> list[OpDesc]:
        """This rank's shards of gradients and parameters."""
        ops = list(ops)
        scattered = [op for op in ops if self._scatters(op)]
        out = []
        if scattered:
            grads = [op.input("Grad")[0] for op in scattered]
            shards = [self._shard(g, _param(op)) for g, op in zip(grads, scattered, strict=True)]
            out.append(self._new("c_fused_reducescatter", grads, shards, ops[0]))
        for op in ops:
            (grad,), param = op.input("Grad"), _param(op)
            if op not in scattered:
                out.append(self._new("c_piece", [grad], [self._shard(grad, param)], op))
            out.append(self._new("c_piece", [param], [self._shard(param, param)], op))
        return out

    def _scatters(self, op: OpDesc) -> bool:
        """Whether nothing but the optimizer op reads the gradient."""
        (grad,) = op.input("Grad")
        return (
            grad in self.raw
            and self.uses[grad] == 2
            and grad not in self.below
            and grad not in self.keep
        )

    def _on_shards(self, op: OpDesc) -> OpDesc:
        param, (grad,) = _param(op), op.input("Grad")
        for name in self._state(op):
            self._cut(name)
        mapping = {param: _at_piece(param), grad: _at_piece(grad)}
        self.notes.append(did(op, f"{param} is updated in {self.ranks} shards"))
        attrs = op.attrs
        renamed = edit.rename_op(op, mapping)
        return replace(renamed, attrs=attrs)

    def _after(self, ops: Iterable[OpDesc]) -> list[OpDesc]:
        params = [_param(op) for op in ops]
        return [
            self._gather(
                [_at_piece(p) for p in params],
                params,
                [self.block.vars[p] for p in params],
                list(ops)[-1],
            )
        ]

    def _on_wholes(self, op: OpDesc) -> list[OpDesc]:
        names = self._state(op)
        olds = [self.block.vars[n] for n in names]
        wholes = {n: n + "@WHOLE" for n in names}
        for old in olds:
            self.vars[wholes[old.name]] = replace(old, name=wholes[old.name], persistable=False)
            self._cut(old.name)
        self.notes.append(
            did(op, f"{len(names)} variables of its state are kept in {self.ranks} shards")
        )
        gathered = self._gather(names, list(wholes.values()), olds, op)
        cut = [self._new("c_piece", [wholes[n]], [n], op) for n in names]
        return [gathered, replace(edit.rename_op(op, wholes), attrs=op.attrs), *cut]

    def _cut(self, name: str) -> None:
        """Declare a state variable as this rank's shard."""
        var = self.block.vars[name]
        self.vars[name] = replace(var, shape=(piece_size(math.prod(var.shape or ()), self.ranks),))

    def _shard(self, name: str, param: str) -> str:
        """Declare the variable that holds this rank's shard of an array of the parameter's shape."""
        like = self.block.vars[param]
        size = piece_size(math.prod(like.shape or ()), self.ranks)
        self.vars[_at_piece(name)] = VarDesc(
            _at_piece(name), (size,), like.dtype, stop_gradient=True
        )
        return _at_piece(name)

    def _new(self, kind: str, x: list[str], out: list[str], at: OpDesc, **attrs: object) -> OpDesc:
        return self.made.over(
            kind, x, at, out, nranks=self.ranks, ring_id=0, op_role=edit.OPTIMIZE, **attrs
        )

    def _gather(
        self, shards: list[str], wholes: list[str], like: list[VarDesc], at: OpDesc
    ) -> OpDesc:
        shapes = flat_shapes([v.shape or () for v in like])
        return self._new("c_fused_allgather", shards, wholes, at, shapes=tuple(shapes))


def _by_elements(op: OpDesc) -> bool:
    """Whether an optimizer updates every element separately, so that it can run on shards."""
    update = traits(op.type).update
    return update is not None and update.elements


def state_names(op: OpDesc) -> list[str]:
    """Variables of the parameter's shape that an optimizer keeps."""
    update = traits(op.type).update
    return [n for slot in (update.state if update else ()) for n in op.input(slot)]


def _param(op: OpDesc) -> str:
    return op.input("Param")[0]


def _at_piece(name: str) -> str:
    return name + "@PIECE"
