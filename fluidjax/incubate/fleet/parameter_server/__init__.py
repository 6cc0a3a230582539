"""fluid.incubate.fleet.parameter_server: fleets of workers and servers. Only the one over
DistributeTranspiler is supported.
"""

from typing import TYPE_CHECKING

from ....base.absent import reporter

__all__ = ["distribute_transpiler"]

if TYPE_CHECKING:
    from . import distribute_transpiler as distribute_transpiler
else:
    from ....base.lazy import on_demand

    __getattr__, __dir__ = on_demand(
        __name__,
        {"distribute_transpiler": ""},
        reporter("fluid.incubate.fleet.parameter_server", __all__),
    )
