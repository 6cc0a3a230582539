"""fluid.layers.detection: the layers of object detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.absent import reporter as _reporter
from . import detection_boxes, detection_heads
from .detection_boxes import *  # noqa: F403
from .detection_heads import *  # noqa: F403
from .detection_heads import detection_map as detection_map
from .loss import sigmoid_focal_loss as sigmoid_focal_loss
from .missing import HINTS as _HINTS

__all__: list[str] = []
__all__ += detection_boxes.__all__
__all__ += detection_heads.__all__

if not TYPE_CHECKING:
    __getattr__ = _reporter("fluid.layers.detection", __all__, _HINTS)
