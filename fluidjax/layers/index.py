"""Reading and writing by index, and facts about shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.dtypes import enum_of
from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, INTS, append, dtype_in, require, typed, variable
from .manip import slice as slice_


@located
def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Rows input[index]. overwrite: how the gradient treats repeated rows, an attribute of the op."""
    helper = LayerHelper("gather", input=input)
    dtype = helper.input_dtype()
    typed(index, "index", Variable, "gather")
    return append(helper, {"X": input, "Index": index}, {"Out": dtype}, {"overwrite": overwrite})


@located
def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """Out[i...] = input[index[i..., 0], index[i..., 1], ...]: the last dimension of `index` is an
    index.
    """
    helper = LayerHelper("gather_nd", name=name)
    typed(input, "input", Variable, "gather_nd")
    typed(index, "index", Variable, "gather_nd")
    return append(helper, {"X": input, "Index": index}, {"Out": input.dtype})


@located
def scatter(
    input: Variable,
    index: Variable,
    updates: Variable,
    name: str | None = None,
    overwrite: bool = True,
) -> Variable:
    """input with rows `index` replaced by `updates`; without overwrite these rows are the sums of
    their updates.
    """
    helper = LayerHelper("scatter", input=input, name=name)
    dtype = helper.input_dtype()
    typed(index, "index", Variable, "scatter")
    typed(updates, "updates", Variable, "scatter")
    return append(
        helper,
        {"X": input, "Ids": index, "Updates": updates},
        {"Out": dtype},
        {"overwrite": overwrite},
    )


@located
def scatter_nd_add(
    ref: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """ref plus `updates` at the indices in the last dimension of `index`; repeated indices add up."""
    for what, v in (("ref", ref), ("index", index), ("updates", updates)):
        typed(v, what, Variable, "scatter_nd_add")
    same = ref.dtype == updates.dtype
    require(
        same,
        f"scatter_nd_add's ref is {ref.desc.dtype} and its updates are {updates.desc.dtype}; they"
        " are of one dtype",
    )
    helper = LayerHelper("scatter_nd_add", name=name)
    return append(helper, {"X": ref, "Index": index, "Updates": updates}, {"Out": ref.dtype})


@located
def scatter_nd(index: Variable, updates: Variable, shape: Any, name: str | None = None) -> Variable:
    """scatter_nd_add to zeros of this shape."""
    from .tensor import zeros

    typed(updates, "updates", Variable, "scatter_nd")
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates, name)


@located
def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """The entries `index` (a vector) along dimension `dim`."""
    variable(input, "input", "index_select", (*FLOATS, *INTS))
    variable(index, "index", "index_select", INTS)
    return append(
        LayerHelper("index_select"),
        {"X": input, "Index": index},
        {"Out": input.dtype},
        {"dim": dim},
    )


@located
def index_sample(x: Variable, index: Variable) -> Variable:
    """Out[i, j] = x[i, index[i, j]]."""
    variable(x, "x", "index_sample", (*FLOATS, *INTS))
    variable(index, "index", "index_sample", INTS)
    return append(LayerHelper("index_sample"), {"X": x, "Index": index}, {"Out": x.dtype})


@located
def multiplex(inputs: Any, index: Variable) -> Variable:
    """Out[i] = inputs[index[i]][i]: each row from one of the variables; index: int32 [N, 1]."""
    helper = LayerHelper("multiplex")
    typed(inputs, "inputs", list, "multiplex")
    require(len(inputs) >= 2, "multiplex's inputs is a list of at least two variables")
    for i, v in enumerate(inputs):
        variable(v, f"inputs[{i}]", "multiplex", (*FLOATS, *INTS))
    variable(index, "index", "multiplex", INTS)
    return append(helper, {"X": inputs, "Ids": index}, {"Out": inputs[0].dtype})


