"""The bytes of every variable of a step, before it runs: the shapes of its arguments, and the
shapes that follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import FluidTypeError, FluidValueError, UnsupportedError, near
from ..ir import walk
from ..ir.desc import OpDesc, VarDesc
from ..lod_tensor import LoDTensor, create_lod_tensor
from ..lower.step import Step
from ..ops.ragged import Ragged

Shapes = Mapping[str, Sequence[int]]
Lengths = int | Sequence[int] | Mapping[str, int | Sequence[int]]


@dataclass(frozen=True)
class Arguments:
    """The types of a step's arguments: its persistable variables and its feeds, by name; a ragged
    feed's types are in a Ragged.
    """

    state: Mapping[str, jax.ShapeDtypeStruct]
    feed: Mapping[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Bytes. given: of the state and the feeds, by name. written: of an op's outputs, by the op's
    uid and the name.
    """

    given: Mapping[str, int]
    written: Mapping[int, Mapping[str, int]]


def arguments(
    step: Step, batch_size: int | None, feed_shapes: Shapes | None, lengths: Lengths | None = None
) -> Arguments:
    """The types of the step's arguments; an unknown dimension 0 of a feed is the batch.

    lengths: the length of all sequences of ragged feeds; for several levels one number each,
    outermost first. The batch is the number of sequences of the first level.

        Raises FluidValueError for an unknown dimension, a name that is not fed, a shape or lengths
        that do not fit, UnsupportedError for ragged feeds without lengths.
    """
    if batch_size is not None and not _positive(batch_size):
        raise FluidValueError(f"batch_size is a positive integer, not {batch_size!r}")
    vars = step.desc.blocks[0].vars
    given = feed_shapes or {}
    for name in given:
        if name not in vars:
            raise FluidValueError(
                f"feed_shapes names {name!r}, which is not in the program{near(name, step.feeds)}"
            )
    long = _lengths(step, lengths)
    feed = {
        n: _ragged(v, batch_size, long[n]) if n in long else _feed(v, batch_size, given.get(n))
        for n, v in step.feeds.items()
    }
    return Arguments(state_types(step), feed)


def state_types(step: Step) -> dict[str, jax.ShapeDtypeStruct]:
    """The types of the persistable variables that a step reads. Raises FluidValueError if the
    program leaves one open.
    """
    return {name: _state(step.desc.blocks[0].vars[name]) for name in step.reads}


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _declared(var: VarDesc) -> tuple[int, ...]:
    if var.shape is None or var.dtype is None:
        raise FluidValueError(
            f"variable {var.name!r} declares no shape and dtype, so its bytes are not known"
        )
    return var.shape


def _struct(var: VarDesc, shape: Sequence[int]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), numpy_dtype(var.dtype or ""))


def _state(var: VarDesc) -> jax.ShapeDtypeStruct:
    shape = _declared(var)
    if -1 in shape:
        raise FluidValueError(
            f"persistable variable {var.name!r} has the shape {list(shape)}, so its bytes are not"
            " known"
        )
    return _struct(var, shape)


def _feed(var: VarDesc, batch_size: int | None, given: Any) -> jax.ShapeDtypeStruct:
    if var.lod_level:
        raise UnsupportedError(
            f"feed {var.name!r} is ragged (lod_level {var.lod_level}), and nothing tells how long"
            " its sequences are"
        )
    shape = _declared(var)
    if given is not None:
        return _struct(var, _fitting(var, given))
    for axis, n in enumerate(shape):
        if n < 0 and (axis or batch_size is None):
            hint = (
                "pass batch_size=..." if not axis else f"pass feed_shapes={{{var.name!r}: (...)}}"
            )
            raise FluidValueError(
                f"dimension {axis} of feed {var.name!r} {list(shape)} is not known: {hint}"
            )
    return _struct(var, [batch_size or 0 if n < 0 else n for n in shape])


