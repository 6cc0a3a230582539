"""Checks for missing slots, attributes of the wrong type, and attributes of a later version: a
program from a file or a text may contain anything.

Appended ops are checked at once, so this is for programs from other sources. Ops check whether a
value makes sense.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ..errors import EnforceNotMet, UnsupportedError, note
from ..ir import text, walk
from ..ir.desc import BlockRef, OpDesc, ProgramDesc
from .registry import lookup

# Paddle's attribute types -> the classes of their values (of their elements for lists). Files mix
# numbers of all types.
_NUMBER = (int, float)
_CLASSES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("INT", "LONG", "FLOAT", "FLOAT64", "BOOLEAN"), _NUMBER), "STRING": (str,), "BLOCK": (BlockRef,),
}  # fmt: skip


class _Needs(NamedTuple):
    """Slots that hold one variable each, attributes that name a block, and the classes of values
    (and whether a list) by attribute.

    Only the first output counts: Paddle omits others that only gradients need.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    blocks: tuple[str, ...]
    attrs: Mapping[str, tuple[tuple[type, ...], bool]]


def refuse_unfilled(desc: ProgramDesc, ops: Iterable[OpDesc]) -> None:
    """Raises EnforceNotMet for the first of `ops`, or of the ops in nested blocks, with an invalid
    slot or attribute; UnsupportedError for a traced op with an attribute that is not read here and
    may change its result.
    """
    top = tuple(ops)
    for op in (*top, *walk.below(desc, top)):
        if problem := _problem(op):
            error = EnforceNotMet(f"{text.op_called(op)} cannot run: its {problem}")
            raise note(error, f"in op: {text.op_text(op)}")
        if op.type.startswith("jax."):
            for name in op.attrs:
                if lookup(op.type).attr_type(name) is None:
                    raise UnsupportedError(
                        f"{text.op_called(op)} has an attribute {name!r} that this version of"
                        " fluidjax does not know: run the program by the version that wrote it"
                    )


def _problem(op: OpDesc) -> str | None:
    needs = _needs(op.type)
    for word, held, slots in (
        ("input", op.inputs, needs.inputs),
        ("output", op.outputs, needs.outputs),
    ):
        for slot in slots:
            if len(held.get(slot, ())) != 1:
                return f"{word} slot {slot!r} takes one variable, but has {len(held.get(slot, ()))}"
    for name in needs.blocks:
        if type(op.attrs.get(name)) is not BlockRef:
            return f"attribute {name!r} names no block"
    for name, value in op.attrs.items():
        if (wanted := needs.attrs.get(name)) is not None and not _is_of(value, *wanted):
            return f"attribute {name!r} is {str(value)[:80]}, a value of another type"
    return None


def _is_of(value: Any, classes: tuple[type, ...], many: bool) -> bool:
    if value is None:
        return True
    if type(value) is tuple:
        return many and all(isinstance(each, classes) for each in value)
    # a single number instead of a list too: later Paddles have some in both forms
    return isinstance(value, classes)


@cache
def _needs(kind: str) -> _Needs:
    definition = lookup(kind)
    inputs, outputs = (
        tuple(
            s.name
            for s in slots
            if not (s.optional or s.many or getattr(s, "intermediate", False) or "@GRAD" in s.name)
        )
        for slots in (definition.inputs, definition.outputs)
    )
    types = {
        name: definition.attr_type(name) or "" for name in (*definition.attrs, *definition.later)
    }
    blocks = tuple(
        name for name, kind in types.items() if kind == "BLOCK" and name in definition.attrs
    )
    singular = {name: kind.removesuffix("S") for name, kind in types.items()}
    known = {
        name: (_CLASSES[one], one != types[name])
        for name, one in singular.items()
        if one in _CLASSES
    }
    return _Needs(
        inputs,
        outputs[:1] if outputs and outputs[0] == definition.outputs[0].name else (),
        blocks,
        known,
    )
