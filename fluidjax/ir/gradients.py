"""Finds the forward op that a gradient op differentiates, by the names that the two share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .desc import EMPTY, OpDesc, ProgramDesc
from .recomputed import HOST

GRAD = "@GRAD"
ADVICE = (
    "change the program before minimize or append_backward, or change the gradient op with its"
    " forward op"
)


@dataclass(frozen=True)
class Mismatch:
    """A gradient op at position `at` of block 0, and the op that computes `name` in place of the op
    that it differentiates.
    """

    at: int
    forward: str
    name: str
    maker: OpDesc
    gradient: str  # how the maker is differentiated

    def __str__(self) -> str:
        where = f" ({self.maker.loc})" if self.maker.loc else ""
        return (
            f"it differentiates op '{self.forward}', but {self.name!r} is made by op"
            f" '{self.maker.type}'{where}, which is differentiated by {self.gradient}, so the"
            f" gradients would be those of another function; {ADVICE}"
        )


def forward_op(desc: ProgramDesc, op: OpDesc, forward: Any) -> OpDesc | None:
    """The op that a gradient op in any block differentiates. forward: the OpDef of the forward op's
    type.
    """
    shared = _shared(op, forward)
    found = (o for block in desc.blocks for o in reversed(block.ops) if o.type == forward.type)
    return next((o for o in found if _is_of(o, shared)), None)


def _shared(op: OpDesc, forward: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The forward op's slots whose names a gradient op has."""
    return [
        (o, op.inputs[s])
        for s, o in forward.grad.takes.items()
        if not o.endswith(GRAD) and op.inputs.get(s)
    ]


def _is_of(user: OpDesc, shared: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    return all(
        user.inputs.get(origin, user.outputs.get(origin)) == names for origin, names in shared
    )


class Gradients:
    """The gradient ops of block 0 with their forward ops. `lookup`: op type -> OpDef (or an object
    like one).
    """

    def __init__(self, desc: ProgramDesc, lookup: Callable[[str], Any]) -> None:
        self.lookup = lookup
        # uid of a gradient op -> the gradient op, and its forward op
        self.pairs: dict[int, tuple[OpDesc, OpDesc]] = {}
        self.mismatches: list[Mismatch] = []
        self._makers: dict[str, list[OpDesc]] = defaultdict(list)
        # differentiable ops so far, by type and name
        self._users: dict[tuple[str, str], list[OpDesc]] = defaultdict(list)
        self._forward = self._forward_ops({op.type for op in desc.blocks[0].ops})
        differentiated = {forward.type for forward in self._forward.values()}
        for at, op in enumerate(desc.blocks[0].ops if differentiated else ()):
            self._record(at, op, op.type in differentiated)

    def _forward_ops(self, types: Iterable[str]) -> dict[str, Any]:
        """The forward types of the gradient ops among `types` (first derivatives of ops that
        declare their inputs).
        """
        found = {}
        for kind in types:
            forward = self.lookup(kind).forward
            definition = None if forward is None else self.lookup(forward)
            if (
                definition is not None
                and definition.forward is None
                and definition.grad is not None
            ):
                found[kind] = definition
        return found

    def _record(self, at: int, op: OpDesc, differentiated: bool) -> None:
        if op.type in self._forward:
            self._gradient(at, op, self._forward[op.type])
        for names in op.outputs.values():
            for name in names:
                if name != EMPTY:
                    self._makers[name].append(op)
        if differentiated:
            for name in {*op.reads, *op.writes}:
                self._users[op.type, name].append(op)

    def _gradient(self, at: int, op: OpDesc, forward: Any) -> None:
        shared = _shared(op, forward)
        for user in (
            reversed(self._users.get((forward.type, shared[0][1][0]), ())) if shared else ()
        ):
            if _is_of(user, shared):
                self.pairs[op.uid] = op, user
                return
        for name in _results(op, forward):
            makers = self._made_by(name)
            if makers and all(m.type != forward.type for m in makers):
                gradient = self._gradient_of(makers[-1].type)
                if gradient and op.type not in gradient:
                    self.mismatches.append(
                        Mismatch(at, forward.type, name, makers[-1], " and ".join(gradient))
                    )
                    return

    def _made_by(self, name: str) -> list[OpDesc]:
        """The ops that have written a name so far. For a value that comes back from the host, the
        ops that wrote it before it went there.
        """
        makers = self._makers.get(name, [])
        source = makers[-1].input("X") if makers and makers[-1].type == "assign" else ()
        if len(source) == 1 and source[0].endswith(HOST):
            return self._made_by(source[0].removesuffix(HOST))
        return makers

    def _gradient_of(self, kind: str) -> list[str]:
        """The types of the ops that differentiate an op; none for ops that transpilers put in place
        of a forward op.
        """
        definition = self.lookup(kind)
        return (
            [definition.grad.type]
            if definition.grad is not None
            else [r.type for r in definition.reuse]
        )


def _results(op: OpDesc, forward: Any) -> Iterator[str]:
    """The names of the forward op's results that a gradient op shows: the outputs that it reads,
    and the variables of its gradients.
    """
    outputs = {s.name for s in forward.outputs}
    for slot, origin in forward.grad.takes.items():
        for name in op.inputs.get(slot, ()):
            if origin in outputs and name != EMPTY:
                yield name
            elif origin.endswith(GRAD) and GRAD in name:
                yield name[: name.find(GRAD)].rsplit("grad/", 1)[-1]
