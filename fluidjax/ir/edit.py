"""Pure edits: each takes a program and returns a new one. All are linear in the size of the
program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import FluidValueError, near
from . import walk
from .desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc

# Bits of the attribute op_role.
FORWARD, BACKWARD, OPTIMIZE, RPC, DIST, LRSCHED, LOSS = 0, 1, 2, 4, 8, 16, 256
# attributes that hold variable names; more in walk.hidden_names
_NAME_ATTRS = ("op_role_var", "skip_eager_deletion_vars")


def role(op: OpDesc) -> int:
    """The op's op_role; 0 (forward) if it has none."""
    value = op.attrs.get("op_role", FORWARD)
    return value if isinstance(value, int) else FORWARD


def role_names(op: OpDesc) -> tuple[str, ...]:
    """The parameters and gradients in op_role_var, alternately; empty if a file has something else
    there.
    """
    value = op.attrs.get("op_role_var")
    if isinstance(value, tuple) and all(isinstance(name, str) for name in value):
        return value
    return ()


def replace_block(desc: ProgramDesc, idx: int, block: BlockDesc) -> ProgramDesc:
    """`desc` with block `idx` replaced. Raises FluidValueError if there is no such block."""
    if not 0 <= idx < len(desc.blocks):
        raise FluidValueError(f"there is no block {idx}: the program has {len(desc.blocks)}")
    return replace(desc, blocks=(*desc.blocks[:idx], block, *desc.blocks[idx + 1 :]))


def replace_ops(desc: ProgramDesc, idx: int, ops: Iterable[OpDesc]) -> ProgramDesc:
    """`desc` with other ops in block `idx`. Raises FluidValueError if there is no such block."""
    if not 0 <= idx < len(desc.blocks):
        raise FluidValueError(f"there is no block {idx}: the program has {len(desc.blocks)}")
    return replace_block(desc, idx, replace(desc.blocks[idx], ops=tuple(ops)))


def map_blocks(desc: ProgramDesc, fn: Callable[[BlockDesc], BlockDesc]) -> ProgramDesc:
    """`desc` with every block passed through `fn`."""
    return replace(desc, blocks=tuple(map(fn, desc.blocks)))


def map_ops(desc: ProgramDesc, fn: Callable[[OpDesc], OpDesc]) -> ProgramDesc:
    """`desc` with every op of every block passed through `fn`."""
    return map_blocks(desc, lambda block: replace(block, ops=tuple(map(fn, block.ops))))


def add_vars(desc: ProgramDesc, idx: int, vars: Iterable[VarDesc]) -> ProgramDesc:
    """`desc` with these variables in block `idx`; a variable of the same name is replaced.

    Raises FluidValueError if there is no such block.
    """
    if not 0 <= idx < len(desc.blocks):
        raise FluidValueError(f"there is no block {idx}: the program has {len(desc.blocks)}")
    block = desc.blocks[idx]
    return replace_block(
        desc, idx, replace(block, vars=FrozenMap({**block.vars, **{v.name: v for v in vars}}))
    )


def rename_op(op: OpDesc, mapping: Mapping[str, str]) -> OpDesc:
    """`op` with the names of its slots, and of attributes that hold names (op_role_var),
    replaced.
    """
    listed = {
        a: v for a in _NAME_ATTRS if isinstance(v := op.attrs.get(a), tuple)
    } | walk.hidden_names(op)
    attrs = {a: _renamed(v, mapping) for a, v in listed.items()}
    return replace(
        op,
        inputs=FrozenMap({slot: _renamed(names, mapping) for slot, names in op.inputs.items()}),
        outputs=FrozenMap({slot: _renamed(names, mapping) for slot, names in op.outputs.items()}),
        attrs=FrozenMap({**op.attrs, **attrs}) if attrs else op.attrs,
    )


