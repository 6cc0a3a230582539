"""Paddle's bytes: they read back, real files read and write unchanged, and malformed bytes raise
ParseError only.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from fluidjax.errors import FluidValueError, ParseError, VerifyError
from fluidjax.ir import edit
from fluidjax.ir import framework_pb2 as wire
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
from fluidjax.ir.proto import from_bytes, to_bytes
from fluidjax.ir.text import parse, to_text
from fluidjax.ir.verify import verify
from tests.examples import examples

from .strategies import exact, floats32, programs
from .test_text import chain, small

DATA = Path(__file__).parents[1] / "data"
# Baidu LAC's word segmenter as Paddle 1.6 saved it, without its call stacks
MODEL = DATA / "models/lac_seg/model/__model__"
PADDLE = os.environ.get("FLUIDJAX_PADDLE_PYTHON")


def held(desc: ProgramDesc) -> ProgramDesc:
    """What the format can hold of `desc`."""
    read = {n for block in desc.blocks for op in block.ops for n in op.reads}
    written = {n for block in desc.blocks for op in block.ops for n in op.writes}

    def variable(var: VarDesc, root: bool) -> VarDesc:
        shape, dtype, lod = var.shape, var.dtype, var.lod_level
        if var.kind not in ("LOD_TENSOR", "SELECTED_ROWS", "LOD_TENSOR_ARRAY"):
            shape, dtype, lod = None, None, 0
        elif dtype is not None or shape is not None or lod:
            shape, dtype = shape or (), dtype or "bool"
        tensor = (
            root and var.kind == "LOD_TENSOR" and not var.persistable and "@GRAD" not in var.name
        )
        data = var.need_check_feed or (tensor and var.name in read - written)
        lod = 0 if var.kind == "SELECTED_ROWS" else lod
        return replace(var, shape=shape, dtype=dtype, lod_level=lod, is_data=data, trainable=True)

    blocks = tuple(
        replace(block, vars=FrozenMap({n: variable(v, idx == 0) for n, v in block.vars.items()}))
        for idx, block in enumerate(desc.blocks)
    )
    return edit.renumber(replace(desc, blocks=blocks, seed=0))


@examples(150)
@given(programs(number=floats32))
def test_round_trip(desc):
    data = to_bytes(desc)
    back = from_bytes(data)
    assert exact(back) == exact(held(desc))
    assert to_bytes(back) == data


def test_real_model():
    desc = from_bytes(MODEL.read_bytes())
    verify(desc)
    block = desc.blocks[0]
    assert [op.type for op in block.ops[:5]] == [
        "feed",
        "lookup_table",
        "mul",
        "elementwise_add",
        "gru",
    ]
    assert block.vars["words"] == VarDesc("words", (-1, 1), "int64", lod_level=1)
    assert type(block.ops[1].attrs["padding_idx"]) is Long
    assert block.vars["feed"].kind == "FEED_MINIBATCH"
    assert parse(to_text(desc)) == desc


def test_real_model_is_written_as_it_was():
    """Given the types of its empty lists, the fields written equal those that Paddle wrote,
    defaults aside.
    """
    original = wire.ProgramDesc.FromString(MODEL.read_bytes())
    for var in original.blocks[0].vars:
        if not var.persistable:
            var.ClearField("persistable")
        if not var.type.lod_tensor.lod_level:
            var.type.lod_tensor.ClearField("lod_level")
    types = {
        (op.type.decode(), attr.name.decode()): wire.AttrType.Name(attr.type)
        for block in original.blocks for op in block.ops for attr in op.attrs
    }  # fmt: skip
    data = to_bytes(from_bytes(MODEL.read_bytes()), lambda kind, name: types.get((kind, name)))
    again = wire.ProgramDesc.FromString(data)
    for ours, paddles in zip(again.blocks[0].vars, original.blocks[0].vars, strict=True):
        if ours.type.HasField("lod_tensor"):
            assert ours == paddles
    assert again.blocks[0].ops == original.blocks[0].ops


def one_op(**attrs) -> ProgramDesc:
    return ProgramDesc(
        (BlockDesc(ops=(OpDesc(0, "scale", slots({}), slots({}), FrozenMap(attrs)),)),)
    )


def attr_of(desc: ProgramDesc, kinds=None):
    return wire.ProgramDesc.FromString(to_bytes(desc, kinds)).blocks[0].ops[0].attrs[0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, "INT"), (True, "BOOLEAN"), (Long(1), "LONG"), (2**40, "LONG"), (1.5, "FLOAT"), ("a", "STRING"), ((), "INTS"),
     ((1, 2), "INTS"), ((1, Long(2)), "LONGS"), ((1, 2.5), "FLOATS"), ((True,), "BOOLEANS"), (("a",), "STRINGS")],
)  # fmt: skip
def test_types_that_values_have(value, kind):
    assert wire.AttrType.Name(attr_of(one_op(a=value)).type) == kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [((), "STRINGS"), ((), "LONGS"), (1, "LONG"), (1, "FLOAT"), ((1, 2), "FLOATS"), (1, "BOOLEAN")],
)
def test_types_that_the_registry_says(value, kind):
    assert wire.AttrType.Name(attr_of(one_op(a=value), lambda *_: kind).type) == kind


@pytest.mark.parametrize("value", [None, ((1,),), (1, "a"), 1e300, 2**63, "\ud800", object()])
def test_what_does_not_fit_is_refused_by_name(value):
    with pytest.raises(
        FluidValueError, match=r"attribute 'a' of op 'scale' does not fit Paddle's format"
    ):
        to_bytes(one_op(a=value))


@pytest.mark.parametrize(
    ("value", "kind"), [("a", "INT"), (1, "INTS"), (1.5, "LONG"), (2**31, "INT"), (2, "BOOLEAN")]
)
def test_values_that_contradict_the_registry(value, kind):
    with pytest.raises(FluidValueError, match="attribute 'a'"):
        to_bytes(one_op(a=value), lambda *_: kind)


def spoilt(**changes):
    """Bytes of the small program with one thing changed; None puts -6 first into a list."""
    message = wire.ProgramDesc.FromString(to_bytes(small()))
    for path, value in changes.items():
        at = message
        *steps, last = path.split("__")
        for step in steps:
            at = at[int(step)] if step.isdigit() else getattr(at, step)
        if value is None:
            getattr(at, last)[0] = -6
        else:
            setattr(at, last, value)
    return message.SerializePartialToString()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"blocks__1__parent_idx": 1}, "block 1: parent_idx is 1"),
        ({"blocks__0__parent_idx": 0}, "block 0: parent_idx is 0"),
        ({"blocks__1__idx": 5}, "block 1: idx is 5"),
        ({"blocks__1__forward_block_idx": 2}, "forward_block_idx is 2"),
        ({"blocks__0__vars__0__type__type": 5}, "type.type is 5"),
        ({"blocks__0__vars__0__type__lod_tensor__tensor__data_type": 99}, "data_type: 99"),
        ({"blocks__0__vars__0__name": b"x"}, "'x' is there twice"),
        (
            {"blocks__0__ops__2__attrs__0__block_idx": 2},
            "attribute 'sub_block': it points at block 2 of 2",
        ),
        ({"blocks__0__ops__0__attrs__0__type": 99}, "type is 99"),
        ({"blocks__0__ops__0__attrs__0__type": 13}, "VAR of a newer Paddle"),
        ({"blocks__0__ops__0__attrs__0__type": 1}, "it has no field 'f'"),
        ({"blocks__0__ops__0__inputs__0__parameter": b"Y"}, "slot 'Y' is there twice"),
        ({"version__version": -1}, "version"),
    ],
)
def test_malformed_programs_name_the_field(change, text):
    with pytest.raises(ParseError, match=text):
        from_bytes(spoilt(**change))


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x0a", b"\x0b" * 10_000, b"\x0a\x00", b"\xff" * 100, b"program seed=0"]
)
def test_bytes_that_are_no_program(data):
    with pytest.raises(ParseError):
        from_bytes(data)


def test_fuzz_raises_only_parse_errors():
    rng = random.Random(0)
    seeds = [to_bytes(small()), to_bytes(chain(3)), MODEL.read_bytes()[:2500]]
    accepted = 0
    for i in range(10_000):
        data = bytearray(seeds[i % 3])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randint(1, 9)]
                case 2:
                    data[at:at] = rng.randbytes(rng.randint(1, 9))
                case 3:
                    data[at] ^= 1 << rng.randrange(8)
        try:
            desc = from_bytes(bytes(data))
            accepted += 1
            assert exact(from_bytes(to_bytes(desc)).blocks[0].ops) is not None
            verify(desc)
        except (ParseError, VerifyError):
            continue
    assert accepted > 500


def test_other_encodings_survive():
    name = "变量".encode("gbk").decode("utf-8", "surrogateescape")
    desc = ProgramDesc((BlockDesc(FrozenMap({name: VarDesc(name)})),))
    verify(desc)
    assert from_bytes(to_bytes(desc)) == desc
    assert "变量".encode("gbk") in to_bytes(desc)


def test_block_lists_and_forward_blocks():
    ops = (
        OpDesc(0, "listen_and_serv", attrs=FrozenMap(optimize_blocks=(BlockRef(1), BlockRef(2)))),
    )
    desc = ProgramDesc((BlockDesc(ops=ops), BlockDesc(parent=0), BlockDesc(parent=0, forward=1)))
    assert exact(from_bytes(to_bytes(desc))) == exact(desc)


@pytest.mark.skipif(not PADDLE, reason="FLUIDJAX_PADDLE_PYTHON names no Python with paddle 1.8.5")
def test_paddle_loads_what_we_write(tmp_path):
    """Paddle 1.8.5 loads our bytes and serialises the same program, unknown fields and all."""
    programs = {"model": from_bytes(MODEL.read_bytes()), "chain": chain(50), "loop": loop()}
    for name, desc in programs.items():
        (tmp_path / name).write_bytes(to_bytes(desc))
    paths = [str(tmp_path / name) for name in programs]
    script = str(Path(__file__).with_name("paddle_check.py"))
    run = subprocess.run(
        [str(PADDLE), script, *paths], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    for path, desc, line in zip(paths, programs.values(), run.stdout.splitlines(), strict=True):
        assert unordered(from_bytes(Path(path + ".again").read_bytes())) == unordered(
            from_bytes(Path(path).read_bytes())
        )
        for block, seen in zip(desc.blocks, json.loads(line), strict=True):
            assert [op.type for op in block.ops] == [op[0] for op in seen["ops"]]
            assert block.parent == seen["parent"]
            for op, (_, inputs, outputs, attrs) in zip(block.ops, seen["ops"], strict=True):
                assert {s: list(n) for s, n in op.inputs.items()} == inputs
                assert {s: list(n) for s, n in op.outputs.items()} == outputs
                assert set(op.attrs) <= set(attrs)
                for name, value in op.attrs.items():
                    expected = list(value) if isinstance(value, tuple) else value
                    assert attrs[name][1] == (None if isinstance(value, BlockRef) else expected)


def unordered(desc: ProgramDesc) -> list[object]:
    """Paddle keeps variables, slots and attributes in hash order."""
    return [(exact(dict(b.vars)), exact(b.ops), b.parent, b.forward) for b in desc.blocks]


def loop() -> ProgramDesc:
    """A while op with its block, and a parameter, in types that Paddle checks."""
    names = {"i": "int64", "c": "bool", "w": "float32"}
    vars = {
        n: VarDesc(n, (1,), dtype, persistable=True, is_parameter=n == "w")
        for n, dtype in names.items()
    }
    vars["s"] = VarDesc("s", kind="STEP_SCOPES", stop_gradient=True)
    body = OpDesc(
        1,
        "increment",
        slots({"X": "i"}),
        slots({"Out": "i"}),
        FrozenMap(step=0.10000000149011612, op_role=0),
    )
    own = OpDesc(
        0, "while", slots({"X": ["i", "w"], "Condition": "c"}), slots({"Out": "i", "StepScopes": "s"}),
        FrozenMap(sub_block=BlockRef(1), is_test=False, op_role=0, op_role_var=(), skip_eager_deletion_vars=("i",)),
    )  # fmt: skip
    return ProgramDesc((BlockDesc(FrozenMap(vars), (own,)), BlockDesc(ops=(body,), parent=0)))


def test_products_of_unknown_dimensions_are_unknown():
    """Paddle's shape rules multiply -1 like any number, so that real files hold dimensions such as
    -6.
    """
    data = spoilt(blocks__0__vars__0__type__lod_tensor__tensor__dims=None)
    assert from_bytes(data).blocks[0].vars["w"].shape == (-1, 1)
