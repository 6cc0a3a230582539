"""Programs as Paddle's protobuf bytes: the contents of ``__model__`` and ``.pdmodel`` files.

The format cannot hold these, and other values are read instead:

* `seed` and uids: 0, and ordinals.
* Paddle 1.8 cannot distinguish a parameter from another persistable, and does not record
  stop_gradient. 2.x has two fields for these; they are written here too (1.8 skips them) and read
  if present. `trainable` is always read as True.
* `is_data`: read for variables with need_check_feed and for tensors of block 0 that ops read, none
  writes, and that are not persistable.
* A dtype without a shape comes back with the shape (), a shape without a dtype as bool (Paddle's
  own default); kinds other than LOD_TENSOR, SELECTED_ROWS and LOD_TENSOR_ARRAY keep neither, and
  only the first and last a lod_level.
* FLOAT attributes are float32 numbers, and any negative dimension is read as -1.

Strings are UTF-8; other bytes are kept as Python's surrogate escapes, so that old files in other
encodings survive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import DecodeError

from ..base.dtypes import KINDS, VarType, enum_of, name_of
from ..errors import FluidError, FluidValueError, ParseError
from . import framework_pb2
from .callstack import ATTRIBUTE, user_line
from .desc import BlockDesc, BlockRef, FrozenMap, Long, OpDesc, ProgramDesc, VarDesc
from .lexis import to_float32
from .walk import misnested

# its classes are made during import, so type checkers cannot see them
wire: Any = framework_pb2
AttrTypes = Callable[[str, str], str | None]

VERSION = 1008005  # the version that Paddle 1.8.5 writes
# refuses garbage; Paddle itself writes major * 1000000 + minor * 1000 + patch
_LATEST = 3_000_000_000
_SMALL = 1_000_000
_INT32, _INT64 = 2**31, 2**63
_TENSORS = {
    "LOD_TENSOR": "lod_tensor",
    "SELECTED_ROWS": "selected_rows",
    "LOD_TENSOR_ARRAY": "tensor_array",
}
_KIND_OF = {int(number): name for name, number in KINDS.items()}
# Attribute type -> the field that holds it; lists are those whose type name ends in S.
_FIELDS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings", "BOOLEAN": "b",
    "BOOLEANS": "bools", "BLOCK": "block_idx", "LONG": "l", "BLOCKS": "blocks_idx", "LONGS": "longs",
    "FLOAT64S": "float64s", "FLOAT64": "float64", "SCALAR": "scalar", "SCALARS": "scalars",
}  # fmt: skip
_SCALARS = {"BOOLEAN": "b", "LONG": "i", "FLOAT64": "r"}  # the type in a Scalar -> its field
_ELEMENT = {name: name[:-1] for name in _FIELDS if name.endswith("S")}
_EMPTY_STRINGS = frozenset(
    {"op_role_var", "op_callstack", "skip_eager_deletion_vars", "states", "ex_states"}
)


def to_bytes(desc: ProgramDesc, attr_type: AttrTypes | None = None) -> bytes:
    """The bytes of `desc`, as Paddle 1.8.5 reads them.

    `attr_type(op type, attribute)` gives Paddle's name of an attribute's type, or None. It decides
    the type of empty lists (default INTS), and between LONG and INT.

    Raises FluidValueError for values that the format cannot hold: None, nested tuples, numbers out
    of range, lone surrogates.
    """
    message = wire.ProgramDesc()
    message.version.version = VERSION
    for idx, block in enumerate(desc.blocks):
        out = message.blocks.add(idx=idx, parent_idx=block.parent)
        if block.forward != -1:
            out.forward_block_idx = block.forward
        for var in block.vars.values():
            try:
                _put_var(out.vars.add(), var)
            except (ValueError, TypeError, FluidError) as error:
                raise FluidValueError(
                    f"variable {var.name!r} does not fit Paddle's format: {error}"
                ) from error
        for op in block.ops:
            _put_op(out.ops.add(), op, attr_type)
    return bytes(message.SerializeToString(deterministic=True))


def _put_var(out: Any, var: VarDesc) -> None:
    out.name = _encoded(var.name)
    if var.kind not in KINDS:
        raise FluidValueError(f"{var.kind!r} is not a kind of variable")
    out.type.type = KINDS[var.kind]
    field = _TENSORS.get(var.kind)
    if field and (var.dtype is not None or var.shape is not None or var.lod_level):
        holder = getattr(out.type, field)
        tensor = holder if field == "selected_rows" else holder.tensor
        tensor.data_type = enum_of(var.dtype) if var.dtype is not None else VarType.BOOL
        tensor.dims.extend(var.shape or ())
        if var.lod_level and field != "selected_rows":
            holder.lod_level = var.lod_level
    for flag in ("persistable", "need_check_feed", "is_parameter", "stop_gradient"):
        if getattr(var, flag):
            setattr(out, flag, True)


def _put_op(out: Any, op: OpDesc, attr_type: AttrTypes | None) -> None:
    out.type = _encoded(op.type)
    for slots, held in ((out.inputs, op.inputs), (out.outputs, op.outputs)):
        for slot, names in held.items():
            slots.add(parameter=_encoded(slot), arguments=map(_encoded, names))
    for name, value in op.attrs.items():
        known = attr_type(op.type, name) if attr_type else None
        try:
            kind = known if known in _FIELDS else _kind_of(name, value)
            if known in ("SIZE", "SIZES") and kind in ("STRING", "STRINGS"):
                raise FluidValueError(
                    f"it is {value!r}, an open size, which Paddle does not support; write the "
                    "program as text or JSON, or trace it with known sizes"
                )
            attr = out.attrs.add(name=_encoded(name), type=wire.AttrType.Value(kind))
            if kind in _ELEMENT:
                if not isinstance(value, tuple):
                    raise FluidValueError(f"it is {value!r}, but {kind} is a list")
                getattr(attr, _FIELDS[kind]).extend([_scalar(_ELEMENT[kind], v) for v in value])
            elif kind == "SCALAR":
                attr.scalar.CopyFrom(_scalar(kind, value))
            else:
                setattr(attr, _FIELDS[kind], _scalar(kind, value))
        except (ValueError, TypeError) as error:
            raise FluidValueError(
                f"attribute {name!r} of op '{op.type}' does not fit Paddle's format: {error}"
            ) from error


def _kind_of(name: str, value: Any) -> str:
    """The attribute type that a value suggests."""
    if isinstance(value, tuple):
        if not value:
            return "STRINGS" if name in _EMPTY_STRINGS else "INTS"
        kinds = {_kind_of(name, v) for v in value}
        for kind in ("FLOAT", "LONG", "INT"):  # ints fit the wider ones
            if kind in kinds and kinds <= {"FLOAT", "LONG", "INT"}:
                return kind + "S"
        if len(kinds) == 1 and (kind := kinds.pop()) + "S" in _FIELDS:
            return kind + "S"
        raise FluidValueError(f"{value!r} is neither a value nor a list of one type")
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "LONG" if isinstance(value, Long) or not -_INT32 <= value < _INT32 else "INT"
    for cls, kind in ((float, "FLOAT"), (str, "STRING"), (BlockRef, "BLOCK")):
        if isinstance(value, cls):
            return kind
    raise FluidValueError(f"it is a {type(value).__name__}")


def _scalar(kind: str, value: Any) -> Any:
    """`value` in the form that the field of a scalar attribute type takes."""
    if kind == "STRING" and isinstance(value, str):
        return _encoded(value)
    if kind == "BLOCK" and isinstance(value, BlockRef):
        return value.idx
    if kind in ("INT", "LONG") and isinstance(value, int):
        limit = _INT32 if kind == "INT" else _INT64
        if not -limit <= value < limit:
            raise FluidValueError(f"{value} is out of range for {kind}")
        return int(value)
    if kind == "BOOLEAN" and isinstance(value, int) and value in (0, 1):
        return bool(value)
    if (
        kind in ("FLOAT", "FLOAT64")
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    ):
        number = float(value)
        if kind == "FLOAT" and math.isinf(to_float32(number)) and not math.isinf(number):
            raise FluidValueError(f"{value} is out of range for a 32-bit FLOAT")
        return number
    if kind == "SCALAR" and isinstance(value, bool | int | float):
        return _any_scalar(value)
    raise FluidValueError(f"it is {value!r}, but its type is {kind}")


def _any_scalar(value: float) -> Any:
    """A Scalar, which holds its own type."""
    kind = "BOOLEAN" if isinstance(value, bool) else "LONG" if isinstance(value, int) else "FLOAT64"
    return wire.Scalar(type=wire.Scalar.Type.Value(kind), **{_SCALARS[kind]: _scalar(kind, value)})


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Written:
    """The Paddle that wrote a program: 2006002 for 2.6.2 (0: unknown), and the versions of its op
    types that have one.
    """

    paddle: int
    ops: FrozenMap = FrozenMap()


def from_bytes(data: bytes) -> ProgramDesc:
    """The program in Paddle's bytes (1.x, 2.x and 3.x). Only its structure is checked; run verify
    on it.

    Raises ParseError, which names the field, for bytes that hold no program and for features of a
    newer Paddle.
    """
    return read(data)[0]


def read(data: bytes) -> tuple[ProgramDesc, Written]:
    """As from_bytes, and the Paddle that wrote it."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ParseError(
            f"a program in protobuf is bytes, not {type(data).__name__}; read the file in mode 'rb'"
        )
    message = wire.ProgramDesc()
    try:
        message.ParseFromString(bytes(data))
    except (DecodeError, RecursionError) as error:
        raise ParseError(f"{len(data)} bytes that are not a Paddle program: {error}") from None
    if not message.IsInitialized():
        # The list of missing fields may be many times as long as the bytes.
        missing = (
            message.FindInitializationErrors()[0] if len(data) < _SMALL else "a required field"
        )
        raise ParseError(f"these bytes are not a Paddle program: {missing} is missing")
    if not 0 <= message.version.version < _LATEST:
        raise ParseError(f"version: {message.version.version} is not a version of Paddle")
    if not message.blocks:
        raise ParseError("blocks: a program has at least one block")
    uid, blocks = 0, []
    for idx, block in enumerate(message.blocks):
        blocks.append(_block(block, idx, len(message.blocks), uid))
        uid += len(block.ops)
    versions = {
        _decoded(pair.op_name): pair.op_version.version for pair in message.op_version_map.pair
    }
    desc = ProgramDesc((_with_data(blocks), *blocks[1:]))
    if problem := misnested(desc):
        raise ParseError(f"blocks: {problem}")
    return desc, Written(message.version.version, FrozenMap(versions))


