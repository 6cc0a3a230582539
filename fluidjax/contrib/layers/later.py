"""Layers that fluid.contrib had in Paddle 2.0: sparse_embedding, index_sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.absent import reporter
from ...base.loc import located
from ...errors import UnsupportedError
from ...graph.variable import Variable
from ...layers.index import index_sample
from ...layers.nn import embedding
from ..missing import HINTS


@located
def sparse_embedding(
    input: Variable, size: Any, padding_idx: int | None = None, is_test: bool = False, entry: Any = None, param_attr: Any = None,
    dtype: str = "float32",
) -> Variable:  # fmt: skip
    """The rows of a table [size[0], size[1]] at `input`, like layers.embedding, with sparse
    gradients.

    In a job with pservers these hold the table. padding_idx: a row that reads as zeros. is_test:
    ignored. entry: the condition for creating a row; raises UnsupportedError, because all rows
    exist from the start.
    """
    if entry is not None:
        raise UnsupportedError(
            "sparse_embedding: entry is not supported: a table has all rows from the start;"
            " leave it out"
        )
    return embedding(
        input,
        size,
        is_sparse=True,
        is_distributed=True,
        padding_idx=padding_idx,
        param_attr=param_attr,
        dtype=dtype,
    )


__all__ = ["index_sample", "sparse_embedding"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.layers.later", __all__, HINTS)
