"""Queries on a program: readers and writers of names, versions of names, liveness.

Everything here is linear in the size of the program and follows sub-blocks without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..base.roles import OP_ROLE, OpRole
from .desc import EMPTY, BlockDesc, OpDesc, ProgramDesc, VarDesc

Version = tuple[str, int]  # (name, k): the value of `name` after k writes in this block

# Lists of strings that do not hold names of an op's variables.
_HINTS = frozenset({"op_role_var", "op_callstack", "skip_eager_deletion_vars"})
FEEDABLE_KINDS = frozenset({"LOD_TENSOR", "SELECTED_ROWS"})


class Versions(NamedTuple):
    """The versioned names that one op reads and writes, in slot order."""

    reads: tuple[Version, ...]
    writes: tuple[Version, ...]


class Captured(NamedTuple):
    """Names that a sub-block uses but does not declare: they belong to its ancestors. In order of
    first use.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def ops(desc: ProgramDesc) -> Iterator[tuple[int, OpDesc]]:
    """Every op with the index of its block, block by block."""
    return ((idx, op) for idx, block in enumerate(desc.blocks) for op in block.ops)


def weights(desc: ProgramDesc) -> dict[str, VarDesc]:
    """The parameters by name. A file may not mark parameters; then they are the persistable arrays
    that the forward ops read.
    """
    said = {n: v for block in desc.blocks for n, v in block.vars.items() if v.is_parameter}
    if said:
        return said
    roles = [(idx, op, op.attrs.get(OP_ROLE, 0)) for idx, op in ops(desc)]
    backward = [i for i, (_, _, role) in enumerate(roles) if role == OpRole.Backward]
    found: dict[str, VarDesc] = {}
    for idx, op, role in roles[: backward[-1]] if backward else roles:
        if role in (OpRole.Forward, OpRole.Loss):
            for name in op.reads:
                var = desc.find_var(name, idx)
                if var is not None and var.persistable and var.kind in FEEDABLE_KINDS:
                    found[name] = var
    return found


def readers(block: BlockDesc) -> dict[str, tuple[int, ...]]:
    """Name -> positions of the ops that have it in an input slot (sub-blocks are not looked
    into).
    """
    return _positions(op.reads for op in block.ops)


def writers(block: BlockDesc) -> dict[str, tuple[int, ...]]:
    """Name -> positions of the ops that have it in an output slot (sub-blocks are not looked
    into).
    """
    return _positions(op.writes for op in block.ops)


def _positions(uses: Iterable[Iterable[str]]) -> dict[str, tuple[int, ...]]:
    found: dict[str, dict[int, None]] = {}
    for at, names in enumerate(uses):
        for name in names:
            found.setdefault(name, {})[at] = None
    return {name: tuple(where) for name, where in found.items()}


def versions(block: BlockDesc, desc: ProgramDesc | None = None) -> list[Versions]:
    """The versioned names of every op of `block`; an op that writes a name twice makes one new
    version of it.

    With `desc`, the names that an op's sub-blocks read and write count too (after the op's own
    names).
    """
    count: dict[str, int] = {}
    result = []
    for op in block.ops:
        reads = reads_with_subblocks(desc, op) if desc else tuple(op.reads)
        writes = writes_with_subblocks(desc, op) if desc else tuple(op.writes)
        read = tuple((name, count.get(name, 0)) for name in reads)
        for name in dict.fromkeys(writes):
            count[name] = count.get(name, 0) + 1
        result.append(Versions(read, tuple((name, count[name]) for name in writes)))
    return result


def nested(desc: ProgramDesc, roots: Iterable[int]) -> list[int]:
    """`roots` and every block below them, each once, in the order in which ops refer to them.

    Indices without a block are left out.
    """
    seen: dict[int, None] = {}
    stack = list(roots)[::-1]
    while stack:
        idx = stack.pop()
        if idx in seen or not 0 <= idx < len(desc.blocks):
            continue
        seen[idx] = None
        stack.extend([ref for op in desc.blocks[idx].ops for ref in op.blocks][::-1])
    return list(seen)


