"""How files are spoiled: bytes, fields of a program in protobuf, values of JSON, words of a text."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

from fluidjax.ir import framework_pb2

wire: Any = framework_pb2
NUMBERS = (
    -1,
    0,
    1,
    2,
    3,
    7,
    64,
    65,
    255,
    1000,
    2**15,
    2**16,
    2**24,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**53,
    2**62,
    2**63 - 1,
    -(2**31),
    -(2**63),
)
FLOATS = (0.0, -0.0, 1e-45, 1.0, -1.0, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
STRINGS = (
    "",
    "x",
    "@EMPTY@",
    "../../x",
    "/",
    ".",
    "a\0b",
    "x" * 5000,
    "\udc80",
    "float32",
    "NCHW",
    "x@GRAD",
    "\n",
)
_FORMS = {"<q": 2**63, "<i": 2**31, ">i": 2**31, "<h": 2**15}
_PACKED = [
    struct.pack(form, n) for form, limit in _FORMS.items() for n in NUMBERS if -limit <= n < limit
]


def of_bytes(data: bytes, draw: random.Random) -> bytes:
    """One to four faults: flipped bits, cut off, huge numbers, pieces repeated, moved or taken out."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = (
            draw.randrange(min(len(out), 200) + 1)
            if draw.random() < 0.4
            else draw.randrange(len(out) + 1)
        )
        kind = draw.randrange(8)
        if kind == 0 and draw.random() < 0.5:
            out = out[:at]
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 2 and at < len(out):
            out[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif kind == 3:
            new = draw.choice(_PACKED)
            out[at : at + len(new)] = new
        elif kind == 4:
            out[at:at] = draw.randbytes(draw.randint(1, 12))
        elif kind == 5:
            out[at:at] = out[at : at + draw.randint(1, 40)]
        elif kind == 6:
            out[at:at] = draw.choice((b"\xff" * 9, b"\x00" * 64, b"\x80" * 12 + b"\x01"))
        else:
            del out[at : at + draw.randint(1, 40)]
    return bytes(out)


def of_program(data: bytes, draw: random.Random) -> bytes:
    """One to three changes of a ProgramDesc that leave it a message: what the format allows and no
    program has.
    """
    if draw.random() < 0.15:
        return of_bytes(data, draw)
    message = wire.ProgramDesc()
    message.ParseFromString(data)
    for _ in range(draw.randint(1, 3)):
        draw.choice(_CHANGES)(message, draw)
    try:
        return bytes(message.SerializePartialToString())
    except ValueError:
        return of_bytes(data, draw)


def _block(message: Any, draw: random.Random) -> Any:
    return draw.choice(message.blocks) if message.blocks else message.blocks.add()


def _op(message: Any, draw: random.Random) -> Any:
    ops = [op for block in message.blocks for op in block.ops]
    return draw.choice(ops) if ops else None


def _attribute(message: Any, draw: random.Random) -> None:
    """An attribute's value: another number, an empty or longer list, another type."""
    op = _op(message, draw)
    if op is None or not op.attrs:
        return
    attr = draw.choice(op.attrs)
    if draw.random() < 0.1:
        attr.type = draw.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15])
        return
    _number_field(attr, draw)


def _number_field(message: Any, draw: random.Random) -> None:
    """Some field of a message, drawn: numbers and strings by such as break things, lists made empty
    or long.
    """
    fields = [f for f, _ in message.ListFields()]
    if not fields:
        return
    field = draw.choice(fields)
    name, value = field.name, getattr(message, field.name)
    try:
        if field.message_type is not None:
            several = hasattr(value, "add")
            if several and draw.random() < 0.3:
                del value[draw.randrange(len(value)) :]
            elif several and draw.random() < 0.3:
                value.add().CopyFrom(draw.choice(list(value)))
            else:
                _number_field(draw.choice(list(value)) if several else value, draw)
        elif hasattr(value, "append"):
            kind = draw.randrange(4)
            if kind == 0:
                del value[:]
            elif kind == 1:
                value.append(_scalar(field, draw))
            elif len(value):
                value[draw.randrange(len(value))] = _scalar(field, draw)
        else:
            setattr(message, name, _scalar(field, draw))
    except (ValueError, TypeError):  # a number that the field does not hold
        return


