"""Checks for integers outside of an op's range, for ``@op(refuses=...)`` and for the trait `bounds`
(traits.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from .checking import VALUE, Objection, Refuses
from .concrete import are_numbers, known
from .ragged import Ragged, rows_of


def outside(
    what: str, value: Any, low: int | None, high: int, unless: Any = None, also: int | None = None
) -> Iterator[Objection]:
    """Rejects integers below `low` (None: no bound) or from `high` on, except `also` and where
    `unless` is true.

    Padded rows do not count.
    """
    rows = rows_of(value)
    if not rows.size:
        return
    # known values are not computed by the step
    found = known(rows) if are_numbers([high]) and not isinstance(value, Ragged) else None
    xp: Any = jnp if found is None or unless is not None else np
    # not NumPy, which a traced value cannot index
    rows = jnp.asarray(rows) if found is None else found
    end = xp.asarray(high)  # an open size too
    bad: Any = rows >= end if low is None else (rows < low) | (rows >= end)
    bad = bad if also is None else bad & (rows != also)
    if isinstance(value, Ragged) and value.padded:
        bad = bad & value.kept().reshape(-1, *(1,) * (rows.ndim - 1))
    bad = (bad if unless is None else bad & ~unless).reshape(-1)
    wanted = f"{what} < {high}" if low is None else f"{low} <= {what} < {high}"
    # an array that may be empty has no first one; nothing reads it in an exported step
    first = rows.reshape(-1)[xp.argmax(bad)] if are_numbers(rows.shape) else 0
    yield bad.any(), f"expects {wanted}, but gets {VALUE}", first


def within(
    slot: str,
    what: str,
    high: Callable[[Mapping[str, Any], Mapping[str, Any]], int],
    low: int | None = 0,
) -> Refuses:
    """For ``@op(refuses=...)``: the integers in a slot (in each variable of a list) are at least
    `low` and below `high`.
    """

    def refuses(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
        given = inputs.get(slot)
        for value in given if isinstance(given, list) else [] if given is None else [given]:
            yield from outside(what, value, low, high(inputs, attrs))

    return refuses


def several(*refuses: Refuses) -> Refuses:
    """The combined checks of all of them."""
    return lambda inputs, attrs: (objection for one in refuses for objection in one(inputs, attrs))
