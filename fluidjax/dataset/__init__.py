"""Readers of data that lies in local files; each module is imported when it is asked for.

As ``fluid.dataset`` it has Fluid's DatasetFactory and its kin too, which loaders/slots/datasets.py has.
"""

from typing import TYPE_CHECKING

__all__ = ["common", "mnist", "uci_housing"]

if TYPE_CHECKING:
    from . import common as common
    from . import mnist as mnist
    from . import uci_housing as uci_housing
else:
    from ..base.lazy import on_demand

    _FACTORY = ("DatasetFactory", "InMemoryDataset", "QueueDataset")
    _find, __dir__ = on_demand(__name__, dict.fromkeys(__all__, ""))

    def __getattr__(name):
        if name in _FACTORY:
            from ..loaders.slots import datasets

            return getattr(datasets, name)
        return _find(name)
