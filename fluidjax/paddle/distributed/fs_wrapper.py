"""paddle.distributed.fs_wrapper: files under the names of 1.8.5. Later Paddles have them in
paddle.distributed.fleet.utils.
"""

from __future__ import annotations

import os
from typing import Any

from ...errors import EnforceNotMet
from .fleet.utils import fs


class FS:
    """The common methods of both kinds."""

    def stat(self, fs_path: str) -> bool:
        raise NotImplementedError

    def need_upload_download(self) -> bool:
        raise NotImplementedError


class LocalFS(FS):
    """Files and folders of this machine."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of the folders in a folder; none if it does not exist."""
        return fs.LocalFS().list_dirs(fs_path)

    def ls_dir(self, fs_path: str) -> list[str]:
        """The names of all entries of a folder."""
        return sorted(os.listdir(fs_path))

    def stat(self, fs_path: str) -> bool:
        """Whether such a file or folder exists."""
        return os.path.exists(fs_path)

    def mkdir(self, fs_path: str) -> None:
        """Make a folder, with its parents. Raises fs.FSFileExistsError if a file has that name."""
        fs.LocalFS().mkdirs(fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """os.rename."""
        os.rename(fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Remove a folder with its contents."""
        fs.LocalFS().delete(fs_path)

    def rm(self, fs_path: str) -> None:
        """Remove a file."""
        os.remove(fs_path)

    def delete(self, fs_path: str) -> None:
        """Remove a file, or a folder with its contents; do nothing if it does not exist."""
        fs.LocalFS().delete(fs_path)

    def need_upload_download(self) -> bool:
        """False: the files are here."""
        return False


class BDFS(FS):
    """A Hadoop file system, by the ``hadoop`` command below the folder HADOOP_HOME, without a
    shell.

    hdfs_name: fs.default.name. hdfs_ugi: hadoop.job.ugi. time_out, sleep_inter: milliseconds, only
    stored. Raises EnforceNotMet if HADOOP_HOME is not set.
    """

    def __init__(
        self, hdfs_name: str, hdfs_ugi: str, time_out: int = 20 * 60 * 1000, sleep_inter: int = 1000
    ) -> None:
        home = os.environ.get("HADOOP_HOME")
        if not home:
            raise EnforceNotMet(
                "BDFS runs the hadoop of the folder that the environment variable HADOOP_HOME"
                " names, which is not set"
            )
        configs: dict[str, Any] = {"fs.default.name": hdfs_name, "hadoop.job.ugi": hdfs_ugi}
        self._client = fs.HDFSClient(home, configs, time_out, sleep_inter)

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of the folders in a folder; none if it does not exist."""
        return self._client.list_dirs(fs_path)

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """The names of the folders in a folder, and of its files."""
        return self._client.ls_dir(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        return self._client.is_dir(fs_path)

    def stat(self, fs_path: str) -> bool:
        """Whether such a file or folder exists."""
        return self._client.is_exist(fs_path)

    def upload(self, local_path: str, fs_path: str) -> None:
        """Upload a local file into a folder."""
        self._client.upload(local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        """Download a file into a local folder."""
        self._client.download(fs_path, local_path)

    def mkdir(self, fs_path: str) -> None:
        """Make a folder, unless it exists."""
        self._client.mkdirs(fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Move a file or folder."""
        self._client.mv(fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Remove a folder with its contents; do nothing if it does not exist."""
        self._client.delete(fs_path)

    rm = delete = rmr

    def need_upload_download(self) -> bool:
        """True: the files are remote."""
        return True


__all__ = ["BDFS", "FS", "LocalFS"]
