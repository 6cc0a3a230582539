"""Sizes that a program leaves open: read from the shapes of feeds and state, and inserted as
numbers into the attributes that hold sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import FeedError, FluidValueError
from ..ir import dims
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.registry import lookup
from ..ops.symbolic import OF_SIZES

_KINDS = frozenset({"SIZE", "SIZES"})


def open_attrs(op: OpDesc) -> tuple[str, ...]:
    """The attributes of an op that hold open sizes."""
    held = [n for n, v in op.attrs.items() if type(v) is str or (type(v) is tuple and v and type(v[0]) is str)]  # fmt: skip
    if not held:
        return ()
    definition = lookup(op.type)
    return tuple(n for n in held if definition.attr_type(n) in _KINDS)


def is_open(desc: ProgramDesc) -> bool:
    """Whether attributes of a program hold open sizes."""
    return any(open_attrs(op) for block in desc.blocks for op in block.ops)


def batch_of(desc: ProgramDesc) -> str | None:
    """The open size of the first dimensions of a traced program's feeds, which are split over the
    ranks. None if none is open, or if they have several open sizes.
    """
    vars = desc.blocks[0].vars.values()
    fed = [v.dims[0] for v in vars if v.is_data and v.dims and not v.persistable]
    found = {name for text in fed if text for name in dims.symbols(text)}
    return found.pop() if len(found) == 1 else None


def open_sizes(vars: Iterable[VarDesc], values: Mapping[str, Any]) -> dict[str, Any]:
    """The open sizes by name, from values of these variables. Raises FeedError if two values
    contradict each other.
    """
    sizes = []
    for var in vars:
        shape = getattr(getattr(values.get(var.name), "array", values.get(var.name)), "shape", None)
        if var.dims and shape is not None and len(shape) == len(var.dims):
            sizes += [
                (f"axis {at} of {var.name!r}", text, size)
                for at, (text, size) in enumerate(zip(var.dims, shape, strict=True))
                if text
            ]
    try:
        return dims.bound(sizes, OF_SIZES)
    except FluidValueError as error:
        raise FeedError(str(error)) from None


def closed(desc: ProgramDesc, known: Mapping[str, Any]) -> ProgramDesc:
    """The program at these sizes. Raises FluidValueError for a size that is not among them."""
    blocks = tuple(
        replace(block, ops=tuple(closed_op(op, known) for op in block.ops)) for block in desc.blocks
    )
    return replace(desc, blocks=blocks)


def closed_op(op: OpDesc, known: Mapping[str, Any]) -> OpDesc:
    """The op at these sizes."""
    names = open_attrs(op)
    if not names:
        return op
    changed = {
        n: tuple(_value(t, known) for t in v) if isinstance(v := op.attrs[n], tuple) else _value(v, known)
        for n in names
    }  # fmt: skip
    return replace(op, attrs=FrozenMap({**op.attrs, **changed}))


def _value(text: str, known: Mapping[str, Any]) -> Any:
    return dims.value(text, known, OF_SIZES)