def _block(message: Any, idx: int, count: int, uid: int) -> BlockDesc:
    where = f"block {idx}"
    if message.idx != idx:
        raise ParseError(f"{where}: idx is {message.idx}")
    if not (-1 if idx == 0 else 0) <= message.parent_idx < idx:
        raise ParseError(
            f"{where}: parent_idx is {message.parent_idx}; it must be a block before it"
        )
    if not -1 <= message.forward_block_idx < count:
        raise ParseError(
            f"{where}: forward_block_idx is {message.forward_block_idx} of {count} blocks"
        )
    vars: dict[str, VarDesc] = {}
    for at, var in enumerate(message.vars):
        desc = _var(var, f"{where}, variable {at}")
        if desc.name in vars:
            raise ParseError(f"{where}, variable {at}: {desc.name!r} is there twice")
        vars[desc.name] = desc
    ops = tuple(_op(op, uid + at, count, f"{where}, op {at}") for at, op in enumerate(message.ops))
    return BlockDesc(FrozenMap(vars), ops, message.parent_idx, message.forward_block_idx)


def _var(message: Any, where: str) -> VarDesc:
    name = _decoded(message.name)
    where = f"{where} {name!r}"
    kind = _KIND_OF.get(message.type.type)
    if kind is None:
        raise ParseError(
            f"{where}: type.type is {message.type.type}, which is not a kind of variable"
        )
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    lod = 0
    field = _TENSORS.get(kind)
    if field and message.type.HasField(field):
        holder = getattr(message.type, field)
        tensor = holder if field == "selected_rows" else holder.tensor
        lod = 0 if field == "selected_rows" else holder.lod_level
        # Paddle's layer_norm, among others, leaves -6 for -1 * 6
        shape = tuple(max(d, -1) for d in tensor.dims)
        try:
            dtype = name_of(tensor.data_type)
        except FluidError as error:
            raise ParseError(f"{where}: data_type: {error}") from None
        if lod < 0:
            raise ParseError(f"{where}: lod_level is {lod}")
    return VarDesc(
        name, shape, dtype, kind, lod,
        persistable=message.persistable,
        stop_gradient=message.stop_gradient,
        is_data=message.need_check_feed,
        need_check_feed=message.need_check_feed,
        is_parameter=message.is_parameter,
    )  # fmt: skip


