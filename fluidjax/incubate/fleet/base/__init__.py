"""fluid.incubate.fleet.base: the parts that all fleets share: roles, and the fleet itself."""

from typing import TYPE_CHECKING

from ....base.absent import reporter
from . import fleet_base as fleet_base
from . import mode as mode
from . import role_maker as role_maker

__all__ = ["fleet_base", "mode", "role_maker"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.base", __all__)
