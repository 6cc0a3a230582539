"""Gather and scatter, selection, arg-max, sort.

Indices are trusted, as in Paddle's kernels: the result for an index out of range is undefined, and
the step does not check it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidTypeError, ShapeError
from ..ir.desc import OpDesc
from . import loops
from .bounds import candidates, gathered, places, size_of
from .broadcast import same_rows, same_shape
from .concrete import are_numbers, concrete, index_type, integers
from .conditions import absent, both, inner_axis, rank_from, unset
from .infer import Spec
from .ragged import Ragged, rows_of
from .reduce import without_nan
from .registry import Array, Int64, grad_of, op
from .traits import Bounds, knows_rows, mixes, row_wise, sizes_from

_TRUST = "promise_in_bounds"


def narrow(ids: Array, dims: Sequence[int]) -> Array:
    """int64 indices as int32 if the indexed dims allow it, which halves the index arithmetic."""
    return ids.astype(index_type(dims)) if ids.dtype == np.int64 else ids


def take(X: Array, index: Array) -> Array:
    """X[index[..., 0], index[..., 1], ...] without wrapping or checking; index [..., k], result
    [..., *X.shape[k:]].
    """
    k = index.shape[-1]
    lead = index.ndim - 1
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(lead, lead + X.ndim - k)),
        collapsed_slice_dims=tuple(range(k)),
        start_index_map=tuple(range(k)),
    )
    sizes = (1,) * k + tuple(X.shape[k:])
    return lax.gather(
        X, narrow(index, X.shape[:k]), numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )


def put(X: Array, index: Array, updates: Array, add: bool) -> Array:
    """X with updates [..., *X.shape[k:]] written or added at index [..., k]; out of range: dropped."""
    k = index.shape[-1]
    lead = index.ndim - 1
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(lead, lead + X.ndim - k)),
        inserted_window_dims=tuple(range(k)),
        scatter_dims_to_operand_dims=tuple(range(k)),
    )
    scatter = lax.scatter_add if add else lax.scatter
    return scatter(
        jnp.asarray(X),
        narrow(index, X.shape[:k]),
        updates,
        numbers,
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


def rows(ids: Array) -> Array:
    """Row numbers [N] or [N, 1] as an index [N, 1]."""
    return ids.reshape(-1, 1)


def _gather_spec(X: Spec, Index: Spec, Axis: Spec | None, *, overwrite: bool, axis: int) -> Spec:
    if Axis is not None:
        return Spec((-1,) * (X.ndim + min(Index.ndim, 1) - 1), X.dtype)
    at = _axis_of("gather", X, None, axis)
    if Index.ndim == 2 and Index.shape[1] not in (-1, 1):
        raise ShapeError(f"gather takes an Index [N] or [N, 1], not {list(Index.shape)}")
    count = [-1 if min(Index.shape) < 0 else math.prod(Index.shape)] if Index.ndim else []
    return Spec((*X.shape[:at], *count, *X.shape[at + 1 :]), X.dtype)


def _axis_of(kind: str, X: Array | Spec, Axis: Array | None, axis: int) -> int:
    at = integers(kind, "Axis", Axis, None, [axis])[0]
    if not -X.ndim <= at < X.ndim:
        raise ShapeError(f"{kind}: X {list(X.shape)} has no axis {at}")
    return at % X.ndim


@op(
    outs="Out",
    infer=_gather_spec,
    bounds=Bounds("Index", "index", gathered),
    sizes=sizes_from("Axis"),
    rows=row_wise("Index", lod=None, by_number="X", when=both(absent("Axis"), unset("axis"))),
)
def gather(X: Array, Index: Array, Axis: Array | None, *, overwrite: bool = True, axis: int = 0):
    """Out[..., i, ...] = X[..., Index[i], ...] along the first axis; in later Paddles along `axis`,
    or along Axis [1].
    """
    at = _axis_of("gather", X, Axis, axis)
    if at or not Index.ndim:
        return jnp.take(
            X, narrow(Index.reshape(-1) if Index.ndim else Index, X.shape), axis=at, mode="clip"
        )
    return take(X, rows(Index))


@grad_of(
    "gather",
    "X Index Axis",
    nograd="Index Axis",
    ragged="Index Out@GRAD",
    rows=knows_rows(),
    sizes=sizes_from("Axis"),
)
def gather_grad(
    X: Array,
    Index: Array | Ragged,
    Axis: Array | None,
    d_Out: Array | Ragged,
    *,
    overwrite: bool,
    axis: int,
):
    """d_X[..., Index[i], ...] = d_Out[..., i, ...], the last one if an index repeats (+= unless
    overwrite, and along other axes).
    """
    index, d = rows_of(Index), rows_of(d_Out)
    at = _axis_of("gather_grad", X, Axis, axis)
    if at:
        return (
            jnp.zeros(X.shape, d.dtype)
            .at[(slice(None),) * at + (index.reshape(-1) if index.ndim else index,)]
            .add(d)
        )
    if not index.ndim:
        index, d = index.reshape(1), d[None]
    # a repeated index in the padding would overwrite
    if isinstance(Index, Ragged) and Index.padded:
        index = jnp.where(Index.kept().reshape(-1, *[1] * (index.ndim - 1)), index, X.shape[0])
    return put(jnp.zeros(X.shape, d.dtype), rows(index), d, add=not overwrite)


@op(
    outs="Out",
    rows=row_wise("Index", when=rank_from(2, "Index"), lod=None),
    bounds=Bounds("Index", "index", places),
)
def gather_nd(X: Array, Index: Array):
    """Out[...] = X[Index[..., 0], Index[..., 1], ...]."""
    return take(X, Index)


@grad_of("gather_nd", "X Index", nograd="Index")
def gather_nd_grad(X: Array, Index: Array, d_Out: Array):
    """d_X[Index[..., 0], ...] += d_Out[...]."""
    return put(jnp.zeros(X.shape, d_Out.dtype), Index, d_Out, add=True)


@op(outs="Out", rows=mixes(), bounds=Bounds("Ids", "ids", size_of("X", 0)))
def scatter(X: Array, Ids: Array, Updates: Array, *, overwrite: bool = True):
    """Out = X, but Out[Ids[i]] = Updates[i]; unless overwrite: the sum of all Updates[i] of that
    row.
    """
    ids = rows(Ids)
    if len(Updates) != len(ids):
        raise ShapeError(
            f"scatter takes a row of Updates for each id, not {len(Updates)} rows for {len(ids)} ids"
        )
    if overwrite:
        ids = lax.platform_dependent(
            ids, cpu=lambda ids: ids, default=lambda ids: last_of_each(ids, X.shape[0])
        )
        return put(X, ids, Updates, add=False)
    return put(put(X, ids, jnp.zeros_like(Updates), add=False), ids, Updates, add=True)


def last_of_each(ids: Array, height: int) -> jax.Array:
    """Row numbers [N, 1], moved past the end if a later one is equal: a GPU writes rows in any
    order, and the last one must win.
    """
    order = jnp.argsort(ids[:, 0], stable=True)
    ordered = ids[order, 0]
    last = jnp.append(ordered[1:] != ordered[:-1], True)
    counts = jnp.zeros(ids.shape[:1], bool).at[order].set(last, unique_indices=True)
    return jnp.where(counts[:, None], ids, height)


@grad_of("scatter", "Ids Updates", nograd="Ids")
def scatter_grad(Ids: Array, Updates: Array, d_Out: Array):
    """d_X = d_Out, d_Updates[i] = d_Out[Ids[i]]: Paddle does not clear the overwritten rows of d_X."""
    return d_Out, take(d_Out, rows(Ids))


@op(outs="Out", rows=mixes("X"), bounds=Bounds("Index", "index", places))
def scatter_nd_add(X: Array, Index: Array, Updates: Array):
    """Out = X, but Out[Index[..., 0], ...] += Updates[...]."""
    return put(X, Index, Updates, add=True)


@grad_of("scatter_nd_add", "Index Updates", nograd="Index")
def scatter_nd_add_grad(Index: Array, Updates: Array, d_Out: Array):
    """d_X = d_Out, d_Updates[...] = d_Out[Index[..., 0], ...]."""
    return d_Out, take(d_Out, Index)


@op(
    outs="Out",
    grad="Condition X Y",
    nograd="Condition",
    rows=row_wise("Condition", "X", "Y", lod="X"),
)
def where(Condition: Array, X: Array, Y: Array):
    """Out = X where Condition, else Y; all of one shape."""
    return jnp.where(Condition, X, Y)


@op(outs="Out", rows=mixes(), bounds=Bounds("Ids", "ids", candidates))
def multiplex(Ids: Array, X: list[Array]):
    """Out[i] = X[Ids[i]][i]: row i of the input that Ids [N, 1] names."""
    same_shape("multiplex", **{f"X[{k}]": x for k, x in enumerate(X)})
    ids = Ids.reshape(-1, *[1] * (X[0].ndim - 1))[: X[0].shape[0]]
    out = X[-1]
    for k in range(len(X) - 2, -1, -1):
        out = jnp.where(ids == k, X[k], out)
    return out


@grad_of("multiplex", "Ids", nograd="Ids")
def multiplex_grad(Ids: Array, d_Out: Array, *, counts: Mapping[str, int]):
    """d_X[k][i] = d_Out[i] where Ids[i] is k, else 0."""
    ids = Ids.reshape(-1, *[1] * (d_Out.ndim - 1))
    return [jnp.where(ids == k, d_Out, np.zeros((), d_Out.dtype)) for k in range(counts["X@GRAD"])]


@op(
    outs="Out",
    grad="X Index",
    nograd="Index",
    rows=row_wise("X", when=inner_axis("dim")),
    bounds=Bounds("Index", "index", size_of("X", "dim")),
)
def index_select(X: Array, Index: Array, *, dim: int = 0):
    """Out[..., i, ...] = X[..., Index[i], ...] along `dim`."""
    return jnp.take(X, narrow(Index, X.shape), axis=dim, mode="clip")


def _sample_spec(X: Spec, Index: Spec) -> Spec:
    rows = {s.shape[0] for s in (X, Index) if s.ndim == 2} - {-1}
    if X.ndim != 2 or Index.ndim != 2 or len(rows) > 1:
        raise ShapeError(
            f"op 'index_sample' takes X [N, D] and Index [N, M], not {list(X.shape)} and"
            f" {list(Index.shape)}"
        )
    if Index.dtype not in ("int32", "int64"):
        raise FluidTypeError(
            f"op 'index_sample' takes an Index of int32 or int64, not {Index.dtype}"
        )
    return Spec(Index.shape, X.dtype)


@op(
    outs="Out",
    grad="X Index",
    nograd="Index",
    infer=_sample_spec,
    rows=row_wise("X", "Index", lod="Index"),
    bounds=Bounds("Index", "index", size_of("X", 1)),
)
def index_sample(X: Array, Index: Array):
    """Out[i, j] = X[i, Index[i, j]]."""
    same_rows("index_sample", X=X, Index=Index)
    return jnp.take_along_axis(X, narrow(Index, X.shape), axis=1, mode=_TRUST)


def _arg(
    X: Array,
    pick: Callable[..., Array],
    axis: int,
    keepdims: bool,
    dtype: int,
    flatten: bool = False,
) -> Array:
    wanted = numpy_dtype("int64" if dtype < 0 else name_of(dtype))
    if flatten:
        found = _arg(X.reshape(-1), pick, 0, False, dtype)
        return found.reshape((1,) * X.ndim) if keepdims else found
    if not -X.ndim <= axis < X.ndim:
        raise ShapeError(f"axis {axis} is not one of the dimensions of {list(X.shape)}")
    axis %= X.ndim
    found = pick(X, axis, index_type(X.shape[axis : axis + 1])).astype(wanted)
    return jnp.expand_dims(found, axis) if keepdims else found


@op(outs="Out", rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten")), lod=None))
def arg_max(
    X: Array, *, axis: Int64, keepdims: bool = False, dtype: int = -1, flatten: bool = False
):
    """Out = the index of the largest element along `axis`, the first of equals; int64, or `dtype`.
    nan never wins.

    flatten: over all elements.
    """
    return _arg(without_nan(X, -np.inf), lax.argmax, axis, keepdims, dtype, flatten)


@op(outs="Out", rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten")), lod=None))
def arg_min(
    X: Array, *, axis: Int64, keepdims: bool = False, dtype: int = -1, flatten: bool = False
):
    """Out = the index of the smallest element along `axis`, the first of equals; int64, or `dtype`.
    nan never wins.

    flatten: over all elements.
    """
    return _arg(without_nan(X, np.inf), lax.argmin, axis, keepdims, dtype, flatten)


def _opposite(X: Array) -> Array:
    """An order-reversing map that is its own inverse."""
    return -X if jnp.issubdtype(X.dtype, jnp.floating) else ~X


@op(outs="Out Indices", rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten"))))
def argsort(X: Array, *, axis: int = -1, descending: bool = False):
    """Out = X sorted along `axis`, Indices (int64) where its elements were; equals keep their
    order.
    """
    order = lax.broadcasted_iota(index_type([X.shape[axis]]), X.shape, axis % X.ndim)
    key, order = lax.sort(
        [jnp.asarray(_opposite(X) if descending else X), order], dimension=axis, num_keys=1
    )
    return _opposite(key) if descending else key, order.astype(np.int64)


def _scattered(X: Array, Indices: Array, d_Out: Array, axis: int) -> Array:
    """Zeros of X's shape with d_Out at Indices along `axis`."""
    zeros = jnp.zeros(X.shape, d_Out.dtype)
    return jnp.put_along_axis(
        zeros, narrow(Indices, X.shape), d_Out, axis, inplace=False, mode=_TRUST
    )


