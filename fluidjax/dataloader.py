"""Loaders under the name that scripts import; loaders/ has them."""

from .loaders.loader import DataLoader, PyReader
from .loaders.samples import BatchSampler, Dataset

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "PyReader",
]
