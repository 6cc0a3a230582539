"""The optimizers, under Fluid's names: each class and its short alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.absent import reporter
from .optimizers.adam import AdamaxOptimizer, AdamOptimizer, LambOptimizer
from .optimizers.adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    DecayedAdagradOptimizer,
    FtrlOptimizer,
    RMSPropOptimizer,
)
from .optimizers.averages import ExponentialMovingAverage, ModelAverage
from .optimizers.base import Optimizer
from .optimizers.descent import (
    DpsgdOptimizer,
    LarsMomentumOptimizer,
    MomentumOptimizer,
    SGDOptimizer,
)
from .optimizers.merged import GradientMergeOptimizer
from .optimizers.optax_bridge import Optax
from .optimizers.sparse_messages import DGCMomentumOptimizer
from .optimizers.wrapped import LookaheadOptimizer, PipelineOptimizer, RecomputeOptimizer

SGD = SGDOptimizer
Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer
Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
Lamb = LambOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "DGCMomentumOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
    "Dpsgd",
    "DpsgdOptimizer",
    "ExponentialMovingAverage",
    "Ftrl",
    "FtrlOptimizer",
    "GradientMergeOptimizer",
    "Lamb",
    "LambOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "LookaheadOptimizer",
    "ModelAverage",
    "Momentum",
    "MomentumOptimizer",
    "Optax",
    "Optimizer",
    "PipelineOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "RecomputeOptimizer",
    "SGDOptimizer",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.optimizer", __all__)
