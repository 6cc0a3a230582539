"""One differentiation of a block: drafts all gradient ops of a path, and turns them into ops and
variables.

The gradient of an op with a block has a block of its own. Its `write_grad` requests the block by
``names.inside()``, and this module makes it in the same way, with a number of its own, before the
op's gradient op is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from .. import unique_name
from ..base.roles import OP_ROLE, OpRole
from ..errors import UnsupportedError
from ..graph.block import Block
from ..graph.operator import Operator
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir.desc import EMPTY, BlockRef, FrozenMap, OpDesc, VarDesc
from ..ir.recomputed import original
from ..ops.kinds import kind_of_output
from ..ops.registry import GRAD, lookup, traits
from . import recompute
from .draft import Draft, forward_name, is_own, own_grad, prefixed, unmarked
from .path import path_inside
from .pruning import drop_unconnected, drop_unwanted
from .rules import Ends, gradient_ops
from .summing import add_up

Found = dict[str, Variable]  # a variable's name -> its gradient


def gradients_of(block: Block) -> Block | None:
    """The gradient block of a case in which minimize or append_backward was called."""
    later = islice(block.program.blocks, block.idx + 1, None)
    return next((b for b in later if b.forward_block_idx == block.idx), None)


@dataclass(frozen=True)
class Inside:
    """The drafts of a gradient block (the protocol GradBlock of ops/definition.py)."""

    block: Block
    drafts: list[Draft]

    @property
    def idx(self) -> int:
        return self.block.idx

    @property
    def reads(self) -> list[list[str]]:
        return [d.reads for d in self.drafts]

    @property
    def writes(self) -> list[list[str]]:
        return [d.writes for d in self.drafts]

    def sees(self, name: str) -> bool:
        return self.block._find_var_recursive(name) is not None


class Differentiation:
    """One call of append_backward or gradients.

    A program's first call makes gradients of everything on the path. Later calls follow only what
    the targets' own gradients (`seeds`) reach, and must not overwrite the gradients of earlier
    calls.
    """

    def __init__(self, program: Program, within: bool = False) -> None:
        """within: this differentiates a case, whose gradients have a block of their own. It does
        not count as a call, as in 1.8.5.
        """
        self._counts = not within
        program.update_info(grad_calls=program.info.grad_calls + self._counts)
        self.program = program
        self.order = 1 if within else program.info.grad_calls
        self.grad_to_var: dict[str, str] = {}
        self.inside: dict[int, Inside] = {}  # gradient blocks by number

    @contextlib.contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """If the block of this context raises, the program gets its old blocks back."""
        program, count, current = (
            self.program,
            len(self.program.blocks),
            self.program.current_block_idx,
        )
        try:
            yield
        except BaseException:
            del program.blocks[count:]
            program.current_block_idx = current
            program.update_info(grad_calls=program.info.grad_calls - self._counts)
            program.touch()
            raise

    def gradient_block(self, current: Block) -> Block:
        """The block for the gradient ops of a call made while ops go to `current`: within a case, a
        new block for the case's gradients.
        """
        if not current.idx:
            return current
        if gradients_of(current) is not None:
            raise UnsupportedError(
                "a case is differentiated once: call minimize or append_backward in it for the sum"
                " of its losses"
            )
        block = self.program._create_block(current.parent_idx)
        block.forward_block_idx = current.idx
        return block

    def drafts(
        self,
        block: Block,
        path: Sequence[OpDesc],
        no_grad: set[str],
        seeds: Set[str] | None,
        checkpoints: Sequence[str] = (),
        wanted: Set[str] = frozenset(),
        start: Sequence[Draft] = (),
        there: Set[str] = frozenset(),
    ) -> list[Draft]:
        """The gradient ops of a path in reverse order, behind `start`. Adds the unwanted gradients
        to `no_grad`.

        seeds: the gradients to begin from; None means all, as within a block, where a gradient may
        come from another iteration. wanted: variables whose gradients the caller requests. start:
        ops that make such gradients. there: gradients that earlier ops make. checkpoints: names of
        values between which all others are recomputed (recompute.py).
        """
        if checkpoints:
            return self._recomputing(block, path, no_grad, checkpoints)
        reached = set(seeds) if seeds is not None and self.order > 1 else None
        found: list[Draft] = []
        for op in reversed(path):
            made, grad_to_var = gradient_ops(block, op, no_grad, self._inside)
            any_kept = True
            if reached is not None:
                made, any_kept = _reached(made, reached)
            found += made
            if self.order > 1:
                _refuse_captured(block, op, made)
            if any_kept:
                self.grad_to_var.update(grad_to_var)
        if self.order > 1:
            self._rename_taken(block, start, found)
        summed = add_up([*start, *found], block.idx)
        found = drop_unwanted(summed[len(start) :], no_grad)
        known = {n for op in path for n in (*op.reads, *op.writes)} | there | (reached or set())
        return [*summed[: len(start)], *drop_unconnected(found, known, wanted)]

    def _recomputing(
        self, block: Block, path: Sequence[OpDesc], no_grad: set[str], checkpoints: Sequence[str]
    ) -> list[Draft]:
        def gradients(op: OpDesc) -> list[Draft]:
            made, grad_to_var = gradient_ops(block, op, no_grad, self._inside)
            self.grad_to_var.update(grad_to_var)
            return made

        path = recompute.with_seeds(block, path)
        found = recompute.drafts(block, path, recompute.plan(block, path, checkpoints), gradients)
        return drop_unwanted(add_up(found, block.idx), no_grad)

    def _inside(self, op: OpDesc, ends: Ends | None) -> Inside:
        """The gradient ops of an op's block, in a new block. The variables of that block decide
        where gradients stop.
        """
        forward = self.program.block(op.attrs["sub_block"].idx)
        block = self.program._create_block()
        block.forward_block_idx = forward.idx
        ops = [o.desc for o in forward.ops]
        path = ops if ends is None else path_inside(forward, ends(ops))
        stopped = {own_grad(v.name) for v in forward.vars.values() if v.stop_gradient}
        seeds = None if ends is None else {own_grad(n) for op in ends(ops) for n in op.writes}
        found = self.inside[block.idx] = Inside(block, self.drafts(forward, path, stopped, seeds))
        self.program._rollback()
        return found

    def _rename_taken(self, block: Block, start: Sequence[Draft], drafts: Sequence[Draft]) -> None:
        """Rename gradients whose names an earlier call has taken to ``grad/grad/x@GRAD``; the
        gradients that the call begins with get other names.
        """
        begun = {n for d in start for n in d.writes}
        written = {n for d in drafts for n in d.writes if is_own(n)} - begun
        again = {n: prefixed(n, "grad/" * self.order) for n in written if unmarked(n) in block.vars}
        for d in drafts:
            for slots in (d.inputs, d.outputs):
                for names in slots.values():
                    names[:] = [again.get(n, n) for n in names]
        for old, new in again.items():
            if old in self.grad_to_var:
                self.grad_to_var[new] = self.grad_to_var.pop(old)

    def append(self, block: Block, drafts: list[Draft], given: dict[str, str]) -> Found:
        """Append the ops and create their variables. Returns the gradients by the names of the
        forward variables.

        given: gradients that the caller has, under the caller's names.
        """
        self._free_names(block, drafts, given)
        found: Found = {}
        self._append(block, drafts, {*given.values()}, frozenset(), found)
        self.grad_to_var = {unmarked(grad): var for grad, var in self.grad_to_var.items()}
        self.program.touch()
        return found

    def _append(
        self,
        block: Block,
        drafts: Sequence[Draft],
        there: set[str],
        recurring: Set[str],
        found: Found,
    ) -> None:
        """there: gradients that have been computed so far. recurring: gradients that one iteration
        of the block passes to the next.
        """
        straight = block.idx not in self.inside
        for d in drafts:
            below = d.attrs.get("sub_block")
            if isinstance(below, BlockRef) and below.idx in self.inside:
                again = {*d.reads} & {*d.writes}
                self._append(
                    self.program.block(below.idx),
                    self.inside[below.idx].drafts,
                    {*there},
                    again,
                    found,
                )
            if self._has_use(block, d, there, recurring):
                for zeros in self._zero_fills(block, d, there) if straight else ():
                    self._append_draft(block, zeros, there, found)
                self._append_draft(block, d, there, found)

    def _append_draft(self, block: Block, d: Draft, there: set[str], found: Found) -> None:
        there.update(n for n in d.writes if is_own(n))
        variables = {unmarked(n): self.grad_to_var.get(n) for n in d.writes}
        d.unmark()
        for name in self._missing(block, d):
            # as Paddle leaves them
            block.vars[name] = Variable.of(block, VarDesc(name, (), "bool"))
        for name, of in variables.items():
            if name != EMPTY and block._find_var_recursive(name) is None:
                self._create(block, name, of, d)
                if of is not None:
                    found[of] = block.vars[name]
        self._append_op(block, d)

    def _zero_fills(self, block: Block, d: Draft, there: Set[str]) -> list[Draft]:
        """Ops that make zeros for gradients that a draft needs and nothing computes.

        As in Paddle, a slot for one gradient may name a gradient that does not exist, unless the
        name has another meaning.
        """
        made: list[Draft] = []
        definition = lookup(d.type)
        if definition.fn is None:  # control ops handle missing gradients themselves
            return []
        slots = {s.name: s for s in definition.inputs}
        for name, names in d.inputs.items():
            if slots[name].gaps:
                continue
            for i, missing in enumerate(names):
                of = self.grad_to_var.get(missing)
                lacking = is_own(missing) and missing not in there
                free = (
                    slots[name].gradient
                    and not slots[name].many
                    and block._find_var_recursive(unmarked(missing)) is None
                )
                if lacking and of is not None and not free:
                    names[i] = prefixed(unique_name.generate(unmarked(missing)), "")
                    made.append(
                        Draft("fill_zeros_like", {"X": [of]}, {"Out": [names[i]]}, {}, d.loc)
                    )
        return made

    @staticmethod
    def _missing(block: Block, d: Draft) -> list[str]:
        """Gradients to be summed that no op writes; Paddle declares them too."""
        slots = (slot.name for slot in lookup(d.type).inputs if slot.gaps)
        return [
            n
            for slot in slots
            for n in d.inputs.get(slot, ())
            if GRAD in n and block._find_var_recursive(n) is None
        ]

    @staticmethod
    def _has_use(block: Block, d: Draft, there: Set[str], recurring: Set[str]) -> bool:
        """Whether a gradient op writes something and, if it reads gradients, at least one of them
        exists.
        """
        if all(n == EMPTY for n in d.writes):
            return False
        grads = d.gradients_read
        known = (
            n in there or n in recurring or block._find_var_recursive(n) is not None for n in grads
        )
        return not grads or traits(d.type).fed_by_steps or any(known)

    def _free_names(self, block: Block, drafts: list[Draft], given: Mapping[str, str]) -> None:
        """Rename gradients whose names are taken: ``x@GRAD_0``."""
        names = dict(given)
        for d in drafts:
            for name in d.reads:
                if name in names:
                    d.rename_input(name, names[name])
            for name in d.writes:
                free = unmarked(name)
                taken = free in block.vars or (
                    block.idx and block._find_var_recursive(free) is not None
                )
                if is_own(name) and taken:
                    names[name] = prefixed(unique_name.generate(free), "")
                    d.rename_output(name, names[name])
        for old, new in names.items():
            if old in self.grad_to_var:
                self.grad_to_var[new] = self.grad_to_var.pop(old)

    def _create(self, block: Block, name: str, of: str | None, draft: Draft) -> None:
        if original(name) != name:
            kept = block._var_recursive(original(name)).desc
            block.vars[name] = Variable.of(
                block, VarDesc(name, kept.shape, kept.dtype, kept.kind, kept.lod_level)
            )
            return
        like = block._find_var_recursive(of or forward_name(name))
        if like is None:
            like = next(v for n in draft.reads if (v := block._find_var_recursive(n)) is not None)
        added = [block._find_var_recursive(n) for n in draft.inputs.get("X", ())]
        kinds = [v.plain.kind for v in added if v is not None]
        slot = next(s for s, names in draft.outputs.items() if name in names)
        kind = kind_of_output(draft.type, draft.attrs, kinds, slot) or like.plain.kind
        block.vars[name] = Variable.of(
            block, VarDesc(name, like.plain.shape, like.plain.dtype, kind, like.plain.lod_level)
        )

    def _append_op(self, block: Block, d: Draft) -> None:
        attrs = FrozenMap({**d.attrs, OP_ROLE: d.attrs.get(OP_ROLE, int(OpRole.Backward))})
        ins = FrozenMap({s: tuple(v) for s, v in d.inputs.items()})
        outs = FrozenMap({s: tuple(v) for s, v in d.outputs.items()})
        block.ops.append(
            Operator(block, OpDesc(self.program.next_uid(), d.type, ins, outs, attrs, d.loc))
        )


def _refuse_captured(block: Block, op: OpDesc, drafts: Sequence[Draft]) -> None:
    """Raises UnsupportedError if a block computed the gradient of a variable from outside and that
    gradient is to be differentiated.
    """
    for name in (
        {n for d in drafts for n in d.writes if is_own(n) and unmarked(n) in block.vars}
        if block.idx
        else ()
    ):
        source = forward_name(name)
        if source not in block.vars and block._find_var_recursive(source) is not None:
            where = f" ({op.loc})" if op.loc else ""
            raise UnsupportedError(
                f"gradients() within a block has computed the gradient of {source!r}, which is a "
                f"variable from outside, so op '{op.type}'{where} of that block cannot be "
                "differentiated again, as in Paddle 1.8.5; compute the gradients outside the case "
                "or the loop, or only those of variables of the block"
            )


def _reached(drafts: list[Draft], reached: set[str]) -> tuple[list[Draft], bool]:
    """The drafts that read a gradient in `reached`, to which their outputs are added; and whether
    any draft of the op's gradient is needed.
    """
    kept: list[Draft] = []
    for d in drafts:
        # the draft that undoes an increment reads none: leave it out, and all behind it
        if not d.gradients_read:
            return kept, True
        if not reached.isdisjoint(d.gradients_read):
            kept.append(d)
            reached.update(d.writes)
    return kept, bool(kept)
