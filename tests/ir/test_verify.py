"""Every rule of verify, one fault each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from fluidjax.errors import UnknownOpError, VerifyError
from fluidjax.ir import edit
from fluidjax.ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc, slots
from fluidjax.ir.text import parse
from fluidjax.ir.verify import fits, verify

from .test_text import chain, small

TWO = """program seed=0
block 0:
    param w: f32[2]
    data x: f32[2]
    {ops}
block 1 (parent 0):
    t: f32[2] = relu(X=x)
"""


def two(*ops: str) -> ProgramDesc:
    return parse(TWO.format(ops="\n".join(ops)))


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        (
            ["y = relu(X=x)"],
            "block 0, op 0 'relu': slot 'Out' names 'y', which no block in reach declares",
        ),
        (["y: f32[2] = relu(X=xx)"], r"names 'xx'.*did you mean 'x'"),
        (["y: f32[2] = relu(X=t)"], "names 't'"),
        (
            ["y: f32[2] = relu(X=x)", "z: f32[2] = relu(X=x) {uid=0}"],
            "its uid 0 is also that of block 0, op 0",
        ),
        (["y: f32[2] = relu(X=x) {uid=-1}"], "uid is -1"),
        (["y: f32[2] = relu(X=y)"], "reads 'y', which no op before it writes"),
        (
            ["while(sub_block=block 2)"],
            "attribute 'sub_block' points at block 2, which does not exist",
        ),
        (["while(sub_block=block 0)"], "points at block 0"),
        (["while(blocks=(block 1, block 7))"], "points at block 7"),
        (['relu(a=(1, "a"))'], "attribute 'a' mixes types"),
        ([f"relu(a={2**64})"], "more than 64 bits"),
        (["``(X=x)"], "its type is empty"),
        (["var p: f32[-2]"], r"variable 'p': its shape is \(-2,\)"),
        (["var ``: f32[2]"], "its name is empty"),
        (["var @EMPTY@: f32[2]"], "there is no variable"),
        (["var p: f32[2] lod -1"], "lod_level is -1"),
    ],
)
def test_faults_that_text_can_hold(ops, text):
    with pytest.raises(VerifyError, match=text):
        verify(two(*ops))


def changed(**fields):
    desc = two("y: f32[2] = relu(X=x)")
    return edit.replace_ops(desc, 0, [replace(desc.blocks[0].ops[0], **fields)])


@pytest.mark.parametrize(
    ("desc", "text"),
    [
        (ProgramDesc(()), "needs a block 0"),
        (ProgramDesc((BlockDesc(parent=0),)), "has no parent"),
        (ProgramDesc((BlockDesc(), BlockDesc())), "block 1: its parent is -1"),
        (ProgramDesc((BlockDesc(), BlockDesc(parent=1))), "its parent is 1"),
        (ProgramDesc((BlockDesc(), BlockDesc(parent=0, forward=2))), "no forward block 2"),
        (ProgramDesc(seed="1"), "the seed is '1'"),
        (
            edit.add_vars(ProgramDesc(), 0, [VarDesc("a", dtype="float33")]),
            "dtype is 'float33'; known are bfloat16",
        ),
        (edit.add_vars(ProgramDesc(), 0, [VarDesc("a", kind="TENSOR")]), "kind is 'TENSOR'"),
        (edit.add_vars(ProgramDesc(), 0, [VarDesc("a", shape=[2])]), "must be a tuple"),
        (edit.add_vars(ProgramDesc(), 0, [VarDesc("a", shape=(True,))]), "must be a tuple of ints"),
        (edit.add_vars(ProgramDesc(), 0, [VarDesc("\ud800")]), "cannot be written as UTF-8"),
        (ProgramDesc((BlockDesc(FrozenMap(a=VarDesc("b"))),)), "its desc has the name 'b'"),
        (changed(attrs=FrozenMap(a=object())), "attribute 'a' is a object"),
        (changed(attrs=FrozenMap(a=[1])), "is a list"),
        (changed(attrs=FrozenMap(a="\ud800")), "cannot be written as UTF-8"),
        (changed(inputs=FrozenMap(X=["x"])), "must hold a tuple of names"),
        (changed(inputs=FrozenMap(X=(3,))), "a name in slot 'X' is 3"),
        (changed(uid="a"), "its uid is 'a'"),
    ],
)
def test_faults_that_only_python_can_hold(desc, text):
    with pytest.raises(VerifyError, match=text):
        verify(desc)


def test_a_block_that_lies_elsewhere():
    desc = parse(
        "program seed=0\nblock 0:\nblock 1 (parent 0):\nwhile(b=block 2)\nblock 2 (parent 0):\n"
    )
    with pytest.raises(VerifyError, match="block 2, which is not below block 1"):
        verify(desc)


@pytest.mark.parametrize(
    "ops",
    [
        ["(Out=@EMPTY@) = relu(X=@EMPTY@)"],
        ["var a: lod_tensor_array f32[2]", "read_from_array(X=a)"],
        ["var w@GRAD: f32[2]", "sum(X=w@GRAD)"],
        ["var p: f32[2]", "send(X=p)"],
        ["while(sub_block=block 1)"],
        ["data d: f32[] -is_data", "relu(X=d)"],
    ],
)
def test_what_may_be(ops):
    verify(two(*ops))


def test_a_sub_block_may_write_first():
    verify(
        parse(
            """program seed=0
            block 0:
                var v: f32[2]
                conditional_block(sub_block=block 1)
                relu(X=v)
            block 1 (parent 0):
                v = fill()
            """
        )
    )


def test_a_gradient_block_sees_its_forward_block():
    verify(
        parse(
            """program seed=0
            block 0:
                while(sub_block=block 1)
                while_grad(sub_block=block 2)
            block 1 (parent 0):
                t: f32[2] = fill()
            block 2 (parent 0, forward 1):
                relu_grad(X=t, Out@GRAD=never@GRAD)
            """
        )
    )


def test_the_note_shows_ten_ops_either_side():
    desc = chain(40)
    ops = list(desc.blocks[0].ops)
    ops[20] = replace(ops[20], inputs=slots({"X": "nothing"}), loc="train.py:31")
    with pytest.raises(VerifyError, match=r"block 0, op 20 'relu' \(train.py:31\): ") as info:
        verify(edit.replace_ops(desc, 0, ops))
    lines = info.value.__notes__[0].splitlines()
    assert len(lines) == 21
    assert lines[10] == "--> 20: v21 = relu(X=nothing) {role=Forward}  # train.py:31"
    assert lines[0].startswith("    10: v11 = relu(X=v10)")


@dataclass
class Slot:
    name: str
    many: bool = False
    optional: bool = False


class Relu:
    inputs = (Slot("X"), Slot("Mask", optional=True), Slot("Xs", many=True))
    outputs = (Slot("Out"),)
    forward = grad = None
    reuse = ()

    def attr_type(self, name):
        return {
            "axis": "INT",
            "alpha": "FLOAT",
            "shape": "INTS",
            "op_role": "INT",
            "b": "BLOCK",
        }.get(name)


def lookup(kind):
    if kind != "relu":
        raise UnknownOpError(f"there is no op type {kind!r}")
    return Relu()


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ("y: f32[2] = gelu(X=x)", "'gelu': there is no op type 'gelu'"),
        ("y: f32[2] = relu(Y=x)", "there is no input slot 'Y'"),
        ("(Y=y: f32[2]) = relu(X=x)", "there is no output slot 'Y'"),
        ("y: f32[2] = relu(X=[x, w])", "input slot 'X' takes one variable, not 2"),
        ("y: f32[2] = relu(X=[])", "input slot 'X' is empty"),
        ("relu(X=x)", "output slot 'Out' is empty"),
        ("y: f32[2] = relu(X=x, axes=1)", "there is no attribute 'axes'"),
        ("y: f32[2] = relu(X=x, axis=1.0)", "attribute 'axis' is 1.0, which is not of type INT"),
        ("y: f32[2] = relu(X=x, axis=True)", "is True, which is not of type INT"),
        ("y: f32[2] = relu(X=x, shape=1)", "is not of type INTS"),
    ],
)
def test_definitions(op, text):
    with pytest.raises(VerifyError, match=text):
        verify(two(op), lookup)


def test_definitions_that_hold():
    good = "y: f32[2] = relu(X=x, Mask=[], Xs=[x, w], axis=1, alpha=1, shape=(1, 2L), b=block 1)"
    verify(edit.replace_ops(two(good), 1, ()), lookup)


def test_fits():
    assert fits("STRINGS", ())
    assert fits("BLOCKS", (BlockRef(1),))
    assert not fits("BOOLEAN", 1)
    assert fits("SOMETHING NEW", object())


def test_ten_thousand_ops():
    verify(chain(10_000))
    verify(small())
    assert isinstance(small().blocks[0].ops[0], OpDesc)
