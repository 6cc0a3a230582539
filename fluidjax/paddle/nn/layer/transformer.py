"""Attention with several heads, and the encoders and decoders of Transformers, as layers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

from .... import layers
from ....errors import FluidTypeError
from ....graph.variable import Variable
from ....layers._build import require
from ...creation import full
from ...math import matmul
from ...tensor import concat
from .. import functional as F
from .base import Layer
from .common import Dropout, Linear
from .container import LayerList
from .norm import LayerNorm


def _added(mask: Variable | None, dtype: Any) -> Variable | None:
    """The addend of attention from a mask: a bool or integer mask is true for keys that count, a
    float mask is added unchanged.
    """
    if mask is None or (mask.desc.dtype or "").startswith("float"):
        return mask
    return layers.scale(layers.cast(mask, dtype), 1e9, -1e9)


class Cache(NamedTuple):
    """Keys and values by heads, [N, heads, T, head_dim], of the steps so far."""

    k: Variable
    v: Variable


class StaticCache(NamedTuple):
    """Keys and values by heads that every step attends to, such as those of an encoder's output."""

    k: Variable
    v: Variable


_Caches = Cache | StaticCache


class MultiHeadAttention(Layer):
    """out_proj(softmax(q @ k^T / sqrt(head_dim) + mask) @ v), by heads; q, k, v are projections of
    query, key and value.

    query [N, T, embed_dim], key [N, S, kdim], value [N, S, vdim] give [N, T, embed_dim], with
    need_weights also the weights [N, heads, T, S], with a cache from gen_cache also the next cache.
    Raises FluidValueError if the heads do not divide embed_dim, FluidTypeError for a cache of
    another kind.
    """

    Cache = Cache
    StaticCache = StaticCache

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, kdim: int | None = None, vdim: int | None = None,
        need_weights: bool = False, weight_attr: Any = None, bias_attr: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        fits = embed_dim > 0 and num_heads > 0 and embed_dim % num_heads == 0
        require(
            fits,
            f"MultiHeadAttention's embed_dim {embed_dim} does not divide into {num_heads} heads",
        )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: Variable) -> Variable:
        return layers.transpose(
            layers.reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3]
        )

    def forward(
        self, query: Variable, key: Variable | None = None, value: Variable | None = None, attn_mask: Variable | None = None,
        cache: _Caches | None = None,
    ) -> Any:  # fmt: skip
        if not isinstance(cache, Cache | StaticCache | None):
            raise FluidTypeError(
                f"MultiHeadAttention's cache is what gen_cache gave, not {type(cache).__name__}"
            )
        key = query if key is None else key
        value = key if value is None else value
        q = self._heads(self.q_proj(query))
        k, v = (cache.k, cache.v) if isinstance(cache, StaticCache) else self.compute_kv(key, value)
        if isinstance(cache, Cache):
            k, v = concat([cache.k, k], 2), concat([cache.v, v], 2)
            cache = Cache(k, v)
        product = matmul(layers.scale(q, self.head_dim**-0.5), k, transpose_y=True)
        mask = _added(attn_mask, product.dtype)
        weights = F.softmax(product if mask is None else layers.elementwise_add(product, mask))
        if self.dropout:
            weights = F.dropout(weights, self.dropout, training=self.training)
        out = layers.reshape(
            layers.transpose(matmul(weights, v), [0, 2, 1, 3]), [0, 0, self.embed_dim]
        )
        out = self.out_proj(out)
        found = (
            out,
            *([weights] if self.need_weights else ()),
            *([cache] if cache is not None else ()),
        )
        return found[0] if len(found) == 1 else found

    def compute_kv(self, key: Variable, value: Variable) -> tuple[Variable, Variable]:
        """The projections of key and value by heads: [N, heads, S, head_dim] each."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key: Variable, value: Variable | None = None, type: Any = Cache) -> _Caches:
        """A cache for `forward`: with StaticCache, the projections of key and value (default key).

        Otherwise key and value themselves (projected, by heads), or without a value an empty cache
        for key's batch.
        """
        if type is StaticCache:
            return StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return Cache(key, value)
        shape = [-1, self.num_heads, 0, self.head_dim]
        k, v = (layers.fill_constant_batch_size_like(key, shape, key.dtype, 0) for _ in range(2))
        return Cache(k, v)


class _Block(Layer):
    """The base of encoder and decoder layers: a feed-forward net, and normalisation before or after
    each part.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: str, attn_dropout: float | None,
        act_dropout: float | None, normalize_before: bool, weight_attr: Any, bias_attr: Any, parts: int,
    ) -> None:  # fmt: skip
        super().__init__()
        # for copies: every layer of a stack has separate parameters
        kind: Any = type(self)  # from which the number of parts is known
        vars(self)["made_by"] = lambda: kind(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
        )
        held = dropout if attn_dropout is None else attn_dropout
        weights, biases = (_one_each(attr, parts) for attr in (weight_attr, bias_attr))
        self.normalize_before = normalize_before
        self.self_attn = MultiHeadAttention(
            d_model, nhead, held, weight_attr=weights[0], bias_attr=biases[0]
        )
        if parts == 3:
            self.cross_attn = MultiHeadAttention(
                d_model, nhead, held, weight_attr=weights[1], bias_attr=biases[1]
            )
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for k in range(1, parts + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model))
        for k in range(1, parts + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))
        vars(self)["activation"] = getattr(F, activation)

    def part(self, x: Variable, compute: Callable[[Variable], Any], k: int) -> tuple[Variable, Any]:
        """x + dropout(compute(x)), normalised before or after; and the cache that compute returns,
        if any, else None.
        """
        norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        made = compute(norm(x) if self.normalize_before else x)
        made, cache = made if isinstance(made, tuple) else (made, None)
        out = layers.elementwise_add(x, drop(made))
        return out if self.normalize_before else norm(out), cache

    def feed_forward(self, x: Variable) -> Variable:
        """linear2(dropout(activation(linear1(x))))."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _one_each(attr: Any, n: int) -> list[Any]:
    """An attribute for each part of a layer, from one attribute or a list."""
    if isinstance(attr, list | tuple):
        require(
            len(attr) == n, f"a Transformer's layer takes one attribute or {n}, not {len(attr)}"
        )
        return list(attr)
    return [copy(attr) for _ in range(n)]


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward net, each with dropout, residual connection and
    normalisation.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, activation: str = "relu",
        attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False, weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before, weight_attr,
                         bias_attr, 2)  # fmt: skip

    def forward(self, src: Variable, src_mask: Variable | None = None, cache: Any = None) -> Any:
        """The layer's output; with a cache from gen_cache also the next cache."""
        out, following = self.part(src, lambda x: self.self_attn(x, x, x, src_mask, cache), 1)
        out, _ = self.part(out, self.feed_forward, 2)
        return out if cache is None else (out, following)

    def gen_cache(self, src: Variable) -> Cache | StaticCache:
        """An empty cache for src's batch."""
        return self.self_attn.gen_cache(src)


