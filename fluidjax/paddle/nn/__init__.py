"""paddle.nn in static mode: layers that own parameters, functional, initializers, gradient clips."""

from __future__ import annotations

from ...clip import GradientClipByGlobalNorm
from ...clip import GradientClipByNorm as ClipGradByNorm
from ...clip import GradientClipByValue as ClipGradByValue
from ...layers import BeamSearchDecoder as BeamSearchDecoder
from ...layers import dynamic_decode as dynamic_decode
from . import functional, initializer, layer
from .layer import *  # noqa: F403


class ClipGradByGlobalNorm(GradientClipByGlobalNorm):
    """``grad * clip_norm / max(clip_norm, global_norm)``, global_norm over all gradients of
    parameters with need_clip.

    auto_skip_clip: dynamic mode omits the multiplication if the norm is small enough; a static
    program always has it.
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        super().__init__(clip_norm, group_name)
        self.auto_skip_clip = auto_skip_clip


__all__ = [
    "BeamSearchDecoder", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "dynamic_decode", "functional", "initializer",
]  # fmt: skip
__all__ += layer.__all__
