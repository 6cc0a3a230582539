"""fluid.contrib.utils: files of a Hadoop file system."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from ..missing import HINTS
from . import hdfs_utils as hdfs_utils
from .hdfs_utils import *  # noqa: F403

__all__: list[str] = []
__all__ += hdfs_utils.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.utils", __all__, HINTS)
