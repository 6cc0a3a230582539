"""HDFSClient of 1.8.5's fleets: files of a Hadoop file system, by the user's own ``hadoop``
command, without a shell.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ....base.absent import reporter
from ....contrib.utils import hdfs_utils
from ....contrib.utils.hdfs_utils import checked_path
from ....errors import FluidTypeError, FluidValueError


class HDFSClient:
    """Runs ``<hadoop_home>/bin/hadoop fs -D<key>=<value> ...``. 1.8.5's own client always fails
    under Python 3.

    hadoop_home: the folder of the Hadoop client. configs: its settings, such as "fs.default.name"
    and "hadoop.job.ugi". Errors of the command are logged, and the methods return False, or
    nothing. Every method raises FluidValueError if there is no such command, FluidTypeError for
    anything but a file's name.
    """

    def __init__(self, hadoop_home: str, configs: Mapping[str, Any]) -> None:
        self._client = hdfs_utils.HDFSClient(hadoop_home, configs)
        self.pre_commands = self._client.pre_commands
        self.is_exist, self.is_dir, self.delete = (
            self._client.is_exist,
            self._client.is_dir,
            self._client.delete,
        )
        self.rename, self.makedirs, self.ls = (
            self._client.rename,
            self._client.makedirs,
            self._client.ls,
        )

    def cat(self, hdfs_path: str | None = None) -> str:
        """The content of a file; "" if it is not a file."""
        path = checked_path(hdfs_path, "cat")
        return (
            self._client.run(["-cat", path], retry_times=1)[1].strip() if self.is_file(path) else ""
        )

    def is_file(self, hdfs_path: str | None = None) -> bool:
        """Whether the path exists and is not a folder."""
        return self.is_exist(hdfs_path) and not self.is_dir(hdfs_path)

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:
        """The paths of the files in a folder and below it, in the order of the listing, without
        those in excludes.
        """
        return [path for path in self._client.lsr(hdfs_path, sort=False) if path not in excludes]

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Make a local folder and its parents; an existing one is kept."""
        os.makedirs(local_path, exist_ok=True)

    @staticmethod
    def split_files(files: Sequence[str], trainer_id: int, trainers: int) -> list[str]:
        """A trainer's part of the files, in order; if they do not divide evenly the first trainers
        have one more.

        Raises FluidValueError for a trainer_id out of range.
        """
        if (
            not isinstance(trainers, int)
            or not isinstance(trainer_id, int)
            or not 0 <= trainer_id < trainers
        ):
            raise FluidValueError(
                f"split_files: trainer_id is a number from 0 to trainers - 1, not {trainer_id!r} of"
                f" {trainers!r}"
            )
        each, more = divmod(len(files), trainers)
        begin = trainer_id * each + min(trainer_id, more)
        return list(files[begin : begin + each + (trainer_id < more)])

    def download(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> list[str]:
        """Copy the files in a folder to a local one, several at the same time; returns the local
        files.

        overwrite: ignored, as in 1.8.5: existing files are kept.
        """
        names = self.ls(hdfs_path)
        self.make_local_dirs(local_path)
        there = set(os.listdir(local_path))
        self._at_once(
            multi_processes,
            [["-get", n, local_path] for n in names if posixpath.basename(n) not in there],
            retry_times,
        )
        return [
            os.path.join(folder, name)
            for folder, _, files in os.walk(local_path)
            for name in sorted(files)
        ]

    def upload(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> None:
        """Copy a local file, or the files in a local folder, to a folder, several at the same time;
        overwrite: remove it first.
        """
        checked_path(hdfs_path, "upload")
        names = (
            sorted(os.path.join(local_path, n) for n in os.listdir(local_path))
            if os.path.isdir(local_path)
            else [local_path]
        )
        if overwrite and self.is_exist(hdfs_path):
            self.delete(hdfs_path)
        if not self.is_exist(hdfs_path):
            self.makedirs(hdfs_path)
        self._at_once(
            multi_processes,
            [["-put", n, hdfs_path] for n in names if os.path.exists(n)],
            retry_times,
        )

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """Copy a local folder into a folder; overwrite: replace one of its name there. Returns
        whether that succeeded.
        """
        local, target = local_dir.rstrip("/"), checked_path(dest_dir, "upload_dir").rstrip("/")
        there = posixpath.join(target, os.path.basename(local))
        if overwrite and self.is_exist(there):
            self.delete(there)
        if not self.is_exist(target):
            self.makedirs(target)
        return self._client.run(["-put", local, target])[0]

    def _at_once(self, count: int, commands: Sequence[Sequence[str]], retry_times: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise FluidTypeError(f"multi_processes is a positive number, not {count!r}")
        with ThreadPoolExecutor(count, "fluidjax-hdfs") as pool:
            list(pool.map(lambda words: self._client.run(words, retry_times), commands))


__all__ = ["HDFSClient"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.utils.hdfs", __all__)
