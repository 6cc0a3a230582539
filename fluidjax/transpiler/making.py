"""Ops and names that transpilers add to frozen programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..ir.desc import FrozenMap, OpDesc, VarDesc
from ..ops.build import OpBuilder
from ..ops.registry import canonical, lookup


class Maker(OpBuilder):
    """Makes ops, and control variables with fresh names.

    first: the first unused uid. taken: names that a control variable must not have.
    """

    def __init__(self, first: int, taken: Iterable[str] = ()) -> None:
        super().__init__(first)
        self._taken = set(taken)
        self._controls = 0

    def control(self) -> VarDesc:
        """A variable that only orders ops."""
        while (name := f"__control_var@{self._controls}") in self._taken:
            self._controls += 1
        self._controls += 1
        return VarDesc(name, (), "bool")


def renamed(op: OpDesc, mapping: Mapping[str, str], uid: int | None = None) -> OpDesc:
    """`op` with the variables of its slots renamed; its role does not change."""
    return replace(
        op,
        uid=op.uid if uid is None else uid,
        inputs=FrozenMap(
            {s: tuple(mapping.get(n, n) for n in names) for s, names in op.inputs.items()}
        ),
        outputs=FrozenMap(
            {s: tuple(mapping.get(n, n) for n in names) for s, names in op.outputs.items()}
        ),
    )


def with_attrs(op: OpDesc, **attrs: Any) -> OpDesc:
    """`op` with these attributes, in the form of descs."""
    definition = lookup(op.type)
    return replace(
        op, attrs=op.attrs.set(**{n: canonical(definition, n, v) for n, v in attrs.items()})
    )
