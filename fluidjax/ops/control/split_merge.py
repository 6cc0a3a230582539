"""split_lod_tensor and merge_lod_tensor: rows, or sequences, split by a mask and merged; each is
the other's gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, MixesRows, UnsupportedError
from ..control_interface import Call, ControlOp
from ..infer import Spec
from ..ragged import Ragged, copied, rows_of, segments, some_rows
from ..registry import Attr, Reuse, control_op, grad_reuses
from ..step_scopes import no_gradient, on_gradients, version
from ..traits import Runs


def _mask(call: Call) -> tuple[Any, Any, Hashable]:
    """The mask's value; its flags [N], and what identifies them in keys."""
    (name,) = call.op.input("Mask")
    value = call.read(name)
    if int(call.op.attrs.get("level", 0)):
        raise UnsupportedError(
            f"op '{call.op.type}' works on level 0 of a LoD, not on {call.op.attrs['level']}"
        )
    flags = rows_of(value)
    if flags.dtype != bool or flags.size != (flags.shape[0] if flags.ndim else 0):
        raise EnforceNotMet(
            f"op '{call.op.type}' takes a mask of one boolean a row, [N, 1], but {name!r} is"
            f" {flags.dtype} of shape {list(flags.shape)}"
        )
    return value, jnp.asarray(flags).reshape(-1), version(call, name)


def _sides(value: Any, flags: Any) -> tuple[Any, Any]:
    """Which rows are on the true side, and which on the false side; padded rows are on neither."""
    there = value.kept() if isinstance(value, Ragged) else jnp.ones_like(flags)
    return flags & there, ~flags & there


def split(call: Call) -> None:
    """OutTrue = the rows of X where Mask is true, OutFalse = the others; sequences instead of rows
    if X has a LoD.
    """
    op = call.op
    (x,) = op.input("X")
    mask, flags, identity = _mask(call)
    for slot, side, holds in zip(
        ("OutTrue", "OutFalse"), (True, False), _sides(mask, flags), strict=True
    ):
        for out in op.output(slot):
            call.env.pop(out, None)
            if x in call.env or not on_gradients(op):
                call.env[out] = _part(
                    call, call.read(x), mask, holds, ("part", identity, side), on_gradients(op)
                )


def _part(call: Call, x: Any, mask: Any, holds: Any, key: Hashable, gradient: bool) -> Ragged:
    """The rows or sequences of x where `holds` is true."""
    (name,) = call.op.input("X")
    number, count = holds.shape[0], jnp.sum(holds, dtype=jnp.int32)
    order = jnp.argsort(~holds, stable=True).astype(jnp.int32)
    last = jnp.maximum(count - 1, 0)
    if isinstance(x, Ragged) and not x.bare:
        return _sequences(call, x, order, count, key)
    if rows_of(x).shape[0] != number or (
        isinstance(x, Ragged) and x.padded and x.key != getattr(mask, "key", None)
    ):
        if isinstance(x, Ragged) or isinstance(mask, Ragged):
            raise MixesRows(f"op '{call.op.type}' takes {name!r} and its mask row by row")
        raise EnforceNotMet(
            f"op '{call.op.type}' takes a mask of {number} rows, but {name!r} has"
            f" {rows_of(x).shape[0]}"
        )
    rows = jnp.asarray(rows_of(x))
    if not number:
        return some_rows(rows, count, key)
    taken = rows[order[jnp.minimum(jnp.arange(number, dtype=jnp.int32), last)]]
    if gradient:
        there = (jnp.arange(number, dtype=jnp.int32) < count).reshape(-1, *(1,) * (rows.ndim - 1))
        taken = jnp.where(there, taken, np.zeros((), rows.dtype))
    return some_rows(taken, count, key)


def _sequences(call: Call, x: Ragged, order: Any, count: Any, key: Hashable) -> Ragged:
    (name,) = call.op.input("X")
    if len(x.offsets) != 1:
        raise UnsupportedError(
            f"op '{call.op.type}' takes one LoD level, but {name!r} has {len(x.offsets)}"
        )
    if x.sequences != order.shape[0]:
        raise EnforceNotMet(
            f"op '{call.op.type}' takes a mask of {order.shape[0]} rows, but {name!r} has"
            f" {x.sequences} sequences"
        )
    lengths = jnp.where(jnp.arange(x.sequences, dtype=jnp.int32) < count, x.lengths[order], 0)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])
    number = jnp.arange(x.capacity, dtype=jnp.int32)
    holder = jnp.minimum(segments(offsets, x.capacity), max(x.sequences - 1, 0))
    at = x.offsets[0][order][holder] + number - offsets[holder]
    part = Ragged(
        jnp.take(x.rows, at, axis=0, mode="clip"),
        (offsets,),
        x.longest,
        (*_tuple(key), x.key),
        True,
        each=key,
        alive=count,
    )
    return part.with_rows(_behind(part, on_gradients(call.op)))


def _tuple(key: Hashable) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _behind(value: Ragged, gradient: bool) -> Any:
    """The rows with padding after the true ones: zeros in a gradient, else copies."""
    if not gradient:
        return copied(value)
    kept = value.kept().reshape(-1, *(1,) * (value.rows.ndim - 1))
    return jnp.where(kept, value.rows, np.zeros((), value.dtype))


