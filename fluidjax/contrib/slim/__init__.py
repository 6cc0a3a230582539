"""fluid.contrib.slim: quantisation is supported; pruning, distillation and search are not."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from . import graph as graph
from . import quantization as quantization

__all__: list[str] = []

HINTS = {
    "Compressor": (
        "is not supported; apply the passes of fluid.contrib.slim.quantization and train by"
        " Executor.run"
    )
}

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim", __all__, HINTS)
