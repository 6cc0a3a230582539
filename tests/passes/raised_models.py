"""Twenty networks for prediction, as people write them with flax linen, flax nnx and equinox: each
a function, its parameters, and an input.

Statistics and parameters are drawn, not those of a fresh network: a scale of one and a bias of zero
hide what is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from ..weights import normal, weights

Made = tuple[Callable[[Any, Any], Any], Any, Any]
MODELS: dict[str, Callable[[], Made]] = {}
# one of each family; its relatives run with -m thorough
ALWAYS = ("resnet", "unet", "bert", "tagger", "nnx_images")
KEY = jax.random.key(3)


def names() -> list[Any]:
    """All models as parameters of a test; some are thorough."""
    return [n if n in ALWAYS else pytest.param(n, marks=pytest.mark.thorough) for n in MODELS]


def model(make: Callable[[], Made]) -> Callable[[], Made]:
    MODELS[make.__name__] = make
    return make


def drawn(tree: Any) -> Any:
    """Every float changed a little; what is a variance stays positive."""
    draw = np.random.default_rng(3)

    def moved(value: Any) -> Any:
        if not jnp.issubdtype(value.dtype, jnp.floating):
            return value
        return jnp.asarray(np.asarray(value) + draw.uniform(-0.1, 0.1, value.shape), value.dtype)

    return jax.tree.map(moved, tree)


def linen(module: nn.Module, x: Any) -> Made:
    return module.apply, weights(module.init, KEY, x), x


def norm() -> nn.BatchNorm:
    return nn.BatchNorm(use_running_average=True)


IMAGES, TOKENS, SERIES = (
    normal(2, 16, 16, 3),
    jnp.array([[1, 5, 3, 9], [2, 2, 19, 7]]),
    normal(2, 5, 6),
)


# -- linen -----------------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    features: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.relu(norm()(nn.Conv(self.features, (1, 1), use_bias=False)(x)))
        y = nn.Conv(self.features, (3, 3), self.stride, use_bias=False)(y)
        y = norm()(nn.Conv(4 * self.features, (1, 1), use_bias=False)(nn.relu(norm()(y))))
        if x.shape != y.shape:
            x = norm()(nn.Conv(4 * self.features, (1, 1), self.stride, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(norm()(nn.Conv(8, (7, 7), (2, 2), [(3, 3), (3, 3)], use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for features, stride in ((4, 1), (8, 2), (8, 1)):
            x = Bottleneck(features, stride)(x)
        return nn.Dense(10)(x.mean((1, 2)))


class Inverted(nn.Module):
    """A block of EfficientNet's: expanded, depthwise, squeezed and excited."""

    out: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: Any) -> Any:
        wide = 4 * x.shape[-1]
        y = nn.silu(norm()(nn.Conv(wide, (1, 1), use_bias=False)(x)))
        y = nn.Conv(wide, (3, 3), self.stride, feature_group_count=wide, use_bias=False)(y)
        y = nn.silu(norm()(y))
        s = nn.silu(nn.Conv(4, (1, 1))(y.mean((1, 2), keepdims=True)))
        y = y * nn.sigmoid(nn.Conv(wide, (1, 1))(s))
        y = norm()(nn.Conv(self.out, (1, 1), use_bias=False)(y))
        return x + y if x.shape == y.shape else y


class EfficientNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.silu(norm()(nn.Conv(8, (3, 3), 2, use_bias=False)(x)))
        for out, stride in ((8, 1), (12, 2), (12, 1)):
            x = Inverted(out, stride)(x)
        x = nn.silu(norm()(nn.Conv(32, (1, 1), use_bias=False)(x)))
        return nn.softmax(nn.Dense(10)(x.mean((1, 2))))


class MobileNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.hard_swish(norm()(nn.Conv(8, (3, 3), 2)(x)))
        for out in (12, 16):
            c = x.shape[-1]
            x = nn.relu6(norm()(nn.Conv(c, (3, 3), feature_group_count=c, use_bias=False)(x)))
            x = nn.hard_swish(norm()(nn.Conv(out, (1, 1), use_bias=False)(x)))
        return nn.Dense(10)(nn.avg_pool(x, (8, 8), (8, 8)).reshape(x.shape[0], -1))


class DenseNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(8, (3, 3))(x)
        for _ in range(2):
            for _ in range(2):
                y = nn.Conv(8, (1, 1), use_bias=False)(nn.relu(norm()(x)))
                y = nn.Conv(4, (3, 3), use_bias=False)(nn.relu(norm()(y)))
                x = jnp.concatenate([x, y], -1)
            x = nn.Conv(8, (1, 1), use_bias=False)(nn.relu(norm()(x)))
            x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.log_softmax(nn.Dense(10)(x.mean((1, 2))))


