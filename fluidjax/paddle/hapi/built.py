"""A layer called in a separate program, which has the layer's parameters and trains nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ... import unique_name
from ...errors import FluidValueError
from ...graph.program import Program, program_guard
from ...graph.variable import Variable
from ..nn.layer import Layer
from ..static import InputSpec, data


@contextlib.contextmanager
def beside(net: Layer, startup: Program | None = None) -> Iterator[Program]:
    """Within the block, the default program is a copy of the one with the layer's parameters; name
    counters continue.
    """
    owners = {p.block.program for p in net.parameters()}
    if len(owners) > 1:
        raise FluidValueError(
            f"the parameters of {net.full_name()} are in {len(owners)} programs; make them all"
            " in one"
        )
    program = owners.pop().clone() if owners else Program()
    with program_guard(program, startup or Program()):
        yield program


@contextlib.contextmanager
def in_mode(net: Layer, training: bool) -> Iterator[None]:
    """Within the block, all parts of a layer are in training or evaluation mode."""
    before = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    (net.train if training else net.eval)()
    try:
        yield
    finally:
        for layer, was in before:
            layer.training = was


def listed(given: Any) -> list[Any]:
    """A list from an argument: a list, one object, or None."""
    return [] if given is None else list(given) if isinstance(given, list | tuple) else [given]


def shapes_of(input_size: Any) -> list[tuple[int, ...]]:
    """The shapes in an input_size: one shape, an InputSpec, or a list of them; None and -1 count as
    1.
    """
    one = isinstance(input_size, InputSpec) or all(
        n is None or isinstance(n, int) for n in input_size
    )
    shapes = [
        s.shape if isinstance(s, InputSpec) else s for s in ([input_size] if one else input_size)
    ]
    return [tuple(1 if n in (None, -1) else int(n) for n in shape) for shape in shapes]


def placed(shapes: Sequence[Sequence[int]], dtypes: Any) -> list[Variable]:
    """Fed variables of these shapes. dtypes: one for all (default float32), or one per shape."""
    kinds = listed(dtypes) or ["float32"]
    kinds = kinds * len(shapes) if len(kinds) == 1 else kinds
    if len(kinds) != len(shapes):
        raise FluidValueError(f"there are {len(shapes)} inputs and {len(kinds)} dtypes")
    return [
        data(unique_name.generate("summary_input"), s, d)
        for s, d in zip(shapes, kinds, strict=True)
    ]
