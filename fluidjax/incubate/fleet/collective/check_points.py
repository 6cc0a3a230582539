"""Check points of a collective job: persistables and the number of the last epoch, in numbered
folders.
"""

from __future__ import annotations

import json
import os
from typing import Any, Protocol

from ....errors import FluidTypeError, FluidValueError, LoadError
from ....executor import Executor
from ....graph.program import Program
from ....paddle.distributed.fs_wrapper import LocalFS
from ....saved.vars import load_persistables

PREFIX, PARAMETERS, STATUS = (
    "__paddle_fleet_checkpoint__",
    "_paddle_fleet_param__",
    "fleet_train_status",
)


class Saves(Protocol):
    """Saves the persistables of a job: the fleet."""

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None, filename: str | None
    ) -> None: ...
    def _program(self, given: Program | None) -> Program: ...


class TrainStatus:
    """The progress of a job: the number of the last finished epoch, -1 before the first."""

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """The number of the next epoch."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    __hash__ = None  # type: ignore[assignment]  # it changes


def _numbers(path: str, fs: Any) -> list[int]:
    """The numbers of the check points in a folder, in order."""
    parts = [name.rpartition("/")[2].split(".") for name in fs.list_dirs(path)]
    return sorted(int(p[1]) for p in parts if len(p) == 2 and p[0] == PREFIX and p[1].isdigit())


def save(
    of: Saves, executor: Executor, path: str, train_status: TrainStatus, main_program: Program | None, fs: Any, local_cache_path: str,
    remain_all_checkpoint: bool,
) -> None:  # fmt: skip
    """Save persistables and the epoch under `path`, in the next ``__paddle_fleet_checkpoint__.N``,
    all or nothing.

    fs: the file system of `path`, default this machine's; for another one, check points are saved
    under local_cache_path first. remain_all_checkpoint: False removes all but the new one. Raises
    FluidTypeError for anything but a TrainStatus.
    """
    if not isinstance(train_status, TrainStatus):
        raise FluidTypeError(
            f"save_check_point's train_status is a TrainStatus, not {type(train_status).__name__}"
        )
    fs = fs or LocalFS()
    if not fs.stat(path):
        fs.mkdir(path)
    number = max(_numbers(path, fs), default=-1) + 1
    made = f"{path}/{PREFIX}.{number}"
    part = f"{made}.tmp"
    fs.delete(part)
    folder = (
        f"{local_cache_path}/{PREFIX}.{number}.saved_cache" if fs.need_upload_download() else part
    )
    os.makedirs(folder, exist_ok=True)
    of.save_persistables(executor, folder, of._program(main_program), PARAMETERS)
    with open(os.path.join(folder, STATUS), "w") as file:
        json.dump({"epoch_no": train_status._epoch_no}, file)
    if fs.need_upload_download():
        fs.upload(folder, part)
    fs.mv(part, made)
    if not remain_all_checkpoint:
        clean(path, fs, 1)


def load(
    of: Saves, executor: Executor, path: str, trainer_id: int, main_program: Program | None, fs: Any, local_cache_path: str,
    ignore_empty: bool,
) -> TrainStatus | None:  # fmt: skip
    """Load the last check point under `path` into the scope, and return its TrainStatus.

    trainer_id: separates the local copies of several trainers on one machine, if fs is a remote
    file system. Returns None if there is no check point; with ignore_empty=False this raises
    FluidValueError. Raises LoadError for an invalid status.
    """
    fs = fs or LocalFS()
    numbers = _numbers(path, fs)
    if not numbers:
        if not ignore_empty:
            raise FluidValueError(f"there is no check point under {path!r}")
        return None
    folder = f"{path}/{PREFIX}.{numbers[-1]}"
    if fs.need_upload_download():
        there, folder = folder, f"{local_cache_path}/{PREFIX}.{numbers[-1]}.load_cache.{trainer_id}"
        LocalFS().delete(folder)
        fs.download(there, folder)
    load_persistables(executor, folder, of._program(main_program), PARAMETERS)
    return _status(os.path.join(folder, STATUS))


def _status(path: str) -> TrainStatus:
    if not os.path.isfile(path):
        return TrainStatus()
    with open(path) as file:
        try:
            epoch = json.load(file)["epoch_no"]
        except (ValueError, KeyError, TypeError):
            epoch = None
    if type(epoch) is not int or epoch < 0:
        raise LoadError(f"{path!r} holds no epoch_no from 0")
    return TrainStatus(epoch)


def clean(root_path: str, fs: Any, checkpoint_num: int) -> None:
    """Remove all check points in a folder except the last ones, at least one."""
    fs = fs or LocalFS()
    for number in _numbers(root_path, fs)[: -max(1, checkpoint_num)]:
        fs.rmr(f"{root_path}/{PREFIX}.{number}")
