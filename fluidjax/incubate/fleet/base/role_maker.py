"""Role makers: determine which process of a job this is, from the environment or the user."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....base.absent import reporter
from ....errors import FluidTypeError, FluidValueError, UnsupportedError


class Role:
    """The role of a process."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """A process's place in a job. A subclass sets the role, its number and the endpoints in
    generate_role.
    """

    def __init__(self) -> None:
        self._role_is_generated = False
        self._role = Role.WORKER
        self._current_id = 0
        self._worker_num = 0
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []

    def generate_role(self) -> None:
        """Determine the role, once."""
        self._role_is_generated = True

    def is_worker(self) -> bool:
        self._known()
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        self._known()
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        return self.is_worker() and self._current_id == 0

    def worker_num(self) -> int:
        self._known()
        return self._worker_num

    def worker_index(self) -> int:
        self._known()
        return self._current_id

    def server_index(self) -> int:
        self._known()
        return self._current_id

    def get_trainer_endpoints(self) -> list[str]:
        self._known()
        return list(self._worker_endpoints)

    def get_pserver_endpoints(self) -> list[str]:
        self._known()
        return list(self._server_endpoints)

    def to_string(self) -> str:
        """The role in words."""
        self._known()
        return (
            f"role: {self._role}, current_id: {self._current_id}, workers: {self._worker_num},"
            f" worker_endpoints: {self._worker_endpoints}, server_endpoints:"
            f" {self._server_endpoints}"
        )

    def _known(self) -> None:
        if not self._role_is_generated:
            self.generate_role()


def _variable(name: str, role: str) -> str:
    if name not in os.environ:
        raise FluidValueError(
            f"{role}: the environment variable {name} is not set; python -m fluidjax launch sets it"
        )
    return os.environ[name]


def _number(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise FluidValueError(
            f"the environment variable {name} is a whole number from 0 on, not {text!r}"
        )
    return int(text)


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role from the environment. Raises FluidValueError, which names the variable, for one that
    is missing or does not fit.

    is_collective: only workers: PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINER_ID (0). Else workers and
    servers: PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINERS_NUM, TRAINING_ROLE, and
    PADDLE_TRAINER_ID, or POD_IP and PADDLE_PORT.
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective

    def generate_role(self) -> None:
        if self._role_is_generated:
            return
        if self._is_collective:
            self._of_workers()
        else:
            self._of_both()
        self._role_is_generated = True

    def _of_workers(self) -> None:
        role = os.environ.get("PADDLE_TRAINING_ROLE", "TRAINER")
        if role != "TRAINER":
            raise FluidValueError(
                f"PADDLE_TRAINING_ROLE is TRAINER in a collective job, not {role!r}"
            )
        self._worker_endpoints = _variable(
            "PADDLE_TRAINER_ENDPOINTS", "a worker of a collective job"
        ).split(",")
        self._current_id = _number("PADDLE_TRAINER_ID", os.environ.get("PADDLE_TRAINER_ID", "0"))
        self._worker_num = len(self._worker_endpoints)
        if self._current_id >= self._worker_num:
            raise FluidValueError(
                f"PADDLE_TRAINER_ID is {self._current_id}, but PADDLE_TRAINER_ENDPOINTS lists"
                f" {self._worker_num} workers"
            )

    def _of_both(self) -> None:
        what = "a job with parameter servers"
        self._server_endpoints = _variable("PADDLE_PSERVERS_IP_PORT_LIST", what).split(",")
        self._worker_num = _number("PADDLE_TRAINERS_NUM", _variable("PADDLE_TRAINERS_NUM", what))
        role = _variable("TRAINING_ROLE", what)
        if role == "TRAINER":
            self._role, self._current_id = (
                Role.WORKER,
                _number("PADDLE_TRAINER_ID", _variable("PADDLE_TRAINER_ID", "a worker")),
            )
        elif role == "PSERVER":
            mine = f"{_variable('POD_IP', 'a server')}:{_variable('PADDLE_PORT', 'a server')}"
            if mine not in self._server_endpoints:
                raise FluidValueError(
                    f"POD_IP and PADDLE_PORT say {mine}, which PADDLE_PSERVERS_IP_PORT_LIST does"
                    " not list"
                )
            self._role, self._current_id = Role.SERVER, self._server_endpoints.index(mine)
        else:
            raise FluidValueError(f"TRAINING_ROLE is TRAINER or PSERVER, not {role!r}")


def _endpoints(name: str, given: Any) -> list[str]:
    """A list of endpoints. Raises FluidTypeError or FluidValueError, which names the argument."""
    if not isinstance(given, list) or not all(isinstance(e, str) for e in given):
        raise FluidTypeError(
            f"{name} is a list of strings such as ['127.0.0.1:6170'], not {given!r}"
        )
    if not given or len(set(given)) != len(given):
        raise FluidValueError(f"{name} has one endpoint at least, and none twice, not {given!r}")
    return list(given)


def _whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int):
        raise FluidTypeError(f"{name} is an int, not {type(value).__name__}")
    if value < least:
        raise FluidValueError(f"{name} is {least} at least, not {value}")
    return value


class UserDefinedRoleMaker(RoleMakerBase):
    """The role from the arguments, in a job with servers. Raises FluidTypeError and FluidValueError
    for arguments that do not fit.
    """

    def __init__(
        self,
        current_id: int = 0,
        role: int = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self._server_endpoints = _endpoints("server_endpoints", server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise FluidTypeError(f"role is Role.WORKER or Role.SERVER, not {role!r}")
        self._role, self._current_id = role, _whole("current_id", current_id, 0)
        if role == Role.SERVER and current_id >= len(self._server_endpoints):
            raise FluidValueError(
                f"server {current_id} is none of the {len(self._server_endpoints)} that"
                " server_endpoints lists"
            )
        self._worker_num = _whole("worker_num", worker_num, 1)


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """The role from the arguments, in a job of only workers. Raises FluidTypeError and
    FluidValueError for arguments that do not fit.
    """

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        super().__init__()
        self._worker_endpoints = _endpoints("worker_endpoints", worker_endpoints)
        self._current_id, self._worker_num = (
            _whole("current_id", current_id, 0),
            len(self._worker_endpoints),
        )
        if current_id >= self._worker_num:
            raise FluidValueError(
                f"worker {current_id} is none of the {self._worker_num} that worker_endpoints lists"
            )


class MPISymetricRoleMaker(RoleMakerBase):
    """Refused. Raises UnsupportedError: roles come from the environment or the user, not from
    MPI.
    """

    def __init__(self) -> None:
        raise UnsupportedError(
            "MPI's roles are not supported; use PaddleCloudRoleMaker (python -m fluidjax launch) or"
            " UserDefinedRoleMaker"
        )


__all__ = [
    "MPISymetricRoleMaker", "PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedCollectiveRoleMaker", "UserDefinedRoleMaker",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.base.role_maker", __all__)
