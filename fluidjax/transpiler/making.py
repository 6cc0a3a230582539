"""Ops and names that transpilers add to frozen programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..ir.desc import FrozenMap, OpDesc, VarDesc, slots
from ..ops.registry import canonical, lookup

Names = str | Iterable[str]


class Maker:
    """Makes ops as append_op would, with fresh uids, and control variables with fresh names.

    first: the first uid that is free. taken: names that a control variable must not have.
    """

    def __init__(self, first: int, taken: Iterable[str] = ()) -> None:
        self._uid = first
        self._taken = set(taken)
        self._controls = 0

    def uid(self) -> int:
        self._uid += 1
        return self._uid - 1

    def op(self, kind: str, inputs: Mapping[str, Names], outputs: Mapping[str, Names], role: int = 0, **attrs: Any) -> OpDesc:
        """An op with the defaults of its type; slots without variables are left out."""
        definition = lookup(kind)
        given = {name: canonical(definition, name, value) for name, value in attrs.items()}
        full = FrozenMap({**definition.defaults, **given, "op_role": role})
        return OpDesc(self.uid(), kind, _held(inputs), _held(outputs), full)

    def control(self) -> VarDesc:
        """A variable that only orders ops."""
        while (name := f"__control_var@{self._controls}") in self._taken:
            self._controls += 1
        self._controls += 1
        return VarDesc(name, (), "bool")


def _held(given: Mapping[str, Names]) -> FrozenMap:
    return FrozenMap({slot: names for slot, names in slots(given).items() if names})


def renamed(op: OpDesc, mapping: Mapping[str, str], uid: int | None = None) -> OpDesc:
    """`op` with the variables of its slots renamed; what it says about its role stays."""
    return replace(
        op,
        uid=op.uid if uid is None else uid,
        inputs=FrozenMap({s: tuple(mapping.get(n, n) for n in names) for s, names in op.inputs.items()}),
        outputs=FrozenMap({s: tuple(mapping.get(n, n) for n in names) for s, names in op.outputs.items()}),
    )


def with_attrs(op: OpDesc, **attrs: Any) -> OpDesc:
    """`op` with these attributes, in the form that descs hold."""
    definition = lookup(op.type)
    return replace(op, attrs=op.attrs.set(**{n: canonical(definition, n, v) for n, v in attrs.items()}))
