"""Geo-SGD on a mesh: every rank trains alone, and periodically adds the changes of the others'
parameters.

It is a rewrite of the program before transpile. Pservers are not needed: all ranks exchange at
once, so every rank's snapshot equals the pservers' values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...base.dtypes import VarType
from ...ir import edit
from ...ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder
from ...passes.base import Params, Pass, Rewrite, did, new_name
from ...state.scope import Scope
from ..pserver_plan import PserverPlan
from .summing import SMALL

SNAPSHOT = "@SNAPSHOT"
COUNTER = "@GEO_STEP@"  # number of steps since the last exchange
ATTRS = {"op_role": edit.OPTIMIZE}


def snapshot(desc: ProgramDesc, name: str) -> VarDesc:
    """The variable that remembers a parameter."""
    return replace(
        desc.blocks[0].vars[name],
        name=name + SNAPSHOT,
        is_parameter=False,
        persistable=True,
        stop_gradient=True,
    )


@dataclass(frozen=True)
class ExchangeDeltas(Pass):
    """After every `every` steps, sum the parameters' changes over the ranks, and add the others'
    changes.



    delta = (param - snapshot) / ranks; param += sum of the other ranks' deltas; snapshot += sum of
    all ranks' deltas. That is Geo-SGD's param += new - (old + delta), old = new, if all exchange at
    the same time. The ops are in a conditional_block, so the other steps send nothing. parameters:
    names of the exchanged ones.
    """

    name: ClassVar[str] = "exchange_deltas"

    ranks: int
    every: int
    parameters: tuple[str, ...]

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        if not self.parameters:
            return Rewrite(desc)
        made, last = OpBuilder.after(desc), desc.blocks[0].ops[-1]
        deltas = {
            p: replace(snapshot(desc, p), name=p + "@DELTA", persistable=False)
            for p in self.parameters
        }
        exchange = self._exchange(deltas, made, last)
        notes = (
            did(last, f"{len(deltas)} parameters are exchanged after every {self.every} steps"),
        )
        desc = edit.add_vars(desc, 0, [snapshot(desc, p) for p in deltas])
        if self.every == 1:
            desc = edit.add_vars(desc, 0, deltas.values())
            return Rewrite(edit.replace_ops(desc, 0, [*desc.blocks[0].ops, *exchange]), notes=notes)
        inside = BlockDesc(
            FrozenMap({v.name: v for v in deltas.values()}), tuple(exchange), parent=0
        )
        return Rewrite(_now_and_then(desc, inside, self.every, made, last), notes=notes)

    def _exchange(self, deltas: dict[str, VarDesc], made: OpBuilder, at: OpDesc) -> list[OpDesc]:
        before, after = list[OpDesc](), list[OpDesc]()
        for param, var in deltas.items():
            delta, old = var.name, param + SNAPSHOT
            before += [
                made.op(
                    "elementwise_sub",
                    {"X": [param], "Y": [old]},
                    {"Out": [delta]},
                    edit.OPTIMIZE,
                    at,
                ),
                made.over("scale", [delta], at, **ATTRS, scale=1.0 / self.ranks),
                made.op(
                    "elementwise_sub",
                    {"X": [param], "Y": [delta]},
                    {"Out": [param]},
                    edit.OPTIMIZE,
                    at,
                ),
            ]
            after += [
                made.op(
                    "elementwise_add",
                    {"X": [param], "Y": [delta]},
                    {"Out": [param]},
                    edit.OPTIMIZE,
                    at,
                ),
                made.op(
                    "elementwise_add", {"X": [old], "Y": [delta]}, {"Out": [old]}, edit.OPTIMIZE, at
                ),
            ]
        small = [v.name for v in deltas.values() if math.prod(v.shape or ()) <= SMALL]
        sums = [made.over("c_fused_allreduce_sum", small, at, **ATTRS)] if small else []
        sums += [
            made.over("c_allreduce_sum", [v.name], at, **ATTRS)
            for v in deltas.values()
            if v.name not in small
        ]
        return [*before, *sums, *after]


def _now_and_then(
    desc: ProgramDesc, inside: BlockDesc, every: int, made: OpBuilder, at: OpDesc
) -> ProgramDesc:
    """The program with a block that runs after every `every` steps; all ranks count the same."""
    period, due, scopes = (
        new_name(COUNTER + n, desc.blocks[0].vars) for n in (".every", ".due", ".scopes")
    )
    outer = [
        n for n in dict.fromkeys(n for op in inside.ops for n in op.reads) if n not in inside.vars
    ]
    ops = [
        made.over("increment", [COUNTER], at, **ATTRS, step=1.0),
        _number(period, every, made, at),
        made.op("greater_equal", {"X": [COUNTER], "Y": [period]}, {"Out": [due]}, edit.OPTIMIZE, at),
        made.op(
            "conditional_block", {"Cond": [due], "Input": [COUNTER, *outer]}, {"Out": [COUNTER, *outer], "Scope": [scopes]},
            edit.OPTIMIZE, at, sub_block=BlockRef(len(desc.blocks)), is_scalar_condition=True,
        ),
    ]  # fmt: skip
    inside = replace(inside, ops=(_number(COUNTER, 0, made, at), *inside.ops))
    vars = [
        _counted(COUNTER, persistable=True), _counted(period), VarDesc(due, (1,), "bool", stop_gradient=True),
        VarDesc(scopes, kind="STEP_SCOPES"),
    ]  # fmt: skip
    desc = edit.add_vars(edit.replace_ops(desc, 0, [*desc.blocks[0].ops, *ops]), 0, vars)
    return replace(desc, blocks=(*desc.blocks, inside))


def _counted(name: str, persistable: bool = False) -> VarDesc:
    return VarDesc(name, (1,), "int64", persistable=persistable, stop_gradient=True)


def _number(name: str, value: int, made: OpBuilder, at: OpDesc) -> OpDesc:
    attrs = {
        "shape": (1,),
        "dtype": int(VarType.INT64),
        "value": float(value),
        "str_value": str(value),
    }
    return made.op("fill_constant", {}, {"Out": [name]}, edit.OPTIMIZE, at, **attrs)


def remembered(plan: PserverPlan) -> dict[str, VarDesc]:
    """A geo job's extra values in the scope, by name."""
    vars = [
        *(snapshot(plan.main, p.name) for p in plan.params),
        _counted(COUNTER, persistable=True),
    ]
    return {v.name: v for v in vars}


def on_mesh(plan: PserverPlan, ranks: int) -> tuple[Pass, ...]:
    """The passes that make the original program of a geo job one for a mesh of its trainers."""
    return (
        (ExchangeDeltas(ranks, plan.push_every, tuple(p.name for p in plan.params)),)
        if ranks > 1
        else ()
    )


def prepare(plan: PserverPlan, scope: Scope, ranks: int) -> None:
    """The ranks' snapshots, before a program begins with the values of a scope.

    If a parameter has one value for all ranks (the startup program's, or a loaded or stored one),
    it is the base of the next difference. If every rank has its own, the base is the last exchange.
    """
    for p in plan.params if ranks > 1 else ():
        var = scope.find_var(p.name)
        if var is None:
            continue
        var.storage.release()
        own = var.storage.per_rank()
        if not var.storage.empty and (own is None or len(own) != ranks):
            scope.var(p.name + SNAPSHOT).value = np.array(var.value)
    counter = scope.find_var(COUNTER)
    if ranks > 1 and (counter is None or counter.value is None):
        scope.var(COUNTER).value = np.zeros(1, np.int64)
