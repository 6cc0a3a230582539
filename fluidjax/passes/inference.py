"""Conversion of a training program to one that predicts: test mode, and only the ops that the
outputs need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.registry import REGISTRY
from .base import Params, Pass, Rewrite, did, register
from .dce import Prune


def in_test_mode(op: OpDesc) -> OpDesc:
    """`op` with is_test set, if its type has that attribute."""
    definition = REGISTRY.get(op.type)
    has = definition is not None and "is_test" in definition.attrs
    if not has or op.attrs.get("is_test") is True:
        return op
    return replace(op, attrs=op.attrs.set(is_test=True))


@register
@dataclass(frozen=True)
class IsTest(Pass):
    """Set is_test on every op that has it: batch_norm uses its running statistics, dropout drops
    nothing.

    This changes what such ops compute; that is its purpose.
    """

    name: ClassVar[str] = "is_test"

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        after = edit.map_ops(desc, in_test_mode)
        changed = zip(
            (op for b in desc.blocks for op in b.ops),
            (op for b in after.blocks for op in b.ops),
            strict=True,
        )
        return Rewrite(
            after, notes=tuple(did(new, "is_test = True") for old, new in changed if old != new)
        )


@register
@dataclass(frozen=True)
class Inference(Pass):
    """The predicting part of a program: backward and update ops are removed, is_test is set, and
    the rest is pruned to the kept variables.
    """

    name: ClassVar[str] = "inference"

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        tested = IsTest().rewrite(desc, params, keep)
        pruned = Prune().rewrite(tested.desc, params, keep)
        return Rewrite(pruned.desc, notes=(*tested.notes, *pruned.notes))
