"""The queries that every fleet answers: the role of this process, the others' endpoints, and its
share of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....base.absent import reporter
from ....errors import FluidTypeError, FluidValueError
from .role_maker import MPISymetricRoleMaker, RoleMakerBase


class Fleet:
    """A job as one of its processes sees it, after init."""

    def __init__(self) -> None:
        self._role_maker: RoleMakerBase | None = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Set the role. None means MPI in Fluid, which is refused. Raises FluidTypeError for
        anything but a role maker.
        """
        if role_maker is None:
            role_maker = MPISymetricRoleMaker()
        if not isinstance(role_maker, RoleMakerBase):
            raise FluidTypeError(
                "fleet.init takes a role maker such as PaddleCloudRoleMaker(is_collective=True),"
                f" not {role_maker!r}"
            )
        role_maker.generate_role()
        self._role_maker = role_maker

    @property
    def role(self) -> RoleMakerBase:
        """The role maker. Raises FluidValueError before init."""
        if self._role_maker is None:
            raise FluidValueError("fleet has no role yet; call fleet.init(role_maker) first")
        return self._role_maker

    def is_first_worker(self) -> bool:
        return self.role.is_first_worker()

    def worker_index(self) -> int:
        return self.role.worker_index()

    def worker_num(self) -> int:
        return self.role.worker_num()

    def is_worker(self) -> bool:
        return self.role.is_worker()

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        found = self.role.get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_num(self) -> int:
        return len(self.role.get_pserver_endpoints())

    def server_index(self) -> int:
        return self.role.server_index()

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        found = self.role.get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def is_server(self) -> bool:
        return self.role.is_server()

    def split_files(self, files: Sequence[str]) -> list[str]:
        """This worker's part of the files, in order; if they do not divide evenly the first workers
        have one more.

        Raises FluidTypeError for anything but a list.
        """
        if not isinstance(files, list):
            raise FluidTypeError(f"split_files takes a list of files, not {type(files).__name__}")
        each, more = divmod(len(files), self.worker_num())
        mine = self.worker_index()
        begin = mine * each + min(mine, more)
        return files[begin : begin + each + (mine < more)]


__all__ = ["Fleet"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.base.fleet_base", __all__)
