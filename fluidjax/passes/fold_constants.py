"""Values that do not depend on feeds or random numbers are computed once, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import numpy as np

from ..base.dtypes import KEYS, numpy_dtype
from ..ir import edit, walk
from ..ir.desc import EMPTY, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.registry import lookup
from .base import Note, Params, Pass, Rewrite, did, new_name, refused, register, value_of
from .match import Values, written_back


@register
@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replace ops whose inputs are all constant by new parameters that hold their results.

    Constants are the results of folded ops, and persistable variables with known values that
    nothing in the program writes. An op whose result needs more than `limit` bytes stays. Random
    ops, ops with sub-blocks and ops that communicate with the host stay; so do fill ops that no
    folded op needs.
    """

    name: ClassVar[str] = "fold_constants"
    limit: int = 1 << 20

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        folder = _Folder(desc, params, keep, self.limit)
        for at in range(len(folder.ops)):
            folder.visit(at)
        return folder.result()


class _Folder:
    def __init__(self, desc: ProgramDesc, params: Params, keep: frozenset[str], limit: int) -> None:
        self.desc, self.params, self.limit = desc, params, limit
        self.values = Values(desc, keep)
        self.ops = self.values.ops
        self.versions = walk.versions(desc.blocks[0], desc)
        self.known: dict[walk.Version, np.ndarray] = {}
        self.folded: set[int] = set()
        self.notes: list[Note] = []

    def visit(self, at: int) -> None:
        op = self.ops[at]
        definition = lookup(op.type)
        if (
            op.blocks
            or definition.fn is None
            or definition.random
            or definition.forward is not None
        ):
            return
        versions = self.versions[at]
        if any(self.values.outlives(v) for v in versions.writes):
            return
        if any(self.ops[r].blocks for v in versions.writes for r in self.values.readers(v)):
            return  # a sub-block would have to read the parameter under the old name
        by_name = {v[0]: known for v in versions.reads if (known := self._constant(v)) is not None}
        if len(by_name) < len(set(versions.reads)):
            return
        size = self._bytes(op)
        if size is None or size > self.limit:
            if versions.reads and size is not None:
                self.notes.append(
                    refused(op, f"its result of {size} bytes is over the limit of {self.limit}")
                )
            return
        try:
            self.known.update(self._compute(op, definition, by_name, dict(versions.writes)))
        except Exception as exc:
            self.notes.append(refused(op, f"it cannot be computed beforehand: {exc}"))
            return
        self.folded.add(at)

    def _constant(self, value: walk.Version) -> np.ndarray | None:
        if value in self.known:
            return self.known[value]
        return value_of(self.params, value[0]) if self.values.constant(value[0]) else None

    def _bytes(self, op: OpDesc) -> int | None:
        """Bytes of the op's results, None if a size is unknown."""
        total = 0
        for name in op.writes:
            var = self.desc.blocks[0].vars.get(name)
            if (
                var is None
                or var.kind != "LOD_TENSOR"
                or var.shape is None
                or var.dtype is None
                or -1 in var.shape
                or var.dtype in KEYS
            ):
                return None
            total += int(np.prod(var.shape, dtype=object)) * numpy_dtype(var.dtype).itemsize
        return total

    @staticmethod
    def _compute(
        op: OpDesc, definition: Any, by_name: dict[str, np.ndarray], after: dict[str, int]
    ) -> dict[walk.Version, np.ndarray]:
        inputs: dict[str, Any] = {}
        for slot in definition.inputs:
            names = op.input(slot.name)
            if names:
                arrays = [None if n == EMPTY else by_name[n] for n in names]
                inputs[slot.name] = arrays if slot.many else arrays[0]
        with jax.enable_x64(True):
            result = definition(inputs, op.attrs)
            found = {}
            for slot in definition.outputs:
                values = result.get(slot.name)
                for name, value in zip(
                    op.output(slot.name),
                    values if slot.many and values is not None else (values,),
                    strict=False,
                ):
                    if name != EMPTY and value is not None:
                        found[name, after[name]] = np.asarray(value)
        missing = set(after) - {n for n, _ in found}
        if missing:
            raise ValueError(f"it gives no value for {sorted(missing)[0]!r}")
        return found

    def result(self) -> Rewrite:
        """Folded values that a remaining op reads become parameters; a fill that only fills them is
        removed with its readers.
        """
        rename: dict[int, dict[str, str]] = {}
        made: dict[str, np.ndarray] = {}
        vars: list[VarDesc] = []
        removed: set[int] = set()
        for at in sorted(self.folded):
            op = self.ops[at]
            outside = {
                v: [r for r in self.values.readers(v) if r not in self.folded]
                for v in self.versions[at].writes
            }
            if not any(self.versions[at].reads) and any(outside.values()):
                continue  # a fill with a reader costs less than a stored parameter
            removed.add(at)
            for value, readers in outside.items():
                if readers:
                    name = new_name(
                        f"{value[0]}_folded", self.desc.blocks[0].vars, self.params, made
                    )
                    array = self.known[value]
                    made[name] = array
                    old = self.desc.blocks[0].vars[value[0]]
                    vars.append(
                        replace(
                            old,
                            name=name,
                            shape=tuple(array.shape),
                            persistable=True,
                            stop_gradient=True,
                            is_data=False,
                        )
                    )
                    for r in readers:
                        rename.setdefault(r, {})[value[0]] = name
            self.notes.append(did(op, "computed beforehand"))
        if not removed:
            return Rewrite(self.desc, notes=tuple(self.notes))
        ops = [
            _reading(op, rename.get(at, {})) for at, op in enumerate(self.ops) if at not in removed
        ]
        desc = edit.add_vars(edit.replace_ops(self.desc, 0, ops), 0, vars)
        return Rewrite(edit.drop_dead_vars(desc, self.values.keep), made, tuple(self.notes))


def _reading(op: OpDesc, mapping: dict[str, str]) -> OpDesc:
    """`op` with input names replaced. Outputs of the same name stay, except those that an op passes
    through unchanged.
    """
    if not mapping:
        return op
    renamed, back = edit.rename_op(op, mapping), written_back(op)
    outs = {
        slot: tuple(mapping.get(n, n) if n in back else n for n in names)
        for slot, names in op.outputs.items()
    }
    return replace(op, inputs=renamed.inputs, outputs=FrozenMap(outs))
