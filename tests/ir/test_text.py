"""The printed form: it reads back, it looks as it should, and bad text is refused by line."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given

from fluidjax.errors import ParseError, VerifyError
from fluidjax.ir import edit
from fluidjax.ir.desc import (
    BlockDesc,
    BlockRef,
    FrozenMap,
    Long,
    OpDesc,
    ProgramDesc,
    VarDesc,
    slots,
)
from fluidjax.ir.jsonio import from_json, to_json
from fluidjax.ir.text import op_text, paint, parse, styled, summary, to_text
from fluidjax.ir.verify import verify
from tests.examples import examples

from .strategies import exact, programs

GOLDEN = Path(__file__).parent / "golden"


def small() -> ProgramDesc:
    """A little of everything: parameters, a sub-block, roles, hints that are shared and one that is
    not.
    """
    f32 = {"dtype": "float32"}
    vars = [
        VarDesc("w", (13, 1), persistable=True, is_parameter=True, **f32),
        VarDesc("frozen", (1,), persistable=True, is_parameter=True, trainable=False, **f32),
        VarDesc("lr", (1,), persistable=True, stop_gradient=True, **f32),
        VarDesc("x", (-1, 13), is_data=True, stop_gradient=True, need_check_feed=True, **f32),
        VarDesc("ids", (-1, 1), "int64", lod_level=1, is_data=True, stop_gradient=True),
        VarDesc("spare"),
        VarDesc("fc.tmp_0", (-1, 1), **f32),
        VarDesc("loop cond", (1,), "bool", stop_gradient=True),
        VarDesc("scopes", kind="STEP_SCOPES"),
        VarDesc("w@GRAD", (13, 1), kind="SELECTED_ROWS", **f32),
    ]
    hints = {"op_role": 0, "op_namescope": "/"}
    mul = {"x_num_col_dims": 1, "scale_y": (1.0,), "use_mkldnn": False}
    ops = (
        OpDesc(0, "mul", slots({"X": "x", "Y": "w"}), slots({"Out": "fc.tmp_0"}), FrozenMap(mul, **hints)),
        OpDesc(1, "less", slots({"X": "fc.tmp_0"}), slots({"Out": "loop cond"}),
               FrozenMap(eps=0.10000000149011612, **hints)),
        OpDesc(2, "while", slots({"X": ["w", "x"], "Cond": "loop cond"}), slots({"StepScopes": "scopes", "Out": []}),
               FrozenMap(sub_block=BlockRef(1), **hints)),
        OpDesc(7, "mul_grad", slots({"Out@GRAD": "@EMPTY@"}), slots({"Y@GRAD": "w@GRAD"}),
               FrozenMap(mul, op_role=1, op_namescope="/", op_role_var=("w", "w@GRAD"))),
        OpDesc(8, "send", slots({"X": "w@GRAD"}), FrozenMap(),
               FrozenMap(to="a:1", rows=(Long(5),), none=(), op_role=4, op_namescope="/")),
    )  # fmt: skip
    inner = BlockDesc(
        FrozenMap(t=VarDesc("t", (), "float64", persistable=False)),
        (
            OpDesc(
                9,
                "relu",
                slots({"X": "x"}),
                slots({"Out": "t"}),
                FrozenMap(hints, op_callstack=("a.py:3", "f()")),
            ),
        ),
        parent=0,
    )
    return ProgramDesc((BlockDesc(FrozenMap({v.name: v for v in vars}), ops), inner), seed=7)


def test_small_program_prints_as_recorded():
    assert to_text(small()) == (GOLDEN / "small.txt").read_text(encoding="utf-8")
    verify(small())


def test_small_program_reads_back():
    desc = parse((GOLDEN / "small.txt").read_text(encoding="utf-8"))
    assert exact(desc) == exact(small())
    assert hash(desc) == hash(small())


@examples(150)
@given(programs())
def test_round_trip(desc):
    verify(desc)
    text = to_text(desc)
    back = parse(text)
    assert exact(back) == exact(desc)
    assert back == desc
    assert to_text(parse(to_text(desc, hints={}))) == to_text(back)
    assert "".join(part for _, part in styled(text)) == text  # colours change nothing but colour
    assert to_text(desc, color=True) == paint(text)
    json_round_trip(desc)  # here, since making the programs takes longer than both


def json_round_trip(desc):
    text = to_json(desc)
    assert exact(from_json(text)) == exact(desc)
    assert from_json(text) == desc
    assert to_json(from_json(text)) == text
    assert exact(from_json(to_json(desc, indent=1).encode())) == exact(desc)


def test_hand_written_text_with_comments():
    desc = parse("""program seed=3   # a comment
        block 0:
            data x: f32[-1, 2] lod 1 -need_check_feed
            # the rest
            y: f32[-1, 2] +stop_gradient = relu(X=x, s="# no comment")
            (Out=[y, y]) = `odd op`(X=[], k=(1, 2.5,), n=nan, l=5L) {uid=9, role=Backward|Loss}
        """)
    block = desc.blocks[0]
    assert block.vars["x"] == VarDesc(
        "x", (-1, 2), "float32", lod_level=1, is_data=True, stop_gradient=True
    )
    assert [op.uid for op in block.ops] == [0, 9]
    assert block.ops[0].attrs["s"] == "# no comment"
    assert block.ops[1].attrs == FrozenMap(k=(1, 2.5), n=math.nan, l=5, op_role=257)
    assert block.ops[1].inputs == FrozenMap(X=())


@pytest.mark.parametrize(
    ("body", "line", "expected"),
    [
        ("x: f32[2 = relu(X=y)", 3, "']'"),
        ("x: f33[2] = relu(X=y)", 3, "did you mean 'f32'"),
        ("x = relu(X=y", 3, "')'"),
        ("x = relu(X=y) {uid=a}", 3, "a uid"),
        ("x = relu(X=y) {-use_cudnn}", 3, "that the hints give"),
        ("x = relu(X=y, X=z)", 3, "slot 'X' once only"),
        ("x = relu(a=1, a=2)", 3, "attribute 'a' once only"),
        ("x = relu(a=oops", 3, "')'"),
        ("x = relu(a=<object>)", 3, "a value"),
        ('x = relu(a="\\q")', 3, "JSON's escapes"),
        ("data x: f32[2]\ndata x: f32[2]", 4, "a new name"),
        ("data x: f32[2] +frozen", 3, "one of persistable"),
        ("block 2:", 3, "block 1"),
        ("x = relu() more", 3, "the end of the line"),
        ("callstacks:\nblock 0 op 0: ()", 4, "an op that is there"),
        ("x = relu(a=" + "(" * 100, 3, "at most 16"),
        ("x = relu(a=" + "9" * 5000 + ")", 3, "fewer digits"),
    ],
)  # fmt: skip
def test_errors_name_the_line_and_what_was_expected(body, line, expected):
    with pytest.raises(ParseError, match=f"line {line}: ") as info:
        parse("program seed=0\nblock 0:\n" + body)
    assert expected in str(info.value)
    assert len(str(info.value)) < 600


@pytest.mark.parametrize(
    "text", ["", "\n\n", "block 0:", "program seed=x", "program seed=0", "program seed=0\nnonsense"]
)
def test_text_that_holds_no_program(text):
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.slow
def test_fuzz_raises_only_parse_errors():
    rng = random.Random(0)
    seeds = [to_text(small()), to_text(edit.renumber(small()), hints={})]
    pieces = [*'()[]{}"`=,: \n-é\x00', "block 1", "nan", "5L", "\\u"]
    accepted = 0
    for i in range(5000):
        text = list(seeds[i % 2])
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            match rng.randrange(4):
                case 0:
                    text[at] = rng.choice(pieces)
                case 1:
                    del text[at : at + rng.randint(1, 8)]
                case 2:
                    text.insert(at, rng.choice(pieces))
                case 3:
                    text[at:at] = text[
                        (start := rng.randrange(len(text))) : start + rng.randint(1, 40)
                    ]
        try:
            desc = parse("".join(text))
            accepted += 1
            assert exact(parse(to_text(desc))) == exact(desc)
            verify(desc)
        except (ParseError, VerifyError):
            continue
    assert 100 < accepted < 4900


@pytest.mark.once
def test_ten_thousand_ops_read_back():
    desc = chain(10_000)
    assert parse(to_text(desc)) == desc


def chain(length: int) -> ProgramDesc:
    """A program of `length` ops in a row."""
    vars = {f"v{i}": VarDesc(f"v{i}", (-1, 8), "float32") for i in range(1, length + 1)}
    vars["v0"] = VarDesc("v0", (-1, 8), "float32", is_data=True)
    names = [(f"v{i}", f"v{i + 1}") for i in range(length)]
    role = FrozenMap(op_role=0)
    ops = (
        OpDesc(i, "relu", slots({"X": x}), slots({"Out": y}), role)
        for i, (x, y) in enumerate(names)
    )
    return ProgramDesc((BlockDesc(FrozenMap(vars), tuple(ops)),))


def test_op_text_is_complete_but_for_uid_and_call_stack():
    desc = small()
    send = op_text(desc.blocks[0].ops[4])
    assert send == 'send(X=w@GRAD, to="a:1", rows=(5L,), none=()) {op_namescope="/", role=RPC}'
    assert op_text(desc.blocks[0].ops[0], desc.blocks[0].vars).startswith(
        "fc.tmp_0: f32[-1, 1] = mul(X=x, Y=w, "
    )


def test_summary():
    assert summary(small()).splitlines() == [
        "2 blocks, 6 ops, 11 variables, 2 parameters (14 elements), seed 7",
        "mul, less, while, mul_grad, send, relu",
    ]
