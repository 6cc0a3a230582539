"""Pickles of plain values, read without running a pickle.

This module interprets only the opcodes of plain values. Names in a pickle are compared with a short
list, never imported or called. Numbers, texts, bytes, lists, tuples, dicts and NumPy arrays of
numbers are read; anything else is refused. The docstring of this package explains why this is not a
`pickle.Unpickler` with a `find_class` of its own.
"""

from __future__ import annotations

import io
import math
import pickletools
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Literal

import numpy as np

from ..errors import ParseError

_DTYPES = frozenset(
    {"f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
)
_MARK = object()
_ENCODE, _NDARRAY, _DTYPE, _ORDERED = (
    "_codecs.encode",
    "numpy.ndarray",
    "numpy.dtype",
    "collections.OrderedDict",
)
_RECONSTRUCT = frozenset(
    {"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"}
)
_BYTES = frozenset({"__builtin__.bytes", "builtins.bytes"})  # protocol 2's spelling of empty bytes
_KNOWN = _RECONSTRUCT | _BYTES | {_ENCODE, _NDARRAY, _DTYPE, _ORDERED}
_CODES = {opcode.code: opcode for opcode in pickletools.opcodes}
_DEEP = 400  # nesting of containers


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass
class _Dtype:
    code: str
    order: Literal["<", ">", "|", "="] = "<"


@dataclass
class _Array:
    """An array that is being built; `value` is set when its state is read."""

    value: np.ndarray | None = None


@dataclass
class _Machine:
    source: str
    # bytes that may still be made, because a value that is stored once may be recalled any number
    # of times
    room: int
    at: int = 0
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def fail(self, what: str) -> ParseError:
        return ParseError(f"{self.source}, offset {self.at}: {what}")

    def spend(self, count: int) -> None:
        self.room -= count
        if self.room < 0:
            raise self.fail("the arrays have more bytes than the file")

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.fail("the pickle takes a value where there is none")
        return self.stack.pop()

    def to_mark(self) -> list[Any]:
        items: list[Any] = []
        while self.stack:
            item = self.stack.pop()
            if item is _MARK:
                return items[::-1]
            items.append(item)
        raise self.fail("the pickle goes back to a mark that is not there")

    def several(self, count: int) -> tuple[Any, ...]:
        return tuple([self.pop() for _ in range(count)][::-1])

    def remember(self, key: int) -> None:
        self.memo[key] = self.top()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.fail("the pickle takes a value where there is none")
        return self.stack[-1]

    def recall(self, key: int) -> None:
        if key not in self.memo:
            raise self.fail(f"the pickle recalls {str(key)[:40]}, which it never stored")
        self.stack.append(self.memo[key])

    def global_(self, name: str) -> None:
        if name not in _KNOWN:
            raise self.fail(
                f"the pickle wants {name[:80]!r}; only plain values and NumPy arrays of numbers are"
                " read"
            )
        self.stack.append(_Global(name))

    def stack_global(self) -> None:
        module, name = self.several(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.fail("the name of a global is not a string")
        self.global_(f"{module}.{name}")

    def put(self, items: list[Any]) -> None:
        target = self.top()
        if not isinstance(target, dict) or len(items) % 2:
            raise self.fail("the pickle stores items in what is not a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # hashing a nest of tuples may take for ever, or overflow the process's stack
            if not isinstance(key, str | bytes | int):
                raise self.fail(
                    "a key is neither text nor an integer but"
                    f" {type(key).__name__.strip('_').lower()}"
                )
            target[key] = value

    def extend(self, items: list[Any]) -> None:
        target = self.top()
        if not isinstance(target, list):
            raise self.fail("the pickle appends to what is not a list")
        target.extend(items)

    def dict_(self) -> None:
        items = self.to_mark()
        self.stack.append({})
        self.put(items)

    def reduce(self) -> None:
        function, args = self.several(2)
        if not isinstance(function, _Global) or not isinstance(args, tuple):
            raise self.fail("the pickle calls something that is not a known function")
        self.stack.append(self._call(function.name, args))

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        if (
            name == _ENCODE
            and len(args) == 2
            and isinstance(args[0], str)
            and args[1] in ("latin1", "latin-1")
        ):
            self.spend(len(args[0]))
            try:
                return args[0].encode("latin1")
            except UnicodeEncodeError:
                raise self.fail("text that stands for bytes is not Latin-1") from None
        if name in _RECONSTRUCT and len(args) == 3 and args[0] == _Global(_NDARRAY):
            return _Array()
        if name == _DTYPE and args:
            if (code := _text(args[0])) not in _DTYPES:
                raise self.fail(
                    f"the pickle wants arrays of dtype {str(code)[:40]!r}, which are not numbers"
                )
            return _Dtype(code)
        if (name == _ORDERED or name in _BYTES) and args == ():
            return {} if name == _ORDERED else b""
        raise self.fail(
            f"the pickle calls {name} with other arguments than an array of numbers needs"
        )

    def build(self) -> None:
        target, state = self.several(2)
        if (
            isinstance(target, _Dtype)
            and isinstance(state, tuple)
            and len(state) >= 2
            and _text(state[1]) in ("<", ">", "|", "=")
        ):
            target.order = _text(state[1])
        elif isinstance(target, _Array) and isinstance(state, tuple) and len(state) == 5:
            target.value = self._array(*state[1:])
        else:
            raise self.fail("the pickle sets a state that is not that of an array of numbers")
        self.stack.append(target)

    def _array(self, shape: Any, dtype: Any, fortran: Any, data: Any) -> np.ndarray:
        if isinstance(data, str):
            data = self._call(_ENCODE, (data, "latin1"))
        sizes = (
            isinstance(shape, tuple)
            and len(shape) <= 64
            and all(type(n) is int and 0 <= n < 2**63 for n in shape)
        )
        if not sizes or not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise self.fail("the state of an array is not shape, dtype, order and bytes")
        kind = np.dtype(dtype.code).newbyteorder(dtype.order)
        if math.prod(shape) * kind.itemsize != len(data):
            raise self.fail(
                f"an array {str(list(shape))[:80]} of {kind.name} has {len(data)} bytes"
            )
        self.spend(len(data))
        try:
            return (
                np.frombuffer(data, kind)
                .reshape(shape, order="F" if fortran else "C")
                .astype(kind.newbyteorder("="))
            )
        except ValueError as error:
            raise self.fail(f"an array {str(list(shape))[:80]}: {error}") from None

    def plain(self, value: Any, done: dict[int, Any], depth: int = 0) -> Any:
        """The value with finished arrays in place of those being built. done: container -> its
        result; _MARK while it is visited.
        """
        if isinstance(value, _Array):
            if value.value is None:
                raise self.fail("the pickle holds an array without numbers")
            return value.value
        if isinstance(value, _Global | _Dtype):
            raise self.fail("the pickle holds a name for a value")
        if not isinstance(value, list | tuple | dict):
            return value
        if (made := done.get(id(value))) is not None:
            if made is _MARK:
                raise self.fail("the pickle holds a container that holds itself")
            return made
        if depth == _DEEP:
            raise self.fail(f"the pickle holds containers more than {_DEEP} deep")
        done[id(value)] = _MARK
        if isinstance(value, dict):
            done[id(value)] = {
                key: self.plain(item, done, depth + 1) for key, item in value.items()
            }
        else:
            done[id(value)] = type(value)([self.plain(item, done, depth + 1) for item in value])
        return done[id(value)]


def _text(value: Any) -> Any:
    """Python 2 wrote dtypes as bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else value


def _noop(machine: _Machine, arg: Any) -> None:
    return None


def _push(machine: _Machine, arg: Any) -> None:
    machine.stack.append(arg)


def _constant(make: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, arg: machine.stack.append(make())


def _tuple(count: int) -> Callable[[_Machine, Any], None]:
    return lambda machine, arg: machine.stack.append(machine.several(count))


_RUN: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), _noop),
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
         "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), _push,
    ),
    # strings of Python 2, which pickletools decodes
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), lambda m, arg: m.stack.append(arg.encode("latin1"))),
    "NONE": _constant(lambda: None),
    "NEWTRUE": _constant(lambda: True),
    "NEWFALSE": _constant(lambda: False),
    "EMPTY_DICT": _constant(dict),
    "EMPTY_LIST": _constant(list),
    "EMPTY_TUPLE": _constant(tuple),
    "MARK": lambda m, arg: m.stack.append(_MARK),
    "LIST": lambda m, arg: m.stack.append(m.to_mark()),
    "DICT": lambda m, arg: m.dict_(),
    "TUPLE": lambda m, arg: m.stack.append(tuple(m.to_mark())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT"), lambda m, arg: m.remember(int(arg))),
    "MEMOIZE": lambda m, arg: m.remember(len(m.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), lambda m, arg: m.recall(int(arg))),
    "GLOBAL": lambda m, arg: m.global_(arg.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda m, arg: m.stack_global(),
    "REDUCE": lambda m, arg: m.reduce(),
    "BUILD": lambda m, arg: m.build(),
    "APPEND": lambda m, arg: m.extend([m.pop()]),
    "APPENDS": lambda m, arg: m.extend(m.to_mark()),
    "SETITEM": lambda m, arg: m.put(list(m.several(2))),
    "SETITEMS": lambda m, arg: m.put(m.to_mark()),
}  # fmt: skip


def load(file: IO[bytes], source: str | None = None) -> Any:
    """The value in a pickle; strings of Python 2 become bytes.

    Raises ParseError, which names file and offset, for anything but plain data.
    """
    return loads(file.read(), source or str(getattr(file, "name", "the pickle")))


def loads(data: bytes, source: str = "the pickle") -> Any:
    """As load, from bytes."""
    machine = _Machine(source, 2 * len(data))  # bytes that are spelled as text are made twice
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in text
            _interpret(data, machine)
    except (ValueError, OverflowError, struct.error, UnicodeError) as error:
        if isinstance(error, ParseError):
            raise
        raise machine.fail(f"these bytes are not a pickle: {str(error)[:200]}") from None
    if len(machine.stack) != 1 or machine.stack[0] is _MARK:
        raise machine.fail("the pickle ends with more or less than one value")
    return machine.plain(machine.stack[0], {})


def _interpret(data: bytes, machine: _Machine) -> None:
    # a valid pickle takes two bytes for each place, except long lists, whose items leave the stack
    most = 1000 + len(data) // 2
    for name, arg, machine.at in _opcodes(data):
        if name not in _RUN:
            raise machine.fail(f"opcode {name} does not belong into a pickle of plain values")
        _RUN[name](machine, arg)
        if len(machine.stack) + len(machine.memo) > most:
            raise machine.fail("the pickle makes more objects than its size allows")


def _opcodes(data: bytes) -> Iterator[tuple[str, Any, int]]:
    """Each opcode's name, argument and offset, like pickletools.genops, which refuses some strings
    of Python 2.
    """
    file = io.BytesIO(data)
    while True:
        at = file.tell()
        opcode = _CODES.get(file.read(1).decode("latin1"))
        if opcode is None:
            raise ValueError(
                "an opcode that does not exist" if at < len(data) else "they end early"
            )
        if opcode.name == "STOP":
            return
        if opcode.name == "STRING":
            yield opcode.name, _quoted(file.readline()), at
        else:
            yield opcode.name, opcode.arg.reader(file) if opcode.arg else None, at


def _quoted(line: bytes) -> bytes:
    line = line.strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise ValueError("a string without quotes")
    return line[1:-1].decode("unicode_escape").encode("latin1")


__all__ = ["load", "loads"]
