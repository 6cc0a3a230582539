"""Programs as JSON: an exact copy of the desc, for tools in other languages.

``{"format": "fluidjax-program", "version": 1, "seed": 0, "blocks": [{"parent", "forward", "vars",
"ops"}]}``; variables and ops are objects with the fields of VarDesc and OpDesc, in which fields
with default values are left out. In attributes, JSON's own values represent themselves and lists
represent tuples; ``{"long": "5"}`` is a Long, ``{"block": 1}`` a BlockRef, ``{"float": "inf"}`` a
float that JSON cannot write. `OpDesc.loc` is not written, but read from a call stack that Paddle
wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any

from ..base.dtypes import KINDS, NAMES
from ..errors import FluidTypeError, ParseError, near
from .callstack import ATTRIBUTE, user_line
from .desc import BlockDesc, BlockRef, FrozenMap, Long, OpDesc, ProgramDesc, VarDesc

FORMAT, VERSION = "fluidjax-program", 1
_VAR_DEFAULTS = {f.name: f.default for f in fields(VarDesc) if f.name != "name"}
# every other field but shape is a bool
_VAR_TYPES: dict[str, type] = {"dtype": str, "kind": str, "lod_level": int}
_WORDS: dict[str, Collection[str]] = {"dtype": NAMES, "kind": KINDS}
_DEEPEST = 16  # tuples in tuples


def to_json(desc: ProgramDesc, indent: int | None = None) -> str:
    """`desc` as JSON text. Raises FluidTypeError for an attribute value of a type that desc.py does
    not have.
    """
    blocks = [
        {
            "parent": block.parent,
            "forward": block.forward,
            "vars": [_var_out(var) for var in block.vars.values()],
            "ops": [_op_out(op) for op in block.ops],
        }
        for block in desc.blocks
    ]
    program = {"format": FORMAT, "version": VERSION, "seed": desc.seed, "blocks": blocks}
    return json.dumps(program, indent=indent, allow_nan=False)


def _var_out(var: VarDesc) -> dict[str, Any]:
    changed = {
        name: getattr(var, name)
        for name, default in _VAR_DEFAULTS.items()
        if getattr(var, name) != default
    }
    return {"name": var.name, **changed}


def _op_out(op: OpDesc) -> dict[str, Any]:
    out: dict[str, Any] = {
        "uid": op.uid,
        "type": op.type,
        "inputs": dict(op.inputs),
        "outputs": dict(op.outputs),
    }
    try:
        return {**out, "attrs": {name: _value_out(value) for name, value in op.attrs.items()}}
    except FluidTypeError as error:
        raise FluidTypeError(f"op '{op.type}': {error}") from None


def _value_out(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_value_out, value))
    if isinstance(value, Long):
        return {"long": str(int(value))}  # many JSON readers would round it beyond 2**53
    if isinstance(value, BlockRef):
        return {"block": value.idx}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": float.__repr__(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise FluidTypeError(f"an attribute is a {type(value).__name__}, which no program holds")


def from_json(text: str | bytes) -> ProgramDesc:
    """Read a program that :func:`to_json` wrote. Raises ParseError, which names the place, for
    anything else.
    """
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        # ValueError: bad JSON, bad UTF-8, an int of too many digits
        raise ParseError(f"this is not JSON: {error}") from None
    _object(data, "the text", {"format", "version", "seed", "blocks"})
    if data["format"] != FORMAT or data["version"] != VERSION:
        raise ParseError(
            f"format: expected {FORMAT} version {VERSION}, found {data['format']} {data['version']}"
        )
    blocks = [
        _block(block, f"block {i}") for i, block in enumerate(_of(data["blocks"], list, "blocks"))
    ]
    if not blocks:
        raise ParseError("blocks: a program has at least one block")
    return ProgramDesc(tuple(blocks), _of(data["seed"], int, "seed"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _of(value: Any, cls: type, where: str) -> Any:
    """`value`, which must be exactly a `cls`."""
    if type(value) is not cls:
        raise ParseError(f"{where}: expected {cls.__name__}, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = "null" if value is None else f"{type(value).__name__} {value!r}"
    return text if len(text) < 80 else text[:80] + "..."


def _object(value: Any, where: str, needed: set[str]) -> dict[str, Any]:
    """`value`, which must be an object with exactly the keys `needed`."""
    found: dict[str, Any] = _of(value, dict, where)
    for key in found:
        if key not in needed:
            raise ParseError(f"{where}: there is no field {key!r}{near(key, needed)}")
    if missing := needed - found.keys():
        raise ParseError(f"{where}: {min(missing)!r} is missing")
    return found


def _block(data: Any, where: str) -> BlockDesc:
    _object(data, where, {"parent", "forward", "vars", "ops"})
    vars: dict[str, VarDesc] = {}
    for at, item in enumerate(_of(data["vars"], list, f"{where}, vars")):
        var = _var(item, f"{where}, variable {at}")
        if var.name in vars:
            raise ParseError(f"{where}, variable {at}: {var.name!r} is there twice")
        vars[var.name] = var
    ops = tuple(
        _op(op, f"{where}, op {at}")
        for at, op in enumerate(_of(data["ops"], list, f"{where}, ops"))
    )
    parent, forward = (_of(data[key], int, f"{where}, {key}") for key in ("parent", "forward"))
    return BlockDesc(FrozenMap(vars), ops, parent, forward)


def _var(data: Any, where: str) -> VarDesc:
    given = dict(_of(data, dict, where))
    name = _of(given.pop("name", None), str, f"{where}, name")
    for key, value in given.items():
        if key not in _VAR_DEFAULTS:
            raise ParseError(f"{where}: there is no field {key!r}{near(key, _VAR_DEFAULTS)}")
        if key == "shape" and value is not None:
            given[key] = _list(value, int, f"{where}, shape")
        elif key == "dims":
            given[key] = _list(value, str, f"{where}, dims")
        elif value is not None or key not in ("shape", "dtype"):
            _of(value, _VAR_TYPES.get(key, bool), f"{where}, {key}")
            if key in _WORDS and value not in _WORDS[key]:
                raise ParseError(f"{where}: there is no {key} {value!r}{near(value, _WORDS[key])}")
    return VarDesc(name, **given)


def _list(value: Any, cls: type, where: str) -> tuple[Any, ...]:
    return tuple(_of(v, cls, where) for v in _of(value, list, where))


def _op(data: Any, where: str) -> OpDesc:
    _object(data, where, {"uid", "type", "inputs", "outputs", "attrs"})
    attrs = _map(data["attrs"], _value, f"{where}, attrs")
    return OpDesc(
        _of(data["uid"], int, f"{where}, uid"),
        _of(data["type"], str, f"{where}, type"),
        _map(data["inputs"], lambda v, at: _list(v, str, at), f"{where}, inputs"),
        _map(data["outputs"], lambda v, at: _list(v, str, at), f"{where}, outputs"),
        attrs,
        user_line(attrs.get(ATTRIBUTE)),
    )


def _map(data: Any, read: Callable[[Any, str], Any], where: str) -> FrozenMap:
    return FrozenMap(
        {key: read(value, f"{where} {key!r}") for key, value in _of(data, dict, where).items()}
    )


def _value(value: Any, where: str, depth: int = 0) -> Any:
    if isinstance(value, list):
        if depth == _DEEPEST:
            raise ParseError(f"{where}: more than {_DEEPEST} lists in each other")
        return tuple(_value(v, where, depth + 1) for v in value)
    if not isinstance(value, dict):
        return value
    tag, held = next(iter(value.items()), ("", None))
    if len(value) != 1 or tag not in ("long", "block", "float"):
        raise ParseError(f"{where}: expected one of long, block, float, found {_shown(value)}")
    if tag == "block":
        return BlockRef(_of(held, int, where))
    try:
        number = Long(_of(held, str, where)) if tag == "long" else float(_of(held, str, where))
    except ValueError as error:
        raise ParseError(f"{where}: {error}") from None
    return math.nan if tag == "float" and math.isnan(number) else number
