"""Makes each update wait for the last reader of the old parameter, so that XLA writes the parameter
in place.

XLA:CPU assigns buffers before it orders the work. The backward pass multiplies by a parameter that
its update overwrites. If the program does not order the two, XLA copies the parameter first: 160 of
VGG-16's 420 MB of temporaries are such copies. So the gradient that an update takes is tied
(recomputed.py) to the outputs of those readers. All updates are tied, also those of biases. Their
copies are small, but ties also show XLA's memory scheduler early when a gradient is used up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir import edit, walk
from ..ir.desc import EMPTY, OpDesc, ProgramDesc, VarDesc
from ..lower.recomputed import Tie
from ..ops.registry import GRAD


def waits(desc: ProgramDesc, ops: Sequence[OpDesc]) -> dict[int, Tie]:
    """The uid of an update -> what its gradient is tied to: the outputs of ops that read the
    parameter and that the gradient does not depend on.
    """
    vars = desc.blocks[0].vars
    updates = {op.uid: op.input("Param")[0] for op in ops if _overwrites(op, vars)}
    parameters = set(updates.values())
    found: dict[int, Tie] = {}
    if not parameters:
        return found
    reads = {
        op.uid: tuple(walk.reads_with_subblocks(desc, op) if op.blocks else op.reads) for op in ops
    }
    wanted = {n for op in ops for n in reads[op.uid] if n not in op.writes}
    behind: dict[str, int] = {}  # value -> the readers that it depends on, one bit each
    readers: dict[str, list[tuple[int, OpDesc]]] = {n: [] for n in parameters}
    count = 0
    for op in ops:
        after = 0
        for n in reads[op.uid]:
            after |= behind.get(n, 0)
        if op.uid in updates:
            names = _awaited_values(after, readers[updates[op.uid]], behind, wanted)
            if names:
                found[op.uid] = Tie(op.input("Grad"), names)
            behind.update(dict.fromkeys(op.writes, after))
            continue
        own = {
            n: 1 << count + i for i, n in enumerate(sorted(parameters.intersection(reads[op.uid])))
        }
        count += len(own)
        for n, bit in own.items():
            readers[n].append((bit, op))
        for name in op.writes:  # a parameter's gradient does not read the parameter
            behind[name] = after | sum(
                bit for n, bit in own.items() if not name.startswith(n + GRAD)
            )
    return found


def _overwrites(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    """Whether an op updates a parameter in place."""
    if not edit.role(op) & edit.OPTIMIZE or len(op.input("Param")) != 1 or not op.input("Grad"):
        return False
    var = vars.get(op.input("Param")[0])
    return var is not None and var.persistable and op.input("Param") == op.output("ParamOut")


def _awaited_values(
    after: int, readers: Sequence[tuple[int, OpDesc]], behind: Mapping[str, int], wanted: set[str]
) -> tuple[str, ...]:
    """Values to wait for: one needed output of each reader that the update does not depend on
    yet.
    """
    names = []
    for bit, op in reversed(readers):
        if not after & bit:
            name = next(
                (n for n in op.writes if n != EMPTY and n in wanted and behind[n] & bit), None
            )
            if name is not None:
                names.append(name)
                after |= behind[name]
    return tuple(names)
