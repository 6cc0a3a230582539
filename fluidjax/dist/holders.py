"""The current layout of a program's state on the devices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..devices.shard_layout import ShardLayout
from ..errors import FluidValueError
from ..graph.program import Program
from ..ir import walk
from ..look.owners import Held, Part, owners
from ..look.picture import Picture
from ..state.buffers import Buffered
from ..state.scope import Scope, global_scope
from ..state.storage import Storage


def who_holds(program: Program, scope: Scope | None = None) -> Picture:
    """A picture of the program's persistable variables: which rank of the mesh holds which
    elements.

        exe.run(sharded, feed={...}, fetch_list=[loss])
        fluid.dist.who_holds(main)

    A variable is replicated, has a value per rank, or is sharded, as after the last run in the
    scope (default: the global one). str() of the picture gives the same in words.

    Raises FluidValueError if the scope holds none of them.
    """
    where = scope or global_scope()
    found = list(_held(program, where))
    if not found:
        raise FluidValueError(
            "the scope holds no persistable variable of the program; run the startup program first"
        )
    ranks = max([1, *(n for _, n in found)])
    return owners(
        "who holds what", [f"rank {i}" for i in range(ranks)], [held for held, _ in found]
    )


def _held(program: Program, scope: Scope) -> Iterator[tuple[Held, int]]:
    """Each variable with a value, and its known number of ranks."""
    for name in walk.persistables(program.desc):
        var = scope.find_var(name)
        if var is None or var.storage.empty:
            continue
        shards, each = var.storage.shards(), var.storage.per_rank()
        if shards is not None:
            ranks = max(len(a) for a in shards.arrays.values())
            yield (
                Held(
                    name,
                    shards.shape,
                    str(shards.dtype),
                    tuple(_parts(shards.placed)),
                    spread=_strided(shards.placed),
                ),
                ranks,
            )
        elif each is not None:
            yield Held(name, tuple(each.shape[1:]), str(each.dtype), apart=True), len(each)
        elif hasattr(value := var.value, "shape"):
            yield (
                Held(name, tuple(np.shape(value)), str(value.dtype), everywhere=True),
                _ranks(var.storage),
            )


def _ranks(storage: Storage) -> int:
    return storage.buffers.where.count if isinstance(storage, Buffered) else 1


def _strided(placed: ShardLayout) -> bool:
    return any(span.count > 1 for span in placed.spans)


def _parts(placed: ShardLayout) -> Iterator[Part]:
    if not _strided(placed):
        yield from (
            Part(s.rank, s.start, s.size) for s in sorted(placed.spans, key=lambda s: s.start)
        )
