"""paddle.distributed.fs_wrapper: files under the names of 1.8.5. Later Paddles have them in
paddle.distributed.fleet.utils.
"""

from __future__ import annotations

import os
from typing import Any

from ...errors import EnforceNotMet
from .fleet.utils import fs


class FS:
    """What both kinds have."""

    def stat(self, fs_path: str) -> bool:
        raise NotImplementedError

    def need_upload_download(self) -> bool:
        raise NotImplementedError


class LocalFS(FS):
    """Files and folders of this machine."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of the folders in a folder; none where it is not there."""
        return fs.LocalFS().list_dirs(fs_path)

    def ls_dir(self, fs_path: str) -> list[str]:
        """The names of all that is in a folder."""
        return sorted(os.listdir(fs_path))

    def stat(self, fs_path: str) -> bool:
        """Whether there is such a file or folder."""
        return os.path.exists(fs_path)

    def mkdir(self, fs_path: str) -> None:
        """Make a folder, with those above it. Raises fs.FSFileExistsError where there is a file of
        that name.
        """
        fs.LocalFS().mkdirs(fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """os.rename."""
        os.rename(fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Remove a folder with all that is in it."""
        fs.LocalFS().delete(fs_path)

    def rm(self, fs_path: str) -> None:
        """Remove a file."""
        os.remove(fs_path)

    def delete(self, fs_path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""
        fs.LocalFS().delete(fs_path)

    def need_upload_download(self) -> bool:
        """False: the files are here."""
        return False


class BDFS(FS):
    """A Hadoop file system, by the ``hadoop`` command below the folder that HADOOP_HOME names; run
    without a shell.

    hdfs_name: fs.default.name. hdfs_ugi: hadoop.job.ugi. time_out, sleep_inter: milliseconds, kept.
    Raises EnforceNotMet where HADOOP_HOME is not set.
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
        """The names of the folders in a folder; none where it is not there."""
        return self._client.list_dirs(fs_path)

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """The names of the folders in a folder, and of its files."""
        return self._client.ls_dir(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        return self._client.is_dir(fs_path)

    def stat(self, fs_path: str) -> bool:
        """Whether there is such a file or folder."""
        return self._client.is_exist(fs_path)

    def upload(self, local_path: str, fs_path: str) -> None:
        """Put a local file into a folder."""
        self._client.upload(local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        """Get a file into a local folder."""
        self._client.download(fs_path, local_path)

    def mkdir(self, fs_path: str) -> None:
        """Make a folder, unless it is there."""
        self._client.mkdirs(fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Move a file or folder."""
        self._client.mv(fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Remove a folder with all that is in it; nothing where there is none."""
        self._client.delete(fs_path)

    rm = delete = rmr

    def need_upload_download(self) -> bool:
        """True: the files are elsewhere."""
        return True


__all__ = ["BDFS", "FS", "LocalFS"]
