"""Inlining of functions that a program has as blocks (custom rules, calls)."""

from __future__ import annotations

from dataclasses import replace

from ...ir.desc import EMPTY, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder

CALLS = frozenset({"jax.custom_call", "jax.call", "jax.checkpoint"})


def inlined(desc: ProgramDesc, builder: OpBuilder) -> ProgramDesc:
    """The program whose block 0 calls no functions."""
    while any(op.type in CALLS for op in desc.blocks[0].ops):
        desc = _once(desc, builder)
    return desc


def _once(desc: ProgramDesc, builder: OpBuilder) -> ProgramDesc:
    block = desc.blocks[0]
    vars: dict[str, VarDesc] = dict(block.vars)
    ops: list[OpDesc] = []
    for op in block.ops:
        if op.type not in CALLS:
            ops.append(op)
            continue
        inner = desc.blocks[op.attrs["sub_block"].idx]
        names = dict(zip(op.attrs["args"], op.input("Args"), strict=True))
        results = op.attrs["results"]
        made = {n for each in inner.ops for n in each.writes}
        # a result made by the block directly gets its outer name
        for result, out in zip(results, op.output("Out"), strict=True):
            if out != EMPTY and result in made and result not in names:
                names[result] = out
        for each in inner.ops:
            for name in each.writes:
                if name not in names and name != EMPTY:
                    names[name] = _fresh(name, vars)
                    vars[names[name]] = replace(inner.vars[name], name=names[name])
            slots = [
                FrozenMap({s: tuple(names.get(n, n) for n in ns) for s, ns in held.items()})
                for held in (each.inputs, each.outputs)
            ]
            hints = {k: v for k, v in op.attrs.items() if k in ("op_namescope", "op_role")}
            ops.append(
                replace(
                    each, uid=builder.uid(), inputs=slots[0], outputs=slots[1],
                    attrs=each.attrs.set(**{**hints, **{k: v for k, v in each.attrs.items() if k == "op_namescope"}}),
                )
            )  # fmt: skip
        for result, out in zip(results, op.output("Out"), strict=True):
            if out != EMPTY and names[result] != out:
                ops.append(builder.over("jax.copy", names[result], op, out))
    return replace(
        desc, blocks=(replace(block, vars=FrozenMap(vars), ops=tuple(ops)), *desc.blocks[1:])
    )


def _fresh(name: str, vars: dict[str, VarDesc]) -> str:
    found, k = name, 0
    while found in vars:
        k += 1
        found = f"{name}.{k}"
    return found
