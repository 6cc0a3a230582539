"""Dicts of arrays in the pickle format of ``.pdparams`` and ``.pdopt`` files, without running a pickle.

Reading interprets the few opcodes of which such a file consists; what they name is compared with a short list, never
imported or called. Whatever else a file asks for is refused. Writing emits the same opcodes, in the spelling that
Paddle 1.8.5's NumPy knows.
"""

from __future__ import annotations

import math
import pickletools
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ParseError

NAMES = "StructuredToParameterName@@"  # a table of names that paddle.save of 2.x adds
_DTYPES = frozenset({"f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "b1"})


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass
class _Dtype:
    code: str


@dataclass
class _Array:
    """An array that is being built; `value` is set when its state has come."""

    value: np.ndarray | None = None


_MARK = object()
_ENCODE, _NDARRAY, _DTYPE, _ORDERED = "_codecs.encode", "numpy.ndarray", "numpy.dtype", "collections.OrderedDict"
_RECONSTRUCT = frozenset({"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"})
_BYTES = "__builtin__.bytes"  # how protocol 2 spells no bytes
_KNOWN = _RECONSTRUCT | {_ENCODE, _NDARRAY, _DTYPE, _ORDERED, _BYTES}


@dataclass
class _Machine:
    source: str
    room: int  # bytes that may still be made: a value that is stored once may be recalled any number of times
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
        if not self.stack:
            raise self.fail("the pickle takes a value where there is none")
        return self.stack[-1]

    def recall(self, key: int) -> None:
        if key not in self.memo:
            raise self.fail(f"the pickle recalls {key}, which it never stored")
        self.stack.append(self.memo[key])

    def global_(self, name: str) -> None:
        if name not in _KNOWN:
            raise self.fail(f"the pickle wants {name[:80]!r}; only dicts of NumPy arrays are read")
        self.stack.append(_Global(name))

    def stack_global(self) -> None:
        module, name = self.several(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.fail("the name of a global is no string")
        self.global_(f"{module}.{name}")

    def put(self, items: list[Any]) -> None:
        target = self.top()
        if not isinstance(target, dict) or len(items) % 2:
            raise self.fail("the pickle stores items in what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                raise self.fail(f"a key is no string but {type(key).__name__}")
            target[key] = value

    def reduce(self) -> None:
        function, args = self.several(2)
        if not isinstance(function, _Global) or not isinstance(args, tuple):
            raise self.fail("the pickle calls something that is no known function")
        self.stack.append(self._call(function.name, args))

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        if name == _ENCODE and len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"):
            self.spend(len(args[0]))
            try:
                return args[0].encode("latin1")
            except UnicodeEncodeError:
                raise self.fail("text that stands for bytes is no Latin-1") from None
        if name in _RECONSTRUCT and len(args) == 3 and args[0] == _Global(_NDARRAY):
            return _Array()
        if name == _DTYPE and args and isinstance(args[0], str) and args[0] in _DTYPES:
            return _Dtype(args[0])
        if name in (_ORDERED, _BYTES) and args == ():
            return {} if name == _ORDERED else b""
        raise self.fail(f"the pickle calls {name} with other arguments than an array of numbers needs")

    def build(self) -> None:
        target, state = self.several(2)
        if isinstance(target, _Dtype) and isinstance(state, tuple) and len(state) >= 2 and state[1] in ("<", "|", "="):
            self.stack.append(target)
        elif isinstance(target, _Array) and isinstance(state, tuple) and len(state) == 5:
            target.value = self._array(*state[1:])
            self.stack.append(target)
        else:
            raise self.fail("the pickle sets a state that is not that of an array of numbers (little-endian)")

    def _array(self, shape: Any, dtype: Any, fortran: Any, data: Any) -> np.ndarray:
        if isinstance(data, str):
            data = self._call(_ENCODE, (data, "latin1"))
        sizes = isinstance(shape, tuple) and len(shape) <= 64 and all(type(n) is int and 0 <= n < 2**63 for n in shape)
        if not sizes or not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise self.fail("the state of an array is not shape, dtype, order and bytes")
        kind = np.dtype(dtype.code)
        if math.prod(shape) * kind.itemsize != len(data):
            raise self.fail(f"an array {list(shape)} of {kind.name} has {len(data)} bytes")
        self.spend(len(data))
        try:
            return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C").copy()
        except ValueError as error:
            raise self.fail(f"an array {list(shape)}: {error}") from None


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
        ("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE",
         "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "SHORT_BINSTRING", "BINSTRING", "STRING"), _push,
    ),
    "NONE": _constant(lambda: None),
    "NEWTRUE": _constant(lambda: True),
    "NEWFALSE": _constant(lambda: False),
    "EMPTY_DICT": _constant(dict),
    "EMPTY_TUPLE": _constant(tuple),
    "MARK": lambda m, arg: m.stack.append(_MARK),
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
    "SETITEM": lambda m, arg: m.put(list(m.several(2))),
    "SETITEMS": lambda m, arg: m.put(m.to_mark()),
}  # fmt: skip


def read(data: bytes, source: str) -> dict[str, np.ndarray]:
    """The arrays of a pickled dict. Raises ParseError, naming file and offset, for anything else."""
    machine = _Machine(source, 2 * len(data))  # bytes that are spelled as text are made twice
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pickletools warns of odd escapes in text
        _interpret(data, machine)
    if len(machine.stack) != 1 or not isinstance(machine.stack[0], dict):
        raise machine.fail("the pickle holds no dict")
    return dict(_arrays(machine.stack[0], machine))


def _interpret(data: bytes, machine: _Machine) -> None:
    most = 1000 + len(data) // 2  # the smallest array takes 40 bytes of file and 9 places
    try:
        for opcode, arg, position in pickletools.genops(data):
            machine.at = position or 0
            if opcode.name == "STOP":
                break
            if opcode.name not in _RUN:
                raise machine.fail(f"opcode {opcode.name} does not belong into a dict of NumPy arrays")
            _RUN[opcode.name](machine, arg)
            if len(machine.stack) + len(machine.memo) > most:
                raise machine.fail("the pickle makes more objects than arrays of this size need")
    except (ValueError, OverflowError, struct.error, UnicodeError) as error:
        if isinstance(error, ParseError):
            raise
        raise machine.fail(f"these bytes are no pickle: {str(error)[:200]}") from None


def _arrays(found: Mapping[str, Any], machine: _Machine) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in found.items():
        if name == NAMES:
            continue
        if not isinstance(value, _Array) or value.value is None:
            raise machine.fail(f"{name[:80]!r} holds no array of numbers")
        yield name, value.value


def write(arrays: Mapping[str, np.ndarray]) -> Iterator[bytes | memoryview]:
    """The pickle of a dict of arrays, in pieces, as Paddle 1.8.5 and later load it."""
    yield b"\x80\x03}("
    for name, value in arrays.items():
        array = np.ascontiguousarray(value).reshape(value.shape)
        yield _text(name) + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        yield b"(K\x01(" + b"".join(map(_integer, array.shape)) + b"t"
        yield b"cnumpy\ndtype\n" + _text(_code(array)) + b"K\x00K\x01\x87R"
        order = "<" if array.dtype.itemsize > 1 else "|"
        yield b"(K\x03" + _text(order) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        size = array.nbytes
        yield b"B" + struct.pack("<I", size) if size < 2**32 else b"\x8e" + struct.pack("<Q", size)
        yield array.tobytes()
        yield b"tb"
    yield b"u."


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _integer(value: int) -> bytes:
    if value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x08" + struct.pack("<q", value)


def _code(array: np.ndarray) -> str:
    """The array's dtype as NumPy spells it; bfloat16 travels as uint16, as in Paddle."""
    return "u2" if array.dtype.name == "bfloat16" else array.dtype.str[1:]
