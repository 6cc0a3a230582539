"""DGCMomentumOptimizer, which sends the greatest part of each gradient alone: refused, as 1.8.5
refuses it without CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..clip import GradientClipBase
from ..errors import UnsupportedError
from ..graph.variable import Variable
from .descent import MomentumOptimizer


class NeedsDGC(UnsupportedError, AssertionError):
    """Deep gradient compression is asked for; an AssertionError too, as in 1.8.5."""


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum whose trainers would send each other the greatest elements of each gradient alone.
    Making one raises NeedsDGC.

    1.8.5 has the kernel that picks them for NVIDIA's cards alone, and raises AssertionError in any
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
            "DGCMomentumOptimizer sends the greatest elements of each gradient alone, by a kernel"
            " that is not there (1.8.5 has it for NVIDIA's cards alone); use"
            " fluid.optimizer.Momentum with the same learning rate and momentum, whose gradients"
            " are sent whole"
        )


__all__ = ["DGCMomentumOptimizer", "NeedsDGC"]
