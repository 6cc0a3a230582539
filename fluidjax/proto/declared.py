"""The declarations of op types as OpProto messages."""

from __future__ import annotations

from typing import Any

from ..ops.registry import OpDef
from . import framework_pb2 as pb


def op_proto(declared: OpDef) -> Any:
    """The OpProto of an op type: its slots, its attributes with their types, and its formula as the
    comment.
    """
    proto = pb.OpProto(type=declared.type, comment=declared.doc or declared.type)
    for slots, vars in ((declared.inputs, proto.inputs), (declared.outputs, proto.outputs)):
        for slot in slots:
            vars.add(
                name=slot.name,
                comment="",
                duplicable=slot.many,
                intermediate=slot.intermediate,
                dispensable=slot.optional,
            )
    kinds = pb.AttrType.DESCRIPTOR.values_by_name
    for attr in declared.attrs.values():
        if attr.type in kinds:
            proto.attrs.add(
                name=attr.name, type=kinds[attr.type].number, comment="", generated=False
            )
    return proto
