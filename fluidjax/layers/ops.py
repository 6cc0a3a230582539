"""Fluid's module name for the activations and the uniform sampler."""

from . import activation
from .random import uniform_random

globals().update({name: getattr(activation, name) for name in activation.__all__})
__all__ = ["uniform_random", *activation.__all__]
