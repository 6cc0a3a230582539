"""paddle.distributed.fleet.utils: files of this machine and of a Hadoop file system."""

from __future__ import annotations

from . import fs as fs
from .fs import HDFSClient as HDFSClient
from .fs import LocalFS as LocalFS

__all__ = ["HDFSClient", "LocalFS", "fs"]
