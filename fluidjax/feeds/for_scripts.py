"""Two functions of Fluid's executor module that old scripts call, although their names are
private.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ArgumentError, FluidTypeError, FluidValueError, near
from ..lod_tensor import LoDTensor
from ..state.scope import Scope, chosen
from .fetching import refuse_lod, to_numpy


def fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """The value of a variable in a scope (default: the global one), as a NumPy array or as a
    tensor.

    Raises ArgumentError for a name that is not a string, FluidValueError for a name that the scope
    lacks, EnforceNotMet if a tensor with a LoD is requested as an array.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"_fetch_var takes a name, not {type(name).__name__}")
    scope = chosen(scope)
    var = scope.find_var(name)
    if var is None:
        raise FluidValueError(
            f"the scope has no variable {name!r}{near(name, scope.local_var_names())}; persistable"
            " ones stay after a run"
        )
    if return_numpy and var.lod:
        raise refuse_lod(name)
    return to_numpy(var.get_tensor()) if return_numpy else var.get_tensor()


def as_lodtensor(data: Any, place: Any, dtype: Any = None) -> LoDTensor:
    """A tensor of an array without sequences, or of a number of the dtype given.

    Raises FluidTypeError for a list, and for a number without a dtype.
    """
    if isinstance(data, list) or (np.isscalar(data) and dtype is None):
        raise FluidTypeError(
            "_as_lodtensor takes an array, or a number and its dtype, not"
            f" {data!r:.60}; create_lod_tensor makes tensors of lists"
        )
    tensor = LoDTensor()
    tensor.set(np.array([data], numpy_dtype(name_of(dtype))) if np.isscalar(data) else data, place)
    return tensor
