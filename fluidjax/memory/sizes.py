"""Bytes of every variable of a step, before it runs: concrete shapes of what goes in, and the shapes that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax

from ..base.dtypes import numpy_dtype
from ..errors import FluidTypeError, FluidValueError, UnsupportedError, near
from ..ir import walk
from ..ir.desc import OpDesc, VarDesc
from ..lower.step import Step

Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Arguments:
    """Types of what a step takes: its persistable variables and its feeds, by name."""

    state: Mapping[str, jax.ShapeDtypeStruct]
    feed: Mapping[str, jax.ShapeDtypeStruct]


@dataclass(frozen=True)
class Sizes:
    """Bytes. given: of the state and the feeds, by name. written: of what an op writes, by the op's uid and the name."""

    given: Mapping[str, int]
    written: Mapping[int, Mapping[str, int]]


def arguments(step: Step, batch_size: int | None, feed_shapes: Shapes | None) -> Arguments:
    """The types of the step's arguments, where dimension 0 of a feed, if unknown, is the batch.

    Raises FluidValueError for a dimension that nothing tells, a name that is not fed or a shape that does not fit,
    UnsupportedError for ragged feeds.
    """
    if batch_size is not None and not _positive(batch_size):
        raise FluidValueError(f"batch_size is a positive integer, not {batch_size!r}")
    vars = step.desc.blocks[0].vars
    given = feed_shapes or {}
    for name in given:
        if name not in vars:
            raise FluidValueError(f"feed_shapes names {name!r}, which is not in the program{near(name, step.feeds)}")
    feed = {name: _feed(var, batch_size, given.get(name)) for name, var in step.feeds.items()}
    return Arguments({name: _state(vars[name]) for name in step.reads}, feed)


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _declared(var: VarDesc) -> tuple[int, ...]:
    if var.shape is None or var.dtype is None:
        raise FluidValueError(f"variable {var.name!r} declares no shape and dtype, so its bytes are not known")
    return var.shape


def _struct(var: VarDesc, shape: Sequence[int]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), numpy_dtype(var.dtype or ""))


def _state(var: VarDesc) -> jax.ShapeDtypeStruct:
    shape = _declared(var)
    if -1 in shape:
        raise FluidValueError(f"persistable variable {var.name!r} has the shape {list(shape)}, so its bytes are not known")
    return _struct(var, shape)


def _feed(var: VarDesc, batch_size: int | None, given: Any) -> jax.ShapeDtypeStruct:
    if var.lod_level:
        raise UnsupportedError(f"feed {var.name!r} is ragged (lod_level {var.lod_level}), and bytes are only told for dense feeds")
    shape = _declared(var)
    if given is not None:
        return _struct(var, _fitting(var, given))
    for axis, n in enumerate(shape):
        if n < 0 and (axis or batch_size is None):
            hint = "pass batch_size=..." if not axis else f"pass feed_shapes={{{var.name!r}: (...)}}"
            raise FluidValueError(f"dimension {axis} of feed {var.name!r} {list(shape)} is not known: {hint}")
    return _struct(var, [batch_size or 0 if n < 0 else n for n in shape])


def _fitting(var: VarDesc, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in given):
        raise FluidTypeError(f"feed_shapes[{var.name!r}] is a list of integers that are not negative, not {given!r}")
    want = _declared(var)
    if len(given) != len(want) or any(w not in (-1, g) for g, w in zip(given, want, strict=True)):
        raise FluidValueError(f"feed_shapes[{var.name!r}] is {list(given)}, but the program declares {list(want)} (-1: any size)")
    return tuple(given)


def measure(step: Step, types: Arguments) -> Sizes:
    """Bytes of everything that the step touches, found by tracing it on types alone: nothing is computed.

    Raises what the step's own ops raise for shapes that do not fit, with the op's text and the user's line.
    """
    written: dict[int, dict[str, int]] = {}

    def watch(op: OpDesc, env: Mapping[str, Any]) -> None:
        names = walk.writes_with_subblocks(step.desc, op) if op.blocks else op.writes
        written[op.uid] = {name: nbytes(env[name]) for name in names if name in env}

    def run(state: Any, feed: Any) -> Any:
        return step(state, feed, jax.random.key(0) if step.random else None, watch)

    with jax.enable_x64(True):
        jax.eval_shape(run, dict(types.state), dict(types.feed))
    return Sizes({n: nbytes(v) for n, v in {**types.state, **types.feed}.items()}, written)


def nbytes(value: Any) -> int:
    """Bytes of an array, of a type, or of all arrays in a container."""
    return sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(value) if hasattr(leaf, "dtype"))
