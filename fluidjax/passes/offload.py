"""Offloading of forward values to the host until the backward pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..errors import FluidTypeError, FluidValueError, near
from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc
from ..ir.recomputed import HOST, SUFFIX, segment
from .base import Params, Pass, Rewrite, did, register
from .lifetimes import is_fed


@register
@dataclass(frozen=True)
class Offload(Pass):
    """Keep values of the forward pass in the host's memory until the backward pass reads them.

    names: those of the values. After the last forward op that reads ``x`` an assign writes
    ``x@HOST``, and before the first backward op that reads it another writes ``x.subprog_k``, which
    the backward pass then reads. A step places ``x@HOST`` in the host's memory if its device has
    access to it; in a run op by op these are copies.
    """

    name: ClassVar[str] = "offload"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.names, tuple) or not all(isinstance(n, str) for n in self.names):
            raise FluidTypeError(f"names is a tuple of variable names, not {self.names!r}")

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        can = waiting(desc, keep)
        for name in self.names:
            if name not in can:
                raise FluidValueError(
                    f"{name!r} is not a value of the forward pass that only the backward pass reads"
                    f" later{near(name, can)}"
                )
        made, notes = desc, []
        for name in self.names:
            made = _moved(made, name)
            last = desc.blocks[0].ops[can[name][0]]
            notes.append(did(last, f"{name} waits on the host for the backward pass"))
        return Rewrite(made, notes=tuple(notes))


def waiting(desc: ProgramDesc, keep: frozenset[str]) -> dict[str, tuple[int, int]]:
    """The values that may wait on the host: those that one forward op writes and that the backward
    pass reads. Each has the positions of the last forward op that uses it and of the first backward
    op that reads it.
    """
    block = desc.blocks[0]
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    for i, op in enumerate(block.ops):
        if op.blocks:  # names in its blocks stay
            keep = keep | {
                n
                for b in op.blocks
                for inner in desc.blocks[b].ops
                for n in (*inner.reads, *inner.writes)
            }
        for n in op.reads:
            readers.setdefault(n, []).append(i)
        for n in op.writes:
            writers.setdefault(n, []).append(i)
    found = {}
    for name, var in block.vars.items():
        plain = (
            not var.persistable
            and not is_fed(var)
            and var.kind == "LOD_TENSOR"
            and not var.lod_level
            and var.dtype is not None
        )
        if (
            not plain
            or name in keep
            or len(writers.get(name, ())) != 1
            or _backward(block.ops[writers[name][0]])
        ):
            continue
        late = [i for i in readers.get(name, ()) if _backward(block.ops[i])]
        early = [i for i in readers.get(name, ()) if i not in late]
        if late and max(early, default=-1) < late[0]:
            found[name] = max(writers[name][0], *early, 0), late[0]
    return found


def _backward(op: OpDesc) -> bool:
    return bool(edit.role(op) & edit.BACKWARD)


def _moved(desc: ProgramDesc, name: str) -> ProgramDesc:
    """The program in which one value waits on the host."""
    block, uid = desc.blocks[0], edit.max_uid(desc)
    last, first = waiting(desc, frozenset())[name]
    number = max((k for op in block.ops if (k := segment(op)) is not None), default=-1) + 1
    there, back = f"{name}{HOST}", f"{name}{SUFFIX}{number}"
    go = replace(_assign(name, there), uid=uid + 1, attrs=FrozenMap({"op_role": 0}))
    come = replace(_assign(there, back), uid=uid + 2, attrs=FrozenMap({"op_role": edit.BACKWARD}))
    ops: list[OpDesc] = []
    for i, op in enumerate(block.ops):
        ops += [come] if i == first else []
        late = i >= first and name in list(op.reads)
        ops.append(replace(op, inputs=edit.rename_op(op, {name: back}).inputs) if late else op)
        ops += [go] if i == last else []
    var = replace(block.vars[name], is_parameter=False, stop_gradient=True)
    return edit.add_vars(
        edit.replace_ops(desc, 0, ops), 0, [replace(var, name=n) for n in (there, back)]
    )


def _assign(source: str, target: str) -> OpDesc:
    return OpDesc(0, "assign", FrozenMap({"X": (source,)}), FrozenMap({"Out": (target,)}))
