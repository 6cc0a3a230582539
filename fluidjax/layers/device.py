"""fluid.layers.device: a module of Fluid whose one function, get_places, is fluid.cpu_places and fluid.cuda_places."""

from typing import TYPE_CHECKING

from ..base.absent import reporter

__all__: list[str] = []

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.device", __all__)