def _op(message: Any, uid: int, blocks: int, where: str) -> OpDesc:
    kind = _decoded(message.type)
    where = f"{where} '{kind}'"
    attrs: dict[str, Any] = {}
    for attr in message.attrs:
        name = _decoded(attr.name)
        if name in attrs:
            raise ParseError(f"{where}: attribute {name!r} is there twice")
        attrs[name] = _attr(attr, blocks, f"{where}, attribute {name!r}")
    loc = user_line(attrs.get(ATTRIBUTE))
    return OpDesc(
        uid,
        kind,
        _slots(message.inputs, where),
        _slots(message.outputs, where),
        FrozenMap(attrs),
        loc,
    )


def _slots(messages: Iterable[Any], where: str) -> FrozenMap:
    found: dict[str, tuple[str, ...]] = {}
    for message in messages:
        slot = _decoded(message.parameter)
        if slot in found:
            raise ParseError(f"{where}: slot {slot!r} is there twice")
        found[slot] = tuple(map(_decoded, message.arguments))
    return FrozenMap(found)


def _attr(message: Any, blocks: int, where: str) -> Any:
    try:
        kind = wire.AttrType.Name(message.type)
    except ValueError:
        raise ParseError(
            f"{where}: type is {message.type}, which is not an attribute type"
        ) from None
    if kind not in _FIELDS:
        raise ParseError(f"{where}: type {kind} of a newer Paddle is not supported")
    field = _FIELDS[kind]
    value = getattr(message, field)
    if kind in _ELEMENT:
        return tuple(_value(_ELEMENT[kind], v, blocks, where) for v in value)
    if not message.HasField(field):
        raise ParseError(
            f"{where}: it has no field {field!r}, which an attribute of type {kind} needs"
        )
    return _value(kind, value, blocks, where)


