"""paddle.nn in static mode: layers that own parameters, functional, initializers, gradient clips."""

from __future__ import annotations

from ...clip import GradientClipByGlobalNorm as ClipGradByGlobalNorm
from ...clip import GradientClipByNorm as ClipGradByNorm
from ...clip import GradientClipByValue as ClipGradByValue
from ...layers import BeamSearchDecoder as BeamSearchDecoder
from ...layers import dynamic_decode as dynamic_decode
from . import functional, initializer, layer
from .layer import *  # noqa: F403

__all__ = [
    "BeamSearchDecoder", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "dynamic_decode", "functional", "initializer",
]  # fmt: skip
__all__ += layer.__all__
