"""Layers on rank tables: sequences by descending length, split by time and joined again; and rows
split by a mask.
"""

from __future__ import annotations

from typing import Any

from .. import unique_name
from ..base.dtypes import VarType
from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import append, typed, variable


@located
def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """A table of the sequences of a LoD level of x by descending length; equal ones keep their
    order.
    """
    typed(x, "x", (Variable, list), "lod_rank_table")
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(
        type=VarType.LOD_RANK_TABLE, name=unique_name.generate("lod_rank_table")
    )
    helper.append_op(
        type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level}
    )
    return table


@located
def max_sequence_len(rank_table: Variable) -> Variable:
    """The length of the longest sequence of a table, int64 [1]."""
    _table(rank_table, "rank_table", "max_sequence_len")
    return append(
        LayerHelper("max_seqence_len"),
        {"RankTable": rank_table},
        {"Out": "int64"},
        kind="max_sequence_len",
    )


@located
def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """An array whose entry t holds row t of each sequence of x that has one, by descending length.

    If x has a further LoD level, it is sequence t instead of row t.
    """
    variable(x, "x", "lod_tensor_to_array")
    _table(table, "table", "lod_tensor_to_array")
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(
        name=unique_name.generate("lod_tensor_to_array"),
        type=VarType.LOD_TENSOR_ARRAY,
        dtype=x.dtype,
    )
    helper.append_op(
        type="lod_tensor_to_array", inputs={"X": x, "RankTable": table}, outputs={"Out": array}
    )
    return array


@located
def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """The sequences joined from an array that lod_tensor_to_array made."""
    variable(x, "x", "array_to_lod_tensor")
    _table(table, "table", "array_to_lod_tensor")
    return append(
        LayerHelper("array_to_lod_tensor"), {"X": x, "RankTable": table}, {"Out": x.dtype}
    )


@located
def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The first rows of x, as many as the table has sequences longer than i; sequences instead of
    rows if x has a LoD.
    """
    for value, what in ((x, "x"), (i, "i")):
        variable(value, what, "shrink_memory")
    _table(table, "table", "shrink_memory")
    helper = LayerHelper("shrink_memory")
    return append(
        helper,
        {"X": [x], "I": [i], "RankTable": [table]},
        {"Out": x.dtype},
        kind="shrink_rnn_memory",
    )


@located
def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """The sequences of x (its rows, if it has no LoD) in the order of a table."""
    variable(x, "x", "reorder_lod_tensor_by_rank")
    _table(rank_table, "rank_table", "reorder_lod_tensor_by_rank")
    return append(
        LayerHelper("reorder_lod_tensor_by_rank"),
        {"X": [x], "RankTable": [rank_table]},
        {"Out": x.dtype},
    )


@located
def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """The rows of input where mask, bool [N, 1], is true, and the others; sequences instead of rows
    if input has a LoD.
    """
    variable(input, "input", "split_lod_tensor")
    variable(mask, "mask", "split_lod_tensor")
    typed(level, "level", int, "split_lod_tensor")
    outs = {"OutTrue": input.dtype, "OutFalse": input.dtype}
    return append(
        LayerHelper("split_lod_tensor"), {"X": input, "Mask": mask}, outs, {"level": level}
    )


@located
def merge_lod_tensor(
    in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0
) -> Variable:
    """The rows of in_true where mask, bool [N, 1], is true, and of in_false elsewhere, in order; x:
    a variable of N rows.
    """
    for value, what in ((x, "x"), (mask, "mask"), (in_true, "in_true"), (in_false, "in_false")):
        variable(value, what, "merge_lod_tensor")
    given = {"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}
    return append(LayerHelper("merge_lod_tensor"), given, {"Out": in_true.dtype}, {"level": level})


def _table(value: Any, what: str, layer: str) -> Variable:
    """`value`, if it is a rank table. Raises FluidTypeError otherwise."""
    variable(value, what, layer)
    if value.type != VarType.LOD_RANK_TABLE:
        raise FluidTypeError(
            f"The type of {what} should be LOD_RANK_TABLE: {layer} was given {value.name!r}, a"
            f" {value.desc.kind}"
        )
    return value


__all__ = ["reorder_lod_tensor_by_rank"]
