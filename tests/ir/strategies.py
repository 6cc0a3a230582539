"""Hypothesis strategies for programs: every one is well formed by ir/verify.py, however odd its
names and values.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fluidjax.base.dtypes import JAX_ONLY, KINDS, NAMES
from fluidjax.ir.desc import (
    EMPTY,
    BlockDesc,
    BlockRef,
    FrozenMap,
    Long,
    OpDesc,
    ProgramDesc,
    VarDesc,
)

_CHARS = st.one_of(
    st.sampled_from("abxy019_.@/-$ `\"'\\#:=,()[]{}%*|<>\n\t\r\x00\x7f\x85\u2028é中😀"),
    st.characters(exclude_categories=["Cs"]),
)
strings = st.one_of(
    st.text(_CHARS, max_size=6),
    # the last: other encodings
    st.sampled_from(["", "w", "True", "inf", "nan", "block", "block 1", "\udc80\udcff"]),
)
plain_names = st.sampled_from(
    """x y fc_0.w_0 x@GRAD x@GRAD@RENAME@block0@1 @LR_DECAY_COUNTER@ a/b.c-1 None inf infinity block param data var
    hints callstacks program role uid f32 True -1 1e5 * L""".split()
)
names = st.one_of(plain_names, strings.filter(bool)).filter(lambda name: name != EMPTY)

ints = st.one_of(st.integers(-4, 4), st.integers(-(2**31), 2**31 - 1))
longs = st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)).map(Long)
floats32 = st.one_of(
    st.floats(width=32, allow_nan=False),
    st.sampled_from([math.nan, -0.0, math.inf, -math.inf, 0.10000000149011612]),
)
floats = st.one_of(floats32, st.floats(allow_nan=False))
_SHAPES = st.one_of(
    st.none(), st.lists(st.one_of(st.just(-1), st.integers(0, 2**40)), max_size=4).map(tuple)
)
_QUIET = [
    "op_role",
    "op_role_var",
    "op_namescope",
    "op_callstack",
    "op_device",
    "use_mkldnn",
    "scale_x",
]


def _tuples(element: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(element, max_size=4).map(tuple)


def values(below: list[int], number: st.SearchStrategy[float] = floats) -> st.SearchStrategy[Any]:
    """An attribute's value; `below`: blocks that it may refer to; `number`: what floats to draw."""
    kinds = [st.booleans(), ints, longs, number, strings]
    kinds += [_tuples(kind) for kind in kinds]
    if below:
        refs = st.sampled_from(below).map(BlockRef)
        kinds += [refs, st.lists(refs, min_size=1, max_size=3).map(tuple)]
    return st.one_of(kinds)


@st.composite
def variables(draw: st.DrawFn, name: str) -> VarDesc:
    """A variable of any kind, dtype, shape and flags."""
    flags = [draw(st.booleans()) for _ in range(6)]
    kind = draw(st.one_of(st.just("LOD_TENSOR"), st.sampled_from(sorted(KINDS))))
    dtype = draw(st.one_of(st.none(), st.sampled_from(sorted(NAMES - JAX_ONLY))))
    return VarDesc(name, draw(_SHAPES), dtype, kind, draw(st.integers(0, 3)), *flags)


@st.composite
def operators(draw: st.DrawFn, uid: int, scope: list[str], below: list[int], number: Any) -> OpDesc:
    """An op that uses names of `scope`."""
    slot_names = st.one_of(st.sampled_from(["X", "Out", "Out@GRAD"]), names)
    uses = _tuples(st.sampled_from([*scope, EMPTY]))
    maps = [draw(st.dictionaries(slot_names, uses, max_size=3)) for _ in range(2)]
    attr_names = st.one_of(st.sampled_from(["axis", "X", *_QUIET]), names)
    attrs = draw(st.dictionaries(attr_names, values(below, number), max_size=4))
    if draw(st.booleans()):
        attrs["op_role"] = draw(st.sampled_from([0, 1, 2, 16, 257, 4096, -1, 3 << 20]))
    kind = draw(st.one_of(st.sampled_from(["mul", "relu", "while"]), names))
    return OpDesc(uid, kind, FrozenMap(maps[0]), FrozenMap(maps[1]), FrozenMap(attrs))


@st.composite
def programs(draw: st.DrawFn, number: st.SearchStrategy[float] = floats) -> ProgramDesc:
    """A well-formed program of up to four blocks."""
    parents = [-1] + [draw(st.integers(0, idx)) for idx in range(draw(st.integers(0, 3)))]
    uids = iter(draw(st.lists(st.integers(0, 100), min_size=12, max_size=12, unique=True)))
    uids = iter(range(12)) if draw(st.booleans()) else uids
    tables = [draw(st.lists(names, max_size=5, unique=True)) for _ in parents]
    blocks = []
    for idx, parent in enumerate(parents):
        scope, at = [], idx
        while at >= 0:
            scope += tables[at]
            at = parents[at]
        below = [b for b in range(idx + 1, len(parents)) if _descends(parents, b, idx)]
        ops = tuple(
            draw(operators(next(uids), scope, below, number))
            for _ in range(draw(st.integers(0, 3)))
        )
        vars = FrozenMap({name: draw(variables(name)) for name in tables[idx]})
        blocks.append(BlockDesc(vars, ops, parent, draw(st.integers(-1, idx - 1))))
    return _fed(ProgramDesc(tuple(blocks), draw(ints)))


def _descends(parents: list[int], block: int, ancestor: int) -> bool:
    while block > ancestor:
        block = parents[block]
    return block == ancestor


def _fed(desc: ProgramDesc) -> ProgramDesc:
    """`desc` with everything that block 0 reads declared as data, so that nothing is read before it
    is written.
    """
    read = {name for op in desc.blocks[0].ops for name in op.reads}
    vars = {n: replace(v, is_data=v.is_data or n in read) for n, v in desc.blocks[0].vars.items()}
    return replace(desc, blocks=(replace(desc.blocks[0], vars=FrozenMap(vars)), *desc.blocks[1:]))


def exact(value: Any) -> Any:
    """A form of a desc that tells 1 from True, 1.0 and Long(1), and -0.0 from 0.0, which == does
    not.
    """
    if isinstance(value, tuple | list):
        return [exact(v) for v in value]
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    if isinstance(value, ProgramDesc):
        return [value.seed, exact(value.blocks)]
    if isinstance(value, BlockDesc):
        return [exact(dict(value.vars)), exact(value.ops), value.parent, value.forward]
    if isinstance(value, OpDesc):
        return [
            value.uid,
            value.type,
            exact(dict(value.inputs)),
            exact(dict(value.outputs)),
            exact(dict(value.attrs)),
        ]
    return f"{type(value).__name__} {value!r}"