def _scalar(field: Any, draw: random.Random) -> Any:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_STRING,):
        text = draw.choice(STRINGS)
        return (
            text.encode("utf-8", "surrogateescape")
            if field.type == field.TYPE_BYTES
            else text.replace("\udc80", "\ufffd")
        )
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return draw.choice(FLOATS)
    if kind == field.CPPTYPE_BOOL:
        return draw.random() < 0.5
    return draw.choice(
        NUMBERS[:8] if kind == field.CPPTYPE_ENUM or draw.random() < 0.5 else NUMBERS
    )


def _anything(message: Any, draw: random.Random) -> None:
    _number_field(_block(message, draw), draw)


def _tree(message: Any, draw: random.Random) -> None:
    """Which block is whose: parents, forward blocks, the blocks of ops."""
    block = _block(message, draw)
    kind = draw.randrange(4)
    some = draw.choice([-2, -1, 0, 1, 2, len(message.blocks) - 1, len(message.blocks), 2**31 - 1])
    if kind == 0:
        block.parent_idx = some
    elif kind == 1:
        block.forward_block_idx = some
    elif kind == 2:
        block.idx = some
    else:
        attrs = [a for b in message.blocks for op in b.ops for a in op.attrs if a.type == 8]
        if attrs:
            draw.choice(attrs).block_idx = max(some, 0)


def _slots(message: Any, draw: random.Random) -> None:
    """Names in slots: none, another variable's, twice, one that is declared nowhere."""
    op = _op(message, draw)
    held = [] if op is None else [*op.inputs, *op.outputs]
    names = [v.name for b in message.blocks for v in b.vars]
    if not held or not names:
        return
    slot = draw.choice(held)
    kind = draw.randrange(5)
    if kind == 0:
        del slot.arguments[:]
    elif kind == 1:
        slot.arguments.append(draw.choice(names))
    elif kind == 2 and len(slot.arguments):
        slot.arguments[draw.randrange(len(slot.arguments))] = draw.choice(names)
    elif kind == 3 and len(slot.arguments):
        slot.arguments[0] = draw.choice(STRINGS).encode("utf-8", "surrogateescape")
    else:
        slot.parameter = draw.choice([s.parameter for s in held] + [b"X", b"Y", b"Out", b"Nothing"])


def _variable(message: Any, draw: random.Random) -> None:
    """A variable's shape, dtype, kind, LoD, persistence."""
    block = _block(message, draw)
    if not block.vars:
        return
    var = draw.choice(block.vars)
    kind = draw.randrange(6)
    tensor = var.type.lod_tensor.tensor
    try:
        if kind == 0 and len(tensor.dims):
            tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(NUMBERS)
        elif kind == 1:
            tensor.dims.extend([draw.choice(NUMBERS[:6])] * draw.choice([1, 2, 70]))
        elif kind == 2:
            tensor.data_type = draw.choice([0, 1, 2, 3, 4, 5, 6, 7, 19, 20, 21, 22, 23, 24])
        elif kind == 3:
            var.type.type = draw.choice([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18])
        elif kind == 4:
            var.persistable = not var.persistable
        else:
            var.type.lod_tensor.lod_level = draw.choice(NUMBERS[:6])
    except (ValueError, TypeError):
        return


_TYPES = (
    b"while conditional_block feed fetch recurrent nothing py_func listen_and_serv print"
    b" select_input pool2d".split()
)


def _ops(message: Any, draw: random.Random) -> None:
    """Ops: one of another type, one twice, one gone, two changed places."""
    block = _block(message, draw)
    if not block.ops:
        return
    op, other = draw.choice(block.ops), _op(message, draw)
    kind = draw.randrange(4)
    if kind == 0:
        op.type = draw.choice([other.type, *_TYPES])
    elif kind == 1:
        block.ops.add().CopyFrom(other)
    elif kind == 2:
        del block.ops[draw.randrange(len(block.ops))]
    else:
        op.CopyFrom(other)