class TransformerDecoderLayer(_Block):
    """TransformerEncoderLayer with attention to a memory between its two parts."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, activation: str = "relu",
        attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False, weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before, weight_attr,
                         bias_attr, 3)  # fmt: skip

    def forward(
        self,
        tgt: Variable,
        memory: Variable,
        tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
        cache: Any = None,
    ) -> Any:
        """The layer's output; with a cache from gen_cache also the next cache."""
        own, of_memory = (None, None) if cache is None else cache
        out, own = self.part(tgt, lambda x: self.self_attn(x, x, x, tgt_mask, own), 1)
        out, of_memory = self.part(
            out, lambda x: self.cross_attn(x, memory, memory, memory_mask, of_memory), 2
        )
        out, _ = self.part(out, self.feed_forward, 3)
        return out if cache is None else (out, (own, of_memory))

    def gen_cache(self, memory: Variable) -> tuple[Cache | StaticCache, Cache | StaticCache]:
        """An empty cache for memory's batch, and the memory's keys and values."""
        return self.self_attn.gen_cache(memory), self.cross_attn.gen_cache(
            memory, memory, StaticCache
        )


class _Stack(Layer):
    """num_layers layers: the given one, and others with its arguments."""

    def __init__(self, first: Any, num_layers: int, norm: Layer | None) -> None:
        super().__init__()
        self.layers = LayerList([first if k == 0 else first.made_by() for k in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def through(self, x: Variable, *others: Any, cache: Any = None) -> Any:
        """x through all layers, and through the last normalisation; with a list of caches also the
        next caches.
        """
        following = []
        for k, layer in enumerate(self.layers):
            if cache is None:
                x = layer(x, *others)
            else:
                x, made = layer(x, *others, cache[k])
                following.append(made)
        x = x if self.norm is None else self.norm(x)
        return x if cache is None else (x, following)


class TransformerEncoder(_Stack):
    """num_layers encoder layers in sequence, each with its own parameters, and a normalisation."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: Variable, src_mask: Variable | None = None, cache: Any = None) -> Any:
        """The last layer's output; with a cache from gen_cache also the next cache."""
        return self.through(src, src_mask, cache=cache)

    def gen_cache(self, src: Variable) -> list[Any]:
        """An empty cache for each layer, for src's batch."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(_Stack):
    """num_layers decoder layers in sequence, each with its own parameters, and a normalisation."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Variable,
        memory: Variable,
        tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
        cache: Any = None,
    ) -> Any:
        """The last layer's output; with a cache from gen_cache also the next cache."""
        return self.through(tgt, memory, tgt_mask, memory_mask, cache=cache)

    def gen_cache(self, memory: Variable, do_zip: bool = False) -> list[Any]:
        """Each layer's caches; do_zip: a list of all layers' own, and one of all layers' of the
        memory.
        """
        found = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*found, strict=True)) if do_zip else found


class Transformer(Layer):
    """An encoder of the source and a decoder of the target, which attends to the encoder's output."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: str = "relu", attn_dropout: float | None = None, act_dropout: float | None = None,
        normalize_before: bool = False, weight_attr: Any = None, bias_attr: Any = None, custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d_model, self.nhead = d_model, nhead
        options = (
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
        )
        if custom_encoder is None:
            first = TransformerEncoderLayer(d_model, nhead, *options)
            custom_encoder = TransformerEncoder(first, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            begin = TransformerDecoderLayer(d_model, nhead, *options)
            custom_decoder = TransformerDecoder(begin, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder

    def forward(
        self, src: Variable, tgt: Variable, src_mask: Variable | None = None, tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
    ) -> Variable:  # fmt: skip
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Variable:
        """[length, length]: 0 up to the diagonal, minus infinity above, so that no position attends
        to later ones.
        """
        return layers.triu(full([length, length], float("-inf")), 1)


__all__ = [
    "MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip
