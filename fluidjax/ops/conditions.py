"""Conditions under which an op treats rows one by one, from its attributes and shapes: `when` of
traits.RowWise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .traits import Attrs, Shapes, When


def inner_axis(attr: str, slot: str = "X", more: int = 0) -> When:
    """Attribute `attr` names an axis other than the first, for a rank `more` higher than the
    slot's.
    """

    def holds(attrs: Attrs, shapes: Shapes) -> bool:
        shape = shapes[slot][0] if isinstance(shapes[slot], list) else shapes[slot]
        rank = len(shape) + more
        return -rank <= attrs[attr] < rank and attrs[attr] % rank != 0

    return holds


def first_axis(attr: str, slot: str = "X") -> When:
    """Attribute `attr` names the first axis of the slot's (first) variable."""

    def holds(attrs: Attrs, shapes: Shapes) -> bool:
        shape = shapes[slot][0] if isinstance(shapes[slot], list) else shapes[slot]
        return attrs[attr] in (0, -len(shape))

    return holds


def inner_axes(attr: str, slot: str = "X") -> When:
    """None of the axes in attribute `attr` is the first; there is at least one."""
    return lambda attrs, shapes: (
        bool(attrs[attr]) and all(a % len(shapes[slot]) for a in attrs[attr])
    )


def either_inner_axes(*attrs: str) -> When:
    """The same for the attribute among these that is not empty."""

    def holds(given: Attrs, shapes: Shapes) -> bool:
        named = next((a for a in attrs if given.get(a)), attrs[0])
        return inner_axes(named)(given, shapes)

    return holds


def attribute(attr: str, test: Callable[[Any], Any]) -> When:
    """The attribute's value passes a test."""
    return lambda attrs, shapes: bool(test(attrs[attr]))


def rank_from(least: int, slot: str = "X") -> When:
    """The slot's variable has at least this many dimensions."""
    return lambda attrs, shapes: len(shapes[slot]) >= least


def both(*tests: When) -> When:
    """All of the conditions hold."""
    return lambda attrs, shapes: all(test(attrs, shapes) for test in tests)


def absent(*slots: str) -> When:
    """These optional inputs are not given."""
    return lambda attrs, shapes: not any(shapes.get(s) for s in slots)


def unset(attr: str) -> When:
    """The boolean attribute is False, or the op does not have it."""
    return lambda attrs, shapes: not attrs.get(attr, False)


def pairs(attrs: Attrs, shapes: Shapes) -> bool:
    """For an elementwise op: Y begins after the first axis of X, has size 1 there, or is ragged and
    begins at it.
    """
    x, y, ragged = shapes["X"], shapes["Y"], shapes["ragged"]
    axis = attrs["axis"]
    first = axis if axis >= 0 and len(y) < len(x) else len(x) - len(y)
    if first < 0:
        return False
    if "Y" in ragged:
        return first == 0
    return math.prod(y) == 1 or first > 0 or (first == 0 and y[0] == 1)
