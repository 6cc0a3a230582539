"""fluid.contrib.extend_optimizer: optimizers with weight decay that is not added to gradients."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from . import extend_optimizer_with_weight_decay as extend_optimizer_with_weight_decay
from .extend_optimizer_with_weight_decay import *  # noqa: F403

__all__: list[str] = []
__all__ += extend_optimizer_with_weight_decay.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.extend_optimizer", __all__)
