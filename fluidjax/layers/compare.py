"""Comparisons of variables, element by element (Fluid has them in layers.control_flow, which lists
them).
"""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, INTS, append, typed, variable


def _compare(
    kind: str, x: Variable, y: Variable, cond: Variable | None, attrs: dict[str, Any]
) -> Variable:
    variable(x, "x", kind, (*FLOATS, *INTS))
    variable(y, "y", kind, (*FLOATS, *INTS))
    typed(cond, "cond", (Variable, type(None)), kind)
    out = append(
        LayerHelper(kind), {"X": [x], "Y": [y]}, {"Out": "bool" if cond is None else cond}, attrs
    )
    if cond is None:
        out.stop_gradient = True
    return out


@located
def equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x == y, element by element, y broadcast to x: bool. cond: a variable to write instead of a
    new one.
    """
    return _compare("equal", x, y, cond, {})


@located
def not_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x != y, element by element, y broadcast to x: bool. cond: a variable to write instead of a
    new one.
    """
    return _compare("not_equal", x, y, cond, {})


@located
def less_than(
    x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None
) -> Variable:
    """x < y, element by element, y broadcast to x: bool. cond: a variable to write instead of a new
    one.

    force_cpu: an attribute of the op.
    """
    typed(force_cpu, "force_cpu", (bool, type(None)), "less_than")
    return _compare("less_than", x, y, cond, {"force_cpu": force_cpu})


@located
def less_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x <= y, element by element, y broadcast to x: bool. cond: a variable to write instead of a
    new one.
    """
    return _compare("less_equal", x, y, cond, {})


@located
def greater_than(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x > y, element by element, y broadcast to x: bool. cond: a variable to write instead of a new
    one.
    """
    return _compare("greater_than", x, y, cond, {})


@located
def greater_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x >= y, element by element, y broadcast to x: bool. cond: a variable to write instead of a
    new one.
    """
    return _compare("greater_equal", x, y, cond, {})


__all__ = ["equal", "greater_equal", "greater_than", "less_equal", "less_than", "not_equal"]
