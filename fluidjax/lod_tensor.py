"""LoDTensor: an array on the host with Fluid's accessors, and the tensor that a scope variable shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import FluidTypeError, UnsupportedError


class LoDTensor:
    """A dense array with Fluid's methods.

    Sequence offsets (``lod``) other than none are not supported yet and are refused where they are set.
    """

    def __init__(self, value: Any = None) -> None:
        self._array: Any = None if value is None else np.asarray(value)

    def set(self, array: Any, place: Any = None) -> None:
        """Hold a copy of `array`. `place` says nothing here: the executor moves data where it is needed."""
        self._write(np.array(array))

    def _read(self) -> Any:
        return self._array

    def _write(self, array: Any) -> None:
        self._array = array

    def _value(self) -> Any:
        value = self._read()
        if value is None:
            raise FluidTypeError("the tensor holds no value yet")
        return value

    def shape(self) -> list[int]:
        return list(np.shape(self._value()))

    def _dtype(self) -> str:
        return self._value().dtype.name

    def lod(self) -> list[list[int]]:
        return []

    recursive_sequence_lengths = lod

    def set_lod(self, lod: list[list[int]]) -> None:
        if lod:
            raise UnsupportedError("ragged tensors (LoD) are not supported yet; pad the sequences and feed an array")

    set_recursive_sequence_lengths = set_lod

    def has_valid_recursive_sequence_lengths(self) -> bool:
        return True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._value(), dtype=dtype)

    def __repr__(self) -> str:
        value = self._read()
        return "LoDTensor(empty)" if value is None else f"LoDTensor({value.dtype.name}{list(value.shape)})"


class ScopeTensor(LoDTensor):
    """The tensor of a scope variable: it reads and writes what the scope holds."""

    def __init__(self, var: Any) -> None:
        self._var = var

    def _read(self) -> Any:
        return self._var.value

    def _write(self, array: Any) -> None:
        self._var.value = array
