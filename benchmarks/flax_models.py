"""The same models hand-written in flax linen, and their jitted donated training step with optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class FitALine(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(1)(x)


class TwoLayers(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(1)(nn.relu(nn.Dense(32)(x)))


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.relu(nn.Dense(512)(x))
        return nn.Dense(10)(x)


def _norm() -> nn.BatchNorm:
    return nn.BatchNorm(use_running_average=False, momentum=0.9, epsilon=1e-5)


class LeNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for filters in (6, 16):
            x = nn.relu(_norm()(nn.Conv(filters, (5, 5), padding="VALID", use_bias=False)(x)))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1)
        for size in (120, 84):
            x = nn.relu(nn.Dense(size)(x))
        return nn.Dense(10)(x)


class Residual(nn.Module):
    filters: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        short = x
        if self.stride != 1 or x.shape[-1] != self.filters:
            short = _norm()(nn.Conv(self.filters, (1, 1), strides=self.stride, use_bias=False)(x))
        h = nn.Conv(self.filters, (3, 3), strides=self.stride, padding=1, use_bias=False)(x)
        h = nn.Conv(self.filters, (3, 3), padding=1, use_bias=False)(nn.relu(_norm()(h)))
        return nn.relu(_norm()(h) + short)


class ResNet18(nn.Module):
    stem: int = 64
    stages: tuple[int, ...] = (64, 128, 256, 512)
    blocks: int = 2

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(_norm()(nn.Conv(self.stem, (3, 3), padding=1, use_bias=False)(x)))
        for stage, filters in enumerate(self.stages):
            for block in range(self.blocks):
                x = Residual(filters, 2 if stage and not block else 1)(x)
        return nn.Dense(10)(x.mean(axis=(1, 2)))


class ResNet32(ResNet18):
    """For 32x32 images, as in the paper on them."""

    stem: int = 16
    stages: tuple[int, ...] = (16, 32, 64)
    blocks: int = 5


class SmallResNet(ResNet32):
    blocks: int = 1


class ManyParameters(nn.Module):
    count: int = 500
    width: int = 8

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(self.count):
            x = nn.Dense(self.width, use_bias=False)(x)
        return x


class Encoder(nn.Module):
    width: int = 256
    heads: int = 4

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.LayerNorm(epsilon=1e-5)(x + self.attention(x))
            f = nn.Dense(self.width)(nn.relu(nn.Dense(4 * self.width)(x)))
            x = nn.LayerNorm(epsilon=1e-5)(x + f)
        return nn.Dense(10)(x)

    def attention(self, x: Any) -> Any:
        b, t, _ = x.shape
        q, k, v = (
            nn.Dense(self.width)(x).reshape(b, t, self.heads, -1).transpose(0, 2, 1, 3)
            for _ in range(3)
        )
        weights = nn.softmax((q @ k.swapaxes(-1, -2)) * (self.width // self.heads) ** -0.5)
        return nn.Dense(self.width)((weights @ v).transpose(0, 2, 1, 3).reshape(b, t, self.width))


class WordModel(nn.Module):
    vocabulary: int = 2000
    width: int = 32

    @nn.compact
    def __call__(self, words: Any) -> Any:
        h = nn.Embed(self.vocabulary, self.width)(words[..., 0]).reshape(words.shape[0], -1)
        return nn.Dense(self.vocabulary)(nn.sigmoid(nn.Dense(256)(h)))


def training(
    model: nn.Module,
    optimizer: optax.GradientTransformation,
    feed: dict[str, Any],
    jitted: bool = False,
) -> tuple[Any, Callable[..., Any]]:
    """Initial (variables, optimizer state), and the jitted step ``(state, feed) -> (state, loss)``
    with donation.

    jitted: the parameters are drawn by one compiled function, which is faster for large nets.
    """
    state, fn = step(model, optimizer, feed, jitted=jitted)
    return state, jax.jit(fn, donate_argnums=0)


def step(
    model: nn.Module,
    optimizer: optax.GradientTransformation,
    feed: dict[str, Any],
    axis: str | None = None,
    jitted: bool = False,
) -> tuple[Any, Callable[..., Any]]:
    """Initial state and the step as a plain function; with `axis`, gradients are averaged over that
    mesh axis.
    """
    name = next(n for n in feed if n not in ("label", "y"))
    variables = (jax.jit(model.init) if jitted else model.init)(jax.random.key(0), feed[name])
    state = variables, optimizer.init(variables["params"])

    def loss_of(params: Any, rest: Any, feed: Any) -> Any:
        out, updated = model.apply({"params": params, **rest}, feed[name], mutable=list(rest))
        if "y" in feed:
            return jnp.mean((out - feed["y"]) ** 2), updated
        losses = optax.softmax_cross_entropy_with_integer_labels(out, feed["label"][..., 0])
        return losses.mean(), updated

    def one(state: Any, feed: Any) -> Any:
        variables, opt = state
        rest = {k: v for k, v in variables.items() if k != "params"}
        (loss, updated), grads = jax.value_and_grad(loss_of, has_aux=True)(
            variables["params"], rest, feed
        )
        if axis is not None:
            grads, loss = jax.lax.pmean(grads, axis), loss[None]
        updates, opt = optimizer.update(grads, opt, variables["params"])
        return ({"params": optax.apply_updates(variables["params"], updates), **updated}, opt), loss

    return state, one
