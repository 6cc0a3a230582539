"""Readers of data that lies in local files; each module is imported when it is asked for.

As ``fluid.dataset`` it has Fluid's DatasetFactory and its kin too, which loaders/slots/datasets.py has.
"""

from typing import TYPE_CHECKING

from ..base.absent import reporter

__all__ = ["common", "mnist", "uci_housing"]

if TYPE_CHECKING:
    from . import common as common
    from . import mnist as mnist
    from . import uci_housing as uci_housing
else:
    from ..base.lazy import on_demand

    _FACTORY = ("DatasetFactory", "InMemoryDataset", "QueueDataset")
    _answer = reporter("dataset", __all__)

    def _other(name):
        if name in _FACTORY:
            from ..loaders.slots import datasets

            return getattr(datasets, name)
        return _answer(name)

    _find, __dir__ = on_demand(__name__, dict.fromkeys(__all__, ""), _answer)

    def __getattr__(name):
        return _find(name) if name in __all__ else _other(name)
