"""Reads one checkpoint by orbax: its contents, and the arrays that are requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..devices.shard_layout import arrays_of
from ..errors import ParseError
from .record import Record
from .restore import same_kind
from .seal import STATE
from .snapshot import Snapshot

ALIKE, OWN, PIECES = "alike", "own", "pieces"  # within the state: see Snapshot
Groups = Mapping[str, dict[str, Any]]  # ALIKE, OWN, PIECES -> name -> its type


def contents(manager: Any, step: int) -> Groups:
    """The metadata of the stored values."""
    tree = manager.item_metadata(step)[STATE].tree
    groups = {key: dict(tree.get(key) or {}) for key in (ALIKE, OWN, PIECES)}
    if set(tree) - set(groups):
        raise ParseError(
            f"the state holds {sorted(set(tree) - set(groups))[:5]}, which should not be there"
        )
    for name, array in ((n, a) for group in groups.values() for n, a in group.items()):
        if (
            type(name) is not str
            or getattr(array, "shape", None) is None
            or getattr(array, "dtype", None) is None
        ):
            raise ParseError(f"the state's {name!r:.80} is not an array")
    return groups


def whole_of(record: Record, groups: Groups) -> dict[str, Any]:
    """Name -> shape and dtype of all variables' values, however they are stored."""
    if set(arrays_of(record.placed.values())) != set(groups[PIECES]):
        raise ParseError("the record and the state do not agree on which variables are in pieces")
    found = dict(groups[ALIKE])
    for name, placed in record.placed.items():
        arrays = [groups[PIECES][n] for n in placed.arrays]
        if name in found or not arrays or len({np.dtype(a.dtype) for a in arrays}) > 1:
            raise ParseError(f"the pieces of {name!r} do not make up one array")
        for span in placed.spans:
            shape = _rows(groups[PIECES][span.array])
            if len(shape) != 2 or span.rank >= shape[0] or span.columns.stop > shape[1]:
                raise ParseError(
                    f"a piece of {name!r} does not lie within {span.array!r}, of shape"
                    f" {list(shape)}"
                )
        found[name] = jax.ShapeDtypeStruct(placed.shape, arrays[0].dtype)
    return found | {
        n: jax.ShapeDtypeStruct(shape, np.dtype(dtype))
        for n, (dtype, shape) in record.empty.items()
    }


def _rows(array: Any) -> tuple[int, ...]:
    """An array's shape as rows; a shape of one dimension is one row."""
    shape = tuple(array.shape)
    return (1, *shape) if len(shape) == 1 else shape


def whole_arrays(record: Record, groups: Groups) -> set[str]:
    """The variables whose values are one array, or within one row of an array."""
    rows = {n: _rows(array)[0] for n, array in groups[PIECES].items()}
    within = {n for n, p in record.placed.items() if all(rows[a] == 1 for a in p.arrays)}
    return within | set(groups[ALIKE])


def load(
    manager: Any,
    step: int,
    names: list[str],
    record: Record,
    groups: Groups,
    targets: Mapping[str, Any],
) -> Snapshot:
    """The arrays of these names: sharded where there is a target, else on the host."""
    import orbax.checkpoint as ocp

    host = ocp.RestoreArgs(restore_type=np.ndarray)
    placed = {n: p for n, p in record.placed.items() if n in names}
    wanted = {*names, *arrays_of(placed.values())}
    chosen = {key: [n for n in group if n in wanted] for key, group in groups.items()}
    asked = {key: dict.fromkeys(some, host) for key, some in chosen.items() if some}
    asked.get(ALIKE, {}).update(
        {n: ocp.ArrayRestoreArgs(sharding=s) for n, s in targets.items() if n not in placed}
    )
    found: dict[str, Any] = {}
    if asked:
        item = {key: dict.fromkeys(group, 0) for key, group in asked.items()}
        args = ocp.args.PyTreeRestore(item=item, restore_args=asked, partial_restore=True)
        found = manager.restore(step, args=ocp.args.Composite(**{STATE: args}))[STATE]
    replicated, own, pieces = (
        {n: same_kind(n, a, groups[key][n]) for n, a in found.get(key, {}).items()}
        for key in (ALIKE, OWN, PIECES)
    )
    pieces = {n: a.reshape(_rows(a)) for n, a in pieces.items()}
    for name in targets.keys() & placed.keys():
        value = placed.pop(name).joined(pieces.__getitem__)
        replicated[name] = jax.make_array_from_callback(
            value.shape, targets[name], value.__getitem__
        )
    return Snapshot(replicated, own, pieces, placed)
