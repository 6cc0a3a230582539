"""Ragged values in ops that do not know them: the op gets the rows, and its result gets the LoD.

Padded rows are passed only if ops/rows.py declares them harmless; otherwise MixesRows is raised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import FluidError, MixesRows, NotOneStep
from ..ops import rows
from ..ops.objection import reason
from ..ops.ragged import ROWS, Ragged, by_sequence, rows_of, some_rows
from ..ops.registry import GRAD, OpDef, lookup
from ..ops.traits import Sequences

Slots = dict[str, Any]


@dataclass(frozen=True)
class Treated:
    """The op's inputs, and a function that turns its results into the program's; or the results, if
    the op cannot simply be run.
    """

    inputs: Slots
    shown: Callable[[Slots], Slots]
    results: Slots | None = None


def is_ragged(inputs: Mapping[str, Any]) -> bool:
    """Whether any input is ragged."""
    return any(
        type(value) is Ragged or (type(value) is list and any(type(v) is Ragged for v in value))
        for value in inputs.values()
    )


def as_rows(definition: OpDef, inputs: Slots) -> Slots:
    """The inputs; exact rows become plain arrays if the op does not know sequences, and padded ones
    stay, because padding does not count.
    """
    if not is_ragged(inputs):
        return inputs
    knows = {s.name for s in definition.inputs if s.ragged}
    return {s: v if s in knows else _each(v, _exact_rows) for s, v in inputs.items()}


def _exact_rows(value: Any) -> Any:
    return value.rows if isinstance(value, Ragged) and not value.padded else value


@contextlib.contextmanager
def whole_rows(definition: OpDef, inputs: Mapping[str, Any]) -> Iterator[None]:
    """Raises MixesRows in place of an error of an op with padded rows, because padding may be the
    cause and the error would name sizes that were not fed. The op then gets exact rows.
    """
    try:
        yield
    except NotOneStep:
        raise
    except (FluidError, TypeError, ValueError, LookupError, AttributeError) as error:
        padded = sorted(
            slot for slot, value in inputs.items() if any(r.padded for r in rows.ragged_in(value))
        )
        if not padded:
            raise
        raise MixesRows(
            f"op '{definition.type}' objects to its padded input {', '.join(padded)}"
            f" ({reason(error)}), so it needs exact sizes"
        ) from error


def treat(definition: OpDef, inputs: Slots, attrs: Mapping[str, Any]) -> Treated:
    """How to run an op with some ragged inputs. Raises MixesRows if it would see padding."""
    knows = {s.name for s in definition.inputs if s.ragged}
    padded = {
        slot for slot, value in inputs.items() if any(r.padded for r in rows.ragged_in(value))
    }
    if definition.forward is not None:
        each = {
            s
            for s in each_of(lookup(definition.forward))
            if isinstance(v := inputs.get(s), Ragged) and v.each == ROWS
        }
        given = {s: v if s in knows - each else rows_of(v) for s, v in inputs.items()}
        return Treated(
            given,
            lambda out: _gradients(inputs, out),
            _padded_gradient(definition, inputs, attrs) if padded else None,
        )
    if any(rows.ragged_in(inputs.get(slot)) for slot in knows):
        filled = next(
            (
                r
                for s in knows
                for r in rows.ragged_in(inputs.get(s))
                if r.alive is not None and not r.bare
            ),
            None,
        )
        each = _each_sequence(definition, inputs, filled) if filled is not None else set()
        _refuse(definition, padded - knows - each)
        given = {s: v if s in knows - each else rows_of(v) for s, v in inputs.items()}
        if filled is None:
            return Treated(given, lambda out: out)
        return Treated(
            given,
            lambda out: {
                s: _per_sequence(filled, v) if s in each_of(definition) else v
                for s, v in out.items()
            },
        )
    if not padded:
        return Treated(_plain(inputs), lambda out: _shared(definition, inputs, attrs, out))
    rule = rows.row_wise(definition, inputs, attrs)
    if rule is not None:
        return Treated(_plain(inputs), lambda out: _same_rows(definition, rule, inputs, attrs, out))
    results = rows.masked(definition, inputs, attrs) if len(padded) == 1 else None
    if results is None:
        _refuse(definition, padded)
    return Treated(_plain(inputs), lambda out: out, results)


def each_of(definition: OpDef) -> tuple[str, ...]:
    """Slots with a row for each sequence."""
    found = definition.traits.rows
    return (found.each if isinstance(found, Sequences) else None) or ()


def _each_sequence(definition: OpDef, inputs: Slots, filled: Ragged) -> set[str]:
    """The input slots that have a row for each sequence of `filled`, including filler sequences.

    Raises MixesRows if the op must know the number of true ones.
    """
    found = definition.traits.rows
    if not isinstance(found, Sequences) or found.each is None:
        raise MixesRows(f"op '{definition.type}' must know how many sequences it is given")
    slots = {s for s in found.each if inputs.get(s) is not None}
    for slot in slots:
        value = inputs[slot]
        if not (isinstance(value, Ragged) and value.key == filled.each):
            raise MixesRows(
                f"op '{definition.type}' takes {slot} with a row for each sequence, and must know"
                " how many there are"
            )
    return slots


def _per_sequence(filled: Ragged, value: Any) -> Any:
    """An output with a row for each sequence; if the op gave it the LoD above, that has the true
    number.
    """
    return value if isinstance(value, Ragged) or not value.ndim else by_sequence(filled, value)


def _padded_gradient(definition: OpDef, inputs: Slots, attrs: Mapping[str, Any]) -> Slots | None:
    """The results of a gradient op that must ignore padding, None if it can simply be run. Raises
    MixesRows for others.
    """
    forward = lookup(definition.forward or "")
    if rows.gradient_keeps_padding(definition, forward, inputs, attrs):
        return None
    results = rows.masked_gradient(definition, forward, inputs, attrs)
    if results is None:
        _refuse(
            definition,
            {
                slot
                for slot, value in inputs.items()
                if any(r.padded for r in rows.ragged_in(value))
            },
        )
    return results


def _plain(inputs: Slots) -> Slots:
    return {slot: rows_of(value) for slot, value in inputs.items()}


def _refuse(definition: OpDef, padded: set[str]) -> None:
    if padded:
        raise MixesRows(
            f"op '{definition.type}' mixes the rows of its ragged input"
            f" {', '.join(sorted(padded))}, so it needs exact sizes; a Ragged of exact sizes comes"
            " from bucketed(feed, exact=True)"
        )


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_each(v, change) for v in value]
    return None if value is None else change(value)


def _fits(value: Any, template: Ragged) -> bool:
    return not isinstance(value, Ragged) and value.ndim > 0 and value.shape[0] == template.capacity


def _lead(definition: OpDef, inputs: Slots, attrs: Mapping[str, Any]) -> Ragged | None:
    """The value whose LoD the outputs take: the first of a slot with several."""
    slot = rows.lead(definition, attrs, inputs)
    value = inputs.get(slot) if slot else None
    first = next(iter(value), None) if isinstance(value, list | tuple) else value
    return first if isinstance(first, Ragged) and not first.bare else None


def _shared(definition: OpDef, inputs: Slots, attrs: Mapping[str, Any], out: Slots) -> Slots:
    """Exact rows: the outputs that take the leading input's LoD."""
    values = rows.joins(definition, inputs, attrs)
    template = (
        _lead(definition, inputs, attrs) if values is None else rows.joined(definition.type, values)
    )
    shown = dict(out)
    if template is not None and rows.may_share(definition, inputs, attrs):
        put = lambda v: template.with_rows(v) if _fits(v, template) else v  # noqa: E731
        shown |= {slot: _each(v, put) for slot, v in out.items() if rows.shares(definition, slot)}
    x = inputs.get("X")
    # has no elements; it carries the shape of X, and its LoD, to the gradient
    if "XShape" in out and isinstance(x, Ragged) and not x.bare:
        shown["XShape"] = x.with_rows(out["XShape"], bare=True)
    return shown


