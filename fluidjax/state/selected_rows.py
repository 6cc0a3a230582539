"""core.SelectedRows: some rows of a table, on the host, as scripts fill and read them. Steps
compute with ops.selected.SelectedRows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import FluidTypeError, FluidValueError
from ..lod_tensor import LoDTensor
from ..ops.selected import SelectedRows as Rows


class Numbers(np.ndarray):
    """The row numbers as an array; a call returns them as a list."""

    def __call__(self) -> list[int]:
        return self.tolist()


class Height(int):
    """The number of rows of the table; a call returns it."""

    def __call__(self) -> int:
        return int(self)


class SelectedRows:
    """Row ``rows()[i]`` of a table of ``height()`` rows is row i of the tensor ``get_tensor()``;
    all others are zero.

    rows: the numbers of the rows; they may repeat. Raises FluidTypeError for other than integers.
    """

    def __init__(self, rows: Sequence[int] = (), height: int = 0) -> None:
        self._tensor = LoDTensor()
        self.set_rows(rows)
        self.set_height(height)

    @classmethod
    def of(cls, value: Rows) -> SelectedRows:
        """Rows that a step has computed, without the padding entries."""
        there = value.on_host()
        made = cls((), there.height)
        made._rows = there.rows
        made._tensor.set(there.values)
        return made

    @property
    def rows(self) -> Numbers:
        return self._rows.view(Numbers)

    @property
    def height(self) -> Height:
        return Height(self._height)

    @property
    def values(self) -> np.ndarray:
        return np.asarray(self._tensor)

    def get_tensor(self) -> LoDTensor:
        """The values as a tensor, one row for each number of `rows`."""
        return self._tensor

    def set_rows(self, rows: Sequence[int]) -> None:
        """Set the numbers of the rows."""
        given = np.asarray(rows)
        if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
            raise FluidTypeError(f"SelectedRows' rows are a list of integers, not {rows!r}")
        self._rows: np.ndarray = given.astype(np.int64).reshape(-1)

    def set_height(self, height: int) -> None:
        """Set the number of rows of the table."""
        if not isinstance(height, int | np.integer):
            raise FluidTypeError(f"SelectedRows' height is an integer, not {height!r}")
        self._height = int(height)

    def numel(self) -> int:
        """The number of elements of the tensor."""
        return self.values.size

    def sync_index(self) -> None:
        """Does nothing, because rows are found by their numbers."""

    def stepped(self) -> Rows:
        """The value that a step reads. Raises FluidValueError unless there is one row of values for
        each number, and each number is a row of the table.
        """
        rows, values = self._rows, self.values
        if len(rows) != (values.shape or (0,))[0]:
            raise FluidValueError(
                f"SelectedRows has {len(rows)} rows, but its tensor has shape {list(values.shape)};"
                " give the tensor a row for each"
            )
        if len(rows) and not (rows.min() >= 0 and rows.max() < self._height):
            raise FluidValueError(
                f"SelectedRows has the rows {rows.min()} to {rows.max()} of a table of"
                f" {self._height}; call set_height"
            )
        return Rows(rows, values, self._height)

    def table(self) -> np.ndarray:
        """The whole table."""
        return self.stepped().table()
