"""fluid.layers: functions that append ops to the default main program, by family."""

from __future__ import annotations

from inspect import isfunction as _isfunction
from typing import Any

from ..loc import located as _located
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
    resize,
    sequence,
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
    resize,
    sequence,
    tensor,
    vision,
)

__all__ = sorted(
    {name for family in _FAMILIES for name in family.__all__} - {"ConditionalBlock", "ConditionalBlockGuard"}
)


def _locate_errors() -> None:
    """Have the errors of every layer name the user's line, whichever module it is taken from."""
    for family in _FAMILIES:
        for name in family.__all__:
            layer = getattr(family, name)
            if not _isfunction(layer):
                continue
            public = _located(layer)
            for module in (*_FAMILIES, nn, ops):
                if vars(module).get(name) is layer:
                    setattr(module, name, public)


_locate_errors()
globals().update({name: getattr(family, name) for family in _FAMILIES for name in family.__all__ if name in __all__})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _missing(name, __all__)
