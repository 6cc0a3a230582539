"""Ops on sparse rows themselves."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from .infer import Spec
from .ragged import Ragged
from .registry import Array, SelectedRows, op
from .traits import StaysSparse, mixes


def _same(X: Spec) -> Spec:
    return X


def _rows(kind: str, X: Any) -> SelectedRows:
    if not isinstance(X, SelectedRows):
        raise EnforceNotMet(
            f"op '{kind}' takes sparse rows, such as the gradient of an embedding with is_sparse,"
            " not a plain array"
        )
    return X


@op(outs="Out", infer=_same, rows=mixes("X"), sparse=StaysSparse())
def merge_selected_rows(X: Array | SelectedRows):
    """Out = X with the values of equal rows added up, in ascending order of the rows. X and Out are
    sparse.
    """
    return _rows("merge_selected_rows", X).merged()


@op(outs="Out", infer=_same, rows=mixes("X"))
def get_tensor_from_selected_rows(X: Array | SelectedRows):
    """Out [n, width] = the values of the sparse X [height, width] with n rows, without row numbers."""
    rows = _rows("get_tensor_from_selected_rows", X)
    return _counted(rows) if rows.unique else rows.values


def _counted(x: SelectedRows) -> Ragged:
    """The values, with the spare entries marked as padding."""
    offsets = jnp.stack([jnp.zeros((), np.int32), x.count])
    return Ragged(x.values, (offsets,), (x.values.shape[0],), object(), padded=True, bare=True)
