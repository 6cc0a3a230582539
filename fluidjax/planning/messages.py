"""The collectives of a traced function; equal collectives of equal values count once, as in XLA."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

from .links import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, SEND
from .work import bytes_of, called

KINDS = {
    "psum": ALL_REDUCE, "pmax": ALL_REDUCE, "pmin": ALL_REDUCE, "psum_invariant": ALL_REDUCE, "reduce_scatter": REDUCE_SCATTER,
    "all_gather": ALL_GATHER, "all_gather_invariant": ALL_GATHER, "all_to_all": ALL_TO_ALL, "ppermute": SEND,
}  # fmt: skip
RESHAPES = frozenset(("reshape", "squeeze", "expand_dims"))


@dataclass(frozen=True)
class Message:
    """A collective: its kind, and the bytes of the larger of what a rank gives and gets."""

    kind: str
    bytes: int


def sent(traced: Any) -> tuple[Message, ...]:
    """The collectives of a jaxpr, in order; none of them in a loop or a branch."""
    return tuple(_Numbering().walk(traced.jaxpr, list(range(-len(traced.jaxpr.invars), 0))))


class _Numbering:
    """Values by number: equal computations on equal inputs have equal numbers."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.shaped: dict[int, int] = {}  # a reshaped value -> the original value
        self.results: list[int] = []

    def walk(self, body: Any, arguments: list[int]) -> Iterator[Message]:
        known = dict(zip(body.invars, arguments, strict=True))
        known.update((v, self._number(("constant", id(v)))) for v in body.constvars)

        def number(v: Any) -> int:
            return (
                self._number(("literal", str(v.val), str(v.aval)))
                if isinstance(v, Literal)
                else known[v]
            )

        for eqn in body.eqns:
            ins = [number(v) for v in eqn.invars]
            inner = called(eqn)
            if inner is not None:
                yield from self.walk(inner, ins)
                known.update(zip(eqn.outvars, self.results, strict=True))
                continue
            name, before = eqn.primitive.name, len(self.numbers)
            known.update(zip(eqn.outvars, self._equation(name, eqn, ins), strict=True))
            if name in KINDS and len(self.numbers) > before:
                yield Message(KINDS[name], max(bytes_of(eqn.invars), bytes_of(eqn.outvars)))
        self.results = [number(v) for v in body.outvars]

    def _equation(self, name: str, eqn: Any, ins: list[int]) -> list[int]:
        if name in RESHAPES:
            flat = self.shaped.get(ins[0], ins[0])
            new = self._number(("reshape", flat, eqn.outvars[0].aval.shape))
            self.shaped[new] = flat
            return [new]
        key = (name, tuple(ins), str(sorted(eqn.params.items(), key=lambda item: item[0])))
        return [self._number((*key, i)) for i in range(len(eqn.outvars))]

    def _number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))
