"""Fluid's module name for most layers: ``fluid.layers.nn.relu`` is ``fluid.layers.relu``."""

from . import (
    activation,
    conv,
    elementwise,
    index,
    loss,
    manip,
    nn_dense,
    norm,
    pads,
    pool,
    random,
    reduce,
    resize,
    vision,
)
from .control_flow import autoincreased_step_counter

_FAMILIES = (activation, conv, elementwise, index, loss, manip, nn_dense, norm, pads, pool, random, reduce, resize, vision)
globals().update({name: getattr(family, name) for family in _FAMILIES for name in family.__all__})
__all__ = ["autoincreased_step_counter", *(name for family in _FAMILIES for name in family.__all__)]
