"""How a trainer of a local job looks up rows of tables on pservers, and splits their gradients.

A table is cut into runs of rows (is_sparse: distributed_lookup_table, split_selected_rows), or its
rows are assigned round-robin, row r to pserver r mod n as its row r // n (is_distributed:
split_ids, prefetch, merge_ids).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import FeedError, FluidValueError
from ...ir.desc import OpDesc
from ...ops.ragged import Ragged
from ...ops.selected import SelectedRows
from .messages import LOOKUP, Message, Speaker, Talk, barrier, paired, recv, send, strings


def distributed_lookup_table(op: OpDesc, trainer: Speaker) -> Talk:
    """Outputs[i] = the rows Ids[i]; table_names[k] at endpoints[k] holds the next
    height_sections[k] rows.
    """
    tables = paired(op, strings(op, "table_names"), strings(op, "endpoints"))
    heights = [int(h) for h in op.attrs.get("height_sections", ())]
    ends, padding = np.cumsum(heights), int(op.attrs.get("padding_idx", -1))
    second = op.attrs.get("lookup_table_version") == "lookup_table_v2"
    for source, out in zip(op.input("Ids"), op.output("Outputs"), strict=True):
        ids = trainer.value(source, op)
        flat = _flat(ids)
        _check_range(flat, source, int(ends[-1]))
        shard = np.searchsorted(ends, flat, side="right")
        places, found = [], []
        for k, (name, endpoint) in enumerate(tables):
            (at,) = np.nonzero(shard == k)
            if at.size or not flat.size:
                places.append(at)
                found.append(
                    (
                        yield Message(
                            LOOKUP, trainer.id, endpoint, name, flat[at] - (ends[k] - heights[k])
                        )
                    )
                )
        rows = np.concatenate(found)[np.argsort(np.concatenate(places))]
        if padding != -1:
            rows[flat == padding] = 0
        trainer.store(out, _shaped(ids, rows, drop_last=not second))


def prefetch(op: OpDesc, trainer: Speaker) -> Talk:
    """Out[i] = the rows X[i] of a table whose rows are assigned round-robin to the pservers of
    epmap.
    """
    asked = paired(op, op.input("X"), strings(op, "epmap"))
    for (name, endpoint), out in zip(asked, op.output("Out"), strict=True):
        ids = np.asarray(trainer.value(name, op))
        trainer.store(out, (yield Message(LOOKUP, trainer.id, endpoint, name, ids // len(asked))))


def split_ids(op: OpDesc, trainer: Speaker) -> Talk:
    """Out[i] = the distinct ids of all Ids with id mod n = i; or the part of a table's gradient
    that pserver i owns.
    """
    values, outs = [trainer.value(name, op) for name in op.input("Ids")], op.output("Out")
    if _is_gradient(op):
        (grad,) = values
        for i, out in enumerate(outs):
            trainer.store(out, _round_robin_part(_as_rows(grad), i, len(outs)))
        return
    ids = np.unique(np.concatenate([_flat(v) for v in values]))
    if ids.size and ids[0] < 0:
        raise FeedError(
            f"{', '.join(map(repr, op.input('Ids')))} holds the row number {ids[0]}, but rows are"
            " counted from 0"
        )
    for i, out in enumerate(outs):
        trainer.store(out, ids[ids % len(outs) == i])
    yield from ()


def merge_ids(op: OpDesc, trainer: Speaker) -> Talk:
    """Out[i] = the rows of X for Ids[i]; Rows holds the ids of the rows of X."""
    known = np.concatenate([np.asarray(trainer.value(name, op)) for name in op.input("Rows")])
    order = np.argsort(known)
    rows = np.concatenate([trainer.value(name, op) for name in op.input("X")])
    for name, out in zip(op.input("Ids"), op.output("Out"), strict=True):
        ids = trainer.value(name, op)
        at = order[np.searchsorted(known, _flat(ids), sorter=order)]
        before, after = trainer.declared(name), trainer.declared(out)
        same_rank = (
            before is not None
            and after is not None
            and len(before.shape or ()) == len(after.shape or ())
        )
        trainer.store(out, _shaped(ids, rows[at], drop_last=same_rank))
    yield from ()


def split_selected_rows(op: OpDesc, trainer: Speaker) -> Talk:
    """Out[k] = the next height_sections[k] rows of a table's gradient."""
    (name,) = op.input("X")
    grad, start = _as_rows(trainer.value(name, op)), 0
    for out, height in zip(op.output("Out"), op.attrs["height_sections"], strict=True):
        trainer.store(out, _section(grad, start, int(height)))
        start += int(height)
    if start != grad.height:
        raise FluidValueError(
            f"op 'split_selected_rows' cuts {start} rows out of {name!r}, which has {grad.height}"
        )
    yield from ()


