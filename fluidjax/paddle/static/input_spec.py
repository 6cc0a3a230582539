"""paddle.static.InputSpec: the description of a net's input."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import name_of
from ...errors import FluidTypeError, FluidValueError
from ...graph.variable import Variable, as_shape


class InputSpec:
    """Shape (None or -1: any size), dtype and name of an input; stop_gradient: whether gradients
    end at it.

    Two are equal if shape, dtype, name and stop_gradient are. Raises FluidTypeError for a shape
    that is not a list of sizes.
    """

    def __init__(
        self,
        shape: Any,
        dtype: Any = "float32",
        name: str | None = None,
        stop_gradient: bool = False,
    ) -> None:
        self.shape = as_shape(shape)
        self.dtype = dtype if isinstance(dtype, str) else name_of(dtype)
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The InputSpec of a variable, under its name or another. Raises FluidTypeError unless it
        is a variable.
        """
        if not isinstance(tensor, Variable):
            raise FluidTypeError(
                f"InputSpec.from_tensor takes a variable, not {type(tensor).__name__}"
            )
        return cls(tensor.shape, tensor.desc.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The InputSpec of an array."""
        return cls(ndarray.shape, ndarray.dtype.name, name)

    def batch(self, batch_size: int | Sequence[int]) -> InputSpec:
        """Prepend a dimension of this size; returns the same object.

        Raises FluidTypeError unless it is an integer, FluidValueError for a list without exactly
        one.
        """
        if isinstance(batch_size, list | tuple):
            if len(batch_size) != 1:
                raise FluidValueError(f"InputSpec.batch takes one size, not {list(batch_size)}")
            batch_size = batch_size[0]
        if not isinstance(batch_size, numbers.Integral):
            raise FluidTypeError(f"InputSpec.batch takes a whole number, not {batch_size!r}")
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Remove the first dimension; returns the same object. Raises FluidValueError if there is
        none.
        """
        if not self.shape:
            raise FluidValueError(
                "InputSpec.unbatch takes the first dimension away, and this shape has none"
            )
        self.shape = self.shape[1:]
        return self

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.name, self.stop_gradient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name},"
            f" stop_gradient={self.stop_gradient})"
        )


__all__ = ["InputSpec"]
