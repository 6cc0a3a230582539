"""The description of a dataset's files as Paddle's protobuf message DataFeedDesc, and its text."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from ...errors import FluidValueError

# message -> field: (number, type or message, "required", "optional" or "repeated", default)
_MESSAGES: dict[str, dict[str, Any]] = {
    "Slot": {
        "name": (1, "string", "required", None),
        "type": (2, "string", "required", None),
        "is_dense": (3, "bool", "optional", "false"),
        "is_used": (4, "bool", "optional", "false"),
        "shape": (5, "int32", "repeated", None),
    },
    "MultiSlotDesc": {
        "slots": (1, "Slot", "repeated", None),
        "uid_slot": (2, "string", "optional", None),
    },
    "DataFeedDesc": {
        "name": (1, "string", "optional", None),
        "batch_size": (2, "int32", "optional", "32"),
        "multi_slot_desc": (3, "MultiSlotDesc", "optional", None),
        "pipe_command": (4, "string", "optional", None),
        "thread_num": (5, "int32", "optional", None),
        "rank_offset": (6, "string", "optional", None),
        "pv_batch_size": (7, "int32", "optional", "32"),
    },
}
_PACKAGE = "paddle.framework"


@cache
def _message() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="data_feed.proto", package=_PACKAGE, syntax="proto2"
    )
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, (number, kind, label, default) in fields.items():
            one = made.field.add(
                name=name, number=number, label=getattr(field, f"LABEL_{label.upper()}")
            )
            if kind in _MESSAGES:
                one.type, one.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                one.type = getattr(field, f"TYPE_{kind.upper()}")
            if default is not None:
                one.default_value = default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.DataFeedDesc"))


def new() -> Any:
    """A DataFeedDesc whose pipe_command is "cat"."""
    return _message()(pipe_command="cat")


def shown(message: Any) -> str:
    """Its text."""
    return text_format.MessageToString(message)


def read(text: str, path: str) -> Any:
    """The message of a text. Raises FluidValueError, which names file and line, for any other
    text.
    """
    message = new()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise FluidValueError(f"{path} is not the text of a DataFeedDesc: {error}") from None
    if not message.IsInitialized():
        raise FluidValueError(
            f"{path}: every slot of a DataFeedDesc has a name and a type:"
            f" {message.FindInitializationErrors()}"
        )
    return message


__all__ = ["new", "read", "shown"]
