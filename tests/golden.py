"""Descs from the recorded programs of Paddle 1.8.5 (plain dicts: blocks of ops and vars, see
desc_from_golden).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidjax.base.dtypes import VarType, name_of
from fluidjax.ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc, slots


def desc_from_golden(program: Mapping[str, Any]) -> ProgramDesc:
    """The ProgramDesc of a recorded program; uids are ordinals.

    The recordings do not say which variables are data: those are taken to be the tensors of block 0
    that ops read and none writes.
    """
    read, written = (
        {
            n
            for b in program["blocks"]
            for op in b["ops"]
            for names in op[side].values()
            for n in names
        }
        for side in ("inputs", "outputs")
    )
    uid, blocks = 0, []
    for block in program["blocks"]:
        ops = []
        for op in block["ops"]:
            attrs = FrozenMap({name: attribute(value) for name, value in op["attrs"].items()})
            ops.append(OpDesc(uid, op["type"], slots(op["inputs"]), slots(op["outputs"]), attrs))
            uid += 1
        unwritten = read - written if block["idx"] == 0 else set()
        vars = {v["name"]: variable(v, v["name"] in unwritten) for v in block.get("vars", ())}
        blocks.append(
            BlockDesc(FrozenMap(vars), tuple(ops), block["parent"], block["forward_block"])
        )
    return ProgramDesc(tuple(blocks), program["random_seed"])


def attribute(value: Any) -> Any:
    """A recorded attribute as a desc holds it."""
    if isinstance(value, dict):
        return (
            BlockRef(value["block"]) if "block" in value else tuple(map(BlockRef, value["blocks"]))
        )
    return tuple(value) if isinstance(value, list) else value


def variable(var: Mapping[str, Any], unwritten: bool) -> VarDesc:
    """A recorded variable; `unwritten`: it is in block 0, ops read it and none writes it.

    Paddle's shape rules multiply unknown dimensions (-1 * 6 = -6); every negative one becomes -1
    here.
    """
    dtype = var.get("dtype")
    kind = var["type"] if isinstance(var["type"], str) else VarType(var["type"]).name
    data = (
        unwritten and not var["persistable"] and kind == "LOD_TENSOR" and "@GRAD" not in var["name"]
    )
    return VarDesc(
        var["name"],
        tuple(max(d, -1) for d in var["shape"]) if "shape" in var else None,
        name_of(VarType[dtype]) if dtype in VarType.__members__ else None,
        kind,
        var.get("lod_level") or 0,
        var["persistable"],
        var["stop_gradient"],
        is_data=data,
        need_check_feed=data,
        is_parameter=var.get("parameter", False),
        trainable=var.get("trainable", True),
    )
