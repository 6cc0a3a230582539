"""The owners of the parameters of a transpiled trainer program, read from the program itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.desc import OpDesc, ProgramDesc


@dataclass(frozen=True)
class Home:
    """One parameter on the pservers. blocks: (endpoint, name there), in order.

    rows: the number of consecutive rows of each block, in order. If it is empty, the rows are
    assigned round-robin (row r is in block r mod n), and height is their total number (a
    distributed table).
    """

    blocks: tuple[tuple[str, str], ...]
    rows: tuple[int, ...] = ()
    height: int = 0

    def split(self, value: Any) -> list[Any]:
        """The blocks of a whole value; round-robin blocks with fewer rows are padded with zeros."""
        if self.rows:
            ends = np.cumsum(self.rows)
            return [value[end - n : end] for end, n in zip(ends, self.rows, strict=True)]
        n = len(self.blocks)
        padded = np.concatenate(
            [value, np.zeros((-value.shape[0] % n, *value.shape[1:]), value.dtype)]
        )
        return [padded[i::n] for i in range(n)]

    def join(self, values: Sequence[Any]) -> np.ndarray:
        """The whole value from its blocks."""
        if self.rows:
            return np.concatenate([np.asarray(v) for v in values])
        stacked = np.stack([np.asarray(v) for v in values], 1)
        return stacked.reshape(-1, *stacked.shape[2:])[: self.height]


def placement(main: ProgramDesc, startup: ProgramDesc) -> dict[str, Home]:
    """Parameters and their owners: those that the startup program receives, and the tables that the
    main program looks up.
    """
    vars = {**main.blocks[0].vars, **startup.blocks[0].vars}
    whole = {
        op.input("X"): op.output("Out")[0] for op in startup.blocks[0].ops if op.type == "concat"
    }
    found: dict[str, Home] = {}
    for op in startup.blocks[0].ops:
        if op.type == "recv":
            names = op.output("Out")
            there = tuple(op.attrs.get("recv_varnames") or ()) or names
            rows = tuple((vars[n].shape or (1,))[0] for n in names)
            found[whole.get(names, names[0])] = Home(_pairs(op, "epmap", there), rows)
    for op in main.blocks[0].ops:
        if op.type == "distributed_lookup_table":
            rows = tuple(int(h) for h in op.attrs["height_sections"])
            found[op.input("W")[0]] = Home(_pairs(op, "endpoints", op.attrs["table_names"]), rows)
    found.update(_distributed_tables(main, startup))
    return found


def _distributed_tables(main: ProgramDesc, startup: ProgramDesc) -> dict[str, Home]:
    """The distributed table: the trainer does not have it, and prefetches its rows."""
    fakes = {
        n: op.attrs["shape"][0]
        for op in startup.blocks[0].ops
        if op.type == "fake_init"
        for n in op.writes
    }
    asked = {
        n
        for op in main.blocks[0].ops
        if op.type == "distributed_lookup_table"
        for n in op.input("W")
    }
    prefetch = next((op for op in main.blocks[0].ops if op.type == "prefetch"), None)
    if prefetch is None:
        return {}
    ends = tuple(prefetch.attrs["epmap"])
    return {
        n: Home(tuple((ep, n) for ep in ends), (), int(height))
        for n, height in fakes.items()
        if n not in asked
    }


def _pairs(op: OpDesc, endpoints: str, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(op.attrs[endpoints], names, strict=True))
