"""fluid.layers: functions that append ops to the default main program, by family."""

from __future__ import annotations

from typing import Any

from . import (
    activation,
    control_flow,
    conv,
    elementwise,
    index,
    io,
    learning_rate_scheduler,
    loss,
    manip,
    metric_op,
    nn_dense,
    norm,
    pads,
    pool,
    random,
    reduce,
    tensor,
    vision,
)
from . import nn as nn
from . import ops as ops
from .missing import missing as _missing

_FAMILIES = (
    activation,
    control_flow,
    conv,
    elementwise,
    index,
    io,
    learning_rate_scheduler,
    loss,
    manip,
    metric_op,
    nn_dense,
    norm,
    pads,
    pool,
    random,
    reduce,
    tensor,
    vision,
)

__all__ = sorted(
    {name for family in _FAMILIES for name in family.__all__} - {"ConditionalBlock", "ConditionalBlockGuard"}
)
globals().update({name: getattr(family, name) for family in _FAMILIES for name in family.__all__ if name in __all__})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _missing(name, __all__)