def fake_init(op: OpDesc, trainer: Speaker) -> Talk:
    """A table on the pservers: the trainer has none."""
    yield from ()


@partial(jax.jit, static_argnums=(1, 2))
def _section(grad: SelectedRows, start: int, height: int) -> SelectedRows:
    """Rows start to start + height; as many entries as before, since sizes are fixed in compiled
    steps.
    """
    mine = (grad.rows >= start) & (grad.rows < start + height)
    return _only(grad, mine, grad.rows - start, height)


@partial(jax.jit, static_argnums=(1, 2))
def _round_robin_part(grad: SelectedRows, index: int, count: int) -> SelectedRows:
    """The rows r with r mod count = index, as rows r // count."""
    mine = (grad.rows % count == index) & (grad.rows < grad.height)
    return _only(grad, mine, grad.rows // count, -(-grad.height // count))


def _only(grad: SelectedRows, mine: Any, rows: Any, height: int) -> SelectedRows:
    values = jnp.where(
        mine.reshape(-1, *(1,) * (grad.values.ndim - 1)),
        grad.values,
        np.zeros((), grad.values.dtype),
    )
    return SelectedRows(jnp.where(mine, rows, height), values, height)


def _as_rows(grad: Any) -> SelectedRows:
    """A table's gradient by rows; lookups without is_sparse have all rows."""
    if isinstance(grad, SelectedRows):
        return grad
    return SelectedRows(jnp.arange(grad.shape[0]), grad, grad.shape[0])


def _is_gradient(op: OpDesc) -> bool:
    return all("@GRAD" in name for name in op.input("Ids"))


def _flat(ids: Any) -> np.ndarray:
    return np.asarray(ids.rows if isinstance(ids, Ragged) else ids).reshape(-1).astype(np.int64)


def _check_range(flat: np.ndarray, name: str, height: int) -> None:
    wrong = flat[(flat < 0) | (flat >= height)]
    if wrong.size:
        raise FeedError(
            f"{name!r} holds the row number {wrong[0]}, but the table has {height} rows"
        )


def _shaped(ids: Any, rows: np.ndarray, drop_last: bool) -> Any:
    """[number of ids, width] -> the shape of the ids (perhaps without their last dimension of 1),
    and the width.
    """
    shape = np.shape(ids.rows if isinstance(ids, Ragged) else ids)
    rows = rows.reshape(*(shape[:-1] if drop_last else shape), rows.shape[-1])
    return replace(ids, rows=rows) if isinstance(ids, Ragged) else rows


# The ops that a trainer of a local job runs instead of computing them.
HANDLERS: dict[str, Callable[[OpDesc, Speaker], Talk]] = {
    "send": send,
    "recv": recv,
    "send_barrier": barrier,
    "fetch_barrier": barrier,
    "fake_init": fake_init,
    "distributed_lookup_table": distributed_lookup_table,
    "split_selected_rows": split_selected_rows,
    "split_ids": split_ids,
    "prefetch": prefetch,
    "merge_ids": merge_ids,
}
