"""fluid.proto.framework_pb2: ProgramDesc and its parts as messages whose strings are str and whose
types are enums.

They are made of fluidjax's own descriptors of the wire format (ir/framework.proto, where strings
are bytes and enums numbers), so the bytes are the same:
``ProgramDesc.FromString(program.serialize_to_string())``.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

from ..base import dtypes
from ..ir import framework_pb2 as wire

_PACKAGE = "paddle.framework.proto"
_Field = descriptor_pb2.FieldDescriptorProto
_ENUMS = {
    "OpDesc.Attr.type": "AttrType",
    "VarType.type": "VarType.Type",
    "VarType.TensorDesc.data_type": "VarType.Type",
}
_KINDS = {"string": _Field.TYPE_STRING, "int32": _Field.TYPE_INT32, "bool": _Field.TYPE_BOOL}
_LABELS = {
    "required": _Field.LABEL_REQUIRED,
    "optional": _Field.LABEL_OPTIONAL,
    "repeated": _Field.LABEL_REPEATED,
}
# Fields that are not in the wire format's descriptors, because they do not affect what a program
# computes: readers, tuples, notes on versions, op protos.
_MORE = {
    "VarType.LoDTensorArrayDesc": "required VarType.TensorDesc tensor 1; optional int32 lod_level 2",
    "VarType.ReaderDesc": "repeated VarType.LoDTensorDesc lod_tensor 1",
    "VarType.Tuple": "repeated enum:VarType.Type element_type 1",
    "VarType": "optional VarType.ReaderDesc reader 5; optional VarType.Tuple tuple 7",
    "CompatibleInfo": "required string version 1; required enum:CompatibleInfo.Type type 2",
    "OpCompatibleMap.OpCompatiblePair": "required string op_name 1; required CompatibleInfo compatible_info 2",
    "OpCompatibleMap": "repeated OpCompatibleMap.OpCompatiblePair pair 1; optional string default_required_version 2",
    "ProgramDesc": "optional OpCompatibleMap op_compatible_map 3",
    "OpProto.Var": "required string name 1; required string comment 2; optional bool duplicable 3; optional bool intermediate 4; "
    "optional bool dispensable 5",
    "OpProto.Attr": "required string name 1; required enum:AttrType type 2; required string comment 3; optional bool generated 4",
    "OpProto": "required string type 1; repeated OpProto.Var inputs 2; repeated OpProto.Var outputs 3; "
    "repeated OpProto.Attr attrs 4; required string comment 5",
}
_COMPATIBLE = ("COMPATIBLE", "DEFINITELY_NOT", "POSSIBLE", "BUG_FIX", "PRECISION_CHANGE")


def _schema() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    wire.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        _retyped(message, message.name)
    file.package, file.name = _PACKAGE, "fluidjax/proto/framework.proto"
    for path, fields in _MORE.items():
        message = _message(file, path)
        for field in fields.split("; "):
            _add(message, *field.split())
    _add_enum(_message(file, "VarType"), {v.name: int(v) for v in dtypes.VarType})
    _add_enum(_message(file, "CompatibleInfo"), {name: i for i, name in enumerate(_COMPATIBLE)})
    return file


def _retyped(message: Any, path: str) -> None:
    """Bytes become strings, numbers of types enums, and references those of the new package."""
    for field in message.field:
        if field.type == _Field.TYPE_BYTES:
            field.type = _Field.TYPE_STRING
        if enum := _ENUMS.get(f"{path}.{field.name}"):
            field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{enum}"
        if field.type_name:
            field.type_name = field.type_name.replace(
                f".{wire.DESCRIPTOR.package}.", f".{_PACKAGE}."
            )
        if path == "VarType" and field.name == "tensor_array":
            field.type_name = f".{_PACKAGE}.VarType.LoDTensorArrayDesc"
    for inner in message.nested_type:
        _retyped(inner, f"{path}.{inner.name}")


def _message(file: Any, path: str) -> Any:
    """The message of a dotted name, created if missing."""
    names = path.split(".")
    held = file.message_type
    for name in names:
        found = next((m for m in held if m.name == name), None) or held.add(name=name)
        held = found.nested_type
    return found


def _add(message: Any, label: str, kind: str, name: str, number: str) -> None:
    field = message.field.add(name=name, number=int(number), label=_LABELS[label])
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        enum = kind.startswith("enum:")
        field.type = _Field.TYPE_ENUM if enum else _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind.removeprefix('enum:')}"


def _add_enum(message: Any, values: dict[str, int]) -> None:
    enum = message.enum_type.add(name="Type")
    for name, number in values.items():
        enum.value.add(name=name, number=number)


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_schema())
DESCRIPTOR = _pool.FindFileByName("fluidjax/proto/framework.proto")


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name[name])


Version, OpDesc, OpProto, VarType, VarDesc, BlockDesc = map(
    _class, ("Version", "OpDesc", "OpProto", "VarType", "VarDesc", "BlockDesc")
)
CompatibleInfo, OpCompatibleMap, ProgramDesc = map(
    _class, ("CompatibleInfo", "OpCompatibleMap", "ProgramDesc")
)
AttrType = enum_type_wrapper.EnumTypeWrapper(DESCRIPTOR.enum_types_by_name["AttrType"])
INT, FLOAT, STRING, INTS, FLOATS, STRINGS, BOOLEAN, BOOLEANS, BLOCK, LONG, BLOCKS, LONGS = range(12)
