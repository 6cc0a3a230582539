"""fluid.contrib.reader: a reader's batches, distributed over the trainers of a job."""

from . import distributed_reader as distributed_reader
from .distributed_reader import *  # noqa: F403

__all__: list[str] = []
__all__ += distributed_reader.__all__
