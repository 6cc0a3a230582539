"""HDFSClient: files of a Hadoop file system, by the user's ``hadoop`` command, and transfers of
many files.

The command is started without a shell, so that file names are not interpreted. It is printed first,
without the values of its settings, because one is a password.
"""

from __future__ import annotations

import logging
import os
import posixpath
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from ...errors import EnforceNotMet, FluidTypeError, FluidValueError

_logger = logging.getLogger(__name__)
_COLUMNS = 8  # of "hadoop fs -ls": rights, copies, owner, group, bytes, day, time, path


class HDFSClient:
    """Runs ``<hadoop_home>/bin/hadoop fs -D<key>=<value> ...``.

    hadoop_home: the folder of the Hadoop client. configs: its settings, such as "fs.default.name"
    and "hadoop.job.ugi". Failures of the command are logged with its output, and the methods return
    False, or no names. Raises FluidTypeError for other arguments; every method raises
    FluidValueError if there is no such command.
    """

    def __init__(self, hadoop_home: str, configs: Mapping[str, Any]) -> None:
        if not isinstance(hadoop_home, str) or not isinstance(configs, Mapping):
            raise FluidTypeError(
                f"HDFSClient takes a folder and a dict of settings, not {hadoop_home!r} and"
                f" {configs!r}"
            )
        self.pre_commands = [
            f"{hadoop_home}/bin/hadoop",
            "fs",
            *(f"-D{key}={value}" for key, value in configs.items()),
        ]

    def run(self, words: Sequence[str], retry_times: int = 5) -> tuple[bool, str]:
        """Whether the command succeeded, after this many retries, and its output."""
        command = [*self.pre_commands, *words]
        if shutil.which(command[0]) is None:
            raise FluidValueError(
                f"there is no {command[0]} to run; HDFSClient(hadoop_home, configs) takes the"
                " folder of a Hadoop client"
            )
        shown = " ".join(
            word.partition("=")[0] + "=..." if word in self.pre_commands[2:] else word
            for word in command
        )
        print(f"Running system command: {shown}", flush=True)
        done = subprocess.run(command, capture_output=True, check=False)
        for time in range(retry_times):
            if done.returncode == 0:
                break
            # a missing file is an answer
            level = logging.DEBUG if words[0] == "-test" else logging.WARNING
            _logger.log(
                level,
                "attempt %d of %s ended with %d: %s",
                time + 1,
                shown,
                done.returncode,
                _text(done.stderr).strip(),
            )
            done = subprocess.run(command, capture_output=True, check=False)
        return done.returncode == 0, _text(done.stdout)

    def is_exist(self, hdfs_path: str | None = None) -> bool:
        """Whether such a file or folder exists."""
        return self.run(["-test", "-e", checked_path(hdfs_path, "is_exist")], retry_times=1)[0]

    def is_dir(self, hdfs_path: str | None = None) -> bool:
        """Whether it is a folder."""
        return (
            self.is_exist(hdfs_path)
            and self.run(["-test", "-d", checked_path(hdfs_path, "is_dir")], retry_times=1)[0]
        )

    def ls(self, hdfs_path: str) -> list[str]:
        """The paths in a folder; none if it does not exist."""
        return [path for path, _, _ in self._listed("-ls", checked_path(hdfs_path, "ls"))]

    def lsr(self, hdfs_path: str, only_file: bool = True, sort: bool = True) -> list[str]:
        """The paths in a folder and its subfolders. only_file: without folders. sort: the oldest
        first.
        """
        rows = [
            row
            for row in self._listed("-lsr", checked_path(hdfs_path, "lsr"))
            if not (only_file and row[1])
        ]
        return [path for path, _, _ in (sorted(rows, key=lambda row: row[2]) if sort else rows)]

    def _listed(self, how: str, hdfs_path: str) -> list[tuple[str, bool, str]]:
        """The path of each entry, whether it is a folder, and the day and time of its last change."""
        if not self.is_exist(hdfs_path):
            return []
        rows = [
            line.split(None, _COLUMNS - 1)
            for line in self.run([how, hdfs_path], retry_times=1)[1].splitlines()
        ]
        return [
            (row[7], row[0].startswith("d"), f"{row[5]} {row[6]}")
            for row in rows
            if len(row) == _COLUMNS
        ]

    def makedirs(self, hdfs_path: str) -> bool | None:
        """Make a folder. None if the name exists already."""
        if self.is_exist(checked_path(hdfs_path, "makedirs")):
            return _because(None, "there is already %s", hdfs_path)
        return self.run(["-mkdir", hdfs_path], retry_times=1)[0]

    def delete(self, hdfs_path: str) -> bool:
        """Remove a file, or a folder with its contents; True if it did not exist."""
        if not self.is_exist(checked_path(hdfs_path, "delete")):
            return bool(_because(True, "there is no %s to delete", hdfs_path))
        return self.run(["-rmr" if self.is_dir(hdfs_path) else "-rm", hdfs_path], retry_times=0)[0]

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Move a file or folder; overwrite: also to an existing name, if the command allows it."""
        source, target = (
            checked_path(hdfs_src_path, "rename"),
            checked_path(hdfs_dst_path, "rename"),
        )
        if not overwrite and self.is_exist(target):
            return bool(_because(False, "there is already %s, and overwrite is False", target))
        return self.run(["-mv", source, target], retry_times=1)[0]

    def upload(
        self, hdfs_path: str, local_path: str, overwrite: bool = False, retry_times: int = 5
    ) -> bool:
        """Upload a local file into a folder, which is made. overwrite: replace an existing file.

        False if it exists and overwrite is False, for a local folder, and if the command fails.
        Raises FluidValueError for a missing local file.
        """
        folder = checked_path(hdfs_path, "upload")
        if not os.path.exists(local_path):
            raise FluidValueError(f"there is no local file {str(local_path)!r} to upload")
        if os.path.isdir(local_path):
            return bool(
                _because(
                    False, "%s is a folder; upload its files, or all by multi_upload", local_path
                )
            )
        target = posixpath.join(folder, os.path.basename(local_path))
        if not self.is_exist(folder):
            self.makedirs(folder)
        elif self.is_exist(target):
            if not overwrite:
                return bool(_because(False, "there is already %s, and overwrite is False", target))
            self.delete(target)
        return self.run(["-put", str(local_path), folder], retry_times)[0]

    def download(
        self, hdfs_path: str, local_path: str, overwrite: bool = False, unzip: bool = False
    ) -> bool:
        """Download a file into a local folder, which is made. overwrite: replace an existing file.

        False if the file does not exist or is a folder, if a local one exists and overwrite is
        False, and if the command fails. unzip has no effect, as in 1.8.5.
        """
        if not self.is_exist(checked_path(hdfs_path, "download")):
            return bool(_because(False, "there is no %s", hdfs_path))
        if self.is_dir(hdfs_path):
            return bool(
                _because(
                    False, "%s is a folder; download its files, or all by multi_download", hdfs_path
                )
            )
        local = Path(local_path, posixpath.basename(hdfs_path))
        if local.exists():
            if not overwrite:
                return bool(_because(False, "there is already %s, and overwrite is False", local))
            local.unlink()
        self.make_local_dirs(str(local_path))
        return self.run(["-get", hdfs_path, str(local_path)])[0]

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Make a local folder, with its parents, or keep an existing one."""
        os.makedirs(local_path, exist_ok=True)