def below(desc: ProgramDesc, ops: Iterable[OpDesc]) -> list[OpDesc]:
    """The ops of all blocks below these ops."""
    roots = [idx for op in ops for idx in op.blocks]
    return [op for idx in nested(desc, roots) for op in desc.blocks[idx].ops] if roots else []


# nesting of blocks; loops and branches of scripts need a dozen, except for long chains of `case`
MOST_NESTED = 100


def misnested(desc: ProgramDesc) -> str | None:
    """The fault in the nesting of blocks, by the references of their ops: a missing block, a
    circle, or too many levels; "" if there is none.
    """
    refs = [{ref for op in block.ops for ref in op.blocks} for block in desc.blocks]
    for idx, found in enumerate(refs):
        if lost := [ref for ref in sorted(found) if not 0 <= ref < len(refs)]:
            return (
                f"an op of block {idx} has block {lost[0]}, which does not exist; the program has"
                f" {len(refs)}"
            )
    around = [0] * len(refs)  # the number of references to each block from blocks of unknown depth
    for found in refs:
        for ref in found:
            around[ref] += 1
    depths = [1] * len(refs)
    settled = [idx for idx, count in enumerate(around) if not count]
    for idx in settled:  # the list grows
        for ref in refs[idx]:
            depths[ref] = max(depths[ref], depths[idx] + 1)
            around[ref] -= 1
            if not around[ref]:
                settled.append(ref)
    if len(settled) < len(refs):
        idx = next(i for i, count in enumerate(around) if count)
        return (
            f"block {idx} is nested in itself: an op of it, or of a block below it, refers to it "
            "as its own block"
        )
    deepest = max(range(len(depths)), key=depths.__getitem__, default=0)
    if depths and depths[deepest] > MOST_NESTED:
        return (
            f"block {deepest} is nested in {depths[deepest] - 1} others; blocks may be nested "
            f"{MOST_NESTED} deep"
        )
    return None


def captured(desc: ProgramDesc, idx: int) -> Captured:
    """The names that block `idx`, or a block below it, reads and writes from the ancestors of
    `idx`.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    inside = nested(desc, [idx])
    for at in inside:
        local = _local_names(desc, at, idx)
        for op in desc.blocks[at].ops:
            reads.update((n, None) for n in op.reads if not any(n in names for names in local))
            writes.update((n, None) for n in op.writes if not any(n in names for names in local))
    return Captured(tuple(reads), tuple(writes))


def _local_names(desc: ProgramDesc, at: int, top: int) -> list[dict[str, VarDesc]]:
    """The variable maps from block `at` up to and including block `top`.

    A gradient block finds the variables of its forward block in a step scope, so they are local to
    it too.
    """
    maps: list[dict[str, VarDesc]] = []
    for _ in desc.blocks:  # so that circular parents end the loop
        if not 0 <= at < len(desc.blocks):
            break
        maps.append(desc.blocks[at].vars)
        if 0 <= desc.blocks[at].forward < len(desc.blocks):
            maps.append(desc.blocks[desc.blocks[at].forward].vars)
        if at == top:
            break
        at = desc.blocks[at].parent
    return maps


def read_back(desc: ProgramDesc, idx: int) -> tuple[str, ...]:
    """The variables of block `idx` that its gradient blocks, and the blocks below them, read."""
    found: dict[str, None] = {}
    for grad in (i for i, block in enumerate(desc.blocks) if block.forward == idx):
        for at in nested(desc, [grad]):
            found.update(
                (n, None)
                for op in desc.blocks[at].ops
                for n in op.reads
                if n in desc.blocks[idx].vars
            )
    return tuple(found)


def written_before(desc: ProgramDesc, op: OpDesc, names: Iterable[str]) -> list[str]:
    """The names among these that may hold a value when `op` runs: persistable or fed variables, and
    variables that any other op writes.
    """
    own = {op.uid, *(o.uid for idx in nested(desc, op.blocks) for o in desc.blocks[idx].ops)}
    others = {n for _, o in ops(desc) if o.uid not in own for n in o.writes}
    vars = [
        v
        for block in desc.blocks
        for v in block.vars.values()
        if v.persistable or v.is_data or v.need_check_feed
    ]
    others.update(v.name for v in vars)
    return [n for n in names if n in others]


def reads_with_subblocks(desc: ProgramDesc, op: OpDesc) -> tuple[str, ...]:
    """The op's input names, slot by slot, then further names that its sub-blocks read from
    outside.
    """
    own = tuple(op.reads)
    return own + _extra(own, (name for idx in op.blocks for name in captured(desc, idx).reads))


def writes_with_subblocks(desc: ProgramDesc, op: OpDesc) -> tuple[str, ...]:
    """The op's output names, slot by slot, then further names that its sub-blocks write outside."""
    own = tuple(op.writes)
    return own + _extra(own, (name for idx in op.blocks for name in captured(desc, idx).writes))


