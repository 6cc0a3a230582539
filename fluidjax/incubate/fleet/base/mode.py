"""The kinds of fleets, by the numbers that Fluid gives them."""

from typing import TYPE_CHECKING

from ....base.absent import reporter


class Mode:
    """TRANSPILER: parameter servers by DistributeTranspiler. PSLIB: Baidu's own servers, which are
    not supported. COLLECTIVE: only workers.
    """

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


__all__ = ["Mode"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.base.mode", __all__)
