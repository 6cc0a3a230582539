"""Reductions, windows and scattering by a function of the user's own, which is a block (blocks.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax import lax

from ..control_interface import Call
from ..registry import Attr
from .blocks import BLOCK, Function, declare_block_op, only_block
from .declare import pairs
from .indexing import SCATTER, scatter_numbers


def _combined(call: Call, counts: Sequence[int], reduce: Any) -> Function:
    body, count = only_block(call), counts[0]

    def both(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(body(*a, *b))

    return lambda *values: list(reduce(tuple(values[:count]), tuple(values[count:]), both))


def _reduce(call: Call, counts: Sequence[int]) -> Function:
    axes = tuple(call.op.attrs["axes"])
    return _combined(call, counts, lambda x, init, both: lax.reduce(x, init, both, axes))


declare_block_op(
    "reduce",
    ins="X* Init*",
    outs="Out*",
    attrs=[*BLOCK, Attr("axes", "INTS")],
    doc="Out = the arrays X reduced over these axes from Init on, two values each by sub_block.",
    make=_reduce,
)


def _reduce_window(call: Call, counts: Sequence[int]) -> Function:
    attrs = call.op.attrs
    window = tuple(attrs["window_dimensions"]), tuple(attrs["window_strides"])
    given = [attrs.get(f"{word}_dilation") for word in ("base", "window")]
    rest = pairs(attrs["padding"]), *(tuple(each) if each else None for each in given)
    return _combined(
        call, counts, lambda x, init, both: lax.reduce_window(x, init, both, *window, *rest)
    )


declare_block_op(
    "reduce_window",
    ins="X* Init*",
    outs="Out*",
    attrs=[
        *BLOCK,
        Attr("window_dimensions", "SIZES"),
        Attr("window_strides", "INTS"),
        Attr("padding", "SIZES"),
        Attr("base_dilation", "INTS", ()),
        Attr("window_dilation", "INTS", ()),
    ],
    doc="Out = the arrays X reduced over windows from Init on, two values each by sub_block.",
    make=_reduce_window,
)


def _scatter_apply(call: Call, counts: Sequence[int]) -> Function:
    attrs, body = call.op.attrs, only_block(call)

    def run(x: Any, indices: Any, updates: Any) -> list[Any]:
        numbers, options = scatter_numbers(attrs)
        nothing = lax.full((), 0, updates.dtype)
        return [
            lax.scatter_apply(
                x, indices, lambda value: body(value, nothing)[0], numbers,
                update_shape=updates.shape, **options,
            )
        ]  # fmt: skip

    return run


declare_block_op(
    "scatter_apply",
    ins="X* Indices* Updates*",
    outs="Out*",
    attrs=[
        *BLOCK,
        *(Attr(name, "INTS", ()) for name in SCATTER),
        Attr("unique_indices", "BOOLEAN", False),
        Attr("indices_are_sorted", "BOOLEAN", False),
        Attr("mode", "STRING", "CLIP"),
    ],
    doc=(
        "Out = X with sub_block of each element that Indices name; of Updates the shape alone"
        " counts."
    ),
    make=_scatter_apply,
)
