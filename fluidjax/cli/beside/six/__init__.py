"""The names of six that scripts use, if six itself is not installed. Only Python 3 is supported."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO, StringIO
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from . import moves as moves

_Class = TypeVar("_Class", bound=type)

PY2, PY3, PY34 = False, True, True
string_types: tuple[type, ...] = (str,)
integer_types: tuple[type, ...] = (int,)
class_types: tuple[type, ...] = (type,)
text_type, binary_type = str, bytes
MAXSIZE = sys.maxsize
unichr, int2byte, byte2int = chr, lambda number: bytes([number]), operator.itemgetter(0)
indexbytes, iterbytes = operator.getitem, iter
next = advance_iterator = next
wraps = functools.wraps


def iterkeys(d: Mapping[Any, Any], **kw: Any) -> Iterator[Any]:
    """The keys of a mapping."""
    return iter(d.keys(**kw))


def itervalues(d: Mapping[Any, Any], **kw: Any) -> Iterator[Any]:
    """The values of a mapping."""
    return iter(d.values(**kw))


def iteritems(d: Mapping[Any, Any], **kw: Any) -> Iterator[tuple[Any, Any]]:
    """The keys of a mapping with their values."""
    return iter(d.items(**kw))


viewkeys, viewvalues, viewitems = dict.keys, dict.values, dict.items


def b(s: str) -> bytes:
    """A literal's bytes."""
    return s.encode("latin-1")


def u(s: str) -> str:
    """The text itself."""
    return s


def ensure_binary(s: str | bytes, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    """The bytes of a text or of bytes. Raises TypeError for anything else."""
    if not isinstance(s, str | bytes):
        raise TypeError(f"not expecting type '{type(s)}'")
    return s.encode(encoding, errors) if isinstance(s, str) else s


def ensure_str(s: str | bytes, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a text or of bytes. Raises TypeError for anything else."""
    if not isinstance(s, str | bytes):
        raise TypeError(f"not expecting type '{type(s)}'")
    return s.decode(encoding, errors) if isinstance(s, bytes) else s


ensure_text = ensure_str


def add_metaclass(metaclass: Any) -> Callable[[_Class], _Class]:
    """A decorator that recreates a class as an instance of `metaclass`."""

    def made(cls: _Class) -> _Class:
        own = {
            k: v
            for k, v in vars(cls).items()
            if k not in ("__dict__", "__weakref__", *getattr(cls, "__slots__", ()))
        }
        return metaclass(cls.__name__, cls.__bases__, own)

    return made


def with_metaclass(meta: Any, *bases: type) -> Any:
    """A base whose subclasses are classes of `meta` over `bases`."""

    class Standing(type):
        def __new__(cls, name: str, _: Any, own: dict[str, Any]) -> Any:
            return meta(name, bases, own)

    return type.__new__(Standing, "base", (), {})


def reraise(tp: Any, value: BaseException | None, tb: TracebackType | None = None) -> NoReturn:
    """Raise an exception with a traceback."""
    raise (tp() if value is None else value).with_traceback(tb)


def raise_from(value: BaseException, from_value: BaseException | None) -> NoReturn:
    """Raise one exception from another."""
    raise value from from_value


def print_(*args: Any, **kw: Any) -> None:
    """print."""
    print(*args, **kw)


__all__ = [
    "MAXSIZE", "PY2", "PY3", "PY34", "BytesIO", "StringIO", "add_metaclass", "advance_iterator", "b", "binary_type", "byte2int",
    "class_types", "ensure_binary", "ensure_str", "ensure_text", "indexbytes", "int2byte", "integer_types", "iterbytes",
    "iteritems", "iterkeys", "itervalues", "moves", "next", "print_", "raise_from", "reraise", "string_types", "text_type", "u", "unichr",
    "viewitems", "viewkeys", "viewvalues", "with_metaclass", "wraps",
]  # fmt: skip
