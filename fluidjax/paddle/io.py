"""paddle.io: data sets, samplers, DataLoader."""

from __future__ import annotations

from ..loaders.loader import DataLoader as DataLoader
from ..loaders.sample_loader import get_worker_info as get_worker_info
from ..loaders.samples import BatchSampler as BatchSampler
from ..loaders.samples import Dataset as Dataset
from ..loaders.samples import IterableDataset as IterableDataset

__all__ = ["BatchSampler", "DataLoader", "Dataset", "IterableDataset", "get_worker_info"]