def multi_download(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    trainer_id: int,
    trainers: int,
    multi_processes: int = 5,
) -> list[str]:
    """Download a trainer's share of the files in a folder and its subfolders into a local folder of
    the same structure; returns their local names.

    Trainer `trainer_id` of `trainers` takes every trainers-th file, oldest first; multi_processes:
    the number of downloads at the same time. Existing local files are kept. Raises FluidTypeError,
    FluidValueError for other arguments, and EnforceNotMet, naming the files, if downloads failed.
    """
    _checked(client, multi_processes, "multi_download")
    if (
        not isinstance(trainers, int)
        or not isinstance(trainer_id, int)
        or not 0 <= trainer_id < trainers
    ):
        raise FluidValueError(
            f"multi_download: trainer_id is a number from 0 to trainers - 1, not {trainer_id!r} of"
            f" {trainers!r}"
        )
    client.make_local_dirs(local_path)
    mine = client.lsr(hdfs_path, sort=True)[trainer_id::trainers]
    folders = [
        os.path.normpath(
            os.path.join(local_path, posixpath.relpath(posixpath.dirname(f), hdfs_path))
        )
        for f in mine
    ]
    outside = [
        f
        for f, folder in zip(mine, folders, strict=True)
        if not Path(folder).resolve().is_relative_to(Path(local_path).resolve())
    ]
    if outside:
        raise FluidValueError(
            f"multi_download: {outside[0]!r}, which the listing of {hdfs_path!r} names, does not"
            " lie in it"
        )
    _at_once(multi_processes, client.download, zip(mine, folders, strict=True))
    there = [
        os.path.join(folder, posixpath.basename(f)) for f, folder in zip(mine, folders, strict=True)
    ]
    if gone := [f for f, local in zip(mine, there, strict=True) if not os.path.exists(local)]:
        raise EnforceNotMet(
            f"multi_download: {len(gone)} of {len(mine)} files of {hdfs_path!r} did not come, such"
            f" as {gone[0]!r}"
        )
    return there


