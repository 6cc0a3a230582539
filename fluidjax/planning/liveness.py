"""The peak of live bytes while a traced function runs. XLA fuses elementwise operations, so their
results take no memory, and keep alive the values that they are computed from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

from .links import ALL_REDUCE
from .messages import KINDS, RESHAPES
from .work import bytes_of, called

_MATERIALIZED = frozenset(
    (*KINDS, "gather", "sort", "dot_general", "cumsum", "scan", "while", "cond")
)
_READ_FROM_MEMORY = frozenset((*KINDS, "dot_general"))  # operations whose operands are not fused


@dataclass(frozen=True)
class _Value:
    """The buffers, by number, that a value is computed from. itself: whether the value is the
    buffer itself, or a reshape of it.
    """

    roots: frozenset[int] = frozenset()
    itself: bool = False


@dataclass(frozen=True)
class _Equation:
    """The buffers that an equation reads, and the one that it makes, of so many bytes. over: the
    buffers that its result may overwrite, each with its bytes.
    """

    reads: frozenset[int]
    made: int
    bytes: int
    over: tuple[tuple[int, int], ...] = ()


def peak(traced: Any, given: Sequence[bool], in_place: bool) -> int:
    """The most live bytes of a traced function: its intermediate values, and the arguments that are
    `given` (donated) to it, each until its last use. Other arguments do not count. in_place:
    whether an all-reduce overwrites its operand, as on GPUs; on the CPU it does not.
    """
    body = traced.jaxpr
    sizes = [bytes_of([v]) if mine else 0 for v, mine in zip(body.invars, given, strict=True)]
    arguments = [_Value(frozenset([i]), True) for i in range(len(sizes))]
    equations = list(_Walk(len(sizes), in_place).walk(body, arguments))
    last = {n: at for at, e in enumerate(equations) for n in e.reads}
    held = {n: size for n, size in enumerate(sizes) if n in last}
    most = 0
    for at, e in enumerate(equations):
        over = [(n, size) for n, size in e.over if last[n] == at]
        held[e.made] = e.bytes + sum(held.pop(n, 0) - size for n, size in over)
        most = max(most, sum(held.values()))
        for n in (*e.reads, e.made):
            if last.get(n, at) <= at:
                held.pop(n, None)
    return most


def _same_bytes(eqn: Any) -> bool:
    """Whether the result is the operand, unchanged or in another shape."""
    name = eqn.primitive.name
    return name in RESHAPES or (name == "pad" and not any(map(any, eqn.params["padding_config"])))


class _Walk:
    """The values of a function, and its equations whose results are buffers, in order."""

    def __init__(self, first: int, in_place: bool) -> None:
        self.next = first
        self.in_place = in_place
        self.results: list[_Value] = []

    def walk(self, body: Any, arguments: Sequence[_Value]) -> Iterator[_Equation]:
        platforms: set[Any] = set()
        known: dict[Any, _Value] = dict(zip(body.invars, arguments, strict=True))

        def value(v: Any) -> _Value:
            return _Value() if isinstance(v, Literal) else known.get(v, _Value())

        for eqn in body.eqns:
            inner, name = called(eqn), eqn.primitive.name
            if inner is not None:
                yield from self.walk(inner, [value(v) for v in eqn.invars])
                known.update(zip(eqn.outvars, self.results, strict=True))
                continue
            if name == "platform_index":
                platforms.update(eqn.outvars)
            # one branch of a choice by platform is compiled, and fused
            one = name == "cond" and not isinstance(v := eqn.invars[0], Literal) and v in platforms
            scatters = name.startswith("scatter") or name == "dynamic_update_slice"
            for v in eqn.invars if scatters or name in _READ_FROM_MEMORY else ():
                if not isinstance(v, Literal) and not value(v).itself:
                    self.next += 1
                    yield _Equation(value(v).roots, self.next, bytes_of([v]))
                    known[v] = _Value(frozenset([self.next]), True)
            ins = [value(v) for v in eqn.invars]
            read: frozenset[int] = frozenset().union(*(v.roots for v in ins))
            made = _Value(read, _same_bytes(eqn) and ins[0].itself)
            if (name in _MATERIALIZED and not one) or scatters or name.startswith("reduce_"):
                self.next += 1
                reduces = self.in_place and KINDS.get(name) == ALL_REDUCE
                rewritten = eqn.invars[: 1 if scatters else len(ins) if reduces else 0]
                over = {n: bytes_of([v]) for v in rewritten for n in value(v).roots}
                size = bytes_of(eqn.outvars)
                yield _Equation(read, self.next, size, tuple(over.items()))
                made = _Value(frozenset([self.next]), True)
            known.update((v, made) for v in eqn.outvars)
        self.results = [value(v) for v in body.outvars]
