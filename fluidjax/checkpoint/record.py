"""The contents of a checkpoint besides arrays: step, program, random state and reader's position,
written as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache
from typing import Any

from ..devices.shard_layout import ShardLayout, Span
from ..dist.jobs import compare_programs
from ..errors import FluidTypeError, ParseError
from ..ir import edit
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc
from ..loaders.position import Position
from ..ops.registry import REGISTRY

FORMAT, VERSION = "fluidjax-checkpoint", 2
DEEPEST = 16  # nesting of lists and dicts in trainer_args
Lod = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Random:
    """The random state of a program in an executor.

    program_seed: the program's random_seed; seed: the seed in force (chosen for the process if
    random_seed is 0); runs: the number of steps that the program has taken.
    """

    program_seed: int
    seed: int
    runs: int


@dataclass(frozen=True)
class Record:
    """program: its lines (see `lines`). empty: variables without elements, which orbax does not
    store: dtype and shape.

    placed: where in which arrays the elements of sharded variables are (see Snapshot).
    """

    step: int
    program: str
    random: Random
    position: Position | None = None
    trainer_args: Mapping[str, Any] = field(default_factory=dict)
    empty: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    placed: Mapping[str, ShardLayout] = field(default_factory=dict)
    lods: Mapping[str, Lod] = field(default_factory=dict)


@lru_cache(maxsize=4)  # every save calls this; 100 ms for a program of 1,800 ops
def lines(desc: ProgramDesc) -> str:
    """The lines that must agree between a checkpoint and the program that it is restored into, one
    for each op or variable.

    The uids of random ops are at the end, because random numbers depend on them. The random seed is
    kept separately. The place where an op was written (its name scope, which is numbered within a
    process, and its call stack) is left out.
    """
    desc = edit.map_ops(desc, _without_place)
    drawn = [
        f"block {i}: {op.type} draws as number {op.uid}"
        for i, block in enumerate(desc.blocks)
        for op in block.ops
        if op.type in REGISTRY and REGISTRY[op.type].random
    ]
    return "\n".join([compare_programs.program_lines(desc), *drawn])


def _without_place(op: OpDesc) -> OpDesc:
    return replace(
        op,
        attrs=FrozenMap(
            {n: v for n, v in op.attrs.items() if n not in ("op_namescope", "op_callstack")}
        ),
    )


def to_json(record: Record) -> dict[str, Any]:
    """The record as JSON's own values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "step": record.step,
        "fingerprint": compare_programs.fingerprint(record.program),
        "program": compare_programs.pack(record.program),
        "random": {
            "program_seed": record.random.program_seed,
            "seed": record.random.seed,
            "runs": record.random.runs,
        },
        "position": (
            None
            if record.position is None
            else {"epoch": record.position.epoch, "batches": record.position.batches}
        ),
        "trainer_args": dict(record.trainer_args),
        "empty": {name: [dtype, list(shape)] for name, (dtype, shape) in record.empty.items()},
        "placed": {
            name: [list(p.shape), [list(astuple(s)) for s in p.spans]]
            for name, p in record.placed.items()
        },
        "lods": {name: [list(level) for level in lod] for name, lod in record.lods.items()},
    }


def from_json(data: Any) -> Record:
    """Read a record. Raises ParseError, which names the place, for anything that to_json does not
    write.
    """
    kinds = {
        "format": str,
        "version": int,
        "step": int,
        "fingerprint": str,
        "program": str,
        "random": dict,
    }
    kinds |= {"trainer_args": dict, "empty": dict, "placed": dict, "lods": dict}
    found = _object(data, "the record", {**kinds, "position": object})
    if found["format"] != FORMAT or found["version"] != VERSION:
        raise ParseError(
            f"the record is of format {found['format']!r:.50} version {found['version']}, not"
            f" {FORMAT} version {VERSION}"
        )
    program = compare_programs.unpack(found["program"])
    if compare_programs.fingerprint(program) != found["fingerprint"]:
        raise ParseError(
            "the record's program does not have the fingerprint that is given beside it"
        )
    random = _object(found["random"], "random", {"program_seed": int, "seed": int, "runs": int})
    for what, number in (("step", found["step"]), ("random's runs", random["runs"])):
        if number < 0:
            raise ParseError(f"the record's {what} is {number}, below 0")
    return Record(
        found["step"],
        program,
        Random(**random),
        _position(found["position"]),
        found["trainer_args"],
        {name: _empty(value, name) for name, value in found["empty"].items()},
        {name: _placed(value, f"pieces of {name!r}") for name, value in found["placed"].items()},
        {name: _lod(value, name) for name, value in found["lods"].items()},
    )


