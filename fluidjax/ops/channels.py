"""Values [N, C, ...] that a step holds as [N, ..., C], and how an op is run on them, from its trait
`channels` (traits.py).

To the program such a value has the shape and the axes that it declares. An op that follows is run
on what is held, with attributes that mean the same there; any other is given the value as the
program has it (:func:`plain`). docs/layout.md tells when a step holds values so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from .broadcast import align
from .catalog import lookup
from .definition import GRAD, OpDef
from .traits import Alike, ByAxes, ByFormat, Channels, KnowsChannels, Reduction, RowWise

Slots = Mapping[str, Any]


@partial(jax.tree_util.register_dataclass, data_fields=("held",), meta_fields=())
@dataclass(frozen=True)
class ChannelsLast:
    """An array that the program takes for [N, C, ...]. held: its elements as [N, ..., C]."""

    held: Any

    @property
    def shape(self) -> tuple[int, ...]:
        n, *inner, c = self.held.shape
        return (n, c, *inner)

    @property
    def ndim(self) -> int:
        return self.held.ndim

    @property
    def dtype(self) -> Any:
        return self.held.dtype


def plain(value: Any) -> Any:
    """A value as the program has it; lists too, anything else as it is."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return jnp.moveaxis(value.held, -1, 1) if type(value) is ChannelsLast else value


def last(value: Any) -> ChannelsLast:
    """A value of 3 or more axes, held with the channels last."""
    return value if type(value) is ChannelsLast else ChannelsLast(jnp.moveaxis(value, 1, -1))


def settled(inputs: Slots) -> dict[str, Any]:
    """The slots with every value as the program has it."""
    return {slot: plain(value) for slot, value in inputs.items()}


def held_like(value: Any, array: Any) -> Any:
    """An array of the program's shape as `value` is held: an array where that is one, else the
    elements in its order.
    """
    return jnp.moveaxis(array, 1, -1) if type(value) is ChannelsLast else array


def apart(value: Any) -> tuple[Any, int, Callable[[Any], Any]]:
    """What a function that knows of channels works with: the array as it is held, its channel axis,
    and how it gives one back.
    """
    if type(value) is ChannelsLast:
        return value.held, value.ndim - 1, ChannelsLast
    return value, 1, lambda array: array


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_each(v, change) for v in value]
    return None if value is None else change(value)


@dataclass(frozen=True)
class _Rule:
    """The trait that an op goes by, and the slots of this very op that it is about."""

    trait: Channels | Reduction | RowWise
    over: frozenset[str]
    outs: frozenset[str]
    reduced: frozenset[str] = frozenset()  # slots of a reduction's shape


@cache
def _rule(definition: OpDef) -> _Rule | None:
    """How an op follows, a gradient op by its forward op if it does not say itself; None: it needs
    channels first.
    """
    own = _said(definition)
    if own is not None or definition.forward is None:
        return own
    forward = lookup(definition.forward)
    rule, graddef = _said(forward), forward.grad
    if (
        rule is None
        or graddef is None
        or forward.forward is not None
        or isinstance(rule.trait, KnowsChannels)
    ):
        return None
    about = rule.over | rule.outs

    def among(slots: Slots, names: frozenset[str]) -> frozenset[str]:
        return frozenset(s for s, origin in slots.items() if origin.removesuffix(GRAD) in names)

    return _Rule(
        rule.trait,
        among(graddef.takes, about),
        among(graddef.gives, about),
        among(graddef.takes, rule.reduced),
    )


def _said(definition: OpDef) -> _Rule | None:
    """What the declaration says, by `channels` or by `rows`."""
    trait, rows = definition.traits.channels, definition.traits.rows
    if isinstance(trait, ByFormat | ByAxes | Alike):
        return _Rule(trait, frozenset(trait.over), frozenset(trait.outs))
    if isinstance(trait, KnowsChannels):
        return _Rule(trait, frozenset(trait.over), frozenset())
    outs = frozenset(s.name for s in definition.outputs)
    if trait is not None or definition.random:
        return None
    if isinstance(rows, RowWise) and rows.elements:
        return _Rule(rows, frozenset(rows.over), outs)
    if isinstance(rows, Reduction):
        return _Rule(rows, frozenset({"X"}), outs, outs)
    return None


