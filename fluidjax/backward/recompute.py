"""append_backward with checkpoints: the gradient ops of a segment follow ops that recompute the
segment.

A segment lies between two checkpoints. Values that nothing outside of the segment reads are not
kept for the backward pass. Instead, the backward pass repeats the segment's ops with
``x.subprog_k`` in place of ``x``, and the gradient ops read those. The values that are kept are the
checkpoints, values that segments pass to each other, feeds, and the seeds of dropouts, so that both
passes drop the same elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .. import unique_name
from ..base.roles import OP_ROLE, OpRole
from ..errors import FluidTypeError, UnsupportedError
from ..graph.block import Block
from ..graph.variable import Variable
from ..ir.desc import EMPTY, OpDesc
from ..ir.recomputed import SUFFIX
from .draft import Draft

Gradients = Callable[[OpDesc], list[Draft]]
# positions on the path: the first op of a segment, and the one after its last
Span = tuple[int, int]


def names_of(checkpoints: Iterable[Variable | str]) -> list[str]:
    """The names of checkpoints without duplicates. Raises FluidTypeError for anything but a
    variable or a name.
    """
    if isinstance(checkpoints, str | Variable) or not isinstance(checkpoints, Iterable):
        raise FluidTypeError(f"checkpoints is a list of variables, not {checkpoints!r}")
    given = list(checkpoints)
    for c in given:
        if not isinstance(c, Variable | str):
            raise FluidTypeError(f"checkpoints is a list of variables, but it holds {c!r}")
    return list(dict.fromkeys(c if isinstance(c, str) else c.name for c in given))


def with_seeds(block: Block, path: Sequence[OpDesc]) -> list[OpDesc]:
    """The path with a seed op for every dropout. Raises UnsupportedError for an op that has a
    block.
    """
    for op in path:
        if op.blocks:
            where = f" ({op.loc})" if op.loc else ""
            raise UnsupportedError(
                f"op '{op.type}'{where} has a block, which cannot be recomputed, as in Paddle "
                "1.8.5; minimize without checkpoints"
            )
    found: list[OpDesc] = []
    for op in path:
        found += _seeded(block, op) if op.type == "dropout" and not op.input("Seed") else [op]
    return found


def _seeded(block: Block, op: OpDesc) -> list[OpDesc]:
    at, handle = next((i, o) for i, o in enumerate(block.ops) if o.desc.uid == op.uid)
    name = unique_name.generate_with_ignorable_key(unique_name.generate("seed") + ".tmp")
    seed = int(op.attrs.get("seed", 0)) if op.attrs.get("fix_seed") else 0
    var = block.create_var(name=name, shape=[1], dtype="int32")
    made = block._insert_op(at, type="seed", outputs={"Out": [var]}, attrs={"seed": seed})
    attrs = op.attrs.without("fix_seed", "seed")
    handle.change(inputs=op.inputs.set(Seed=(name,)), attrs=attrs)
    return [made.desc, handle.desc]


@dataclass(frozen=True)
class Plan:
    """segments: in the order of the path. kept: names that keep their value for the backward
    pass.
    """

    segments: Sequence[Span]
    kept: frozenset[str]


def plan(block: Block, path: Sequence[OpDesc], checkpoints: Sequence[str]) -> Plan:
    """The segments into which checkpoints divide a path. Checkpoints that no op of the path reads
    or writes are ignored.
    """
    uses = _Uses(path)
    used = [c for c in checkpoints if c in uses.readers or c in uses.writers]
    used.sort(key=lambda c: max(uses.writers.get(c, [-1])))
    segments = _segments(uses, used)
    kept = {
        n for n in uses.readers if n not in uses.writers and not block._var_recursive(n).persistable
    }
    kept.update(n for op in path if op.type == "seed" for n in op.writes)
    for span in segments:
        kept |= uses.across(span)
    return Plan(segments, frozenset(kept | set(used)))


class _Uses:
    """The positions on a path where names are read and written."""

    def __init__(self, path: Sequence[OpDesc]) -> None:
        self.path = path
        self.readers: dict[str, list[int]] = defaultdict(list)
        self.writers: dict[str, list[int]] = defaultdict(list)
        for i, op in enumerate(path):
            for name in op.reads:
                self.readers[name].append(i)
            for name in op.writes:
                self.writers[name].append(i)

    def across(self, span: Span) -> set[str]:
        """The names that the ops of a span pass to later ops, and those that they read from earlier
        ones.
        """
        begin, end = span
        ops = self.path[begin:end]
        out = {n for op in ops for n in op.writes if any(i >= end for i in self.readers.get(n, ()))}
        return out | {
            n for op in ops for n in op.reads if any(i < begin for i in self.writers.get(n, ()))
        }


def _segments(uses: _Uses, checkpoints: Sequence[str]) -> list[Span]:
    """The segments: each from a checkpoint's first reader to the next checkpoint's writer, and one
    before the first checkpoint.
    """
    if len(checkpoints) == 1:
        last = max(uses.writers.get(checkpoints[0], [-1]))
        return [(0, last + 1)] if last > 0 else []
    found: list[Span] = []
    for one, other in pairwise(checkpoints):
        first = min(uses.readers.get(one, [len(uses.path)]))
        last = max(uses.writers.get(other, [-1]))
        if first < last:
            found.append((first, last + 1))
    return [(0, found[0][0]), *found] if found and found[0][0] else found


def drafts(block: Block, path: Sequence[OpDesc], plan: Plan, gradients: Gradients) -> list[Draft]:
    """The gradient ops of the path in reverse order, those of each segment after the ops that
    recompute it.
    """
    found: list[Draft] = []
    renamed: dict[str, str] = {}
    end = len(path)
    for number, (first, last) in enumerate(reversed(plan.segments)):
        found += [d for op in reversed(path[last:end]) for d in gradients(op)]
        ops = path[first:last]
        end = first
        for name in (n for op in ops for n in (*op.reads, *op.writes)):
            if (
                name != EMPTY
                and name not in plan.kept
                and not block._var_recursive(name).persistable
            ):
                renamed.setdefault(name, f"{name}{SUFFIX}{number}")
        again = [_recomputing_draft(op) for op in ops if any(n in renamed for n in op.writes)]
        made = [d for op in reversed(ops) for d in gradients(op)]
        for draft in (*again, *made):
            _rename(draft, renamed)
        found += [*again, *made]
    return found + [d for op in reversed(path[:end]) for d in gradients(op)]


def _recomputing_draft(op: OpDesc) -> Draft:
    ins, outs = (
        {s: list(names) for s, names in slots.items()} for slots in (op.inputs, op.outputs)
    )
    return Draft(op.type, ins, outs, {**op.attrs, OP_ROLE: int(OpRole.Backward)}, op.loc)


def _rename(draft: Draft, renamed: dict[str, str]) -> None:
    for slots in (draft.inputs, draft.outputs):
        for names in slots.values():
            names[:] = [renamed.get(n, n) for n in names]
