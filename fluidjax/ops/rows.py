"""How ops treat the rows of ragged values (docs/lod.md), by the trait `rows` of their declarations
(traits.py): which are row-wise, which can ignore padding, and the source of an output's LoD.

An op without the trait mixes rows, so it needs exact ones, and its outputs take the LoD of its
first input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from .ragged import Ragged, filled
from .registry import OpDef
from .traits import Attrs, Mixing, Reduction, RowWise, Sequences

Specs = Mapping[str, Any]  # slot -> a value with a shape, or several


def shapes_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """slot -> shape (a list of them for a repeatable slot); "ragged": the slots that hold ragged
    values.
    """
    shapes: dict[str, Any] = {}
    for slot, value in inputs.items():
        many = isinstance(value, list | tuple)
        shapes[slot] = (
            None if value is None else [_shape(v) for v in value] if many else _shape(value)
        )
    shapes["ragged"] = {slot for slot, value in inputs.items() if ragged_in(value)}
    return shapes


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, Ragged):
        value = value.rows
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def ragged_in(value: Any) -> list[Ragged]:
    """The ragged values in a slot."""
    values = value if isinstance(value, list | tuple) else (value,)
    return [v for v in values if isinstance(v, Ragged)]


def row_wise(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> RowWise | None:
    """The rule by which this op treats its inputs row by row, or None."""
    rule = _rule(definition, inputs, attrs)
    if rule is None:
        return None
    found = [
        r for slot, value in inputs.items() if slot not in rule.by_number for r in ragged_in(value)
    ]
    if not found or any(r.key != found[0].key for r in found):
        return None
    for slot, value in inputs.items():
        if slot in rule.by_number:
            continue
        values = value if isinstance(value, list | tuple) else (value,)
        ragged = [isinstance(v, Ragged) for v in values if v is not None]
        if slot in rule.over:
            if not all(ragged) and slot not in rule.beside:
                return None
        elif any(ragged):
            return None
    if rule.when is not None and not rule.when(attrs, shapes_of(inputs)):
        return None
    return rule


def _rule(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> RowWise | None:
    rows = definition.traits.rows
    if isinstance(rows, Reduction):
        return RowWise(("X",)) if _keeps_rows(attrs, inputs) else None
    return rows if isinstance(rows, RowWise) else None


def _keeps_rows(attrs: Attrs, inputs: Mapping[str, Any]) -> bool:
    """Whether a reduction keeps the first axis."""
    if "dim" not in attrs or attrs["reduce_all"]:
        return False
    rank = len(_shape(inputs["X"]))
    return bool(attrs["dim"]) and all(d % rank for d in attrs["dim"])


def masked(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> dict[str, Any] | None:
    """The outputs of a reduction that ignores padded rows; None for any other op."""
    rule = definition.traits.rows
    x = inputs.get("X")
    if not isinstance(rule, Reduction) or not isinstance(x, Ragged):
        return None
    result = definition({**inputs, "X": filled(x, _neutral(rule.neutral, x.dtype))}, attrs)
    if not rule.mean:
        return result
    share = x.capacity / x.count.astype(jnp.float64)
    return {slot: (value * share).astype(value.dtype) for slot, value in result.items()}


def gradient_keeps_padding(
    gradient: OpDef, forward: OpDef, inputs: Mapping[str, Any], attrs: Attrs
) -> bool:
    """Whether a gradient op may take padded rows: if the incoming gradient is zero there, its
    results are too.

    Padding holds copies of true rows, so zero is multiplied by finite values, and sums over rows
    need no mask. True for ops that know sequences and for row-wise ops, unless the gradient op
    declares that it mixes rows.
    """
    if isinstance(gradient.traits.rows, Mixing):
        return False
    if isinstance(gradient.traits.rows, Sequences):
        return all(
            s.ragged or not any(r.padded for r in ragged_in(inputs.get(s.name)))
            for s in gradient.inputs
        )
    if isinstance(forward.traits.rows, Sequences):
        return True
    found = [r for value in inputs.values() for r in ragged_in(value)]
    if any(r.key != found[0].key for r in found):
        return False
    rule = (
        _rule(forward, inputs, attrs)
        if "X" in inputs or not isinstance(forward.traits.rows, Reduction)
        else None
    )
    if rule is None or not all(_flows_by_rows(rule, slot, value) for slot, value in inputs.items()):
        return False
    given: dict[str, Any] = {}
    for slot in forward.inputs:
        value = inputs.get(slot.name)
        if value is None and slot.name in rule.over and not slot.optional:
            value = _stand_in(forward, rule, slot.name, inputs, found[0])
            if value is None:
                return False
        given[slot.name] = value
    return row_wise(forward, given, attrs) is not None


def _flows_by_rows(rule: RowWise, slot: str, value: Any) -> bool:
    """Whether the slot holds the gradient of an output with rows, and so has rows too."""
    name, mark, _ = slot.partition("@GRAD")
    if not mark or (rule.outs and name not in rule.outs):
        return True
    values = value if isinstance(value, list | tuple) else (value,)
    return all(v is None or isinstance(v, Ragged) for v in values)


def _stand_in(
    forward: OpDef, rule: RowWise, slot: str, inputs: Mapping[str, Any], like: Ragged
) -> Any:
    """A value with the shape of an input that the gradient op does not take: from XShape, or the
    output's.

    None if neither is known.
    """
    if slot == "X" and isinstance(inputs.get("XShape"), Ragged):
        return like.with_rows(np.broadcast_to(np.int8(0), inputs["XShape"].rows.shape[1:]))
    if slot in rule.beside:
        return None
    outs = (inputs.get(s.name + mark) for mark in ("", "@GRAD") for s in forward.outputs)
    return next((v for v in outs if isinstance(v, Ragged)), None)


def masked_gradient(
    gradient: OpDef, forward: OpDef, inputs: Mapping[str, Any], attrs: Attrs
) -> dict[str, Any] | None:
    """The gradient of a reduction over padded rows, zero in these; None for any other op."""
    x, given, rule = inputs.get("X"), inputs.get("Out@GRAD"), forward.traits.rows
    if (
        not isinstance(rule, Reduction)
        or not isinstance(x, Ragged)
        or isinstance(given, Ragged)
        or given is None
    ):
        return None
    if not gradient.derived:  # a hand-written rule uses the values of its inputs
        grads = gradient({**inputs, "X": filled(x, _neutral(rule.neutral, x.dtype))}, attrs)
        return {slot: filled(x.with_rows(value), 0) for slot, value in grads.items()}

    def primal(rows: Any) -> Any:
        found = masked(forward, {"X": x.with_rows(rows)}, attrs)
        assert found is not None
        return found["Out"]

    out, pull = jax.vjp(primal, x.rows)
    (grad,) = pull(jnp.asarray(given, out.dtype).reshape(out.shape))
    return {"X@GRAD": grad}


def _neutral(value: Any, dtype: Any) -> Any:
    if value not in ("low", "high"):
        return value
    if dtype == np.bool_:
        return value == "high"
    if jnp.issubdtype(dtype, jnp.floating):
        return -np.inf if value == "low" else np.inf
    info = np.iinfo(dtype)
    return info.min if value == "low" else info.max


# -- whose LoD an output takes ---------------------------------------------------------------------


def lead(definition: OpDef, attrs: Attrs, inputs: Mapping[str, Any]) -> str | None:
    """The input slot whose LoD the outputs take. inputs: by slot, values or types."""
    rows = definition.traits.rows
    if isinstance(rows, RowWise | Reduction | Mixing):
        return rows.lod(attrs, inputs) if callable(rows.lod) else rows.lod
    if definition.traits.update is not None or not definition.inputs:
        return None  # parameters are not batches
    return definition.inputs[0].name


def may_share(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> bool:
    """Whether the outputs have rows; those of a reduction over the first axis do not."""
    return not isinstance(definition.traits.rows, Reduction) or _keeps_rows(attrs, inputs)


def joins(definition: OpDef, inputs: Mapping[str, Any], attrs: Attrs) -> Sequence[Any] | None:
    """The values whose rows the op concatenates, or None."""
    rows = definition.traits.rows
    if (
        not isinstance(rows, RowWise)
        or rows.joins is None
        or not rows.joins(attrs, shapes_of(inputs))
    ):
        return None
    return inputs[rows.over[0]]


def joined(kind: str, values: Sequence[Any]) -> Ragged | None:
    """The sequences of all values of exact sizes, one after another; None unless every one has a
    LoD.

    Its rows are a placeholder with the right number. Raises EnforceNotMet if the numbers of levels
    differ.
    """
    found = [v for v in values if isinstance(v, Ragged) and not v.bare]
    if not found or len(found) < len(values):
        return None
    if len({len(v.offsets) for v in found}) > 1:
        raise EnforceNotMet(
            f"{kind} takes LoDs of equally many levels, not of {[len(v.offsets) for v in found]}"
        )
    offsets = []
    for levels in zip(*(v.offsets for v in found), strict=True):
        starts, end = [jnp.zeros((1,), jnp.int32)], 0
        for level in levels:
            starts.append(level[1:] + end)
            end = starts[-1][-1] if level.shape[0] > 1 else end
        offsets.append(jnp.concatenate(starts))
    longest = tuple(max(v.longest[i] for v in found) for i in range(len(offsets)))
    total = np.broadcast_to(np.int8(0), (sum(v.capacity for v in found),))
    return Ragged(total, tuple(offsets), longest, ("joined", *(v.key for v in found)))


def shares(definition: OpDef, slot: str) -> bool:
    """Whether output `slot` takes the leading input's LoD."""
    rows = definition.traits.rows
    if isinstance(rows, RowWise | Mixing) and rows.shared:
        return slot in rows.shared
    if isinstance(rows, RowWise) and rows.outs and slot not in rows.outs:
        return False
    return not next(s for s in definition.outputs if s.name == slot).intermediate


