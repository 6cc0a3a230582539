"""HLO text, which JAX prints of a traced step before it is compiled, as instructions.

Only public calls are used to get it: ``jax.jit(f).lower(...).as_text(dialect="hlo")``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..errors import UnsupportedError

_BYTES = {"pred": 1, "token": 0, "opaque": 0, "bf16": 2, "c64": 8, "c128": 16}
_ARRAY = re.compile(r"([a-z]+[0-9]*[a-z0-9]*)\[([\d,]*)\]")
_COMMENT = re.compile(r"/\*.*?\*/")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_QUIET = re.compile(r",? ?(?:metadata|origin|frontend_attributes|sharding)=\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Instruction:
    """``name = type opcode(operands), attributes``; operands are names, or the text within a constant's brackets."""

    name: str
    type: str
    opcode: str
    operands: str
    attributes: str
    root: bool

    def attribute(self, name: str) -> str:
        """What follows ``name=`` up to the next comma or blank; empty if there is none."""
        found = re.search(rf"\b{name}=%?([\w.\->]+)", self.attributes)
        return found[1] if found else ""


@dataclass(frozen=True)
class Module:
    """Computations by name. aliases: output number -> number of the parameter whose memory it takes over."""

    computations: Mapping[str, tuple[Instruction, ...]]
    entry: str
    aliases: Mapping[int, int]


def parse(text: str) -> Module:
    """The module in HLO text. Raises UnsupportedError for text that is not the HLO known here."""
    head, _, body = text.partition("\n")
    found: dict[str, tuple[Instruction, ...]] = {}
    entry = ""
    lines = iter(body.split("\n"))
    for line in lines:
        if line.endswith("{") and not line.startswith(" "):
            words = line.removeprefix("ENTRY ").split()
            entry = words[0] if line.startswith("ENTRY ") else entry
            found[words[0]] = tuple(_instructions(lines))
    if not head.startswith("HloModule") or not entry:
        raise UnsupportedError("this version of JAX prints a traced step in a form that the memory report cannot read")
    return Module(found, entry, {int(out or 0): int(param) for out, param in _ALIAS.findall(head)})


def _instructions(lines: Iterator[str]) -> Iterator[Instruction]:
    """The instructions up to the line that closes the computation."""
    for line in lines:
        if line.startswith("}"):
            return
        if line.strip():
            yield _instruction(_COMMENT.sub("", line.strip()))


def _instruction(line: str) -> Instruction:
    name, _, rest = line.removeprefix("ROOT ").partition(" = ")
    end = _closing(rest, 0) if rest.startswith("(") else rest.find(" ")
    kind, rest = rest[:end], rest[end:].lstrip()
    opens = rest.find("(")
    if end <= 0 or opens <= 0:
        raise UnsupportedError(f"this version of JAX prints an instruction that the memory report cannot read: {line}")
    closes = _closing(rest, opens)
    attributes = _QUIET.sub("", rest[closes:]).lstrip(", ")
    return Instruction(name.lstrip("%"), kind, rest[:opens], rest[opens + 1 : closes - 1], attributes, line.startswith("ROOT "))


def _closing(text: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    return len(text)


def arrays(kind: str) -> list[tuple[str, tuple[int, ...]]]:
    """(element type, shape) of every array of a type; a tuple has several."""
    return [(dtype, tuple(int(n) for n in dims.split(",") if n)) for dtype, dims in _ARRAY.findall(kind)]


def nbytes(kind: str) -> int:
    """Bytes of all arrays of a type."""
    return sum(prod(shape) * _itemsize(dtype) for dtype, shape in arrays(kind))


def _itemsize(dtype: str) -> int:
    if dtype in _BYTES:
        return _BYTES[dtype]
    bits = re.match(r"[a-z]+(\d+)", dtype)  # f32, s64, u8, f8e4m3fn
    return max(1, int(bits[1]) // 8) if bits else 0


def rank(kind: str) -> int:
    """How many dimensions of an array are larger than one."""
    return max((sum(n != 1 for n in shape) for _, shape in arrays(kind)), default=0)
