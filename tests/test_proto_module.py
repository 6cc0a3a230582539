"""fluid.proto.framework_pb2: fields, numbers, labels, enums and texts of Paddle 1.8.5's messages."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import fluidjax as fluid
from fluidjax.proto import framework_pb2

from .tools.record_proto import module

RECORDED = json.loads(
    gzip.decompress((Path(__file__).parent / "data" / "proto_1.8.5.json.gz").read_bytes())
)


def has(got, want):
    """Every field, message and enum value of Paddle's; later ones may stand beside them."""
    if "fields" in want:
        assert [f for f in want["fields"] if f not in got["fields"]] == []
        for part in ("nested", "enums"):
            for name, inner in want[part].items():
                has(got[part][name], inner)
    else:
        assert want.items() <= got.items()


def test_messages():
    got = module(framework_pb2)
    for part in ("messages", "enums"):
        for name, want in RECORDED[part].items():
            has(got[part][name], want)
    assert {n: getattr(framework_pb2, n) for n in RECORDED["enums"]["AttrType"]} == RECORDED[
        "enums"
    ]["AttrType"]
    assert framework_pb2.VarType.FP32 == 5 and framework_pb2.AttrType.Name(2) == "STRING"


def test_a_program():
    data = bytes.fromhex(RECORDED["program"])
    message = framework_pb2.ProgramDesc.FromString(data)
    whole = re.compile(r"\.0$", re.M)  # how versions of protobuf print whole numbers
    assert whole.sub("", str(message)) == whole.sub("", RECORDED["text"])
    assert message.SerializeToString() == data
    program = fluid.Program.parse_from_string(data)
    again = framework_pb2.ProgramDesc.FromString(program.serialize_to_string())
    assert [op.type for op in again.blocks[0].ops] == [op.type for op in program.global_block().ops]
    again.blocks[0].vars[0].name = "renamed"
    assert (
        "renamed" in fluid.Program.parse_from_string(again.SerializeToString()).global_block().vars
    )
