"""fluid.contrib.quantize: QuantizeTranspiler."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from . import quantize_transpiler as quantize_transpiler
from .quantize_transpiler import *  # noqa: F403

__all__: list[str] = []
__all__ += quantize_transpiler.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.quantize", __all__)
