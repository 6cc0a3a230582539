"""fluid.contrib.mixed_precision: training in float16 or bfloat16 with float32 parameters and a
scaled loss.
"""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from . import decorator as decorator
from . import fp16_lists as fp16_lists
from . import fp16_utils as fp16_utils
from .decorator import *  # noqa: F403
from .fp16_lists import *  # noqa: F403

__all__: list[str] = []
__all__ += decorator.__all__
__all__ += fp16_lists.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.mixed_precision", __all__)
