"""Loaders under the module name that scripts import; they are in loaders/."""

from .loaders.loader import DataLoader, PyReader
from .loaders.samples import BatchSampler, Dataset

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "PyReader",
]
