"""fluid.contrib.layers: recurrent networks of basic cells, and layers that match texts."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from ..missing import HINTS
from . import later as later
from . import metric_op as metric_op
from . import nn as nn
from . import rnn_impl as rnn_impl
from .later import *  # noqa: F403
from .metric_op import *  # noqa: F403
from .nn import *  # noqa: F403
from .rnn_impl import *  # noqa: F403

__all__: list[str] = []
__all__ += later.__all__
__all__ += metric_op.__all__
__all__ += nn.__all__
__all__ += rnn_impl.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.layers", __all__, HINTS)
