"""Steps in which an op may detect an error (lower/checks.py): the ranks agree on one word, and if
it is set the state does not change.

The step itself selects between the new state and the old one, so the state can still be donated.
XLA fuses the selection with the update.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def first(word: Any, other: Any) -> Any:
    """The first of two words if it is set, else the second."""
    return jnp.where(word[0] != 0, word, other)


def agreed(word: Any, axis: str | None = None) -> Any:
    """The word of all ranks, given a word, a list of words or, on a mesh, the word of this rank;
    None if no op can detect an error.
    """
    words = [
        w for w in (word if isinstance(word, list) else [word]) if not isinstance(w, np.ndarray)
    ]
    if not words:
        return None
    found = reduce(first, words)
    if axis is None:
        return found
    number = jax.lax.pmax(found[0], axis)
    least = jnp.iinfo(jnp.int64).min
    return jnp.stack([number, jax.lax.pmax(jnp.where(found[0] == number, found[1], least), axis)])


def unless(word: Any, new: Any, old: Any) -> Any:
    """The new values, or the old ones if the word is set; of two dicts the names that both have."""
    if word is None:
        return new
    good = word[0] == 0
    if isinstance(new, Mapping):
        return {
            n: v if n not in old or v is old[n] else _choose(good, v, old[n])
            for n, v in new.items()
        }
    return _choose(good, new, old)


def _choose(good: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(
        lambda a, b: a if a is b or jnp.shape(a) != jnp.shape(b) else jnp.where(good, a, b),
        new,
        old,
    )
