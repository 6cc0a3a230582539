"""Conversion of a program from a later Paddle to 1.8.5's meaning of op types, by the versions in
its file.

* Since 2.5 a reduction of everything, among others, has the shape []; op types of 1.8.5 give [1]
  here, which a `squeeze` takes off.
* Versions of op types (op_version_map) mark changed meanings: leaky_relu and hard_shrink with odd
  attributes, `gather`, whose gradient adds if an index repeats. * A version beyond those of Paddle
  3.3.1 is refused, because its meaning is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import FluidError, UnsupportedError
from ..ir import edit
from ..ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ir.proto import Written
from ..ops.build import OpBuilder
from ..ops.infer import Spec, infer
from ..ops.registry import REGISTRY

SCALARS_SINCE = 2_005_000  # tensors of shape []
LATEST = FrozenMap(  # of Paddle 3.3.1, if not 1
    allclose=2,
    coalesce_tensor=2,
    conv2d_transpose=2,
    depthwise_conv2d_transpose=2,
    distribute_fpn_proposals=2,
    fill_constant=2,
    generate_proposals=2,
    moving_average_abs_max_scale=2,
    quantize=2,
    roi_align=3,
    roi_pool=2,
    roll=2,
    set_value=4,
    for_pybind_test__=4,
)
# op type -> the version that changed its meaning, the condition on attributes under which both
# agree, and that condition in words
CHANGED: Mapping[str, tuple[int, Callable[[Mapping[str, Any]], bool], str]] = {
    "leaky_relu": (1, lambda attrs: 0 <= attrs.get("alpha", 0.02) <= 1, "alpha from 0 to 1"),
    "hard_shrink": (1, lambda attrs: attrs.get("threshold", 0.5) >= 0, "threshold from 0 on"),
}


def adapted(desc: ProgramDesc, written: Written) -> ProgramDesc:
    """The program with the meaning that its ops had when it was saved. Raises UnsupportedError for
    versions of op types with unknown changes.
    """
    if not written.ops and written.paddle < 2_000_000:
        return desc
    for block in desc.blocks:
        for op in block.ops:
            _check(op, written.ops)
    desc = edit.map_ops(desc, _adding)
    return _with_scalars(desc) if written.paddle >= SCALARS_SINCE else desc


def _check(op: OpDesc, versions: Mapping[str, int]) -> None:
    version = versions.get(op.type, 0)
    where = f" ({op.loc})" if op.loc else ""
    if version > LATEST.get(op.type, 1):
        raise UnsupportedError(
            f"op '{op.type}'{where} is of version {version}, later than Paddle 3.3.1's"
            f" {LATEST.get(op.type, 1)}; save the model with 3.3.1"
        )
    since, agrees, words = CHANGED.get(op.type, (version + 1, dict, ""))
    if version >= since and not agrees(op.attrs):
        raise UnsupportedError(
            f"op '{op.type}'{where} of version {version} is there with {words} alone, where it"
            " means what it did before"
        )


def _adding(op: OpDesc) -> OpDesc:
    """`gather` of later Paddles has no attribute `overwrite`, and adds."""
    if op.type in ("gather", "gather_grad") and "overwrite" not in op.attrs:
        return replace(op, attrs=op.attrs.set(overwrite=False))
    return op


def _with_scalars(desc: ProgramDesc) -> ProgramDesc:
    make = OpBuilder.after(desc)
    for idx in range(len(desc.blocks)):
        block = desc.blocks[idx]
        ops: list[OpDesc] = []
        added: list[VarDesc] = []
        for op in block.ops:
            names = _ones(op, block, desc)
            ops.append(replace(op, outputs=_renamed(op.outputs, names)) if names else op)
            for name, one in names.items():
                declared = _found(name, block, desc)
                assert declared is not None
                added.append(replace(declared, name=one, shape=(1,), persistable=False))
                ops.append(make.op("squeeze", {"X": one}, {"Out": name}, None, op, axes=(0,)))
        if added:
            desc = edit.add_vars(edit.replace_ops(desc, idx, ops), idx, added)
    return desc


def _renamed(slots: FrozenMap, names: Mapping[str, str]) -> FrozenMap:
    return FrozenMap({slot: tuple(names.get(n, n) for n in given) for slot, given in slots.items()})


def _found(name: str, block: BlockDesc, desc: ProgramDesc) -> VarDesc | None:
    while name not in block.vars and block.parent >= 0:
        block = desc.blocks[block.parent]
    return block.vars.get(name)


def _ones(op: OpDesc, block: BlockDesc, desc: ProgramDesc) -> dict[str, str]:
    """Names that are [1] in the op and [] in the file, each with a new name for the op's output."""
    bare = {
        n
        for n in op.writes
        if (var := _found(n, block, desc))
        and var.kind == "LOD_TENSOR"
        and var.dtype
        and var.shape == ()
    }
    definition = REGISTRY.get(op.type)
    if not bare or definition is None or definition.fn is None or definition.forward is not None:
        return {}
    try:
        shapes = infer(
            definition,
            FrozenMap({s.name: _spec(op, s, block, desc) for s in definition.inputs}),
            op.attrs,
        )
    except FluidError:
        return {}  # the run raises the error
    found = {}
    for slot in definition.outputs:
        given = shapes.get(slot.name)
        for name, spec in zip(
            op.output(slot.name), given if isinstance(given, tuple) else (given,), strict=False
        ):
            if spec is not None and spec.shape == (1,) and name in bare:
                found[name] = f"{name}@ONE"
    return found


def _spec(op: OpDesc, slot: Any, block: BlockDesc, desc: ProgramDesc) -> Any:
    vars = [_found(n, block, desc) for n in op.input(slot.name)]
    specs = [Spec(v.shape or (), v.dtype) if v is not None and v.dtype else None for v in vars]
    return tuple(specs) if slot.many else (specs[0] if specs else None)