@grad_of("argsort", "X Indices", grad_outs="Out")
def argsort_grad(X: Array, Indices: Array, d_Out: Array, *, axis: int):
    """d_X = d_Out put back where its elements came from."""
    return _scattered(X, Indices, d_Out, axis)


def _top_k_spec(X: Spec, K: Spec | None, *, k: int) -> tuple[Spec, Spec]:
    if X.ndim == 0:
        raise ShapeError("op 'top_k' takes an X of 1 dimension or more, not of none")
    if K is None and k < 1:
        raise ShapeError(f"op 'top_k' takes a k of 1 or more, not {k}")
    dims = (*X.shape[:-1], k if K is None else -1)
    return Spec(dims, X.dtype), Spec(dims, "int64")


@op(
    outs="Out Indices",
    infer=_top_k_spec,
    rows=row_wise("X", when=rank_from(2)),
    sizes=sizes_from("K"),
)
def top_k(X: Array, K: Array | None, *, k: int = 1):
    """Out = the k largest along the last dim, in order, Indices (int64) where they are; K overrides
    k.

    Equal elements, and zeros of both signs, keep their order. nan is less than any number; but with
    k = 1, a nan in first place stays, because no comparison replaces it.
    """
    count = integers("top_k", "K", K, None, [k])[0]
    if not 0 <= count <= X.shape[-1]:
        raise ShapeError(
            f"top_k: k is {count}, but X {list(X.shape)} has {X.shape[-1]} in its last dim"
        )
    if not jnp.issubdtype(X.dtype, jnp.floating):
        out, indices = lax.top_k(X, count)
        return out, indices.astype(np.int64)
    keys = without_nan(X, -np.inf)
    # -0.0 would come after 0.0
    _, indices = lax.top_k(jnp.where(keys == 0, np.zeros((), X.dtype), keys), count)
    if count == 1:
        indices = jnp.where(jnp.isnan(X[..., :1]), 0, indices)
    return jnp.take_along_axis(X, indices, -1), indices.astype(np.int64)


