"""fleet.util: small operations of all workers together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....errors import FluidTypeError, FluidValueError, UnsupportedError, near
from .....incubate.fleet.base.over_workers import over_workers
from .role_maker import RoleMakerBase

_MODES = ("sum", "min", "max")


class UtilBase:
    """Sums and lists over the workers of a fleet, shares of files, printing on one worker.
    Available after fleet.init.
    """

    def __init__(self) -> None:
        self.role_maker: RoleMakerBase | None = None

    def _set_role_maker(self, role_maker: RoleMakerBase) -> None:
        self.role_maker = role_maker

    def _role(self) -> RoleMakerBase:
        if self.role_maker is None:
            raise FluidValueError("fleet has no role yet; call fleet.init first")
        return self.role_maker

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> np.ndarray:
        """Sum, minimum or maximum of the workers' numbers, element by element; every worker must
        call it.

        Raises FluidValueError for another mode, UnsupportedError unless comm_world is "worker".
        """
        if mode not in _MODES:
            raise FluidValueError(
                f"fleet.util.all_reduce has the modes {', '.join(_MODES)}, not"
                f" {mode!r}{near(str(mode), _MODES)}"
            )
        array = np.asarray(input)
        return self._together(array, f"c_allreduce_{mode}", comm_world, {})

    def all_gather(self, input: float, comm_world: str = "worker") -> list[Any]:
        """The workers' numbers, in the order of the workers; every worker must call it."""
        count = self._role()._worker_num()
        return list(
            self._together(
                np.asarray(input).reshape(1), "c_allgather", comm_world, {"nranks": count}
            )
        )

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait until every worker has come here."""
        self.all_reduce(np.zeros(1, "float32"), comm_world=comm_world)

    def _together(
        self, array: np.ndarray, op: str, comm_world: str, attrs: dict[str, Any]
    ) -> np.ndarray:
        """One op over the workers of the job."""
        if comm_world != "worker":
            raise UnsupportedError(
                "fleet.util works over comm_world='worker', for servers hold no values here; not"
                f" {comm_world!r}"
            )
        return over_workers(array, op, self._role()._worker_num(), **attrs)

    def get_file_shard(self, files: list[str]) -> list[str]:
        """This worker's part of the files, in order; the first workers have one more if the files
        do not divide evenly.

        Raises FluidTypeError unless files is a list.
        """
        if not isinstance(files, list):
            raise FluidTypeError(
                f"files should be a list of files to be read, not {type(files).__name__}"
            )
        each, more = divmod(len(files), self._role()._worker_num())
        mine = self._role()._worker_index()
        begin = mine * each + min(mine, more)
        return files[begin : begin + each + (mine < more)]

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print on one worker."""
        if self._role()._worker_index() == rank_id:
            print(message)


__all__ = ["UtilBase"]
