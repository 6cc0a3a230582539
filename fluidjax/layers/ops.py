"""Fluid's module name for the activations and the uniform sampler."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from . import activation
from .activation import *  # noqa: F403
from .missing import HINTS
from .random import uniform_random

__all__ = ["uniform_random"]
__all__ += activation.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.ops", __all__, HINTS)
