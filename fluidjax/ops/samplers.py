"""How classes are sampled for losses over a sample of them: uniformly, log-uniformly, or by given
probabilities.

A sampler gives int64 classes, and the probability of a class as 1.8.5's float32 number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from . import loops


class Sampler(Protocol):
    """The interface of a sampler for the losses."""

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Any:
        """Independent classes, int64."""

    def probability(self, drawn: Any) -> Any:
        """The probability of each of these classes, float32."""


@dataclass(frozen=True, slots=True)
class UniformClasses:
    """All `classes` are equally likely."""

    classes: int

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Any:
        """Independent classes, int64."""
        return jax.random.randint(key, shape, 0, self.classes, np.int64)

    def probability(self, drawn: Any) -> Any:
        """1 / classes."""
        return jnp.full(drawn.shape, 1.0 / self.classes, np.float32)


@dataclass(frozen=True, slots=True)
class LogUniformClasses:
    """Class k < reach with probability log((k + 2) / (k + 1)) / log(reach + 1): natural for words
    sorted by frequency.
    """

    reach: int

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Any:
        """Independent classes, int64: the whole part of (reach + 1)^u - 1."""
        u = jax.random.uniform(key, shape, np.float64)
        return jnp.minimum(
            jnp.exp(u * math.log(self.reach + 1)).astype(np.int64) - 1, self.reach - 1
        )

    def probability(self, drawn: Any) -> Any:
        """The probability of each class, defined beyond `reach` too, where a class is never
        sampled.
        """
        k = drawn.astype(np.float64)
        return (
            jnp.log((k + 2.0) / (k + 1.0)) / np.float64(np.float32(math.log(self.reach + 1)))
        ).astype(np.float32)


@dataclass(frozen=True, slots=True)
class GivenClasses:
    """Class k with probability probs[k], by the alias method: a uniform class k, replaced by
    alias[k] unless a uniform number is below alias_probs[k].

    alias: -1 for a class without an alias.
    """

    probs: Any
    alias: Any
    alias_probs: Any

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Any:
        """Independent classes, int64."""
        one, other = jax.random.split(key)
        k = jax.random.randint(one, shape, 0, self.probs.shape[0], np.int32)
        alias = jnp.asarray(self.alias)[k]
        swap = (jax.random.uniform(other, shape, np.float32) > jnp.asarray(self.alias_probs)[k]) & (
            alias >= 0
        )
        return jnp.where(swap, alias, k).astype(np.int64)

    def probability(self, drawn: Any) -> Any:
        """probs[k]."""
        return jnp.take(self.probs, drawn, mode="clip").astype(np.float32)


def draw_distinct(key: jax.Array, sampler: Sampler, classes: int, count: int) -> tuple[Any, Any]:
    """`count` different classes in the order of their first appearance, int64 [count], and the
    number of tries.
    """

    def more(state: tuple[Any, Any, Any, Any]) -> Any:
        return state[0] < count

    def one(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        found, tries, seen, drawn = state
        k = sampler.draw(jax.random.fold_in(key, tries), ())
        new = ~seen[k]
        at = jnp.where(new, found, count)
        return found + new, tries + 1, seen.at[k].set(True), drawn.at[at].set(k, mode="drop")

    zero = jnp.zeros((), np.int32)
    state = (zero, zero, jnp.zeros(classes, bool), jnp.zeros(count, np.int64))
    _, tries, _, drawn = loops.while_loop(more, one, state)
    return drawn, tries