def _scalar_value(message: Any, where: str) -> Any:
    """The value of a Scalar."""
    try:
        kind = wire.Scalar.Type.Name(message.type)
    except ValueError:
        raise ParseError(f"{where}: a scalar's type is {message.type}, which is none") from None
    if kind not in _SCALARS:
        raise ParseError(f"{where}: a complex number as an attribute is not supported")
    field = _SCALARS[kind]
    if not message.HasField(field):
        raise ParseError(f"{where}: a scalar of type {kind} has no field {field!r}")
    return _value(kind, getattr(message, field), 0, where)


def _value(kind: str, value: Any, blocks: int, where: str) -> Any:
    if kind == "SCALAR":
        return _scalar_value(value, where)
    if kind == "STRING":
        return _decoded(value)
    if kind == "LONG":
        return Long(value)
    if kind in ("FLOAT", "FLOAT64"):
        # one object, so that equal descs compare equal
        return math.nan if math.isnan(value) else value
    if kind == "BLOCK":
        if not 0 <= value < blocks:
            raise ParseError(f"{where}: it points at block {value} of {blocks}")
        return BlockRef(value)
    return value


def _with_data(blocks: list[BlockDesc]) -> BlockDesc:
    """Block 0 with is_data inferred: set for tensors that ops read and none writes."""
    read = {name for block in blocks for op in block.ops for name in op.reads}
    written = {name for block in blocks for op in block.ops for name in op.writes}
    vars = {
        name: (
            replace(var, is_data=True)
            if name in read and name not in written and _may_be_data(var) and not var.is_data
            else var
        )
        for name, var in blocks[0].vars.items()
    }
    return replace(blocks[0], vars=FrozenMap(vars))


def _may_be_data(var: VarDesc) -> bool:
    return var.kind == "LOD_TENSOR" and not var.persistable and "@GRAD" not in var.name


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