def follows(definition: OpDef) -> bool:
    """Whether the op can be run on channels held last."""
    return _rule(definition) is not None


def begins(definition: OpDef) -> bool:
    """Whether the op, or the one that it differentiates, is one for whose sake a step holds
    channels last.
    """
    rule = _rule(definition)
    return rule is not None and isinstance(rule.trait, ByFormat) and rule.trait.begins


def already(definition: OpDef, attrs: Slots) -> bool:
    """Whether the program itself gives such an op its channels last."""
    rule = _rule(definition)
    return (
        rule is not None
        and isinstance(rule.trait, ByFormat)
        and _last_already(rule.trait, definition, attrs)
    )


def begun(definition: OpDef, inputs: Slots, attrs: Slots) -> Slots:
    """The inputs of such an op held with their channels last."""
    rule = _rule(definition)
    assert rule is not None and isinstance(rule.trait, ByFormat)
    if _last_already(rule.trait, definition, attrs):
        return inputs
    return {
        s: last(v) if s in rule.over and v is not None and v.ndim > 2 else v
        for s, v in inputs.items()
    }


def any_last(inputs: Slots) -> bool:
    """Whether some value is held with its channels last."""
    return any(
        type(value) is ChannelsLast
        or (isinstance(value, list | tuple) and any(type(v) is ChannelsLast for v in value))
        for value in inputs.values()
    )


def call(
    definition: OpDef, inputs: Slots, attrs: Slots, key: Any = None, wanted: Any = None
) -> dict[str, Any]:
    """Run an op, some of whose inputs may be held with their channels last; then so are outputs,
    where it follows.
    """
    # a derived gradient runs its forward op by this function
    if not any_last(inputs) or definition.derived:
        return definition(inputs, attrs, key, wanted)
    rule = _rule(definition)
    form = None if rule is None else _form(rule, definition, inputs, attrs)
    if form is None:
        return definition(settled(inputs), attrs, key, wanted)
    return form(lambda given, changed: definition(given, {**attrs, **changed}, key, wanted))


Form = Callable[[Callable[[Slots, Slots], dict[str, Any]]], dict[str, Any]]


def _form(rule: _Rule, definition: OpDef, inputs: Slots, attrs: Slots) -> Form | None:
    """How to run the op on what is held, given how to run it on inputs with changed attributes;
    None if it cannot be.
    """
    rank = next(
        v.ndim for value in inputs.values() for v in _listed(value) if type(v) is ChannelsLast
    )
    attrs = definition.arguments(attrs)
    trait = rule.trait
    if isinstance(trait, RowWise) and "axis" in definition.attrs and len(trait.over) == 2:
        return _broadcast(rule, definition, inputs, attrs, rank)
    if isinstance(trait, KnowsChannels):
        given = {
            s: _each(v, _last_of(rank)) if s in rule.over else plain(v) for s, v in inputs.items()
        }
        return lambda run: run(given, {})
    over, outs, changed = rule.over, rule.outs, _changed(rule, definition, inputs, attrs, rank)
    if isinstance(trait, Reduction) and not attrs.get("keep_dim"):
        over, outs = (
            over - rule.reduced,
            outs - rule.reduced if definition.forward is None else outs,
        )
    if changed is None or any(
        v.ndim != rank for s in over for v in _listed(inputs.get(s)) if v is not None
    ):
        return None
    given = {
        s: _each(v, lambda a: last(a).held) if s in over else plain(v) for s, v in inputs.items()
    }

    def run(body: Callable[[Slots, Slots], dict[str, Any]]) -> dict[str, Any]:
        return {
            s: _each(v, ChannelsLast) if s in outs else v for s, v in body(given, changed).items()
        }

    return run


def _last_of(rank: int) -> Callable[[Any], Any]:
    return lambda value: last(value) if value.ndim == rank else value


