"""paddle.distributed.fleet.base: strategies, roles, fleet.util."""

from __future__ import annotations

from . import distributed_strategy as distributed_strategy
from . import role_maker as role_maker
from . import util_factory as util_factory

__all__ = ["distributed_strategy", "role_maker", "util_factory"]
