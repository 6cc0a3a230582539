"""New ops for rewritten programs: as append_op makes them, with uids of their own."""

from __future__ import annotations

import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, UnknownOpError
from fluidjax.ops.build import OpBuilder


def appended() -> fluid.Program:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [-1, 3])
        fluid.layers.scale(x, scale=1 / 3)
        fluid.layers.concat([x, x], axis=1)
    return main


def test_equals_what_append_op_makes() -> None:
    desc = appended().desc
    scale, concat = desc.blocks[0].ops
    make = OpBuilder(scale.uid)
    assert make.op("scale", {"X": "x"}, {"Out": scale.output("Out")}, scale=1 / 3) == scale
    built = make.op(
        "concat", {"X": ["x", "x"], "AxisTensor": []}, {"Out": concat.output("Out")}, axis=1
    )
    assert built == concat and "AxisTensor" not in built.inputs


def test_stands_where_its_origin_stands() -> None:
    desc = appended().desc
    scale = desc.blocks[0].ops[0]
    make = OpBuilder.after(desc)
    one = make.over("scale", "x", scale)
    two = make.op("c_arrived", {"X": "x", "Order": "o"}, {"Out": "y"}, 2, scale, at=3)
    assert one.loc == scale.loc and one.loc is not None and one.output("Out") == ("x",)
    assert (one.attrs["op_role"], two.attrs["op_role"], two.attrs["at"]) == (0, 2, 3)
    assert len({op.uid for op in (*desc.blocks[0].ops, one, two)}) == 4


def test_takes_what_the_type_takes() -> None:
    make = OpBuilder(0)
    with pytest.raises(UnknownOpError, match=r"op 'scale' has no attribute 'scal'.*'scale'"):
        make.op("scale", {"X": "x"}, {"Out": "x"}, scal=2.0)
    with pytest.raises(
        FluidTypeError, match=r"attribute 'scale' of op 'scale' is FLOAT, which 'two' is not"
    ):
        make.op("scale", {"X": "x"}, {"Out": "x"}, scale="two")
