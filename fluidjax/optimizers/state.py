"""Persistable variables in addition to the parameters: learning rates, accumulators, averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.dtypes import VarType
from ..graph.program import default_main_program, default_startup_program
from ..graph.variable import Variable
from ..initializer import Constant


def persistable(
    name: str,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    *,
    kind: Any = VarType.LOD_TENSOR,
    stop_gradient: bool = False,
) -> Variable:
    """A persistable variable of the main program that the startup program fills with `value`."""
    given = {"name": name, "shape": list(shape), "dtype": dtype, "type": kind, "persistable": True}
    var = default_main_program().global_block().create_var(**given, stop_gradient=stop_gradient)
    start = default_startup_program().global_block()
    Constant(value=float(value))(start.create_var(**given), start)
    return var
