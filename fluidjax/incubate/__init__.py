"""fluid.incubate: generators of files of slots, and fleets."""

from typing import TYPE_CHECKING

from ..base.absent import reporter

__all__ = ["data_generator", "fleet"]

if TYPE_CHECKING:
    from . import data_generator as data_generator
    from . import fleet as fleet
else:
    from ..base.lazy import on_demand

    __getattr__, __dir__ = on_demand(
        __name__, {"data_generator": "", "fleet": ""}, reporter("fluid.incubate", __all__)
    )
