"""fluid.contrib.slim.graph: IrGraph, where scripts of Paddle 1.3 import it from."""

from typing import TYPE_CHECKING

from ....base.absent import reporter
from ....graph.ir_graph import IrGraph as IrGraph

__all__: list[str] = []

_GONE = (
    "belongs to slim's Compressor, which is not supported; use IrGraph, or Program and its blocks"
)
HINTS = dict.fromkeys(("GraphWrapper", "OpWrapper", "SlimGraphExecutor", "VarWrapper"), _GONE)

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim.graph", __all__, HINTS)
