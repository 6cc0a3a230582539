"""Converts fetched values to NumPy arrays that old scripts can use, or to tensors with their
LoD.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..errors import EnforceNotMet, FluidTypeError
from ..lod_tensor import LoDTensor, has_lod
from ..ops.ragged import Ragged
from ..ops.selected import SelectedRows
from ..ops.tensor_array import Listed, Stacked, TensorArray
from .bucketing import StepTensor, true_rows


class OneElement(np.ndarray):
    """An array with one element. float() and int() accept it at any rank, and so they do the
    results of its arithmetic.

    Fluid's losses have shape [1]; scripts write ``total += loss``, ``"%.3f" % (total / n)``,
    ``math.exp(loss)`` or ``best[0] = loss * 2``, which newer NumPy refuses for arrays that have
    dimensions. Results with several elements are plain arrays.
    """

    def __float__(self) -> float:
        return float(self.item()) if self.size == 1 else super().__float__()

    def __int__(self) -> int:
        return int(self.item()) if self.size == 1 else super().__int__()

    def __complex__(self) -> complex:
        return complex(self.item()) if self.size == 1 else super().__complex__()

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """As ndarray.round, but the result keeps this class."""
        return one_element(np.asarray(self).round(decimals, out))

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __array_finalize__(self, obj: Any) -> None:
        """Does nothing, because there are no attributes to copy."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Wraps the result of a ufunc."""
        return array[()] if return_scalar else one_element(array)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Wraps the result of a NumPy function such as np.round or np.concatenate."""
        result = super().__array_function__(func, types, args, kwargs)
        if isinstance(result, list | tuple):
            made = [one_element(v) if isinstance(v, np.ndarray) else v for v in result]
            return (
                made if type(result) is list else tuple(made) if type(result) is tuple else result
            )
        return one_element(result) if isinstance(result, np.ndarray) else result


def one_element(array: np.ndarray) -> np.ndarray:
    """A OneElement if there is one element and at least one dimension, else a plain array."""
    return array.view(OneElement) if array.size == 1 and array.ndim else np.asarray(array)


def to_numpy(value: Any) -> Any:
    """A writable NumPy copy of a device array; for padded rows the true rows, for sparse rows the
    whole table. Random keys are returned unchanged, because NumPy has no such dtype.
    """
    if type(value) is SelectedRows:
        array = value.table()
    elif isinstance(value, jax.Array) and not isinstance(value.dtype, np.dtype):
        return value
    else:
        array = true_rows(value) if type(value) is Ragged else np.array(value)
    return one_element(array)


def to_tensor(value: Any) -> Any:
    """The result for return_numpy=False: a LoDTensor, without padding for ragged values; sparse
    rows are returned unchanged.
    """
    if type(value) is SelectedRows:
        return value.on_host()
    if type(value) is not Ragged:
        return value if isinstance(value, LoDTensor) else LoDTensor.of(value)
    return LoDTensor.of(true_rows(value)) if value.bare else StepTensor(value)


def shown(value: Any, return_numpy: bool) -> Any:
    """A fetched value as the caller gets it. A tensor array becomes a list of its entries, with
    None (or a tensor without a value) for entries that nothing wrote.
    """
    kind = type(value)
    if kind is list:
        return [shown(one, return_numpy) for one in value]
    if kind is Listed or kind is Stacked:
        return shown(entries(value), return_numpy)
    if value is None:
        return None if return_numpy else LoDTensor()
    return to_numpy(value) if return_numpy else to_tensor(value)


def entries(array: TensorArray) -> list[Any]:
    """The entries of an array that is no longer traced."""
    if isinstance(array, Listed):
        return list(array.items)
    written = np.asarray(array.written)
    count = int(np.max(np.nonzero(written)[0], initial=-1)) + 1
    return [
        jax.tree.map(lambda rows, k=k: rows[k], array.rows) if written[k] else None
        for k in range(count)
    ]


def refuse_lod(name: str) -> EnforceNotMet:
    """The error for a ragged result that is fetched as an array."""
    return EnforceNotMet(
        f"Some of your fetched tensors hold LoD information: {name!r} can not be completely cast to"
        " Python ndarray; set the parameter 'return_numpy' as 'False' to get it as a LoDTensor"
    )


def as_numpy(tensor: Any) -> Any:
    """The array of a tensor that was fetched with return_numpy=False, or the arrays of a list of
    them.

    Raises EnforceNotMet for a tensor that holds sequences, FluidTypeError for anything but a
    tensor.
    """
    if isinstance(tensor, list | tuple):
        return [as_numpy(one) for one in tensor]
    if isinstance(tensor, LoDTensor):
        if has_lod(tensor):
            raise refuse_lod("as_numpy's tensor")
        return np.asarray(tensor)
    if not isinstance(tensor, jax.Array | np.ndarray):
        raise FluidTypeError(
            f"as_numpy takes a tensor, or a list of them, not {type(tensor).__name__}"
        )
    return to_numpy(tensor)


def of_rank(values: Sequence[Any], count: int) -> list[Any]:
    """The fetches of one rank. If there are several ranks each fetch gets a first dimension, so
    that the ranks' fetches can be concatenated.
    """
    if count == 1:
        return list(values)
    values = [v.dense() if isinstance(v, SelectedRows) else v for v in values]
    return [
        v if isinstance(v, Ragged) else jax.tree.map(lambda a: a if a.ndim else a[None], v)
        for v in values
    ]
