"""Fluid's module name for the activations and the uniform sampler."""

from . import activation
from .activation import *  # noqa: F403
from .random import uniform_random

__all__ = ["uniform_random"]
__all__ += activation.__all__
