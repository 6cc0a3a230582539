"""fluid.contrib: what Fluid had beside its main modules. Its decoders and layers are there."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from . import decoder as decoder
from . import layers as layers
from .decoder import *  # noqa: F403
from .layers import *  # noqa: F403
from .missing import HINTS

__all__: list[str] = []
__all__ += decoder.__all__
__all__ += layers.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib", __all__, HINTS)
