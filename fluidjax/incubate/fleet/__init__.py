"""fluid.incubate.fleet: jobs of several processes by roles: only workers, or workers and
servers.
"""

from typing import TYPE_CHECKING

from ...base.absent import reporter

__all__ = ["base", "collective", "parameter_server", "utils"]

if TYPE_CHECKING:
    from . import base as base
    from . import collective as collective
    from . import parameter_server as parameter_server
    from . import utils as utils
else:
    from ...base.lazy import on_demand

    __getattr__, __dir__ = on_demand(
        __name__, dict.fromkeys(__all__, ""), reporter("fluid.incubate.fleet", __all__)
    )