@grad_of("top_k", "X Indices", nograd="K", grad_outs="Out")
def top_k_grad(X: Array, Indices: Array, d_Out: Array):
    """d_X = d_Out at Indices, else 0."""
    return _scattered(X, Indices, d_Out, -1)


@op(outs="Out", rows=row_wise("X"))
def shard_index(X: Array, *, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1):
    """Out = X mod size if shard_id holds X, else ignore_value; a shard holds size = ceil(index_num
    / nshards) indices.
    """
    per_shard = np.array(-(-index_num // nshards), X.dtype)
    return jnp.where(X // per_shard == shard_id, X % per_shard, np.array(ignore_value, X.dtype))


def _mask_spec(X: Spec, MaxLenTensor: Spec | None, *, maxlen: int, out_dtype: int) -> Spec:
    return Spec(
        (*X.shape, maxlen if maxlen > 0 and MaxLenTensor is None else -1), name_of(out_dtype)
    )


def _known_length(op: OpDesc, slot: str, at: int) -> bool:
    """X decides the size only if neither a tensor nor the attribute does."""
    return slot == "X" and (bool(op.input("MaxLenTensor")) or op.attrs.get("maxlen", -1) >= 0)


@op(outs="Y", infer=_mask_spec, rows=mixes(), sizes=sizes_from("MaxLenTensor X", _known_length))
def sequence_mask(X: Array, MaxLenTensor: Array | None, *, maxlen: int = -1, out_dtype: int):
    """Y[..., j] = 1 where j < X[...], else 0, for j < maxlen; the largest X if maxlen is negative."""
    if MaxLenTensor is not None:
        maxlen = integers("sequence_mask", "MaxLenTensor", MaxLenTensor, None, ())[0]
        if are_numbers([maxlen]) and maxlen < 1:
            raise ShapeError(f"sequence_mask takes a MaxLenTensor above 0, not {maxlen}")
    elif maxlen < 0:
        maxlen = int(concrete(X, "sequence_mask", "X").max())
    return (jnp.arange(maxlen, dtype=X.dtype) < X[..., None]).astype(
        numpy_dtype(name_of(out_dtype))
    )


def _tree_spec(Ids: Spec, Parents: Spec) -> Spec:
    pairs = zip(Ids.shape, Parents.shape, strict=False)
    if not Ids.ndim == Parents.ndim == 3 or any(a != b and -1 not in (a, b) for a, b in pairs):
        raise ShapeError(
            f"op 'gather_tree' takes Ids and Parents [T, B, W] of one shape, not {list(Ids.shape)}"
            f" and {list(Parents.shape)}"
        )
    return Ids


@op(
    outs="Out",
    rows=mixes(),
    infer=_tree_spec,
    bounds=Bounds("Parents", "parent", size_of("Ids", 2)),
)
def gather_tree(Ids: Array, Parents: Array):
    """Out[t] = Ids[t, b, parent], from the last step back: beams [T, B, W] read along the chains of
    Parents.
    """

    def back(beam: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        ids, parents = step
        index = narrow(beam, Ids.shape)
        before = jnp.take_along_axis(parents, index, axis=-1, mode=_TRUST)
        return before, jnp.take_along_axis(ids, index, axis=-1, mode=_TRUST)

    last = jnp.broadcast_to(jnp.arange(Ids.shape[-1], dtype=Parents.dtype), Parents.shape[1:])
    return loops.scan(back, last, (jnp.asarray(Ids), jnp.asarray(Parents)), reverse=True)[1]