def _lengths(step: Step, lengths: Lengths | None) -> dict[str, tuple[int, ...]]:
    """The lengths of the sequences of each ragged feed in `lengths`, one number for each level."""
    ragged = {n: v.lod_level for n, v in step.feeds.items() if v.lod_level}
    if lengths is not None and not ragged:
        raise FluidValueError(
            "lengths are of the sequences of ragged feeds, of which the program has none: leave"
            f" out {lengths!r}"
        )
    by_name = (
        lengths
        if isinstance(lengths, Mapping)
        else {}
        if lengths is None
        else dict.fromkeys(ragged, lengths)
    )
    found: dict[str, tuple[int, ...]] = {}
    for name, value in by_name.items():
        if name not in ragged:
            what = "is not ragged" if name in step.feeds else f"is not fed{near(name, ragged)}"
            raise FluidValueError(
                f"lengths names {name!r}, which {what}; the ragged feeds are"
                f" {', '.join(ragged) or 'none'}"
            )
        numbers: tuple[Any, ...] = (
            tuple(value) if isinstance(value, list | tuple) else (value,) * ragged[name]
        )
        if not all(map(_positive, numbers)):
            raise FluidValueError(
                f"the lengths of the sequences in feed {name!r} are positive integers, not"
                f" {value!r}"
            )
        if len(numbers) != ragged[name]:
            raise FluidValueError(
                f"feed {name!r} has {ragged[name]} levels of sequences, and lengths tells"
                f" {len(numbers)}: {value!r}"
            )
        found[name] = numbers
    return found


def _ragged(var: VarDesc, batch_size: int | None, lengths: tuple[int, ...]) -> Ragged:
    """Sequences of equal lengths, without padding."""
    if batch_size is None:
        raise FluidValueError(
            f"how many sequences feed {var.name!r} has is not known: pass batch_size=..."
        )
    _, *rest = _declared(var)
    if min(rest, default=1) < 0:
        raise UnsupportedError(
            f"ragged feed {var.name!r} is declared as {list(_declared(var))}, and no option tells"
            " more than its rows"
        )
    counts = [batch_size * prod(lengths[:level]) for level in range(len(lengths) + 1)]
    offsets = tuple(jax.ShapeDtypeStruct((n + 1,), np.int32) for n in counts[:-1])
    return Ragged(_struct(var, (counts[-1], *rest)), offsets, lengths, ("alike", lengths))


def tensors(feed: Mapping[str, Any]) -> dict[str, Any]:
    """The types of feeds; ragged feeds are tensors of zeros, which the step pads as in a run."""
    return {n: _zeros(t) if isinstance(t, Ragged) else t for n, t in feed.items()}


def _zeros(ragged: Ragged) -> LoDTensor:
    counts = [level.shape[0] - 1 for level in ragged.offsets]
    lengths = [[n] * count for n, count in zip(ragged.longest, counts, strict=True)]
    return create_lod_tensor(np.zeros(ragged.rows.shape, ragged.rows.dtype), lengths)


def _fitting(var: VarDesc, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list | tuple) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in given
    ):
        raise FluidTypeError(
            f"feed_shapes[{var.name!r}] is a list of integers that are not negative, not {given!r}"
        )
    want = _declared(var)
    if len(given) != len(want) or any(w not in (-1, g) for g, w in zip(given, want, strict=True)):
        raise FluidValueError(
            f"feed_shapes[{var.name!r}] is {list(given)}, but the program declares {list(want)}"
            " (-1: any size)"
        )
    return tuple(given)


def measure(step: Step, types: Arguments) -> Sizes:
    """The bytes of every variable of the step, found by tracing it on types; nothing is computed.

    Raises the errors of the step's ops for shapes that do not fit, with the op's text and the
    user's line.
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
    """The bytes of an array, of a type, or of all arrays in a container."""
    return sum(
        prod(leaf.shape) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(value)
        if hasattr(leaf, "dtype")
    )
