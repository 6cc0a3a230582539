"""fluid.data, fluid.embedding and fluid.one_hot: the forms that take ids and shapes without a last
dimension of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base.loc import located
from .graph.variable import Variable
from .layer_helper import LayerHelper
from .layers._build import typed
from .layers.nn_dense import lookup, one_hot_of


@located
def data(
    name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0
) -> Variable:
    """A variable of the main program that is fed, of exactly this shape (None or -1: any size).

    The executor refuses a feed of another shape or dtype. Raises FluidTypeError if name or shape is
    of another type.
    """
    helper = LayerHelper("data", name=name)
    typed(name, "name", (str, bytes), "data")
    typed(shape, "shape", (list, tuple), "data")
    for n in shape:
        typed(n, "shape's dimension", (int, type(None)), "data")
    return helper.create_global_variable(
        name=name,
        shape=shape,
        dtype=dtype,
        stop_gradient=True,
        lod_level=lod_level,
        is_data=True,
        need_check_feed=True,
    )


@located
def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Rows of a [height, width] table: ids [...] (int64) give [..., width]. Arguments as in
    layers.embedding.
    """
    return lookup(
        "lookup_table_v2",
        "embedding",
        input,
        size,
        is_sparse,
        is_distributed,
        padding_idx,
        param_attr,
        dtype,
    )


@located
def one_hot(input: Variable, depth: Any, allow_out_of_range: bool = False) -> Variable:
    """Out[..., k] = 1 where input[...] == k, else 0: ids [...] give float32 [..., depth].

    depth: an integer or a variable of one. allow_out_of_range: such ids give zeros instead of an
    error.
    """
    typed(input, "input", Variable, "one_hot")
    typed(depth, "depth", (int, Variable), "one_hot")
    return one_hot_of(LayerHelper("one_hot_v2"), input, depth, allow_out_of_range, stop=False)


__all__ = ["data", "embedding", "one_hot"]
