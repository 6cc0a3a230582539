"""Role makers under Paddle 2's names. If the environment describes no job, a process is the only
worker.
"""

from __future__ import annotations

import os
from typing import Any

from .....errors import FluidTypeError, near
from .....incubate.fleet.base import role_maker as first
from .....incubate.fleet.base.role_maker import Role as _Role

ALONE = "127.0.0.1:6170"  # the endpoint of an only worker
_KEYS = ("current_id", "role", "worker_num", "worker_endpoints", "server_endpoints", "path")


class Role(_Role):
    """The role of a process. HETER_WORKER and ALL are names of Paddle 2 that no role maker here
    uses.
    """

    HETER_WORKER = 3
    ALL = 4


class RoleMakerBase:
    """A process's position in a job. fluid_maker: Fluid's role maker."""

    def __init__(self, fluid_maker: first.RoleMakerBase, is_collective: bool) -> None:
        self.fluid_maker = fluid_maker
        self._is_collective = is_collective
        self._non_distributed = False

    def _generate_role(self) -> None:
        self.fluid_maker.generate_role()

    def _is_worker(self) -> bool:
        return self.fluid_maker.is_worker()

    def _is_server(self) -> bool:
        return self.fluid_maker.is_server()

    def _is_first_worker(self) -> bool:
        return self.fluid_maker.is_first_worker()

    def _worker_num(self) -> int:
        return self.fluid_maker.worker_num()

    def _worker_index(self) -> int:
        return self.fluid_maker.worker_index()

    def _server_num(self) -> int:
        return len(self.fluid_maker.get_pserver_endpoints())

    def _server_index(self) -> int:
        return self.fluid_maker.server_index()

    def _get_trainer_endpoints(self) -> list[str]:
        return self.fluid_maker.get_trainer_endpoints()

    def _get_pserver_endpoints(self) -> list[str]:
        return self.fluid_maker.get_pserver_endpoints()

    def _is_non_distributed(self) -> bool:
        return self._non_distributed


class _Only(first.RoleMakerBase):
    """The only worker, without a job."""

    def __init__(self, endpoints: list[str]) -> None:
        super().__init__()
        self._worker_num, self._worker_endpoints = 1, endpoints


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role from the environment, read like fluid's role maker of this name.

    Without PADDLE_TRAINER_ENDPOINTS (is_collective) or PADDLE_PSERVERS_IP_PORT_LIST there is no
    job, and the process is the only worker. kwargs: for Gloo, ignored. Raises FluidTypeError and
    FluidValueError, the latter naming the variable.
    """

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        if not isinstance(is_collective, bool):
            raise FluidTypeError(f"is_collective is True or False, not {is_collective!r}")
        described = (
            "PADDLE_TRAINER_ENDPOINTS" if is_collective else "PADDLE_PSERVERS_IP_PORT_LIST"
        ) in os.environ
        super().__init__(
            (
                first.PaddleCloudRoleMaker(is_collective)
                if described
                else _Only([ALONE] if is_collective else [])
            ),
            is_collective,
        )
        self._non_distributed = not described


class UserDefinedRoleMaker(RoleMakerBase):
    """The role from arguments: current_id, role, worker_num, worker_endpoints, server_endpoints.

    is_collective: workers alone, listed by worker_endpoints. Raises FluidTypeError and
    FluidValueError for arguments that do not fit.
    """

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs: Any) -> None:
        for key in kwargs:
            if key not in _KEYS:
                raise FluidTypeError(
                    f"UserDefinedRoleMaker has no {key!r}{near(key, _KEYS)}; it has"
                    f" {', '.join(_KEYS)}"
                )
        index, workers = kwargs.get("current_id", 0), kwargs.get("worker_endpoints")
        if is_collective:
            super().__init__(first.UserDefinedCollectiveRoleMaker(index, workers), True)
            return
        count = kwargs.get("worker_num") or len(workers or ())
        super().__init__(
            first.UserDefinedRoleMaker(
                index, kwargs.get("role", Role.WORKER), count, kwargs.get("server_endpoints")
            ),
            False,
        )


__all__ = ["PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedRoleMaker"]