class VGG(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for features in (8, 16):
            x = nn.elu(norm()(nn.Conv(features, (3, 3), padding="SAME")(x)))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.relu(nn.Dense(32)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(nn.Dropout(0.5, deterministic=True)(x))


class ConvNeXt(nn.Module):
    blocks: int = 2

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.LayerNorm(epsilon=1e-6)(nn.Conv(8, (4, 4), (4, 4), "VALID")(x))
        for _ in range(self.blocks):
            y = nn.Conv(8, (7, 7), feature_group_count=8)(x)
            y = nn.Dense(8)(nn.gelu(nn.Dense(32)(nn.LayerNorm(epsilon=1e-6)(y)), approximate=False))
            x = x + y * self.param(f"scale_{_}", nn.initializers.constant(1e-1), (8,))
        return nn.Dense(10)(nn.LayerNorm()(x.mean((1, 2))))


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        a = nn.silu(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
        b = nn.silu(nn.InstanceNorm()(nn.Conv(16, (3, 3), (2, 2))(a)))
        up = nn.ConvTranspose(8, (2, 2), (2, 2))(b)
        return nn.sigmoid(nn.Conv(1, (1, 1))(jnp.concatenate([a, up], -1)))


class Generator(nn.Module):
    """From noise to an image, as of a GAN."""

    @nn.compact
    def __call__(self, z: Any) -> Any:
        x = nn.Dense(4 * 4 * 16)(z).reshape(-1, 4, 4, 16)
        x = nn.leaky_relu(
            norm()(nn.ConvTranspose(8, (4, 4), (2, 2), use_bias=False)(nn.relu(norm()(x)))), 0.2
        )
        return jnp.tanh(nn.ConvTranspose(3, (4, 4), (2, 2))(x))


class ViT(nn.Module):
    blocks: int = 2

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(16, (4, 4), (4, 4), "VALID")(x).reshape(x.shape[0], -1, 16)
        first = self.param("cls", nn.initializers.normal(0.02), (1, 1, 16))
        x = jnp.concatenate([jnp.tile(first, (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("position", nn.initializers.normal(0.02), (1, x.shape[1], 16))
        for _ in range(self.blocks):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(2)(y)
            x = x + nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))
        return nn.Dense(10)(nn.LayerNorm()(x)[:, 0])


class Bert(nn.Module):
    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.Embed(30, 16)(ids) + nn.Embed(12, 16)(jnp.arange(ids.shape[1])[None])
        x = nn.LayerNorm(epsilon=1e-12)(x)
        mask = nn.make_attention_mask(ids > 0, ids > 0)
        x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(2)(x, mask=mask))
        x = nn.LayerNorm()(x + nn.Dense(16)(nn.gelu(nn.Dense(32)(x), approximate=False)))
        return nn.log_softmax(nn.Dense(30)(x)), nn.tanh(nn.Dense(16)(x[:, 0]))


class Llama(nn.Module):
    """Causal, with root mean square norms, rotated positions and gated layers."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.Embed(30, 16)(ids)
        length, causal = ids.shape[1], nn.make_causal_mask(ids)
        angles = jnp.arange(length)[:, None] * 100.0 ** -(jnp.arange(4) / 4)[None]
        sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]

        def turned(q: Any) -> Any:
            a, b = jnp.split(q, 2, -1)
            return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

        for _ in range(2):
            y = nn.RMSNorm()(x)
            q, k, v = (nn.DenseGeneral((2, 8), use_bias=False)(y) for _ in range(3))
            y = nn.dot_product_attention(turned(q), turned(k), v, mask=causal)
            x = x + nn.DenseGeneral(16, (-2, -1), use_bias=False)(y)
            y = nn.RMSNorm()(x)
            gated = nn.silu(nn.Dense(32, use_bias=False)(y)) * nn.Dense(32, use_bias=False)(y)
            x = x + nn.Dense(16, use_bias=False)(gated)
        return nn.Dense(30, use_bias=False)(nn.RMSNorm()(x))


class Mixer(nn.Module):
    blocks: int = 2

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(12, (4, 4), (4, 4), "VALID")(x).reshape(x.shape[0], -1, 12)
        for _ in range(self.blocks):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            x = x + nn.Dense(16)(nn.gelu(nn.Dense(8)(y))).swapaxes(1, 2)
            x = x + nn.Dense(12)(nn.gelu(nn.Dense(24)(nn.LayerNorm()(x))))
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


class Tagger(nn.Module):
    """A label for every word, by an LSTM that reads in both directions."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        both = nn.Bidirectional(nn.RNN(nn.OptimizedLSTMCell(6)), nn.RNN(nn.LSTMCell(6)))
        return nn.softmax(nn.Dense(5)(both(nn.Embed(30, 8)(ids))))


LINEN: dict[str, tuple[type[nn.Module], Any]] = {
    "resnet": (ResNet, IMAGES), "efficientnet": (EfficientNet, IMAGES), "mobilenet": (MobileNet, IMAGES),
    "densenet": (DenseNet, IMAGES), "vgg": (VGG, IMAGES), "convnext": (ConvNeXt, IMAGES), "unet": (UNet, IMAGES),
    "generator": (Generator, normal(2, 8)), "vit": (ViT, IMAGES), "bert": (Bert, TOKENS), "llama": (Llama, TOKENS),
    "mixer": (Mixer, IMAGES), "tagger": (Tagger, TOKENS),
}  # fmt: skip
for _name, (_kind, _x) in LINEN.items():
    MODELS[_name] = lambda kind=_kind, x=_x: linen(kind(), x)


# -- nnx -------------------------------------------------------------------------------------------


def of_nnx(module: nnx.Module, x: Any) -> Made:
    module.eval()
    graph, state = nnx.split(module)
    return lambda state, x: nnx.merge(graph, state)(x), drawn(state), x


class NnxImages(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.narrow = nnx.Conv(8, 8, (3, 3), strides=(2, 2), feature_group_count=2, rngs=rngs)
        self.group = nnx.GroupNorm(8, num_groups=2, rngs=rngs)
        self.out = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.drop(nnx.silu(self.norm(self.conv(x))))
        return self.out(nnx.relu(self.group(self.narrow(x))).mean((1, 2)))


class NnxTransformer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(30, 8, rngs=rngs)
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.attend = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.wide, self.narrow = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 8, rngs=rngs)
        self.last = nnx.RMSNorm(8, rngs=rngs)

    def __call__(self, ids: Any) -> Any:
        x = self.embed(ids)
        x = x + self.attend(self.norm(x))
        return self.last(x + self.narrow(jax.nn.gelu(self.wide(x)))).mean(1)


class NnxSeries(nnx.Module):
    """Convolutions of one dimension, then a GRU."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(6, 8, (3,), rngs=rngs)
        self.rnn = nnx.RNN(nnx.GRUCell(8, 4, rngs=rngs))
        self.out = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(self.rnn(nnx.relu(self.conv(x)))[:, -1])


@model
def nnx_images() -> Made:
    return of_nnx(NnxImages(nnx.Rngs(0)), IMAGES)


@model
def nnx_transformer() -> Made:
    return of_nnx(NnxTransformer(nnx.Rngs(0)), TOKENS)


@model
def nnx_series() -> Made:
    return of_nnx(NnxSeries(nnx.Rngs(0)), SERIES)


# -- equinox: modules of one sample ----------------------------------------------------------------

if find_spec("equinox"):
    import equinox as eqx

    def of_equinox(module: Any, x: Any) -> Made:
        arrays, rest = eqx.partition(module, eqx.is_array)
        return lambda arrays, x: jax.vmap(eqx.combine(arrays, rest))(x), drawn(arrays), x

    @model
    def equinox_mlp() -> Made:
        return of_equinox(
            eqx.nn.MLP(6, 3, 16, 2, activation=jax.nn.softplus, key=KEY), normal(2, 6)
        )

    class EqxImages(eqx.Module):
        layers: list[Any]
        norm: Any
        stats: Any
        out: Any

        def __init__(self) -> None:
            self.layers = [
                eqx.nn.Conv2d(3, 8, 3, padding=1, key=KEY), jax.nn.relu, eqx.nn.MaxPool2d(2, 2),
                eqx.nn.Conv2d(8, 8, 3, stride=2, key=KEY), eqx.nn.GroupNorm(2, 8), jax.nn.gelu,
            ]  # fmt: skip
            self.norm, self.stats = eqx.nn.make_with_state(eqx.nn.BatchNorm)(
                8, "batch", mode="batch"
            )
            self.out = eqx.nn.Linear(8, 4, key=KEY)

        def __call__(self, x: Any) -> Any:
            x, _ = eqx.nn.inference_mode(self.norm)(self.layers[0](x), self.stats)
            for layer in self.layers[1:]:
                x = layer(x)
            return self.out(x.mean((1, 2)))

    @model
    def equinox_images() -> Made:
        return of_equinox(EqxImages(), normal(2, 3, 16, 16))

    class EqxAttention(eqx.Module):
        embed: Any
        attention: Any
        norm: Any
        out: Any

        def __init__(self) -> None:
            self.embed = eqx.nn.Embedding(30, 8, key=KEY)
            self.attention = eqx.nn.MultiheadAttention(2, 8, key=KEY)
            self.norm, self.out = eqx.nn.LayerNorm(8), eqx.nn.Linear(8, 4, key=KEY)

        def __call__(self, ids: Any) -> Any:
            x = jax.vmap(self.embed)(ids)
            x = jax.vmap(self.norm)(x + self.attention(x, x, x))
            return jax.nn.log_softmax(jax.vmap(self.out)(x), axis=-1)

    @model
    def equinox_attention() -> Made:
        return of_equinox(EqxAttention(), TOKENS)

    class EqxSeries(eqx.Module):
        cell: Any
        out: Any

        def __init__(self) -> None:
            self.cell, self.out = eqx.nn.LSTMCell(6, 8, key=KEY), eqx.nn.Linear(8, 2, key=KEY)

        def __call__(self, x: Any) -> Any:
            def step(carry: Any, row: Any) -> Any:
                return self.cell(row, carry), None

            (h, _), _ = jax.lax.scan(step, (jnp.zeros(8), jnp.zeros(8)), x)
            return self.out(h)

    @model
    def equinox_series() -> Made:
        return of_equinox(EqxSeries(), SERIES)