def written_outside(desc: ProgramDesc, op: OpDesc) -> tuple[str, ...]:
    """The names that the op's sub-blocks write outside, without duplicates."""
    return tuple(dict.fromkeys(name for idx in op.blocks for name in captured(desc, idx).writes))


def hidden_names(op: OpDesc) -> dict[str, tuple[str, ...]]:
    """Attributes with names of variables that are in no slot: lists of strings of an op with blocks
    (a recurrent op's states).
    """
    if not op.blocks:
        return {}
    lists = (
        (attr, value)
        for attr, value in op.attrs.items()
        if attr not in _HINTS and isinstance(value, tuple)
    )
    return {
        attr: value for attr, value in lists if value and all(isinstance(v, str) for v in value)
    }


def _extra(own: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(more) if name not in own)


def exposed(desc: ProgramDesc, idx: int) -> tuple[str, ...]:
    """Captured names that block `idx` reads before it writes them, so they must have a value on
    entry.
    """
    read: dict[str, None] = {}
    outside = set(captured(desc, idx).reads)
    written: set[str] = set()
    for op in desc.blocks[idx].ops:
        below = (
            [name for ref in op.blocks for name in captured(desc, ref).reads] if op.blocks else []
        )
        read.update((n, None) for n in (*op.reads, *below) if n in outside and n not in written)
        written.update(op.writes)
    return tuple(read)


def persistables(desc: ProgramDesc) -> dict[str, VarDesc]:
    """Every persistable variable by name, block by block (the outermost declaration where a name is
    used twice).
    """
    found: dict[str, VarDesc] = {}
    for block in desc.blocks:
        for name, var in block.vars.items():
            if var.persistable:
                found.setdefault(name, var)
    return found


Carried = Callable[[ProgramDesc, OpDesc], Iterable[str]]


def uses(
    desc: ProgramDesc, ops: Iterable[OpDesc], carried: Carried = written_outside
) -> tuple[dict[str, OpDesc], dict[str, None]]:
    """Names that `ops` of block 0 read before one of them has written them, with their first
    reader; and all names written.

    Names that sub-blocks read from outside count with their op, and so do the names that it
    carries: names that may keep their old value, by default those that its blocks write outside,
    because the blocks may not run.
    """
    first: dict[str, OpDesc] = {}
    written: dict[str, None] = {}
    for op in ops:
        below = [name for idx in op.blocks for name in exposed(desc, idx)]
        names = (*op.reads, *below, *carried(desc, op))
        for name in names:
            if name not in written:
                first.setdefault(name, op)
        written.update(dict.fromkeys(writes_with_subblocks(desc, op) if op.blocks else op.writes))
    return first, written


def free_names(desc: ProgramDesc) -> tuple[str, ...]:
    """The names that must be fed: names of block 0 that are read before anything writes them and
    that are not persistable.

    Tensor arrays, step scopes and similar variables start empty and are never fed.
    """
    vars = desc.blocks[0].vars

    def fed(var: VarDesc | None) -> bool:
        return var is None or (not var.persistable and var.kind in FEEDABLE_KINDS)

    return tuple(
        name for name in uses(desc, desc.blocks[0].ops, lambda *_: ())[0] if fed(vars.get(name))
    )