@located
def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Ids within one of `nshards` equal ranges of index_num, from 0; ids of other shards become
    ignore_value.
    """
    variable(input, "input", "shard_index", ("int64",))
    require(
        0 <= shard_id < nshards,
        f"shard_index's shard_id lies in [0, {nshards}), {shard_id} does not",
    )
    helper = LayerHelper("shard_index")
    attrs = {
        "index_num": index_num,
        "nshards": nshards,
        "shard_id": shard_id,
        "ignore_value": ignore_value,
    }
    return append(helper, {"X": [input]}, {"Out": input.dtype}, attrs)


@located
def sequence_mask(
    x: Variable, maxlen: Any = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """Out[..., j] = 1 where j < x[...]; the last dimension is maxlen, or max(x) if that is None."""
    helper = LayerHelper("sequence_mask", name=name)
    typed(x, "x", Variable, "sequence_mask")
    inputs: dict[str, Any] = {"X": [x]}
    attrs = {"out_dtype": int(enum_of(dtype))}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    else:
        attrs["maxlen"] = -1 if maxlen is None else maxlen
    out = append(helper, inputs, {"Y": enum_of(dtype)}, attrs)
    out.stop_gradient = True
    return out


@located
def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Whole sequences [T, N, beams] from the ids and parents of each step of a beam search, read
    backwards.
    """
    variable(ids, "ids", "gather_tree", INTS)
    variable(parents, "parents", "gather_tree", INTS)
    return append(LayerHelper("gather_tree"), {"Ids": ids, "Parents": parents}, {"Out": ids.dtype})


@located
def where(condition: Variable) -> Variable:
    """The indices where `condition` is not 0: int64 [their number, rank of condition], in its
    order.
    """
    typed(condition, "condition", Variable, "where")
    return append(LayerHelper("where_index"), {"Condition": condition}, {"Out": "int64"})


@located
def nonzero(input: Variable, as_tuple: bool = False) -> Any:
    """where(input); as_tuple: the columns of that, each [n, 1]."""
    found = where(input)
    if not as_tuple:
        return found
    return (
        tuple(slice_(found, [1], [i], [i + 1]) for i in range(input.ndim))
        if input.ndim > 1
        else (found,)
    )


@located
def unique(x: Variable, dtype: Any = "int32") -> tuple[Variable, Variable]:
    """The values of a vector, each once, in the order of first appearance, and the index of each
    element there.

    dtype: that of the indices, int32 or int64.
    """
    typed(x, "x", Variable, "unique")
    kind = dtype_in(dtype, "dtype", "unique", INTS)
    return append(
        LayerHelper("unique"),
        {"X": x},
        {"Out": x.dtype, "Index": kind},
        {"dtype": int(enum_of(kind))},
    )


@located
def unique_with_counts(x: Variable, dtype: Any = "int32") -> tuple[Variable, Variable, Variable]:
    """unique, with the count of each value. dtype: that of indices and counts. Raises
    FluidTypeError for another one.
    """
    typed(x, "x", Variable, "unique_with_counts")
    kind = dtype_in(dtype, "dtype", "unique_with_counts", INTS)
    outs = {"Out": x.dtype, "Index": kind, "Count": kind}
    return append(LayerHelper("unique_with_counts"), {"X": x}, outs, {"dtype": int(enum_of(kind))})


@located
def shape(input: Variable) -> Variable:
    """The shape of `input` when the program runs: int32 [rank]."""
    variable(input, "input", "shape", (*FLOATS, *INTS))
    return append(LayerHelper("shape"), {"Input": input}, {"Out": "int32"})


@located
def rank(input: Variable) -> Variable:
    """The number of dimensions: an int32 scalar."""
    from .tensor import assign

    typed(input, "input", Variable, "rank")
    return assign(np.array(input.ndim, "int32"))


@located
def size(input: Variable) -> Variable:
    """The number of elements when the program runs: int64 [1]."""
    typed(input, "input", Variable, "size")
    return append(LayerHelper("size"), {"Input": input}, {"Out": "int64"})


__all__ = [
    "gather", "gather_nd", "gather_tree", "index_sample", "index_select", "multiplex", "nonzero", "rank", "scatter", "scatter_nd",
    "scatter_nd_add", "sequence_mask", "shape", "shard_index", "size", "unique", "unique_with_counts", "where",
]  # fmt: skip
