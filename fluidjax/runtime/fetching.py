"""Fetched values as NumPy arrays that old scripts can use, or as tensors with their LoD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import EnforceNotMet
from ..ops.ragged import Ragged
from ..ops.selected import SelectedRows
from .bucketing import StepTensor, true_rows


class OneElement(np.ndarray):
    """An array with one element that float() and int() take, whatever its rank.

    Fluid's losses have shape [1]; scripts write ``float(loss)`` and ``"%.3f" % loss``, which newer NumPy refuses for
    arrays that have dimensions. Otherwise a plain array.
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __array_finalize__(self, obj: Any) -> None:
        """Nothing to carry over."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of arithmetic are plain arrays."""
        return array[()] if return_scalar else np.asarray(array)


def to_numpy(value: Any) -> np.ndarray:
    """A writable copy of a device array; of padded rows, the true ones; of sparse rows, the whole table."""
    if type(value) is SelectedRows:
        array = value.table()
    else:
        array = true_rows(value) if type(value) is Ragged else np.array(value)
    return array.view(OneElement) if array.size == 1 and array.ndim else array


def to_tensor(value: Any) -> Any:
    """What return_numpy=False gives: arrays and sparse rows as they are, ragged values as LoDTensors, without padding."""
    if type(value) is SelectedRows:
        return value.on_host()
    if type(value) is not Ragged:
        return value
    return true_rows(value) if value.bare else StepTensor(value)


def refuse_lod(name: str) -> EnforceNotMet:
    """The error for a ragged result that is asked for as an array."""
    return EnforceNotMet(
        f"Some of your fetched tensors hold LoD information: {name!r} can not be completely cast to Python ndarray; set the "
        "parameter 'return_numpy' as 'False' to get it as a LoDTensor"
    )


def of_rank(values: Sequence[Any], count: int) -> list[Any]:
    """What one rank fetches; one of several with a first dimension, so that the ranks' can be concatenated."""
    if count == 1:
        return list(values)
    values = [v.dense() if isinstance(v, SelectedRows) else v for v in values]
    return [v if isinstance(v, Ragged) or v.ndim else v[None] for v in values]
