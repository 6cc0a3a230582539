"""Ops over all ranks of a ring: Fluid's c_* ops, as XLA collectives under a bound mesh axis
(ring.py).

Every ring_id is the same ring here: XLA chooses the route of a collective. Paddle's sync ops order
streams; here data flow gives the order. Outside of a mesh these ops raise EnforceNotMet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import EnforceNotMet, FluidValueError
from . import ring
from .infer import Spec
from .registry import Array, Attr, Reuse, Size, control_op, grad_reuses, op
from .selected import SelectedRows, total
from .traits import ALL, EAGER, Runs, collective, mixes


def _same(X: Spec, **_attrs: Any) -> Spec:
    return X


@op(outs="Out", infer=_same, rows=mixes("X"), ranks=collective(agree=ALL))
def c_allreduce_sum(X: Array | SelectedRows, *, ring_id: int = 0, use_calc_stream: bool = False):
    """Out = sum of X over the ranks; for sparse rows, the rows of all ranks."""
    axis = ring.ring().axis
    if axis is None:
        return X
    if isinstance(X, SelectedRows):
        return total(
            [
                SelectedRows(r, v, X.height)
                for r, v in zip(ring.gathered(X.rows), ring.gathered(X.values), strict=True)
            ]
        )
    return jax.lax.psum(X, axis)


REDUCTIONS: list[tuple[str, Callable[[Any, str], Any], str]] = [
    ("max", jax.lax.pmax, "Out = elementwise maximum of X over the ranks."),
    ("min", jax.lax.pmin, "Out = elementwise minimum of X over the ranks."),
    (
        "prod",
        lambda x, axis: jax.lax.all_gather(x, axis).prod(0, dtype=x.dtype),
        "Out = product of X over the ranks.",
    ),
]


def _declare_reduction(name: str, reduce: Callable[[Any, str], Any], formula: str) -> None:
    def run(X: Array, *, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
        axis = ring.ring().axis
        return X if axis is None else reduce(X, axis)

    run.__doc__ = formula
    op(
        f"c_allreduce_{name}", outs="Out", infer=_same, rows=mixes("X"), ranks=collective(agree=ALL)
    )(run)


for _row in REDUCTIONS:
    _declare_reduction(*_row)


def _declare_reduction_to_one(name: str, reduce: Callable[[Any, str], Any], formula: str) -> None:
    def run(X: Array, *, ring_id: int = 0, root_id: int = 0, use_calc_stream: bool = False) -> Any:
        found = rooted(root_id)
        return (
            X if found.axis is None else jnp.where(found.rank == root_id, reduce(X, found.axis), X)
        )

    run.__doc__ = f"{formula[:-1]} on rank root_id; on the others Out = X."
    op(f"c_reduce_{name}", outs="Out", infer=_same, rows=mixes("X"), ranks=collective())(run)


def rooted(root: int) -> ring.Ring:
    """The bound ring, for an op that names one of its ranks. Raises EnforceNotMet if there is no
    such rank.
    """
    found = ring.ring()
    if not 0 <= root < found.size:
        raise EnforceNotMet(
            f"the root of a collective is rank {root}, but there are {found.size} ranks"
        )
    return found


for _row in [("sum", jax.lax.psum, "Out = sum of X over the ranks."), *REDUCTIONS]:
    _declare_reduction_to_one(*_row)
grad_reuses("c_allreduce_sum", Reuse("c_allreduce_sum", {"X": "Out@GRAD"}, {"Out": "X@GRAD"}))


def _from_root(x: Array, root: int) -> Any:
    found = rooted(root)
    if found.axis is None:
        return x
    mine = jnp.where(found.rank == root, x, jnp.zeros_like(x))
    return jax.lax.psum(mine, found.axis)


@op(outs="Out", infer=_same, rows=mixes("X"), ranks=collective(scatters=True))
def c_share(X: Array, *, rows: Size):
    """Out = X times the rows of this rank over those of all ranks (ours)."""
    axis = ring.ring().axis
    if axis is None:
        return X
    # of equal parts both are Python's numbers, and nothing is sent
    return X * jnp.asarray(rows / jax.lax.psum(rows, axis), X.dtype)


@op(outs="Out", infer=_same, rows=mixes("X"), ranks=collective(agree=ALL, root="root"))
def c_broadcast(X: Array, *, ring_id: int = 0, root: int = 0, use_calc_stream: bool = False):
    """Out = X of rank `root`."""
    return _from_root(X, root)


_BY_NUMBER = (jax.lax.psum, REDUCTIONS[2][1], jax.lax.pmax, jax.lax.pmin)  # of reduce_type


@op(outs="Out", infer=_same, rows=mixes("X"), ranks=collective(agree=ALL))
def allreduce(X: Array, *, reduce_type: int = 0, sync_mode: bool = False):
    """Out = sum (reduce_type 0), product (1), maximum (2) or minimum (3) of X over the ranks."""
    if not 0 <= reduce_type < len(_BY_NUMBER):
        raise FluidValueError(
            "op 'allreduce' has the reduce_type 0 (sum), 1 (product), 2 (maximum) or 3 (minimum),"
            f" not {reduce_type}"
        )
    axis = ring.ring().axis
    return X if axis is None else _BY_NUMBER[reduce_type](X, axis)


@op(outs="Out", infer=_same, rows=mixes("X"), ranks=collective(agree=ALL, root="root"))
def broadcast(X: Array, *, root: int = 0, sync_mode: bool = False):
    """Out = X of rank `root`."""
    return _from_root(X, root)


def _one_of_many(
    X: Spec, *, nranks: int = 1, ring_id: int = 0, root: int = 0, use_calc_stream: bool = False
) -> Spec:
    first, *rest = X.shape
    if first >= 0 and first % nranks:
        raise EnforceNotMet(
            f"op 'c_scatter' splits dimension 0 of size {first} over {nranks} ranks, which do not"
            " divide it"
        )
    return Spec((first if first < 0 else first // nranks, *rest), X.dtype)


@op(outs="Out", infer=_one_of_many, rows=mixes("X"), ranks=collective())
def c_scatter(
    X: Array, *, nranks: int = 1, ring_id: int = 0, root: int = 0, use_calc_stream: bool = False
):
    """Out = part r of nranks along dimension 0, on rank r, of the X of rank `root`."""
    found = ring_of("c_scatter", nranks)
    if found.axis is None:
        return X
    whole = _from_root(X, root)
    size = X.shape[0] // nranks
    return jax.lax.dynamic_slice_in_dim(whole, found.rank * size, size)


def _many(X: Spec, *, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Spec:
    first, *rest = X.shape
    return Spec((first if first < 0 else first * nranks, *rest), X.dtype)


def ring_of(kind: str, nranks: int) -> ring.Ring:
    """The bound ring, for an op with an attribute nranks. Raises EnforceNotMet if the ring has
    another number of ranks.
    """
    found = ring.ring()
    if nranks != found.size:
        raise EnforceNotMet(
            f"op '{kind}' is for nranks = {nranks}, but there are {found.size} ranks"
        )
    return found


@op(outs="Out", infer=_many, rows=mixes("X"), ranks=collective(agree=ALL))
def c_allgather(X: Array, *, nranks: int, ring_id: int = 0, use_calc_stream: bool = False):
    """Out = X of all ranks, concatenated on dimension 0; nranks: their number."""
    found = ring_of("c_allgather", nranks)
    return X if found.axis is None else jax.lax.all_gather(X, found.axis, tiled=True)


def _one_of(X: Spec, *, nranks: int = 1, ring_id: int = 0, use_calc_stream: bool = False) -> Spec:
    first, *rest = X.shape
    if first >= 0 and first % nranks:
        raise EnforceNotMet(
            f"op 'c_reducescatter' splits dimension 0 of size {first} over {nranks} ranks, which do"
            " not divide it"
        )
    return Spec((first if first < 0 else first // nranks, *rest), X.dtype)


@op(outs="Out", infer=_one_of, rows=mixes("X"), ranks=collective(scatters=True))
def c_reducescatter(X: Array, *, nranks: int = 1, ring_id: int = 0, use_calc_stream: bool = False):
    """Out = part r of nranks along dimension 0, on rank r, of the sum of X over the ranks."""
    found = ring_of("c_reducescatter", nranks)
    return X if found.axis is None else jax.lax.psum_scatter(X, found.axis, tiled=True)


grad_reuses("c_allgather", Reuse("c_reducescatter", {"X": "Out@GRAD"}, {"Out": "X@GRAD"}))


@op(outs="Out", infer=_same, rows=mixes("X"), eager=EAGER)
def c_sync_calc_stream(X: Array):
    """Out = X; data flow orders what Paddle orders by streams."""
    return X


@op(outs="Out", infer=_same, rows=mixes("X"), eager=EAGER)
def c_sync_comm_stream(X: Array, *, ring_id: int = 0):
    """Out = X; data flow orders what Paddle orders by streams."""
    return X


@op(outs="Out*", infer=lambda X, **_attrs: X, rows=mixes("X"), ranks=collective(agree=ALL))
def c_fused_allreduce_sum(X: list[Array], *, ring_id: int = 0):
    """Out[i] = sum of X[i] over the ranks, in one message for all (fluidjax's own: Paddle's
    coalesce_tensor and allreduce together).
    """
    axis = ring.ring().axis
    if axis is None:
        return list(X)
    done: dict[int, Any] = {}
    for dtype in dict.fromkeys(x.dtype for x in X):
        members = [i for i, x in enumerate(X) if x.dtype == dtype]
        flat = jax.lax.psum(jnp.concatenate([jnp.ravel(X[i]) for i in members]), axis)
        at = 0
        for i in members:
            done[i] = flat[at : at + X[i].size].reshape(X[i].shape)
            at += X[i].size
    return [done[i] for i in range(len(X))]


# Ops that open a ring: a job's processes are connected before any program runs, so a step skips
# these.
_INT = {"ring_id": Attr("ring_id", "INT", 0)}
control_op(
    "c_comm_init", ins="X", attrs={**_INT, **{n: Attr(n, "INT") for n in ("nranks", "rank")}},
    doc="Join ring `ring_id` as `rank` of `nranks`, by the id in X.", runs=Runs.HOST,
)  # fmt: skip
control_op(
    "c_comm_init_all", attrs={**_INT, "devices": Attr("devices", "INTS", ())},
    doc="Join ring = `ring_id` with all devices of this process.", runs=Runs.HOST,
)  # fmt: skip
control_op(
    "c_gen_nccl_id", outs="Out",
    attrs={
        "endpoint": Attr("endpoint", "STRING"), "other_endpoints": Attr("other_endpoints", "STRINGS", ()),
        "rank": Attr("rank", "INT", 0),
    },
    doc="Out = the id of a new ring, sent to all ranks.", runs=Runs.HOST,
)  # fmt: skip
control_op(
    "gen_nccl_id", outs="NCCLID",
    attrs={
        "endpoint": Attr("endpoint", "STRING", ""), "endpoint_list": Attr("endpoint_list", "STRINGS", ()),
        "trainers": Attr("trainers", "STRINGS", ()), "trainer_id": Attr("trainer_id", "INT", 0),
        "nccl_comm_num": Attr("nccl_comm_num", "INT", 1),
        "use_hierarchical_allreduce": Attr("use_hierarchical_allreduce", "BOOLEAN", False),
        "hierarchical_allreduce_inter_nranks": Attr("hierarchical_allreduce_inter_nranks", "INT", 0),
    },
    doc="NCCLID = the id of a new ring, sent to all trainers.", runs=Runs.HOST,
)  # fmt: skip