def merge(call: Call) -> None:
    """Out[n] = the next row of InTrue where Mask[n] is true, else of InFalse; sequences instead of
    rows if they have a LoD.
    """
    op = call.op
    (out,) = op.output("Out")
    mask, flags, _ = _mask(call)
    sides = _sides(mask, flags)
    places = [jnp.maximum(jnp.cumsum(s, dtype=jnp.int32) - 1, 0) for s in sides]
    given = [call.env.get(n) for slot in ("InTrue", "InFalse") for n in op.input(slot) or ("",)]
    if all(v is None for v in given):
        if on_gradients(op):
            call.env[out] = no_gradient(call.read(op.input("X")[0]))
            return
        raise EnforceNotMet(
            f"op '{op.type}' merges {op.input('InTrue')[0]!r} and {op.input('InFalse')[0]!r}, which"
            " have no value"
        )
    if any(isinstance(v, Ragged) and not v.bare for v in given):
        call.env[out] = _merged_sequences(call, given, mask, sides, places)
        return
    rows = [_plain(call, slot, v) for slot, v in zip(("InTrue", "InFalse"), given, strict=True)]
    merged = _chosen(
        sides[0], [None if r is None else r[p] for r, p in zip(rows, places, strict=True)]
    )
    if isinstance(mask, Ragged):
        call.env[out] = mask.with_rows(_behind(mask.with_rows(merged), on_gradients(op)))
    else:
        call.env[out] = merged


def _plain(call: Call, slot: str, value: Any) -> Any:
    """The rows of one side. Raises EnforceNotMet for an array whose number of rows is not fixed."""
    if value is not None and not isinstance(value, Ragged):
        raise EnforceNotMet(
            f"op '{call.op.type}' merges the rows of {call.op.input(slot)[0]!r}, which has the"
            f" shape {list(value.shape)} however many rows of the mask are so; compute it from what"
            " IfElse.input gives"
        )
    return None if value is None else value.rows


def _chosen(holds: Any, values: list[Any]) -> Any:
    """values[0] in rows whose mask is true, else values[1]; a missing one is zero."""
    true, false = (
        jnp.zeros_like(next(o for o in values if o is not None)) if v is None else v for v in values
    )
    if true.shape != false.shape or true.dtype != false.dtype:
        kinds = " and ".join(f"{v.dtype} {list(v.shape[1:])}" for v in (true, false))
        raise EnforceNotMet(f"op 'merge_lod_tensor' merges rows of {kinds}")
    return jnp.where(holds.reshape(-1, *(1,) * (true.ndim - 1)), true, false)


def _merged_sequences(
    call: Call, given: list[Any], mask: Any, sides: Any, places: list[Any]
) -> Ragged:
    there = [v for v in given if v is not None]
    count = places[0].shape[0]
    if not all(
        isinstance(v, Ragged) and len(v.offsets) == 1 and v.sequences == count for v in there
    ):
        raise EnforceNotMet(f"op '{call.op.type}' merges sequences of one LoD level on both sides")

    def chosen(holds: Any, take: Callable[[Ragged, Any], Any], at: Any = slice(None)) -> Any:
        return _chosen(
            holds,
            [None if v is None else take(v, p[at]) for v, p in zip(given, places, strict=True)],
        )

    lengths = jnp.where(sides[0] | sides[1], chosen(sides[0], lambda v, p: v.lengths[p]), 0)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])
    keys = {v.key[-1] if _tuple(v.key)[0] == "part" else v for v in there}
    whole = len(keys) == 1  # both sides are parts of one value, and so is the result
    room = there[0].capacity if whole else sum(v.capacity for v in there)
    holder = jnp.minimum(segments(offsets, room), count - 1)
    inside = jnp.arange(room, dtype=jnp.int32) - offsets[holder]
    rows = chosen(
        sides[0][holder],
        lambda v, p: jnp.take(v.rows, v.offsets[0][p] + inside, axis=0, mode="clip"),
        holder,
    )
    counted = {"each": mask.key, "alive": mask.count} if isinstance(mask, Ragged) else {}
    key = next(iter(keys)) if whole else ("merged", call.op.uid)
    found = Ragged(rows, (offsets,), (max(v.longest[0] for v in there),), key, True, **counted)
    source = call.read(call.op.input("X")[0])
    if (
        isinstance(source, Ragged)
        and not source.bare
        and (source.capacity, source.key) == (room, key)
    ):
        found = source.with_rows(rows)
    return found.with_rows(_behind(found, on_gradients(call.op)))


def _split_specs(X: Spec, Mask: Spec, **_: Any) -> tuple[Spec, Spec]:
    part = Spec((-1, *X.shape[1:]), X.dtype)
    return part, part


LEVEL = {"level": Attr("level", "INT", 0)}

control_op("split_lod_tensor", ins="X Mask", outs="OutTrue OutFalse", attrs=LEVEL, runs=Runs.STEP, infer=_split_specs,
           doc="OutTrue = X where Mask holds, OutFalse = the rest of X.", control=ControlOp(lower=split))  # fmt: skip
for _kind in ("merge_lod_tensor", "merge_lod_tensor_infer"):
    control_op(_kind, ins="X Mask InTrue InFalse", outs="Out", attrs=LEVEL, runs=Runs.STEP,
               infer=lambda X, Mask, InTrue, InFalse, **_: Spec((-1, *InTrue.shape[1:]), InTrue.dtype),
               doc="Out = InTrue and InFalse in the order of Mask.", control=ControlOp(lower=merge))  # fmt: skip
grad_reuses("split_lod_tensor", Reuse(
    "merge_lod_tensor", {"X": "X", "Mask": "Mask", "InTrue": "OutTrue@GRAD", "InFalse": "OutFalse@GRAD"}, {"Out": "X@GRAD"}
))  # fmt: skip
grad_reuses("merge_lod_tensor", Reuse(
    "split_lod_tensor", {"X": "Out@GRAD", "Mask": "Mask"}, {"OutTrue": "InTrue@GRAD", "OutFalse": "InFalse@GRAD"}
))  # fmt: skip