def makes_lod(definition: OpDef) -> bool:
    """Whether outputs may have a LoD though no input has one."""
    rows = definition.traits.rows
    return isinstance(rows, Sequences) and callable(rows.levels)


def lod_levels(
    definition: OpDef, levels: Mapping[str, int], inputs: Specs, outputs: Specs, attrs: Attrs
) -> dict[str, int]:
    """A map from output slot to lod_level, given the inputs' levels (the first variable of a slot)
    and all shapes.
    """
    rows = definition.traits.rows
    if isinstance(rows, Sequences):
        if callable(rows.levels):
            return dict(rows.levels(levels, attrs))
        return {out: levels[slot] for out, slot in rows.levels.items()}
    slot = lead(definition, attrs, inputs)
    level = levels.get(slot, 0) if slot else 0
    found = {"XShape": levels["X"]} if "XShape" in outputs else {}
    if (
        not level
        or any(s.ragged for s in definition.inputs)
        or not may_share(definition, inputs, attrs)
    ):
        return found
    rows_in = _rows(_specs(inputs[slot or ""])[0])
    others = rows.over if isinstance(rows, RowWise) and rows_in == (-1,) else ()
    # with an operand of known size, Out has that size
    sizes = {rows_in, *(_rows(spec) for s in others for spec in _specs(inputs.get(s)))}

    def has_rows(spec: Any) -> bool:
        return bool(spec) and _rows(_specs(spec)[0]) in sizes

    return {
        **found,
        **{s: level for s, spec in outputs.items() if has_rows(spec) and shares(definition, s)},
    }


def _specs(given: Any) -> Sequence[Any]:
    """The values of a slot as a list: one, several or none."""
    return given if isinstance(given, tuple) else () if given is None else (given,)


def _rows(spec: Any) -> tuple[int, ...]:
    return tuple(spec.shape[:1])
