"""paddle.vision.transforms: preprocessing of images, as functions and as objects with random
parameters.
"""

from __future__ import annotations

from . import crops, functional, objects, warps
from .base import BaseTransform as BaseTransform
from .base import Compose as Compose
from .crops import *  # noqa: F403
from .functional import *  # noqa: F403
from .objects import *  # noqa: F403
from .warps import *  # noqa: F403

RandomHorizontalFli = RandomHorizontalFlip  # noqa: F405

__all__ = ["BaseTransform", "Compose", "RandomHorizontalFli"]
__all__ += crops.__all__
__all__ += functional.__all__
__all__ += objects.__all__
__all__ += warps.__all__
