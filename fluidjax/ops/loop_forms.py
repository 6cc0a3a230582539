"""The forms of loop-carried values whose rows change in number or LoD between iterations
(forms.py).

The values before the loop get forms that can hold an iteration's results, repeatedly, until an
iteration keeps the forms. The same iteration finds which values have equal offsets: those that had
them before the loop and after an iteration, by keys that are assigned again each time, until no
group splits.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from .control_interface import Env
from .forms import Each, each_under, joined, key_of, same, types_of, widened
from .ragged import Ragged
from .tensor_array import Stacked, entry_type, in_form

_LOOPS = itertools.count()


def fitted(value: Any, like: Any) -> Any:
    """A value in the form of `like`, which can hold it; unchanged if `like` is another kind of
    value.
    """
    if isinstance(value, Stacked) and isinstance(like, Stacked):
        return value if _joined(value, like) is None else in_form(value, entry_type(like))
    return value if _joined(value, like) is None else widened(value, types_of(like))


class Forms:
    """The forms of one loop's values."""

    def __init__(self) -> None:
        self.number = next(_LOOPS)
        self.types: dict[str, Any] = {}

    def next(self, start: Env, left: Mapping[str, Any]) -> Env | None:
        """The values before the loop in the forms to try next; None if an iteration that began with
        `start` left them as they were.

        left: the types of its results.
        """
        start = {n: _counted_by(v, left.get(n, v), start, left) for n, v in start.items()}
        classes: dict[tuple[Hashable, Hashable], int] = {}
        found = {}
        for name, value in start.items():
            after = left.get(name, value)
            form = _joined(value, after)
            if form is None or (name not in self.types and same(_entry(value), _entry(after))):
                continue
            parts = key_of(_entry(value)), key_of(_entry(after))
            key: Hashable = ("carried", self.number, classes.setdefault(parts, len(classes)))
            found[name] = _keyed(form, Each(key) if isinstance(value, Stacked) else key)
        if all(same(_entry(start[n]), t) for n, t in found.items()):
            return None
        self.types = found
        return {n: _in(v, found[n]) if n in found else v for n, v in start.items()}


def _counted_by(value: Any, after: Any, start: Env, left: Mapping[str, Any]) -> Any:
    """The form of a plain array that has as many rows as others both before and after an iteration:
    it shares their offsets.
    """
    if isinstance(value, Ragged | Stacked) or not isinstance(after, Ragged) or not jnp.ndim(value):
        return value
    for name, other in start.items():
        same_rows = (
            isinstance(other, Ragged) and not other.padded and other.capacity == value.shape[0]
        )
        if same_rows and key_of(left.get(name, other)) == after.key:
            return other.with_rows(value, bare=True)
    return value


def _in(value: Any, form: Any) -> Any:
    return in_form(value, form) if isinstance(value, Stacked) else widened(value, form)


def _entry(value: Any) -> Any:
    """The type of a value; of an array, that of its entries."""
    return entry_type(value) if isinstance(value, Stacked) else types_of(value)


def _keyed(form: Any, key: Hashable) -> Any:
    if not isinstance(form, Ragged):
        return form
    return replace(form, key=key, each=form.each if form.alive is None else each_under(key))


def _joined(value: Any, like: Any) -> Any | None:
    if isinstance(value, Stacked) != isinstance(like, Stacked):
        return None
    return joined(_entry(value), _entry(like), None)
