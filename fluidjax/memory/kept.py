"""Chooses the values of the forward pass that are worth keeping for the backward pass: those that
cost more to recompute than to hold.

A value is kept, or the op that computes it runs again; then the op's inputs must be kept or
recomputed too. The choice with the least `price * bytes kept + seconds of recomputation` is a
minimum cut (Cheng and others; PyTorch's partitioner of forward and backward graphs does the same).
Every op and every value has a node, which is on the sink's side if the op runs again or the value
is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ..ir.desc import OpDesc

NEVER = 2**30  # the capacity of an edge that is not cut


@dataclass
class Choice:
    """ops: the forward ops in order. free: the values that need not be kept, and the op of each.
    needed: the values of `free` that the backward pass reads. size: the bytes of each of `free`;
    seconds: of each op, by uid.
    """

    ops: Sequence[OpDesc]
    free: Mapping[str, OpDesc]
    needed: Set[str]
    size: Mapping[str, int]
    seconds: Mapping[int, float]

    def __post_init__(self) -> None:
        givers = {op.uid: op for op in self.free.values()}
        self.values = {n: 2 + i for i, n in enumerate(self.free)}
        self.runs = {uid: 2 + len(self.values) + i for i, uid in enumerate(givers)}
        inputs = [
            (self.values[n], self.runs[op.uid])
            for op in givers.values()
            for n in dict.fromkeys(op.reads)
            if n in self.free
        ]
        self.never = inputs + [(self.values[n], 1) for n in self.needed]
        self.held = [(self.runs[op.uid], self.values[n]) for n, op in self.free.items()]

    def kept(self, price: float) -> tuple[str, ...]:
        """The values to keep if a byte costs `price` seconds."""
        # scipy takes long to import, and only this function needs it
        from scipy.sparse import csr_array  # type: ignore[import-untyped]
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # type: ignore[import-untyped]

        holding = [price * self.size[n] for n in self.free]
        computing = [self.seconds[uid] for uid in self.runs]
        # so large that no flow fills an edge that is not cut
        scale = NEVER / 2 / max(sum(computing), 1e-30)
        edges = [*self.never, *self.held, *((0, node) for node in self.runs.values())]
        costs = [NEVER] * len(self.never) + [
            min(max(1, round(c * scale)), NEVER) for c in (*holding, *computing)
        ]
        rows, columns = np.array(edges, np.int32).reshape(-1, 2).T
        count = 2 + len(self.values) + len(self.runs)
        graph = csr_array((np.array(costs, np.int32), (rows, columns)), shape=(count, count))
        residual = graph - maximum_flow(graph, 0, 1).flow
        residual.data = np.maximum(residual.data, 0)
        residual.eliminate_zeros()
        source = set(breadth_first_order(residual, 0, return_predecessors=False).tolist())
        return tuple(
            n
            for n, op in self.free.items()
            if self.values[n] not in source and self.runs[op.uid] in source
        )
