"""Folding: a linear op and the per-channel affine ops after it become the linear op with another
weight, and one addition. Reshapes between them follow the addition.

For y = W x + c followed by a * y + b, channel by channel: W' = a W and b' = a c + b. Both are
computed in float64 and stored under new names, so other uses of the old weight, in this program or
another, are not affected.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.build import OpBuilder
from .affine import AFFINE, RESHAPES, THROUGH, Affine, Place, activation, parameter, reshaped
from .base import Params, new_name, values_of
from .certificate import Fold
from .linear import LINEAR, refuse_extras
from .match import Refused, Values
from .probe import measure

SUFFIX = "_fuse_bn"  # Fluid's


@dataclass(frozen=True)
class Found:
    """A foldable chain: positions of the linear op and of the ops after it, and their combined map.
    place: the context of the linear op's result.
    """

    ops: tuple[int, ...]
    place: Place
    affine: Affine
    weight: tuple[str, np.ndarray]


def examine(values: Values, params: Params, positions: Sequence[int]) -> Found:
    """Whether a chain (a linear op, then affine ops and reshapes) may be folded. Raises Refused
    with the reason if not.

    Only the last op may end with an activation.
    """
    first = values.ops[positions[0]]
    linear = LINEAR[first.type]
    refuse_extras(first)
    name, weight = parameter(values, params, first, linear.weight)
    place = _place(
        values, first, linear.gives, linear.channels(first, weight.shape), linear.channel
    )
    here, total = place, place.identity
    if linear.bias and first.input(linear.bias):
        bias, c = parameter(values, params, first, linear.bias)
        if c.size != place.channels:
            raise Refused(
                f"{linear.bias} {bias!r} has shape {list(c.shape)}, not [{place.channels}]"
            )
        total = replace(total, b=c.reshape(-1), reads=(bias,))
    for before, at in pairwise(positions):
        gives = linear.gives if before == positions[0] else THROUGH[values.ops[before].type].gives
        values.only_read_by(values.given(before, gives), at)
        op = values.ops[at]
        if op.type in RESHAPES:
            here = reshaped(values, op, here)
        else:
            total = AFFINE[op.type][0](values, params, op, here).after(total)
    for at in positions[1:-1]:
        if curved := activation(values.ops[at]):
            raise Refused(f"its input comes through the {curved[0]} of op '{values.ops[at].type}'")
    for at in positions[1:]:
        _refuse_side_outputs(values, at)
    if not (np.isfinite(total.a).all() and np.isfinite(total.b).all()):
        raise Refused("its parameters are not finite")
    return Found(tuple(positions), place, total, (name, weight))


def _place(values: Values, op: OpDesc, gives: str, channels: int, axis: Any) -> Place:
    var = values.desc.blocks[0].vars.get(op.output(gives)[0])
    if var is None or var.shape is None:
        raise Refused(f"the shape of {op.output(gives)[0]!r} is not known")
    place = Place(len(var.shape), axis(op, len(var.shape)), channels)
    if not 0 <= place.axis < place.rank or var.shape[place.axis] not in (-1, channels):
        raise Refused(
            f"{var.name!r} of shape {list(var.shape)} does not have the {channels} channels of the"
            f" weight on axis {place.axis}"
        )
    return place


def _refuse_side_outputs(values: Values, at: int) -> None:
    """Raises Refused if anything reads another output of an affine op (a batch_norm's SavedMean)."""
    op = values.ops[at]
    gives = THROUGH[op.type].gives
    for slot, names in op.outputs.items():
        if slot == gives or slot in ("MeanOut", "VarianceOut"):
            continue
        for name in names:
            value = values.given(at, slot)
            if values.readers(value) or values.outlives(value):
                raise Refused(f"its {slot} {name!r} is used")


@dataclass
class Folder:
    """Collects folds of one program; `result` is the program with all of them done."""

    values: Values
    params: Params
    suffix: str = SUFFIX
    probe: bool = True
    made: dict[str, np.ndarray] = field(default_factory=dict)
    vars: dict[str, VarDesc] = field(default_factory=dict)
    # position -> the current op there
    ops: dict[int, tuple[OpDesc, ...]] = field(default_factory=dict)
    folds: list[Fold] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._build = OpBuilder.after(self.values.desc)
        self._declared = self.values.desc.blocks[0].vars

    def fold(self, found: Found, add_zero: bool = True) -> None:
        """Fold one chain. With `add_zero` False, no addition is written if it would add zero."""
        first, last = self.values.ops[found.ops[0]], self.values.ops[found.ops[-1]]
        linear = LINEAR[first.type]
        name, weight = found.weight
        out = self._declared[first.output(linear.gives)[0]]
        old = self._declared[name]
        scaled = linear.scaled(first, weight, found.affine.a).astype(
            numpy_dtype(old.dtype or "float32")
        )
        new_weight = self._parameter(name, old, scaled)
        inputs = {**first.inputs, linear.weight: (new_weight,)}
        if linear.bias:
            inputs.pop(linear.bias, None)
        between = self.values.ops[found.ops[0] + 1 : found.ops[-1]]
        # its input is overwritten: it cannot move back
        stuck = any(n in first.reads for op in between for n in op.writes)
        behind = self._behind(found, last, out, add_zero or stuck)
        target = behind[0].input("X")[0] if behind else _result(last)
        front = replace(
            first,
            inputs=FrozenMap(inputs),
            outputs=FrozenMap({**first.outputs, linear.gives: (target,)}),
        )
        self._certify(found, (front, *behind), name)
        for at in found.ops[1:]:
            self.ops[at] = ()
        if behind:
            self.ops[found.ops[0]], self.ops[found.ops[-1]] = (front,), behind
        else:  # the value must appear at the same position: its name may hold another value before
            self.ops[found.ops[0]], self.ops[found.ops[-1]] = (), (front,)

    def _behind(
        self, found: Found, last: OpDesc, out: VarDesc, add_zero: bool
    ) -> tuple[OpDesc, ...]:
        """The addition, the reshapes, and the activation of an inplace_abn."""
        steps: list[tuple[VarDesc, Callable[[str, str], OpDesc]]] = []  # a result's like, its op
        if add_zero or found.affine.b.any():
            bias = found.affine.b.astype(numpy_dtype(out.dtype or "float32"))
            base = found.affine.reads[0] if found.affine.reads else out.name
            vector = VarDesc(base, bias.shape, out.dtype, persistable=True, is_parameter=True)
            b = self._parameter(base, vector, bias)
            steps.append((out, partial(self._addition, last, b, found.place.axis)))
        for at in found.ops[1:]:
            if (op := self.values.ops[at]).type in RESHAPES:
                like = self._declared[op.output("Out")[0]]
                steps.append((like, partial(_again, op)))
        if ends_with := activation(last):
            kind, attrs = ends_with
            steps.append((out, lambda x, y: self._build.over(kind, x, last, y, **attrs)))
        ops: list[OpDesc] = []
        x = self._temporary(out) if steps else ""
        for i, (like, make) in enumerate(steps):
            y = _result(last) if i == len(steps) - 1 else self._temporary(like)
            ops.append(make(x, y))
            x = y
        return tuple(ops)

    def _addition(self, last: OpDesc, b: str, axis: int, x: str, y: str) -> OpDesc:
        return self._build.op(
            "elementwise_add", {"X": x, "Y": b}, {"Out": y}, None, last, axis=axis
        )

    def _parameter(self, base: str, like: VarDesc, value: np.ndarray) -> str:
        name = self._new(base)
        self.made[name] = value
        self.vars[name] = replace(like, name=name, shape=tuple(value.shape))
        return name

    def _temporary(self, like: VarDesc) -> str:
        name = self._new(like.name)
        self.vars[name] = replace(like, name=name, persistable=False)
        return name

    def _new(self, base: str) -> str:
        return new_name(base + self.suffix, self._declared, self.vars, self.params)

    def _certify(self, found: Found, after: Sequence[OpDesc], weight: str) -> None:
        before = [self.values.ops[at] for at in found.ops]
        vars, arrays = (
            ChainMap(self.vars, self._declared),
            ChainMap(self.made, values_of(self.params, before)),
        )
        error = measure(vars, arrays, before, after, _result(before[-1])) if self.probe else None
        self.folds.append(Fold.of(before, after, found.affine, weight, error))

    def result(self) -> ProgramDesc:
        """The program after all folds, without unused variables."""
        desc = self.values.desc
        if not self.folds:
            return desc
        ops = [new for at, op in enumerate(self.values.ops) for new in self.ops.get(at, (op,))]
        after = edit.add_vars(edit.replace_ops(desc, 0, ops), 0, self.vars.values())
        return edit.drop_forgotten(after, desc, self.values.keep)


def _result(last: OpDesc) -> str:
    """The name of a chain's result."""
    return last.output(AFFINE[last.type][1].gives)[0]


def _again(op: OpDesc, x: str, y: str) -> OpDesc:
    """A reshape of another value."""
    return replace(
        op,
        inputs=FrozenMap({**op.inputs, "X": (x,)}),
        outputs=FrozenMap({**op.outputs, "Out": (y,)}),
    )