def _renamed(names: tuple[Any, ...], mapping: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple(mapping.get(n, n) if isinstance(n, str) else n for n in names)


def rename(desc: ProgramDesc, mapping: Mapping[str, str], top: bool = False) -> ProgramDesc:
    """`desc` with variables renamed everywhere: declarations and ops of every block.

    top: rename only variables of block 0; a block that declares the name has a variable of its own,
    which keeps its name. Raises FluidValueError if two variables of a block would get the same
    name.
    """
    everywhere = dict(mapping)

    def renamed(block: BlockDesc) -> BlockDesc:
        mapping = (
            {n: new for n, new in everywhere.items() if n not in _declared_names(desc, block)}
            if top
            else everywhere
        )
        vars: dict[str, VarDesc] = {}
        for name, var in block.vars.items():
            new = mapping.get(name, name)
            if new in vars:
                raise FluidValueError(
                    f"renaming {name!r} to {new!r} would merge two variables of one block"
                )
            vars[new] = var if new == var.name else replace(var, name=new)
        return replace(
            block, vars=FrozenMap(vars), ops=tuple(rename_op(op, mapping) for op in block.ops)
        )

    return map_blocks(desc, renamed)


def _declared_names(desc: ProgramDesc, block: BlockDesc) -> set[str]:
    """The names that a block, and the blocks around it below block 0, declare."""
    found: set[str] = set()
    for _ in desc.blocks:  # so that circular parents end the loop
        if block.parent < 0:
            break
        found.update(block.vars)
        block = desc.blocks[block.parent]
    return found


def drop_dead_vars(
    desc: ProgramDesc,
    keep: Iterable[str] = (),
    *,
    keep_persistable: bool = True,
    keep_data: bool = True,
) -> ProgramDesc:
    """`desc` without the variables that no op mentions and that are not in `keep`, persistable or
    data.
    """
    used = walk.mentions(desc) | set(keep)

    def alive(var: VarDesc) -> bool:
        return (
            var.name in used
            or (keep_persistable and var.persistable)
            or (keep_data and var.is_data)
        )

    return map_blocks(
        desc,
        lambda block: replace(
            block, vars=FrozenMap({n: v for n, v in block.vars.items() if alive(v)})
        ),
    )


def drop_forgotten(desc: ProgramDesc, before: ProgramDesc, keep: Iterable[str] = ()) -> ProgramDesc:
    """`desc` without the variables that ops of `before` mention and its own ops do not (parameters
    too).
    """
    gone = walk.mentions(before) - walk.mentions(desc) - set(keep)
    return map_blocks(
        desc,
        lambda block: replace(
            block, vars=FrozenMap({n: v for n, v in block.vars.items() if n not in gone})
        ),
    )


def max_uid(desc: ProgramDesc) -> int:
    """The largest uid; -1 in a program without ops."""
    return max((op.uid for _, op in walk.ops(desc)), default=-1)


def renumber(desc: ProgramDesc) -> ProgramDesc:
    """`desc` with uids 0, 1, 2, ... in the order of blocks and ops."""
    uids = iter(range(sum(len(block.ops) for block in desc.blocks)))
    return map_ops(desc, lambda op: replace(op, uid=next(uids)))


def keep_ops(desc: ProgramDesc, wanted: Callable[[int, OpDesc], bool]) -> ProgramDesc:
    """`desc` with only the ops for which ``wanted(block index, op)`` is true, and without blocks
    that no op owns any more.

    Blocks are renumbered in their order, and references to them with them. Variables stay.
    """
    blocks = [
        replace(block, ops=tuple(op for op in block.ops if wanted(idx, op)))
        for idx, block in enumerate(desc.blocks)
    ]
    return drop_dead_blocks(replace(desc, blocks=tuple(blocks)))


def drop_dead_blocks(desc: ProgramDesc) -> ProgramDesc:
    """`desc` without the blocks that no op refers to from block 0 down; the others are renumbered
    in their order.
    """
    alive = set(walk.nested(desc, [0]))
    for idx in tuple(alive):  # a block's parents stay too, because their names are visible in it
        while (idx := desc.blocks[idx].parent) >= 0 and idx not in alive:
            alive.add(idx)
    new = {old: i for i, old in enumerate(sorted(alive))}
    if len(new) == len(desc.blocks):
        return desc

    def moved(block: BlockDesc) -> BlockDesc:
        return replace(
            block,
            ops=tuple(move_blocks(op, new) for op in block.ops),
            parent=new.get(block.parent, -1),
            forward=new.get(block.forward, -1),
        )

    return replace(desc, blocks=tuple(moved(desc.blocks[old]) for old in new))


def move_blocks(op: OpDesc, mapping: Mapping[int, int]) -> OpDesc:
    """`op` with its block references renumbered. Raises FluidValueError for a block that `mapping`
    lacks.
    """
    if not op.blocks:
        return op

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        if not isinstance(value, BlockRef):
            return value
        if value.idx not in mapping:
            raise FluidValueError(f"op '{op.type}' refers to block {value.idx}, which is gone")
        return BlockRef(mapping[value.idx])

    return replace(op, attrs=FrozenMap({name: moved(value) for name, value in op.attrs.items()}))


def for_test(desc: ProgramDesc) -> ProgramDesc:
    """Fluid's ``Program.clone(for_test=True)``: the forward part, with is_test set.

    As in Fluid 1.8, backward, optimize and learning-rate ops are removed only if the program has a
    loss gradient (an op of role Backward|Loss, which minimize and append_backward append). Then
    unused variables are removed as well, parameters too. Unlike in Fluid, a loss gradient within a
    block (minimize in a case) counts too, a variable that only a sub-block uses stays, and the
    block of a removed op is removed. Ops that send gradients or receive updated parameters are also
    removed (roles RPC and Dist of a trainer's program; a Geo-SGD trainer's program has none).
    """
    result = map_ops(desc, testing)
    if not any(role(op) == BACKWARD | LOSS for block in desc.blocks for op in block.ops):
        return result
    result = keep_ops(
        result,
        lambda _, op: (
            op.type != "send" and not role(op) & (BACKWARD | OPTIMIZE | LRSCHED | RPC | DIST)
        ),
    )
    return drop_dead_vars(result, keep_persistable=False, keep_data=False)


def testing(op: OpDesc) -> OpDesc:
    """The op as in a program for tests: with is_test, if the op has that attribute."""
    return (
        replace(op, attrs=op.attrs.set(is_test=True))
        if op.attrs.get("is_test", True) is not True
        else op
    )


def prune(desc: ProgramDesc, targets: Sequence[str], feeds: Iterable[str] = ()) -> ProgramDesc:
    """Fluid's ``Program._prune_with_input``: the ops of block 0 that `targets` need, given `feeds`.

    A target stands for its first writer that is not an optimize op. Earlier ops that write needed
    variables are kept too, except optimize ops (a parameter that is read after its update needs
    none). The slice stops at `feeds`. Sub-blocks stay whole with the op that owns them; unused
    variables are removed. Unlike in Fluid, a loop that updates a fed variable stays.

    Raises FluidValueError for a target that no op writes and that is not fed.
    """
    given = set(feeds)
    wanted = {_writer(desc, name) for name in targets if name not in given}
    needed = given.intersection(targets)
    kept: set[int] = set()
    for at in reversed(range(len(desc.blocks[0].ops))):
        op = desc.blocks[0].ops[at]
        reads = set(walk.reads_with_subblocks(desc, op))
        if at in wanted or (not _only_updates(op) and needed & _changes(desc, op, given - reads)):
            kept.add(at)
            needed |= reads
    sliced = replace_ops(desc, 0, (op for at, op in enumerate(desc.blocks[0].ops) if at in kept))
    return drop_dead_vars(drop_dead_blocks(sliced), keep_persistable=False, keep_data=False)


def run_only(
    desc: ProgramDesc, targets: Iterable[str], updates: Collection[int], feeds: Iterable[str] = ()
) -> ProgramDesc:
    """The program of ``Executor.run(use_prune=True)``: the ops of block 0 that `targets` and these
    updates need, given `feeds`.

    updates: uids of optimize ops. Other optimize ops are left out if they write only state; all
    variables stay.
    """
    given, needed = set(feeds), set(targets)
    kept = []
    for op in reversed(desc.blocks[0].ops):
        reads = set(walk.reads_with_subblocks(desc, op))
        writes = needed & _changes(desc, op, given - reads)
        if _only_updates(op):
            writes = {n for n in writes if (var := desc.find_var(n)) is None or not var.persistable}
        if op.uid in updates or writes:
            kept.append(op)
            needed |= reads
    return drop_dead_blocks(replace_ops(desc, 0, reversed(kept)))


def _changes(desc: ProgramDesc, op: OpDesc, given: Collection[str]) -> set[str]:
    """What an op writes, but for variables in whose place a feed stands.

    given: the feeds that it does not read. One that it reads as well it updates, as a loop does.
    """
    return {n for n in walk.writes_with_subblocks(desc, op) if n not in given}


def _only_updates(op: OpDesc) -> bool:
    """Whether no prediction needs the op. In a function of JAX's, what it returns may follow from
    new state, such as an average, or the length of an update.
    """
    return bool(role(op) & OPTIMIZE) and not op.type.startswith("jax.")


def _writer(desc: ProgramDesc, name: str) -> int:
    for at, op in enumerate(desc.blocks[0].ops):
        if name in op.writes and not _only_updates(op):
            return at
    known = [n for op in desc.blocks[0].ops for n in op.writes]
    raise FluidValueError(
        f"cannot prune to {name!r}: no op of block 0 computes it{near(name, known)}"
    )
