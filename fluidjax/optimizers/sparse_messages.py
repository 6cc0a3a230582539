"""DGCMomentumOptimizer, which sends only the largest part of each gradient: refused, as in 1.8.5
without CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..clip import GradientClipBase
from ..errors import UnsupportedError
from ..graph.variable import Variable
from .descent import MomentumOptimizer


class NeedsDGC(UnsupportedError, AssertionError):
    """Raised for deep gradient compression; also an AssertionError, as in 1.8.5."""


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum whose trainers send each other only the largest elements of each gradient. The
    constructor raises NeedsDGC.

    1.8.5 has the kernel that selects them only for NVIDIA's cards, and raises AssertionError in any
    other build.
    """

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        rampup_begin_step: int,
        rampup_step: int = 1,
        sparsity: Sequence[float] = [0.999],
        parameter_list: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        num_trainers: int | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        raise NeedsDGC(
            "DGCMomentumOptimizer sends only the largest elements of each gradient, by a kernel "
            "that is not supported (1.8.5 has it only for NVIDIA's cards); use "
            "fluid.optimizer.Momentum with the same learning rate and momentum, which sends whole "
            "gradients"
        )


__all__ = ["DGCMomentumOptimizer", "NeedsDGC"]
