"""New ops in a rewritten program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.desc import FrozenMap, OpDesc, slots
from ..ops.registry import lookup


class Ops:
    """Makes new ops with uids of their own."""

    def __init__(self, uid: int) -> None:
        self.uid = uid

    def __call__(
        self, kind: str, x: Sequence[str], attrs: Mapping[str, object], at: OpDesc, out: Sequence[str] | None = None
    ) -> OpDesc:
        """An op from X to Out, which is X itself if it is not given; of the user's line of `at`."""
        return self.op(kind, {"X": x}, {"Out": x if out is None else out}, attrs, at)

    def op(
        self, kind: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]], attrs: Mapping[str, object], at: OpDesc
    ) -> OpDesc:
        """An op with these slots, of the user's line of `at`."""
        self.uid += 1
        full = FrozenMap({**lookup(kind).defaults, **attrs})
        return OpDesc(self.uid, kind, slots(inputs), slots(outputs), full, at.loc)
