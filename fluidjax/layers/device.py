"""fluid.layers.device: Fluid's module with the one function get_places."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from .parallel_do import get_places as get_places

__all__: list[str] = []

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.device", __all__)