def replaces(block: BlockDesc, op: OpDesc) -> tuple[str, ...]:
    """Names whose old value `op` replaces completely.

    A tensor array keeps its other entries, and the blocks of an op may not run, so such writes
    replace nothing.
    """
    return () if op.blocks else tuple(_replaced(block, op))


def _replaced(block: BlockDesc, op: OpDesc) -> Iterator[str]:
    """The names that an op without blocks replaces."""
    return (n for n in op.writes if n not in block.vars or block.vars[n].kind != "LOD_TENSOR_ARRAY")


def step_back(desc: ProgramDesc, op: OpDesc, needed: set[str]) -> None:
    """Update, in place, the names needed after `op` (an op of block 0 that runs) to the names
    needed before it.
    """
    if op.blocks:
        needed.update(reads_with_subblocks(desc, op))
    else:
        needed.difference_update(_replaced(desc.blocks[0], op))
        needed.update(op.reads)


class Liveness:
    """Which names hold a value that is still needed, before and after every op.

    ``liveness[i]`` is (live_in, live_out) of op i; iterating gives them in order. `born[i]` are
    names that become live at op i, `dies[i]` those whose last use it is, `dead[i]` those that it
    writes without a later use; these three are linear in the program, while all live sets together
    may not be.
    """

    def __init__(self, entry: frozenset[str], born: list[frozenset[str]], dies: list[frozenset[str]],
                 dead: list[frozenset[str]]) -> None:  # fmt: skip
        self.entry, self.born, self.dies, self.dead = entry, born, dies, dead
        self._at, self._live = 0, set(entry)

    def __len__(self) -> int:
        return len(self.born)

    def __iter__(self) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        before = self.entry
        for born, dies in zip(self.born, self.dies, strict=True):
            after = (before - dies) | born if born or dies else before
            yield before, after
            before = after

    def __getitem__(self, i: int) -> tuple[frozenset[str], frozenset[str]]:
        """(live_in, live_out) of op `i`; queries near the last one are cheap. Raises IndexError."""
        i = range(len(self))[i]
        while self._at < i:
            self._live = (self._live - self.dies[self._at]) | self.born[self._at]
            self._at += 1
        while self._at > i:
            self._at -= 1
            self._live = (self._live - self.born[self._at]) | self.dies[self._at]
        before = frozenset(self._live)
        return before, (before - self.dies[i]) | self.born[i]


def liveness(
    block: BlockDesc, keep: Iterable[str] = (), desc: ProgramDesc | None = None
) -> Liveness:
    """Live names of `block` if `keep` must survive its end (fetches, persistables).

    Give `desc` if ops have sub-blocks, whose reads count too. A write by an op with sub-blocks, or
    into a tensor array, may keep old contents, so it does not end the life of the old value.
    """
    live = set(keep)
    born, dies, dead = [], [], []
    for op in reversed(block.ops):
        writes = set(writes_with_subblocks(desc, op)) if desc else set(op.writes)
        reads = set(reads_with_subblocks(desc, op)) if desc else set(op.reads)
        dead.append(frozenset(writes - live))
        needed = reads | (writes & live).difference(replaces(block, op))
        born.append(frozenset((writes & live) - needed))
        dies.append(frozenset(needed - live))
        live -= born[-1]
        live |= needed
    return Liveness(frozenset(live), born[::-1], dies[::-1], dead[::-1])


def mentions(desc: ProgramDesc) -> set[str]:
    """Every name that an op of any block has in a slot or in an attribute with names."""
    found: set[str] = set()
    for _, op in ops(desc):
        for names in (*op.inputs.values(), *op.outputs.values()):
            found.update(names)
        for names in hidden_names(op).values():
            found.update(names)
    found.discard(EMPTY)
    return found
