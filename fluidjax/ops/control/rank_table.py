"""lod_rank_table, max_sequence_len, and the ops that split sequences by a table and join them
(ops/rank_table.py).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet
from ...ir.desc import FrozenMap
from ..control_interface import Call, ControlOp
from ..definition import GRAD, GradDef
from ..infer import Spec
from ..loop_course import limit
from ..ragged import Ragged, like, rows_of, sequences_of
from ..rank_table import (
    RankTable,
    by_number,
    by_rank,
    other_lengths,
    other_rows,
    put_together,
    shrunk,
    side_by_side,
    table_of,
    taken_apart,
)
from ..registry import Attr, Reuse, control_op, grad_reuses
from ..step_scopes import no_gradient, on_gradients
from ..tensor_array import Listed, is_array
from ..traits import Runs, knows_rows
from .array import index_of, mark


def _table(call: Call) -> RankTable:
    (name,) = call.op.input("RankTable")
    table = call.read(name)
    if not isinstance(table, RankTable):
        raise EnforceNotMet(
            f"op '{call.op.type}' takes a rank table, but {name!r} is not one; lod_rank_table"
            " makes one"
        )
    return table


def make(call: Call) -> None:
    """Out = the sequences of a LoD level of X by descending length; equal ones stay in order."""
    (x,), (out,) = call.op.input("X"), call.op.output("Out")
    call.env[out] = table_of(
        sequences_of("lod_rank_table", "X", call.read(x)), int(call.op.attrs.get("level", 0))
    )


def longest(call: Call) -> None:
    """Out = the length of the longest sequence, int64 [1]. If that depends on data, loops get its
    upper bound.
    """
    (out,), table = call.op.output("Out"), _table(call)
    if not table.padded:
        call.env[out] = np.array([table.longest[-1]], np.int64)
        return
    call.env[out] = jnp.max(table.lengths, initial=0).astype(jnp.int64).reshape(1)
    call.env[limit(out)] = table.longest[-1]


def apart(call: Call) -> None:
    """Out[t] = row t of each sequence of X that has one, by rank."""
    (x,), (out,) = call.op.input("X"), call.op.output("Out")
    if x not in call.env and on_gradients(call.op):
        call.env.pop(out, None)
        return
    table, value = _table(call), call.read(x)
    if on_gradients(call.op) and not isinstance(value, Ragged) and value.shape[0] == table.capacity:
        value = Ragged(value, table.offsets, table.longest, table.key, table.padded)
    if not on_gradients(call.op) and (other := other_lengths(value, table)) is not None:
        call.refuse(
            other,
            f"takes the sequences of {x!r} apart by a rank table of sequences of other lengths",
        )
    call.env[out] = taken_apart(value, table, on_gradients(call.op))


def together(call: Call) -> None:
    """Out = the sequences whose rows X[0], X[1], ... are."""
    (x,), (out,), table = call.op.input("X"), call.op.output("Out"), _table(call)
    array = call.env.get(x, Listed())
    if on_gradients(call.op) and x not in call.env:
        call.env.pop(out, None)
        return
    if not is_array(array):
        raise EnforceNotMet(
            f"op '{call.op.type}' takes an array, but {x!r} is a tensor; array_write makes arrays"
        )
    if isinstance(array, Listed) and not any(v is not None for v in array.items):
        var = call.desc.find_var(out)
        # the loop read no entry
        zero = on_gradients(call.op) and var is not None and var.lod_level <= len(table.offsets)
        if table.capacity and table.longest[-1] and not zero:
            raise EnforceNotMet(
                f"op '{call.op.type}' puts the entries of {x!r} together, which nothing has written"
            )
        call.env[out] = _nothing(call, out, table)
        return
    array = side_by_side(array, table) if isinstance(array, Listed) else array
    _refuse_other_entries(call, array.rows, table)
    if not on_gradients(call.op) and (other := other_rows(array, table)) is not None:
        call.refuse(
            other,
            f"puts the entries of {x!r} together by a rank table that has other numbers of rows at"
            " these times",
        )
    call.env[out] = put_together(array, table, on_gradients(call.op), call.op.uid)


def _nothing(call: Call, out: str, table: RankTable) -> Ragged:
    """Sequences without a row."""
    var = call.desc.find_var(out)
    shape = () if var is None or var.shape is None else var.shape[1:]
    rows = jnp.zeros(
        (table.capacity, *(max(n, 0) for n in shape)),
        "float32" if var is None or var.dtype is None else var.dtype,
    )
    return Ragged(
        rows,
        table.offsets,
        table.longest,
        table.key,
        table.padded,
        each=table.each,
        alive=table.alive,
    )


def _refuse_other_entries(call: Call, entries: Any, table: RankTable) -> None:
    """Raises EnforceNotMet for entries that are not rows of the table's sequences."""
    if isinstance(entries, Ragged) and not entries.bare:
        if entries.offsets[0].shape[1] - 1 == table.sequences:
            return
        has = f"{entries.offsets[0].shape[1] - 1} sequences"
    elif rows_of(entries).ndim > 1 and rows_of(entries).shape[1] == table.sequences:
        return
    else:
        has = f"the shape {list(rows_of(entries).shape[1:])}"
    raise EnforceNotMet(
        f"op '{call.op.type}' puts together entries of the {table.sequences} sequences of a rank"
        f" table, but those of {call.op.input('X')[0]!r} have {has}"
    )