_CHANGES: list[Callable[[Any, random.Random], None]] = [
    *[_attribute] * 3,
    _anything,
    _tree,
    *[_slots] * 2,
    *[_variable] * 2,
    _ops,
]


def of_json(data: bytes, draw: random.Random) -> bytes:
    """One to three values of a JSON text changed, or its bytes."""
    if draw.random() < 0.25:
        return of_bytes(data, draw)
    root = json.loads(data)
    for _ in range(draw.randint(1, 3)):
        places = list(_places(root))
        if places:
            holder, key = draw.choice(places)
            _changed(holder, key, draw)
    return json.dumps(root).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Any:
    stack = [value]
    while stack:
        holder = stack.pop()
        keys = (
            list(holder)
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        for key in keys:
            yield holder, key
            stack.append(holder[key])


def _changed(holder: Any, key: Any, draw: random.Random) -> None:
    kind = draw.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[key])
    elif kind == 2:
        holder[key] = [holder[key]] if draw.random() < 0.5 else {"long": str(draw.choice(NUMBERS))}
    elif kind == 3 and isinstance(holder, dict):
        holder[draw.choice(STRINGS)] = holder.pop(key)
    else:
        holder[key] = _other(holder[key], draw)


def _other(old: Any, draw: random.Random) -> Any:
    if isinstance(old, float | str) and draw.random() < 0.7:
        return draw.choice(FLOATS) if isinstance(old, float) else draw.choice(STRINGS)
    return draw.choice(
        NUMBERS[:8] if draw.random() < 0.5 else [*NUMBERS, None, True, "x", [], {}, 1e999]
    )


_DIGITS = ["-1", "0", "1", "2", "65", "9999999999", "99999999999999999999999999", "1e999"]
_WORDS = [
    *_DIGITS,
    *"nan - ( ) [ ] { } = : , f32 # uid=0 True None".split(),
    "block 0",
    "block 1",
    '"',
    "`",
    "x" * 5000,
    "\0",
    "\ufffd",
]


def of_text(data: bytes, draw: random.Random) -> bytes:
    """Words and lines of a text changed, taken out, repeated; or its bytes."""
    if draw.random() < 0.25:
        return of_bytes(data, draw)
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(lines))
        kind = draw.randrange(6)
        words = lines[at].split(" ")
        if kind == 0:
            del lines[at]
            lines = lines or [""]
        elif kind == 1:
            lines.insert(draw.randrange(len(lines) + 1), lines[at])
        elif kind == 2:
            del words[draw.randrange(len(words))]
            lines[at] = " ".join(words)
        elif kind == 3:
            words.insert(draw.randrange(len(words) + 1), draw.choice(_WORDS))
            lines[at] = " ".join(words)
        else:
            digits = [i for i, c in enumerate(lines[at]) if c.isdigit()]
            if digits:
                i = draw.choice(digits)
                lines[at] = lines[at][:i] + draw.choice(_DIGITS) + lines[at][i + 1 :]
            else:
                words[draw.randrange(len(words))] = draw.choice(_WORDS)
                lines[at] = " ".join(words)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def of_numbers(data: bytes, draw: random.Random) -> bytes:
    """Big-endian numbers in a header, or bytes anywhere."""
    if draw.random() < 0.4:
        return of_bytes(data, draw)
    out = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at = (
            draw.randrange(0, min(len(out), 24), 4)
            if draw.random() < 0.7
            else 2 + draw.randrange(2)
        )
        new = (
            draw.choice([n for n in NUMBERS if 0 <= n < 2**32]).to_bytes(4, "big")
            if at % 4 == 0
            else bytes([draw.randrange(256)])
        )
        out[at : at + len(new)] = new
    return bytes(out)
