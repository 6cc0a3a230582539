"""fluid.contrib: Fluid's additions to its main modules. The decoders and layers are supported."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from . import decoder as decoder
from . import extend_optimizer as extend_optimizer
from . import inferencer as inferencer
from . import layers as layers
from . import memory_usage_calc as memory_usage_calc
from . import mixed_precision as mixed_precision
from . import model_stat as model_stat
from . import op_frequence as op_frequence
from . import quantize as quantize
from . import reader as reader
from . import slim as slim
from . import trainer as trainer
from . import utils as utils
from .decoder import *  # noqa: F403
from .extend_optimizer import *  # noqa: F403
from .inferencer import *  # noqa: F403
from .layers import *  # noqa: F403
from .memory_usage_calc import *  # noqa: F403
from .missing import HINTS
from .mixed_precision import *  # noqa: F403
from .model_stat import *  # noqa: F403
from .op_frequence import *  # noqa: F403
from .quantize import *  # noqa: F403
from .reader import *  # noqa: F403
from .trainer import *  # noqa: F403
from .utils import *  # noqa: F403

__all__: list[str] = []
__all__ += decoder.__all__
__all__ += extend_optimizer.__all__
__all__ += inferencer.__all__
__all__ += layers.__all__
__all__ += memory_usage_calc.__all__
__all__ += model_stat.__all__
__all__ += op_frequence.__all__
__all__ += mixed_precision.__all__
__all__ += quantize.__all__
__all__ += reader.__all__
__all__ += trainer.__all__
__all__ += utils.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib", __all__, HINTS)
