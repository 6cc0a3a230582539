"""Ops of the form y = a * x + b with a constant pair (a, b) for every channel, and reshapes that
keep the channels an axis of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.desc import OpDesc
from ..ir.dims import bare
from ..ops.statistics import fixed_statistics
from .base import Params, value_of
from .match import Link, Refused, Values


@dataclass(frozen=True)
class Affine:
    """y = a * x + b for channels along one axis, in float64. reads: the parameters from which it
    was computed.
    """

    a: np.ndarray
    b: np.ndarray
    reads: tuple[str, ...] = ()

    def after(self, first: Affine) -> Affine:
        """First `first`, then this: a * (a' * x + b') + b."""
        return Affine(self.a * first.a, self.a * first.b + self.b, (*first.reads, *self.reads))


@dataclass(frozen=True)
class Place:
    """The context of an affine op: the value's rank (-1: unknown), its channel axis, and the number
    of channels.
    """

    rank: int
    axis: int
    channels: int

    @property
    def identity(self) -> Affine:
        return Affine(np.ones(self.channels), np.zeros(self.channels))


def parameter(values: Values, params: Params, op: OpDesc, slot: str) -> tuple[str, np.ndarray]:
    """A slot's parameter, in float64. Raises Refused if it is not a constant of the program or its
    value is unknown.
    """
    names = op.input(slot)
    if not names:
        raise Refused(f"it has no input {slot}")
    name = names[0]
    if not values.constant(name):
        var = values.desc.blocks[0].vars.get(name)
        why = (
            "an op of the program writes it"
            if var is not None and var.persistable
            else "it is not a parameter"
        )
        raise Refused(f"{slot} {name!r} is not constant: {why}")
    value = value_of(params, name)
    if value is None:
        raise Refused(
            f"parameter {name!r} has no value; run the startup program or load the model first"
        )
    if value.dtype.kind not in "fV":
        raise Refused(f"parameter {name!r} is {value.dtype.name}, not a float")
    return name, value.astype(np.float64)


def per_channel(value: np.ndarray, at: int, place: Place, name: str) -> np.ndarray:
    """A parameter whose dimension 0 is aligned with dimension `at` of the value, as [channels].
    Raises Refused if it varies elsewhere.
    """
    sizes = {at + i: n for i, n in enumerate(value.shape)}
    elsewhere = [n for axis, n in sizes.items() if axis != place.axis and n != 1]
    if elsewhere or sizes.get(place.axis, 1) not in (1, place.channels):
        raise Refused(
            f"{name!r} of shape {list(value.shape)} does not vary along the channels alone"
        )
    return np.broadcast_to(value.reshape(-1), (place.channels,))


def _elementwise(
    values: Values, params: Params, op: OpDesc, place: Place
) -> tuple[str, np.ndarray]:
    name, value = parameter(values, params, op, "Y")
    axis = int(op.attrs.get("axis", -1))
    if place.rank < value.ndim:
        raise Refused(
            f"{name!r} of shape {list(value.shape)} has more dimensions than what it is applied to"
        )
    trimmed = value  # Paddle drops trailing ones when it places Y at an axis
    if axis != -1:
        while trimmed.ndim > 1 and trimmed.shape[-1] == 1 and axis + trimmed.ndim > place.rank:
            trimmed = trimmed[..., 0]
    at = place.rank - trimmed.ndim if axis == -1 else axis
    return name, per_channel(trimmed, at, place, name)


def _add(values: Values, params: Params, op: OpDesc, place: Place) -> Affine:
    name, b = _elementwise(values, params, op, place)
    return Affine(np.ones(place.channels), b, (name,))


def _mul(values: Values, params: Params, op: OpDesc, place: Place) -> Affine:
    name, a = _elementwise(values, params, op, place)
    return Affine(a, np.zeros(place.channels), (name,))


def _scale(values: Values, params: Params, op: OpDesc, place: Place) -> Affine:
    if op.input("ScaleTensor"):
        raise Refused("its scale is a tensor")
    a, b = float(op.attrs.get("scale", 1.0)), float(op.attrs.get("bias", 0.0))
    b = b if op.attrs.get("bias_after_scale", True) else a * b
    return Affine(np.full(place.channels, a), np.full(place.channels, b))


def _layout_axis(op: OpDesc, rank: int) -> int:
    return rank - 1 if op.attrs.get("data_layout", "NCHW") == "NHWC" else 1


def _vector(
    values: Values, params: Params, op: OpDesc, slot: str, place: Place
) -> tuple[str, np.ndarray]:
    name, value = parameter(values, params, op, slot)
    if value.shape != (place.channels,):
        raise Refused(f"{slot} {name!r} has shape {list(value.shape)}, not [{place.channels}]")
    return name, value


def _same_axis(op: OpDesc, place: Place) -> None:
    if _layout_axis(op, place.rank) != place.axis:
        raise Refused(
            f"its channels lie on axis {_layout_axis(op, place.rank)}, the output channels before"
            f" it on axis {place.axis}"
        )


def _affine_channel(values: Values, params: Params, op: OpDesc, place: Place) -> Affine:
    _same_axis(op, place)
    (scale, a), (bias, b) = (_vector(values, params, op, slot, place) for slot in ("Scale", "Bias"))
    return Affine(a, b, (bias, scale))


def refuse_training(op: OpDesc) -> None:
    """Raises Refused for a norm that uses the statistics of each batch."""
    if not fixed_statistics(op.attrs):
        raise Refused(
            "it is in training mode: it uses the statistics of each batch (clone the program with"
            " for_test=True)"
        )


def batch_norm(values: Values, params: Params, op: OpDesc, place: Place) -> Affine:
    """batch_norm by its running statistics: a = scale / sqrt(variance + epsilon), b = bias - mean *
    a.

    Raises Refused in training mode, which uses the batch's statistics.
    """
    refuse_training(op)
    _same_axis(op, place)
    found = {
        slot: _vector(values, params, op, slot, place)
        for slot in ("Bias", "Scale", "Mean", "Variance")
    }
    bias, scale, mean, variance = (value for _, value in found.values())
    deviation = variance + float(op.attrs.get("epsilon", 1e-5))
    if not (deviation > 0).all():
        raise Refused(
            "variance + epsilon is not positive in every channel, so the result is not finite"
        )
    a = scale / np.sqrt(deviation)
    b = bias - mean * a
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise Refused("its parameters are not finite")
    return Affine(a, b, tuple(name for name, _ in found.values()))


def activation(op: OpDesc) -> tuple[str, dict[str, Any]] | None:
    """The op type and attributes of the activation that an affine op ends with; only an inplace_abn
    has one.
    """
    kind = op.attrs.get("activation", "identity") if op.type == "inplace_abn" else "identity"
    if kind in ("", "identity"):
        return None
    return kind, {"alpha": op.attrs.get("alpha", 0.1)}


Read = Callable[[Values, Params, OpDesc, Place], Affine]

# op type -> its reader, and the slots of the value
AFFINE: dict[str, tuple[Read, Link]] = {
    "elementwise_add": (_add, Link("X", "Out")),
    "elementwise_mul": (_mul, Link("X", "Out")),
    "scale": (_scale, Link("X", "Out")),
    "affine_channel": (_affine_channel, Link("X", "Out")),
    "batch_norm": (batch_norm, Link("X", "Y")),
    "inplace_abn": (batch_norm, Link("X", "Y")),
}

# op types that keep the order of the elements, and the slots of the value
RESHAPES: dict[str, Link] = dict.fromkeys(
    ("reshape", "reshape2", "squeeze", "squeeze2", "unsqueeze", "unsqueeze2"), Link("X", "Out")
)
THROUGH: dict[str, Link] = {**{kind: link for kind, (_, link) in AFFINE.items()}, **RESHAPES}


def reshaped(values: Values, op: OpDesc, place: Place) -> Place:
    """The context after a reshape: the axis with as many elements per step as the channels had
    before. Raises Refused if there is none, or if sizes are not known.
    """
    if len(set(op.reads)) > 1:
        raise Refused(f"the shape of op '{op.type}' is computed by other ops")
    before, after = (_sizes(values, op, names) for names in (op.input("X"), op.output("Out")))
    # such a reshape fails for the open sizes of the probe
    if _count(before) % (_count(after) or 1):
        raise Refused(f"op '{op.type}' fixes a size that is open before it")
    steps = _step(before, place.axis)
    for axis, size in enumerate(after):
        if size == place.channels and _step(after, axis) == steps:
            # an unknown size may differ from another one, unless only axes of size 1 change
            if "" in steps[1] and op.type.startswith("reshape"):
                break
            return Place(len(after), axis, place.channels)
    raise Refused(f"op '{op.type}' may join the channels with other axes, or split them")


def _sizes(values: Values, op: OpDesc, names: Sequence[str]) -> list[int | str]:
    """The sizes of a value; names of unknown ones, "" for those without a name."""
    var = values.desc.blocks[0].vars.get(names[0])
    if var is None or var.shape is None:
        raise Refused(f"the shapes of op '{op.type}' are not known")
    dims = var.dims or ("",) * len(var.shape)
    return [n if n >= 0 else bare(name) for n, name in zip(var.shape, dims, strict=True)]


def _step(sizes: Sequence[int | str], axis: int) -> tuple[int, list[str]]:
    """The number of elements from one index along an axis to the next: the product of the known
    sizes behind it, and the unknown ones.
    """
    behind = sizes[axis + 1 :]
    return _count(behind), sorted(n for n in behind if isinstance(n, str))


def _count(sizes: Sequence[int | str]) -> int:
    """The product of the known sizes."""
    return math.prod(n for n in sizes if isinstance(n, int))
