"""tree_conv: a convolution over the nodes of trees. add_position_encoding: an encoding of a row's
position in its sequence, added to the row.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .infer import Spec
from .outside import within
from .ragged import Ragged, rows_of
from .registry import Array, grad_of, op
from .traits import knows_rows, mixes


def _tree_spec(NodesVector: Spec, EdgeSet: Spec, Filter: Spec, *, max_depth: int) -> Spec:
    if max_depth < 2:
        raise EnforceNotMet(f"op 'tree_conv' takes a max_depth of 2 or more, not {max_depth}")
    shapes = [tuple(s.shape) for s in (NodesVector, EdgeSet, Filter)]
    if (
        [len(s) for s in shapes] != [3, 3, 4]
        or shapes[1][2] != 2
        or shapes[2][:2] != (shapes[0][2], 3)
    ):
        raise ShapeError(
            "op 'tree_conv' takes NodesVector [N, nodes, F], EdgeSet [N, edges, 2] and Filter [F,"
            f" 3, D, M], not {', '.join(str(list(s)) for s in shapes)}"
        )
    return Spec((*NodesVector.shape[:2], *Filter.shape[2:]), NodesVector.dtype)


_NODES = within("EdgeSet", "node", lambda inputs, attrs: inputs["NodesVector"].shape[1] + 1)


@op(
    outs="Out",
    grad="NodesVector EdgeSet Filter",
    nograd="EdgeSet",
    infer=_tree_spec,
    rows=mixes(),
    refuses=_NODES,
    heavy=True,
)
def tree_conv(NodesVector: Array, EdgeSet: Array, Filter: Array, *, max_depth: int = 2):
    """Out[n, u] = the sum over nodes v below u (less than max_depth deep) of (l * Fl + r * Fr + t *
    Ft) applied to NodesVector[n, v].

    Filter [F, 3, D, M] holds Fl, Fr, Ft; Out [N, nodes, D, M]. EdgeSet [N, edges, 2]: parent and
    child, numbered from 1; edges with a 0 are ignored. At depth d, for the i-th of k children (i
    from 0): t = 1 - d / max_depth, l = (1 - t) * i / (k - 1) (half, if k = 1), r = (1 - t) * (1 -
    l). A tree has one node more than edges; beyond them Out is 0 (uninitialised memory in 1.8.5).
    """
    nodes = NodesVector.shape[1]
    parent, child = EdgeSet[..., 0], EdgeSet[..., 1]
    true = (parent != 0) & (child != 0)
    count = jnp.sum(true, 1) + 1
    numbers = jnp.arange(1, nodes + 1)
    # [N, edges, nodes]: the edge begins there
    below = true[..., None] & (parent[..., None] == numbers)
    at = true[..., None] & (child[..., None] == numbers)
    kind = NodesVector.dtype
    children = jnp.einsum("neu,nev->nuv", below.astype(kind), at.astype(kind))
    earlier = jnp.cumsum(below, 1) - below  # edges of the same parent before this one
    place = jnp.sum(jnp.where(below, earlier, 0), -1)
    size = jnp.sum(jnp.where(below, jnp.sum(below, 1, keepdims=True), 0), -1)
    share = jnp.where(size == 1, 0.5, place / jnp.maximum(size - 1, 1)).astype(kind)
    side = jnp.einsum("nev,ne->nv", at.astype(kind), share)
    reach = jnp.broadcast_to(jnp.eye(nodes, dtype=kind), children.shape)
    patch = []
    for depth in range(max_depth):
        top = (max_depth - depth) / max_depth
        left = (1 - top) * side
        right = (1 - top) * (1 - left) if depth else jnp.zeros_like(side)
        weights = jnp.stack(
            [left if depth else jnp.zeros_like(side), right, jnp.full_like(side, top)], -1
        )
        patch.append(jnp.einsum("nuv,nvk,nvf->nufk", reach, weights, NodesVector))
        reach = jnp.einsum("nuv,nvw->nuw", reach, children)
    out = jnp.einsum("nufk,fkdm->nudm", sum(patch[1:], patch[0]), Filter)
    return jnp.where((numbers <= count[:, None])[..., None, None], out, np.zeros((), kind))


def _position_spec(X: Spec, *, alpha: float, beta: float) -> Spec:
    if alpha < 0 or beta < 0:
        raise EnforceNotMet(
            f"op 'add_position_encoding' takes an alpha and a beta of 0 or more, not {alpha} and"
            f" {beta}"
        )
    if len(X.shape) not in (2, 3) or X.shape[-1] % 2:
        raise ShapeError(
            "op 'add_position_encoding' takes X [N, T, D] or rows [rows, D] with a LoD, D even,"
            f" not {list(X.shape)}"
        )
    return X


@op(outs="Out", infer=_position_spec, rows=knows_rows(Out="X", by_offsets=True))
def add_position_encoding(X: Array | Ragged, *, alpha: float = 1.0, beta: float = 1.0):
    """Out = alpha * X + beta * [sin(t / s), cos(t / s)] at time t, where s = 10000^(k / (D / 2 -
    1)) for k < D / 2.

    X [N, T, D], or [rows, D] with one LoD level, where t counts from the beginning of each
    sequence. D is even.
    """
    rows, half = (
        rows_of(X),
        X.shape[-1] // 2 if not isinstance(X, Ragged) else X.rows.shape[-1] // 2,
    )
    if isinstance(X, Ragged) and not X.bare:
        sequence = jnp.minimum(X.sequence(), max(X.sequences - 1, 0))
        time = (jnp.arange(X.capacity, dtype=jnp.int32) - X.offsets[-1][sequence])[:, None]
    elif rows.ndim == 3:
        time = jnp.arange(rows.shape[1])[:, None]
    else:
        raise EnforceNotMet(
            "op 'add_position_encoding' takes X [N, T, D], or rows with a LoD; feed a LoDTensor"
        )
    scale = np.power(10000.0, np.arange(half) / (half - 1)) if half > 1 else np.array([10000.0])
    angle = time.astype(jnp.float64) / scale
    shift = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
    out = (alpha * rows + beta * shift).astype(rows.dtype)
    return X.with_rows(out) if isinstance(X, Ragged) else out


@grad_of("add_position_encoding", "")
def add_position_encoding_grad(d_Out: Array, *, alpha: float):
    """X@GRAD = alpha * Out@GRAD."""
    return (alpha * d_Out).astype(d_Out.dtype)