def _changed(
    rule: _Rule, definition: OpDef, inputs: Slots, attrs: Slots, rank: int
) -> dict[str, Any] | None:
    """The attributes that mean on what is held what `attrs` mean to the program; None if there are
    none.
    """
    trait = rule.trait
    if isinstance(trait, ByFormat):
        return None if _last_already(trait, definition, attrs) else {trait.attr: trait.last}
    if isinstance(trait, ByAxes):
        if trait.when is not None and not trait.when(
            attrs, {s: _shapes(v) for s, v in inputs.items()}
        ):
            return None
        return _moved(trait, attrs[trait.attr], rank)
    if isinstance(trait, Reduction):
        return _reduced(attrs, rank)
    return {}


def _shapes(value: Any) -> Any:
    return (
        None
        if value is None
        else [v.shape for v in value]
        if isinstance(value, list | tuple)
        else value.shape
    )


def _last_already(trait: ByFormat, definition: OpDef, attrs: Slots) -> bool:
    """Whether the program itself has the channels behind."""
    value = attrs.get(trait.attr)
    return str(definition.attrs[trait.attr].default if value is None else value).endswith("C")


def _moved(trait: ByAxes, value: Any, rank: int) -> dict[str, Any] | None:
    if trait.each:
        if len(value) != trait.each * rank:
            return None
        groups = [value[i : i + trait.each] for i in range(0, len(value), trait.each)]
        return {trait.attr: [v for g in (groups[0], *groups[2:], groups[1]) for v in g]}
    axes = [_axis(a, rank) for a in _listed(value)]
    return {trait.attr: axes if isinstance(value, list | tuple) else axes[0]}


def _axis(axis: int, rank: int) -> int:
    """Where the program's axis is in what is held. One that there is not stays, for the op to
    object to.
    """
    if not -rank <= axis < rank:
        return axis
    axis %= rank
    return rank - 1 if axis == 1 else max(axis - 1, 0)


def _reduced(attrs: Slots, rank: int) -> dict[str, Any] | None:
    """What is left of a reduction that drops axes must stand in the program's order: without
    channels, or without all else.
    """
    if "dim" not in attrs or attrs["reduce_all"]:
        return {}
    over = {d % rank for d in attrs["dim"]}
    if not (attrs["keep_dim"] or 1 in over or over >= set(range(2, rank))):
        return None
    return {"dim": [_axis(d, rank) for d in attrs["dim"]]}


def _broadcast(
    rule: _Rule, definition: OpDef, inputs: Slots, attrs: Slots, rank: int
) -> Form | None:
    """An elementwise op of X and Y: the one of fewer axes is laid along the other's, then both are
    held channels last.
    """
    operands = {s: inputs[s] for s in ("X", "Y") if inputs.get(s) is not None}
    if len(operands) < 2 or max(v.ndim for v in operands.values()) != rank:
        return None
    if any(
        v.ndim != rank
        for s in rule.over - {"X", "Y"}
        for v in _listed(inputs.get(s))
        if v is not None
    ):
        return None
    fewer = {s: v if v.ndim == rank else plain(v) for s, v in operands.items()}
    aligned = dict(zip("XY", align(fewer["X"], fewer["Y"], attrs["axis"]), strict=True))

    def laid(slot: str) -> Any:
        value = inputs[slot]
        if value is None or value.ndim == rank:
            return None if value is None else last(value).held
        shape = aligned[slot].shape
        return last(aligned[slot].reshape([1] * (rank - len(shape)) + list(shape))).held

    def back(slot: str, value: Any) -> Any:
        like = inputs.get(slot.removesuffix(GRAD))
        if definition.forward is None or like is None or like.ndim == rank:
            return ChannelsLast(value)
        return plain(ChannelsLast(value)).reshape(like.shape)

    def run(body: Callable[[Slots, Slots], dict[str, Any]]) -> dict[str, Any]:
        found = body({s: laid(s) for s in inputs}, {"axis": -1})
        return {s: None if v is None else back(s, v) for s, v in found.items()}

    return run
