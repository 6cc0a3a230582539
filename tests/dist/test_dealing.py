"""Blocks dealt to ranks: what each rank gets against NumPy, and how large the traced ops are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from fluidjax.ops import dealing, ring
from fluidjax.planning.work import called

RANKS = 4
# (whole array, rank, column, first element, elements); array 2 is one number that stands for many
DEALS = {
    "in order, the last shorter": [(0, r, 0, 5 * r, min(5, 18 - 5 * r)) for r in range(4)],
    "two arrays, turned": [(0, 2, 0, 0, 9), (0, 3, 0, 9, 9), (1, 0, 0, 0, 7), (1, 1, 0, 7, 3)],
    "backwards": [(0, 3 - r, 0, 5 * r, min(5, 18 - 5 * r)) for r in range(4)],
    "side by side, a rank with none": [
        (0, 0, 0, 0, 6),
        (1, 0, 6, 4, 6),
        (0, 1, 0, 6, 6),
        (1, 1, 8, 0, 4),
        (0, 3, 1, 12, 6),
    ],
    "one number": [(2, 0, 0, 0, 5), (2, 1, 0, 0, 5), (2, 3, 2, 0, 3)],
}
WHOLES = [
    np.arange(18, dtype=np.float32),
    100 + np.arange(10, dtype=np.float32),
    np.full(1, 7, np.float32),
]


def spread(op: Callable[..., Any], given: Sequence[Any], each: bool, **attrs: Any) -> Any:
    """What each rank gets, below one another. each: every rank has its own row of what is given."""

    def run(*x: Any) -> Any:
        with ring.bound(ring.Ring("d", RANKS)):
            return [
                y[None] for y in op([v[0] for v in x] if each else list(x), nranks=RANKS, **attrs)
            ]

    mesh = Mesh(np.array(jax.devices()[:RANKS]), ("d",))
    spec = PartitionSpec("d")
    return jax.jit(
        jax.shard_map(
            run,
            mesh=mesh,
            in_specs=spec if each else PartitionSpec(),
            out_specs=spec,
            check_vma=False,
        )
    )(*given)


@pytest.mark.parametrize("deal", DEALS)
def test_each_rank_has_its_blocks(deal: str) -> None:
    width = max(at + size for _, _, at, _, size in DEALS[deal]) + 1
    want = np.zeros((RANKS, width), np.float32)
    for whole, rank, at, start, size in DEALS[deal]:
        want[rank, at : at + size] = (
            WHOLES[whole][start : start + size] if whole < 2 else WHOLES[whole]
        )
    spans = [n for w, r, at, start, size in DEALS[deal] for n in (w, 0, r, at, start, size)]

    def both(x: list[Any], **attrs: Any) -> list[Any]:
        return [*dealing.c_deal(x, **attrs), *dealing.c_deal_reducescatter(x, **attrs)]

    own, summed = spread(both, WHOLES, False, spans=spans, widths=[width])
    assert np.array_equal(own, want) and np.array_equal(summed, RANKS * want)
    if {w for w, *_ in DEALS[deal]} != {2}:  # a number is not gathered
        back = [
            n for w, r, at, start, size in DEALS[deal] if w == 0 for n in (0, 0, r, at, start, size)
        ]
        (whole,) = spread(dealing.c_deal_allgather, [want], True, spans=back, shapes=[1, 18])
        assert np.array_equal(whole, [WHOLES[0]] * RANKS)


def equations(body: Any) -> int:
    inner = (
        b
        for eqn in body.eqns
        for b in (*eqn.params.get("branches", ()), called(eqn))
        if b is not None
    )
    return len(body.eqns) + sum(equations(getattr(b, "jaxpr", b)) for b in inner)


def traced(ranks: int) -> int:
    """How many equations the exchange of two parameters has that are cut into a block for each
    rank, the last one shorter.
    """
    size, sizes = 9000, (9000 * ranks - 4, 9000 * ranks // 2)
    blocks = [
        (w, (r + w * ranks // 3) % ranks, start)
        for w, n in enumerate(sizes)
        for r, start in enumerate(range(0, n, size))
    ]
    spans = [n for w, r, start in blocks for n in (w, w, r, 0, start, min(size, sizes[w] - start))]

    def run(x: Any) -> Any:
        with ring.bound(ring.Ring("d", ranks)):
            attrs: dict[str, Any] = {"spans": spans, "nranks": ranks}
            dealing.c_deal_reducescatter(x, widths=[size, size], **attrs)
            return dealing.c_deal_allgather(
                dealing.c_deal(x, widths=[size, size], **attrs),
                shapes=[1, sizes[0], 1, sizes[1]],
                **attrs,
            )

    mesh, spec = AbstractMesh((ranks,), ("d",)), PartitionSpec()
    shapes = [jax.ShapeDtypeStruct((n,), "float32") for n in sizes]
    return equations(
        jax.make_jaxpr(
            jax.shard_map(run, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False)
        )(shapes).jaxpr
    )


def test_the_exchange_is_as_large_for_any_number_of_ranks() -> None:
    assert traced(12) == traced(3000)
