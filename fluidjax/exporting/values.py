"""Values: the variables of a program in an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Value:
    """An array under a name of the graph.

    dtype: NumPy's name for the dtype. shape: -1 for open sizes, None if even the rank is unknown.
    const: the array itself if it is known. lengths: for rows of sequences, the number of rows of
    each, the outermost level first (docs/lod.md). many: a list of arrays (Fluid's tensor array)
    instead of one.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None
    const: np.ndarray | None = None
    lengths: tuple[Value, ...] = ()
    many: bool = False

    @property
    def rank(self) -> int:
        """The number of axes. Raises Lacking if it is open."""
        if self.shape is None:
            raise Lacking(f"the rank of '{self.name}' is not known", "declare its shape")
        return len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its shape. Raises Lacking if the rank is open."""
        return (-1,) * self.rank if self.shape is None else self.shape

    @property
    def is_float(self) -> bool:
        return self.dtype in ("float32", "float64", "float16", "bfloat16")

    def ragged(self, lengths: Sequence[Value]) -> Value:
        """The same rows with these lengths."""
        return replace(self, lengths=tuple(lengths))


class Lacking(Exception):
    """The format does not support an op in this use. why: one clause; remedy: what would help."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy
