"""Trees of items for retrieval: tdm_child looks up children, tdm_sampler samples negative nodes for
each layer of a path.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidValueError, ShapeError
from .bounds import size_of
from .index import narrow, take
from .registry import Array, Ints, op
from .traits import Bounds, row_wise

_HEAD = 3  # columns of TreeInfo before the children: item, layer, parent


def _integers(kind: str, dtype: int) -> Any:
    name = name_of(dtype)
    if name not in ("int32", "int64"):
        raise FluidValueError(f"{kind}'s dtype is int32 or int64, not {name}")
    return numpy_dtype(name)


@op(outs="Child LeafMask", rows=row_wise("X"), bounds=Bounds("X", "node", size_of("TreeInfo", 0)))
def tdm_child(X: Array, TreeInfo: Array, *, child_nums: int, dtype: int = 2):
    """Child [N, K, child_nums] = the children of node X[i, j] in the tree, all 0 if it has none;
    LeafMask: 1 where a child is an item.

    X [N, K]. TreeInfo [nodes, 3 + child_nums]: item (0: an inner node), layer, parent, children.
    Node 0 means no node.
    """
    kind = _integers("tdm_child", dtype)
    if X.ndim != 2 or TreeInfo.ndim != 2 or TreeInfo.shape[1] != _HEAD + child_nums:
        raise ShapeError(
            f"tdm_child takes X [N, K] and TreeInfo [nodes, 3 + child_nums = {_HEAD + child_nums}],"
            f" not {list(X.shape)} and {list(TreeInfo.shape)}"
        )
    node = take(TreeInfo, X[..., None])
    there = (X != 0) & (node[..., _HEAD] != 0)
    child = jnp.where(there[..., None], node[..., _HEAD:], 0)
    item = take(TreeInfo, child[..., None])[..., 0] != 0
    return child.astype(kind), (item & there[..., None]).astype(kind)


def _checked_layers(travel: Any, layer: Any, negatives: Ints, offsets: Ints) -> None:
    if len(offsets) != len(negatives) + 1 or travel.shape[1:] != (len(negatives),):
        raise ShapeError(
            "tdm_sampler takes a number of negatives, an interval of layer_offset_lod and a column"
            f" of Travel for each layer, not {list(negatives)}, {list(offsets)} and Travel"
            f" {list(travel.shape)}"
        )
    sizes = np.diff(np.asarray(offsets))
    if layer.size < max(offsets) or any(
        not 0 <= n < size for n, size in zip(negatives, sizes, strict=True)
    ):
        raise FluidValueError(
            "tdm_sampler samples fewer negatives of a layer than it has nodes, but"
            f" neg_samples_num_list is {list(negatives)}, the layers have {sizes.tolist()} nodes,"
            f" and Layer has {layer.size}"
        )


@op(outs="Out Labels? Mask", rows=row_wise("X"), bounds=Bounds("X", "item", size_of("Travel", 0)))
def tdm_sampler(
    X: Array, Travel: Array, Layer: Array, *, output_positive: bool = True, neg_samples_num_list: Ints = (),
    layer_offset_lod: Ints = (), seed: int = 0, dtype: int = 2, layer_offset: Ints = (), key: jax.Array,
):  # fmt: skip
    """Out [N, width] = for each layer the node on the path to item X[i] (with output_positive),
    then different others, sampled uniformly.

    Labels: 1 for nodes on the path, 0 for sampled ones; Mask: 1; both (and Out) are 0 in layers
    beyond the path. Travel [items, layers]: the path to each item, 0 beyond its end. Layer [nodes,
    1]: the nodes layer by layer, as layer_offset_lod (in later Paddles layer_offset) divides them.
    """
    layer_offset_lod = layer_offset_lod or layer_offset
    kind = _integers("tdm_sampler", dtype)
    _checked_layers(Travel, Layer, neg_samples_num_list, layer_offset_lod)
    way, nodes = take(Travel, X.reshape(-1, 1)), jnp.asarray(Layer).reshape(-1)
    outs, labels, masks = [], [], []
    for i, count in enumerate(neg_samples_num_list):
        own = way[:, i : i + 1]
        drawn = _others(
            jax.random.fold_in(key, i),
            own,
            nodes[layer_offset_lod[i] : layer_offset_lod[i + 1]],
            count,
        )
        all = jnp.concatenate([own, drawn], 1) if output_positive else drawn
        there = jnp.broadcast_to(own != 0, all.shape)
        outs.append(jnp.where(there, all, 0))
        masks.append(there)
        labels.append(there & (jnp.arange(all.shape[1]) < output_positive))
    return tuple(jnp.concatenate(parts, 1).astype(kind) for parts in (outs, labels, masks))


def _others(key: jax.Array, own: Any, nodes: Any, count: int) -> Any:
    """[N, count]: for each row, `count` different nodes other than `own` [N, 1]; each choice is
    equally likely.
    """
    order = jax.random.uniform(key, (own.shape[0], nodes.shape[0]), np.float32)
    order = jnp.where(nodes == own, -1.0, order)
    _, at = jax.lax.top_k(order, count)
    return nodes[narrow(at, nodes.shape)]
