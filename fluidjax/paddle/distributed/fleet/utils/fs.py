"""Files of this machine and of a Hadoop file system under Paddle 2's names, with the same methods."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .....contrib.utils import hdfs_utils
from .....errors import EnforceNotMet, FluidTypeError, FluidValueError

_COLUMNS = 8  # of "hadoop fs -ls": rights, copies, owner, group, bytes, day, time, path


class ExecuteError(EnforceNotMet):
    """The ``hadoop`` command failed."""


class FSTimeOut(ExecuteError):
    """Paddle's name, for scripts that catch it; here a failed command raises ExecuteError."""


class FSShellCmdAborted(ExecuteError):
    """Paddle's name, for scripts that catch it; here a failed command raises ExecuteError."""


class FSFileExistsError(FluidValueError):
    """A file or folder of that name exists already."""


class FSFileNotExistsError(FluidValueError):
    """There is no file or folder of that name."""


class FS:
    """The common methods of both kinds: folders and files by their names."""

    def is_exist(self, fs_path: str) -> bool:
        raise NotImplementedError

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        raise NotImplementedError

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of the folders in a folder; none if it does not exist."""
        return self.ls_dir(fs_path)[0]


class LocalFS(FS):
    """Files and folders of this machine."""

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """The names of the folders in a folder, and of its files; none if it does not exist."""
        found: tuple[list[str], list[str]] = ([], [])
        for entry in sorted(Path(fs_path).iterdir()) if self.is_exist(fs_path) else ():
            found[not entry.is_dir()].append(entry.name)
        return found

    def mkdirs(self, fs_path: str) -> None:
        """Make a folder, with its parents. Raises FSFileExistsError if a file has that name."""
        if self.is_file(fs_path):
            raise FSFileExistsError(f"LocalFS.mkdirs: {fs_path!r} is a file")
        os.makedirs(fs_path, exist_ok=True)

    def rename(self, fs_src_path: str, fs_dst_path: str) -> None:
        """os.rename."""
        os.rename(fs_src_path, fs_dst_path)

    def delete(self, fs_path: str) -> None:
        """Remove a file, or a folder with its contents; do nothing if it does not exist."""
        if os.path.isdir(fs_path) and not os.path.islink(fs_path):
            shutil.rmtree(fs_path)
        elif os.path.lexists(fs_path):
            os.remove(fs_path)

    def need_upload_download(self) -> bool:
        """False: the files are here."""
        return False

    def is_file(self, fs_path: str) -> bool:
        return os.path.isfile(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        return os.path.isdir(fs_path)

    def is_exist(self, fs_path: str) -> bool:
        return os.path.exists(fs_path)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Make an empty file, or keep an existing one. Raises FSFileExistsError if it exists and
        exist_ok is False.
        """
        if self.is_exist(fs_path):
            if not exist_ok:
                raise FSFileExistsError(
                    f"LocalFS.touch: there is already {fs_path!r}, and exist_ok is False"
                )
            return
        Path(fs_path).touch()

    def mv(
        self, src_path: str, dst_path: str, overwrite: bool = False, test_exists: bool = False
    ) -> None:
        """Move a file or folder; overwrite: replace an existing one. test_exists: ignored, as in
        Paddle.

        Raises FSFileNotExistsError, FSFileExistsError.
        """
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(f"LocalFS.mv: there is no {src_path!r}")
        if self.is_exist(dst_path):
            if not overwrite:
                raise FSFileExistsError(
                    f"LocalFS.mv: there is already {dst_path!r}, and overwrite is False"
                )
            self.delete(dst_path)
        self.rename(src_path, dst_path)