def multi_upload(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    multi_processes: int = 5,
    overwrite: bool = False,
    sync: bool = True,
) -> None:
    """Upload all files in a local folder and its subfolders into a folder of the same structure.

    multi_processes: the number of uploads at the same time. overwrite: replace existing files. sync
    has no effect, as in 1.8.5. Raises FluidTypeError, FluidValueError for other arguments, and
    EnforceNotMet, naming the files, if uploads failed.
    """
    _checked(client, multi_processes, "multi_upload")
    files = sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(local_path) for name in names
    )
    if not files:
        return _because(None, "there are no files in %s to upload", local_path)
    inside = [Path(f).parent.relative_to(local_path) for f in files]
    for folder in sorted(
        {PurePosixPath(hdfs_path, part) for rest in inside for part in (rest, *rest.parents)}
    ):
        # made first, from the top, so that two uploads do not both make one
        if not client.is_exist(str(folder)):
            client.makedirs(str(folder))
    folders = [str(PurePosixPath(hdfs_path, rest)) for rest in inside]
    went = _at_once(
        multi_processes,
        client.upload,
        ((to, f, overwrite) for to, f in zip(folders, files, strict=True)),
    )
    if kept := [f for f, done in zip(files, went, strict=True) if not done]:
        raise EnforceNotMet(
            f"multi_upload: {len(kept)} of {len(files)} files of {local_path!r} did not go, such as"
            f" {kept[0]!r}"
        )
    return None


def getfilelist(path: str) -> None:
    """Print the files in a local folder and its subfolders."""
    for folder, _, names in os.walk(path):
        for name in names:
            print(os.path.join(folder, name))


def _at_once(count: int, call: Callable[..., bool], rows: Iterable[Sequence[Any]]) -> list[bool]:
    """`call` for each row, several at the same time."""
    with ThreadPoolExecutor(count, "fluidjax-hdfs") as pool:
        return list(pool.map(lambda row: call(*row), list(rows)))


def _checked(client: Any, at_once: Any, what: str) -> None:
    if not isinstance(client, HDFSClient):
        raise FluidTypeError(f"{what} takes an HDFSClient, not {type(client).__name__}")
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        raise FluidValueError(f"{what}: multi_processes is a positive number, not {at_once!r}")


def checked_path(path: Any, what: str) -> str:
    """The name of a file or folder. Raises FluidTypeError for other types, and for names that look
    like an option.
    """
    if not isinstance(path, str) or not path or path.startswith("-"):  # an option of the command
        raise FluidTypeError(f"HDFSClient.{what} takes the name of a file or folder, not {path!r}")
    return path


def _because(answer: bool | None, sentence: str, *words: Any) -> Any:
    """`answer`, after logging the reason for it."""
    _logger.warning("HDFS: " + sentence, *words)
    return answer


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


__all__ = ["HDFSClient", "multi_download", "multi_upload"]
