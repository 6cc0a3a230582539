"""paddle.nn.functional: attention by scaled products."""

from __future__ import annotations

import numpy as np

from .... import layers
from ....graph.variable import Variable
from ....layers._build import require
from ...math import add, matmul
from .common import dropout


def scaled_dot_product_attention(
    query: Variable, key: Variable, value: Variable, attn_mask: Variable | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    training: bool = True, name: str | None = None, *, scale: float | None = None,
) -> Variable:  # fmt: skip
    """softmax(query @ key^T * scale + attn_mask) @ value, head by head: query [N, Lq, heads, D],
    key and value [N, Lk, heads, D].

    attn_mask: added to the products [N, heads, Lq, Lk] (a boolean one: True where a key counts).
    is_causal: query i sees keys up to i. scale: default 1 / sqrt(D). dropout_p: the fraction of
    weights that `training` sets to 0. The result has query's shape. Raises FluidValueError unless
    all have four dimensions, and for both a mask and is_causal.
    """
    given = {"query": query, "key": key, "value": value}
    for what, v in given.items():
        require(
            v.ndim == 4,
            f"scaled_dot_product_attention's {what} is [N, L, heads, D], not {list(v.shape)}",
        )
    require(
        attn_mask is None or not is_causal,
        "scaled_dot_product_attention takes an attn_mask or is_causal, not both",
    )
    q, k, v = (layers.transpose(each, [0, 2, 1, 3]) for each in given.values())
    products = matmul(layers.scale(q, float(scale or query.shape[-1] ** -0.5)), k, False, True)
    if is_causal:
        rows, columns = query.shape[1], key.shape[1]
        require(
            min(rows, columns) > 0, "scaled_dot_product_attention's is_causal takes known lengths"
        )
        attn_mask = layers.assign(np.triu(np.full([rows, columns], -1e30, "float32"), 1))
        attn_mask = (
            attn_mask if query.desc.dtype == "float32" else layers.cast(attn_mask, query.dtype)
        )
    if attn_mask is not None:
        if attn_mask.desc.dtype == "bool":
            attn_mask = layers.scale(layers.cast(attn_mask, query.dtype), 1e30, -1e30)
        products = add(products, attn_mask)
    weights = layers.softmax(products)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, training=training)
    return layers.transpose(matmul(weights, v), [0, 2, 1, 3])


__all__ = ["scaled_dot_product_attention"]