class HDFSClient(FS):
    """Runs the user's ``<hadoop_home>/bin/hadoop fs -D<key>=<value> ...`` without a shell, after
    printing each command.

    time_out, sleep_inter: milliseconds, only stored; a failed command is retried at once, and then
    raises ExecuteError. Every method raises FluidValueError if there is no such command.
    """

    def __init__(
        self,
        hadoop_home: str,
        configs: Mapping[str, Any],
        time_out: int = 5 * 60 * 1000,
        sleep_inter: int = 1000,
    ) -> None:
        for name, value in (("time_out", time_out), ("sleep_inter", sleep_inter)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise FluidTypeError(
                    f"HDFSClient's {name} is a number of milliseconds, not {value!r}"
                )
        self._client = hdfs_utils.HDFSClient(hadoop_home, configs or {})
        self.pre_commands = self._client.pre_commands

    def _done(self, *words: str) -> str:
        """The output of a command. Raises ExecuteError if it fails."""
        well, out = self._client.run(words)
        if not well:
            raise ExecuteError(f"hadoop fs {' '.join(words)} failed, after it was tried six times")
        return out

    def _test(self, how: str, fs_path: str) -> bool:
        return self._client.run(
            ["-test", how, hdfs_utils.checked_path(fs_path, "test")], retry_times=1
        )[0]

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """The names of the folders in a folder, and of its files; none if it does not exist."""
        found: tuple[list[str], list[str]] = ([], [])
        for row in self._rows(fs_path):
            found[not row[0].startswith("d")].append(posixpath.basename(row[7]))
        return found

    def _rows(self, fs_path: str) -> list[list[str]]:
        if not self.is_exist(fs_path):
            return []
        rows = [line.split(None, _COLUMNS - 1) for line in self._done("-ls", fs_path).splitlines()]
        return [row for row in rows if len(row) == _COLUMNS]

    def list_files_info(self, path_list: Sequence[str]) -> list[dict[str, Any]]:
        """{"path": ..., "size": bytes} for each file in the folders, or each given file."""
        return [
            {"path": row[7], "size": int(row[4])}
            for path in path_list
            for row in self._rows(path)
            if not row[0].startswith("d")
        ]

    def is_exist(self, fs_path: str) -> bool:
        return self._test("-e", fs_path)

    def is_dir(self, fs_path: str) -> bool:
        return self.is_exist(fs_path) and self._test("-d", fs_path)

    def is_file(self, fs_path: str) -> bool:
        return self.is_exist(fs_path) and not self._test("-d", fs_path)

    def need_upload_download(self) -> bool:
        """True: the files are remote."""
        return True

    def mkdirs(self, fs_path: str) -> None:
        """Make a folder, with its parents, unless it exists."""
        if not self.is_exist(fs_path):
            self._done("-mkdir", "-p", fs_path)

    def delete(self, fs_path: str) -> None:
        """Remove a file, or a folder with its contents; do nothing if it does not exist."""
        if self.is_exist(fs_path):
            self._done("-rmr" if self.is_dir(fs_path) else "-rm", fs_path)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Make an empty file, or keep an existing one. Raises FSFileExistsError if it exists and
        exist_ok is False.
        """
        if self.is_exist(fs_path):
            if not exist_ok:
                raise FSFileExistsError(
                    f"HDFSClient.touch: there is already {fs_path!r}, and exist_ok is False"
                )
            return
        self._done("-touchz", fs_path)

    def mv(
        self, fs_src_path: str, fs_dst_path: str, overwrite: bool = False, test_exists: bool = True
    ) -> None:
        """Move a file or folder; overwrite: replace an existing one. test_exists: check first.

        Raises FSFileNotExistsError, FSFileExistsError, ExecuteError.
        """
        if overwrite:
            self.delete(fs_dst_path)
        if test_exists:
            if not self.is_exist(fs_src_path):
                raise FSFileNotExistsError(f"HDFSClient.mv: there is no {fs_src_path!r}")
            if self.is_exist(fs_dst_path):
                raise FSFileExistsError(
                    f"HDFSClient.mv: there is already {fs_dst_path!r}, and overwrite is False"
                )
        self._done(
            "-mv",
            hdfs_utils.checked_path(fs_src_path, "mv"),
            hdfs_utils.checked_path(fs_dst_path, "mv"),
        )

    def cat(self, fs_path: str | None = None) -> str:
        """The contents of a file; "" if it does not exist."""
        path = hdfs_utils.checked_path(fs_path, "cat")
        return self._done("-cat", path).rstrip() if self.is_file(path) else ""

    def upload(
        self, local_path: str, fs_path: str, multi_processes: int = 5, overwrite: bool = False
    ) -> None:
        """Upload a local file, or the contents of a local folder, into a folder, several at the
        same time; overwrite: remove the folder first.

        Raises FSFileNotExistsError for a missing local file, ExecuteError.
        """
        if not os.path.exists(local_path):
            raise FSFileNotExistsError(f"HDFSClient.upload: there is no local {local_path!r}")
        names = (
            sorted(os.path.join(local_path, n) for n in os.listdir(local_path))
            if os.path.isdir(local_path)
            else [local_path]
        )
        if overwrite:
            self.delete(fs_path)
        self.mkdirs(fs_path)
        _at_once(multi_processes, lambda name: self._done("-put", name, fs_path), names)

    def upload_dir(self, local_dir: str, dest_dir: str, overwrite: bool = False) -> None:
        """Upload a local folder into a folder; overwrite: replace one of the same name."""
        local, target = local_dir.rstrip("/"), dest_dir.rstrip("/")
        if not os.path.isdir(local):
            raise FSFileNotExistsError(
                f"HDFSClient.upload_dir: there is no local folder {local_dir!r}"
            )
        if overwrite:
            self.delete(posixpath.join(target, os.path.basename(local)))
        self.mkdirs(target)
        self._done("-put", local, target)

    def download(
        self, fs_path: str, local_path: str, multi_processes: int = 5, overwrite: bool = False
    ) -> None:
        """Download a file, or the contents of a folder, into a local folder, several at the same
        time; overwrite: replace existing files.

        Raises FSFileNotExistsError for a missing file, ExecuteError.
        """
        if not self.is_exist(fs_path):
            raise FSFileNotExistsError(f"HDFSClient.download: there is no {fs_path!r}")
        names = (
            [fs_path]
            if self.is_file(fs_path)
            else [posixpath.join(fs_path, n) for part in self.ls_dir(fs_path) for n in part]
        )
        os.makedirs(local_path, exist_ok=True)
        for name in names if overwrite else ():
            LocalFS().delete(os.path.join(local_path, posixpath.basename(name)))
        _at_once(multi_processes, lambda name: self._done("-get", name, local_path), names)


def _at_once(count: int, call: Callable[[str], Any], names: Iterable[str]) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise FluidValueError(f"multi_processes is a positive number, not {count!r}")
    with ThreadPoolExecutor(count, "fluidjax-hdfs") as pool:
        list(pool.map(call, list(names)))


__all__ = [
    "FS", "ExecuteError", "FSFileExistsError", "FSFileNotExistsError", "FSShellCmdAborted", "FSTimeOut", "HDFSClient", "LocalFS",
]  # fmt: skip