def shrink(call: Call) -> None:
    """Out = the first rows of X (by rank), or sequences: as many as have a step I."""
    (x,), (out,), index = call.op.input("X"), call.op.output("Out"), index_of(call)
    call.env[out] = shrunk(
        call.read(x), _table(call), index, index if isinstance(index, int) else mark(call)
    )


def unshrink(call: Call) -> None:
    """X@GRAD = Out@GRAD in X's form, zero in the rows that were left out."""
    op = call.op
    (x,), (given,), (out,) = op.input("X"), op.input("Out" + GRAD), op.output("X" + GRAD)
    value, gradient = call.read(x), call.env.get(given)
    call.env[out] = no_gradient(value) if gradient is None else like(value, _zero_behind(gradient))


def _zero_behind(gradient: Any) -> Any:
    if not isinstance(gradient, Ragged):
        return gradient
    kept = gradient.kept().reshape(-1, *(1,) * (gradient.rows.ndim - 1))
    return jnp.where(kept, gradient.rows, np.zeros((), gradient.dtype))


def reorder(call: Call) -> None:
    """Out = the rows of X, or its sequences, in the order of the table."""
    call.env[call.op.output("Out")[0]] = by_rank(call.read(call.op.input("X")[0]), _table(call))


def reorder_back(call: Call) -> None:
    """Out = X, a gradient in the table's order, back in the original order."""
    (x,), (out,) = call.op.input("X"), call.op.output("Out")
    if x in call.env:
        call.env[out] = by_number(call.env[x], _table(call))


def _same(X: Spec, RankTable: Spec | None = None, **_: Any) -> Spec:
    return X


def _rows(X: Spec, RankTable: Spec, **_: Any) -> Spec:
    """X's declaration, with an unknown number of rows, which the table gives in a run."""
    return X.like(-1, *X.shape[1:]) if X.shape else X


REORDERED = GradDef(
    "reorder_lod_tensor_by_rank_grad",
    FrozenMap({"X": "Out" + GRAD, "RankTable": "RankTable"}),
    FrozenMap({"Out": "X"}),
)
SHRUNK = GradDef(
    "shrink_rnn_memory_grad",
    FrozenMap({"X": "X", "Out" + GRAD: "Out" + GRAD}),
    FrozenMap({"X" + GRAD: "X"}),
)

control_op("lod_rank_table", ins="X", outs="Out", attrs={"level": Attr("level", "INT", 0)}, runs=Runs.STEP,
           doc="Out = the sequences of X by falling length.", control=ControlOp(lower=make))  # fmt: skip
control_op("max_sequence_len", ins="RankTable", outs="Out", doc="Out = the length of the longest sequence.", runs=Runs.STEP,
           infer=lambda RankTable: Spec((1,), "int64"), control=ControlOp(lower=longest))  # fmt: skip
control_op("lod_tensor_to_array", ins="X RankTable", outs="Out", doc="Out[t] = row t of each sequence of X.", runs=Runs.STEP,
           infer=_rows, rows=knows_rows(lambda levels, _: {"Out": max(levels["X"] - 1, 0)}),
           control=ControlOp(lower=apart))  # fmt: skip
control_op("array_to_lod_tensor", ins="X RankTable", outs="Out", doc="Out = the sequences whose rows X holds.", runs=Runs.STEP,
           infer=_rows, rows=knows_rows(lambda levels, _: {"Out": levels["X"] + 1}), control=ControlOp(lower=together))  # fmt: skip
control_op("shrink_rnn_memory", ins="X RankTable I", outs="Out", doc="Out = the rows of X that go on at time I.", runs=Runs.STEP,
           infer=_rows, grad=SHRUNK, control=ControlOp(lower=shrink))  # fmt: skip
control_op("shrink_rnn_memory_grad", ins="X Out@GRAD", outs="X@GRAD", forward="shrink_rnn_memory", runs=Runs.STEP,
           doc="X@GRAD = Out@GRAD, and zero.", control=ControlOp(lower=unshrink))  # fmt: skip
control_op("reorder_lod_tensor_by_rank", ins="X RankTable", outs="Out", doc="Out = X in the order of ranks.", runs=Runs.STEP,
           infer=_same, grad=REORDERED, control=ControlOp(lower=reorder))  # fmt: skip
control_op("reorder_lod_tensor_by_rank_grad", ins="X RankTable", outs="Out", forward="reorder_lod_tensor_by_rank", runs=Runs.STEP,
           doc="Out = X in the order before.", control=ControlOp(lower=reorder_back))  # fmt: skip
grad_reuses(
    "lod_tensor_to_array",
    Reuse("array_to_lod_tensor", {"X": "Out@GRAD", "RankTable": "RankTable"}, {"Out": "X@GRAD"}),
)
grad_reuses(
    "array_to_lod_tensor",
    Reuse("lod_tensor_to_array", {"X": "Out@GRAD", "RankTable": "RankTable"}, {"Out": "X@GRAD"}),
)
