"""fluid.incubate.fleet: jobs of several processes by roles. The collective fleet is there."""

from typing import TYPE_CHECKING

from ...base.absent import reporter

__all__ = ["base", "collective"]

if TYPE_CHECKING:
    from . import base as base
    from . import collective as collective
else:
    from ...base.lazy import on_demand

    __getattr__, __dir__ = on_demand(__name__, {"base": "", "collective": ""}, reporter("fluid.incubate.fleet", __all__))
