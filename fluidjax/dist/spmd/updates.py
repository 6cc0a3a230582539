"""How a program updates its parameters: the ops between each gradient and its parameter's new
value, ready to run on blocks.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...ir import edit
from ...ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.registry import lookup, traits
from ...ops.traits import RowWise
from ...ops.traits import Update as Rule

# The innermost name scope of a clip: of an optimizer's grad_clip, and of set_gradient_clip. A
# second one of a kind within one scope has a number.
CLIP = re.compile(r"/(gradient_clip|[^/]*@CLIP)(_\d+)?/$")
PLACE = frozenset(
    {"op_role_var", "op_namescope", "op_callstack", "op_device"}
)  # attributes of an op's origin


@dataclass(frozen=True)
class Update:
    """A parameter's update. grad: the sent variable. ops: in order, the optimizer's last. state:
    its state variables of the parameter's shape, by slot. powers: its numbers, by slot. temps:
    intermediate results.
    """

    param: str
    grad: str
    shape: tuple[int, ...]
    dtype: str
    ops: tuple[OpDesc, ...]
    state: Mapping[str, str]
    powers: Mapping[str, str]
    temps: tuple[str, ...]

    @property
    def optimizer(self) -> OpDesc:
        return self.ops[-1]

    def roles(self) -> dict[str, str]:
        """A map from names to their roles in the update; equal roles in several updates correspond
        to each other.
        """
        named = {**{n: s for s, n in self.state.items()}, **{n: s for s, n in self.powers.items()}}
        named |= {n: f"Temp{i}" for i, n in enumerate(self.temps)}
        return {**named, self.grad: "Grad", self.param: "Param"}

    def signature(self) -> Any:
        """The properties that updates must share to run together on blocks of several parameters."""
        roles = self.roles()
        names = lambda slots: tuple(  # noqa: E731
            (s, tuple(roles.get(n, n) for n in found)) for s, found in slots.items()
        )
        ops = tuple(
            (
                op.type,
                FrozenMap({k: v for k, v in op.attrs.items() if k not in PLACE}),
                names(op.inputs),
            )
            for op in self.ops
        )
        return self.dtype, ops


def updates(
    desc: ProgramDesc, sent: Mapping[str, str], apart: Iterable[str] = ()
) -> tuple[list[Update], dict[str, str]]:
    """The updates that can run on blocks; and for each other parameter of `sent`, why it cannot.

    sent: parameter -> its gradient variable. apart: names that are read outside of the program.
    """
    reader = _Reader(desc, frozenset(apart))
    found: list[Update] = []
    refused: dict[str, str] = {}
    for param, grad in sent.items():
        try:
            found.append(reader.update(param, grad))
        except _Cannot as reason:
            refused[param] = str(reason)
    return found, refused


class _Cannot(Exception):
    """Why an update cannot run on blocks."""


class _Reader:
    def __init__(self, desc: ProgramDesc, apart: frozenset[str]) -> None:
        self.block = desc.blocks[0]
        self.uses = Counter(
            n for op in self.block.ops for n in dict.fromkeys((*op.reads, *op.writes))
        )
        self.apart = apart | {
            n for b in desc.blocks[1:] for op in b.ops for n in (*op.reads, *op.writes)
        }
        self.of: dict[str, list[OpDesc]] = {}
        for op in self.block.ops:
            owner = edit.role_names(op)
            if owner and on_pservers(op):
                self.of.setdefault(owner[0], []).append(op)

    def update(self, param: str, grad: str) -> Update:
        var = self.block.vars.get(param)
        if var is None or var.shape is None or any(d < 0 for d in var.shape):
            raise _Cannot("its parameter has no fixed shape")
        ops = self._ops(param, grad)
        optimizer = ops[-1]
        rule = traits(optimizer.type).update or Rule(False)
        state = {s: n for s in rule.state for n in optimizer.input(s)}
        powers = {s: optimizer.input(s)[0] for s in rule.powers}
        temps = tuple(dict.fromkeys(n for op in ops[:-1] for n in op.writes if n != grad))
        self._check(ops, {param, grad, *state.values(), *powers.values(), *temps}, temps)
        for name in state.values():
            found = self.block.vars.get(name)
            if found is None or found.shape != var.shape or not found.persistable:
                raise _Cannot(f"its state {name!r} is not of the parameter's shape")
            if self.uses[name] != 1 or name in self.apart:
                raise _Cannot("something else uses its state")
        return Update(
            param, grad, var.shape, var.dtype or "float32", tuple(ops), state, powers, temps
        )

    def _ops(self, param: str, grad: str) -> list[OpDesc]:
        steps = [op for op in self.of.get(param, ()) if op.input("Param") == (param,)]
        if len(steps) != 1:
            raise _Cannot(f"{len(steps)} ops update it")
        (optimizer,) = steps
        rule = traits(optimizer.type).update
        if rule is None or not rule.elements:
            raise _Cannot(f"op '{optimizer.type}' needs whole arrays")
        if any(optimizer.input(s) for s in ("Beta1Tensor", "Beta2Tensor")):
            raise _Cannot("its betas are variables")
        if optimizer.input("MasterParam"):
            raise _Cannot("it keeps a copy of the parameter in another precision")
        ops: list[OpDesc] = []
        for op in self.of[param]:
            if op is optimizer:
                break
            if any((v := self.block.vars.get(n)) is not None and v.persistable for n in op.writes):
                continue  # it belongs to another parameter
            if not _each_element(op):
                raise _Cannot(f"op '{op.type}' of its update needs whole arrays")
            ops.append(op)
        found = self.block.vars.get(grad)
        if found is not None and found.kind != "LOD_TENSOR":
            raise _Cannot("its gradient is sparse")
        return [*ops, optimizer]

    def _check(self, ops: list[OpDesc], own: set[str], temps: tuple[str, ...]) -> None:
        """Check that every array that the update reads is its own, and that nothing else reads its
        intermediate results.
        """
        inside = Counter(n for op in ops for n in dict.fromkeys((*op.reads, *op.writes)))
        for name in temps:
            if self.uses[name] != inside[name] or name in self.apart:
                raise _Cannot(f"something else reads {name!r} of its update")
        for op in ops:
            for name in op.reads:
                var = self.block.vars.get(name)
                if name not in own and (var is None or math.prod(var.shape or (0,)) != 1):
                    raise _Cannot(f"its update reads {name!r}, which is not its own")


def _each_element(op: OpDesc) -> bool:
    """Whether the op computes each element separately (weight decay), so that blocks of several
    arrays can be combined.
    """
    rows = traits(op.type).rows
    return isinstance(rows, RowWise) and rows.elements


def goes_on(kind: str) -> dict[str, tuple[str, str]]:
    """The updates of the numbers that an optimizer writes: output slot -> (input slot, the
    attribute that multiplies it).
    """
    definition = lookup(kind)
    powers = definition.traits.update.powers if definition.traits.update else {}
    return {
        out: (source, powers[source])
        for out, source in definition.inplace.items()
        if source in powers
    }


def on_pservers(op: OpDesc) -> bool:
    """Whether the pservers run the op: it is part of an update and not a clip, because trainers
    clip before sending.
    """
    return edit.role(op) == edit.OPTIMIZE and not CLIP.search(str(op.attrs.get("op_namescope", "")))


def array_of(name: str, width: int, dtype: str, kept: bool = False) -> VarDesc:
    """The variable of a rank's row of a bucket."""
    return VarDesc(name, (width,), dtype, persistable=kept, stop_gradient=True)
