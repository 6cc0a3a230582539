"""paddle.distributed.fleet in static mode: ``fleet.init``,
``fleet.distributed_optimizer(...).minimize(loss)``, and the job's programs.
"""

from __future__ import annotations

from typing import Any

from ....incubate.data_generator import MultiSlotDataGenerator as MultiSlotDataGenerator
from ....incubate.data_generator import MultiSlotStringDataGenerator as MultiSlotStringDataGenerator
from ...names import MissingName, sentence
from . import base as base
from . import utils as utils
from .base.distributed_strategy import DistributedStrategy as DistributedStrategy
from .base.fleet_base import Fleet as Fleet
from .base.fleet_base import fleet as fleet
from .base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from .base.role_maker import Role as Role
from .base.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
from .base.util_factory import UtilBase as UtilBase

init = fleet.init
is_first_worker = fleet.is_first_worker
worker_index = rank = fleet.worker_index
worker_num = nranks = world_size = fleet.worker_num
is_worker = fleet.is_worker
worker_endpoints = fleet.worker_endpoints
server_num = fleet.server_num
server_index = fleet.server_index
server_endpoints = fleet.server_endpoints
is_server = fleet.is_server
barrier_worker = fleet.barrier_worker
init_worker = fleet.init_worker
init_server = fleet.init_server
run_server = fleet.run_server
stop_worker = fleet.stop_worker
distributed_optimizer = fleet.distributed_optimizer
distributed_model = fleet.distributed_model
minimize = fleet.minimize
amp_init = fleet.amp_init
get_loss_scaling = fleet.get_loss_scaling
save_inference_model = fleet.save_inference_model
save_persistables = fleet.save_persistables
util = fleet.util


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.distributed.fleet", name))


__all__ = [
    "DistributedStrategy", "Fleet", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator", "PaddleCloudRoleMaker", "Role",
    "UserDefinedRoleMaker", "UtilBase", "amp_init", "barrier_worker", "base", "distributed_model", "distributed_optimizer", "fleet",
    "get_loss_scaling", "init", "init_server", "init_worker", "is_first_worker", "is_server", "is_worker", "minimize", "nranks", "rank",
    "run_server", "save_inference_model", "save_persistables", "server_endpoints", "server_index", "server_num", "stop_worker",
    "util", "utils", "worker_endpoints", "worker_index", "worker_num", "world_size",
]  # fmt: skip