def checked_args(value: Any, where: str = "trainer_args", depth: int = 0) -> Any:
    """`value`, if JSON can hold it and return it unchanged. Raises FluidTypeError, which names the
    place.
    """
    if depth > DEEPEST:
        raise FluidTypeError(f"{where}: more than {DEEPEST} lists and dicts in each other")
    if isinstance(value, dict) and all(type(k) is str for k in value):
        return {k: checked_args(v, f"{where}[{k!r}]", depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [checked_args(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    if (
        value is None
        or type(value) in (bool, int, str)
        or (type(value) is float and value - value == 0)
    ):
        return value
    raise FluidTypeError(
        f"{where}: a checkpoint keeps None, booleans, finite numbers, strings, lists, and dicts"
        f" with string keys, not {value!r:.80}"
    )


def _object(value: Any, where: str, kinds: Mapping[str, type]) -> dict[str, Any]:
    """`value`, which must be an object with exactly these fields of these types."""
    if type(value) is not dict or set(value) != set(kinds):
        got = sorted(value)[:20] if type(value) is dict else type(value).__name__
        raise ParseError(f"{where}: expected the fields {sorted(kinds)}, found {got}")
    for key, kind in kinds.items():
        if kind is not object and type(value[key]) is not kind:
            raise ParseError(
                f"{where}, {key}: expected {kind.__name__}, found {type(value[key]).__name__}"
            )
    return value


def _position(value: Any) -> Position | None:
    if value is None:
        return None
    found = _object(value, "position", {"epoch": int, "batches": int})
    if min(found.values()) < 0:
        raise ParseError(f"position: {found} has a number below 0")
    return Position(found["epoch"], found["batches"])


def _list(value: Any, check: Callable[[Any], bool], where: str) -> tuple[Any, ...]:
    if type(value) is not list or not all(map(check, value)):
        raise ParseError(f"{where}: this is not a list of what should be there")
    return tuple(value)


def _size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _empty(value: Any, name: str) -> tuple[str, tuple[int, ...]]:
    dtype, shape = (
        pair
        if len(pair := _list(value, lambda v: type(v) in (str, list), f"empty {name!r}")) == 2
        else (None, None)
    )
    if type(dtype) is not str or 0 not in _list(shape, _size, f"empty {name!r}"):
        raise ParseError(f"empty {name!r}: expected a dtype and a shape with a 0")
    return dtype, tuple(shape)


def _placed(value: Any, where: str) -> ShardLayout:
    """A variable's shape and spans. Checks that the spans have as many elements as the shape and
    are within it.
    """
    pair = _list(value, lambda v: type(v) is list, where)
    if len(pair) != 2:
        raise ParseError(f"{where}: expected a shape and a list of spans")
    placed = ShardLayout(_list(pair[0], _size, where), tuple(_span(s, where) for s in pair[1]))
    if sum(s.size for s in placed.spans) != placed.size or any(
        s.end > placed.size for s in placed.spans
    ):
        raise ParseError(
            f"{where}: the spans do not make up an array of the shape {list(placed.shape)}"
        )
    return placed


def _span(value: Any, where: str) -> Span:
    fields = _list(value, lambda v: type(v) is str or _size(v), where)
    if [type(f) for f in fields] != [str] + [int] * 6 or not fields[4] or not fields[6]:
        raise ParseError(
            f"{where}: expected an array's name and six numbers, of which the runs' size and count"
            " are not 0"
        )
    return Span(*fields)


def _lod(value: Any, name: str) -> Lod:
    where = f"LoD of {name!r}"
    return tuple(
        _list(level, _size, where) for level in _list(value, lambda v: type(v) is list, where)
    )
