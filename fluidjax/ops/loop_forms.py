"""The forms of what a loop hands on, where rows change in number or LoD from iteration to iteration (forms.py).

The values before the loop are given forms that hold what an iteration makes of them, again and again until an iteration
leaves the forms that it found. Which values have the same offsets is found in the same way: those that had them before the
loop and have them after an iteration, by names (keys) that are given anew each time, until none of them parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from .control_interface import Env
from .forms import Each, joined, key_of, same, types_of, widened
from .ragged import Ragged
from .tensor_array import Stacked, entry_type, in_form

_LOOPS = itertools.count()


def fitted(value: Any, like: Any) -> Any:
    """A value in the form of `like`, which holds it; as it is where that is another kind of value."""
    if isinstance(value, Stacked) and isinstance(like, Stacked):
        return value if _joined(value, like) is None else in_form(value, entry_type(like))
    return value if _joined(value, like) is None else widened(value, types_of(like))


class Forms:
    """The forms of one loop's values."""

    def __init__(self) -> None:
        self.number = next(_LOOPS)
        self.types: dict[str, Any] = {}

    def change(self, start: Env, left: Mapping[str, Any]) -> bool:
        """Whether an iteration that began with `start` has left other forms (those of `left`); if so the next to try are `types`."""
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
            return False
        self.types = found
        return True

    def widened(self, start: Env) -> Env:
        """The values before the loop in these forms."""
        return {n: _in(v, self.types[n]) if n in self.types else v for n, v in start.items()}


def _in(value: Any, form: Any) -> Any:
    return in_form(value, form) if isinstance(value, Stacked) else widened(value, form)


def _entry(value: Any) -> Any:
    """The type of a value; of an array, that of its entries."""
    return entry_type(value) if isinstance(value, Stacked) else types_of(value)


def _keyed(form: Any, key: Hashable) -> Any:
    return replace(form, key=key) if isinstance(form, Ragged) else form


def _joined(value: Any, like: Any) -> Any | None:
    if isinstance(value, Stacked) != isinstance(like, Stacked):
        return None
    return joined(_entry(value), _entry(like), None)
