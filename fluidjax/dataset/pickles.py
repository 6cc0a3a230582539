"""Pickles of plain values, read without running what they name.

Numbers, texts, bytes, lists, tuples, dicts and NumPy arrays of numbers are read. What else a file names is compared with a
short list and refused; nothing is imported, and what NumPy's own pickles call is done by stand-ins that check what they are given.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import IO, Any

import numpy as np

from ..errors import ParseError

_KINDS = frozenset({"f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})


class _Refused(Exception):
    """What a pickle asks for is not plain data."""


class _Dtype:
    """Stands for a dtype of numbers."""

    def __init__(self, code: Any = None, *more: Any) -> None:
        code = code.decode("latin1") if isinstance(code, bytes) else code
        if code not in _KINDS:
            raise _Refused(f"a dtype {str(code)[:40]!r}")
        self.code, self.order = code, "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        order = order.decode("latin1") if isinstance(order, bytes) else order
        if order not in ("<", ">", "|", "="):
            raise _Refused("a dtype of parts")
        self.order = order

    def real(self) -> np.dtype[Any]:
        return np.dtype(self.code).newbyteorder(self.order)


class _Array:
    """Stands for an array until its state has come."""

    value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise _Refused("an array of another make")
        _, shape, dtype, fortran, data = state
        whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if not whole or not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise _Refused("an array of something else than numbers")
        real = dtype.real()
        if len(shape) > 32 or math.prod(shape) * real.itemsize != len(data):
            raise _Refused(f"an array of shape {str(shape)[:60]} with {len(data)} bytes")
        self.value = np.frombuffer(data, real).reshape(shape, order="F" if fortran else "C").astype(real.newbyteorder("="))


class _Name:
    """Stands for what a pickle names. It can be called, and nothing about it can be changed."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        raise _Refused(f"to change {self.name}")

    def __call__(self, *args: Any) -> Any:
        if self.name == "numpy.dtype":
            return _Dtype(*args)
        if self.name.endswith("multiarray._reconstruct") and args and isinstance(args[0], _Name) and args[0].name == "numpy.ndarray":
            return _Array()
        if self.name == "_codecs.encode" and len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"):
            return args[0].encode("latin1")
        if self.name.endswith(".bytes") and not args:
            return b""
        raise _Refused(f"to call {self.name} with other arguments than an array of numbers needs")


_KNOWN = frozenset(
    "numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct numpy.ndarray numpy.dtype _codecs.encode "
    "__builtin__.bytes builtins.bytes".split()
)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _KNOWN:
            raise _Refused(f"{module}.{name}"[:80])
        return _Name(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("a reference to something outside")


def load(file: IO[bytes], name: str | None = None) -> Any:
    """The value in a pickle; strings of Python 2 are bytes. Raises ParseError, naming the file, for anything that is not plain data."""
    return loads(file.read(), name or str(getattr(file, "name", "the pickle")))


def loads(data: bytes, name: str = "the pickle") -> Any:
    """As load, of bytes."""
    try:
        return _real(_Reader(io.BytesIO(data), encoding="bytes").load(), {})
    except _Refused as refused:
        raise ParseError(f"{name} is a pickle that wants {refused}; only numbers, texts, arrays and containers of them are read") from None
    except MemoryError:
        raise ParseError(f"{name} is a pickle of more than there is memory for") from None
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise ParseError(f"{name} is no pickle that can be read: {type(error).__name__}: {str(error)[:100]}") from None


def _real(value: Any, done: dict[int, Any]) -> Any:
    """With arrays in the place of stand-ins. done: what became of containers; None while one is looked at.

    Raises _Refused for containers that contain themselves, and for what is no plain data.
    """
    if isinstance(value, _Array):
        if value.value is None:
            raise _Refused("an array without numbers")
        return value.value
    if isinstance(value, list | tuple | dict):
        key = id(value)
        if key not in done:
            done[key] = None
            if isinstance(value, dict):
                done[key] = {_real(k, done): _real(v, done) for k, v in value.items()}
            else:
                done[key] = type(value)([_real(v, done) for v in value])
        if done[key] is None:
            raise _Refused("containers within themselves")
        return done[key]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    raise _Refused(f"a {type(value).__name__}")


__all__ = ["load", "loads"]
