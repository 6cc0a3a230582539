"""Readers of data in local files; each module is imported at its first use.

``fluid.dataset`` also has Fluid's DatasetFactory and its datasets, which are in
loaders/slots/datasets.py.
"""

from typing import TYPE_CHECKING

__all__ = [
    "cifar", "common", "conll05", "flowers", "image", "imdb", "imikolov", "mnist", "movielens", "mq2007", "sentiment", "uci_housing",
    "voc2012", "wmt14", "wmt16",
]  # fmt: skip

if TYPE_CHECKING:
    from . import cifar as cifar
    from . import common as common
    from . import conll05 as conll05
    from . import flowers as flowers
    from . import image as image
    from . import imdb as imdb
    from . import imikolov as imikolov
    from . import mnist as mnist
    from . import movielens as movielens
    from . import mq2007 as mq2007
    from . import sentiment as sentiment
    from . import uci_housing as uci_housing
    from . import voc2012 as voc2012
    from . import wmt14 as wmt14
    from . import wmt16 as wmt16
else:
    from ..base.lazy import on_demand

    _FACTORY = ("DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset")
    _find, __dir__ = on_demand(__name__, dict.fromkeys(__all__, ""))

    def __getattr__(name):
        if name in _FACTORY:
            from ..loaders.slots import datasets

            return getattr(datasets, name)
        return _find(name)
