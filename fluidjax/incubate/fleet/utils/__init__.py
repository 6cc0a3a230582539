"""fluid.incubate.fleet.utils: files of a Hadoop file system, output and metrics of workers,
programs in files.
"""

from typing import TYPE_CHECKING

from ....base.absent import reporter

__all__ = ["fleet_util", "hdfs", "utils"]

if TYPE_CHECKING:
    from . import fleet_util as fleet_util
    from . import hdfs as hdfs
    from . import utils as utils
else:
    from ....base.lazy import on_demand

    __getattr__, __dir__ = on_demand(
        __name__, dict.fromkeys(__all__, ""), reporter("fluid.incubate.fleet.utils", __all__)
    )
