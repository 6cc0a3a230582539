"""paddle.nn: what static programs need of it: functional, initializer, gradient clips."""

from __future__ import annotations

from ...clip import GradientClipByGlobalNorm as ClipGradByGlobalNorm
from ...clip import GradientClipByNorm as ClipGradByNorm
from ...clip import GradientClipByValue as ClipGradByValue
from . import functional, initializer

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "functional", "initializer"]