def _same_rows(
    definition: OpDef, rule: rows.RowWise, inputs: Slots, attrs: Mapping[str, Any], out: Slots
) -> Slots:
    """Padded rows: every output with rows stays padded, with or without a LoD in the program."""
    found = [
        r
        for slot, value in inputs.items()
        if slot not in rule.by_number
        for r in rows.ragged_in(value)
    ]
    lead = _lead(definition, inputs, attrs)
    shown = {}
    for slot, value in out.items():
        if slot == "XShape":  # has no elements; see _shared
            shown[slot] = found[0].with_rows(value, bare=True)
            continue
        if rule.outs and slot not in rule.outs:
            shown[slot] = value
            continue
        bare = lead is None or not rows.shares(definition, slot)
        if slot in rule.folded and value is not None and not _fits(value, found[0]):
            each = value.shape[0] // found[0].capacity
            key = "folded", each, found[0].key
            shown[slot] = some_rows(value, found[0].count * each, key)
            continue
        shown[slot] = _each(value, partial(_kept, definition, found[0], bare))
    return shown


def _kept(definition: OpDef, template: Ragged, bare: bool, value: Any) -> Ragged:
    if not _fits(value, template):
        _refuse(definition, {"X"})
    return template.with_rows(value, bare=bare)


def _gradients(inputs: Slots, out: Slots) -> Slots:
    """Gradients have the LoD of their variables."""
    known = inputs.get("XShape")
    others = (
        [known]
        if known is not None
        else [r for value in inputs.values() for r in rows.ragged_in(value)]
    )

    def put(template: Any, value: Any) -> Any:
        fits = isinstance(template, Ragged) and (template is known or _fits(value, template))
        return template.with_rows(value, bare=template.each == ROWS) if fits else value

    shown = {}
    for slot, value in out.items():
        of = slot.removesuffix(GRAD)
        template = inputs[of] if of in inputs else next(iter(others), None)
        if isinstance(value, list) and isinstance(template, list):
            shown[slot] = [
                None if v is None else put(t, v) for v, t in zip(value, template, strict=True)
            ]
        else:
            shown[slot] = _each(value, partial(put, template))
    return shown
