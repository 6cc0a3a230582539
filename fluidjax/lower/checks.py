"""Errors of ops that depend on data, found only while the step runs: computed ids, offsets, entries
of arrays, conditions.

A step computes one word beside its results: int64 [2], the number of the first error (0: none) and
the value that it is about. Blocks carry the word as a variable named WORD, and the caller of the
step checks it at the end. Numbers are assigned while a step is traced, from a table that only
grows, so executables of any age agree on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, note
from ..ir import text
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.checking import VALUE, WORD, Objection
from ..ops.concrete import known
from ..ops.outside import outside
from ..ops.ragged import Ragged
from ..ops.registry import OpDef, traits
from ..ops.traits import Bounds

INTEGERS = ("int32", "int64", "int16", "int8", "uint8")


@dataclass(eq=False)
class Objections:
    """The messages for the words of one program's steps, by number."""

    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _words: dict[int, tuple[str, str]] = field(default_factory=dict)
    _next: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def number(self, op: OpDesc, sentence: str) -> int:
        """The number of an op's error; the op's text is added as a note."""
        key = f"{text.op_called(op)} {sentence}", text.op_noted(op)
        if key not in self.numbers:
            self._words[self.numbers.setdefault(key, next(self._next))] = key
        return self.numbers[key]

    def refuse(self, word: Any) -> None:
        """Raises EnforceNotMet for the error in a word, if any."""
        number, value = (int(n) for n in np.asarray(word).reshape(-1)[:2])
        if number in self._words:
            sentence, place = self._words[number]
            raise _refused(sentence, value, place)


def _refused(sentence: str, value: Any, place: str) -> BaseException:
    error = EnforceNotMet(sentence.replace(VALUE, str(value)))
    error.of_values = True
    return note(error, place)


def begin() -> np.ndarray:
    """The word of a step without errors so far."""
    return np.zeros(2, np.int64)


def raised(word: Any, bad: Any, number: int, value: Any) -> Any:
    """The word after an op whose error occurs if `bad`, a scalar, is true; the first error stays."""
    new = jnp.stack([jnp.asarray(number, jnp.int64), jnp.asarray(value, jnp.int64).reshape(())])
    return jnp.where((jnp.asarray(word)[0] == 0) & jnp.asarray(bad).reshape(()), new, word)


def object_to(
    op: OpDesc, env: dict[str, Any], objections: Objections | None, found: Iterable[Objection]
) -> bool:
    """Record these errors in the step's word, except those known not to occur. Returns whether
    there was any.

    Raises EnforceNotMet for one that is known to occur, if no word is kept.
    """
    any_ = False
    for bad, sentence, value in found:
        holds = known(bad)
        if holds is not None and not holds.any():
            continue
        if objections is None or WORD not in env:
            if holds is None:
                continue
            raise _refused(f"{text.op_called(op)} {sentence}", known(value), text.op_noted(op))
        env[WORD] = raised(env[WORD], bad, objections.number(op, sentence), value)
        any_ = True
    return any_


def out_of_bounds(op: OpDesc, definition: OpDef, inputs: Mapping[str, Any]) -> Iterator[Objection]:
    """The errors for integers out of range in the slot that the op's trait `bounds` names; padded
    rows do not count.
    """
    bounds = definition.traits.bounds
    value = inputs.get(bounds.slot) if bounds is not None else None
    if bounds is None or value is None:
        return
    high, also = bounds.high(op, lambda name: _shown(op, inputs, name))
    rows = value.rows if isinstance(value, Ragged) else value
    if (
        high <= 0
        or isinstance(rows, list)
        or not jnp.issubdtype(rows.dtype, jnp.integer)
        or not rows.size
    ):
        return
    yield from outside(bounds.what, value, 0, high, also=also)


def _shown(op: OpDesc, inputs: Mapping[str, Any], name: str) -> VarDesc | None:
    """A variable that the op names, with the shape of its value."""
    for slot, names in op.inputs.items():
        if name in names and slot in inputs:
            value = (
                inputs[slot][names.index(name)] if isinstance(inputs[slot], list) else inputs[slot]
            )
            value = value.rows if isinstance(value, Ragged) else value
            return VarDesc(name, tuple(value.shape)) if hasattr(value, "shape") else None
    return None


def bounded_feeds(
    desc: ProgramDesc, ops: Iterable[OpDesc]
) -> Iterator[tuple[OpDesc, Bounds, str, Mapping[str, str]]]:
    """(op, its bounds, their data variable, a map from names to the variables that they are another
    form of).
    """
    comes_from: dict[str, str] = {}
    for op in ops:
        what = traits(op.type)
        if what.carries:
            source = op.input(what.carries)[0]
            comes_from[op.output("Out")[0]] = comes_from.get(source, source)
        for name in op.input(what.bounds.slot) if what.bounds is not None else ():
            fed = comes_from.get(name, name)
            var = desc.find_var(fed)
            if var is not None and var.is_data and var.dtype in INTEGERS:
                assert what.bounds is not None
                yield op, what.bounds, fed, comes_from


def looked_at_when_fed(desc: ProgramDesc, ops: Iterable[OpDesc]) -> frozenset[int]:
    """The uids of ops whose integers are fed, and checked as feeds."""
    return frozenset(
        op.uid
        for op, bounds, _, _ in bounded_feeds(desc, ops)
        if bounds.high(op, desc.find_var)[0] > 0
    )
