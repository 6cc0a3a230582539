"""Blocks that lie within themselves, or too deep: no file holds a program that goes in a circle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, ParseError, VerifyError
from fluidjax.ir import edit, jsonio, proto, text, walk
from fluidjax.ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, slots
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import lookup


def branching() -> ProgramDesc:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [1], "float32")
        layers.cond(
            x < 0.0, lambda: layers.cond(x < 1.0, lambda: x * 2.0, lambda: x * 3.0), lambda: x
        )
        return fluid.default_main_program().desc


def pointing(desc: ProgramDesc, change: dict[int, int]) -> ProgramDesc:
    """The program whose ops refer to other blocks."""

    def moved(op: OpDesc) -> OpDesc:
        ref = op.attrs.get("sub_block")
        return (
            op
            if ref is None or ref.idx not in change
            else replace(op, attrs=op.attrs.set(sub_block=BlockRef(change[ref.idx])))
        )

    return edit.map_ops(desc, moved)


def nest(depth: int) -> ProgramDesc:
    """Blocks one in another."""
    condition = edit.map_ops(branching(), lambda op: op).blocks[0]
    op = next(op for op in condition.ops if op.blocks)
    blocks = [
        BlockDesc(
            condition.vars,
            (
                *(o for o in condition.ops if not o.blocks),
                replace(op, attrs=op.attrs.set(sub_block=BlockRef(1))),
            ),
        )
    ]
    for idx in range(1, depth):
        inner = (
            (replace(op, uid=100 + idx, attrs=op.attrs.set(sub_block=BlockRef(idx + 1))),)
            if idx + 1 < depth
            else ()
        )
        blocks.append(BlockDesc(FrozenMap(), inner, idx - 1))
    return ProgramDesc(tuple(blocks))


CIRCLES = {
    "itself": {2: 1},
    "block 0": {1: 0},
    "block 0 from within": {2: 0},
    "one below": {1: 2, 2: 1},
}


@pytest.mark.parametrize("name", CIRCLES)
def test_circles_are_refused_wherever_a_program_comes_from(name: str) -> None:
    good = branching()
    assert walk.misnested(good) is None
    bad = pointing(good, CIRCLES[name])
    if walk.misnested(bad) is None:
        pytest.fail("the example is not a circle")
    with pytest.raises(ParseError, match="is nested in itself"):
        fluid.Program.parse_from_string(proto.to_bytes(bad))
    with pytest.raises(VerifyError):
        verify(bad, lookup)
    for desc in (text.parse(text.to_text(bad)), jsonio.from_json(jsonio.to_json(bad))):
        program = fluid.Program.from_desc(desc)
        with pytest.raises(
            VerifyError, match=r"the program cannot run: block . is nested in itself"
        ):
            fluid.Executor().run(program, feed={"x": np.zeros(1, "float32")}, fetch_list=["tmp_0"])


@pytest.mark.parametrize("lost", [-1, 7])
@pytest.mark.parametrize("ref", [1, 2])
def test_blocks_that_are_not_there_are_refused(lost: int, ref: int) -> None:
    """Whatever looks at blocks before the step is made: the search for cases, what they read, their
    shared parts.
    """
    bad = pointing(branching(), {ref: lost})
    for desc in (bad, replace(bad, blocks=bad.blocks[:1])):
        program = fluid.Program.from_desc(desc)
        with pytest.raises(
            VerifyError,
            match=r"the program cannot run: an op of block \d has block -?\d, which does not exist",
        ):
            fluid.Executor().run(program, feed={"x": np.zeros(1, "float32")}, fetch_list=["tmp_0"])


def test_depth() -> None:
    assert walk.misnested(nest(walk.MOST_NESTED)) is None
    for depth in (walk.MOST_NESTED + 1, 3000):
        with pytest.raises(
            ParseError,
            match=rf"block {depth - 1} is nested in {depth - 1} others; blocks may be nested 100 deep",
        ):
            proto.from_bytes(proto.to_bytes(nest(depth)))


def change(op: str, **held: object) -> ProgramDesc:
    return edit.map_ops(
        branching(),
        lambda o: replace(o, **{k: v(o) for k, v in held.items()}) if o.type == op else o,
    )  # type: ignore[operator]


UNFILLED = {
    "no condition": ("conditional_block", {"inputs": lambda o: o.inputs.set(Cond=())}, "lacks what it needs in one of its slots"),
    "no block": ("conditional_block", {"attrs": lambda o: o.attrs.without("sub_block")}, "attribute 'sub_block' names no block"),
    "a number for a block": ("conditional_block", {"attrs": lambda o: o.attrs.set(sub_block=1)}, "attribute 'sub_block' names no block"),
    "no input": ("less_than", {"inputs": lambda o: slots({"X": "x"})}, "input slot 'Y' takes one variable, but has 0"),
    "two inputs": ("logical_not", {"inputs": lambda o: slots({"X": ["x", "x"]})}, "input slot 'X' takes one variable, but has 2"),
    "no output": ("logical_not", {"outputs": lambda o: slots({"Out": []})}, "output slot 'Out' takes one variable, but has 0"),
    "text for a number": ("less_than", {"attrs": lambda o: o.attrs.set(axis="x")}, "attribute 'axis' is x, a value of another type"),
    "a list for a number": ("fill_constant", {"attrs": lambda o: o.attrs.set(value=(1.0,))}, "attribute 'value' is"),
    "text in a list": ("fill_constant", {"attrs": lambda o: o.attrs.set(shape=("a",))}, "attribute 'shape' is"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFILLED)
def test_ops_that_lack_what_they_need_are_refused_by_name(name: str) -> None:
    op, held, told = UNFILLED[name]
    program = fluid.Program.parse_from_string(proto.to_bytes(change(op, **held)))
    ends = [op.output("Out")[0] for op in branching().blocks[0].ops if op.type == "select_input"]
    with pytest.raises(EnforceNotMet, match=rf"op '{op}'.*{told}"):
        fluid.Executor().run(program, feed={"x": np.zeros(1, "float32")}, fetch_list=ends)
