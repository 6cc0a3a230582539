"""New ops for programs that are rewritten as values, with the defaults of their types and their own
uids.

This module is in ops/, not ir/, because the declarations give an attribute's default and form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, slots
from .registry import canonical, lookup

Names = str | Iterable[str]


class OpBuilder:
    """Makes ops as append_op would. first: the first uid that is free."""

    def __init__(self, first: int) -> None:
        self._next = first

    @classmethod
    def after(cls, *programs: ProgramDesc) -> OpBuilder:
        """A builder whose uids none of these programs has."""
        return cls(1 + max(map(edit.max_uid, programs)))

    def uid(self) -> int:
        """A uid that no op has yet."""
        self._next += 1
        return self._next - 1

    def op(
        self, kind: str, inputs: Mapping[str, Names], outputs: Mapping[str, Names], role: int | None = None,
        origin: OpDesc | None = None, /, **attrs: Any,
    ) -> OpDesc:  # fmt: skip
        """An op with these attributes and the defaults of its type for all others; slots without
        variables are left out.

        It gets the user's line of `origin`, and its role (0 without one) unless `role` or an
        attribute gives another. Raises UnknownOpError for an unknown type, FluidTypeError for slots
        or attributes that it does not have.
        """
        definition = lookup(kind)
        given = {name: canonical(definition, name, value) for name, value in attrs.items()}
        if role is None:
            role = 0 if origin is None else origin.attrs.get("op_role", 0)
        full = FrozenMap({"op_role": role, **definition.defaults, **given})
        return OpDesc(
            self.uid(),
            kind,
            _held(inputs),
            _held(outputs),
            full,
            None if origin is None else origin.loc,
        )

    def over(
        self, kind: str, x: Names, origin: OpDesc, out: Names | None = None, /, **attrs: Any
    ) -> OpDesc:
        """An op from X to Out; Out defaults to X."""
        return self.op(kind, {"X": x}, {"Out": x if out is None else out}, None, origin, **attrs)


def _held(given: Mapping[str, Names]) -> FrozenMap:
    return FrozenMap({slot: names for slot, names in slots(given).items() if names})
